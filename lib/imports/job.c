/* SPDX-License-Identifier: BSD-3-Clause */
#include "imports/job.h"

#include <math.h>
#include <string.h>

#include "base/array.h"
#include "base/gunzip.h"
#include "base/heap.h"
#include "imports/importers.h"

struct gf_import_job_rank *gf_import_job_rank(struct gf_import_job *job, int rank)
{
	struct gf_import_job_rank *r;
	size_t i = job->nranks;

	/* they come in order, or nearly */
	while (i > 0 && job->ranks[i - 1].rank > rank)
		i--;
	if (i > 0 && job->ranks[i - 1].rank == rank)
		return &job->ranks[i - 1];
	gf_array_push(&job->ranks, &job->nranks, &job->capacity);
	r = &job->ranks[i];
	memmove(r + 1, r, (job->nranks - 1 - i) * sizeof(*r));
	memset(r, 0, sizeof(*r));
	r->rank = rank;
	return r;
}

struct gf_import_job_rank *gf_import_job_new_rank(struct gf_import_job *job, int rank,
						  const char *file, struct gf_error *err)
{
	struct gf_import_job_rank *r = gf_import_job_rank(job, rank);

	if (!r->nsteps && !r->nmessages)
		return r;
	gf_error_set(err, -EINVAL,
		     "%s: want the trace of another rank, got one more of rank %d (gf-report "
		     "--against sets two runs beside each other)",
		     file, rank);
	return NULL;
}

size_t gf_import_job_steps(const struct gf_import_job *job)
{
	size_t i, least = job->nranks ? job->ranks[0].nsteps : 0;

	for (i = 1; i < job->nranks; i++)
		if (job->ranks[i].nsteps < least)
			least = job->ranks[i].nsteps;
	return least;
}

struct gf_import_job_step *gf_import_job_add_step(struct gf_import_job_rank *r, double start_s,
						  double end_s)
{
	struct gf_import_job_step *s = gf_array_push(&r->steps, &r->nsteps, &r->steps_capacity);

	s->start_s = start_s;
	s->end_s = end_s;
	s->forward_end_s = s->backward_end_s = NAN;
	return s;
}

void gf_import_job_add_message(struct gf_import_job_rank *r, const struct gf_import_job_message *m)
{
	*gf_array_push(&r->messages, &r->nmessages, &r->messages_capacity) = *m;
	gf_import_job_add_span(r, GF_IMPORT_SENDS, m->start_s, m->end_s);
}

void gf_import_job_add_span(struct gf_import_job_rank *r, enum gf_import_job_span_kind kind,
			    double start_s, double end_s)
{
	struct gf_import_job_span *s = gf_array_push(&r->spans, &r->nspans, &r->spans_capacity);

	*s = (struct gf_import_job_span){start_s, end_s, kind};
}

/* --- the sums of steps -----------------------------------------------------
 */

/* A span begins or ends. */
struct edge {
	double at_s;
	enum gf_import_job_span_kind kind;
	int by;
};

GF_ORDER(by_time, struct edge, GF_BY(x->at_s, y->at_s))
GF_ORDER(by_start, struct gf_import_job_message,
	 GF_BY(x->start_s, y->start_s) ?: GF_BY(x->sequence, y->sequence))

/* From one edge to the next, in which nothing begins or ends. */
static void add_time(struct gf_import_job_step *s, double from_s, double to_s, const int open[])
{
	const bool computes = open[GF_IMPORT_COMPUTES] && !open[GF_IMPORT_WAITS];
	const double time_s = fmin(to_s, s->end_s) - fmax(from_s, s->start_s);

	if (!(time_s > 0))
		return;
	s->compute_s += computes ? time_s : 0;
	s->communication_s += open[GF_IMPORT_SENDS] ? time_s : 0;
	s->exposed_s += open[GF_IMPORT_SENDS] && !computes ? time_s : 0;
}

static void sum_steps(struct gf_import_job_rank *r)
{
	GF_FREED struct edge *edges = gf_xcalloc(2 * r->nspans + 1, sizeof(*edges));
	int open[GF_IMPORT_SENDS + 1] = {0};
	size_t i, n = 0, first = 0, s;

	for (i = 0; i < r->nspans; i++) {
		const struct gf_import_job_span *of = &r->spans[i];

		edges[n++] = (struct edge){of->start_s, of->kind, 1};
		edges[n++] = (struct edge){of->end_s, of->kind, -1};
	}
	qsort(edges, n, sizeof(*edges), by_time);
	for (i = 0; i + 1 < n; i++) {
		const double from_s = edges[i].at_s, to_s = edges[i + 1].at_s;

		open[edges[i].kind] += edges[i].by;
		while (first < r->nsteps && r->steps[first].end_s <= from_s)
			first++;
		for (s = first; s < r->nsteps && r->steps[s].start_s < to_s; s++)
			add_time(&r->steps[s], from_s, to_s, open);
	}
}

static void place_messages(struct gf_import_job_rank *r)
{
	size_t i, at = 0;

	if (r->nmessages)
		qsort(r->messages, r->nmessages, sizeof(*r->messages), by_start);
	for (i = 0; i < r->nsteps; i++) {
		struct gf_import_job_step *s = &r->steps[i];

		while (at < r->nmessages && r->messages[at].start_s < s->start_s)
			at++;
		s->first = at;
		while (at < r->nmessages && r->messages[at].start_s < s->end_s)
			at++;
		s->count = at - s->first;
	}
}

/* A rank's messages to steps, and the steps' sums; releases the spans. Steps follow each other. */
static void finish(struct gf_import_job *job)
{
	for (size_t i = 0; i < job->nranks; i++) {
		struct gf_import_job_rank *r = &job->ranks[i];

		sum_steps(r);
		place_messages(r);
		free(r->spans);
		r->spans = NULL;
		r->nspans = 0;
	}
}

void gf_import_job_release(struct gf_import_job *job)
{
	for (size_t i = 0; i < job->nranks; i++) {
		free(job->ranks[i].steps);
		free(job->ranks[i].messages);
		free(job->ranks[i].spans);
	}
	free(job->ranks);
	gf_imported_release(&job->imported);
	memset(job, 0, sizeof(*job));
}

/* --- files ------------------------------------------------------------------
 */

struct files {
	struct gf_import_job *job; /* NULL: files are recognised alone */
	const struct gf_plan *plan;
	int before; /* files that came before this folder's */
	int count;
	const struct gf_importer *importer; /* of the first */
};

static int take(void *ctx, const char *file, int number, int count, struct gf_error *err)
{
	struct files *f = ctx;
	struct gf_import in = {.file = file,
			       .rank = f->before + number,
			       .plan = f->plan,
			       .imported = f->job ? &f->job->imported : NULL};
	const struct gf_importer *importer;
	GF_FREED char *text = NULL;
	int rc;

	if (!f->job && f->importer)
		return 0;
	rc = gf_gunzip_read(file, &text, &in.size, err);
	if (rc < 0)
		return rc;
	in.text = text;
	f->count = count;
	rc = gf_import_find(&in, NULL, &importer, err);
	if (rc < 0)
		return rc;
	if (f->job && !importer->job)
		return gf_error_set(err, -EINVAL, "%s: want a trace of a job's ranks, got %s", file,
				    importer->description);
	if (f->job && f->importer && f->importer != importer)
		return gf_error_set(err, -EINVAL, "%s: want %s, as the first file is, got %s", file,
				    f->importer->description, importer->description);
	f->importer = importer;
	if (!f->job)
		return 0;
	f->job->imported.kind = importer->name;
	return importer->job(&in, f->job, err);
}

int gf_import_is_job(const char *path, struct gf_error *err)
{
	struct files f = {0};
	return gf_import_each(path, take, &f, err) ?: f.importer->job != NULL;
}

int gf_import_job_read(struct gf_import_job *job, const char *const *paths, size_t npaths,
		       const struct gf_plan *p, struct gf_error *err)
{
	struct files f = {.job = job, .plan = p};
	size_t i, steps = 0;
	int rc = 0;

	for (i = 0; i < npaths && rc == 0; i++) {
		rc = gf_import_each(paths[i], take, &f, err);
		f.before += f.count;
	}
	if (rc < 0)
		return rc;
	finish(job);
	for (i = 0; i < job->nranks; i++)
		steps += job->ranks[i].nsteps;
	gf_imported_find(&job->imported, "%zu rank%s, %zu steps of ranks", job->nranks,
			 job->nranks == 1 ? "" : "s", steps);
	return 0;
}
