/* SPDX-License-Identifier: BSD-3-Clause */
#include "trainer/speed.h"

#include <string.h>

#include "base/clock.h"
#include "base/heap.h"
#include "cost/stat.h"
#include "simulator/predict.h"
#include "simulator/uncertainty.h"
#include "trainer/optim/sgd.h"

/* --- what is expected ----------------------------------------------------- */

/* The step model again, for a model whose times are those of a run. */
static int predict_again(const struct gf_plan *plan, const struct gf_model_profile *model,
			 struct gf_prediction *out, struct gf_error *err)
{
	struct gf_fabric fabric = gf_plan_fabric(plan);
	struct gf_model_profile copy = *model;
	struct gf_plan run = *plan;
	struct gf_sim_result result = {
		.messages = gf_xcalloc(plan->nmessages + 1, sizeof(*result.messages)),
	};
	int rc;

	run.model = &copy;
	rc = gf_predict_plan(&run, &fabric, &result, err);
	if (rc) {
		free(result.messages);
		return rc;
	}
	*out = (struct gf_prediction){
		.iteration_s = result.iteration_s,
		.compute_s = result.compute_s,
		.exposed_comm_s = result.exposed_comm_s,
		.messages = result.messages,
	};
	run.predicted = out;
	return gf_uncertainty_predict(&run, NULL, err);
}

/* Are the plan's times those of a batch of this training? */
static bool times_hold(const struct gf_plan *plan, const struct gf_training *training)
{
	size_t made_for = plan->model->batch_per_rank;

	return !made_for || made_for == training->batch;
}

/* The step model again on a machine that takes `factor` times as long to compute; the caller frees
 * out->messages. */
static int predict_at(const struct gf_plan *plan, const struct gf_training *training, double factor,
		      struct gf_prediction *out, struct gf_error *err)
{
	struct gf_model_profile *m;
	int rc = gf_shard_check_batches(&plan->shard, training->accumulate, err);

	if (rc)
		return rc;
	m = gf_model_profile_copy(plan->model);
	gf_model_accumulate(m, training->accumulate);
	gf_model_slow(m, factor);
	m->update_s *= factor;
	rc = predict_again(plan, m, out, err);
	gf_model_profile_free(m);
	return rc;
}

const struct gf_prediction *gf_train_prediction(const struct gf_plan *plan,
						const struct gf_training *training, bool replay,
						struct gf_prediction *own, struct gf_error *why)
{
	struct gf_model_profile model = *plan->model;

	why->text[0] = '\0';
	if (replay) {
		model.overlap_slowdown = 1;
		/* what is slept takes its time exactly */
		model.spread_s = model.drift = 0;
		return predict_again(plan, &model, own, why) ? NULL : own;
	}
	if (!times_hold(plan, training)) {
		gf_error_set(why, -EINVAL, "the plan's times are for batch %zu, this run has %zu",
			     model.batch_per_rank, training->batch);
		return NULL;
	}
	if (!plan->predicted || training->accumulate == gf_model_micro_batches(&model))
		return plan->predicted;
	if (gf_shard_check_batches(&plan->shard, training->accumulate, why))
		return NULL;
	gf_model_accumulate(&model, training->accumulate);
	return predict_again(plan, &model, own, why) ? NULL : own;
}

/* --- how fast this machine is --------------------------------------------- */

/* The first passes of a run prepare kernels and touch memory. Of a slow net fewer passes say as
 * much: one of each where the first takes enough_s. The passes of a fast net go on for short_s:
 * five of a millisecond say little of a machine. */
enum { UNTIMED = 2, TIMED = 5, LEAST = 2, MOST = 64 };
static const double enough_s = 0.5, short_s = 0.03;

/* Less of an iteration is no exchange to speak of. */
#define EXCHANGE_SHARE 0.01

static void ignore(void *ctx, size_t tensor)
{
	(void)ctx;
	(void)tensor;
}

int gf_speed_measure(struct gf_compute *c, size_t count_elems, struct gf_speed_pass *pass,
		     struct gf_error *err)
{
	double seconds[MOST], sum_s = 0;
	GF_FREED float *grads = NULL, *kept = NULL;
	float *others, *running;
	size_t count, n = 0; /* timed */
	bool slow = false, enough = false;
	int rc = 0, i;

	if (!count_elems || gf_compute_arrays(c).params)
		return 0;
	grads = calloc(count_elems, 3 * sizeof(*grads));
	if (!grads)
		return gf_error_set(err, -ENOMEM,
				    "no memory for %zu gradients of passes without exchange",
				    count_elems);
	others = grads + count_elems;
	running = gf_compute_running(c, &count);
	kept = gf_xcalloc(count + 1, sizeof(*kept));
	if (count)
		memcpy(kept, running, count * sizeof(*kept));
	c->on_need = NULL;
	pass->start_s = gf_clock_s();
	for (i = 0; !rc && !enough; i++) {
		double began_s;

		/* as between the passes of a profile; these weights and velocities are discarded */
		gf_sgd_update(&gf_sgd_between_passes, 1, grads, others, others + count_elems,
			      count_elems);
		began_s = gf_clock_s();
		rc = c->ops->forward(c, err);
		rc = rc ?: c->ops->backward(c, grads, ignore, NULL, err);
		seconds[n] = gf_clock_s() - began_s;
		sum_s += seconds[n];
		slow |= i == 0 && sum_s > enough_s;
		n += i >= (slow ? 1 : UNTIMED);
		enough = n >= (slow               ? 1
			       : sum_s > enough_s ? LEAST
			       : sum_s > short_s  ? TIMED
						  : MOST);
	}
	if (count)
		memcpy(running, kept, count * sizeof(*kept));
	if (!rc)
		pass->seconds = gf_stat_median(seconds, n);
	return rc;
}

bool gf_speed_wanted(const struct gf_plan *plan, const struct gf_training *training)
{
	const struct gf_model_profile *m = plan->model;

	/* which takes all parameters, and gradients */
	if (gf_shard_is_used(&plan->shard))
		return false;
	return plan->predicted && times_hold(plan, training) &&
	       gf_model_forward_s(m) + m->backward_s > 0;
}

void gf_speed_compare(const struct gf_plan *plan, const struct gf_training *training,
		      struct gf_speed *m)
{
	const double profiled_s = gf_model_forward_s(plan->model) + plan->model->backward_s;
	struct gf_prediction there;
	struct gf_error ignored;

	if (!(m->first.slowest_s > 0 && m->last.slowest_s > 0))
		return;
	m->at_start = m->first.slowest_s / profiled_s;
	m->at_end = m->last.slowest_s / profiled_s;
	m->factor = (m->at_start + m->at_end) / 2;
	if (predict_at(plan, training, m->factor, &there, &ignored)) {
		m->factor = 0;
		return;
	}
	m->iteration_s = there.iteration_s;
	m->compute_s = there.compute_s;
	free(there.messages);
}

double gf_speed_exchange(const struct gf_speed *m, double iteration_s)
{
	double predicted_s = m->iteration_s - m->compute_s;

	return predicted_s > EXCHANGE_SHARE * m->iteration_s
		       ? (iteration_s - m->compute_s) / predicted_s
		       : 0;
}
