/* SPDX-License-Identifier: BSD-3-Clause */
#include "train/update.h"

#include <errno.h>
#include <stdlib.h>

#include "base/heap.h"

static size_t count_elems(const struct gf_update *u)
{
	return u->offsets[u->plan->model->ntensors];
}

int gf_update_open(struct gf_update *u, struct gf_error *err)
{
	u->velocity = NULL;
	if (!u->params)
		return 0;
	u->velocity = calloc(count_elems(u) + 1, sizeof(float));
	if (!u->velocity)
		return gf_error_set(err, -ENOMEM,
				    "no memory for the momentum of %zu "
				    "parameters",
				    count_elems(u));
	return 0;
}

void gf_update_close(struct gf_update *u)
{
	free(u->velocity);
	u->velocity = NULL;
}

void gf_update_state(struct gf_update *u, struct gf_state *s)
{
	const struct gf_model_profile *model = u->plan->model;
	size_t i;

	for (i = 0; i < model->ntensors; i++)
		gf_state_add(s, GF_STATE_SHARED,
			     gf_xasprintf("optim.%s.momentum",
					  model->tensors[i].name),
			     &u->shapes[i], u->velocity + u->offsets[i]);
}

void gf_update_all(struct gf_update *u, const struct gf_sgd *sgd,
		   const float *grad, float scale)
{
	gf_sgd_update(sgd, scale, grad, u->params, u->velocity, count_elems(u));
}

void gf_update_part(struct gf_update *u, const struct gf_sgd *sgd, size_t first,
		    size_t count, const float *grad, float scale)
{
	struct gf_sgd folded = *sgd;

	/* the rate goes where u is made: lr*scale*grad + lr*d*w */
	folded.lr = 1;
	folded.weight_decay = sgd->lr * sgd->weight_decay;
	gf_sgd_update(&folded, (float)sgd->lr * scale, grad, u->params + first,
		      u->velocity + first, count);
}
