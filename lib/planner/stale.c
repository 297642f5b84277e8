/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * With stale gradients, a step lasts as long as compute, or as its messages
 * keep the network busy beside those of the steps before and after it. When
 * tensors are ready hardly counts.
 *
 * On one lane, nothing is busy for a shorter time than the best plan of
 * gradients that are all there at once. On several, messages of two steps share
 * the network, and one's startup passes while the other sends: large messages
 * of about the same size, as many as may go at once, or a few times as many,
 * are hard to beat. The lazy rule cuts them, and the model of stale steps
 * judges.
 */
#include <math.h>

#include "planner/make_parts.h"
#include "planner/workbench.h"

#define STEPS_PER_OCTAVE  4
#define MESSAGES_PER_LANE 4

/* By the problem's threshold, on all lanes. */
static void draft(const struct gf_workbench *w, struct gf_draft *d)
{
	size_t first = 0, last;

	d->lanes = w->lanes;
	for (; first < w->ntensors; first = last + 1) {
		last = gf_workbench_lazy_cut(w, first,
					     (double)w->in->threshold_bytes);
		gf_draft_send(d, w, first, last)->mode = GF_MODE_SIMULTANEOUS;
	}
}

static const struct gf_policy together = {.name = "optimal", .draft = draft};

static int try_thresholds(const struct gf_task *t, int lanes, struct gf_plan *p,
			  struct gf_error *err)
{
	const struct gf_model_profile *model = t->problem.model;
	struct gf_task other = *t;
	double total = 0, theta, least;
	struct gf_plan q;
	size_t i;
	int rc = 0;

	for (i = 0; i < model->ntensors; i++)
		total += (double)gf_tensor_bytes(&model->tensors[i]);
	least = total / (MESSAGES_PER_LANE * lanes);
	other.problem.lanes = lanes;
	for (theta = total; rc == 0 && theta >= fmax(least, 1);
	     theta /= pow(2, 1.0 / STEPS_PER_OCTAVE)) {
		other.problem.threshold_bytes = (size_t)theta;
		rc = gf_task_plan_by(&other, &together, &q, err);
		if (rc == 0 &&
		    q.predicted->iteration_s < p->predicted->iteration_s) {
			struct gf_plan worse = *p;

			*p = q;
			q = worse;
		}
		if (rc == 0)
			gf_plan_release(&q);
	}
	return rc;
}

int gf_task_stale(const struct gf_task *t, struct gf_plan *p,
		  struct gf_error *err)
{
	struct gf_model_profile *model =
		gf_model_profile_copy(t->problem.model);
	int lanes = t->problem.lanes ? t->problem.lanes : GF_LANES_MOST, rc;
	size_t i;

	model->forward_s = model->backward_s = 0;
	for (i = 0; i < model->ntensors; i++) {
		model->tensors[i].ready_s = 0;
		model->tensors[i].need_s = NAN;
	}
	rc = gf_task_plan_for(t, model, t->problem.fabric.network, p, err);
	gf_model_profile_free(model);
	/* messages that are cut anew have a threshold of their own */
	if (rc < 0 || gf_selection_has(&t->selection, GF_SELECT_RECUTS))
		return rc;
	/* Fewer lanes may be better: up to the usual number each is tried. */
	if (lanes > GF_LANES_MOST) {
		rc = try_thresholds(t, lanes, p, err);
		lanes = GF_LANES_MOST;
	}
	for (; rc == 0 && lanes > 0; lanes--)
		rc = try_thresholds(t, lanes, p, err);
	if (rc < 0)
		gf_plan_release(p);
	return rc;
}
