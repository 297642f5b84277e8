/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * From the plan of a group to that of all ranks. The outer exchange is a
 * problem like another, whose messages are the fragments.
 */
#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "base/heap.h"
#include "planner/hide.h"
#include "sim/doubt.h"
#include "sim/period_time.h"

/* --- fragments ------------------------------------------------------------ */

static double bytes_of(const struct gf_model_profile *m, size_t tensor)
{
	return (double)gf_tensor_bytes(&m->tensors[tensor]);
}

/* The tensor after the last of a piece that begins at `first`, has no more
 * bytes than the limit, and leaves as many tensors as there are pieces. */
static size_t piece_end(const struct gf_model_profile *m, size_t first,
			double limit, size_t pieces_left)
{
	double bytes = bytes_of(m, first);
	size_t end = first + 1;

	while (end + pieces_left < m->ntensors &&
	       bytes + bytes_of(m, end) <= limit)
		bytes += bytes_of(m, end++);
	return end;
}

static bool fits(const struct gf_model_profile *m, size_t pieces, double limit)
{
	size_t first = 0, k;

	for (k = 0; k < m->ntensors; k++)
		if (bytes_of(m, k) > limit)
			return false;
	for (k = 0; k < pieces && first < m->ntensors; k++)
		first = piece_end(m, first, limit, 0);
	return first == m->ntensors;
}

/* The least limit to whole bytes. */
static double least_limit(const struct gf_model_profile *m, size_t pieces)
{
	double low = 0, high = (double)gf_model_profile_bytes(m), middle;

	while (high - low > 1) {
		middle = floor((low + high) / 2);
		if (fits(m, pieces, middle))
			high = middle;
		else
			low = middle;
	}
	return high;
}

void gf_period_cut(struct gf_period *p, const struct gf_model_profile *m,
		   const struct gf_menu *menu)
{
	const double limit = least_limit(m, p->fragments);
	size_t first = 0, i, k;

	gf_messages_free(p->messages, p->nmessages);
	p->messages = gf_xcalloc(p->fragments, sizeof(*p->messages));
	p->nmessages = p->fragments;
	for (i = 0; i < p->fragments; i++) {
		struct gf_message *to = &p->messages[i];
		double bytes = 0;

		to->first = first;
		first = piece_end(m, first, limit, p->fragments - 1 - i);
		to->last = first - 1;
		for (k = to->first; k < first; k++)
			bytes += bytes_of(m, k);
		gf_option_tell(&menu->options[gf_menu_pick(menu, bytes)], to);
	}
}

/* --- the plan of all ranks ------------------------------------------------ */

static int settle(const struct gf_task *t, struct gf_plan *p,
		  const struct gf_sim_result *inner, struct gf_error *err)
{
	struct gf_menu menu;
	int rc;

	if (p->period.fragments > p->model->ntensors &&
	    (!(t->axes->hide > 0) || gf_axes_asked(t->axes, "fragments")))
		return gf_error_set(err, -EINVAL,
				    "--fragments: want at most the model's %zu "
				    "tensors, got %zu",
				    p->model->ntensors, p->period.fragments);
	if (!(t->axes->hide > 0) &&
	    gf_period_check_steps(&p->period, err) < 0) {
		gf_error_prefix(err, "--period-steps, --fragments, --delay");
		return -EINVAL;
	}
	rc = gf_menu_init(&menu, &t->outer, err);
	if (rc < 0) {
		gf_error_prefix(err, "outer exchange");
		return rc;
	}
	if (t->axes->hide > 0)
		rc = gf_period_hide(t, p, inner, &menu, err);
	else
		gf_period_cut(&p->period, p->model, &menu);
	gf_menu_release(&menu);
	return rc;
}

static int predict(const struct gf_task *t, struct gf_plan *p,
		   struct gf_error *err)
{
	struct gf_prediction *out = p->predicted;
	struct gf_sim_result r = {.messages = out->messages};
	struct gf_period_time time;
	int rc = gf_predict_period(p, &t->outer.fabric, &r, &time, err);

	if (rc < 0)
		return rc;
	out->iteration_s = r.iteration_s;
	out->exposed_comm_s = r.exposed_comm_s;
	out->fastest_s = 0;
	p->period.period_s = time.period_s;
	p->period.exchange_s = time.exchange_s;
	p->period.exposed_s = time.exposed_s;
	return gf_doubt_predict(p, err);
}

int gf_task_add_period(const struct gf_task *t, struct gf_plan *p,
		       struct gf_error *err)
{
	const struct gf_network *network = t->outer.fabric.network;
	struct gf_sim_result inner = {0};
	int rc;

	if (gf_period_has(&t->period, GF_PERIOD_EVERY))
		return 0;
	rc = gf_predict_plan(p, &t->problem.fabric, &inner, err);
	if (rc < 0)
		return rc;
	p->ranks = t->outer.fabric.ranks;
	gf_network_free(p->network);
	p->network = network ? gf_network_copy(network) : NULL;
	p->period = t->period;
	rc = settle(t, p, &inner, err);
	rc = rc ? rc : gf_plan_check(p, err);
	return rc ? rc : predict(t, p, err);
}
