/* SPDX-License-Identifier: BSD-3-Clause */
#include "nn/gpu_net.h"

#include <stdlib.h>

#include "base/heap.h"

static size_t round_up(size_t bytes)
{
	return (bytes + 255) & ~(size_t)255;
}

/* Larger first; of equal ones the one that stands first. */
static int by_size(const void *a, const void *b)
{
	const struct gf_gpu_thing *x = *(struct gf_gpu_thing *const *)a;
	const struct gf_gpu_thing *y = *(struct gf_gpu_thing *const *)b;

	if (x->size_bytes != y->size_bytes)
		return x->size_bytes < y->size_bytes ? 1 : -1;
	return x < y ? -1 : x > y;
}

static int by_place(const void *a, const void *b)
{
	const struct gf_gpu_thing *x = *(struct gf_gpu_thing *const *)a;
	const struct gf_gpu_thing *y = *(struct gf_gpu_thing *const *)b;

	return x->at < y->at ? -1 : x->at > y->at;
}

static bool meet(const struct gf_gpu_thing *a, const struct gf_gpu_thing *b)
{
	return a->first <= b->last && b->first <= a->last;
}

/* The lowest gap between those that it meets; `met` is room for them. */
static void place(struct gf_gpu_thing *t, struct gf_gpu_thing **placed,
		  size_t nplaced, struct gf_gpu_thing **met)
{
	const size_t size = round_up(t->size_bytes);
	size_t n = 0, at = 0;

	for (size_t i = 0; i < nplaced; i++)
		if (meet(t, placed[i]))
			met[n++] = placed[i];
	qsort(met, n, sizeof(*met), by_place);
	for (size_t i = 0; i < n && met[i]->at < at + size; i++) {
		const size_t end = met[i]->at + round_up(met[i]->size_bytes);

		at = end > at ? end : at;
	}
	t->at = at;
}

size_t gf_gpu_plan(struct gf_gpu_thing *things, size_t count)
{
	struct gf_gpu_thing **order = gf_xcalloc(count + 1, sizeof(*order));
	struct gf_gpu_thing **met = gf_xcalloc(count + 1, sizeof(*met));
	size_t total = 0, n = 0;

	for (size_t i = 0; i < count; i++)
		if (things[i].size_bytes)
			order[n++] = &things[i];
	qsort(order, n, sizeof(*order), by_size);
	for (size_t i = 0; i < n; i++) {
		const size_t size = round_up(order[i]->size_bytes);

		place(order[i], order, i, met);
		if (order[i]->at + size > total)
			total = order[i]->at + size;
	}
	free(order);
	free(met);
	return total;
}
