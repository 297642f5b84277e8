/* SPDX-License-Identifier: BSD-3-Clause */
#include "simulator/period_time.h"

#include <math.h>

#include "base/heap.h"
#include "collectives/codecs/codec.h"
#include "collectives/way.h"
#include "simulator/step_state.h"

/* What an outer exchange sends out of a group. */

/* Steps of a group's ranks, roughly, that are made and looked at. */
#define STEPS_MOST 4e6

/* Elements that a rank sends to others than the group's. -ENOTSUP: it has no steps. */
static int sent_elems(const struct gf_algorithm *a, const struct gf_coll_args *args, int rank,
		      int group, double *elems)
{
	GF_RELEASED(gf_schedule_release) struct gf_schedule s = {0};
	int rc = gf_algorithm_schedule(a, args, rank, &s, NULL);

	*elems = 0;
	if (rc < 0)
		return rc;
	for (size_t i = 0; i < s.nsteps; i++)
		if (s.steps[i].op == GF_STEP_SEND && s.steps[i].peer >= group)
			*elems += (double)s.steps[i].range.count;
	return 0;
}

static int count_message(const struct gf_plan *outer, size_t message, int group, double *sum,
			 double *most)
{
	const struct gf_message *m = &outer->messages[message];
	struct gf_coll_args args;
	struct gf_way way;
	double elems;
	int rank, rc = gf_way_of_message(m, &way, NULL);

	*sum = *most = 0;
	if (rc < 0 || !way.algorithm->build)
		return -1;
	args = gf_way_args(&way, outer->ranks);
	args.count_elems = gf_plan_message_elems(outer, message);
	args.elem_bytes = sizeof(float);
	for (rank = 0; rank < group && rc == 0; rank++) {
		rc = sent_elems(way.algorithm, &args, rank, group, &elems);
		*sum += elems;
		*most = fmax(*most, elems);
	}
	return rc;
}

void gf_sim_border(const struct gf_plan *p, struct gf_border *out)
{
	const int group = p->period.group_ranks;
	const double groups = (double)p->ranks / group;
	const bool counted = (double)group * p->ranks * (double)p->period.nmessages < STEPS_MOST;
	GF_RELEASED(gf_plan_release) struct gf_plan outer = {0};

	*out = (struct gf_border){0};
	gf_period_outer(p, &outer);
	for (size_t i = 0; i < outer.nmessages; i++) {
		const double wire =
			sizeof(float) * gf_codec_ratio(gf_codec_find(outer.messages[i].codec));
		double sum, most;

		if (!counted || count_message(&outer, i, group, &sum, &most)) {
			sum = 2 * (groups - 1) / groups * (double)gf_plan_message_elems(&outer, i);
			most = sum / group;
		}
		out->group_bytes += wire * sum;
		out->rank_bytes += wire * most;
		out->plain_group_bytes += sizeof(float) * sum;
	}
}

#define WORD_BYTES   4
#define UPDATE_WORDS 5 /* SGD with momentum: read g, v, x; write v, x */

struct gf_fabric gf_sim_group_fabric(const struct gf_fabric *f, int group_ranks,
				     struct gf_network *lines)
{
	struct gf_fabric group = *f;

	group.ranks = group_ranks;
	group.servers = 0;
	if (!f->network || !f->nlevels || f->network->ranks == group_ranks)
		return group;
	*lines = *f->network;
	lines->allreduce = NULL;
	lines->nallreduce = 0;
	group.network = lines;
	return group;
}

/* --- the outer exchange --------------------------------------------------- */

static double work_s(const struct gf_period *p, const struct gf_model_profile *m, double share)
{
	const double words = 3 + (p->outer_momentum > 0 ? 5 : 3) + (p->mix > 0 ? 3 : 2);

	return words / UPDATE_WORDS * m->update_s * share;
}

/* Messages with no compute beside them, which all begin at once. */
static double alone_s(const struct gf_model_profile *quiet, const struct gf_sim_message *of,
		      size_t n, int lanes)
{
	GF_FREED struct gf_sim_message *messages = gf_xmemdup(of, n * sizeof(*of));
	const struct gf_sim_input in = {quiet, messages, n, lanes, 0};
	struct gf_sim_result r = {0};

	for (size_t i = 0; i < n; i++) {
		messages[i].holds_s = 0;
		messages[i].mutual = NULL;
	}
	r.messages = gf_xcalloc(n + 1, sizeof(*r.messages));
	gf_sim_step(&in, &r);
	free(r.messages);
	return r.iteration_s;
}

static struct gf_model_profile *quiet_model(const struct gf_model_profile *m)
{
	struct gf_model_profile *quiet = gf_model_profile_copy(m);

	gf_model_slow(quiet, 0);
	quiet->update_s = quiet->issue_s = 0;
	quiet->overlap_slowdown = 1;
	return quiet;
}

void gf_sim_keep_outer(struct gf_plan *p)
{
	struct gf_model_profile *loud = p->model;

	if (gf_period_has(&p->period, GF_PERIOD_EVERY))
		return;
	p->model = quiet_model(loud);
	gf_model_profile_free(loud);
	gf_period_keep_outer(p);
}

static void time_fragment(const struct gf_plan *outer, const struct gf_period *period,
			  size_t fragment, const struct gf_model_profile *quiet,
			  const struct gf_traffic *t, struct gf_outer_time *out)
{
	const struct gf_model_profile *m = outer->model;
	double elems = 0;
	size_t first, n, i, k;

	gf_period_messages(period, fragment, &first, &n);
	out->slowdown = 1;
	for (i = first; i < first + n; i++) {
		out->slowdown = fmax(out->slowdown, gf_sim_slowdown(t->messages[i].mutual,
								    m->overlap_slowdown, 1));
		for (k = t->messages[i].first; k <= t->messages[i].last; k++)
			elems += (double)m->tensors[k].count_elems;
	}
	out->work_s = work_s(period, m, elems / (double)gf_model_profile_elems(m));
	out->exchange_s = alone_s(quiet, t->messages + first, n, period->lanes);
}

void gf_sim_outer_times(const struct gf_plan *outer, const struct gf_period *period,
			const struct gf_traffic *t, struct gf_outer_time *out)
{
	struct gf_model_profile *quiet = quiet_model(outer->model);

	for (size_t i = 0; i < period->fragments; i++)
		time_fragment(outer, period, i, quiet, t, &out[i]);
	gf_model_profile_free(quiet);
}

int gf_sim_outer(const struct gf_plan *outer, const struct gf_period *period,
		 const struct gf_fabric *f, struct gf_outer_time *out, struct gf_error *err)
{
	GF_RELEASED(gf_traffic_release) struct gf_traffic t = {0};
	int rc = gf_traffic_init(&t, outer, f, err);

	if (rc < 0) {
		gf_error_prefix(err, "outer exchange");
		return rc;
	}
	gf_sim_outer_times(outer, period, &t, out);
	return 0;
}

/* --- a period ------------------------------------------------------------- */

/* By how much a step is longer if messages are in flight all along. */
static double slower_s(const struct gf_model_profile *m, const struct gf_sim_result *inner,
		       double slowdown)
{
	return fmax(0, slowdown * m->backward_s - (inner->backward_end_s - inner->forward_end_s));
}

double gf_sim_beside_factor(const struct gf_model_profile *model, const struct gf_sim_result *inner,
			    double slowdown)
{
	return inner->iteration_s > 0 ? 1 + slower_s(model, inner, slowdown) / inner->iteration_s
				      : 1;
}

static double exposed_s(const struct gf_period *p, double step_s, double slower_s,
			const struct gf_outer_time *o)
{
	const double beside_s = step_s + slower_s, tau = (double)p->delay;
	const double steps = beside_s > 0 ? fmin(tau, o->exchange_s / beside_s) : 0;

	return slower_s * steps + fmax(0, o->exchange_s - tau * beside_s) + o->work_s;
}

void gf_sim_period(const struct gf_period *period, const struct gf_model_profile *model,
		   const struct gf_sim_result *inner, const struct gf_outer_time *fragments,
		   struct gf_period_time *out)
{
	*out = (struct gf_period_time){.inner_s = inner->iteration_s};
	for (size_t i = 0; i < period->fragments; i++) {
		const struct gf_outer_time *o = &fragments[i];

		out->exchange_s += o->exchange_s;
		out->exposed_s +=
			exposed_s(period, out->inner_s, slower_s(model, inner, o->slowdown), o);
	}
	out->period_s = (double)period->steps * out->inner_s + out->exposed_s;
}

int gf_sim_group_plan(const struct gf_plan *p, struct gf_plan *inner, struct gf_error *err)
{
	const struct gf_fabric whole = gf_plan_fabric(p);
	struct gf_network lines;
	struct gf_fabric group = gf_sim_group_fabric(&whole, p->period.group_ranks, &lines);
	struct gf_plan view = *p;
	int rc;

	view.network = (struct gf_network *)group.network;
	gf_period_inner(&view, inner);
	rc = gf_plan_predict(inner, NULL, err);
	if (rc < 0)
		gf_plan_release(inner);
	return rc;
}

int gf_predict_period(const struct gf_plan *p, const struct gf_fabric *f, struct gf_sim_result *out,
		      struct gf_period_time *time, struct gf_error *err)
{
	GF_FREED struct gf_outer_time *fragments =
		gf_xcalloc(p->period.fragments, sizeof(*fragments));
	struct gf_network lines;
	struct gf_fabric group = gf_sim_group_fabric(f, p->period.group_ranks, &lines);
	GF_RELEASED(gf_plan_release) struct gf_plan inner = {0}, outer = {0};
	int rc;

	gf_period_inner(p, &inner);
	gf_period_outer(p, &outer);
	rc = gf_predict_plan(&inner, &group, out, err);
	rc = rc ?: gf_sim_outer(&outer, &p->period, f, fragments, err);
	if (rc == 0) {
		gf_sim_period(&p->period, p->model, out, fragments, time);
		/* a quotient of sums: what is exposed is never below 0 */
		out->iteration_s = fmax(time->period_s / (double)p->period.steps, out->compute_s);
		out->exposed_comm_s = out->iteration_s - out->compute_s;
	}
	if (rc == 0 && gf_plan_tells_memory(p)) {
		out->memory.state_bytes += gf_sim_period_bytes(p);
		out->memory.peak_bytes += gf_sim_period_bytes(p);
	}
	return rc;
}

double gf_sim_period_bytes(const struct gf_plan *p)
{
	return WORD_BYTES * (p->period.outer_momentum > 0 ? 3.0 : 2.0) *
	       (double)gf_model_profile_elems(p->model);
}
