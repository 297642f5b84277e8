/* SPDX-License-Identifier: BSD-3-Clause */
#include "trainer/update.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/heap.h"

/* Whether it keeps an optimiser's velocity, or moves some elements of it, and serves no optimiser
 * without one. */
static bool wants_velocity(const struct gf_selection *s)
{
	return (gf_selection_has(s, GF_SELECT_PIECES) || gf_selection_has(s, GF_SELECT_MOMENTUM)) &&
	       !gf_selection_has(s, GF_SELECT_BARE);
}

static int check_selection(const struct gf_update *u, struct gf_error *err)
{
	const struct gf_selection *s = &u->plan->selection;

	if (u->optimizer.ops->velocity || !wants_velocity(s))
		return 0;
	return gf_error_set(err, -EINVAL,
			    "optimizer \"%s\": selection \"%s\" corrects momentum, and wants an "
			    "optimizer that has it",
			    u->optimizer.ops->name, gf_selection_name(s));
}

int gf_update_open(struct gf_update *u, const struct gf_optim_config *config, struct gf_error *err)
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
	rc = rc ? rc : check_selection(u, err);
	u->optimizer.watch = u->watch;
	return rc;
}

int gf_update_on(struct gf_update *u, const struct gf_place *place, struct gf_error *err)
{
	u->device_params = place->params;
	u->device = (struct gf_train_update){
		.gpu = place->gpu, .stream = place->stream, .host = &u->optimizer};
	return gf_train_update_open(&u->device, err);
}

int gf_update_fetch(struct gf_update *u, struct gf_error *err)
{
	const struct gf_train_update *d = &u->device;
	int rc;

	if (!d->gpu)
		return 0;
	rc = d->gpu->ops->copy(d->gpu, d->stream, u->params, u->device_params,
			       u->optimizer.count_elems * sizeof(float), GF_GPU_TO_HOST, err);
	return rc ? rc : gf_train_update_fetch(&u->device, err);
}

int gf_update_send(struct gf_update *u, struct gf_error *err)
{
	return u->device.gpu ? gf_train_update_send(&u->device, err) : 0;
}

void gf_update_close(struct gf_update *u)
{
	gf_train_update_close(&u->device);
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
				     gf_xasprintf("optim.%s.%s", model->tensors[i].name,
						  o->ops->slots[k]),
				     &u->shapes[i], o->slot[k] + u->offsets[i]);
	if (o->ops->counts)
		gf_state_add_words(s, GF_STATE_SHARED, "optim.steps", "U64", &o->steps, 1);
}

void gf_update_begin(struct gf_update *u)
{
	gf_optimizer_begin(&u->optimizer);
}

void gf_update_some(struct gf_update *u, double lr, size_t first, size_t count, const float *grad,
		    float scale)
{
	const struct gf_optim_part all = {
		.lr = lr, .scale = scale, .grad = grad, .weight = u->params};

	gf_optimizer_step_some(&u->optimizer, &all, first, count);
}

void gf_update_sums(struct gf_update *u, double lr, const struct gf_select_sums *sums, bool pieces,
		    const uint32_t *skip)
{
	const struct gf_optim_piece *p = sums->pieces;

	if (u->device.gpu && pieces)
		gf_train_update_pieces(&u->device, lr, sums->share, skip, p, sums->npieces,
				       u->device_params);
	else if (u->device.gpu)
		gf_train_update_step(&u->device, lr, sums->share, skip, p->grad, u->device_params);
	else if (pieces)
		gf_optimizer_step_pieces(&u->optimizer, lr, sums->share, p, sums->npieces,
					 u->params);
	else
		gf_optimizer_step(&u->optimizer, lr, sums->share, p->grad, u->params);
}
