/* SPDX-License-Identifier: BSD-3-Clause */
#include "simulator/whatif/whatif.h"

#include <assert.h>
#include <math.h>
#include <string.h>

#include "base/heap.h"
#include "simulator/period_time.h"
#include "simulator/sum_error.h"
#include "simulator/uncertainty.h"
#include "simulator/whatif/jitter.h"
#include "simulator/whatif/plan_variant.h"

bool gf_what_if_varies(const struct gf_what_if *w)
{
	return w->jitter > 0 || w->network_jitter_s > 0;
}

double gf_what_if_slowest(const struct gf_what_if *w, int ranks)
{
	double most = (size_t)ranks > w->nslow ? 1 : 0;

	for (size_t i = 0; i < w->nslow; i++)
		most = fmax(most, w->slow[i].factor);
	return most;
}

static void draw_step(struct gf_variant *v, double factor, struct gf_gantt *t)
{
	struct gf_sim_input in = gf_plan_input(&v->plan, &v->traffic);
	struct gf_sim_result r = {0};
	GF_FREED struct gf_sim_gather *gathers = gf_xcalloc(in.nmessages + 1, sizeof(*gathers));
	struct gf_sim_shard_times times = gf_sim_shard_times_new(&in);
	size_t n = 0;

	r.shards = &times;
	r.messages = gf_xcalloc(in.nmessages + 1, sizeof(*r.messages));
	gf_variant_scale(v, factor);
	gf_sim_step(&in, &r);
	if (!in.works) {
		n = gf_sim_gathers(&in, gathers);
		gf_sim_forward_end_s(&in, 1, gathers, n);
	}
	gf_gantt_step(t, &in, &r, gathers, n);
	free(times.start_s);
	free(r.messages);
}

static void draw_timeline(struct gf_variant *v, const struct gf_what_if *w, double factor,
			  struct gf_outcome *o)
{
	o->timeline = gf_xcalloc(1, sizeof(*o->timeline));
	if (v->plan.staleness > 1)
		gf_jitter_draw(v, w, o->timeline);
	else
		draw_step(v, factor, o->timeline);
}

static int check(const struct gf_plan *p, const struct gf_what_if *w, struct gf_error *err)
{
	int ranks = w->ranks ? w->ranks : p->ranks;

	if (w->period_steps && gf_period_has(&p->period, GF_PERIOD_EVERY))
		return gf_error_set(
			err, -EINVAL,
			"want a plan with a period where its steps change, got one without");
	for (size_t i = 0; i < w->nslow; i++)
		if (w->slow[i].rank < 0 || w->slow[i].rank >= ranks)
			return gf_error_set(err, -EINVAL, "want a slow rank from 0 to %d, got %d",
					    ranks - 1, w->slow[i].rank);
	for (size_t i = 0; i < w->nslow_links; i++)
		if (w->slow_links[i].rank < 0 || w->slow_links[i].rank >= ranks + p->servers)
			return gf_error_set(err, -EINVAL,
					    "want a slow link of a rank from 0 to %d, got %d",
					    ranks + p->servers - 1, w->slow_links[i].rank);
	for (size_t i = 0; i < w->nslow; i++)
		for (size_t k = 0; k < i; k++)
			if (w->slow[i].rank == w->slow[k].rank)
				return gf_error_set(err, -EINVAL,
						    "want a slow rank once, got %d twice",
						    w->slow[i].rank);
	return 0;
}

void gf_outcome_finish(struct gf_outcome *o, const struct gf_plan *p, const struct gf_sim_result *r)
{
	double first = INFINITY, last = 0;

	for (size_t i = 0; i < p->nmessages; i++) {
		first = fmin(first, o->messages[i].start_s);
		last = fmax(last, o->messages[i].end_s);
	}
	if (gf_shard_is_used(&p->shard))
		first = 0; /* a step begins with a gather */
	o->memory_bytes = r->memory.peak_bytes;
	o->communication_s = fmax(last - first, 0);
	o->compute_s = gf_plan_compute_s(p);
	o->exposed_comm_s = fmax(0, r->iteration_s - o->compute_s);
	o->forward_end_s = r->forward_end_s;
	o->backward_end_s = r->backward_end_s;
	o->efficiency = o->iteration_s > 0 ? o->compute_s / o->iteration_s : 1;
	o->speedup = o->efficiency * o->ranks;
	o->samples_per_s = (double)p->model->batch_per_rank *
			   (double)gf_model_micro_batches(p->model) * o->ranks / o->iteration_s;
}

/* p: on the outcome's ranks. */
static void add_error(const struct gf_plan *p, struct gf_outcome *o)
{
	o->error = gf_sim_step_error(p, NULL);
	o->error_of_note = o->error > GF_ERROR_OF_NOTE ? o->error : 0;
}

/* Eq. 42 is of one message after the other beside backward alone. */
static bool is_bounded(const struct gf_plan *p)
{
	for (size_t i = 0; i < p->nmessages; i++)
		if (p->messages[i].half != GF_HALF_ALL)
			return false;
	return p->lanes == 1 && p->staleness == 1;
}

/* Of the steady state as it was run. */
static void bounds(const struct gf_variant *v, struct gf_outcome *o)
{
	const struct gf_model_profile *m = &v->model;
	double compute_s = m->forward_s + m->backward_s + gf_plan_update_s(&v->plan);
	double wire_s = 0, least_s;

	o->unlimited_s = o->synchronous_s / v->plan.staleness;
	if (!is_bounded(&v->plan))
		return;
	for (size_t i = 0; i < v->traffic.nmessages; i++)
		wire_s += v->traffic.messages[i].per_byte_s * v->traffic.messages[i].bytes;
	o->hideable_s = fmin(m->backward_s, wire_s);
	least_s = compute_s + wire_s - o->hideable_s;
	o->largest_speedup = o->ranks * (least_s > 0 ? compute_s / least_s : 1);
}

/* Times a pipeline's beginning and end; leaves the variant as it was. */
static int run_edges(struct gf_variant *v, const struct gf_what_if *w, struct gf_outcome *o,
		     struct gf_error *err)
{
	struct gf_sim_result r = {0};
	int staleness = v->plan.staleness, rc;

	v->plan.staleness = 1;
	rc = gf_variant_run(v, gf_what_if_slowest(w, o->ranks), &r, err);
	v->plan.staleness = staleness;
	o->synchronous_s = r.iteration_s;
	o->slowest_s = gf_plan_compute_s(&v->plan);
	return rc;
}

/* An iteration of the variant, whose traffic is empty, and a synchronous one. median: the slowest
 * rank's factor in the median run. */
static int run_variant(struct gf_variant *v, const struct gf_what_if *w, struct gf_outcome *o,
		       struct gf_sim_result *r, double *median, struct gf_error *err)
{
	int rc = gf_variant_price(v, w, err);

	rc = rc ?: gf_variant_run(v, gf_what_if_slowest(w, o->ranks), r, err);
	rc = rc ?: run_edges(v, w, o, err);
	rc = rc ?: gf_jitter_run(v, w, o, median, err);
	o->iteration_s = !gf_what_if_varies(w)   ? r->iteration_s
			 : v->plan.staleness > 1 ? o->mean_s
						 : o->p50_s;
	return rc;
}

/* n steps from `first` on (from 0). The first stale one also fills and drains the pipeline. */
static double stretch_s(const struct gf_plan *p, const struct gf_outcome *o, double first, double n)
{
	double synchronous = (double)p->pipeline_warmup_steps + 1 - first;

	synchronous = p->staleness > 1 ? fmin(fmax(synchronous, 0), n) : 0;
	return synchronous * o->synchronous_s + (n - synchronous) * o->iteration_s;
}

/* Of the whole run; the variant's selection and traffic change. */
static int add_total(struct gf_variant *v, const struct gf_what_if *w, struct gf_outcome *o,
		     struct gf_error *err)
{
	struct gf_plan *p = &v->plan;
	GF_RELEASED(gf_selection_release) struct gf_selection steady = {0};
	size_t step = 0, n;
	int rc = 0;

	gf_plan_settle(p, (double)w->epoch_steps, w->iterations);
	steady = gf_selection_copy(&p->selection);
	while (rc == 0 && (double)step < w->iterations &&
	       (n = gf_selection_warm(&steady, step, w->epoch_steps, &p->selection))) {
		struct gf_outcome warm = {.ranks = o->ranks};
		struct gf_sim_result r = {0};
		double left = w->iterations - (double)step, median;

		gf_traffic_release(&v->traffic);
		rc = run_variant(v, w, &warm, &r, &median, err);
		o->total_s += stretch_s(p, &warm, (double)step, fmin((double)n, left));
		step += n;
	}
	if (rc == 0 && (double)step < w->iterations)
		o->total_s += stretch_s(p, o, (double)step, w->iterations - (double)step);
	return rc;
}

/* The plan there, but for the doubt. */
static int run(const struct gf_plan *p, const struct gf_what_if *w, struct gf_variant *v,
	       struct gf_outcome *o, struct gf_error *err)
{
	struct gf_sim_result r = {.messages = o->messages};
	struct gf_plan there = *p;
	double median = 1;
	int rc = gf_variant_init(v, p, w, err);

	rc = rc ?: run_variant(v, w, o, &r, &median, err);
	if (rc < 0)
		return rc;
	if (w->timeline)
		draw_timeline(v, w, median, o);
	there.shard = v->plan.shard;
	gf_outcome_finish(o, &there, &r);
	bounds(v, o);
	return add_total(v, w, o, err);
}

static int end_s(const struct gf_plan *p, const struct gf_what_if *w, bool high,
		 double *iteration_s, struct gf_error *err)
{
	struct gf_network *network = gf_network_copy(w->network ? w->network : p->network);
	struct gf_outcome o = {.ranks = w->ranks ? w->ranks : p->ranks};
	struct gf_what_if there = *w;
	struct gf_plan end = *p;
	GF_RELEASED(gf_variant_release) struct gf_variant v = {0};
	int rc;

	there.timeline = false;
	there.beyond = NULL;
	there.iterations = 0;
	o.messages = gf_xcalloc(p->nmessages + 1, sizeof(*o.messages));
	end.model = gf_model_profile_copy(p->model);
	gf_uncertainty_move(end.model, network, o.ranks + p->servers, high);
	if (w->network)
		there.network = network;
	else
		end.network = network;
	rc = run(&end, &there, &v, &o, err);
	*iteration_s = o.iteration_s;
	free(o.messages);
	gf_model_profile_free(end.model);
	gf_network_free(network);
	return rc;
}

/* The interval, by the doubt of what it is simulated on. */
static int add_doubt(const struct gf_plan *p, const struct gf_what_if *w, struct gf_outcome *o,
		     struct gf_error *err)
{
	const bool told = w->levels || w->bandwidth_bytes_per_s > 0;
	const struct gf_network *network = w->network ? w->network : told ? NULL : p->network;
	struct gf_plan there = *p;
	double low, high;
	int rc;

	there.network = (struct gf_network *)network;
	if (!gf_uncertainty_recorded(p->model, network, o->ranks + p->servers))
		return 0;
	rc = end_s(p, w, false, &low, err);
	rc = rc ?: end_s(p, w, true, &high, err);
	if (rc < 0)
		return rc;
	gf_uncertainty_widen(&there, o->compute_s, o->iteration_s, &low, &high);
	o->low_s = low;
	o->high_s = high;
	o->efficiency_low = o->compute_s / high;
	o->efficiency_high = fmin(o->compute_s / low, 1);
	return 0;
}

/* --- periods --------------------------------------------------------------- */

/* A plan with a period in other circumstances: a step of the slowest group elsewhere, and the outer
 * exchange elsewhere. */
struct elsewhere {
	const struct gf_plan *plan;
	const struct gf_what_if *what;
	struct gf_period period;
	struct gf_plan group;
	struct gf_variant outer;
	struct gf_outer_time *times; /* per fragment */
};

static int check_groups(const struct gf_period *p, int ranks, struct gf_error *err)
{
	if (ranks % p->group_ranks || ranks <= p->group_ranks)
		return gf_error_set(
			err, -EINVAL,
			"want ranks that make more than one of the plan's groups of %d, got %d",
			p->group_ranks, ranks);
	return gf_period_check_steps(p, err);
}

/* A step of a group that has the slowest rank of all, and all slow links. */
static int run_group(struct elsewhere *t, double slowest, struct gf_outcome *o,
		     struct gf_error *err)
{
	const int ranks = t->group.ranks;
	struct gf_what_if w = *t->what;
	const struct gf_fabric whole = {
		.network = w.network,
		.nlevels = w.levels ? w.nlevels : t->group.nlevels,
	};
	GF_FREED struct gf_slow_rank *slow = gf_xcalloc((size_t)ranks, sizeof(*slow));
	GF_FREED struct gf_what_link *links =
		gf_xmemdup(w.slow_links, w.nslow_links * sizeof(*links));
	struct gf_network lines;

	for (size_t i = 0; i < (size_t)ranks; i++)
		slow[i] = (struct gf_slow_rank){(int)i, slowest};
	for (size_t i = 0; i < w.nslow_links; i++)
		links[i].rank %= ranks;
	w.ranks = 0;
	w.period_steps = 0;
	w.timeline = false;
	w.slow = slow;
	w.nslow = slowest < 1 ? (size_t)ranks : 1;
	w.slow_links = links;
	w.network = gf_sim_group_fabric(&whole, ranks, &lines).network;
	return gf_what_if(&t->group, &w, o, err);
}

static int run_outer(struct elsewhere *t, struct gf_error *err)
{
	GF_RELEASED(gf_plan_release) struct gf_plan outer = {0};
	int rc;

	gf_period_outer(t->plan, &outer);
	rc = gf_variant_init(&t->outer, &outer, t->what, err);
	rc = rc ?: gf_variant_price(&t->outer, t->what, err);
	if (rc < 0)
		gf_error_prefix(err, "outer exchange");
	else
		gf_sim_outer_times(&t->outer.plan, &t->period, &t->outer.traffic, t->times);
	return rc;
}

/* Of a step of the slowest group, what a step of all ranks is. */
static void conclude_period(struct elsewhere *t, double slowest, struct gf_outcome *o)
{
	const struct gf_sim_result step = {
		.iteration_s = o->compute_s + o->exposed_comm_s,
		.forward_end_s = o->forward_end_s,
		.backward_end_s = o->backward_end_s,
	};
	struct gf_sim_result r = step; /* of a group; what a period holds comes on top */
	struct gf_model_profile *model = gf_model_profile_copy(t->group.model);
	const double steps = (double)t->period.steps, group_s = o->iteration_s;
	const double begin = fmin((double)t->period.begin_steps, t->what->iterations);
	struct gf_period_time time;
	double more_s;

	if (o->memory_bytes > 0)
		r.memory.peak_bytes = o->memory_bytes + gf_sim_period_bytes(t->plan);
	gf_model_slow(model, slowest);
	gf_sim_period(&t->period, model, &step, t->times, &time);
	o->iteration_s = r.iteration_s = time.period_s / steps;
	if (t->what->timeline) {
		o->timeline = gf_xcalloc(1, sizeof(*o->timeline));
		gf_gantt_period(o->timeline, &t->period, model, &step, t->times);
	}
	gf_model_profile_free(model);
	gf_outcome_finish(o, &t->group, &r);
	o->period_steps = steps;
	o->period_s = o->iteration_s * steps;
	o->outer_s = time.exchange_s;
	o->outer_exposed_s = time.exposed_s;
	o->synchronous_s = o->iteration_s;
	o->unlimited_s = o->largest_speedup = 0; /* of a group alone */
	more_s = o->iteration_s - group_s;
	o->total_s += time.exposed_s * begin + more_s * (t->what->iterations - begin);
	if (!(o->high_s > 0))
		return;
	o->low_s += more_s;
	o->high_s += more_s;
	o->efficiency_low = o->compute_s / o->high_s;
	o->efficiency_high = fmin(o->compute_s / o->low_s, 1);
}

/* gf_what_if of a plan with a period, without jitter: groups wait for one that has the slowest rank
 * and all slow links. */
static int what_if_period(const struct gf_plan *p, const struct gf_what_if *w,
			  struct gf_outcome *out, struct gf_error *err)
{
	const int ranks = w->ranks ? w->ranks : p->ranks;
	const double slowest = gf_what_if_slowest(w, ranks);
	struct elsewhere t = {.plan = p, .what = w, .period = p->period};
	struct gf_outcome o = {0};
	int rc;

	assert(!gf_what_if_varies(w));
	if (w->period_steps)
		t.period.steps = w->period_steps;
	rc = check_groups(&t.period, ranks, err);
	rc = rc ?: gf_sim_group_plan(p, &t.group, err);
	if (rc < 0)
		return rc;
	t.times = gf_xcalloc(t.period.fragments, sizeof(*t.times));
	rc = run_group(&t, slowest, &o, err);
	rc = rc ?: run_outer(&t, err);
	if (rc == 0) {
		o.ranks = ranks;
		conclude_period(&t, slowest, &o);
		add_error(&t.group, &o);
		*out = o;
	} else {
		gf_outcome_release(&o);
	}
	free(t.times);
	gf_variant_release(&t.outer);
	gf_plan_release(&t.group);
	return rc;
}

int gf_what_if(const struct gf_plan *p, const struct gf_what_if *w, struct gf_outcome *out,
	       struct gf_error *err)
{
	struct gf_outcome o = {.ranks = w->ranks ? w->ranks : p->ranks,
			       .bandwidth_bytes_per_s = w->bandwidth_bytes_per_s};
	GF_RELEASED(gf_variant_release) struct gf_variant v = {0};
	int rc = check(p, w, err);

	if (rc < 0)
		return rc;
	if (!gf_period_has(&p->period, GF_PERIOD_EVERY))
		return what_if_period(p, w, out, err);
	o.messages = gf_xcalloc(p->nmessages + 1, sizeof(*o.messages));
	rc = run(p, w, &v, &o, err);
	rc = rc ?: add_doubt(p, w, &o, err);
	if (rc == 0 && w->beyond)
		gf_beyond_add(w->beyond, &v.plan, &v.fabric, &v.traffic);
	if (rc < 0) {
		gf_outcome_release(&o);
	} else {
		add_error(&v.plan, &o);
		*out = o;
	}
	return rc;
}

void gf_outcome_release(struct gf_outcome *out)
{
	free(out->messages);
	gf_gantt_free(out->timeline);
	memset(out, 0, sizeof(*out));
}
