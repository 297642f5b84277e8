/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * randomk: k random elements of every message, the same on all ranks, with error feedback (Stich,
 * Cordonnier, Jaggi: Sparsified SGD with Memory, NeurIPS 2018; Wangni, Wang, Liu, Zhang: Gradient
 * Sparsification for Communication-Efficient Distributed Optimization, NeurIPS 2018; the common
 * seed is that of Vogels et al. 2019).
 *
 * Step t on each of P ranks, for message number j of n elements (e begins at 0):
 *	x = e + gradient
 *	I = pick(seed, t, j, n, k), k = max(1, floor(density * n))
 *	the all-reduce of the plan's message sums (x_i, i in I) over ranks
 *	e = 0 where i is in I, else x
 *	w_i = w_i - rate * sum_i / P where i is in I; elsewhere the mean is 0
 *
 * On the wire: k numbers in the order of I, and no indices. They go as k gradients of a dense
 * message would: by its algorithm, stages and codec. For n = 6 and k = 2 with I = {1, 4}, ranks
 * with x = (1, -4, 2, 0, 3, 1) and
 * (0, 2, 5, 1, 1, 1) send (-4, 3) and (2, 1), get (-2, 4), and keep
 * e = (1, 0, 2, 0, 0, 1) and (0, 0, 5, 1, 0, 1).
 *
 * A gradient that is not finite might not be drawn. Its rank then sends NaN as the message's first
 * value, so that all ranks learn of it in this step.
 */
#include "compressors/halves.h"

#include <assert.h>
#include <math.h>

#include "base/heap.h"
#include "base/rng.h"

struct params {
	double density;           /* k/n, (0, 1] */
	double *warmup_densities; /* of the first epochs */
	size_t nwarmup;
	size_t seed;
	char *extra; /* x- keys */
};

#if GF_PLAN_HALF

#define VALUE_BYTES 4

#define AT(member) offsetof(struct params, member)
static const struct gf_field fields[] = {
	GF_DENSITY_FIELDS,
	{GF_MEMBER(seed, GF_FIELD_SIZE, GF_DEFAULTED), .high = GF_MAX_COUNT, .absent = 1,
	 .unit = "N", .help = "of the random elements"},
	{NULL},
};

static const struct gf_record record = {
	GF_RECORD(struct params, fields),
};
#undef AT

static size_t wire(const void *params, const struct gf_wired *message, struct gf_wire *wires)
{
	const struct params *p = params;
	double k = (double)gf_density_count(p->density, (size_t)message->count_elems);

	*wires = (struct gf_wire){GF_WIRE_REDUCE, k, VALUE_BYTES * k, 1};
	return 1;
}

static const struct params defaults = {.density = 0.1, .seed = 1};

/* MANUAL
 * All ranks send the same random k elements of every message, so that values alone travel.
 * The rest of gradient plus residual is the next step's residual.
 * @key seed
 * that of the random elements */
const struct gf_select_plan gf_select_plan_randomk = {
	.name = "randomk",
	.description = "k random elements, the same on all ranks",
	.place = 90,
	.source = "Sparsified SGD with memory (Stich et al. 2018)",
	.traits = GF_SELECT_ADDS | GF_SELECT_SCALES | GF_SELECT_SELDOM,
	.record = &record,
	.defaults = &defaults,
	.less_momentum = "an element goes out as the sum of many steps at once",
	.clipped_share = 0.3, /* docs/methods.md, "Accuracy" */
	.wire = wire,
	.warm = gf_density_warm,
};

#else

/* A slot's own: the places of all messages' values, within their messages. */

static const struct gf_work *message_of(const struct gf_selector *s, size_t slot, size_t message)
{
	return &s->plan_work[slot][message];
}

static size_t first_of(const struct gf_selector *s, size_t slot, size_t message)
{
	const float *data = message_of(s, slot, message)->data;

	return (size_t)(data - s->env.pools[slot].data);
}

static uint32_t *index_of(const struct gf_select_slot *t, size_t message)
{
	return (uint32_t *)t->more + ((float *)t->list[message].data - (float *)t->memory[0]);
}

/*
 * The k elements of 0..n-1 that message number `message` sends in step `step`, ascending; 1 <= k <=
 * n < 2^32. The elements are cut into k runs of equal length, as far as n/k is whole: run r begins
 * at floor(r * n / k). One element of each run is drawn, uniformly: every element goes out in one
 * step of n/k on average, and none waits much longer than others.
 */
static void pick(uint64_t seed, uint64_t step, uint64_t message, size_t n, size_t k,
		 uint32_t *index)
{
	struct gf_rng rng;
	uint64_t first = 0, next, r;

	assert(1 <= k && k <= n && n <= UINT32_MAX);
	/* a stream for every step, and in it one for every message */
	gf_rng_init(&rng, seed, step);
	gf_rng_init(&rng, gf_rng_u64(&rng), message);
	for (r = 0; r < k; r++) {
		next = (r + 1) * n / k;
		index[r] = (uint32_t)(first + gf_rng_below(&rng, next - first));
		first = next;
	}
}

/* --- on the thread that moves messages ------------------------------------ */

static int prepare(void *ctx, size_t slot, size_t message, struct gf_gpu_stream *q,
		   struct gf_error *err)
{
	struct gf_selector *s = ctx;
	struct gf_select_slot *t = &s->slots[slot];
	const struct gf_work *w = &t->list[message];
	const struct params *params = gf_select_params(s);
	const size_t n = message_of(s, slot, message)->count_elems;
	const size_t first = first_of(s, slot, message);
	float *data = s->env.pools[slot].data;
	uint32_t *index = index_of(t, message);

	(void)q;
	(void)err;
	pick(params->seed, t->step.number, message, n, w->count_elems, index);
	gf_feedback_add(s, data, first, n);
	if (gf_finite_prefix(data + first, n) < n)
		data[first + index[0]] = NAN;
	gf_kernels()->take_f32(w->data, data + first, index, w->count_elems);
	return gf_select_scale(s, slot, w, q, err);
}

static int finish(void *ctx, size_t slot, size_t message, struct gf_gpu_stream *q,
		  struct gf_error *err)
{
	struct gf_selector *s = ctx;
	return gf_select_unscale(s, slot, &s->slots[slot].list[message], q, err);
}

static int end(void *ctx, size_t slot, struct gf_gpu_stream *q, struct gf_error *err)
{
	struct gf_selector *s = ctx;
	struct gf_select_slot *t = &s->slots[slot];
	struct gf_pool *pool = &s->env.pools[slot];
	size_t i, at;

	(void)q;
	(void)err;
	t->bad.found = false;
	for (i = 0; i < s->env.plan->nmessages && !t->bad.found; i++) {
		const struct gf_work *w = &t->list[i];

		at = gf_finite_prefix(w->data, w->count_elems);
		if (at < w->count_elems)
			t->bad = gf_select_bad_at(pool, first_of(s, slot, i) + index_of(t, i)[at]);
	}
	for (i = 0; i < s->env.plan->nmessages && !t->bad.found; i++) {
		const struct gf_work *w = &t->list[i];
		const size_t first = first_of(s, slot, i);

		gf_feedback_commit(s, pool->data, first, message_of(s, slot, i)->count_elems);
		gf_kernels()->scatter_add_f32(pool->data + first, w->data, index_of(t, i),
					      w->count_elems);
	}
	return 0;
}

/* --- on the compute thread ------------------------------------------------ */

/* Messages have room for the k of the densest epoch. */
static int open_slot(struct gf_selector *s, size_t slot, struct gf_error *err)
{
	const double most = gf_select_densest(s);
	const size_t n = s->env.plan->nmessages;
	struct gf_work *list = gf_select_own_work(s, slot, s->nplan_work);
	struct gf_select_slot *t = &s->slots[slot];
	size_t *at, i;
	int rc;

	for (i = 0; i < n; i++)
		if (message_of(s, slot, i)->count_elems > UINT32_MAX)
			return gf_error_set(
				err, -EINVAL,
				"randomk: want at most %u elements in a message, got %zu",
				UINT32_MAX, message_of(s, slot, i)->count_elems);
	at = gf_xcalloc(n + 1, sizeof(*at));
	for (i = 0; i < n; i++)
		at[i + 1] = at[i] + gf_density_count(most, message_of(s, slot, i)->count_elems);
	t->more = gf_xcalloc(at[n] + 1, sizeof(uint32_t));
	rc = gf_select_memory(s, slot, 0, at[n] * sizeof(float), err);
	for (i = 0; i < n && !rc; i++)
		list[i].data = (float *)t->memory[0] + at[i];
	free(at);
	return rc;
}

static void begin(struct gf_selector *s, size_t slot, size_t step, const struct gf_work **list,
		  size_t *n)
{
	const double density = gf_select_density(s, step);

	(void)list;
	for (size_t i = 0; i < *n; i++)
		s->slots[slot].list[i].count_elems =
			gf_density_count(density, message_of(s, slot, i)->count_elems);
}

static const struct gf_select_ops ops = {
	.hooks = {.prepare = prepare, .finish = finish, .end = end},
	.residual = "randomk.residual",
	.open_slot = open_slot,
	.begin = begin,
};

const struct gf_selection_entry gf_selection_randomk = {
	.plan = &gf_select_plan_randomk,
	.ops = &ops,
};

#endif
