/* SPDX-License-Identifier: BSD-3-Clause */
#include "trainer/trainer.h"

#include <errno.h>
#include <float.h>
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>

#include "base/heap.h"
#include "doc/algorithm_traits.h"

/* How often replicas are compared by default where an algorithm does not promise the same bits
 * everywhere. */
#define CHECK_STEPS 100

static bool same_bits(const struct gf_message *messages, size_t n)
{
	size_t i;

	for (i = 0; i < n; i++)
		if (!gf_algorithm_has(messages[i].algorithm, GF_ALGORITHM_SAME_BITS))
			return false;
	return true;
}

static size_t steps_of(const struct gf_trainer *t, double epochs)
{
	return (size_t)llround(epochs * (double)t->epoch_steps);
}

static void set_rate(struct gf_trainer *t)
{
	const struct gf_training *k = &t->config->training;
	size_t i;

	t->drops = gf_xcalloc(k->ndrops + 1, sizeof(*t->drops));
	for (i = 0; i < k->ndrops; i++)
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
	set_rate(t);
	if ((size_t)k->plan->staleness > t->total_steps)
		return gf_error_set(err, -EINVAL,
				    "staleness %d: want at most the %zu steps of the run",
				    k->plan->staleness, t->total_steps);
	/* the schedule is for all epochs, wherever this run stops */
	if (k->steps && k->steps < t->total_steps)
		t->total_steps = k->steps;
	if (k->evaluate)
		t->total_steps = 0;
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

void gf_train_settle(struct gf_train_config *k, struct gf_plan *plan)
{
	char *said = k->remark;
	/* of a replay, which has no epochs: a warm-up in them ends at once */
	double epoch = DBL_MIN;
	double run = (double)(k->steps ? k->steps : GF_TRAIN_REPLAY_STEPS);

	if (k->data && k->data->count[GF_PART_TRAIN]) {
		epoch = floor((double)k->data->count[GF_PART_TRAIN] /
			      (double)gf_train_global_batch(k));
		run = epoch * (double)k->training.epochs;
	}
	gf_plan_settle(plan, epoch, run);
	if (!(epoch >= 1) || !(run >= 1) || !shorten(plan, (size_t)run, k->training.epochs))
		return;
	k->remark = gf_xasprintf(
		"%s%sthe plan's warm-up outlasts the %.0f steps of the run, and takes half of them",
		said ? said : "", said ? "\n" : "", run);
	free(said);
}
