/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A method: an exchange, and the update rule that applies what comes of it.
 *
 * Is a gradient that has come applied? Not if it is infinite or not a number: then a smaller loss
 * scale will do, or the step is skipped, or the run ends. All sums are the same on all ranks, so
 * all come to the same verdict.
 *
 * A host that updates judges first. A GPU that updates by itself heeds a flag that it has set, and
 * the host is a step ahead. In step t + 1 the host learns what became of the gradient that was
 * applied in step t, once there is work enqueued for the device to go on with. If the messages
 * depend on the answer, as scaled gradients do, the host learns it before the first of them, else
 * at the end. That is in time: nothing later has been applied by then.
 */
#include "trainer/method_parts.h"

#include <stdio.h>

#include "base/heap.h"
#include "collectives/codecs/codec.h"
#include "cuda/gpu.h"

/*
 * When the parts of a step began and ended on a device: timed events on the stream that computes,
 * of the step that is being enqueued and of the one before.
 */
enum mark {
	MARK_BEGUN,
	MARK_FORWARD,
	MARK_BACKWARD,
	MARK_JOINED, /* every message has ended */
	MARK_UPDATED,
	MARKS
};

struct marks {
	struct gf_gpu *gpu; /* borrowed */
	struct gf_gpu_stream *stream;
	struct gf_gpu_event *at[2][MARKS]; /* step % 2 */
};

/* Reads the durations of a step that has ended. */
static int marks_read(struct marks *k, size_t step, struct gf_train_durations *d,
		      struct gf_error *err)
{
	double *const parts[] = {&d->forward_s, &d->backward_s, &d->wait_s, &d->update_s};
	struct gf_gpu_event *const *at = k->at[step % 2];
	int i, rc = 0;

	for (i = 0; i + 1 < MARKS && !rc; i++)
		rc = k->gpu->ops->event_s(k->gpu, at[i], at[i + 1], parts[i], err);
	return rc;
}

struct gf_method_ahead {
	/* The gradient that was applied last, whose slot may be taken: its step and its loss
	 * scale. */
	size_t step;
	double scale;
	struct marks marks;
	struct gf_train_durations durations;
	bool has_durations;
};

static int check_shards(const struct gf_plan *plan, const struct gf_training *training,
			struct gf_error *err)
{
	const struct gf_optimizer_ops *ops = gf_optimizer_find(training->optimizer, NULL);

	if (!gf_shard_is_used(&plan->shard))
		return 0;
	if (gf_shard_has(&plan->shard, GF_SHARD_PARAMETERS))
		return gf_error_set(err, -ENOTSUP,
				    "shards between GPUs: want none of parameters, got %s, which "
				    "--device cpu runs",
				    gf_shard_plans[plan->shard.method]->name);
	for (size_t i = 0; i < plan->nmessages; i++)
		if (!gf_codec_is_plain(plan->messages[i].codec))
			return gf_error_set(err, -ENOTSUP,
					    "message %zu: want codec \"f32\" for shards between "
					    "GPUs, got \"%s\", which --device cpu runs",
					    i, plan->messages[i].codec);
	if ((ops && ops->ratio) || training->clip_norm > 0)
		return gf_error_set(err, -ENOTSUP,
				    "shards between GPUs: want an optimizer that asks for no norm, "
				    "got %s, which --device cpu runs",
				    training->clip_norm > 0 ? "clipping" : ops->name);
	return 0;
}

int gf_method_check_gpu(const struct gf_plan *plan, const struct gf_training *training,
			struct gf_error *err)
{
	const struct gf_optim_config optim = {
		.name = training->optimizer,
	};
	int rc = gf_exchange_check_plan(plan, true, err);

	rc = rc ?: check_shards(plan, training, err);
	return rc ? rc
		  : gf_train_update_check(
			    &optim, gf_selection_has(&plan->selection, GF_SELECT_PIECES), err);
}

/* --- opening and closing -------------------------------------------------- */

static int open_update(struct gf_method *m, struct gf_error *err)
{
	const struct gf_method_env *k = &m->env;
	struct gf_optim_config optim = {0};

	if (k->optim)
		optim = *k->optim;
	if (gf_selection_has(&k->plan->selection, GF_SELECT_MOMENTUM))
		optim.momentum = 0;
	m->updater = (struct gf_update){
		.params = k->params,
		.offsets = gf_exchange_pool(m->exchange)->offsets,
		.plan = k->plan,
		.shapes = k->shapes,
		.watch = k->watch,
		.shards = gf_method_shards_list(m),
	};
	return gf_update_open(&m->updater, k->optim ? &optim : NULL, &k->place, err);
}

static int open_ahead(struct gf_method *m, struct gf_error *err)
{
	const struct gf_place *at = &m->env.place;
	struct marks *k;
	int rc = 0;

	if (!at->nccl)
		return 0;
	m->ahead = gf_xcalloc(1, sizeof(*m->ahead));
	k = &m->ahead->marks;
	*k = (struct marks){.gpu = at->gpu, .stream = at->stream};
	for (size_t i = 0; i < 2 * MARKS && !rc; i++)
		rc = k->gpu->ops->event_new(k->gpu, true, &k->at[i / MARKS][i % MARKS], err);
	return rc;
}

int gf_method_open(struct gf_method **method, const struct gf_method_env *env, struct gf_error *err)
{
	struct gf_method *m = gf_xcalloc(1, sizeof(*m));
	struct gf_exchange_env exchange = {
		.comm = env->comm,
		.plan = env->plan,
		.shapes = env->shapes,
		.epoch_steps = env->epoch_steps,
		.momentum = env->optim ? env->optim->momentum : 0,
		.scaled = env->scale.used,
		.timeout_s = env->timeout_s,
		.threads = env->threads,
		.awaited_at_once = true,
		.place = env->place,
	};
	struct gf_team team;
	int rc;

	*method = m;
	m->env = *env;
	m->scale = env->scale;
	rc = gf_comm_agree(env->comm, gf_method_shards_open(m, err), err);
	if (rc)
		return rc;
	exchange.shards = gf_method_shards_list(m);
	rc = gf_exchange_open(&m->exchange, &exchange, err);
	if (rc)
		return rc;
	rc = open_update(m, err);
	rc = rc ?: open_ahead(m, err);
	team = gf_method_team(m);
	rc = gf_team_agree(&team, rc, err);
	if (!rc)
		gf_method_late_open(m);
	if (!rc && m->shards)
		gf_method_shards_begin(m);
	return rc;
}

void gf_method_close(struct gf_method *m)
{
	if (!m)
		return;
	if (m->env.comm->broken) {
		gf_exchange_abandon(m->exchange);
		return;
	}
	gf_exchange_close(m->exchange);
	gf_update_close(&m->updater);
	for (size_t i = 0; m->ahead && i < 2 * MARKS; i++) {
		struct marks *k = &m->ahead->marks;

		k->gpu->ops->event_free(k->gpu, k->at[i / MARKS][i % MARKS]);
	}
	free(m->ahead);
	gf_method_late_close(m);
	gf_method_shards_close(m);
	free(m);
}

void gf_method_state(struct gf_method *m, struct gf_state *s)
{
	gf_update_state(&m->updater, s);
	gf_state_add_words(s, GF_STATE_SHARED, "train.skipped", "U64", &m->skipped, 1);
	if (m->scale.dynamic) {
		gf_state_add_words(s, GF_STATE_SHARED, "loss_scale.now", "F64", &m->scale.now, 1);
		gf_state_add_words(s, GF_STATE_SHARED, "loss_scale.good", "U64", &m->scale.good, 1);
		if (m->scale.half)
			gf_state_add_words(s, GF_STATE_SHARED, "loss_scale.next", "F64",
					   &m->scale.next, 1);
	}
	gf_exchange_state(m->exchange, s);
}

struct gf_team gf_method_team(const struct gf_method *m)
{
	return (struct gf_team){
		.comm = m->env.comm, .exchange = m->exchange, .workers = m->env.plan->ranks};
}

/* --- a step: out ---------------------------------------------------------- */

static void keep(struct gf_method *m, int rc, const struct gf_error *err)
{
	if (m->rc || !rc)
		return;
	m->rc = rc;
	m->reason = *err;
}

static int kept(const struct gf_method *m, struct gf_error *err)
{
	if (m->rc)
		*err = m->reason;
	return m->rc;
}

/* Marks how far the stream is in the step. */
static void mark(struct gf_method *m, enum mark what)
{
	struct marks *k = m->ahead ? &m->ahead->marks : NULL;
	struct gf_error err = {""};

	if (k)
		keep(m,
		     k->gpu->ops->record(k->gpu, k->at[m->made->number % 2][what], k->stream, &err),
		     &err);
}

/* Why a gradient may not be finite, which ends the run: "training has diverged", or a fixed scale
 * is too large. */
static void blame(const struct gf_loss_scale *s, char text[96])
{
	static const char diverged[] = "training has diverged";

	if (s->dynamic || s->now <= GF_LOSS_SCALE_LEAST)
		snprintf(text, 96, "%s", diverged);
	else
		snprintf(text, 96, "the loss scale of %.0f is too large, or %s", s->now, diverged);
}

/* Ahead of a GPU: what became of the gradient applied last, which the device is done with. */
static void learn(struct gf_method *m, bool always)
{
	struct gf_error err = {""};
	bool bad = false, overflow;
	char why[96];
	int rc;

	if (m->rc)
		return;
	rc = gf_exchange_learn(m->exchange, always, &bad, &err);
	if (rc < 0)
		keep(m, rc, &err);
	if (rc)
		return;
	overflow = gf_loss_scale_note(&m->scale, m->ahead->scale, bad);
	m->skipped += bad;
	if (!bad || overflow || m->env.skip_bad)
		return;
	blame(&m->scale, why);
	keep(m,
	     gf_error_set(&err, 1, "a gradient is infinite or not a number in step %zu: %s",
			  m->ahead->step, why),
	     &err);
}

static void begin(struct gf_method *m)
{
	m->made = gf_exchange_begin(m->exchange, m->step, gf_loss_scale_now(&m->scale), 0);
	mark(m, MARK_BEGUN);
}

void gf_method_begin(struct gf_method *m, size_t step)
{
	m->step = step;
	/* messages of shards come before the first gradient */
	if (m->shards && m->ahead)
		learn(m, m->env.scale.used);
	if (m->late.used)
		gf_method_late_begin(m);
	else
		begin(m);
	if (m->shards)
		gf_method_shards_step(m);
}

int gf_method_memory(struct gf_method *m, float **grads, struct gf_error *err)
{
	int rc = gf_method_take_rest(m, err);

	if (rc)
		return rc;
	if (m->late.used)
		begin(m);
	*grads = m->made->grads;
	return 0;
}

void gf_method_forward_end(struct gf_method *m)
{
	mark(m, MARK_FORWARD);
	if (m->shards)
		gf_method_shards_turn(m);
}

/* Ahead of a GPU messages are listed when the first gradient is there, since what they are may
 * depend on how the step before has ended. */
void gf_method_ready(struct gf_method *m, size_t tensor)
{
	if (m->ahead) {
		learn(m, m->env.scale.used);
		if (m->rc)
			return;
		m->made->scale = gf_loss_scale_now(&m->scale);
	}
	gf_exchange_ready(m->made, &tensor, 1);
	gf_method_early(m, tensor);
}

void gf_method_early(struct gf_method *m, size_t tensor)
{
	if (m->shards)
		gf_method_shards_made(m, tensor);
}

void gf_method_backward_end(struct gf_method *m)
{
	m->handled_s = gf_exchange_totals(m->exchange).handling_s;
	mark(m, MARK_BACKWARD);
	if (m->shards)
		gf_method_shards_end(m);
	if (m->rc > 0)
		return;
	gf_exchange_backward_end(m->made);
}

/* --- a step: back --------------------------------------------------------- */

int gf_method_refuse(const struct gf_method *m, size_t step, struct gf_select_bad bad,
		     struct gf_error *err)
{
	char why[96];

	blame(&m->scale, why);
	return gf_error_set(
		err, 1,
		"the gradient of %s is infinite or not a number in step %zu (element %zu): %s",
		m->env.plan->model->tensors[bad.tensor].name, step, bad.element, why);
}

/* The oldest gradient under way is waited for, by the device. A run that is to end has told nobody
 * of this step's messages, or of all: the same on all ranks. */
static int exchange_ahead(struct gf_method *m, bool full, struct gf_error *err)
{
	struct gf_method_ahead *a = m->ahead;
	const bool was_due = m->applied != NULL;
	struct gf_error own = {""};
	int rc;

	m->timed = 0;
	if (!m->rc) {
		keep(m, gf_exchange_next(m->exchange, full, &m->applied, &own), &own);
		learn(m, true);
	}
	rc = kept(m, err);
	if (rc)
		return rc;
	mark(m, MARK_JOINED);
	if (was_due) { /* the durations of the step before, and the times of its messages */
		keep(m, marks_read(&a->marks, m->made->number - 1, &a->durations, &own), &own);
		a->has_durations = true;
		m->timed = a->step;
	}
	if (!m->applied)
		return 0;
	a->step = m->applied->number;
	a->scale = m->applied->scale;
	return 0;
}

int gf_method_exchange(struct gf_method *m, struct gf_error *err)
{
	const bool full = m->step > m->env.plan->pipeline_warmup_steps;
	int rc;

	if (m->late.used)
		return gf_method_late_exchange(m, err);
	m->skip = false;
	if (m->shards && m->late.rc) {
		*err = m->late.err;
		return m->late.rc;
	}
	if (m->ahead)
		return exchange_ahead(m, full, err);
	rc = gf_exchange_next(m->exchange, full, &m->applied, err);
	m->timed = m->applied ? m->applied->number : 0;
	return rc;
}

/* Is what has come to be skipped? */
int gf_method_judge(struct gf_method *m, struct gf_error *err)
{
	struct gf_select_bad bad;
	bool overflow;
	int rc;

	if (m->late.used || m->ahead || !m->applied || !m->env.params)
		return 0;
	rc = m->shards ? gf_method_shards_inspect(m, &bad, err)
		       : gf_exchange_sums(m->applied, GF_EXCHANGE_WHOLE, NULL, &bad, err);
	if (rc)
		return rc;
	overflow = gf_loss_scale_note(&m->scale, m->applied->scale, bad.found);
	if (bad.found && !overflow && !m->env.skip_bad)
		return gf_method_refuse(m, m->applied->number, bad, err);
	m->skip = bad.found;
	m->skipped += bad.found;
	return 0;
}

/* The step that is due. */
static void apply(struct gf_method *m, double lr)
{
	struct gf_select_sums sums;
	struct gf_error err = {""};
	int rc = gf_exchange_sums(m->applied, GF_EXCHANGE_WHOLE, &sums, NULL, &err);

	keep(m, rc, &err);
	if (rc)
		return;
	if (m->shards && !m->ahead) {
		gf_method_shards_update(m, lr, &sums);
		return;
	}
	gf_update_sums(&m->updater, lr, &sums,
		       gf_selection_has(&m->env.plan->selection, GF_SELECT_PIECES),
		       m->applied->flag);
}

void gf_method_update(struct gf_method *m, double lr)
{
	struct gf_gpu *gpu = m->env.place.gpu;
	struct gf_error err = {""};

	if (m->late.used) {
		gf_method_late_update(m, lr);
		return;
	}
	/* a replay updates nothing */
	if (m->applied && m->env.params && !m->skip && !m->rc)
		apply(m, lr);
	mark(m, MARK_UPDATED); /* before what `learn` waits for */
	if (m->applied)
		keep(m, gf_exchange_take(m->applied, !m->skip && !m->rc, &err), &err);
	if (m->ahead)
		keep(m, gpu->ops->check(gpu, &err), &err);
	m->scale.step = m->scale.next = m->scale.now;
}

/* --- between steps -------------------------------------------------------- */

int gf_method_finish(struct gf_method *m, struct gf_error *err)
{
	int rc = gf_method_take_rest(m, err);

	if (m->ahead)
		learn(m, true);
	rc = rc ?: kept(m, err);
	return rc ?: gf_exchange_settle(m->exchange, err);
}

int gf_method_settle(struct gf_method *m, struct gf_error *err)
{
	int rc = gf_method_finish(m, err);

	/* what the last update left on a GPU */
	return rc ?: gf_update_fetch(&m->updater, err);
}

/* The parameters are the net's to send. */
int gf_method_restore(struct gf_method *m, size_t steps, struct gf_error *err)
{
	int rc = gf_update_send(&m->updater, err);

	m->scale.step = m->scale.next;
	return rc ?: gf_exchange_restore(m->exchange, steps, err);
}

/* --- what is known of it -------------------------------------------------- */

bool gf_method_asks(const struct gf_method *m)
{
	return m->late.used || m->shards;
}

struct gf_loss_scale gf_method_scale(const struct gf_method *m)
{
	return m->scale;
}

uint64_t gf_method_skipped(const struct gf_method *m)
{
	return m->skipped;
}

uint64_t gf_method_sent_bytes(struct gf_method *m)
{
	const uint64_t before = m->told_bytes;

	m->told_bytes = gf_exchange_totals(m->exchange).waited_bytes;
	return m->told_bytes - before;
}

const struct gf_train_durations *gf_method_durations(const struct gf_method *m)
{
	return m->ahead && m->ahead->has_durations ? &m->ahead->durations : NULL;
}
