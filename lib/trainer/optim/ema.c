/* SPDX-License-Identifier: BSD-3-Clause */
#include "trainer/optim/ema.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "gf_kernels.h"

int gf_ema_init(struct gf_ema *e, double decay, size_t count_elems)
{
	*e = (struct gf_ema){
		.decay = decay,
		.values = calloc(count_elems + 1, sizeof(*e->values)),
		.count_elems = count_elems,
	};
	return e->values ? 0 : -ENOMEM;
}

void gf_ema_release(struct gf_ema *e)
{
	free(e->values);
	memset(e, 0, sizeof(*e));
}

void gf_ema_note(struct gf_ema *e, const float *weight)
{
	if (e->begun)
		gf_kernels()->axpby_f32((float)(1 - e->decay), weight, (float)e->decay, e->values,
					e->count_elems);
	else
		memcpy(e->values, weight, e->count_elems * sizeof(*weight));
	e->begun = true;
}

void gf_ema_swap(struct gf_ema *e, float *weight)
{
	for (size_t i = 0; i < e->count_elems; i++) {
		const float kept = weight[i];

		weight[i] = e->values[i];
		e->values[i] = kept;
	}
}
