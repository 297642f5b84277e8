/* SPDX-License-Identifier: BSD-3-Clause */
#include "trainer/optim/sgd.h"

#include <math.h>

#include "gf_kernels.h"
#include "trainer/optim/optimizer.h"

static double trust_of(const struct gf_lars *o, double weight_norm, double grad_norm)
{
	if (weight_norm == 0 || grad_norm == 0)
		return 1;
	return o->eta * weight_norm / (grad_norm + o->sgd.weight_decay * weight_norm + o->epsilon);
}

double gf_lars_trust(const struct gf_lars *o, float scale, const float *grad, const float *weight,
		     size_t count_elems)
{
	const struct gf_kernels *k = gf_kernels();
	double w = sqrt(k->sum_squares_f32(weight, count_elems));
	double g = fabs((double)scale) * sqrt(k->sum_squares_f32(grad, count_elems));

	return trust_of(o, w, g);
}

/* trust*(scale*grad + decay*w) is SGD's g with both factors scaled. */
static void update(const struct gf_lars *o, double factor, float scale, const float *grad,
		   float *weight, float *velocity, size_t count_elems)
{
	struct gf_sgd sgd = o->sgd;

	if (o->inside) {
		factor *= sgd.lr;
		sgd.lr = 1;
	}
	sgd.weight_decay = o->plain ? 0 : sgd.weight_decay * factor;
	gf_sgd_update(&sgd, (float)(factor * (double)scale), grad, weight, velocity, count_elems);
}

void gf_lars_update(const struct gf_lars *o, float scale, const float *grad, float *weight,
		    float *velocity, size_t count_elems)
{
	update(o, o->plain ? 1 : gf_lars_trust(o, scale, grad, weight, count_elems), scale, grad,
	       weight, velocity, count_elems);
}

static void step(const struct gf_optim_config *c, const struct gf_optim_part *p, bool inside)
{
	const double *squares = p->squares;
	const struct gf_lars o = {
		.sgd = {.lr = p->lr, .momentum = c->momentum, .weight_decay = c->weight_decay},
		.eta = c->eta,
		.epsilon = c->epsilon,
		.inside = inside,
		.plain = p->excluded,
	};

	if (squares && !o.plain)
		update(&o,
		       trust_of(&o, sqrt(squares[0]), fabs((double)p->scale) * sqrt(squares[1])),
		       p->scale, p->grad, p->weight, p->slot[0], p->count_elems);
	else
		gf_lars_update(&o, p->scale, p->grad, p->weight, p->slot[0], p->count_elems);
}

static void step_outside(const struct gf_optim_config *c, const struct gf_optim_part *p)
{
	step(c, p, false);
}

static void step_inside(const struct gf_optim_config *c, const struct gf_optim_part *p)
{
	step(c, p, true);
}

static double ratio(const struct gf_optim_config *c, double weight_norm, double grad_norm)
{
	const struct gf_lars o = {
		.sgd.weight_decay = c->weight_decay, .eta = c->eta, .epsilon = c->epsilon};

	return trust_of(&o, weight_norm, grad_norm);
}

#define LARS                                                                                       \
	.default_exclude = "vectors",                                                              \
	.settings = GF_OPTIM_MOMENTUM | GF_OPTIM_ETA | GF_OPTIM_EPSILON, .kernel = GF_OPTIM_LARS,  \
	.defaults = GF_OPTIM_NO_DEFAULTS, .velocity = true, .slots = {"momentum"}, .ratio = ratio

/* MANUAL
 * Each tensor has a rate of its own, as large as its weights bear
 * .Pq You et al. 2017 :
 * u = m u + q (g + d w), w = w - r u, where q = e |w| / (|g| + d |w|).
 * Excluded tensors, by default biases and norms, have q = 1 and d = 0. */
const struct gf_optimizer_ops gf_optimizer_lars = {
	.name = "lars",
	.description = "SGD with a rate per tensor, as large as its weights bear; the schedule's "
		       "rate outside the momentum",
	LARS,
	.place = 30,
	.step = step_outside,
};

/* MANUAL
 * The rate is inside the momentum, as in the paper's algorithm: u = m u + r q (g + d w), w = w -
 * u.
 * Both are the same while the rate is constant.
 * As the rate falls,
 * .Cm lars
 * also slows what older gradients left in u. */
const struct gf_optimizer_ops gf_optimizer_lars_paper = {
	.name = "lars-paper",
	.description = "the same with the rate inside the momentum, as published (You et al. 2017)",
	LARS,
	.place = 40,
	.rate_inside = true,
	.step = step_inside,
};
