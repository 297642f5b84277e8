/* SPDX-License-Identifier: BSD-3-Clause */
#include "profiler/contest/size_sweep.h"

#include <string.h>

#include "base/clock.h"
#include "base/heap.h"
#include "base/rng.h"
#include "profiler/contest/contest.h"
#include "runtime/engine/engine.h"
#include "exchange/exchange.h"
#include "trainer/optim/optimizer.h"
#include "collectives/runnable.h"

/*
 * A plan with a selection, as training runs it (exchange/exchange.h): a repeat is a step after any
 * warm-up whose gradients are all ready at once, from its beginning to its sums. What is chosen,
 * how sets are made and what becomes of the rest is part of it. Gradients are normal numbers, other
 * ones in each repeat. In place they lie where the exchange wants them; out of place they are
 * copied there first. What is right depends on the selection, but all ranks must end with the same
 * sums: an element is wrong where it is not rank 0's.
 */

/* After the warm-up of any selection. */
static const size_t first_step = (size_t)1 << 40;

struct stepping {
	const struct gf_contest_allreduce_config *config;
	struct gf_plan plan; /* shallow */
	struct gf_exchange *x;
	struct gf_rng rng;
	size_t step, elems;
	size_t *tensors; /* all of them */
	float *grads, *sums;
	double *times;
	struct gf_contest_row *row;
	int placement;
};

/* -ENOTSUP: what was asked for is about dense messages between hosts. */
static int check(const struct gf_plan *plan, const struct gf_contest_allreduce_config *config,
		 struct gf_error *err)
{
	const char *option = config->device.gpu ? "--device cpu"
			     : config->proofs   ? "no --verify (gf-sim has it)"
			     : config->timeline ? "no --trace (gf-train --replay has it)"
			     : config->errors   ? "no --error"
						: NULL;

	if (option)
		return gf_error_set(
			err, -ENOTSUP,
			"want %s with selection %s, whose steps depend on the gradients", option,
			gf_selection_name(&plan->selection));
	return gf_exchange_check_plan(plan, false, err);
}

static int open_exchange(struct stepping *s, struct gf_error *err)
{
	const struct gf_model_profile *model = s->plan.model;

	s->elems = 0;
	s->tensors = gf_xcalloc(model->ntensors, sizeof(*s->tensors));
	for (size_t i = 0; i < model->ntensors; i++) {
		s->tensors[i] = i;
		s->elems += model->tensors[i].count_elems;
	}
	s->grads = gf_xcalloc(s->elems, sizeof(*s->grads));
	s->sums = gf_xcalloc(s->elems, sizeof(*s->sums));
	s->times = gf_xcalloc((size_t)s->config->repeats, sizeof(*s->times));
	gf_rng_init(&s->rng, 1, (uint64_t)s->config->comm->rank);
	s->step = first_step;
	return gf_exchange_open(&s->x,
				&(struct gf_exchange_env){
					.comm = s->config->comm,
					.plan = &s->plan,
					.timeout_s = s->config->timeout_s,
				},
				err);
}

static void move_in(struct stepping *s)
{
	memcpy(gf_exchange_pool(s->x)->data, s->grads, s->elems * sizeof(*s->grads));
}

/* Between the ranks' meeting and the sums. */
static int step(struct stepping *s, struct gf_exchange_step **step, struct gf_select_sums *sums,
		struct gf_error *err)
{
	int rc;

	*step = gf_exchange_begin(s->x, s->step++, 1, 0);
	gf_exchange_ready(*step, s->tensors, s->plan.model->ntensors);
	gf_exchange_backward_end(*step);
	rc = gf_exchange_next(s->x, true, step, err);
	return rc ?: gf_exchange_sums(*step, GF_EXCHANGE_WHOLE, sums, NULL, err);
}

static int once(struct stepping *s, bool keep, double *time_s, struct gf_error *err)
{
	struct gf_exchange_step *taken;
	struct gf_select_sums sums;
	double start_s;
	int rc;

	for (size_t i = 0; i < s->elems; i++)
		s->grads[i] = (float)gf_rng_normal(&s->rng);
	if (s->placement == GF_IN_PLACE)
		move_in(s);
	rc = gf_engine_barrier(gf_exchange_engine(s->x), err);
	start_s = gf_clock_s();
	if (rc == 0 && s->placement == GF_OUT_OF_PLACE)
		move_in(s);
	rc = rc ?: step(s, &taken, &sums, err);
	*time_s = gf_clock_s() - start_s;
	if (rc)
		return rc;
	if (keep)
		memset(s->sums, 0, s->elems * sizeof(*s->sums));
	for (size_t i = 0; keep && i < sums.npieces; i++)
		memcpy(s->sums + sums.pieces[i].first, sums.pieces[i].grad,
		       sums.pieces[i].count_elems * sizeof(*s->sums));
	return gf_exchange_take(taken, true, err);
}

/* --- results: while no message is under way ------------------------------- */

static int summarise(struct gf_comm *comm, void *ctx, struct gf_error *err)
{
	struct stepping *s = ctx;

	return gf_contest_summarise(s->config, comm, s->times, &s->row->reading[s->placement], err);
}

static int compare(struct gf_comm *comm, void *ctx, struct gf_error *err)
{
	struct stepping *s = ctx;
	size_t bytes = s->elems * sizeof(*s->sums), wrong = 0, i;
	GF_FREED float *want = gf_xmemdup(s->sums, bytes);
	int rc;

	for (i = 0; i < s->config->spoil && i < s->elems; i++)
		s->sums[i] += comm->rank == 0 ? 2 : 0;
	rc = gf_comm_bcast(comm, 0, want, bytes, err);
	for (i = 0; i < s->elems && rc == 0; i++)
		wrong += memcmp(&want[i], &s->sums[i], sizeof(*want)) != 0;
	return rc ? rc
		  : gf_contest_over_ranks(comm, wrong, true, &s->row->reading[s->placement].wrong,
					  err);
}

static int most_bytes(struct gf_comm *comm, void *ctx, struct gf_error *err)
{
	struct stepping *s = ctx;

	return gf_contest_over_ranks(comm, s->row->wire_bytes, false, &s->row->wire_bytes, err);
}

/* One placement. */
static int measure(struct stepping *s, struct gf_error *err)
{
	const struct gf_contest_allreduce_config *c = s->config;
	double ignored;
	int i, rc = 0;

	for (i = -c->warmup; i < c->repeats && rc == 0; i++)
		rc = once(s, false, i < 0 ? &ignored : &s->times[i], err);
	rc = rc ?: gf_exchange_call(s->x, summarise, s, err);
	for (i = 0; i < c->checks && rc == 0; i++) {
		rc = once(s, true, &ignored, err);
		rc = rc ?: gf_exchange_call(s->x, compare, s, err);
	}
	return rc;
}

static void describe(const struct gf_plan *plan, struct gf_contest_row *row)
{
	const struct gf_message *m = &plan->messages[0];
	const char *runs = gf_plan_runs(plan, m->first, m->last, m);

	*row = (struct gf_contest_row){
		.selection = gf_selection_name(&plan->selection),
		.messages = plan->nmessages,
	};
	for (size_t i = 0; i < plan->nmessages; i++)
		if (!gf_codec_is_plain(plan->messages[i].codec))
			row->codec = gf_codec_find(plan->messages[i].codec);
	row->way.algorithm = gf_sparse_find(runs);
	if (!row->way.algorithm)
		row->way.algorithm = gf_algorithm_find(runs);
}

/* Collective: one row, of all messages. */
static int run_exchange(const struct gf_plan *plan,
			const struct gf_contest_allreduce_config *config,
			struct gf_contest_row *row, struct gf_error *err)
{
	struct stepping s = {.config = config, .plan = *plan, .row = row};
	uint64_t before;
	double ignored;
	int rc;

	/* nobody computes meanwhile: a step is taken before the next begins */
	s.plan.staleness = 1;
	s.plan.segment_bytes = config->segment_bytes;
	describe(plan, row);
	rc = open_exchange(&s, err);
	row->count_elems = s.elems;
	row->size_bytes = s.elems * sizeof(float);
	for (s.placement = 0; s.placement < 2 && rc == 0; s.placement++)
		rc = measure(&s, err);
	if (rc == 0) {
		s.placement = GF_IN_PLACE;
		before = gf_exchange_totals(s.x).sent_bytes;
		rc = once(&s, false, &ignored, err);
		row->wire_bytes = gf_exchange_totals(s.x).sent_bytes - before;
	}
	rc = rc ?: gf_exchange_call(s.x, most_bytes, &s, err);
	gf_exchange_close(s.x);
	free(s.tensors);
	free(s.grads);
	free(s.sums);
	free(s.times);
	return rc;
}

int gf_contest_plan_run(const struct gf_plan *plan,
			const struct gf_contest_allreduce_config *config,
			struct gf_contest_rows *rows, struct gf_error *err)
{
	struct gf_contest_allreduce *bench = NULL;
	size_t elems = 0, i;
	int rc = gf_plan_runnable(plan, err);

	if (rc == 0 && plan->servers)
		rc = gf_error_set(err, -EINVAL,
				  "want a plan without a server (gf-train runs them), got %d",
				  plan->servers);
	if (rc == 0 && plan->ranks != config->comm->ranks)
		rc = gf_error_set(err, -EINVAL, "the plan is for %d ranks, this job has %d",
				  plan->ranks, config->comm->ranks);
	if (rc == 0) {
		rc = gf_contest_gradients(&config->element, err);
		if (rc)
			gf_error_prefix(err, "a plan's messages");
	}
	if (rc == 0 && !gf_selection_has(&plan->selection, GF_SELECT_LOSSLESS)) {
		rc = check(plan, config, err);
		rows->count = 1;
		rows->list = gf_xcalloc(1, sizeof(*rows->list));
		return rc ?: run_exchange(plan, config, rows->list, err);
	}
	for (i = 0; i < plan->nmessages; i++)
		elems += gf_plan_message_elems(plan, i);
	rc = rc ?: gf_contest_allreduce_open(config, elems, &bench, err);
	if (rc)
		return rc;
	rows->count = plan->nmessages + 1;
	rows->list = gf_xcalloc(rows->count, sizeof(*rows->list));
	rc = gf_contest_allreduce_plan(bench, plan, rows->list, err);
	gf_contest_allreduce_close(bench);
	return rc;
}
