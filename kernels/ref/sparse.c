/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdbool.h>

#include "sets.h"

static void take_f32(float *to, float *from, const uint32_t *index, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		to[i] = from[index[i]];
		from[index[i]] = 0;
	}
}

static void scatter_add_f32(float *to, const float *from, const uint32_t *index, size_t n)
{
	for (size_t i = 0; i < n; i++)
		to[index[i]] += from[i];
}

/* Either list may be ahead, unpredictably: no branch depends on it. */
static void merge_f32(const struct gf_sparse *a, const struct gf_sparse *b, struct gf_sparse *out)
{
	size_t i = 0, j = 0, n = 0;

	while (i < a->count && j < b->count) {
		uint32_t left = a->index[i], right = b->index[j];
		size_t takes_a = left <= right, takes_b = right <= left;
		float x = takes_a ? a->value[i] : 0;
		float y = takes_b ? b->value[j] : 0;

		out->index[n] = takes_a ? left : right;
		out->value[n++] = x + y;
		i += takes_a;
		j += takes_b;
	}
	for (; i < a->count; i++, n++) {
		out->index[n] = a->index[i];
		out->value[n] = a->value[i];
	}
	for (; j < b->count; j++, n++) {
		out->index[n] = b->index[j];
		out->value[n] = b->value[j];
	}
	out->count = n;
}

static void move_f32(const struct gf_sparse *from, const uint32_t *at, size_t k,
		     struct gf_sparse *to)
{
	size_t n = 0;

	for (size_t i = 0; i < from->count; i++) {
		bool moves = n < k && at[n] == i;

		if (moves) {
			to->index[n] = from->index[i];
			to->value[n++] = from->value[i];
		}
		if (moves || from->value[i] == 0)
			from->index[i] = GF_NO_INDEX;
	}
	to->count = n;
}

static void leave_out(const struct gf_sparse *list, const struct gf_sparse *in)
{
	size_t k = 0;

	for (size_t i = 0; i < list->count; i++) {
		while (k < in->count && in->index[k] < list->index[i])
			k++;
		if (k < in->count && in->index[k] == list->index[i])
			list->index[i] = GF_NO_INDEX;
	}
}

void gf_kernels_fill_sparse_ref(struct gf_kernels *k)
{
	k->take_f32 = take_f32;
	k->scatter_add_f32 = scatter_add_f32;
	k->merge_f32 = merge_f32;
	k->move_f32 = move_f32;
	k->leave_out = leave_out;
}
