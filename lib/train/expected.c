/* SPDX-License-Identifier: BSD-3-Clause */
#include "train/expected.h"

#include <errno.h>
#include <stdlib.h>

#include "base/heap.h"
#include "sim/doubt.h"
#include "sim/predict.h"

/* The step model again, for a model whose times are those of a run. */
static int predict_again(const struct gf_plan *plan,
			 const struct gf_model_profile *model,
			 struct gf_prediction *out, struct gf_error *err)
{
	struct gf_fabric fabric = gf_plan_fabric(plan);
	struct gf_model_profile copy = *model;
	struct gf_plan run = *plan;
	struct gf_sim_result result = {
		.messages = gf_xcalloc(plan->nmessages + 1,
				       sizeof(*result.messages)),
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
	return gf_doubt_predict(&run, err);
}

bool gf_train_times_hold(const struct gf_plan *plan,
			 const struct gf_training *training)
{
	size_t made_for = plan->model->batch_per_rank;

	return !made_for || made_for == training->batch;
}

int gf_train_predict_at(const struct gf_plan *plan,
			const struct gf_training *training, double factor,
			struct gf_prediction *out, struct gf_error *err)
{
	struct gf_model_profile *m = gf_model_profile_copy(plan->model);
	int rc;

	gf_model_accumulate(m, training->accumulate);
	gf_model_slow(m, factor);
	m->update_s *= factor;
	rc = predict_again(plan, m, out, err);
	gf_model_profile_free(m);
	return rc;
}

const struct gf_prediction *
gf_train_prediction(const struct gf_plan *plan,
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
	if (!gf_train_times_hold(plan, training)) {
		gf_error_set(why, -EINVAL,
			     "the plan's times are for batch %zu, this run has "
			     "%zu",
			     model.batch_per_rank, training->batch);
		return NULL;
	}
	if (!plan->predicted ||
	    training->accumulate == gf_model_micro_batches(&model))
		return plan->predicted;
	gf_model_accumulate(&model, training->accumulate);
	return predict_again(plan, &model, own, why) ? NULL : own;
}
