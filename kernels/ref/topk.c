/* SPDX-License-Identifier: BSD-3-Clause */
#include "sets.h"
#include "topk.h"

static size_t collect(const struct gf_topk *t, uint32_t bound)
{
	size_t n = 0;

	for (size_t i = 0; i < t->count; i++) {
		if (t->add)
			t->values[i] += t->add[i];
		t->scratch[n] = (uint32_t)i;
		n += magnitude(t->values[i]) >= bound;
	}
	return n;
}

static void topk_f32(const struct gf_topk *t)
{
	topk(t, collect);
}

void gf_kernels_fill_topk_ref(struct gf_kernels *k)
{
	k->topk_f32 = topk_f32;
}
