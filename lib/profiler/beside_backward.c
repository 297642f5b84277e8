/* SPDX-License-Identifier: BSD-3-Clause */
#include "profiler/profile_parts.h"

#include <math.h>
#include <string.h>

#include "base/clock.h"
#include "base/heap.h"
#include "cost/stat.h"
#include "profiler/chain.h"
#include "profiler/network_parts.h"
#include "profiler/overlap.h"
#include "simulator/step.h"

/* Both ways to send it take turns, since the machine's pace drifts. A turn has so many steps, after
 * those that do not count. */
enum { TURNS = 5, STEPS_LEAST = 3, STEPS_MOST = 25, UNCOUNTED = 2 };
/* Within these, compute_slowdown is looked for; by so many halvings. */
static const double most_slowdown = 100;
enum { HALVINGS = 40 };
/* A prediction that depends on it by less than this share tells nothing. */
static const double least_effect = 0.01;

static struct gf_measure_parts cut(const struct gf_measure_step *s, size_t count)
{
	size_t all = s->offsets[s->ntensors], i, tensor = 0;
	struct gf_measure_parts p = {.count = count, .elems = (all + count - 1) / count};

	for (i = 0; i < count; i++) {
		size_t to = (i + 1) * p.elems;

		while (tensor + 1 < s->ntensors && s->offsets[tensor + 1] < to)
			tensor++;
		p.last[i] = tensor;
	}
	return p;
}

/* --- steps as training does them ------------------------------------------ */

struct turn {
	struct gf_measure_exchange exchange;
	const struct gf_measure_parts *parts;
	size_t next; /* message to be made ready */
};

static void made(void *ctx, size_t tensor)
{
	struct turn *t = ctx;

	while (t->next < t->parts->count && t->parts->last[t->next] <= tensor)
		gf_measure_exchange_ready(&t->exchange, t->next++);
}

static int one_step(struct turn *t, struct gf_measure_pass *pass, struct gf_error *err)
{
	t->next = 0;
	gf_measure_exchange_begin(&t->exchange);
	gf_measure_pass_forward(pass);
	gf_measure_pass_begin(pass);
	(void)gf_measure_pass_backward(pass);
	gf_engine_backward_end(t->exchange.engine);
	return gf_measure_exchange_wait(&t->exchange, err);
}

/* The times of a turn's steps on this rank. */
static int take_turn(const struct gf_measure_overlap *c, const struct gf_allreduce_cost *cost,
		     const struct gf_measure_parts *parts, struct gf_measure_pass *pass,
		     double *took_s, int steps, struct gf_error *err)
{
	const struct gf_measure_exchange_config config = {
		.comm = c->comm,
		.by = cost,
		.compute_threads = c->threads,
		.callers_memory = c->callers_memory,
		.count_elems = parts->elems,
		.messages = (int)parts->count,
		.lanes = 1,
		.timeout_s = c->timeout_s,
	};
	struct turn t = {.parts = parts};
	int i, rc = gf_measure_exchange_open(&t.exchange, &config, err);

	if (rc)
		return rc;
	pass->on_grad = made;
	pass->on_grad_ctx = &t;
	for (i = -UNCOUNTED; i < steps && rc == 0; i++) {
		double began_s = gf_clock_s();

		rc = one_step(&t, pass, err);
		if (i >= 0)
			took_s[i] = gf_clock_s() - began_s;
	}
	pass->on_grad = NULL;
	pass->on_grad_ctx = NULL;
	gf_measure_exchange_close(&t.exchange);
	return rc;
}

static int steps_of_turn(const struct gf_profile *p, double budget_s)
{
	const struct gf_model_profile *m = p->model;
	double bytes = (double)gf_model_profile_bytes(m);
	struct gf_cost_lines lines = gf_allreduce_lines(gf_network_cheapest(p->network, bytes));
	double step_s = m->forward_s + m->backward_s + gf_cost_lines_s(&lines, bytes);
	double steps = budget_s / (2 * TURNS * step_s) - UNCOUNTED;

	return (int)fmin(STEPS_MOST, fmax(STEPS_LEAST, steps));
}

static int median_of_ranks(struct gf_comm *comm, const double *mine, int n, double *median,
			   struct gf_error *err)
{
	size_t all_n = (size_t)n * (size_t)comm->ranks;
	GF_FREED double *all = gf_xcalloc(all_n, sizeof(*all));
	int rc = gf_comm_allgather(comm, mine, (size_t)n * sizeof(*mine), all, err);

	if (rc == 0)
		*median = gf_stat_median(all, all_n);
	return rc;
}

/* By how much longer a step takes in parts. */
static int measure_ratio(const struct gf_measure_overlap *c, int steps,
			 const struct gf_allreduce_cost *cost, const struct gf_measure_parts *whole,
			 const struct gf_measure_parts *parts, struct gf_measure_pass *pass,
			 double *ratio, struct gf_error *err)
{
	GF_FREED double *took_s = gf_xcalloc((size_t)steps, sizeof(*took_s));
	double ratios[TURNS], whole_s, parts_s;
	int i, rc = 0;

	for (i = 0; i < TURNS && rc == 0; i++) {
		rc = take_turn(c, cost, whole, pass, took_s, steps, err);
		rc = rc ?: median_of_ranks(c->comm, took_s, steps, &whole_s, err);
		rc = rc ?: take_turn(c, cost, parts, pass, took_s, steps, err);
		rc = rc ?: median_of_ranks(c->comm, took_s, steps, &parts_s, err);
		ratios[i] = rc ? 0 : parts_s / whole_s;
	}
	if (rc == 0)
		*ratio = gf_stat_median(ratios, TURNS);
	return rc;
}

/* --- what the step model makes of them ------------------------------------ */

static double predict_s(const struct gf_model_profile *model, const struct gf_allreduce_cost *cost,
			double slowdown, const struct gf_measure_parts *parts)
{
	struct gf_beside_backward mutual = cost->beside;
	struct gf_cost_lines lines = gf_allreduce_lines(cost);
	double bytes = (double)(parts->elems * sizeof(float));
	struct gf_cost_line line = gf_cost_line_at(&lines, bytes, 1, NULL);
	struct gf_sim_message messages[GF_MEASURE_PARTS] = {0};
	struct gf_predicted_message times[GF_MEASURE_PARTS];
	struct gf_sim_result result = {.messages = times};

	mutual.compute_slowdown = &slowdown;
	mutual.ncompute_slowdown = 1;
	for (size_t i = 0; i < parts->count; i++)
		messages[i] = (struct gf_sim_message){
			.first = i ? parts->last[i - 1] : 0,
			.last = parts->last[i],
			.mode = GF_MODE_NORMAL,
			.release = GF_RELEASE_READY,
			.half = GF_HALF_ALL,
			.startup_s = line.startup_s,
			.per_byte_s = line.per_byte_s,
			.bytes = bytes,
			.mutual = &mutual,
		};
	gf_sim_step(&(struct gf_sim_input){model, messages, parts->count, 1, 0}, &result);
	return result.iteration_s;
}

double gf_measure_joint_rate(const struct gf_model_profile *model,
			     const struct gf_allreduce_cost *cost,
			     const struct gf_measure_parts *whole,
			     const struct gf_measure_parts *parts, double ratio)
{
	double low = 1, high = most_slowdown, whole_s;
	double message = fmax(cost->beside.message_slowdown, 1);

	whole_s = predict_s(model, cost, 1, whole);
	if (predict_s(model, cost, high, parts) <
	    predict_s(model, cost, low, parts) + least_effect * whole_s)
		return NAN;
	for (int i = 0; i < HALVINGS; i++) {
		double middle = sqrt(low * high);

		if (predict_s(model, cost, middle, parts) / whole_s < ratio)
			low = middle;
		else
			high = middle;
	}
	return 1 / high + 1 / message;
}

static void set_slowdown(struct gf_beside_backward *b, double rate)
{
	double left = rate - 1 / fmax(b->message_slowdown, 1), before;

	before = fmax(1, left > 1 / most_slowdown ? 1 / left : most_slowdown);
	for (size_t i = 0; i < b->ncompute_slowdown; i++) {
		if (i == 0 || b->compute_slowdown[i] < before)
			b->compute_slowdown[i] = before;
		before = b->compute_slowdown[i];
	}
}

/* Sets compute_slowdown of every algorithm of the profile, which has both halves. load: how
 * messages go; its `cost` and `repeats` do not count. Collective; all ranks get the same. */
static int measure_whole_steps(const struct gf_measure_overlap *c, double budget_s,
			       struct gf_measure_step *step, struct gf_profile *p,
			       struct gf_error *err)
{
	const struct gf_measure_parts whole = cut(step, 1), parts = cut(step, GF_MEASURE_PARTS);
	const struct gf_allreduce_cost *cost =
		gf_network_cheapest(p->network, (double)(parts.elems * sizeof(float)));
	struct gf_measure_pass pass;
	double ratio = 0, rate;
	int rc = gf_comm_agree(c->comm, gf_measure_pass_open(&pass, step, err), err);

	if (rc == 0)
		rc = measure_ratio(c, steps_of_turn(p, budget_s), cost, &whole, &parts, &pass,
				   &ratio, err);
	rc = gf_measure_pass_conclude(&pass, c->comm, rc, err);
	if (rc)
		return rc;
	rate = gf_measure_joint_rate(p->model, cost, &whole, &parts, ratio);
	for (size_t i = 0; i < p->network->nallreduce && !isnan(rate); i++)
		set_slowdown(&p->network->allreduce[i].beside, rate);
	return 0;
}

/* The repeats after the first algorithm, and when the time has passed. */
enum { FEWER_REPEATS = 9, FEWEST_REPEATS = 3 };

/* Of shorter messages the startup tells more. */
#define BELOW_LEAST ((size_t)8 << 10)

static struct gf_measure_overlap load_of(const struct gf_measure_beside *c,
					 const struct gf_profile *p,
					 const struct gf_allreduce_cost *cost, int lanes)
{
	return (struct gf_measure_overlap){
		.comm = c->comm,
		.device = c->device,
		.cost = cost,
		.lanes = lanes,
		.threads = c->threads,
		.callers_memory = c->callers_memory,
		.backward_s = p->model->backward_s,
		.repeats = c->repeats,
		.timeout_s = c->timeout_s,
	};
}

/* The next number of lanes of an algorithm. */
static void note(struct gf_allreduce_cost *cost, const struct gf_measure_mutual *found)
{
	struct gf_beside_backward *b = &cost->beside;
	size_t n = b->ncompute_slowdown;
	double before = n ? b->compute_slowdown[n - 1] : 1;

	if (!(found->compute > 0))
		return;
	b->compute_slowdown =
		gf_xreallocarray(b->compute_slowdown, n + 1, sizeof(*b->compute_slowdown));
	/* noise must not make company cheaper than being alone */
	b->compute_slowdown[b->ncompute_slowdown++] =
		found->compute > before ? found->compute : before;
	if (n == 0)
		b->message_slowdown = found->message;
}

/* A message below the first size at which another line begins may fare worse: MPI's own all-reduce
 * sends it in another way. What it starts later by does not count twice. */
static int measure_below(const struct gf_measure_overlap *like, struct gf_measure_step *step,
			 struct gf_allreduce_cost *cost, struct gf_error *err)
{
	struct gf_cost_lines lines = gf_allreduce_lines(cost);
	struct gf_measure_overlap o = *like;
	struct gf_measure_mutual found = {0};
	double alone_s, message;
	int rc;

	if (!cost->nlarger)
		return 0;
	o.bytes = cost->larger[0].from_bytes / 8 * 4;
	if (o.bytes < BELOW_LEAST)
		return 0;
	rc = gf_measure_overlap(&o, step, &found, err);
	alone_s = gf_cost_lines_s(&lines, (double)o.bytes);
	message = found.message - cost->beside.startup_extra_s / alone_s;
	if (rc == 0 && message > cost->beside.message_slowdown)
		cost->beside.message_slowdown = message;
	return rc;
}

/* What shorter messages tell, which long ones hide. */
static int measure_short(const struct gf_measure_overlap *o, struct gf_measure_step *step,
			 struct gf_allreduce_cost *cost, double *issue_s, struct gf_error *err)
{
	struct gf_measure_issued issued = {0};
	int rc = gf_measure_issue(o, step, &issued, err);

	if (rc)
		return rc;
	cost->beside.startup_extra_s = issued.extra_s;
	if (issue_s)
		*issue_s = issued.issue_s;
	return measure_below(o, step, cost, err);
}

static int measure_others(const struct gf_measure_beside *c, struct gf_measure_step *step,
			  struct gf_profile *p, const size_t *twins, double began_s,
			  struct gf_error *err)
{
	struct gf_network *net = p->network;
	struct gf_measure_mutual found;
	bool left = true;
	int lanes, rc = 0;

	for (lanes = 1; lanes <= c->lanes; lanes++)
		for (size_t i = 0; i < net->nallreduce && rc == 0 && left; i++) {
			struct gf_allreduce_cost *cost = &net->allreduce[i];
			struct gf_measure_overlap o = load_of(c, p, cost, lanes);
			double passed_s;

			/* measured, or not known with fewer lanes */
			if (twins[i] < i || (int)cost->beside.ncompute_slowdown != lanes - 1)
				continue;
			if (o.repeats > FEWER_REPEATS)
				o.repeats = FEWER_REPEATS;
			passed_s = gf_clock_s() - began_s;
			rc = gf_measure_slowest(c->comm, &passed_s, 1, err);
			left = passed_s < c->budget_s;
			/* what each takes alone tells too little */
			if (!left && lanes == 1 && o.repeats > FEWEST_REPEATS)
				o.repeats = FEWEST_REPEATS;
			left |= lanes == 1;
			if (rc == 0 && left)
				rc = gf_measure_overlap(&o, step, &found, err);
			if (rc == 0 && left)
				note(cost, &found);
			if (rc == 0 && left && lanes == 1)
				rc = measure_short(&o, step, cost, NULL, err);
		}
	return rc;
}

static void take_over(struct gf_beside_backward *to, const struct gf_beside_backward *from)
{
	size_t size = from->ncompute_slowdown * sizeof(*from->compute_slowdown);

	*to = *from;
	to->compute_slowdown = gf_xmemdup(from->compute_slowdown, size);
}

/* Algorithms that are not known, or for which there was no time, are taken to be as the first: else
 * plans would be compared by different measures. */
static void fill_in(struct gf_network *net, const struct gf_beside_backward *b, const size_t *twins)
{
	for (size_t i = 0; i < net->nallreduce; i++) {
		struct gf_beside_backward *to = &net->allreduce[i].beside;

		if (twins[i] < i)
			take_over(to, &net->allreduce[twins[i]].beside);
		else if (!to->ncompute_slowdown && b->ncompute_slowdown)
			take_over(to, b);
	}
}

static int measure(const struct gf_measure_beside *c, struct gf_measure_step *step,
		   struct gf_profile *p, const size_t *twins, struct gf_error *err)
{
	struct gf_network *net = p->network;
	/* the one that would carry the whole gradient */
	const struct gf_allreduce_cost *cheapest =
		gf_network_cheapest(net, (double)gf_model_profile_bytes(p->model));
	struct gf_allreduce_cost *first = &net->allreduce[twins[cheapest - net->allreduce]];
	struct gf_measure_overlap o = load_of(c, p, first, 1);
	struct gf_measure_mutual found = {0};
	double began_s = gf_clock_s(), crowded = c->comm->crowded;
	int rc = gf_measure_overlap(&o, step, &found, err);

	if (rc)
		return rc;
	p->model->overlap_slowdown = found.overlap_slowdown;
	note(first, &found);
	if (c->device && c->device->nccl)
		return 0;
	rc = measure_short(&o, step, first, &p->model->issue_s, err);
	rc = rc ?: measure_others(c, step, p, twins, began_s, err);
	if (rc)
		return rc;
	fill_in(net, &first->beside, twins);
	/* on all ranks, if it is so on any */
	rc = gf_measure_slowest(c->comm, &crowded, 1, err);
	return rc || !(crowded > 0) ? rc : measure_whole_steps(&o, c->budget_s, step, p, err);
}

int gf_measure_beside(const struct gf_measure_beside *c, struct gf_measure_step *step,
		      struct gf_profile *p, struct gf_error *err)
{
	const struct gf_network *net = p->network;
	GF_FREED size_t *twins = NULL;
	int rc = gf_measure_twins(c->comm, net, &twins, err);

	/* an algorithm is measured once, and not with all of its stages */
	for (size_t i = 0; i < net->nallreduce; i++)
		for (size_t k = 0; k < i && twins[i] == i; k++)
			if (strcmp(net->allreduce[k].algorithm, net->allreduce[i].algorithm) == 0)
				twins[i] = twins[k];
	return rc ?: measure(c, step, p, twins, err);
}
