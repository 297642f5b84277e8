/* SPDX-License-Identifier: BSD-3-Clause */
/* The means that an exchange gives back: against exact sums, and by every selection against the
 * parameters of a trainer with the same gradients. */
#include "caller.h"
#include "selections.h"
#include "test.h"

#include "base/array.h"
#include "trainer/method.h"
#include "transport/transport.h"

/* --- exact means ---------------------------------------------------------- */

static const enum gf_dtype types[][CALLER_TENSORS] = {
	{GF_F32, GF_F32, GF_F32, GF_F32, GF_F32},      {GF_F16, GF_F16, GF_F16, GF_F16, GF_F16},
	{GF_BF16, GF_BF16, GF_BF16, GF_BF16, GF_BF16}, {GF_F32, GF_F16, GF_BF16, GF_F32, GF_F32},
	{GF_F64, GF_F64, GF_F64, GF_F64, GF_F64},      {GF_F32, GF_F64, GF_BF16, GF_F16, GF_F64},
};

static const char *const dense[] = {
	RULE("1", "2", "ring", "f32", DENSE),
	RULE("4096", "1", "rhd", "f32", DENSE),
	RULE("1000000", "1", "ring", "f16", DENSE),
	RULE("4096", "2", "tree", "bf16", DENSE),
};

struct exact_case {
	const char *plan;
	const enum gf_dtype *dtypes;
	enum layout layout;
	bool flush; /* the last tensor but one is not posted by rank 0 */
	bool shm;   /* over shared memory */
};

/* Sums of 4 and means by 4 have few bits. */
static float value(int rank, size_t i, size_t k, size_t step)
{
	return (float)((i * 7 + k * 3 + step * 5 + (size_t)rank * 11) % 17) - 8;
}

static void exact_step(struct caller_rank *r, struct caller *c, size_t step)
{
	const struct exact_case *e = r->c;
	float values[1200], want;
	size_t n, i, k;
	int rank;

	for (n = 0; n < CALLER_TENSORS; n++) {
		i = (n * 2 + (size_t)r->rank) % CALLER_TENSORS;
		for (k = 0; k < caller_counts[i]; k++)
			values[k] = value(r->rank, i, k, step);
		caller_put(c, i, values);
		if (e->flush && i == 3 && r->rank == 0)
			continue;
		EXPECT(caller_post(c, i) == 0, "%s", gradflow_error());
	}
	if (e->flush)
		EXPECT(gradflow_exchange_flush(c->x) == 0, "%s", gradflow_error());
	for (i = 0; i < CALLER_TENSORS; i++) {
		const bool left = e->flush && i == 3;

		EXPECT(gradflow_exchange_wait(c->x, i) == 0, "%s", gradflow_error());
		EXPECT(gradflow_exchange_test(c->x, i) == 1, "tensor %zu", i);
		caller_get(c, i, values);
		for (k = 0; k < caller_counts[i]; k++) {
			for (want = 0, rank = left; rank < r->ranks; rank++)
				want += value(rank, i, k, step);
			want /= (float)r->ranks;
			if (left && r->rank == 0)
				want = value(0, i, k, step);
			EXPECT(values[k] == want,
			       "%s, layout %d, rank %d of %d, step %zu, tensor %zu, element %zu: "
			       "want %g, got %g",
			       e->plan, (int)e->layout, r->rank, r->ranks, step, i, k, want,
			       values[k]);
			if (values[k] != want)
				break;
		}
	}
	EXPECT(gradflow_exchange_wait(c->x, GRADFLOW_ALL) == 0, "%s", gradflow_error());
}

/* In a step: tensors that do not lie as their message moves go both ways. Alone, a rank has the
 * means. */
static size_t copied(const struct caller_rank *r, const struct caller *c)
{
	const struct exact_case *e = r->c;
	size_t bytes = 0, i, k, sum;

	for (i = 0; r->ranks > 1 && i < CALLER_TENSORS; i = k) {
		bool moves = true, wide = false;

		for (k = i; k < CALLER_TENSORS && gradflow_exchange_message(c->x, k) ==
							  gradflow_exchange_message(c->x, i);
		     k++)
			wide |= c->dtypes[k] == GF_F64 && strstr(e->plan, "\"codec\": \"f32");

		for (k = i, sum = 0;
		     k < CALLER_TENSORS &&
		     gradflow_exchange_message(c->x, k) == gradflow_exchange_message(c->x, i);
		     k++) {
			const bool left = e->flush && k == 3 && r->rank == 0;

			moves &= c->dtypes[k] == (wide ? GF_F64 : GF_F32) && !left &&
				 (k == i || e->layout == FLAT) &&
				 (!e->shm || strstr(e->plan, "\"codec\": \"f16") ||
				  strstr(e->plan, "\"codec\": \"bf16"));
			sum += left ? 0 : 2 * caller_counts[k] * gf_dtype_bytes(c->dtypes[k]);
		}
		bytes += moves ? 0 : sum;
	}
	return bytes;
}

static void exact(struct caller_rank *r)
{
	const struct exact_case *e = r->c;
	struct gf_error err = {""};
	struct caller c;
	size_t step;

	if (e->shm)
		EXPECT(!gf_comm_shm_over(r->comm[0], &r->comm[0], &err), "%s", err.text);
	if (caller_open(&c, r->comm[0], e->plan, e->dtypes, e->layout, &err)) {
		EXPECT(0, "%s", err.text);
		return;
	}
	for (step = 1; step <= 3; step++)
		exact_step(r, &c, step);
	EXPECT(gradflow_exchange_steps(c.x) == 3, "steps");
	EXPECT(gradflow_exchange_copied_bytes(c.x) == 3 * copied(r, &c),
	       "%s, layout %d, rank %d: want %zu bytes copied, got %zu", e->plan, (int)e->layout,
	       r->rank, 3 * copied(r, &c), (size_t)gradflow_exchange_copied_bytes(c.x));
	caller_close(&c);
}

/* Sums that f32 has not, of a message with tensors of f32 and f64. */
static void wide(struct caller_rank *r)
{
	const struct exact_case *e = r->c;
	struct gf_error err = {""};
	struct caller c;
	size_t i, k;

	if (caller_open(&c, r->comm[0], e->plan, e->dtypes, e->layout, &err)) {
		EXPECT(0, "%s", err.text);
		return;
	}
	for (i = 0; i < CALLER_TENSORS; i++) {
		double *to = (void *)c.data[i];

		for (k = 0; k < caller_counts[i] && c.dtypes[i] == GF_F64; k++)
			to[k] = r->rank ? 0x1p-40 * (double)k : 3;
		EXPECT(caller_post(&c, i) == 0, "%s", gradflow_error());
	}
	EXPECT(gradflow_exchange_wait(c.x, GRADFLOW_ALL) == 0, "%s", gradflow_error());
	for (i = 0; i < CALLER_TENSORS; i++) {
		const double *got = (void *)c.data[i];

		for (k = 0; k < caller_counts[i] && c.dtypes[i] == GF_F64; k++)
			EXPECT(got[k] == (3 + 0x1p-40 * (double)k) / 2,
			       "%s, tensor %zu, element %zu: got %.17g", e->plan, i, k, got[k]);
	}
	caller_close(&c);
}

static void test_exact(void)
{
	struct exact_case e;
	size_t p, t;
	int ranks, layout;

	for (p = 0; p < GF_ARRAY_LENGTH(dense); p++)
		for (t = 0; t < GF_ARRAY_LENGTH(types); t++)
			for (layout = 0; layout < LAYOUTS; layout++)
				for (ranks = 1; ranks <= 4; ranks *= 2) {
					e = (struct exact_case){dense[p], types[t],
								(enum layout)layout, false, false};
					on_callers(ranks, exact, &e);
					e.shm = true;
					on_callers(ranks, exact, &e);
				}
	e = (struct exact_case){dense[1], types[0], FLAT, true, false};
	on_callers(4, exact, &e);
	for (t = 0; t < GF_ARRAY_LENGTH(types); t++)
		for (p = 0; p < 2; p++) {
			e = (struct exact_case){dense[p], types[t], FLAT, false, t % 2 == 0};
			on_callers(2, wide, &e);
		}
}

/* --- against a trainer ---------------------------------------------------- */

/* A power of two: products with it are exact, however they are computed. */
#define RATE 0.25f
enum { STEPS = 8 };

struct beside_case {
	const char *plan;
	enum layout layout;
	bool stale; /* a step is waited for when the next one was computed */
};

static void fill(float *to, size_t n, int rank, size_t step)
{
	uint32_t state = 1 + (uint32_t)rank * 7919 + (uint32_t)step * 104729;
	size_t i;

	for (i = 0; i < n; i++) {
		state = state * 1664525 + 1013904223;
		to[i] = (float)(int32_t)state * 0x1p-31f;
	}
}

static void train(struct caller_rank *r, const struct gradflow_exchange *x, float *params,
		  bool stale, float momentum)
{
	const struct gf_optim_config optim = {.name = "sgd", .momentum = momentum};
	struct gf_plan plan;
	const struct gf_method_env env = {
		.comm = r->comm[1],
		.plan = &plan,
		.params = params,
		.shapes = x->shapes,
		.epoch_steps = 3,
		.optim = &optim,
		.timeout_s = TEST_PATIENCE_S,
		.threads = 1,
	};
	struct gf_method *m;
	float *grads;
	struct gf_error err = {""};
	size_t step, i;

	gf_plan_copy(&plan, &x->plan);
	plan.staleness += stale;
	if (gf_method_open(&m, &env, &err)) {
		EXPECT(0, "%s", err.text);
		return;
	}
	for (step = 1; step <= STEPS; step++) {
		gf_method_begin(m, step);
		EXPECT(gf_method_memory(m, &grads, &err) == 0, "%s", err.text);
		fill(grads, CALLER_ELEMS, r->rank, step);
		for (i = 0; i < CALLER_TENSORS; i++)
			gf_method_ready(m, i);
		gf_method_backward_end(m);
		EXPECT(gf_method_exchange(m, &err) == 0, "%s", err.text);
		gf_method_update(m, RATE);
	}
	gf_method_close(m);
	gf_plan_release(&plan);
}

/* Posts what was computed; one by one, or at once. */
static void post_step(struct caller *c, const float *grads, size_t step)
{
	static const size_t order[CALLER_TENSORS] = {2, 0, 4, 1, 3};
	struct gradflow_gradient all[CALLER_TENSORS];
	size_t i, at;

	for (i = 0, at = 0; i < CALLER_TENSORS; at += caller_counts[i++]) {
		caller_put(c, i, grads + at);
		if (step % 2)
			EXPECT(caller_post(c, i) == 0, "%s", gradflow_error());
	}
	if (step % 2 == 0) {
		for (i = 0; i < CALLER_TENSORS; i++)
			all[i] = caller_gradient(c, order[i]);
		EXPECT(gradflow_exchange_post(c->x, all, 3) == 0 &&
			       gradflow_exchange_post(c->x, all + 3, 2) == 0,
		       "%s", gradflow_error());
	}
}

static void take_step(struct caller *c, float *params, float *velocity, float momentum)
{
	const struct gf_sgd_step sgd = {.lr = RATE, .momentum = momentum, .scale = 1};
	size_t i, at;

	EXPECT(gradflow_exchange_wait(c->x, GRADFLOW_ALL) == 0, "%s", gradflow_error());
	for (i = 0, at = 0; i < CALLER_TENSORS; at += caller_counts[i++])
		gf_kernels()->sgd_f32(&sgd, (float *)c->data[i], params + at, velocity + at,
				      caller_counts[i]);
}

static void beside(struct caller_rank *r)
{
	const struct beside_case *b = r->c;
	float params[CALLER_ELEMS] = {0}, velocity[CALLER_ELEMS] = {0};
	float want[CALLER_ELEMS] = {0}, grads[CALLER_ELEMS], momentum;
	struct gf_error err = {""};
	struct caller c;
	size_t step, i;

	if (caller_open(&c, r->comm[0], b->plan, types[0], b->layout, &err)) {
		EXPECT(0, "%s", err.text);
		return;
	}
	/* pieces leave velocities alone, and some have a momentum of their own */
	momentum = gf_selection_has(&c.x->plan.selection, GF_SELECT_PIECES) ||
				   gf_selection_has(&c.x->plan.selection, GF_SELECT_MOMENTUM)
			   ? 0
			   : 0.9f;
	c.x->plan.ranks = r->ranks;
	for (step = 1; step <= STEPS; step++) {
		fill(grads, CALLER_ELEMS, r->rank, step);
		if (b->stale && step > 1)
			take_step(&c, params, velocity, momentum);
		post_step(&c, grads, step);
		if (!b->stale)
			take_step(&c, params, velocity, momentum);
	}
	train(r, c.x, want, b->stale,
	      gf_selection_has(&c.x->plan.selection, GF_SELECT_MOMENTUM) ? 0.9f : momentum);
	for (i = 0; i < CALLER_ELEMS && params[i] == want[i]; i++)
		;
	EXPECT(i == CALLER_ELEMS,
	       "%s, layout %d, rank %d of %d: parameter %zu: want %.9g, got %.9g", b->plan,
	       (int)b->layout, r->rank, r->ranks, i, want[i], params[i]);
	caller_close(&c);
}

static void beside_rows(const struct gf_select_plan *p, struct entry_facts *f, void *ctx)
{
	const struct gf_selection s = test_selection_at(p, &f->at, "keys");
	char *plan =
		gf_xasprintf(RULE("4096", "1", "ring", "f32", "\"selection\": %s, " SYNCHRONOUS),
			     test_written(s));
	int ranks, layout;

	(void)ctx;
	for (layout = 0; layout < LAYOUTS; layout++)
		for (ranks = 1; ranks <= 4; ranks++) {
			struct beside_case b = {plan, (enum layout)layout, false};

			on_callers(ranks, beside, &b);
			b.stale = true;
			/* pieces are chosen by sums that were applied */
			if (!(p->traits & GF_SELECT_RECUTS) && layout == APART)
				on_callers(ranks, beside, &b);
		}
	free(plan);
}

int main(void)
{
	watchdog(120);
	test_exact();
	test_each_selection(beside_rows, NULL);
	return TEST_END();
}
