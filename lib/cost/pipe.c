/* SPDX-License-Identifier: BSD-3-Clause */
#include "cost/pipe.h"

#include <math.h>

static double compute_s(const struct gf_pipe_times *t)
{
	return t->update_s + t->forward_s + t->backward_s;
}

double gf_pipe_synchronous_s(const struct gf_pipe_times *t, double steps)
{
	return steps * (compute_s(t) + t->communication_s);
}

double gf_pipe_ideal_s(const struct gf_pipe_times *t, double steps,
		       int staleness)
{
	return gf_pipe_synchronous_s(t, steps) / staleness;
}

double gf_pipe_step_s(const struct gf_pipe_times *t, int staleness)
{
	if (staleness <= 1)
		return compute_s(t) + t->communication_s;
	return fmax(compute_s(t), t->communication_s);
}

double gf_pipe_total_s(const struct gf_pipe_times *t, double steps,
		       int staleness)
{
	if (steps <= 0)
		return 0;
	return compute_s(t) + t->communication_s +
	       (steps - 1) * gf_pipe_step_s(t, staleness);
}

double gf_pipe_efficiency(const struct gf_pipe_times *t)
{
	double step = gf_pipe_step_s(t, 2);

	return step > 0 ? compute_s(t) / step : 1;
}

double gf_pipe_ring_s(const struct gf_link_cost *link, int ranks, double bytes,
		      double synchronisation_s)
{
	return gf_pipe_ring_segments_s(link, ranks, bytes, 1,
				       synchronisation_s);
}

double gf_pipe_ring_segments_s(const struct gf_link_cost *link, int ranks,
			       double bytes, int segments,
			       double synchronisation_s)
{
	double p = ranks, share = (p - 1) / p * bytes;

	return 2 * (p - 1) * segments * link->alpha_s +
	       2 * share * link->beta_s_per_byte +
	       share * link->gamma_s_per_byte + segments * synchronisation_s;
}
