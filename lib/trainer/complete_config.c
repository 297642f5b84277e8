/* SPDX-License-Identifier: BSD-3-Clause */
/* The defaults of a training, and how long it runs. */
#include "trainer/trainer.h"

#include <float.h>
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "base/array.h"
#include "base/heap.h"
#include "base/text.h"
#include "data/augment.h"
#include "documents/algorithm_traits.h"
#include "documents/optimizer_bounds.h"
#include "json/keys.h"
#include "simulator/predict.h"
#include "simulator/uncertainty.h"
#include "trainer/optim/optimizer.h"
#include "trainer/options.h"
#include "trainer/optim/rate.h"
#include "lists/gf_optimizers.h"

_Static_assert((int)GF_SCHEDULE_POLY == (int)GF_RATE_POLY &&
		       (int)GF_SCHEDULE_COSINE == (int)GF_RATE_COSINE,
	       "a document's schedules are the optimiser's");

/* Values that suit the shipped models and data on a few ranks. */
#define DEFAULT_BATCH      16
#define DEFAULT_RATE       0.1
#define DEFAULT_RATE_BATCH 64
/* Of convolutions without batch normalisation: by 0.1 cifar100-cnn ends where no unit is active. */
#define PLAIN_RATE 0.02
/* Values for language models: recurrent layers want large steps, bounded against the rare huge
 * gradient. Their weights do not bear decay at such a rate. */
#define TEXT_RATE      4
#define TEXT_CLIP_NORM 5
/* Of SGD with attention, where by 4 the loss is soon infinite. */
#define ATTENTION_RATE 0.5

static const struct gf_training defaults = {
	.epochs = 10,
	.batch = DEFAULT_BATCH,
	.accumulate = 1,
	.seed = 1,
	.augment = (char *)"none",
	.optimizer = (char *)"sgd",
	.momentum = 0.9,
	.weight_decay = 5e-3,
	.eta = 0.02,
	.epsilon = 0,
	.clip_norm = 0,
	.rate = NAN, /* not one without the batch that it is for */
	.rate_batch = NAN,
	.warmup_epochs = 1,
	.schedule = GF_SCHEDULE_COSINE,
	.drop_factor = 0.1,
	.power = 2,
	.scaling = GF_SCALING_AUTO,
	.scale = 65536,
	.growth_steps = 1000,
};

static int check(const struct gf_training *t, struct gf_error *err)
{
	struct gf_augment augment;
	int rc;

	if (t->schedule == GF_SCHEDULE_STEP && !t->ndrops)
		return gf_error_set(err, -EINVAL,
				    "schedule \"step\": want the epochs at which the rate drops "
				    "(drop_epochs)");
	rc = gf_augment_parse(t->augment, &augment, err);
	if (rc) {
		gf_error_prefix(err, "--augment");
		return rc;
	}
	return gf_training_check(t, err);
}

static bool has_layer(const struct gf_model *m, enum gf_layer_type type)
{
	size_t l = 0;

	while (l < m->nlayers && m->layers[l].type != type)
		l++;
	return l < m->nlayers;
}

/* The gradients of attention and of norms are of unlike sizes, and SGD's rate suits few of them. A
 * selection that corrects momentum, or has its own, wants an optimiser with momentum all the same,
 * and one whose elements come seldom wants none that goes by their squares. */
static void fill_for_attention(struct gf_training *t, const struct gf_model *m,
			       const struct gf_selection *s)
{
	const bool sgd = gf_selection_has(s, GF_SELECT_PIECES) ||
			 gf_selection_has(s, GF_SELECT_MOMENTUM) ||
			 gf_selection_has(s, GF_SELECT_SELDOM);
	struct gf_training own;

	if (sgd || !has_layer(m, GF_LAYER_ATTENTION))
		return;
	gf_training_init(&own);
	own.optimizer = (char *)"adamw";
	gf_training_fill(t, &own);
}

/* What the optimiser itself wants; an unknown one is refused later. */
static void fill_for_optimizer(struct gf_training *t)
{
	const struct gf_optimizer_ops *ops =
		gf_optimizer_find(t->optimizer ? t->optimizer : defaults.optimizer, NULL);
	struct gf_training own;

	if (!ops)
		return;
	gf_training_init(&own);
	if (isnan(t->rate_batch))
		own.rate = ops->defaults.rate;
	own.weight_decay = ops->defaults.weight_decay;
	own.epsilon = ops->defaults.epsilon;
	own.beta1 = ops->defaults.beta1;
	own.beta2 = ops->defaults.beta2;
	gf_training_fill(t, &own);
}

/* No document shall say what nothing heeds. */
static void fill_defaults(struct gf_training *t)
{
	const struct gf_optimizer_ops *ops =
		gf_optimizer_find(t->optimizer ? t->optimizer : defaults.optimizer, NULL);
	struct gf_training rest = defaults;

	if (ops && !(ops->settings & GF_OPTIM_MOMENTUM))
		rest.momentum = NAN;
	if (isnan(rest.momentum))
		rest.eta = NAN;
	gf_training_fill(t, &rest);
}

static void fill_for_text(struct gf_training *t, bool attention)
{
	struct gf_training text;

	gf_training_init(&text);
	if (isnan(t->rate)) {
		text.rate = attention ? ATTENTION_RATE : TEXT_RATE;
		text.rate_batch = DEFAULT_RATE_BATCH;
	}
	text.weight_decay = 0;
	text.clip_norm = TEXT_CLIP_NORM;
	gf_training_fill(t, &text);
}

/* What defaults depend on besides the optimiser and the plan. */
struct kind {
	const char *name;
	bool plain, text, attention;
};

static void fill(struct gf_training *t, const struct kind *k)
{
	fill_for_optimizer(t);
	if (k->text)
		fill_for_text(t, k->attention);
	if (isnan(t->rate)) {
		t->rate = k->plain ? PLAIN_RATE : DEFAULT_RATE;
		t->rate_batch = DEFAULT_RATE_BATCH;
	}
	fill_defaults(t);
}

/* Values, each with what it is for; one that is there already is not told again. */
struct told {
	const struct gf_field *field;
	char values[8][32];
	size_t n;
	struct gf_text *out;
};

static void tell_default(struct told *told, const struct kind *k, const char *optimizer)
{
	GF_RELEASED(gf_training_release) struct gf_training t = {0};
	GF_RELEASED(gf_text_release) struct gf_text value = {0};
	size_t i;

	gf_training_init(&t);
	t.optimizer = gf_xstrdup_or_null(optimizer);
	fill(&t, k);
	gf_field_print(told->field, &t, &value);
	for (i = 0; i < told->n && value.data && strcmp(told->values[i], value.data) != 0; i++)
		;
	if (value.data && i == told->n && i < GF_ARRAY_LENGTH(told->values)) {
		gf_text_addf(told->out, "%s%s%s%s", i ? "; " : "", k->name, *k->name ? ": " : "",
			     value.data);
		gf_text_one_line(told->values[told->n++], sizeof(told->values[0]), value.data);
	}
}

void gf_train_print_default(const struct gf_field *f, struct gf_text *out)
{
	static const struct kind kinds[] = {
		{""},
		{"convolutions without norms", .plain = true},
		{"text", .text = true},
		{"text with attention", .text = true, .attention = true},
	};
	struct told told = {.field = f, .out = out};

	for (size_t i = 0; i < GF_ARRAY_LENGTH(kinds); i++)
		tell_default(&told, &kinds[i], NULL);
	for (size_t i = 0; gf_optimizers[i]; i++)
		tell_default(&told, &(struct kind){gf_optimizers[i]->name}, gf_optimizers[i]->name);
}

/* Stale gradients do better with a momentum that looks ahead. */
static void fill_for_plan(struct gf_training *t, const struct gf_plan *p)
{
	struct gf_training own;

	gf_training_init(&own);
	if (gf_plan_wants(p, true, 0, NULL).nesterov)
		own.optimizer = (char *)gf_optimizer_nesterov.name;
	gf_training_fill(t, &own);
}

static double momentum_of(const struct gf_training *t)
{
	return isnan(t->momentum) ? 0 : t->momentum;
}

/*
 * What the plan's way to exchange gradients bears of momentum and rate
 * (documents/optimizer_bounds.h), where the user has not set the rate, and a remark. A rate suits
 * the batch that it is for, and a smaller one of this run at that one's peak; a larger batch calls
 * for more, and bears no more. An optimiser without momentum normalises its steps, and the
 * curvature does not bound its rate.
 */
static void suit_plan(struct gf_train_config *k, const struct gf_training *own)
{
	struct gf_training *t = &k->training;
	const struct gf_optimizer_ops *ops = gf_optimizer_find(t->optimizer, NULL);
	const double before = momentum_of(t), peak = gf_train_peak(k);
	const double usual = isnan(t->momentum) ? 0 : defaults.momentum;
	double rate;
	GF_RELEASED(gf_text_release) struct gf_text why = {0}, out = {0};
	struct gf_wants wants;

	if (!ops || !(ops->settings & GF_OPTIM_MOMENTUM) || before >= 1)
		return;
	wants = gf_plan_wants(k->plan, ops->nesterov, before, &why);
	if (!why.length)
		return;
	if (t->clip_norm > 0)
		wants.share = wants.clipped;
	if (!own->optimizer && ops->nesterov)
		gf_text_addf(&out, "optimizer %s (--optimizer) instead of %s, ", t->optimizer,
			     defaults.optimizer);
	if (before > wants.momentum) {
		if (isnan(own->momentum) && isnan(own->rate))
			t->momentum = wants.momentum;
		gf_text_addf(&out, "momentum %g (--optimizer) %s %g, ", wants.momentum,
			     t->momentum < before ? "instead of" : "would do better than", before);
	}
	rate = fmin(peak, wants.share * t->rate) * (1 - momentum_of(t)) / (1 - usual);
	if (isnan(own->rate) && !(fabs(rate - peak) < 1e-9 * peak)) {
		t->rate = rate;
		t->rate_batch = NAN;
		gf_text_addf(&out, "peak rate %.3g (--lr) instead of %.3g, ", rate, peak);
	} else if (!isnan(own->rate) && wants.share < 1) {
		gf_text_addf(&out,
			     "at most %.2g times a rate that suits dense gradients is stable, ",
			     wants.share);
	}
	if (out.length)
		gf_text_addf(&out, "because %s", why.data);
	k->remark = gf_text_take(&out);
}

int gf_train_complete(struct gf_train_config *k, struct gf_error *err)
{
	struct gf_training *t = &k->training;
	const struct gf_training own = *t; /* what the user has set */
	const struct kind kind = {
		.plain = has_layer(k->model, GF_LAYER_CONV) &&
			 !has_layer(k->model, GF_LAYER_BATCHNORM),
		.text = gf_model_vocabulary(k->model) > 0,
		.attention = has_layer(k->model, GF_LAYER_ATTENTION),
	};

	if (isnan(t->rate) && !isnan(t->rate_batch))
		return gf_error_set(err, -EINVAL,
				    "rate: want a peak (--lr) for the batch of %g (for_batch) that "
				    "it is meant for",
				    t->rate_batch);
	fill_for_attention(t, k->model, &k->plan->selection);
	if (!t->optimizer && isnan(t->rate))
		fill_for_plan(t, k->plan);
	if (!t->batch)
		t->batch = k->plan->model->batch_per_rank;
	if (!t->accumulate)
		t->accumulate = gf_model_micro_batches(k->plan->model);
	fill(t, &kind);
	suit_plan(k, &own);
	free(t->producer);
	t->producer = gf_xstrdup("gf-train " GF_VERSION);
	return check(t, err);
}

struct gf_optim_config gf_train_optim(const struct gf_training *t)
{
	return (struct gf_optim_config){
		.name = t->optimizer,
		.momentum = isnan(t->momentum) ? 0 : t->momentum,
		.beta1 = t->beta1,
		.beta2 = t->beta2,
		.weight_decay = t->weight_decay,
		.eta = isnan(t->eta) ? 0 : t->eta,
		.epsilon = t->epsilon,
		.clip_norm = t->clip_norm,
		.exclude = t->exclude,
	};
}

size_t gf_train_global_batch(const struct gf_train_config *k)
{
	return (size_t)k->plan->ranks * k->training.batch * k->training.accumulate;
}

double gf_train_peak(const struct gf_train_config *k)
{
	const struct gf_training *t = &k->training;

	if (isnan(t->rate_batch))
		return t->rate;
	/* what one update sees */
	return gf_rate_scaled(t->rate, t->rate_batch,
			      (double)gf_train_global_batch(k) / k->plan->ranks *
				      gf_plan_group_ranks(k->plan));
}

/* --- how long ---------------------------------------------------------------- */

/* How often replicas are compared by default where an algorithm does not promise the same bits
 * everywhere. */
#define CHECK_STEPS 100

static bool same_bits(const struct gf_message *messages, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (!gf_algorithm_has(messages[i].algorithm, GF_ALGORITHM_SAME_BITS))
			return false;
	return true;
}

static size_t steps_of(const struct gf_trainer *t, double epochs)
{
	return (size_t)llround(epochs * (double)t->epoch_steps);
}

static void set_schedule(struct gf_trainer *t)
{
	const struct gf_training *k = &t->config->training;

	t->drops = gf_xcalloc(k->ndrops + 1, sizeof(*t->drops));
	for (size_t i = 0; i < k->ndrops; i++)
		t->drops[i] = steps_of(t, k->drop_epochs[i]);
	t->rate = (struct gf_rate){
		.peak = gf_train_peak(t->config),
		.shape = (enum gf_rate_shape)k->schedule,
		.warmup_steps = steps_of(t, k->warmup_epochs),
		.total_steps = t->total_steps,
		.power = k->power,
		.floor = isnan(k->floor) ? 0 : k->floor,
		.factor = k->drop_factor,
		.drops = t->drops,
		.ndrops = k->ndrops,
	};
}

int gf_trainer_set_lengths(struct gf_trainer *t, struct gf_error *err)
{
	const struct gf_train_config *k = t->config;
	const struct gf_training *training = &k->training;
	const struct gf_period *period = &k->plan->period;
	size_t samples = k->data->count[GF_PART_TRAIN];
	size_t global = gf_train_global_batch(k);

	t->epoch_steps = samples / global;
	if (t->epoch_steps == 0 && training->accumulate > 1)
		return gf_error_set(err, -EINVAL,
				    "want at least %zu training samples (%d ranks, batch %zu times "
				    "%zu), the data has %zu",
				    global, k->plan->ranks, training->batch, training->accumulate,
				    samples);
	if (t->epoch_steps == 0)
		return gf_error_set(err, -EINVAL,
				    "want at least %zu training samples (%d ranks, batch %zu), the "
				    "data has %zu",
				    global, k->plan->ranks, training->batch, samples);
	t->total_steps = training->epochs * t->epoch_steps;
	set_schedule(t);
	if ((size_t)k->plan->staleness > t->total_steps)
		return gf_error_set(err, -EINVAL,
				    "staleness %d: want at most the %zu steps of the run",
				    k->plan->staleness, t->total_steps);
	/* the schedule is for all epochs, wherever this run stops */
	if (k->steps && k->steps < t->total_steps)
		t->total_steps = k->steps;
	t->checkpoint_every = k->checkpoint_every ? k->checkpoint_every : t->epoch_steps;
	t->check_every = k->check_every;
	if (k->check_every == SIZE_MAX)
		t->check_every = same_bits(k->plan->messages, k->plan->nmessages) &&
						 same_bits(period->messages, period->nmessages)
					 ? 0
					 : CHECK_STEPS;
	/* one rank has nothing to compare itself with */
	if (k->comm->ranks == 1)
		t->check_every = 0;
	return 0;
}

/* Warm-ups that would outlast a run take half of it. False: none would. */
static bool shorten(struct gf_plan *p, size_t steps, size_t epochs)
{
	bool shorter = p->selection.params && gf_record_shorten(p->selection.plan->record,
								p->selection.params, steps, epochs);

	if (p->pipeline_warmup_steps < steps)
		return shorter;
	p->pipeline_warmup_steps = steps / 2;
	return true;
}

static void remark(struct gf_train_config *k, const char *text)
{
	char *said = k->remark;

	k->remark = gf_xasprintf("%s%s%s", said ? said : "", said ? "\n" : "", text);
	free(said);
}

/* All-gathers that may not be late go beside backward. A replay has no gradients to look at. */
static void join_halves(struct gf_train_config *k, struct gf_plan *plan)
{
	struct gf_loss_scale scale = {0};
	GF_FREED char *text = NULL;
	struct gf_error ignored;
	const char *why;

	if (!k->data || !gf_plan_splits(plan) || gf_shard_is_used(&plan->shard))
		return;
	/* what is wrong with it is said by the training */
	(void)gf_loss_scale_init(&scale, &k->training, plan, k->half, &ignored);
	why = gf_method_looks_first(k->training.clip_norm, scale.used, k->skip_bad, k->place.gpu);
	if (!why)
		return;
	for (size_t i = 0; i < plan->nmessages; i++)
		plan->messages[i].half = GF_HALF_ALL;
	/* without costs of its network, the plan's prediction stays */
	if (plan->predicted && !gf_plan_predict(plan, NULL, &ignored))
		(void)gf_uncertainty_predict(plan, NULL, &ignored);
	text = gf_xasprintf("split messages go whole, beside backward: %s, and no all-gather may "
			    "wait for the next forward",
			    why);
	remark(k, text);
}

void gf_train_settle(struct gf_train_config *k, struct gf_plan *plan)
{
	GF_FREED char *text = NULL;
	/* of a replay, which has no epochs: a warm-up in them ends at once */
	double epoch = DBL_MIN;
	double run = (double)(k->steps ? k->steps : GF_TRAIN_REPLAY_STEPS);

	if (k->data && k->data->count[GF_PART_TRAIN]) {
		epoch = floor((double)k->data->count[GF_PART_TRAIN] /
			      (double)gf_train_global_batch(k));
		run = epoch * (double)k->training.epochs;
	}
	gf_plan_settle(plan, epoch, run);
	join_halves(k, plan);
	if (!(epoch >= 1) || !(run >= 1) || !shorten(plan, (size_t)run, k->training.epochs))
		return;
	text = gf_xasprintf(
		"the plan's warm-up outlasts the %.0f steps of the run, and takes half of them",
		run);
	remark(k, text);
}
