/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Traces of gf-train and gradflow.Record (documents/traced.h): what the ranks of a job did. A
 * profile takes the plan beside the trace: gf-plan --refine.
 */
#include "imports/importers.h"

#include <math.h>
#include <string.h>

#include "base/heap.h"
#include "documents/traced.h"
#include "imports/collectives.h"
#include "imports/job.h"

static int recognise(const char *text)
{
	return strstr(text, "\"traceEvents\"") &&
	       (strstr(text, "\"cat\": \"forward\"") || strstr(text, "\"cat\":\"forward\""));
}

/* When the last of its gradients was there. latest_s: up to each gradient. */
static double ready_s(const struct gf_traced_step *s, const double *latest_s,
		      const struct gf_traced_message *m, const struct gf_plan *p)
{
	const size_t last = p ? p->messages[m->number].last : m->last;

	if (p && p->messages[m->number].release == GF_RELEASE_BACKWARD_END)
		return s->backward_end_s;
	return last < s->nready && !isnan(s->ready_s[last]) ? latest_s[last] : NAN;
}

/* The trace of gradflow.Record names no algorithms. */
static bool sends_sets(const struct gf_plan *p, size_t message)
{
	const struct gf_message *m = &p->messages[message];

	return gf_plan_runs(p, m->first, m->last, m) != m->algorithm;
}

static void add_messages(const struct gf_import_job_message *like, const struct gf_traced_step *s,
			 const struct gf_plan *p, size_t step, struct gf_import_job_rank *r)
{
	struct gf_import_job_message m = *like;
	GF_FREED double *latest_s = gf_xcalloc(s->nready + 1, sizeof(*latest_s));

	for (size_t i = 0; i < s->nready; i++)
		latest_s[i] = fmax(i ? latest_s[i - 1] : -INFINITY, s->ready_s[i]);
	for (size_t i = 0; i < s->nmessages; i++) {
		const struct gf_traced_message *of = &s->messages[i];

		if (isnan(of->end_s))
			continue;
		m.kind = of->sets || (p && sends_sets(p, of->number)) ? GF_COLLECTIVE_SETS
								      : GF_COLLECTIVE_ALL_REDUCE;
		m.sequence = step << 32 | of->number;
		m.size_bytes = of->size_bytes ? of->size_bytes
			       : p            ? gf_plan_message_bytes(p, of->number)
					      : 0;
		m.ready_s = ready_s(s, latest_s, of, p);
		m.start_s = of->start_s;
		m.end_s = of->end_s;
		gf_import_job_add_message(r, &m);
	}
}

/* A slice of forward holds the waits for messages of the step before. */
static void add_step(const struct gf_traced_step *s, double end_s, struct gf_import_job_rank *r)
{
	struct gf_import_job_step *to = gf_import_job_add_step(r, s->start_s, end_s);

	to->forward_end_s = s->forward_end_s;
	to->backward_end_s = s->backward_end_s;
	gf_import_job_add_span(r, GF_IMPORT_COMPUTES, s->start_s, s->backward_end_s);
	gf_import_job_add_span(r, GF_IMPORT_WAITS, s->forward_end_s - s->late_s, s->forward_end_s);
	if (!isnan(s->update_start_s))
		gf_import_job_add_span(r, GF_IMPORT_COMPUTES, s->update_start_s, s->update_end_s);
}

static int read_job(const struct gf_import *in, struct gf_import_job *job, struct gf_error *err)
{
	GF_RELEASED(gf_traced_release) struct gf_traced t = {0};
	int rc = gf_traced_read(in->text, in->size, in->file, in->plan, &t, err);

	for (size_t rank = 0; rank < t.nranks && rc == 0; rank++) {
		const struct gf_traced_rank *of = &t.ranks[rank];
		struct gf_import_job_rank *r = gf_import_job_new_rank(job, of->pid, in->file, err);
		const struct gf_import_job_message like = {
			.group = gf_collectives_group("", (int)t.nranks),
			.ranks = (int)t.nranks,
		};

		rc = r ? 0 : -EINVAL;
		for (size_t step = 0; r && step < of->nsteps; step++) {
			const struct gf_traced_step *s = &of->steps[step];

			add_step(s, step + 1 < of->nsteps ? s[1].start_s : s->end_s, r);
			add_messages(&like, s, in->plan, step, r);
		}
	}
	job->timed |= t.nranks > 0;
	return rc;
}

/* MANUAL */
const struct gf_importer gf_importer_train = {
	.name = "gf-train",
	.description = "a trace of gf-train or gradflow.Record",
	.place = 90,
	.recognise = recognise,
	.job = read_job,
};
