/* SPDX-License-Identifier: BSD-3-Clause */
#include "trainer/computing.h"

#include <string.h>

#include "base/clock.h"
#include "base/heap.h"
#include "simulator/predict.h"
#include "simulator/step.h"

struct replay {
	const struct gf_model_profile *model;
	bool serves;
	double start_s; /* of the step */
	double update_s;
};

static int load(struct gf_compute *c, size_t step, size_t part, struct gf_error *err)
{
	(void)c;
	(void)step;
	(void)part;
	(void)err;
	return 0;
}

static int forward(struct gf_compute *c, struct gf_error *err)
{
	struct replay *r = c->priv;

	(void)err;
	r->start_s = gf_clock_s();
	if (r->serves)
		return 0;
	/* the tensor that is made last is needed first; the time that forward waits for it delays
	 * all that follows */
	for (size_t i = r->model->ntensors; c->on_need && i-- > 0;) {
		double began_s;

		gf_clock_sleep_until(r->start_s + gf_sim_need_of_s(r->model, i));
		began_s = gf_clock_s();
		c->on_need(c->need_ctx, i);
		r->start_s += gf_clock_s() - began_s;
	}
	gf_clock_sleep_until(r->start_s + r->model->forward_s);
	return 0;
}

static int result(struct gf_compute *c, double *loss, size_t *correct, struct gf_error *err)
{
	(void)c;
	(void)err;
	*loss = 0;
	*correct = 0;
	return 0;
}

/* Every moment is counted from the start of forward: an oversleep of one gradient does not move the
 * next. */
static int backward(struct gf_compute *c, float *grads, void (*on_grad)(void *ctx, size_t tensor),
		    void *ctx, struct gf_error *err)
{
	struct replay *r = c->priv;
	const struct gf_model_profile *m = r->model;
	double from = r->start_s + m->forward_s, began_s;

	(void)grads;
	(void)err;
	for (size_t i = 0; i < m->ntensors; i++) {
		began_s = gf_clock_s();
		if (!r->serves && c->on_need)
			c->on_need(c->need_ctx, i);
		from += gf_clock_s() - began_s;
		if (!r->serves)
			gf_clock_sleep_until(from + m->tensors[i].ready_s);
		on_grad(ctx, i);
	}
	if (!r->serves)
		gf_clock_sleep_until(from + m->backward_s);
	return 0;
}

static int updated(struct gf_compute *c, struct gf_error *err)
{
	struct replay *r = c->priv;

	(void)err;
	gf_clock_sleep_until(gf_clock_s() + r->update_s);
	return 0;
}

static void close_replay(struct gf_compute *c)
{
	free(c->priv);
	memset(c, 0, sizeof(*c));
}

static const struct gf_compute_ops replay_ops = {
	.load = load,
	.forward = forward,
	.backward = backward,
	.result = result,
	.updated = updated,
	.close = close_replay,
};

void gf_compute_replay(const struct gf_plan *plan, bool serves, struct gf_compute *c)
{
	struct replay *r = gf_xcalloc(1, sizeof(*r));

	r->model = plan->model;
	r->update_s = gf_plan_update_s(plan);
	r->serves = serves;
	c->ops = &replay_ops;
	c->priv = r;
}
