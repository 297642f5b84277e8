/* SPDX-License-Identifier: BSD-3-Clause */
#include "import/kineto.h"

#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "json/json.h"

static const char node[] = "autograd::engine::evaluate_function: ";
static const char gradient[] =
	"autograd::engine::evaluate_function: torch::autograd::AccumulateGrad";

static int begins(const char *text, const char *with)
{
	return strncmp(text, with, strlen(with)) == 0;
}

static void add(struct gf_kineto_list *list, const struct gf_kineto_span *span)
{
	*gf_array_push(&list->spans, &list->count, &list->capacity) = *span;
}

static void sort_in(struct gf_kineto *k, const char *category, const char *name,
		    const struct gf_kineto_span *span)
{
	if (strcmp(category, "kernel") == 0)
		add(&k->kernels, span);
	else if (begins(category, "cuda_") && strstr(name, "Launch"))
		add(&k->launches, span);
	else if (strcmp(category, "user_annotation") == 0 &&
		 begins(name, "ProfilerStep"))
		add(&k->steps, span);
	else if (begins(name, "Optimizer.step"))
		add(&k->updates, span);
	if (!begins(name, node))
		return;
	add(&k->backward, span);
	if (strcmp(name, gradient) == 0)
		add(&k->gradients, span);
}

/* "Input Dims": [[64, 3, 7, 7], ...]: the first shape's product, 0 if there is
 * none. Scalars and undefined tensors are empty lists. */
static size_t first_shape(struct gf_json_at *args)
{
	struct gf_json_at dims, shape;
	size_t count, rank, i, dim, elems = 1;

	if (!gf_json_has(args, "Input Dims") ||
	    gf_json_array(args, "Input Dims", &dims, &count, NULL) < 0 ||
	    count == 0 || gf_json_item_array(&dims, 0, &shape, &rank, NULL) < 0)
		return 0;
	for (i = 0; i < rank; i++) {
		if (gf_json_item_size(&shape, i, 0, SIZE_MAX >> 8, &dim, NULL) <
			    0 ||
		    __builtin_mul_overflow(elems, dim, &elems))
			return 0;
	}
	return elems;
}

static void read_args(struct gf_json_at *at, struct gf_kineto_span *span)
{
	struct gf_json_at args = {0};

	span->correlation = NAN;
	if (!gf_json_has(at, "args") ||
	    gf_json_object(at, "args", &args, NULL) < 0)
		return;
	if (gf_json_has(&args, "correlation"))
		gf_json_real(&args, "correlation", -1e18, 1e18,
			     &span->correlation, NULL);
	span->elems = first_shape(&args);
	gf_json_leave(&args);
}

static int is_slice(struct gf_json_at *at)
{
	char *phase = NULL;
	int slice = gf_json_has(at, "ph") && gf_json_has(at, "cat") &&
		    gf_json_has(at, "dur") &&
		    gf_json_string(at, "ph", &phase, NULL) == 0 &&
		    strcmp(phase, "X") == 0;

	free(phase);
	return slice;
}

static int read_slice(struct gf_json_at *at, struct gf_kineto *k,
		      struct gf_error *err)
{
	struct gf_kineto_span span = {0};
	char *name = NULL, *category = NULL;
	double start, duration;
	int rc = gf_json_string(at, "name", &name, err);

	if (rc == 0)
		rc = gf_json_string(at, "cat", &category, err);
	if (rc == 0)
		rc = gf_json_real(at, "ts", -1e18, 1e18, &start, err);
	if (rc == 0)
		rc = gf_json_real(at, "dur", 0, 1e18, &duration, err);
	if (rc == 0) {
		/* thread ids of annotations may be words: then they do not
		 * matter */
		gf_json_real(at, "tid", -1e18, 1e18, &span.thread, NULL);
		span.start_s = start * 1e-6;
		span.end_s = (start + duration) * 1e-6;
		read_args(at, &span);
		sort_in(k, category, name, &span);
	}
	free(name);
	free(category);
	return rc;
}

static int by_start(const void *a, const void *b)
{
	const struct gf_kineto_span *x = a, *y = b;

	return (x->start_s > y->start_s) - (x->start_s < y->start_s);
}

static void sort_all(struct gf_kineto *k)
{
	struct gf_kineto_list *lists[] = {&k->steps,     &k->backward,
					  &k->gradients, &k->updates,
					  &k->launches,  &k->kernels};
	size_t i;

	for (i = 0; i < GF_ARRAY_LENGTH(lists); i++)
		if (lists[i]->count > 1)
			qsort(lists[i]->spans, lists[i]->count,
			      sizeof(*lists[i]->spans), by_start);
}

int gf_kineto_read(const char *text, size_t size, const char *file,
		   struct gf_kineto *trace, struct gf_error *err)
{
	struct gf_json *root = NULL;
	struct gf_json_at at = {0}, events;
	size_t count = 0, i;
	int rc = gf_json_parse(text, size, file, &root, err);

	memset(trace, 0, sizeof(*trace));
	if (rc == 0)
		rc = gf_json_root(root, file, &at, err);
	if (rc == 0)
		rc = gf_json_array(&at, "traceEvents", &events, &count, err);
	for (i = 0; i < count && rc == 0; i++) {
		struct gf_json_at event = {0};

		rc = gf_json_item_object(&events, i, &event, err);
		if (rc == 0 && is_slice(&event))
			rc = read_slice(&event, trace, err);
		gf_json_leave(&event);
	}
	gf_json_leave(&at);
	gf_json_free(root);
	if (rc < 0)
		gf_kineto_release(trace);
	else
		sort_all(trace);
	return rc;
}

void gf_kineto_release(struct gf_kineto *k)
{
	free(k->steps.spans);
	free(k->backward.spans);
	free(k->gradients.spans);
	free(k->updates.spans);
	free(k->launches.spans);
	free(k->kernels.spans);
	memset(k, 0, sizeof(*k));
}
