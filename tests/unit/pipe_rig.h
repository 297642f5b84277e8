/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef GF_TESTS_PIPE_RIG_H
#define GF_TESTS_PIPE_RIG_H

#include "base/array.h"
#include "plans.h"
#include "ranks.h"
#include "trainer/method.h"
#include "trainer/trainer.h"

/*
 * Training steps, by the code that gf-train runs, of a function whose gradient is known: f_r(w) =
 * sum of (w - c_r)^2 / 2 on rank r, so g = w - c_r. The result of a serial loop over all ranks is
 * the reference.
 */
#define RIG_ELEMS 29

static const size_t rig_counts[] = {5, 1, 9, 3, 11};
enum { RIG_TENSORS = GF_ARRAY_LENGTH(rig_counts) };

struct rig_case {
	int ranks, staleness;
	size_t warmup, steps;
	const char *codec, *algorithm;
	size_t threshold_bytes; /* of a message */
	struct gf_optim_config optim;
	double rate;
	struct gf_loss_scale scale;
	bool alike;  /* all ranks have rank 0's centres */
	double size; /* the function is multiplied by this; 0: 1 */
	int servers; /* ranks after the others */
	bool split;  /* every other message is */
	bool asks;   /* forward does, tensor by tensor */
};

static inline double rig_size(const struct rig_case *c)
{
	return c->size > 0 ? c->size : 1;
}

/* c_r of element i. */
static inline double rig_centre(int rank, size_t i)
{
	return (double)((rank * 7 + (int)i * 3) % 5) * 0.25 - 0.5;
}

static inline double rig_start(size_t i)
{
	return 1 - (double)(i % 4) * 0.125;
}

struct rig {
	const struct rig_case *c;
	struct gf_comm *comm;
	struct gf_plan plan;
	uint64_t sent_bytes; /* of the last step */
	float params[RIG_ELEMS];
	float seen[RIG_ELEMS]; /* by forward, when each was needed */
	struct gf_compute compute;
	struct gf_method *method;
	struct gf_timeline timeline;
	struct gf_stepper stepper;
	/* called on entering backward (optional) */
	void (*entered)(struct rig *r, size_t step);
	size_t step;     /* being computed */
	size_t poisoned; /* in this one a gradient is infinite; 0: none */
};

static inline int rig_load(struct gf_compute *c, size_t step, size_t part, struct gf_error *err)
{
	(void)part;
	(void)err;
	((struct rig *)c->priv)->step = step;
	return 0;
}

/* Takes the parameters over tensor by tensor, the last one first. */
static inline int rig_forward(struct gf_compute *c, struct gf_error *err)
{
	struct rig *r = c->priv;
	size_t t, at = RIG_ELEMS;

	(void)err;
	for (t = RIG_TENSORS; t-- > 0;) {
		at -= rig_counts[t];
		if (c->on_need)
			c->on_need(c->need_ctx, t);
		memcpy(r->seen + at, r->params + at, rig_counts[t] * sizeof(*r->seen));
	}
	return 0;
}

static inline int rig_result(struct gf_compute *c, double *loss, size_t *correct,
			     struct gf_error *err)
{
	(void)c;
	(void)err;
	*loss = 0;
	*correct = 0;
	return 0;
}

static inline int rig_backward(struct gf_compute *c, float *grads,
			       void (*on_grad)(void *ctx, size_t tensor), void *ctx,
			       struct gf_error *err)
{
	struct rig *r = c->priv;
	size_t t, i, at = 0;

	(void)err;
	if (r->entered)
		r->entered(r, r->step);
	for (t = 0; t < RIG_TENSORS; t++) {
		for (i = at; i < at + rig_counts[t]; i++)
			grads[i] = (float)rig_size(r->c) *
				   (r->seen[i] -
				    (float)rig_centre(r->c->alike ? 0 : r->comm->rank, i));
		/* a server's are nobody's */
		for (i = at; i < at + rig_counts[t]; i++)
			if (r->comm->rank >= r->c->ranks)
				grads[i] = 99;
		if (r->poisoned == r->step && t == 2)
			grads[at + 4] = INFINITY;
		at += rig_counts[t];
		on_grad(ctx, t);
	}
	return 0;
}

static inline void rig_open(struct rig *r, const struct rig_case *c, struct gf_comm *comm)
{
	static const struct gf_compute_ops ops = {
		.load = rig_load,
		.forward = rig_forward,
		.backward = rig_backward,
		.result = rig_result,
	};
	struct gf_shape shapes[RIG_TENSORS];
	struct gf_method_env env = {
		.comm = comm,
		.plan = &r->plan,
		.params = r->params,
		.shapes = shapes,
		.optim = &c->optim,
		.scale = c->scale,
		.timeout_s = TEST_PATIENCE_S,
		.asks = c->asks,
	};
	struct gf_error err = {""};
	size_t i;

	memset(r, 0, sizeof(*r));
	r->c = c;
	r->comm = comm;
	for (i = 0; i < RIG_TENSORS; i++)
		shapes[i] = (struct gf_shape){1, {rig_counts[i]}};
	for (i = 0; i < RIG_ELEMS; i++)
		r->params[i] = (float)rig_start(i);
	plan_of(&r->plan, rig_counts, RIG_TENSORS, c->ranks, c->threshold_bytes, 1,
		c->algorithm ? c->algorithm : "ring");
	r->plan.servers = c->servers;
	r->plan.staleness = c->staleness;
	r->plan.pipeline_warmup_steps = c->warmup;
	for (i = 0; c->codec && i < r->plan.nmessages; i++) {
		free(r->plan.messages[i].codec);
		r->plan.messages[i].codec = gf_xstrdup(c->codec);
	}
	for (i = 0; c->split && i < r->plan.nmessages; i += 2)
		r->plan.messages[i].half = GF_HALF_SPLIT;
	gf_timeline_init(&r->timeline, RIG_TENSORS, r->plan.nmessages);
	r->compute = (struct gf_compute){.ops = &ops, .priv = r};
	r->stepper = (struct gf_stepper){
		.compute = &r->compute,
		.timeline = &r->timeline,
		.accumulate = 1,
		.counts = rig_counts,
	};
	EXPECT(!gf_exchange_check_plan(&r->plan, false, &err) &&
		       !gf_method_open(&r->method, &env, &err),
	       "rank %d: %s", comm->rank, err.text);
	r->stepper.method = r->method;
}

static inline void rig_step(struct rig *r, size_t step)
{
	struct gf_step_outcome out;
	struct gf_error err = {""};

	EXPECT(!gf_train_step(&r->stepper, step, r->c->rate, &out, &err), "rank %d, step %zu: %s",
	       r->comm->rank, step, err.text);
	r->sent_bytes = out.sent_bytes;
}

static inline void rig_close(struct rig *r)
{
	gf_method_close(r->method);
	gf_timeline_release(&r->timeline);
	gf_plan_release(&r->plan);
}

#endif
