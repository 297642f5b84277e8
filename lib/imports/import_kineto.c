/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A trace of PyTorch's profiler: a gradient is ready when AccumulateGrad has added it, on a GPU
 * when what its thread launched last has ended, but communication. Times are those that events on
 * the stream would give. The trace names no parameters; --imported params=FILE lists them in
 * registration order, and the order of the gradients with their shapes tells which is which.
 * Medians over the steps of the trace that hold all gradients.
 */
#include "imports/importers.h"

#include <math.h>
#include <string.h>

#include "base/array.h"
#include "base/heap.h"
#include "imports/collectives.h"
#include "imports/job.h"
#include "imports/kineto.h"
#include "cost/stat.h"

static int recognise(const char *text)
{
	size_t blanks = strspn(text, " \t\r\n");

	return strstr(text, "\"traceEvents\"") != NULL ||
	       (text[blanks] == '[' && strstr(text, "\"ph\"") && strstr(text, "\"ts\""));
}

/* Both hold the same gradients in the same order. */
static bool alike(const struct gf_kineto *k, const struct gf_kineto_step *a,
		  const struct gf_kineto_step *b)
{
	const struct gf_kineto_span *x = k->gradients.spans + a->first;
	const struct gf_kineto_span *y = k->gradients.spans + b->first;

	for (size_t i = 0; i < a->count && a->count == b->count; i++)
		if (x[i].elems != y[i].elems || x[i].dtype != y[i].dtype)
			return false;
	return a->count == b->count;
}

/* The steps that hold what the first of the largest holds: one that is cut off holds less. */
static size_t keep_whole(const struct gf_kineto *k, struct gf_kineto_step *steps, size_t count)
{
	struct gf_kineto_step largest = {0};
	size_t i, kept = 0;

	for (i = 0; i < count; i++)
		if (steps[i].count > largest.count)
			largest = steps[i];
	for (i = 0; i < count; i++)
		if (alike(k, &steps[i], &largest))
			steps[kept++] = steps[i];
	return kept;
}

/* What was found, what is left out, and what the user should know. */
static void tell(const struct gf_import *in, const struct gf_kineto *k,
		 const struct gf_kineto_step *steps, size_t count, struct gf_text *remarks)
{
	gf_imported_leave_many(in->imported, "AccumulateGrad events without a gradient",
			       k->undefined);
	gf_imported_find(in->imported, "%zu tensor%s", steps[0].count,
			 steps[0].count == 1 ? "" : "s");
	gf_imported_find(in->imported, "%zu step%s", count, count == 1 ? "" : "s");
	if (!k->steps.count)
		gf_imported_find(in->imported, "no marks of steps (profiler.step()): %s",
				 k->updates.count ? "each ends with Optimizer.step"
						  : "each has one pass of backward");
	if (steps[0].passes > 1)
		gf_imported_find(
			in->imported,
			"%zu passes of backward in each, of which the last makes gradients ready",
			steps[0].passes);
	if (k->mended)
		gf_text_addf(remarks,
			     "%s: PyTorch wrote %zu things that JSON does not allow, the first at "
			     "%s: they were mended\n",
			     in->file, k->mended, k->place);
	if (!k->typed)
		gf_text_addf(remarks,
			     "%s: the trace holds no types (record_shapes=True): gradients are "
			     "taken as f32\n",
			     in->file);
}

/* Times of a step, of which forward and update may be NAN; gradients' from backward's beginning
 * on. */
enum { FORWARD, BACKWARD, UPDATE, READY };

static void take_times(const struct gf_kineto *k, const struct gf_kineto_step *s, double *times_s)
{
	const struct gf_kineto_span *g = &k->gradients.spans[s->first];
	const double begin_s = gf_kineto_begin(k, s->begin_s);
	const double end_s = gf_kineto_end(k, g->thread, s->end_s);

	times_s[FORWARD] = NAN;
	if (!isnan(s->from_s))
		times_s[FORWARD] = fmax(begin_s - gf_kineto_begin(k, s->from_s), 0);
	times_s[BACKWARD] = fmax(end_s - begin_s, 0);
	times_s[UPDATE] = s->update_s;
	for (size_t i = 0; i < s->count; i++)
		times_s[READY + i] = fmax(gf_kineto_end(k, g[i].thread, g[i].end_s) - begin_s, 0);
}

/* Medians over steps that hold the same gradients, of those that are known; the caller frees. */
static double *medians(const struct gf_kineto *k, const struct gf_kineto_step *steps, size_t count)
{
	const size_t n = READY + steps[0].count;
	double *times_s = gf_xcalloc(count * n, sizeof(*times_s));
	GF_FREED double *column = gf_xcalloc(count, sizeof(*column));
	size_t i, t, known;

	for (i = 0; i < count; i++)
		take_times(k, &steps[i], times_s + i * n);
	for (t = 0; t < n; t++) {
		for (i = known = 0; i < count; i++)
			if (!isnan(times_s[i * n + t]))
				column[known++] = times_s[i * n + t];
		times_s[t] = known ? gf_stat_median(column, known) : NAN;
		if (t > READY)
			times_s[t] = fmax(times_s[t], times_s[t - 1]);
	}
	return times_s;
}

/* Those that no other all-reduce of this rank runs beside; sorted by start. */
static void mark_alone(struct gf_kineto_span *s, size_t count)
{
	double latest_s = -INFINITY;

	for (size_t i = 0; i < count; i++) {
		s[i].alone = s[i].start_s >= latest_s &&
			     (i + 1 == count || s[i + 1].start_s >= s[i].end_s);
		latest_s = fmax(latest_s, s[i].end_s);
	}
}

GF_ORDER(by_group, struct gf_kineto_span,
	 GF_BY(x->group, y->group) ?: GF_BY(x->start_s, y->start_s))

void gf_kineto_number(struct gf_kineto_list *collectives)
{
	struct gf_kineto_span *s = collectives->spans;
	size_t i, next = 0;

	if (collectives->count)
		qsort(s, collectives->count, sizeof(*s), by_group);
	for (i = 0; i < collectives->count; i++) {
		if (i == 0 || s[i].group != s[i - 1].group)
			next = SIZE_MAX / 2 + 1;
		if (!s[i].sequence)
			s[i].sequence = next++;
	}
}

/* Why it is left out; NULL: it is not. */
static const char *reason(const struct gf_kineto_span *s, int ranks,
			  const struct gf_collectives *to)
{
	if (!ranks)
		return "all-reduces of no known group";
	if (!to)
		return "all-reduces of one rank, whose times hold the waits for the others";
	return s->alone ? NULL : "all-reduces that ran beside others";
}

/* One rank's all-reduces, for all ranks' (NULL: there are no others); sorts them. What does not
 * count is left out by name. */
static void collect(struct gf_kineto *k, struct gf_collectives *to, struct gf_imported *imported)
{
	struct gf_kineto_span *s = k->reduces.spans;
	const size_t count = k->reduces.count;

	gf_imported_leave_many(imported, "collectives that are no all-reduce",
			       k->other_collectives);
	gf_imported_leave_many(imported, "collectives of no known kind or size", k->unsized);
	mark_alone(s, count);
	gf_kineto_number(&k->reduces);
	for (size_t i = 0; i < count; i++) {
		const struct gf_collective c = {
			.group = s[i].group,
			.sequence = s[i].sequence,
			.ranks = s[i].ranks ? s[i].ranks : k->ranks,
			.size_bytes = s[i].elems,
			.time_s = s[i].end_s - s[i].start_s,
		};
		const char *why = reason(&s[i], c.ranks, to);

		if (why)
			gf_imported_leave(imported, why, 0);
		else
			gf_collectives_add(to, &c, NULL);
	}
}

static int fill_tensors(const struct gf_import *in, const struct gf_kineto_span *g,
			const double *ready_s, struct gf_model_profile *m, struct gf_error *err)
{
	int rc = 0;

	m->tensors = gf_xcalloc(m->ntensors, sizeof(*m->tensors));
	for (size_t t = 0; t < m->ntensors; t++) {
		m->tensors[t].name = gf_xasprintf("gradient%zu", t);
		m->tensors[t].count_elems = g[t].elems;
		m->tensors[t].dtype = g[t].dtype;
		m->tensors[t].ready_s = ready_s[t];
		m->tensors[t].need_s = NAN;
	}
	if (in->parameters)
		rc = gf_import_names(in, m, err);
	for (size_t t = 0; t < m->ntensors && rc == 0; t++)
		if (m->tensors[t].count_elems == 0)
			rc = gf_error_set(err, -EINVAL,
					  "%s: the trace holds no shapes: want record_shapes=True, "
					  "or --imported params=FILE",
					  in->file);
	return rc;
}

/* Figures of such a trace would be the host's, or none. */
static int refuse(const struct gf_import *in, const struct gf_kineto *k, size_t steps,
		  struct gf_error *err)
{
	if (steps == 0)
		return gf_error_set(err, -EINVAL,
				    "%s: want events named AccumulateGrad%s, got none%s", in->file,
				    k->gradients.count ? " within ProfilerStep" : "",
				    k->undefined ? " that adds a gradient" : "");
	if ((k->launched || k->kernels) && k->work.count == 0)
		return gf_error_set(
			err, -EINVAL,
			"%s: want the GPU's kernels and their launches (ProfilerActivity.CPU and "
			"CUDA), got %zu that compute and %zu launches",
			in->file, k->kernels, k->launched);
	return 0;
}

static int read_kineto(const struct gf_import *in, struct gf_profile *out, struct gf_text *remarks,
		       struct gf_error *err)
{
	struct gf_import known = *in;
	GF_RELEASED(gf_kineto_release) struct gf_kineto k = {0};
	GF_FREED struct gf_kineto_step *steps = NULL;
	GF_FREED double *times_s = NULL;
	size_t all, count, outside;
	int rc = gf_kineto_read(in->text, in->size, in->file, &k, err);

	if (rc < 0)
		return rc;
	steps = gf_kineto_steps(&k, &all, &outside);
	rc = refuse(in, &k, all, err);
	if (rc < 0)
		return rc;
	count = keep_whole(&k, steps, all);
	times_s = medians(&k, steps, count);
	if (isnan(known.forward_s))
		known.forward_s = times_s[FORWARD];
	if (isnan(known.backward_s))
		known.backward_s = times_s[BACKWARD];
	out->model = gf_import_model(&known, k.work.count ? "cuda" : "cpu", remarks);
	out->model->update_s = isnan(times_s[UPDATE]) ? 0 : times_s[UPDATE];
	out->model->ntensors = steps[0].count;
	out->model->accumulate = steps[0].passes > 1 ? steps[0].passes : 0;
	rc = fill_tensors(in, &k.gradients.spans[steps[0].first], times_s + READY, out->model, err);
	if (rc < 0)
		return rc;
	gf_imported_leave_many(in->imported, "passes of backward outside whole steps", outside);
	gf_imported_leave_many(in->imported, "steps with other gradients", all - count);
	collect(&k, in->collectives, in->imported);
	if (in->rank == 0)
		tell(in, &k, steps, count, remarks);
	return gf_import_finish_model(in, out->model, err);
}

/* --- jobs -------------------------------------------------------------------
 */

/* A moment of the host on the clock of what computes: the device, if there is one. */
static double begin_s(const struct gf_kineto *k, double at_s)
{
	return k->work.count ? gf_kineto_begin(k, at_s) : at_s;
}

static double end_s(const struct gf_kineto *k, double thread, double at_s)
{
	return k->work.count ? gf_kineto_end(k, thread, at_s) : at_s;
}

/* A job that makes no gradients (it serves, or the trace lacks backward) has steps by its marks. */
static void add_marks(const struct gf_kineto *k, struct gf_import_job_rank *r)
{
	const struct gf_kineto_list *marks = &k->steps;

	for (size_t i = 0; i < marks->count; i++)
		gf_import_job_add_step(r, begin_s(k, marks->spans[i].start_s),
				       end_s(k, NAN, marks->spans[i].end_s));
}

static void add_passes(const struct gf_kineto *k, const struct gf_kineto_step *steps, size_t count,
		       struct gf_import_job_rank *r)
{
	const struct gf_kineto_span *g = k->gradients.spans;

	for (size_t i = 0; i < count; i++) {
		const struct gf_kineto_step *s = &steps[i];
		const size_t last = s->first + s->count - 1;
		const size_t mark = gf_kineto_at(&k->steps, s->begin_s);
		const double until_s =
			mark > 0 ? fmax(k->steps.spans[mark - 1].end_s, s->end_s) : s->end_s;
		struct gf_import_job_step *to;

		if (isnan(s->from_s))
			continue;
		to = gf_import_job_add_step(r, begin_s(k, s->from_s), end_s(k, NAN, until_s));
		to->forward_end_s = begin_s(k, s->begin_s);
		to->backward_end_s = end_s(k, g[last].thread, s->end_s);
	}
}

static void add_compute(const struct gf_kineto *k, struct gf_import_job_rank *r)
{
	const struct gf_kineto_list *const of_host[] = {&k->operators, &k->nodes, &k->gradients,
							&k->updates, NULL};
	const struct gf_kineto_list *const of_device[] = {&k->work, NULL};
	const struct gf_kineto_list *const *list = k->work.count ? of_device : of_host;

	for (; *list; list++)
		for (size_t i = 0; i < (*list)->count; i++)
			gf_import_job_add_span(r, GF_IMPORT_COMPUTES, (*list)->spans[i].start_s,
					       (*list)->spans[i].end_s);
}

static void add_messages(struct gf_kineto *k, struct gf_import_job_rank *r)
{
	const struct gf_kineto_span *s = k->collectives.spans;

	gf_kineto_number(&k->collectives);
	for (size_t i = 0; i < k->collectives.count; i++) {
		const struct gf_import_job_message m = {
			.group = s[i].group,
			.ranks = s[i].ranks ? s[i].ranks : k->ranks,
			.sequence = s[i].sequence,
			.kind = s[i].collective,
			.size_bytes = s[i].elems,
			.ready_s = isnan(s[i].launch_s)
					   ? s[i].start_s
					   : fmin(end_s(k, s[i].host, s[i].launch_s), s[i].start_s),
			.start_s = s[i].start_s,
			.end_s = s[i].end_s,
		};

		gf_import_job_add_message(r, &m);
	}
}

/* What the rank did. */
static int read_job(const struct gf_import *in, struct gf_import_job *job, struct gf_error *err)
{
	GF_RELEASED(gf_kineto_release) struct gf_kineto k = {0};
	GF_FREED struct gf_kineto_step *steps = NULL;
	struct gf_import_job_rank *r;
	size_t count, outside, i;
	int rc = gf_kineto_read(in->text, in->size, in->file, &k, err);

	if (rc < 0)
		return rc;
	r = gf_import_job_new_rank(job, k.rank >= 0 ? k.rank : in->rank, in->file, err);
	if (!r)
		return -EINVAL;
	steps = gf_kineto_steps(&k, &count, &outside);
	if (count)
		add_passes(&k, steps, count, r);
	else
		add_marks(&k, r);
	/* one ends where the next begins */
	for (i = 0; i + 1 < r->nsteps; i++)
		r->steps[i].end_s = fmax(r->steps[i].start_s, r->steps[i + 1].start_s);
	add_compute(&k, r);
	add_messages(&k, r);
	job->timed = true;
	return 0;
}

/* MANUAL
 * a trace of PyTorch's profiler (torch.profiler, export_chrome_trace), of one rank; tried with
 * PyTorch 2.15 on processors, and with public traces of GPUs under CUDA and ROCm.
 * The array of events alone, without an object around it, is read, too.
 * .Pp
 * Times are those that events on the device's stream would give, by medians over the steps in the
 * trace.
 * A gradient is ready when AccumulateGrad has added it; on a GPU, when what its thread launched
 * last has ended, too.
 * Communication counts as no compute: NCCL's and RCCL's kernels and their streams, and on the
 * host the calls of c10d.
 * .Pp
 * A step is what
 * .Dq ProfilerStep
 * encloses (profiler.step()), or else ends with an optimizer.step(), or else has one pass of
 * backward.
 * In a step of several passes of backward (micro-batches) gradients count in the last, and the
 * others are part of forward.
 * Steps that hold other gradients than most, because they are cut off, are left out, with a note.
 * .Pp
 * Sizes and types need record_shapes=True, or else sizes need
 * .Va params
 * and the type is f32; names need
 * .Va params .
 * Strings and numbers that JSON does not allow, as PyTorch has written some, are mended where
 * their end is clear, with a note.
 * .Pp
 * A folder with a trace of each rank of a job gives the step of the slowest rank, and of each
 * gradient the latest time; a line says how far ranks differ.
 * All-reduces of two sizes or more, the largest at least twice the smallest, that two ranks or
 * more have recorded make the network half, too, as those of NCCL Inspector do: NCCL's kernels,
 * or gloo's all-reduces (record_shapes=True) of a job with one group.
 * Ranks are matched by sequence, so that their clocks do not matter.
 * All-reduces that ran beside others of the same rank are left out.
 * .Pp
 * A trace that holds a GPU's kernels or their launches, but not both, is refused, since its times
 * would be the host's. */
const struct gf_importer gf_importer_kineto = {
	.name = "kineto",
	.description = "a trace of PyTorch's profiler",
	.place = 100,
	.ranks = true,
	.recognise = recognise,
	.read = read_kineto,
	.job = read_job,
};
