/* SPDX-License-Identifier: BSD-3-Clause */
#include "nn/gpu_net.h"

#include <stdlib.h>

#include "base/array.h"
#include "base/heap.h"

static size_t round_up(size_t bytes)
{
	return (bytes + 255) & ~(size_t)255;
}

/* Larger first; of equal ones the one that stands first. */
GF_ORDER(by_size, struct gf_gpu_thing *,
	 GF_BY((*y)->size_bytes, (*x)->size_bytes) ?: GF_BY(*x, *y))

GF_ORDER(by_place, struct gf_gpu_thing *, GF_BY((*x)->at, (*y)->at))

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
