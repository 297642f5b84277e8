/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * AdamW (Loshchilov and Hutter 2019, "Decoupled Weight Decay Regularization"), as PyTorch has it.
 * With g = scale*grad at step t, from 1:
 *	m = beta1*m + (1 - beta1)*g;  v = beta2*v + (1 - beta2)*g*g
 *	w = w - lr*weight_decay*w
 *	      - lr * m/(1 - beta1^t) / (sqrt(v/(1 - beta2^t)) + epsilon)
 * t counts the steps that were applied, not those that were skipped. The same bits on every machine
 * and on GPUs.
 */
#include "adamw.h"

#include "trainer/optim/optimizer.h"

static void step(const struct gf_optim_config *c, const struct gf_optim_part *p)
{
	const struct gf_adamw_rule rule = {
		.lr = p->lr,
		.beta1 = c->beta1,
		.beta2 = c->beta2,
		.weight_decay = p->excluded ? 0 : c->weight_decay,
		.epsilon = c->epsilon,
	};
	const struct gf_adamw_step now = adamw_step(&rule, p->scale, p->steps);

	gf_kernels()->adamw_f32(&now, p->grad, p->weight, p->slot[0], p->slot[1], p->count_elems);
}

/* MANUAL
 * As PyTorch's AdamW, with its defaults
 * .Pq Loshchilov and Hutter 2019 .
 * Step t, counted from 1, has m = a m + (1 - a) g and v = b v + (1 - b) g g, where a is beta1 and
 * b is beta2; m' = m / (1 - a^t) and v' = v / (1 - b^t); and w = w - r d w - r m' / (sqrt(v') +
 * epsilon).
 * A step that is skipped does not count. */
const struct gf_optimizer_ops gf_optimizer_adamw = {
	.name = "adamw",
	.description =
		"Adam with decoupled weight decay and PyTorch's defaults (Loshchilov, Hutter 2019)",
	.place = 50,
	.default_exclude = "none",
	.settings = GF_OPTIM_BETAS | GF_OPTIM_EPSILON,
	.kernel = GF_OPTIM_ADAMW,
	.defaults =
		{.rate = 1e-3, .weight_decay = .01, .epsilon = 1e-8, .beta1 = .9, .beta2 = .999},
	.elementwise = true,
	.counts = true,
	.slots = {"exp_avg", "exp_avg_sq"},
	.step = step,
};
