/* SPDX-License-Identifier: BSD-3-Clause */
#include "train/step.h"

#include <string.h>

#include "base/clock.h"

struct gradients {
	struct gf_method *method;
	struct gf_step_times *times;
};

/* nn's callback: this is where computing meets communicating. */
static void on_grad(void *ctx, size_t tensor)
{
	struct gradients *g = ctx;

	g->times->gradient_s[tensor] = gf_clock_s();
	gf_method_ready(g->method, tensor);
}

int gf_train_step(struct gf_compute *c, struct gf_method *m,
		  const struct gf_sgd *sgd, struct gf_timeline *timeline,
		  size_t step, struct gf_step_outcome *out,
		  struct gf_error *err)
{
	struct gf_step_times *t = gf_timeline_next(timeline, step);
	struct gradients g = {m, t};
	float *grads;
	int rc;

	c->ops->load(c, step);
	t->start_s = gf_clock_s();
	rc = c->ops->forward(c, &out->loss, &out->correct, err);
	if (rc)
		return rc;
	t->forward_s = gf_clock_s();
	grads = gf_method_begin(m, step);
	rc = c->ops->backward(c, grads, on_grad, &g, err);
	if (rc)
		return rc;
	t->backward_s = gf_clock_s();
	gf_method_backward_end(m);
	rc = gf_method_exchange(m, step, err);
	if (rc)
		return rc;
	t->exchanged_s = gf_clock_s();
	memcpy(t->messages, gf_method_times(m),
	       timeline->nmessages * sizeof(*t->messages));
	c->ops->update(c, m, step, sgd);
	t->end_s = gf_clock_s();
	return 0;
}
