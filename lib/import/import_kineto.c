/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A trace of PyTorch's profiler: a gradient is ready when AccumulateGrad has
 * added it, on a GPU when the last kernel launched before that has ended. The
 * trace names no parameters; --params lists them in registration order, and
 * the order of the gradients with their shapes tells which is which. Medians
 * over the steps of the trace that hold all gradients.
 */
#include "import/importers.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/heap.h"
#include "import/kineto.h"
#include "cost/stat.h"

static int recognise(const char *text, size_t size)
{
	(void)size;
	return strstr(text, "\"traceEvents\"") != NULL;
}

/* One pass of backward: gradients [first, first + count) of the trace. */
struct pass {
	size_t first, count;
	double begin_s, end_s, forward_s, update_s; /* forward, update: NAN */
};

static size_t first_at(const struct gf_kineto_list *list, double at_s)
{
	size_t low = 0, high = list->count;

	while (low < high) {
		size_t middle = (low + high) / 2;

		if (list->spans[middle].start_s < at_s)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

/* 0 if the window [from, to) holds no gradients. */
static int find_pass(const struct gf_kineto *k, double from_s, double to_s,
		     struct pass *p)
{
	size_t node = first_at(&k->backward, from_s);
	size_t update = first_at(&k->updates, from_s);

	p->first = first_at(&k->gradients, from_s);
	p->count = first_at(&k->gradients, to_s) - p->first;
	if (p->count == 0)
		return 0;
	p->begin_s = k->backward.spans[node].start_s;
	p->end_s = p->begin_s;
	for (;
	     node < k->backward.count && k->backward.spans[node].start_s < to_s;
	     node++)
		p->end_s = fmax(p->end_s, k->backward.spans[node].end_s);
	p->forward_s = isfinite(from_s) ? p->begin_s - from_s : NAN;
	p->update_s = NAN;
	if (update < k->updates.count &&
	    k->updates.spans[update].start_s < to_s)
		p->update_s = k->updates.spans[update].end_s -
			      k->updates.spans[update].start_s;
	return 1;
}

/* The passes that have as many gradients as most of them; count may be 0. */
static struct pass *find_passes(const struct gf_kineto *k, size_t *count)
{
	size_t windows = k->steps.count ? k->steps.count : 1, i, most = 0;
	struct pass *passes = gf_xcalloc(windows, sizeof(*passes));

	*count = 0;
	for (i = 0; i < windows; i++) {
		double from =
			k->steps.count ? k->steps.spans[i].start_s : -INFINITY;
		double to = k->steps.count ? k->steps.spans[i].end_s : INFINITY;
		struct pass p;

		if (!find_pass(k, from, to, &p))
			continue;
		/* a step cut off at either end has fewer */
		if (p.count > most) {
			most = p.count;
			*count = 0;
		}
		if (p.count == most)
			passes[(*count)++] = p;
	}
	return passes;
}

/* When each kernel launched on a host thread ends, by its correlation. */
static int by_correlation(const void *a, const void *b)
{
	const struct gf_kineto_span *x = a, *y = b;

	return (x->correlation > y->correlation) -
	       (x->correlation < y->correlation);
}

static double kernel_end(const struct gf_kineto_span *kernels, size_t count,
			 double correlation)
{
	struct gf_kineto_span key = {.correlation = correlation};
	const struct gf_kineto_span *found =
		count ? bsearch(&key, kernels, count, sizeof(key),
				by_correlation)
		      : NULL;

	return found ? found->end_s : -INFINITY;
}

/* Ready times of one pass, from its beginning. */
static void ready_times(const struct gf_kineto *k,
			const struct gf_kineto_span *kernels,
			const struct pass *p, double *ready_s)
{
	size_t launch = first_at(&k->launches, p->begin_s), i;
	double latest = p->begin_s;

	for (i = 0; i < p->count; i++) {
		const struct gf_kineto_span *g =
			&k->gradients.spans[p->first + i];

		if (k->kernels.count == 0)
			latest = fmax(latest, g->end_s);
		for (; launch < k->launches.count &&
		       k->launches.spans[launch].start_s <= g->end_s;
		     launch++)
			if (k->launches.spans[launch].thread == g->thread)
				latest = fmax(
					latest,
					kernel_end(kernels, k->kernels.count,
						   k->launches.spans[launch]
							   .correlation));
		ready_s[i] = latest - p->begin_s;
	}
}

/* The median over the passes in which the value is known; NAN if it is known in
 * none. */
static double median_of(const struct pass *passes, size_t count, size_t offset)
{
	double *values = gf_xcalloc(count, sizeof(*values)), median = NAN;
	size_t i, known = 0;

	for (i = 0; i < count; i++) {
		memcpy(&values[known], (const char *)&passes[i] + offset,
		       sizeof(*values));
		known += !isnan(values[known]);
	}
	if (known > 0)
		median = gf_stat_median(values, known);
	free(values);
	return median;
}

static void fill_times(const struct gf_kineto *k, const struct pass *passes,
		       size_t count, struct gf_model_profile *m)
{
	size_t n = passes[0].count, i, t;
	double *ready = gf_xcalloc(count * n, sizeof(*ready));
	double *column = gf_xcalloc(count, sizeof(*column)), latest = 0;
	struct gf_kineto_span *kernels = NULL;

	if (k->kernels.count) {
		kernels = gf_xmemdup(k->kernels.spans,
				     k->kernels.count * sizeof(*kernels));
		qsort(kernels, k->kernels.count, sizeof(*kernels),
		      by_correlation);
	}
	for (i = 0; i < count; i++)
		ready_times(k, kernels, &passes[i], ready + i * n);
	for (t = 0; t < n; t++) {
		for (i = 0; i < count; i++)
			column[i] = ready[i * n + t];
		latest = fmax(latest, gf_stat_median(column, count));
		m->tensors[t].ready_s = latest;
	}
	free(kernels);
	free(column);
	free(ready);
}

static int fill_tensors(const struct gf_import *in, const struct gf_kineto *k,
			const struct pass *p, struct gf_model_profile *m,
			struct gf_error *err)
{
	size_t t;
	int rc = 0;

	m->tensors = gf_xcalloc(p->count, sizeof(*m->tensors));
	m->ntensors = p->count;
	for (t = 0; t < p->count; t++) {
		m->tensors[t].name = gf_xasprintf("gradient%zu", t);
		m->tensors[t].count_elems =
			k->gradients.spans[p->first + t].elems;
		m->tensors[t].dtype = GF_F32;
		m->tensors[t].need_s = NAN;
	}
	if (in->parameters)
		rc = gf_import_names(in, m, err);
	for (t = 0; t < p->count && rc == 0; t++)
		if (m->tensors[t].count_elems == 0)
			rc = gf_error_set(err, -EINVAL,
					  "%s: the trace holds no shapes: want "
					  "record_shapes=True, or --params",
					  in->file);
	return rc;
}

static int read_kineto(const struct gf_import *in, struct gf_profile *out,
		       struct gf_text *remarks, struct gf_error *err)
{
	struct gf_import known = *in;
	struct gf_kineto k;
	struct pass *passes;
	size_t count, i;
	int rc = gf_kineto_read(in->text, in->size, in->file, &k, err);

	if (rc < 0)
		return rc;
	passes = find_passes(&k, &count);
	if (count == 0) {
		rc = gf_error_set(err, -EINVAL,
				  "%s: want events named AccumulateGrad, got "
				  "none",
				  in->file);
		goto out;
	}
	for (i = 0; i < count; i++)
		passes[i].end_s -= passes[i].begin_s;
	if (isnan(known.forward_s))
		known.forward_s = median_of(passes, count,
					    offsetof(struct pass, forward_s));
	if (isnan(known.backward_s))
		known.backward_s =
			median_of(passes, count, offsetof(struct pass, end_s));
	out->model = gf_import_model(&known, k.kernels.count ? "cuda" : "cpu",
				     remarks);
	rc = fill_tensors(in, &k, &passes[0], out->model, err);
	if (rc < 0)
		goto out;
	fill_times(&k, passes, count, out->model);
	out->model->update_s =
		median_of(passes, count, offsetof(struct pass, update_s));
	if (isnan(out->model->update_s))
		out->model->update_s = 0;
	rc = gf_import_finish_model(in, out->model, err);
out:
	free(passes);
	gf_kineto_release(&k);
	return rc;
}

const struct gf_importer gf_importer_kineto = {
	.name = "kineto",
	.description = "a trace of PyTorch's profiler",
	.recognise = recognise,
	.read = read_kineto,
};
