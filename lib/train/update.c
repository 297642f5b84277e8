/* SPDX-License-Identifier: BSD-3-Clause */
#include "train/update.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/heap.h"
#include "optim/sgd.h"

/* A tensor's own rate, or a norm of the whole gradient, is not known when only
 * some elements are there. */
static int check_parts(const struct gf_optimizer *o, struct gf_error *err)
{
	if (!o->ops->elementwise)
		return gf_error_set(err, -EINVAL,
				    "optimizer \"%s\" wants whole tensors, the "
				    "plan's selection sends parts of them",
				    o->ops->name);
	if (o->config.clip_norm > 0)
		return gf_error_set(err, -EINVAL,
				    "clip_norm: wants whole gradients, the "
				    "plan's selection sends parts of them");
	return 0;
}

int gf_update_open(struct gf_update *u, const struct gf_optim_config *config,
		   bool in_parts, struct gf_error *err)
{
	const struct gf_model_profile *model = u->plan->model;
	size_t n = model->ntensors, i;
	struct gf_optim_tensor *tensors;
	int rc;

	memset(&u->optimizer, 0, sizeof(u->optimizer));
	if (!u->params)
		return 0;
	tensors = gf_xcalloc(n + 1, sizeof(*tensors));
	for (i = 0; i < n; i++)
		tensors[i] = (struct gf_optim_tensor){
			.name = model->tensors[i].name,
			.rank = u->shapes[i].rank,
			.count_elems = model->tensors[i].count_elems,
		};
	rc = gf_optimizer_init(&u->optimizer, config, tensors, n, err);
	free(tensors);
	u->optimizer.watch = u->watch;
	if (!rc && in_parts)
		rc = check_parts(&u->optimizer, err);
	return rc;
}

void gf_update_close(struct gf_update *u)
{
	gf_optimizer_release(&u->optimizer);
}

void gf_update_state(struct gf_update *u, struct gf_state *s)
{
	const struct gf_model_profile *model = u->plan->model;
	struct gf_optimizer *o = &u->optimizer;
	size_t k, i;

	for (k = 0; o->ops->slots[k]; k++)
		for (i = 0; i < model->ntensors; i++)
			gf_state_add(s, GF_STATE_SHARED,
				     gf_xasprintf("optim.%s.%s",
						  model->tensors[i].name,
						  o->ops->slots[k]),
				     &u->shapes[i], o->slot[k] + u->offsets[i]);
}

void gf_update_all(struct gf_update *u, double lr, const float *grad,
		   float scale)
{
	gf_optimizer_step(&u->optimizer, lr, scale, grad, u->params);
}

void gf_update_part(struct gf_update *u, double lr, size_t first, size_t count,
		    const float *grad, float scale)
{
	const struct gf_optim_config *c = &u->optimizer.config;
	size_t i, from, end = first + count;

	for (i = 0; i < u->optimizer.nranges && first < end; i++) {
		const struct gf_optim_range *r = &u->optimizer.ranges[i];
		size_t last = r->first + r->count_elems;
		/* the rate goes where u is made: lr*scale*grad + lr*d*w */
		const struct gf_sgd folded = {
			.lr = 1,
			.momentum = c->momentum,
			.weight_decay = r->excluded ? 0 : lr * c->weight_decay,
			.nesterov = u->optimizer.ops->nesterov,
		};

		if (last <= first)
			continue;
		from = first;
		first = last < end ? last : end;
		gf_sgd_update(&folded, (float)lr * scale,
			      grad + (count - (end - from)), u->params + from,
			      u->optimizer.slot[0] + from, first - from);
		if (u->optimizer.watch.changed)
			u->optimizer.watch.changed(u->optimizer.watch.ctx, from,
						   first - from);
	}
}
