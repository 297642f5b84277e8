/* SPDX-License-Identifier: BSD-3-Clause */
#include "imports/kineto.h"

#include <math.h>
#include <stdint.h>
#include <string.h>
#include <strings.h>

#include "base/array.h"
#include "base/heap.h"

static const char node[] = "autograd::engine::evaluate_function: ";
static const char gradient[] = "torch::autograd::AccumulateGrad";

static int begins(const char *text, const char *with)
{
	return strncmp(text, with, strlen(with)) == 0;
}

static bool holds(const struct gf_json_at *args, const char *key)
{
	return args->value && gf_json_has(args, key);
}

void gf_kineto_add(struct gf_kineto_list *list, const struct gf_kineto_span *span)
{
	*gf_array_push(&list->spans, &list->count, &list->capacity) = *span;
}

/* --- an event ------------------------------------------------------------ */

/* What the reader collects before it knows the whole. */
struct reading {
	struct gf_kineto *k;
	double origin; /* the first event's ts; NAN */
	struct gf_kineto_list launches, device;
	struct gf_kineto_list outer;  /* AccumulateGrad's nodes */
	struct gf_kineto_list others; /* operators that record no graph */
};

/* "Input Dims": [[64, 3, 7, 7], ...]: the first shape's product, 0 if there is none. Scalars and
 * undefined tensors are empty lists. */
size_t gf_kineto_first_shape(struct gf_json_at *args)
{
	struct gf_json_at dims, shape;
	size_t count, rank, i, dim, elems = 1;

	if (!holds(args, "Input Dims") ||
	    gf_json_array(args, "Input Dims", &dims, &count, NULL) < 0 || count == 0 ||
	    gf_json_array(gf_json_item(&dims, 0), NULL, &shape, &rank, NULL) < 0)
		return 0;
	for (i = 0; i < rank; i++) {
		if (gf_json_size(gf_json_item(&shape, i), NULL, 0, SIZE_MAX >> 8, &dim, NULL) < 0 ||
		    __builtin_mul_overflow(elems, dim, &elems))
			return 0;
	}
	return elems;
}

/* "Input type": ["c10::BFloat16", ...], in ATen's words; 1 if the type is there, 0 if not, -EINVAL.
 * An undefined tensor has the type "" and no elements. */
static int first_type(struct gf_json_at *args, struct gf_kineto_span *span, struct gf_error *err)
{
	const struct gf_kineto_type *type;
	struct gf_json_at all;
	GF_FREED char *name = NULL;
	size_t count;

	if (!holds(args, "Input type") ||
	    gf_json_array(args, "Input type", &all, &count, NULL) < 0 || count == 0)
		return 0;
	if (gf_json_string(gf_json_item(&all, 0), NULL, &name, NULL) < 0) {
		span->elems = 0;
		return 1;
	}
	type = gf_kineto_type(name);
	if (!type || !type->parts)
		return gf_json_refuse(args, "Input type/0", err,
				      "want float, double, c10::Half or c10::BFloat16, got %s",
				      name);
	span->dtype = type->dtype;
	if (__builtin_mul_overflow(span->elems, type->parts, &span->elems))
		span->elems = 0;
	return 1;
}

static int read_gradient(struct gf_json_at *args, struct gf_kineto_span *span, struct reading *r,
			 struct gf_error *err)
{
	int typed;

	span->elems = gf_kineto_first_shape(args);
	typed = first_type(args, span, err);
	if (typed < 0)
		return typed;
	r->k->typed |= typed;
	if (typed && span->elems == 0)
		r->k->undefined++;
	else
		gf_kineto_add(&r->k->gradients, span);
	return 0;
}

/* Anything that the host does. Of operators, those that record a graph matter, and what backward()
 * begins with. */
static int read_host(struct gf_json_at *args, const char *name, struct gf_kineto_span *span,
		     struct reading *r, struct gf_error *err)
{
	struct gf_kineto *k = r->k;

	if (strcmp(name, gradient) == 0)
		return read_gradient(args, span, r, err);
	if (begins(name, node)) {
		gf_kineto_add(&k->nodes, span);
		span->elems = gf_kineto_first_shape(args);
		if (strcmp(name + sizeof(node) - 1, gradient) == 0)
			gf_kineto_add(&r->outer, span);
	} else if (begins(name, "ProfilerStep")) {
		gf_kineto_add(&k->steps, span);
	} else if (begins(name, "Optimizer.step")) {
		gf_kineto_add(&k->updates, span);
	} else if (begins(name, "gloo:")) {
		gf_kineto_read_gloo(k, args, name, span);
	} else if (begins(name, "c10d::")) {
		span->collective = gf_collective_kind(name + strlen("c10d::"));
		gf_kineto_add(&k->exchanges, span);
	} else if (holds(args, "Sequence number") || strcmp(name, "aten::ones_like") == 0) {
		gf_kineto_add(&k->operators, span);
	} else if (begins(name, "aten::")) {
		gf_kineto_add(&r->others, span);
	}
	return 0;
}

/* Work of a device, by its stream. Copies from and to the host count where kernels run, too. */
static void read_device(struct gf_json_at *at, struct gf_json_at *args, const char *category,
			const char *name, struct reading *r, struct gf_kineto_span *span)
{
	double device = 0;

	gf_json_real(at, "pid", 0, 1e6, &device, NULL);
	span->thread += device * 1e9;
	if (strcasecmp(category, "kernel") == 0) {
		span->computes =
			strstr(name, "nccl") || strstr(name, "rccl") || strstr(name, "msccl") ? -1
											      : 1;
		r->k->kernels += span->computes > 0;
	}
	if (!holds(args, "correlation") ||
	    gf_json_real(args, "correlation", -1e18, 1e18, &span->correlation, NULL) < 0)
		span->correlation = NAN;
	if (span->computes < 0)
		gf_kineto_read_kernel(r->k, args, span);
	if (!isnan(span->correlation))
		gf_kineto_add(&r->device, span);
}

static int sort_in(struct gf_json_at *at, struct gf_json_at *args, const char *category,
		   const char *name, struct reading *r, struct gf_kineto_span *span,
		   struct gf_error *err)
{
	static const char *const host[] = {"cpu_op", "user_annotation", "Operator", ""};
	static const char *const device[] = {"kernel", "gpu_memcpy", "gpu_memset", "Memcpy",
					     "Memset"};

	for (size_t i = 0; i < GF_ARRAY_LENGTH(host); i++)
		if (strcmp(category, host[i]) == 0)
			return read_host(args, name, span, r, err);
	for (size_t i = 0; i < GF_ARRAY_LENGTH(device); i++) {
		if (strcasecmp(category, device[i]) == 0) {
			read_device(at, args, category, name, r, span);
			return 0;
		}
	}
	if ((strcasestr(category, "runtime") || strstr(category, "_driver")) &&
	    holds(args, "correlation") &&
	    gf_json_real(args, "correlation", -1e18, 1e18, &span->correlation, NULL) == 0) {
		r->k->launched += strstr(name, "Launch") != NULL;
		gf_kineto_add(&r->launches, span);
	}
	return 0;
}

static int read_slice(struct gf_json_at *at, struct reading *r, struct gf_error *err)
{
	struct gf_kineto_span span = {.correlation = NAN};
	struct gf_json_at args = {0};
	GF_FREED char *name = gf_json_word(at, "name"), *category = gf_json_word(at, "cat");
	double start = 0, duration = 0;
	int rc = gf_json_real(at, "ts", -1e18, 1e18, &start, err);

	/* PyTorch 1.13 and older have events that end before they begin */
	rc = rc ?: gf_json_real(at, "dur", -1e18, 1e18, &duration, err);
	duration = fmax(duration, 0);
	if (rc == 0) {
		if (gf_json_has(at, "args"))
			gf_json_object(at, "args", &args, NULL);
		/* thread ids of annotations may be words: then they do not matter */
		gf_json_real(at, "tid", -1e18, 1e18, &span.thread, NULL);
		r->origin = isnan(r->origin) ? start : r->origin;
		span.start_s = (start - r->origin) * 1e-6;
		span.end_s = span.start_s + duration * 1e-6;
		rc = sort_in(at, &args, category, name, r, &span, err);
		gf_json_leave(&args);
	}
	return rc;
}

static int read_event(struct gf_json_at *at, struct reading *r, struct gf_error *err)
{
	GF_FREED char *phase = gf_json_word(at, "ph"), *category = gf_json_word(at, "cat");
	int rc = 0;

	if (strcmp(phase, "X") == 0 && gf_json_has(at, "dur"))
		rc = read_slice(at, r, err);
	else if (strcmp(phase, "s") == 0 && begins(category, "cpu_to_"))
		r->k->launched++; /* the legacy profiler's, without kernels */
	return rc;
}

/* --- the whole ----------------------------------------------------------- */

GF_ORDER(by_start, struct gf_kineto_span, GF_BY(x->start_s, y->start_s))
GF_ORDER(by_thread, struct gf_kineto_span,
	 GF_BY(x->thread, y->thread) ?: GF_BY(x->launch_s, y->launch_s))
GF_ORDER(by_correlation, struct gf_kineto_span, GF_BY(x->correlation, y->correlation))

static void sort(struct gf_kineto_list *list, int (*order)(const void *a, const void *b))
{
	if (list->count > 1)
		qsort(list->spans, list->count, sizeof(*list->spans), order);
}

/* Without what backward's nodes enclose, on any thread: recomputed forwards, and what nodes call.
 * Hooks' callbacks may run on other threads than the one that most of the rest is on. */
static void keep_forward(struct gf_kineto_list *operators, const struct gf_kineto_list *nodes)
{
	double covered_s = -INFINITY, thread = 0;
	size_t i, at = 0, kept = 0, outside = 0, votes = 0;

	for (i = 0; i < operators->count; i++) {
		const struct gf_kineto_span op = operators->spans[i];

		for (; at < nodes->count && nodes->spans[at].start_s <= op.start_s; at++)
			covered_s = fmax(covered_s, nodes->spans[at].end_s);
		if (op.start_s < covered_s)
			continue;
		operators->spans[outside++] = op;
		if (votes == 0)
			thread = op.thread;
		votes = op.thread == thread ? votes + 1 : votes - 1;
	}
	for (i = 0; i < outside; i++)
		if (operators->spans[i].thread == thread)
			operators->spans[kept++] = operators->spans[i];
	operators->count = kept;
}

/* Without communication, and without streams that carry more of it than kernels, or copies
 * alone. */
static void keep_compute(struct gf_kineto_list *device)
{
	size_t i, end, kept = 0;

	sort(device, by_thread);
	for (i = 0; i < device->count; i = end) {
		const double stream = device->spans[i].thread;
		long long computes = 0;

		for (end = i; end < device->count && device->spans[end].thread == stream; end++)
			computes += device->spans[end].computes;
		for (; computes > 0 && i < end; i++)
			if (device->spans[i].computes >= 0)
				device->spans[kept++] = device->spans[i];
	}
	device->count = kept;
}

/* One launch of a graph starts many kernels: together they are one. */
static void merge(struct gf_kineto_list *device)
{
	struct gf_kineto_span *d = device->spans;
	size_t i, kept = 0;

	sort(device, by_correlation);
	for (i = 0; i < device->count; i++) {
		if (kept && d[kept - 1].correlation == d[i].correlation) {
			d[kept - 1].start_s = fmin(d[kept - 1].start_s, d[i].start_s);
			d[kept - 1].end_s = fmax(d[kept - 1].end_s, d[i].end_s);
		} else {
			d[kept++] = d[i];
		}
	}
	device->count = kept;
}

/* Work of the device, with its launch on the host. */
static void join(struct gf_kineto *k, const struct gf_kineto_list *launches,
		 const struct gf_kineto_list *device)
{
	for (size_t i = 0; i < launches->count && device->count; i++) {
		const struct gf_kineto_span *launch = &launches->spans[i];
		const struct gf_kineto_span *done = bsearch(launch, device->spans, device->count,
							    sizeof(*launch), by_correlation);
		struct gf_kineto_span work;

		if (!done)
			continue;
		work = *done;
		work.thread = launch->thread;
		work.launch_s = launch->start_s;
		gf_kineto_add(&k->work, &work);
		gf_kineto_add(&k->by_thread, &work);
	}
	sort(&k->by_thread, by_thread);
}

/* Calls that call each other count once. */
static void keep_disjoint(struct gf_kineto_list *list)
{
	struct gf_kineto_span *x = list->spans;

	for (size_t i = 1; i < list->count; i++) {
		x[i].start_s = fmax(x[i].start_s, x[i - 1].end_s);
		x[i].end_s = fmax(x[i].end_s, x[i].start_s);
		x[i].less_s = x[i - 1].less_s + x[i - 1].end_s - x[i - 1].start_s;
	}
}

/* The thread and the time of a collective's launch: its gradients were there by then, or when what
 * had been launched before has ended. */
static void find_launches(struct gf_kineto *k, struct gf_kineto_list *launches)
{
	struct gf_kineto_span *s = k->collectives.spans;

	sort(launches, by_correlation);
	for (size_t i = 0; i < k->collectives.count; i++) {
		const struct gf_kineto_span *launch =
			!launches->count || isnan(s[i].correlation)
				? NULL
				: bsearch(&s[i], launches->spans, launches->count, sizeof(*s),
					  by_correlation);

		s[i].launch_s = launch ? launch->start_s : NAN;
		s[i].host = launch ? launch->thread : NAN;
	}
}

/* Did the host compute in this time? */
static bool computed(const struct gf_kineto *k, double from_s, double to_s)
{
	return gf_kineto_at(&k->nodes, from_s) < gf_kineto_at(&k->nodes, to_s) ||
	       gf_kineto_at(&k->operators, from_s) < gf_kineto_at(&k->operators, to_s);
}

/* Does it begin where one of the last few before it ends? */
static bool is_queued(const struct gf_kineto_span *s, size_t i)
{
	static const double soon_s = 1e-3;
	size_t k = i;

	while (k-- > 0 && i - k <= 64)
		if (s[i].start_s >= s[k].end_s && s[i].start_s < s[k].end_s + soon_s)
			return true;
	return false;
}

/* Gloo runs what was called for in that order, and may begin later. A call that waited for the
 * message before is set to when it would have come without; in a trace without calls, one of a
 * queued message to the last gradient before. */
static void find_calls(struct gf_kineto *k)
{
	struct gf_kineto_span *s = k->collectives.spans, *call, *end;
	double before_s = -INFINITY, called_s = -INFINITY;
	size_t i, made;

	sort(&k->collectives, by_start);
	call = k->exchanges.spans;
	end = call + k->exchanges.count;
	for (i = 0; i < k->collectives.count; i++) {
		while (call < end && call->collective != s[i].collective)
			call++;
		made = gf_kineto_at(&k->gradients, s[i].start_s);
		if (call >= end || call->start_s > s[i].start_s) {
			if (made && is_queued(s, i))
				s[i].launch_s = k->gradients.spans[made - 1].end_s;
			continue;
		}
		s[i].launch_s = call->start_s;
		if (i && called_s < before_s && call->start_s >= before_s &&
		    !computed(k, called_s, before_s))
			s[i].launch_s += s[i - 1].launch_s - before_s;
		called_s = call++->end_s;
		before_s = s[i].end_s;
	}
}

static void finish(struct reading *r)
{
	struct gf_kineto *k = r->k;
	struct gf_kineto_list *const lists[] = {&k->steps,   &k->nodes,     &k->gradients,
						&k->updates, &k->exchanges, &k->operators,
						&k->reduces, &r->launches};

	if (k->gradients.count + k->undefined == 0) {
		k->gradients = r->outer;
		memset(&r->outer, 0, sizeof(r->outer));
	}
	if (k->operators.count == 0) {
		k->operators = r->others;
		memset(&r->others, 0, sizeof(r->others));
	}
	find_launches(k, &r->launches);
	for (size_t i = 0; i < GF_ARRAY_LENGTH(lists); i++)
		sort(lists[i], by_start);
	keep_forward(&k->operators, &k->nodes);
	if (!r->device.count)
		find_calls(k);
	keep_disjoint(&k->exchanges);
	keep_compute(&r->device);
	merge(&r->device);
	join(k, &r->launches, &r->device);
}

static int read_events(const struct gf_json *root, const char *file, struct reading *r,
		       struct gf_error *err)
{
	struct gf_json_at at = {0}, events;
	bool bare = gf_json_root_is_array(root);
	size_t count = 0, i;
	int rc = bare ? gf_json_root_array(root, file, &events, &count, err)
		      : gf_json_root(root, file, &at, err);

	r->k->rank = -1;
	if (rc == 0 && !bare)
		rc = gf_json_array(&at, "traceEvents", &events, &count, err);
	if (rc == 0 && !bare)
		gf_kineto_read_world(r->k, &at);
	for (i = 0; i < count && rc == 0; i++) {
		struct gf_json_at event = {0};

		rc = gf_json_object(gf_json_item(&events, i), NULL, &event, err);
		rc = rc ?: read_event(&event, r, err);
		gf_json_leave(&event);
	}
	gf_json_leave(&at);
	return rc;
}

int gf_kineto_read(const char *text, size_t size, const char *file, struct gf_kineto *trace,
		   struct gf_error *err)
{
	struct gf_json *root = NULL;
	struct reading r = {.k = trace, .origin = NAN};
	int rc;

	memset(trace, 0, sizeof(*trace));
	rc = gf_kineto_parse(text, size, file, &root, &trace->mended, trace->place, err);
	rc = rc ?: read_events(root, file, &r, err);
	gf_json_free(root);
	if (rc == 0)
		finish(&r);
	else
		gf_kineto_release(trace);
	free(r.launches.spans);
	free(r.device.spans);
	free(r.outer.spans);
	free(r.others.spans);
	return rc;
}

void gf_kineto_release(struct gf_kineto *k)
{
	free(k->steps.spans);
	free(k->nodes.spans);
	free(k->gradients.spans);
	free(k->updates.spans);
	free(k->operators.spans);
	free(k->exchanges.spans);
	free(k->reduces.spans);
	free(k->collectives.spans);
	free(k->work.spans);
	free(k->by_thread.spans);
	memset(k, 0, sizeof(*k));
}
