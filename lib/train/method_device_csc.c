/* SPDX-License-Identifier: BSD-3-Clause */
/* Chunks that stay on GPUs (select/csc_nccl.h), in the method of gradients that
 * do: when they are begun, adopted and applied, and what a checkpoint holds. */
#include "train/method_device.h"

#include <stdlib.h>
#include <string.h>

#include "base/heap.h"
#include "doc/select_csc.h"

int gf_method_csc_open(struct gf_method *m, struct gf_error *err)
{
	struct gf_method_device *d = m->priv;
	const struct gf_plan *plan = m->env.plan;
	const size_t depth = gf_method_depth(m);
	struct gf_method_csc *c;
	int rc;

	if (!gf_csc_params(&plan->selection))
		return 0;
	c = d->csc = gf_xcalloc(1, sizeof(*c));
	c->layout = (struct gf_pool){.offsets = d->offsets,
				     .count_elems = d->count_elems,
				     .ntensors = plan->model->ntensors};
	rc = gf_csc_init(&c->csc, plan, &c->layout, m->env.optim->momentum,
			 depth, err);
	if (rc)
		return rc;
	c->csc.means = m->env.scale.used;
	return gf_csc_nccl_new(
		&(struct gf_csc_nccl_config){
			.gpu = m->env.gpu,
			.compute = m->env.stream,
			.grads = m->env.device_grads,
			.stride_elems = m->env.device_stride,
			.depth = depth,
			.nmessages = plan->nmessages,
			.csc = &c->csc,
			.rank = m->env.comm->rank,
		},
		&c->nccl, err);
}

void gf_method_csc_close(struct gf_method *m)
{
	struct gf_method_device *d = m->priv;
	struct gf_method_csc *c = d->csc;

	if (!c)
		return;
	gf_csc_nccl_free(c->nccl);
	gf_csc_release(&c->csc);
	free(c);
}

/* The run that wrote a checkpoint may have kept other numbers of chunks. */
int gf_method_csc_expect(struct gf_method *m, const uint64_t *chosen,
			 struct gf_error *err)
{
	const struct gf_method_device *d = m->priv;
	size_t n;
	const struct gf_work *sizes =
		gf_csc_nccl_sizes(d->csc->nccl, m->env.plan, chosen, &n);

	return gf_engine_expect(m->engine, sizes, n, err);
}

/* What the host knows by now decides which chunks go. */
void gf_method_csc_begin(struct gf_method *m, size_t slot)
{
	const struct gf_method_device *d = m->priv;
	const struct gf_work *list;
	size_t n;

	gf_csc_nccl_begin(d->csc->nccl, slot, d->csc->number,
			  m->env.scale.used ? d->slots[slot].scale : 0,
			  m->env.plan, &list, &n);
	gf_engine_list(m->engine, list, n);
}

void gf_method_csc_apply(struct gf_method *m, double lr)
{
	struct gf_method_device *d = m->priv;
	struct gf_method_csc *c = d->csc;
	const size_t slot = gf_method_slot(m, m->applied);
	const size_t n =
		gf_csc_pieces(gf_csc_nccl_step(c->nccl, slot),
			      gf_csc_nccl_sums(c->nccl, slot), c->csc.pieces);

	gf_device_update_pieces(
		&d->update, lr,
		m->env.scale.used ? 1 : 1.0f / (float)m->env.plan->ranks,
		gf_device_flag(&d->flags, m->applied), c->csc.pieces, n,
		m->env.device_params);
}

/* --- checkpoints ---------------------------------------------------------- */

void gf_method_csc_state(struct gf_method *m, struct gf_state *s)
{
	const struct gf_method_device *d = m->priv;

	gf_csc_state(&d->csc->csc, s);
}

int gf_method_csc_keep(struct gf_method *m, size_t age, float *values,
		       struct gf_error *err)
{
	const struct gf_method_device *d = m->priv;

	return gf_csc_nccl_keep(d->csc->nccl,
				gf_method_slot(m, m->applied + age), age,
				m->flight_bad[age], values, err);
}

int gf_method_csc_send(struct gf_method *m, struct gf_error *err)
{
	const struct gf_method_device *d = m->priv;
	int rc = gf_csc_nccl_send(d->csc->nccl, err);

	return rc ? rc : gf_method_csc_expect(m, d->csc->csc.important, err);
}

int gf_method_csc_restore(struct gf_method *m, size_t age, struct gf_error *err)
{
	const struct gf_method_device *d = m->priv;
	const struct gf_csc *csc = &d->csc->csc;
	int rc = gf_method_csc_expect(m, csc->flight_next + age * csc->nchunks,
				      err);

	return rc ? rc
		  : gf_csc_nccl_restore(d->csc->nccl, gf_method_slot(m, age),
					age, m->flight + age * d->count_elems,
					err);
}
