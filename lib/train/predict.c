/* SPDX-License-Identifier: BSD-3-Clause */
#include "train/predict.h"

#include <errno.h>
#include <stdlib.h>

#include "base/heap.h"
#include "sim/predict.h"

static int predict_replay(const struct gf_plan *plan, struct gf_prediction *out,
			  struct gf_error *err)
{
	struct gf_fabric fabric = gf_plan_fabric(plan);
	struct gf_model_profile model = *plan->model;
	struct gf_plan replayed = *plan;
	struct gf_sim_result result = {
		.messages = gf_xcalloc(plan->nmessages + 1,
				       sizeof(*result.messages)),
	};
	int rc;

	model.overlap_slowdown = 1;
	replayed.model = &model;
	rc = gf_predict_plan(&replayed, &fabric, &result, err);
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
	return 0;
}

const struct gf_prediction *gf_train_prediction(const struct gf_plan *plan,
						size_t batch, bool replay,
						struct gf_prediction *own,
						struct gf_error *why)
{
	size_t made_for = plan->model->batch_per_rank;

	why->text[0] = '\0';
	if (replay)
		return predict_replay(plan, own, why) ? NULL : own;
	if (!plan->predicted || !made_for || made_for == batch)
		return plan->predicted;
	gf_error_set(why, -EINVAL,
		     "the plan's times are for batch %zu, this run has %zu",
		     made_for, batch);
	return NULL;
}
