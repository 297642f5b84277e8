/* SPDX-License-Identifier: BSD-3-Clause */
#include "trainer/train.h"

#include <math.h>
#include <string.h>

#include "base/clock.h"
#include "base/heap.h"
#include "data/loader.h"
#include "trainer/run_memory.h"

/* The steps since an epoch, or the run, began. */
struct stretch {
	size_t after_step;
	double began_s;
	struct gf_train_times times; /* of the run, before it */
};

static struct gf_train_times times_of(const struct gf_timeline *timeline, const struct gf_method *m)
{
	struct gf_totals totals = gf_exchange_totals(gf_method_team(m).exchange);

	return (struct gf_train_times){timeline->parts, totals.hooks_s, totals.coding_s};
}

static struct gf_train_times times_now(const struct gf_trainer *t)
{
	return times_of(&t->result->timeline, t->method);
}

static struct gf_train_times times_since(const struct gf_train_times *before,
					 struct gf_train_times now)
{
	now.step.load_s -= before->step.load_s;
	now.step.compute_s -= before->step.compute_s;
	now.step.update_s -= before->step.update_s;
	now.step.exposed_s -= before->step.exposed_s;
	now.step.handling_s -= before->step.handling_s;
	now.select_s -= before->select_s;
	now.codec_s -= before->codec_s;
	return now;
}

static struct stretch stretch_from(const struct gf_trainer *t, size_t step)
{
	return (struct stretch){step, gf_clock_s(), times_now(t)};
}

/* --- what is told --------------------------------------------------------- */

/* Rank 0 alone tells; should it fail, all stop. */
static int tell(struct gf_trainer *t, const struct gf_train_row *rows, size_t nrows,
		struct gf_error *err)
{
	const struct gf_train_watch *w = &t->config->watch;
	int rc = 0;

	for (size_t i = 0; !rc && i < nrows && w->row && t->team.comm->rank == 0; i++)
		rc = w->row(w->ctx, &rows[i], err);
	return gf_team_agree(&t->team, rc, err);
}

static size_t epoch_of(const struct gf_trainer *t, size_t step)
{
	return step ? (step - 1) / t->epoch_steps + 1 : 0;
}

static double rate_of(const struct gf_trainer *t, size_t step)
{
	return step ? gf_rate_at(&t->rate, step - 1) : 0;
}

static double perplexity_of(const struct gf_trainer *t, double loss)
{
	return t->config->data->vocabulary ? exp(loss) : 0;
}

/* The steps since the last meeting. */
static int tell_steps(struct gf_trainer *t, struct gf_error *err)
{
	struct gf_train_row *rows;
	size_t nrows, i;
	int rc = gf_tally_meet(&t->tally, &t->team, &rows, &nrows, err);

	if (rc)
		return rc;
	for (i = 0; i < nrows; i++) {
		rows[i].epoch = epoch_of(t, rows[i].step);
		rows[i].rate = rate_of(t, rows[i].step);
		rows[i].perplexity = perplexity_of(t, rows[i].loss);
	}
	return tell(t, rows, nrows, err);
}

/* A resumed epoch's losses are those of all its steps, its time is that of the steps which were run
 * here. */
static int tell_epoch(struct gf_trainer *t, size_t step, const struct stretch *here,
		      struct gf_error *err)
{
	struct gf_train_row *row = &t->result->train;
	size_t steps = step - here->after_step;

	*row = gf_tally_epoch(&t->tally);
	row->epoch = epoch_of(t, step);
	row->step = step;
	row->rate = rate_of(t, step);
	row->seconds = gf_clock_s() - here->began_s;
	row->times = times_since(&here->times, times_now(t));
	row->samples_per_s =
		(double)(steps * t->tally.batch) * t->config->plan->ranks / row->seconds;
	row->perplexity = perplexity_of(t, row->loss);
	row->memory = gf_train_memory(t);
	return tell(t, row, 1, err);
}

/* --- what is due after a step --------------------------------------------- */

/* Batch norm's mean over ranks, which tests and checkpoints show. */
static int average_running(struct gf_trainer *t, struct gf_error *err)
{
	size_t count;
	const float *own = gf_compute_running(&t->compute, &count);
	int rc = gf_team_agree(&t->team, gf_compute_fetch(&t->compute, err), err);

	return rc ?: gf_team_mean(&t->team, own, t->running, count, err);
}

/* Tests are of the outer parameters, which change places with a group's own, and back. */
static int swap_outer(struct gf_trainer *t, struct gf_error *err)
{
	const size_t n = gf_model_param_count(t->config->model);
	float *outer, own;

	if (!t->groups.outer)
		return 0;
	outer = gf_outer_params(t->groups.outer);
	for (size_t i = 0; i < n; i++) {
		own = t->params[i];
		t->params[i] = outer[i];
		outer[i] = own;
	}
	return gf_compute_send(&t->compute, err);
}

/* By how many steps the parameters that are tested are older. */
static size_t steps_behind(const struct gf_trainer *t, size_t step)
{
	size_t fragment, n = 0;

	/* the end of the run has brought all ranks' together */
	if (!t->groups.outer || step == t->total_steps)
		return 0;
	while (n < step && !gf_period_ends(&t->config->plan->period, step - n, &fragment))
		n++;
	return n;
}

static int test(struct gf_trainer *t, size_t step, struct gf_error *err)
{
	const struct gf_dataset *data = t->config->data;
	size_t samples = gf_loader_tested(data, t->config->test_samples) * gf_dataset_labels(data);
	double began = gf_clock_s(), loss;
	struct gf_score score;
	int rc = gf_method_finish(t->method, err);

	if (!rc && t->groups.outer)
		rc = gf_method_settle(t->method, err);
	rc = gf_groups_agree(&t->groups, t->config, rc, err);
	rc = rc ?: average_running(t, err);
	rc = rc ?: gf_method_whole(t->method, true, err);
	if (rc)
		return rc;
	rc = swap_outer(t, err);
	rc = rc ?: gf_compute_test(&t->compute, t->running, &score, err);
	rc = rc ?: swap_outer(t, err);
	rc = rc ?: gf_method_whole(t->method, false, err);
	rc = gf_team_agree(&t->team, rc, err);
	rc = rc ?: gf_tally_sum(&t->team, &score, err);
	if (rc)
		return rc;
	loss = score.loss;
	if (!isfinite(loss))
		return gf_error_set(err, 1, "the test loss after step %zu is %s", step,
				    isnan(loss) ? "not a number" : "infinite");
	t->result->test = (struct gf_train_row){
		.part = "test",
		.epoch = epoch_of(t, step),
		.step = step,
		.steps_behind = steps_behind(t, step),
		.rate = rate_of(t, step),
		.loss = loss / (double)samples,
		.perplexity = perplexity_of(t, loss / (double)samples),
		.correct = score.correct,
		.samples = samples,
		.seconds = gf_clock_s() - began,
	};
	t->result->test.samples_per_s = (double)samples / t->result->test.seconds;
	return tell(t, &t->result->test, 1, err);
}

/* Waits for what is under way, in both exchanges. */
static int settle_groups(struct gf_groups *g, struct gf_error *err)
{
	int rc = gf_method_settle(g->method, err);

	return rc || !g->outer ? rc : gf_outer_settle(g->outer, err);
}

static int settle(struct gf_trainer *t, struct gf_error *err)
{
	return gf_groups_agree(&t->groups, t->config, settle_groups(&t->groups, err), err);
}

static int save(struct gf_trainer *t, size_t step, struct gf_error *err)
{
	int rc = average_running(t, err);

	rc = rc ?: settle(t, err);
	return rc ?: gf_snapshot_write(&t->team, t->config->folder, step, &t->id, &t->state, err);
}

/* Is what the ranks, and those of a group, have in common the same, bit for bit? 1 if not. */
static int compare(struct gf_trainer *t, size_t step, struct gf_error *err)
{
	struct gf_groups *g = &t->groups;
	struct gf_team group = gf_method_team(g->method);
	int rc = settle(t, err);

	rc = rc ?: gf_team_compare(&t->team, step, &t->state, err);
	if (!rc && g->outer)
		rc = gf_team_compare(&group, step, &g->common, err);
	return gf_groups_agree(&t->groups, t->config, rc, err);
}

struct due {
	bool meeting, comparison, epoch, test, checkpoint;
};

static struct due due_after(const struct gf_trainer *t, size_t step)
{
	bool last = step == t->total_steps;
	struct due d = {.epoch = step % t->epoch_steps == 0};

	/* the outer parameters have an exchange to come */
	d.test = last ? !t->groups.outer : d.epoch;
	d.comparison = t->check_every && (last || step % t->check_every == 0);
	d.checkpoint = t->config->checkpoint && (last || step % t->checkpoint_every == 0);
	d.meeting = last || d.test || d.comparison || d.checkpoint ||
		    t->tally.pending == GF_TALLY_STEPS;
	return d;
}

static int after_step(struct gf_trainer *t, size_t step, struct stretch *here, struct gf_error *err)
{
	struct due due = due_after(t, step);
	int rc = 0;

	if (due.meeting)
		rc = tell_steps(t, err);
	if (!rc && due.epoch)
		rc = tell_epoch(t, step, here, err);
	if (!rc && due.comparison)
		rc = compare(t, step, err);
	if (!rc && due.test)
		rc = test(t, step, err);
	if (!rc && due.checkpoint)
		rc = save(t, step, err);
	if (due.epoch)
		*here = stretch_from(t, step);
	return rc;
}

/* Adds up the bytes that all ranks have sent. */
static int add_up_bytes(const struct gf_groups *g, const struct gf_train_config *k,
			struct gf_train_result *result, struct gf_error *err)
{
	struct gf_team team = gf_groups_team(g, k);
	size_t ranks = (size_t)team.comm->ranks, r;
	uint64_t steps = result->last_step - result->first_step + 1;
	uint64_t own[2] = {gf_exchange_totals(gf_method_team(g->method).exchange).sent_bytes +
				   (g->outer ? gf_outer_totals(g->outer).sent_bytes : 0),
			   steps * gf_groups_dense_bytes(g)};
	GF_FREED uint64_t *all = gf_xcalloc(2 * ranks, sizeof(*all));
	int rc = gf_team_allgather(&team, own, sizeof(own), all, err);

	for (r = 0; r < ranks && !rc; r++) {
		result->sent_bytes += all[2 * r];
		result->dense_bytes += all[2 * r + 1];
	}
	result->times = times_of(&result->timeline, g->method);
	if (g->outer)
		result->outer = gf_outer_totals(g->outer);
	return rc;
}

/* --- the loop ---------------------------------------------------------------
 */

static void tell_progress(const struct gf_train_config *k, size_t step, size_t steps)
{
	if (k->watch.progress && k->comm->rank == 0)
		k->watch.progress(k->watch.ctx, step, steps);
}

static void tell_begin(const struct gf_train_config *k)
{
	if (k->watch.begin && k->comm->rank == 0)
		k->watch.begin(k->watch.ctx);
}

static int find_slowest(struct gf_team *team, struct gf_speed_pass *pass, struct gf_error *err)
{
	GF_FREED double *all = gf_xcalloc((size_t)team->comm->ranks, sizeof(*all));
	int rc = gf_team_allgather(team, &pass->seconds, sizeof(*all), all, err);

	for (int r = 0; r < team->comm->ranks; r++)
		pass->slowest_s = fmax(pass->slowest_s, all[r]);
	return rc;
}

/* By a micro-batch of the run's first or last step; a server computes nothing.
 */
static int measure_speed(struct gf_trainer *t, size_t step, size_t part, struct gf_speed_pass *pass,
			 struct gf_error *err)
{
	const struct gf_train_config *k = t->config;
	const bool serves = k->comm->rank >= k->plan->ranks;
	int rc;

	if (t->result->first_step > t->total_steps || !gf_speed_wanted(k->plan, &k->training))
		return 0;
	rc = serves ? 0 : t->compute.ops->load(&t->compute, step, part, err);
	if (rc == 0 && !serves)
		rc = gf_speed_measure(&t->compute, gf_model_param_count(k->model), pass, err);
	rc = gf_team_agree(&t->team, rc, err);
	return rc ?: find_slowest(&t->team, pass, err);
}

static int run(struct gf_trainer *t, struct gf_error *err)
{
	struct gf_speed *speed = &t->result->speed;
	struct stretch here = stretch_from(t, t->result->last_step);
	const uint64_t skipped = gf_method_skipped(t->method);
	struct gf_step_outcome outcome;
	int rc = 0;

	t->result->warmup_steps = gf_selection_warmup(&t->config->plan->selection, t->epoch_steps);
	/* first of all in this run's steps and parts: a checkpoint of the other ranks may have a
	 * higher step and would count as newer */
	if (t->resharded)
		rc = save(t, t->result->last_step, err);
	rc = rc ?: measure_speed(t, t->result->first_step, 0, &speed->first, err);
	for (size_t step = t->result->first_step; !rc && step <= t->total_steps; step++) {
		rc = gf_train_step(&t->stepper, step, rate_of(t, step), &outcome, err);
		rc = rc ?: gf_statistics_meet(t->stepper.statistics, &t->team, err);
		if (rc) {
			/* 1 is the same on all ranks: they may part in order */
			t->team.comm->broken |= rc < 0 || t->groups.outer;
			break;
		}
		gf_tally_note(&t->tally, step, &outcome);
		t->result->last_step = step;
		tell_progress(t->config, step, t->total_steps);
		rc = after_step(t, step, &here, err);
	}
	rc = rc ?: gf_groups_finish(&t->groups, t->config, t->result->last_step + 1, err);
	/* a resumed run may have nothing left to do but to say how good it is
	 */
	if (!rc && (!t->result->test.part || t->groups.outer))
		rc = test(t, t->result->last_step, err);
	rc = rc ? rc
		: measure_speed(t, t->result->last_step, t->config->training.accumulate - 1,
				&speed->last, err);
	if (!rc)
		rc = gf_statistics_conclude(t->stepper.statistics, &t->team, &t->result->statistics,
					    err);
	if (!rc)
		gf_speed_compare(t->config->plan, &t->config->training, speed);
	t->result->memory = gf_train_memory(t);
	t->result->skipped = gf_method_skipped(t->method) - skipped;
	if (gf_method_scale(t->method).used)
		t->result->scale = gf_method_scale(t->method).now;
	return rc ?: add_up_bytes(&t->groups, t->config, t->result, err);
}

int gf_train_replay(const struct gf_train_config *config, struct gf_train_result *result,
		    struct gf_error *err)
{
	struct gf_groups groups = {0};
	struct gf_method_env env = {
		.comm = gf_groups_comm(config),
		.plan = gf_groups_plan(&groups, config),
		.timeout_s = config->timeout_s,
		.asks = true,
	};
	struct gf_compute compute;
	struct gf_method *method = NULL;
	struct gf_step_outcome outcome;
	struct gf_stepper stepper = {
		&compute, NULL, &result->timeline, &groups, 1, NULL, NULL, NULL,
	};
	size_t steps = config->steps ? config->steps : GF_TRAIN_REPLAY_STEPS, step;
	int rc;

	memset(result, 0, sizeof(*result));
	result->first_step = 1;
	result->warmup_steps = gf_selection_warmup(&config->plan->selection, 0);
	gf_timeline_init(&result->timeline, config->plan->model->ntensors, config->plan->nmessages);
	gf_compute_replay(config->plan, config->comm->rank >= config->plan->ranks, &compute);
	rc = gf_exchange_check_plan(env.plan, false, err);
	rc = rc ?: gf_groups_open(&groups, config, NULL, NULL, err);
	if (!rc) {
		rc = gf_method_open(&method, &env, err);
		stepper.method = groups.method = method;
		rc = gf_groups_agree(&groups, config, rc, err);
	}
	if (!rc)
		tell_begin(config);
	for (step = 1; !rc && step <= steps; step++) {
		rc = gf_train_step(&stepper, step, 0, &outcome, err);
		if (rc)
			config->comm->broken = true;
		else
			result->last_step = step;
		tell_progress(config, step, steps);
	}
	if (!rc) {
		rc = settle_groups(&groups, err);
		config->comm->broken |= rc != 0;
	}
	rc = rc ?: add_up_bytes(&groups, config, result, err);
	gf_groups_lost(config);
	gf_method_close(method);
	gf_groups_close(&groups);
	compute.ops->close(&compute);
	return rc;
}

int gf_train_run(const struct gf_train_config *config, struct gf_train_result *result,
		 struct gf_error *err)
{
	struct gf_trainer t;
	int rc;

	memset(result, 0, sizeof(*result));
	result->memory.before_bytes = gf_train_resident();
	result->device = config->place.gpu ? config->place.gpu->name : NULL;
	result->transport = config->place.nccl ? config->place.nccl->name : config->comm->ops->name;
	gf_timeline_init(&result->timeline, config->plan->model->ntensors, config->plan->nmessages);
	rc = gf_trainer_open(&t, config, result, err);
	if (!rc) {
		tell_begin(config);
		rc = run(&t, err);
	}
	gf_trainer_close(&t);
	return rc;
}
