/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef GF_COST_PIPE_H
#define GF_COST_PIPE_H

#include "cost/primitives.h"

/*
 * Pipe-SGD's timing models (Li et al. 2018, Eqs. 2-7): T iterations, K steps
 * of staleness, per iteration update + compute and communication.
 */
struct gf_pipe_times {
	double update_s, forward_s, backward_s, communication_s;
};

/* Eq. 2: one after the other, T (u + c + m). */
double gf_pipe_synchronous_s(const struct gf_pipe_times *t, double steps);
/* Eq. 3: with the resources of K workers each, T/K (u + c + m): the bound. */
double gf_pipe_ideal_s(const struct gf_pipe_times *t, double steps,
		       int staleness);
/* Eq. 4 with its filling and draining: (u+c) + (T-1) max(u+c, m) + m, for any
 * K >= 2; K = 1 is Eq. 2. */
double gf_pipe_total_s(const struct gf_pipe_times *t, double steps,
		       int staleness);
/* What one more iteration adds: max(u + c, m); K = 1: u + c + m. */
double gf_pipe_step_s(const struct gf_pipe_times *t, int staleness);
/* Eq. 7: the share of linear speed-up, (u + c) / max(u + c, m). */
double gf_pipe_efficiency(const struct gf_pipe_times *t);

/*
 * Eqs. 5 and 6: communication by a ring of p ranks, n bytes at once, or in
 * `segments` while backward runs (2(p-1) L alpha, the whole rest as before, and
 * L times a global synchronisation S). Eq. 6 prints only the first segment's
 * backward in the compute term; the whole backward is what fills a step.
 */
double gf_pipe_ring_s(const struct gf_link_cost *link, int ranks, double bytes,
		      double synchronisation_s);
double gf_pipe_ring_segments_s(const struct gf_link_cost *link, int ranks,
			       double bytes, int segments,
			       double synchronisation_s);

#endif
