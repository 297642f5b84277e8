/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * csc where gradients and the history lie on a GPU: packed chunks and norms
 * alone come to the host, and go back as sums (rt/csc_device.h).
 */
#include "train/exchange_csc.h"

#include <stdlib.h>

#include "base/heap.h"

int gf_csc_exchange_open_device(struct gf_exchange *x, struct gf_error *err)
{
	struct gf_csc_exchange *c = x->priv;
	struct gf_csc_step **steps =
		gf_xcalloc(x->env.depth, sizeof(struct gf_csc_step *));
	size_t i;
	int rc;

	for (i = 0; i < x->env.depth; i++) {
		steps[i] = &c->slots[i].step;
		steps[i]->data = steps[i]->packed;
	}
	rc = gf_csc_device_new(
		&(struct gf_csc_device_config){
			.gpu = x->env.gpu,
			.compute = x->env.stream,
			.grads = x->env.device_grads,
			.csc = &c->csc,
			.steps = steps,
			.depth = x->env.depth,
		},
		&c->device, err);
	free(steps);
	return rc;
}

int gf_csc_exchange_take(struct gf_exchange *x, struct gf_gpu_stream *s,
			 size_t tensor, struct gf_error *err)
{
	struct gf_csc_exchange *c = x->priv;

	return gf_csc_device_take(c->device, tensor, s, err);
}

int gf_csc_exchange_commit(struct gf_exchange *x, struct gf_gpu_stream *s,
			   size_t slot, struct gf_error *err)
{
	struct gf_csc_exchange *c = x->priv;

	(void)slot; /* the one taken last, whatever its number */
	return gf_csc_device_commit(c->device, s, err);
}

const float *gf_csc_exchange_sums(struct gf_exchange *x, size_t slot)
{
	struct gf_csc_exchange *c = x->priv;
	const float *sums = NULL;

	gf_exchange_commit(x, slot);
	if (!x->rc)
		x->rc = gf_csc_device_sums(c->device, slot, &sums, &x->reason);
	return sums;
}

int gf_csc_exchange_fetch(struct gf_exchange *x, struct gf_error *err)
{
	struct gf_csc_exchange *c = x->priv;

	return gf_csc_device_fetch(c->device, err);
}

int gf_csc_exchange_send(struct gf_exchange *x, struct gf_error *err)
{
	struct gf_csc_exchange *c = x->priv;

	return gf_csc_device_send(c->device, err);
}
