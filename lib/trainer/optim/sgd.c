/* SPDX-License-Identifier: BSD-3-Clause */
#include "trainer/optim/sgd.h"

#include "gf_kernels.h"
#include "trainer/optim/optimizer.h"

const struct gf_sgd gf_sgd_between_passes = {.lr = 1e-6, .momentum = 0.9};

struct gf_sgd gf_sgd_folded(const struct gf_sgd *o)
{
	struct gf_sgd folded = *o;

	folded.lr = 1;
	folded.weight_decay = o->lr * o->weight_decay;
	return folded;
}

void gf_sgd_update(const struct gf_sgd *o, float scale, const float *grad, float *weight,
		   float *velocity, size_t count_elems)
{
	const struct gf_sgd_step step = {
		.lr = (float)o->lr,
		.momentum = (float)o->momentum,
		.weight_decay = (float)o->weight_decay,
		.scale = scale,
		.nesterov = o->nesterov,
	};

	gf_kernels()->sgd_f32(&step, grad, weight, velocity, count_elems);
}

static void step(const struct gf_optim_config *c, const struct gf_optim_part *p, bool nesterov)
{
	const struct gf_sgd o = {
		.lr = p->lr,
		.momentum = c->momentum,
		.weight_decay = p->excluded ? 0 : c->weight_decay,
		.nesterov = nesterov,
	};

	gf_sgd_update(&o, p->scale, p->grad, p->weight, p->slot[0], p->count_elems);
}

static void step_plain(const struct gf_optim_config *c, const struct gf_optim_part *p)
{
	step(c, p, false);
}

static void step_nesterov(const struct gf_optim_config *c, const struct gf_optim_part *p)
{
	step(c, p, true);
}

/* MANUAL
 * u = m u + (g + d w), w = w - r u. */
const struct gf_optimizer_ops gf_optimizer_sgd = {
	.name = "sgd",
	.description = "SGD with momentum and weight decay",
	.place = 10,
	.default_exclude = "none",
	.settings = GF_OPTIM_MOMENTUM,
	.kernel = GF_OPTIM_SGD,
	.defaults = GF_OPTIM_NO_DEFAULTS,
	.elementwise = true,
	.velocity = true,
	.slots = {"momentum"},
	.step = step_plain,
};

/* MANUAL
 * The same with g + d w + m u in place of u. */
const struct gf_optimizer_ops gf_optimizer_nesterov = {
	.name = "nesterov",
	.description = "SGD with Nesterov's momentum and weight decay",
	.place = 20,
	.default_exclude = "none",
	.settings = GF_OPTIM_MOMENTUM,
	.kernel = GF_OPTIM_SGD,
	.defaults = GF_OPTIM_NO_DEFAULTS,
	.elementwise = true,
	.velocity = true,
	.nesterov = true,
	.slots = {"momentum"},
	.step = step_nesterov,
};
