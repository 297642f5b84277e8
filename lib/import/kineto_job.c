/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "import/job.h"
#include "import/kineto.h"

/* A moment of the host on the clock of what computes: the device, if there is
 * one. */
static double begin_s(const struct gf_kineto *k, double at_s)
{
	return k->work.count ? gf_kineto_begin(k, at_s) : at_s;
}

static double end_s(const struct gf_kineto *k, double thread, double at_s)
{
	return k->work.count ? gf_kineto_end(k, thread, at_s) : at_s;
}

/* A job that makes no gradients (it serves, or the trace lacks backward) has
 * steps by its marks. */
static void add_marks(const struct gf_kineto *k, struct gf_import_job_rank *r)
{
	const struct gf_kineto_list *marks = &k->steps;
	size_t i;

	for (i = 0; i < marks->count; i++)
		gf_import_job_add_step(r, begin_s(k, marks->spans[i].start_s),
				       end_s(k, NAN, marks->spans[i].end_s));
}

static void add_passes(const struct gf_kineto *k,
		       const struct gf_kineto_step *steps, size_t count,
		       struct gf_import_job_rank *r)
{
	const struct gf_kineto_span *g = k->gradients.spans;
	size_t i;

	for (i = 0; i < count; i++) {
		const struct gf_kineto_step *s = &steps[i];
		const size_t last = s->first + s->count - 1;
		const size_t mark = gf_kineto_at(&k->steps, s->begin_s);
		const double until_s =
			mark > 0
				? fmax(k->steps.spans[mark - 1].end_s, s->end_s)
				: s->end_s;
		struct gf_import_job_step *to;

		if (isnan(s->from_s))
			continue;
		to = gf_import_job_add_step(r, begin_s(k, s->from_s),
					    end_s(k, NAN, until_s));
		to->forward_end_s = begin_s(k, s->begin_s);
		to->backward_end_s = end_s(k, g[last].thread, s->end_s);
	}
}

/* One ends where the next begins. */
static void join_steps(struct gf_import_job_rank *r)
{
	size_t i;

	for (i = 0; i + 1 < r->nsteps; i++)
		r->steps[i].end_s =
			fmax(r->steps[i].start_s, r->steps[i + 1].start_s);
}

static void add_compute(const struct gf_kineto *k, struct gf_import_job_rank *r)
{
	const struct gf_kineto_list *const of_host[] = {
		&k->operators, &k->nodes, &k->gradients, &k->updates, NULL};
	const struct gf_kineto_list *const of_device[] = {&k->work, NULL};
	const struct gf_kineto_list *const *list =
		k->work.count ? of_device : of_host;
	size_t i;

	for (; *list; list++)
		for (i = 0; i < (*list)->count; i++)
			gf_import_job_add_span(r, GF_IMPORT_COMPUTES,
					       (*list)->spans[i].start_s,
					       (*list)->spans[i].end_s);
}

static void add_messages(struct gf_kineto *k, struct gf_import_job_rank *r)
{
	const struct gf_kineto_span *s = k->collectives.spans;
	size_t i;

	gf_kineto_number(&k->collectives);
	for (i = 0; i < k->collectives.count; i++) {
		const struct gf_import_job_message m = {
			.group = s[i].group,
			.ranks = s[i].ranks ? s[i].ranks : k->ranks,
			.sequence = s[i].sequence,
			.kind = s[i].collective,
			.size_bytes = s[i].elems,
			.ready_s = isnan(s[i].launch_s)
					   ? s[i].start_s
					   : fmin(end_s(k, s[i].host,
							s[i].launch_s),
						  s[i].start_s),
			.start_s = s[i].start_s,
			.end_s = s[i].end_s,
		};

		gf_import_job_add_message(r, &m);
	}
}

int gf_kineto_job(const struct gf_import *in, struct gf_import_job *job,
		  struct gf_error *err)
{
	struct gf_kineto k;
	struct gf_kineto_step *steps;
	struct gf_import_job_rank *r;
	size_t count, outside;
	int rc = gf_kineto_read(in->text, in->size, in->file, &k, err);

	if (rc < 0)
		return rc;
	r = gf_import_job_new_rank(job, k.rank >= 0 ? k.rank : in->rank,
				   in->file, err);
	if (!r) {
		gf_kineto_release(&k);
		return -EINVAL;
	}
	steps = gf_kineto_steps(&k, &count, &outside);
	if (count)
		add_passes(&k, steps, count, r);
	else
		add_marks(&k, r);
	join_steps(r);
	add_compute(&k, r);
	add_messages(&k, r);
	job->timed = true;
	free(steps);
	gf_kineto_release(&k);
	return 0;
}
