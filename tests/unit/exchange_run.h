/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef GF_TESTS_EXCHANGE_RUN_H
#define GF_TESTS_EXCHANGE_RUN_H

#include "plans.h"
#include "ranks.h"
#include "selections.h"
#include "runtime/engine/engine.h"
#include "compressors/select.h"
#include "trainer/method_parts.h"

/* A selection and an engine on threads, with gradients that the test makes up and the update that
 * training has; every rank's weights and state are kept for comparison. */
#define RUN_RANKS 9
#define RUN_ELEMS 512

struct exchange_run {
	/* given */
	int ranks;
	const size_t *counts; /* of the tensors */
	size_t ntensors;
	size_t threshold_bytes;
	int lanes;
	bool at_end, split;
	struct gf_selection selection;
	double momentum, weight_decay, lr;
	const char *optimizer; /* NULL: sgd */
	double eta, clip_norm;
	int staleness; /* 0: 1 */
	double scale;  /* of the loss; 0: not scaled */
	size_t first_step, steps, epoch_steps;
	float (*gradient)(int rank, size_t step, size_t i);
	const char *choice;        /* the words of the state that say what goes out next */
	const uint64_t *important; /* those of the first step; NULL: as it begins */
	/* what is kept: weights after every step, a rank's own state at the end, what was chosen
	 * for the step after the last */
	float weights[RUN_RANKS][32][RUN_ELEMS];
	float own[RUN_RANKS][RUN_ELEMS];
	uint64_t next[RUN_RANKS][RUN_ELEMS];
	struct gf_select_bad bad[RUN_RANKS]; /* the first */
	uint64_t sent_bytes[RUN_RANKS], dense_bytes;
};

/* Whole numbers from -most to most, the same every time. */
static inline float run_noise(int rank, size_t step, size_t i, int most)
{
	uint64_t x = (uint64_t)step * 0x9e3779b97f4a7c15u + i * 0xbf58476d1ce4e5b9u +
		     (uint64_t)rank * 0x94d049bb133111ebu;

	x ^= x >> 31;
	x *= 0xd6e8feb86659fd93u;
	x ^= x >> 29;
	return (float)((int)(x % (2 * (uint64_t)most + 1)) - most);
}

/* The words of a state between `words` and the array of that name, either way. */
static inline void run_choice(const struct gf_state *s, const char *name, bool set, uint64_t *words)
{
	size_t i;

	for (i = 0; name && i < s->nitems; i++)
		if (strcmp(s->items[i].name, name) == 0)
			memcpy(set ? s->items[i].data : words, set ? words : s->items[i].data,
			       s->items[i].count_elems * sizeof(*words));
}

static inline size_t run_elems(const struct exchange_run *run)
{
	size_t i, sum = 0;

	for (i = 0; i < run->ntensors; i++)
		sum += run->counts[i];
	return sum;
}

/* A rank's. */
struct exchange {
	size_t depth;
	struct gf_pool *pools; /* depth */
	struct gf_selector *select;
	struct gf_engine *engine;
	size_t begun, applied; /* steps; the n-th uses slot n % depth */
};

static inline void open_exchange(struct exchange *x, struct gf_comm *comm,
				 const struct gf_plan *plan, const struct gf_shape *shapes,
				 const struct exchange_run *run)
{
	struct gf_error err = {""};
	size_t i;

	x->depth = run->staleness > 1 ? (size_t)run->staleness : 1;
	x->pools = gf_xcalloc(x->depth, sizeof(*x->pools));
	for (i = 0; i < x->depth; i++)
		EXPECT(!gf_pool_init(&x->pools[i], comm, run->counts, run->ntensors, &err), "%s",
		       err.text);
	EXPECT(!gf_select_open(&x->select,
			       &(struct gf_select_env){
				       .plan = plan,
				       .rank = comm->rank,
				       .depth = x->depth,
				       .pools = x->pools,
				       .shapes = shapes,
				       .epoch_steps = run->epoch_steps,
				       .momentum = run->momentum,
				       .scaled = run->scale > 0,
			       },
			       &err),
	       "%s", err.text);
	EXPECT(!gf_engine_new(
		       &(struct gf_engine_config){
			       .comm = comm,
			       .plan = plan,
			       .pool = &x->pools[0],
			       .timeout_s = TEST_PATIENCE_S,
			       .segment_bytes = plan->segment_bytes,
			       .depth = x->depth,
			       .hooks = *gf_select_hooks(x->select),
		       },
		       &x->engine, &err),
	       "%s", err.text);
}

static inline void close_exchange(struct exchange *x)
{
	size_t i;

	gf_engine_free(x->engine);
	gf_select_close(x->select);
	for (i = 0; i < x->depth; i++)
		gf_pool_release(&x->pools[i]);
	free(x->pools);
}

/* Applies the sums, unless they are bad. */
static inline void run_apply(struct exchange_run *run, struct exchange *x, struct gf_update *u,
			     int rank)
{
	const size_t slot = x->applied++ % x->depth;
	const bool pieces = gf_selection_has(&run->selection, GF_SELECT_PIECES);
	struct gf_select_bad bad = gf_select_inspect(x->select, slot);
	struct gf_select_sums sums;

	if (bad.found && !run->bad[rank].found)
		run->bad[rank] = bad;
	if (bad.found)
		return;
	gf_select_sums(x->select, slot, &sums);
	gf_update_sums(u, run->lr, &sums, pieces, NULL);
	gf_select_adopt(x->select, slot);
}

/* Applies the oldest step when as many are under way as may be. */
static inline void run_step(struct exchange_run *run, struct exchange *x, struct gf_update *u,
			    int rank, size_t step)
{
	const size_t slot = x->begun++ % x->depth;
	const size_t *offsets = x->pools[slot].offsets;
	float *grads = x->pools[slot].data;
	const struct gf_work *list;
	struct gf_error err = {""};
	size_t t, i, n;

	gf_select_begin(x->select, slot, &(struct gf_select_step){step, run->scale, NULL}, &list,
			&n);
	gf_engine_begin_work(x->engine, list, n);
	for (t = 0; t < run->ntensors; t++) {
		for (i = offsets[t]; i < offsets[t + 1]; i++)
			grads[i] = run->gradient(rank, step, i);
		gf_engine_ready_all(x->engine, &(size_t){t}, 1);
	}
	gf_engine_backward_end(x->engine);
	if (step - run->first_step + 1 < x->depth)
		return;
	EXPECT(!gf_engine_wait(x->engine, &err), "%s", err.text);
	run_apply(run, x, u, rank);
}

static inline void run_rank(struct gf_comm *comm, void *ctx)
{
	struct exchange_run *run = ctx;
	size_t n = run_elems(run), step, i;
	struct gf_plan plan;
	struct exchange x = {0};
	float *weights = gf_xcalloc(n, sizeof(*weights));
	struct gf_shape *shapes = gf_xcalloc(run->ntensors, sizeof(*shapes));
	struct gf_update update = {.params = weights, .plan = &plan, .shapes = shapes};
	struct gf_optim_config optim = {
		.name = run->optimizer ? run->optimizer : "sgd",
		.eta = run->eta,
		.clip_norm = run->clip_norm,
		.momentum =
			gf_selection_has(&run->selection, GF_SELECT_MOMENTUM) ? 0 : run->momentum,
		.weight_decay = run->weight_decay,
		.exclude = "none"};
	struct gf_state state = {0};
	struct gf_error err = {""};

	plan_of(&plan, run->counts, run->ntensors, comm->ranks, run->threshold_bytes, run->lanes,
		"ring");
	plan.selection = run->selection;
	for (i = 0; i < plan.nmessages; i++) {
		if (run->at_end)
			plan.messages[i].release = GF_RELEASE_BACKWARD_END;
		if (run->split)
			plan.messages[i].half = GF_HALF_SPLIT;
	}
	for (i = 0; i < run->ntensors; i++)
		shapes[i] = (struct gf_shape){1, {run->counts[i]}};
	open_exchange(&x, comm, &plan, shapes, run);
	update.offsets = x.pools[0].offsets;
	EXPECT(!gf_update_open(&update, &optim, &(struct gf_place){0}, &err), "%s", err.text);
	gf_update_state(&update, &state);
	gf_select_state(x.select, &state);
	if (run->important)
		run_choice(&state, run->choice, true, (uint64_t *)run->important);
	for (step = 0; step < run->steps; step++) {
		run_step(run, &x, &update, comm->rank, run->first_step + step);
		memcpy(run->weights[comm->rank][step], weights, n * sizeof(*weights));
	}
	/* what is still under way has its effect on histories */
	for (step = 1; step < x.depth && step <= run->steps; step++)
		EXPECT(!gf_engine_wait(x.engine, &err), "%s", err.text);
	for (i = 0; i < state.nitems; i++)
		if (state.items[i].scope == GF_STATE_OWN)
			memcpy(run->own[comm->rank], state.items[i].data, n * sizeof(float));
	run_choice(&state, run->choice, false, run->next[comm->rank]);
	run->sent_bytes[comm->rank] = gf_engine_totals(x.engine).sent_bytes;
	if (comm->rank == 0)
		run->dense_bytes = gf_engine_totals(x.engine).dense_bytes;
	gf_state_release(&state);
	gf_update_close(&update);
	close_exchange(&x);
	memset(&plan.selection, 0, sizeof(plan.selection));
	gf_plan_release(&plan);
	free(shapes);
	free(weights);
}

/* Runs it; weights and choices must be the same on all ranks. */
static inline void run_exchange(struct exchange_run *run, const char *what)
{
	int r;

	EXPECT(run_elems(run) <= RUN_ELEMS && run->steps <= 32, "%s", what);
	memset(run->bad, 0, sizeof(run->bad));
	on_ranks(run->ranks, run_rank, run);
	for (r = 1; r < run->ranks; r++) {
		EXPECT(!memcmp(run->weights[r], run->weights[0],
			       run->steps * sizeof(run->weights[0][0])),
		       "%s: rank %d of %d is no replica", what, r, run->ranks);
		EXPECT(!memcmp(run->next[r], run->next[0], sizeof(run->next[0])),
		       "%s: rank %d of %d chose otherwise", what, r, run->ranks);
		EXPECT(run->bad[r].found == run->bad[0].found &&
			       run->bad[r].tensor == run->bad[0].tensor &&
			       run->bad[r].element == run->bad[0].element,
		       "%s: rank %d's bad gradient", what, r);
	}
}

#endif
