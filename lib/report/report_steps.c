/* SPDX-License-Identifier: BSD-3-Clause */
#include <math.h>
#include <stdlib.h>

#include "base/heap.h"
#include "cost/stat.h"
#include "report/report_parts.h"

const char *const gf_report_parts[] = {"step", "compute", "communication",
				       "exposed"};

static double part_of(const struct gf_import_job_step *s, size_t part)
{
	const double of[] = {s->end_s - s->start_s, s->compute_s,
			     s->communication_s, s->exposed_s};

	return of[part];
}

struct gf_report_times gf_report_times(double *values, size_t n)
{
	const size_t out = (size_t)fmax(0, ((double)n - 1.96 * sqrt(n)) / 2);
	double mean_s = 0;
	size_t i;

	if (!n)
		return (struct gf_report_times){NAN, NAN, NAN, NAN, NAN, NAN};
	for (i = 0; i < n; i++)
		mean_s += values[i] / (double)n;
	return (struct gf_report_times){gf_stat_median(values, n),
					gf_stat_quantile(values, n, 0.25),
					gf_stat_quantile(values, n, 0.75),
					values[out],
					values[n - 1 - out],
					mean_s};
}

/* Of the last nsteps steps of ranks [first, end). */
static struct gf_report_times times_of(const struct gf_report_whole *r,
				       size_t first, size_t end, size_t part)
{
	double *values =
		gf_xcalloc((end - first) * r->nsteps + 1, sizeof(*values));
	struct gf_report_times t;
	size_t n = 0, i, k;

	for (i = first; i < end; i++) {
		const struct gf_import_job_rank *rank = &r->job->ranks[i];

		for (k = rank->nsteps - r->nsteps; k < rank->nsteps; k++)
			values[n++] = part_of(&rank->steps[k], part);
	}
	t = gf_report_times(values, n);
	free(values);
	return t;
}

void gf_report_steps(struct gf_report_whole *r)
{
	size_t part, i;

	r->nsteps = gf_import_job_steps(r->job);
	for (i = 0; i < r->nranks; i++)
		r->ranks[i].rank = r->job->ranks[i].rank;
	for (part = 0; part < GF_REPORT_PARTS; part++) {
		r->parts[part] = times_of(r, 0, r->nranks, part);
		for (i = 0; i < r->nranks; i++)
			r->ranks[i].parts[part] = times_of(r, i, i + 1, part);
	}
}
