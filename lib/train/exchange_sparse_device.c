/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * topk and gtopk where gradients and the residual lie on a GPU: what is chosen
 * there alone comes to the host, and goes back as sums (rt/sparse_device.h).
 */
#include "train/exchange_sparse.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/heap.h"

/* --- opening and closing -------------------------------------------------- */

static void place_messages(struct gf_exchange *x, size_t *firsts)
{
	const struct gf_plan *plan = x->env.plan;
	struct gf_sparse_exchange *p = x->priv;
	size_t i, t;

	for (i = 0; i < plan->nmessages; i++) {
		const struct gf_message *m = &plan->messages[i];

		firsts[i] = x->pools[0].offsets[m->first];
		for (t = m->first; t <= m->last; t++)
			p->message_of[t] = i;
	}
}

int gf_sparse_exchange_open_device(struct gf_exchange *x, size_t sets_bytes,
				   struct gf_error *err)
{
	const size_t n = x->env.plan->nmessages;
	struct gf_sparse_exchange *p = x->priv;
	size_t *firsts = gf_xcalloc(n + 1, sizeof(*firsts));
	struct gf_sparse_device_slot *slots =
		gf_xcalloc(x->env.depth, sizeof(*slots));
	size_t i;
	int rc;

	p->missing = gf_xcalloc(n + 1, sizeof(*p->missing));
	p->message_of =
		gf_xcalloc(x->pools[0].ntensors + 1, sizeof(*p->message_of));
	place_messages(x, firsts);
	for (i = 0; i < x->env.depth; i++)
		slots[i] = (struct gf_sparse_device_slot){p->slots[i].messages,
							  p->slots[i].sets};
	rc = gf_sparse_device_new(
		&(struct gf_sparse_device_config){
			.gpu = x->env.gpu,
			.compute = x->env.stream,
			.grads = x->env.device_grads,
			.count_elems = x->pools[0].count_elems,
			.slots = slots,
			.depth = x->env.depth,
			.firsts = firsts,
			.nmessages = n,
			.sets_bytes = sets_bytes,
			.density = gf_sparse_exchange_density(x),
			.rank = x->env.comm->rank,
		},
		&p->device, err);
	free(slots);
	free(firsts);
	return rc;
}

void gf_sparse_exchange_close_device(struct gf_sparse_exchange *p)
{
	gf_sparse_device_free(p->device);
	free(p->message_of);
	free(p->missing);
}

/* --- a step --------------------------------------------------------------- */

void gf_sparse_exchange_begin_device(struct gf_exchange *x)
{
	const struct gf_plan *plan = x->env.plan;
	const struct gf_sparse_exchange *p = x->priv;
	size_t i;

	for (i = 0; i < plan->nmessages; i++)
		p->missing[i] =
			plan->messages[i].last - plan->messages[i].first + 1;
}

/* A message is selected behind the last of its tensors. */
int gf_sparse_exchange_take(struct gf_exchange *x, struct gf_gpu_stream *s,
			    size_t tensor, struct gf_error *err)
{
	struct gf_sparse_exchange *p = x->priv;
	size_t i = p->message_of[tensor];

	assert(p->missing[i]);
	if (--p->missing[i])
		return 0;
	return gf_sparse_device_take(p->device, x->slot, i, s, err);
}

int gf_sparse_exchange_commit(struct gf_exchange *x, struct gf_gpu_stream *s,
			      size_t slot, struct gf_error *err)
{
	struct gf_sparse_exchange *p = x->priv;

	(void)slot; /* the one taken last, whatever its number */
	return gf_sparse_device_commit(p->device, s, err);
}

const float *gf_sparse_exchange_sums(struct gf_exchange *x, size_t slot)
{
	struct gf_sparse_exchange *p = x->priv;
	const struct gf_pool *pool = &x->pools[slot];

	gf_exchange_commit(x, slot);
	if (x->rc)
		return x->env.device_grads;
	if (p->slots[slot].restored)
		x->rc = x->env.gpu->ops->copy(x->env.gpu, x->env.stream,
					      x->env.device_grads, pool->data,
					      pool->count_elems * sizeof(float),
					      GF_GPU_TO_DEVICE, &x->reason);
	else
		x->rc = gf_sparse_device_apply(p->device, slot, &x->reason);
	return x->env.device_grads;
}

/* --- checkpoints ---------------------------------------------------------- */

void gf_sparse_exchange_keep(struct gf_exchange *x, size_t slot, size_t age,
			     float *values)
{
	const struct gf_sparse_exchange *p = x->priv;
	const struct gf_sparse_slot *s = &p->slots[slot];
	const struct gf_pool *pool = &x->pools[slot];
	size_t i;

	(void)age;
	if (!p->device || s->restored) {
		memcpy(values, pool->data, pool->count_elems * sizeof(*values));
		return;
	}
	for (i = 0; i < x->env.plan->nmessages; i++)
		gf_sparse_expand(&s->messages[i],
				 values + (s->messages[i].data - pool->data));
}

void gf_sparse_exchange_restore(struct gf_exchange *x, size_t slot, size_t age)
{
	struct gf_sparse_exchange *p = x->priv;

	(void)age;
	p->slots[slot].restored = true;
}

int gf_sparse_exchange_fetch(struct gf_exchange *x, struct gf_error *err)
{
	struct gf_sparse_exchange *p = x->priv;

	return gf_sparse_device_fetch(p->device, p->residual, err);
}

int gf_sparse_exchange_send(struct gf_exchange *x, struct gf_error *err)
{
	struct gf_sparse_exchange *p = x->priv;

	return gf_sparse_device_send(p->device, p->residual, err);
}
