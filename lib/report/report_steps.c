/* SPDX-License-Identifier: BSD-3-Clause */
#include <math.h>
#include <stdlib.h>

#include "base/heap.h"
#include "cost/stat.h"
#include "report/report_parts.h"

static double whole(const struct gf_import_job_step *s)
{
	return s->end_s - s->start_s;
}

static double compute(const struct gf_import_job_step *s)
{
	return s->compute_s;
}

static double communication(const struct gf_import_job_step *s)
{
	return s->communication_s;
}

static double exposed(const struct gf_import_job_step *s)
{
	return s->exposed_s;
}

struct gf_report_times gf_report_times(double *values, size_t n)
{
	if (!n)
		return (struct gf_report_times){NAN, NAN, NAN};
	return (struct gf_report_times){gf_stat_median(values, n),
					gf_stat_quantile(values, n, 0.25),
					gf_stat_quantile(values, n, 0.75)};
}

/* Of the last nsteps steps of ranks [first, end). */
static struct gf_report_times
times_of(const struct gf_report_whole *r, size_t first, size_t end,
	 double (*of)(const struct gf_import_job_step *))
{
	double *values =
		gf_xcalloc((end - first) * r->nsteps + 1, sizeof(*values));
	struct gf_report_times t;
	size_t n = 0, i, k;

	for (i = first; i < end; i++) {
		const struct gf_import_job_rank *rank = &r->job->ranks[i];

		for (k = rank->nsteps - r->nsteps; k < rank->nsteps; k++)
			values[n++] = of(&rank->steps[k]);
	}
	t = gf_report_times(values, n);
	free(values);
	return t;
}

void gf_report_steps(struct gf_report_whole *r)
{
	const struct gf_import_job *job = r->job;
	size_t i;

	r->nsteps = gf_import_job_steps(job);
	r->step = times_of(r, 0, r->nranks, whole);
	r->compute = times_of(r, 0, r->nranks, compute);
	r->communication = times_of(r, 0, r->nranks, communication);
	r->exposed = times_of(r, 0, r->nranks, exposed);
	for (i = 0; i < r->nranks; i++) {
		r->ranks[i].rank = job->ranks[i].rank;
		r->ranks[i].step_s = times_of(r, i, i + 1, whole).median_s;
		r->ranks[i].compute_s = times_of(r, i, i + 1, compute).median_s;
		r->ranks[i].exposed_s = times_of(r, i, i + 1, exposed).median_s;
	}
}
