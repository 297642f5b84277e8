/* SPDX-License-Identifier: BSD-3-Clause */
#include "planner/shards.h"

#include <math.h>
#include <string.h>

#include "base/array.h"
#include "base/heap.h"
#include "base/registry.h"
#include "base/units.h"
#include "cli/human.h"
#include "collectives/codecs/codec.h"
#include "planner/policies/policy.h"
#include "simulator/memory.h"
#include "simulator/predict.h"
#include "simulator/uncertainty.h"

enum { KEEP_AUTO, KEEP_NO, KEEP_YES };

struct search {
	const struct gf_task *t;
	const struct gf_workbench *w;
	const struct gf_model_profile *model;
	struct gf_shard shard;
	int keeps;               /* that were asked for */
	bool ahead_asked, fixed; /* fixed: the cut was asked for, too */
	int lanes_least, lanes_most;
	/* Candidates that no other one beats in time and memory. */
	struct gf_shard_draft *front;
	size_t nfront, capacity;
	size_t works, works_most; /* simulated so far */
	/* for one evaluation, room for every tensor */
	struct gf_message *messages;
	struct gf_sim_message *priced;
	struct gf_predicted_message *predicted;
	struct gf_shard_work *order;
	double *times;
};

/* --- candidates ------------------------------------------------------------ */

static struct gf_shard_draft draft_new(const struct search *s)
{
	const size_t n = s->model->ntensors;

	return (struct gf_shard_draft){
		.last = gf_xcalloc(n, sizeof(size_t)),
		.keep = gf_xcalloc(n, sizeof(bool)),
		.lanes = s->lanes_least,
	};
}

static void draft_release(struct gf_shard_draft *d)
{
	free(d->last);
	free(d->keep);
}

static void draft_set(struct gf_shard_draft *to, const struct gf_shard_draft *from)
{
	const struct gf_shard_draft room = *to;

	*to = *from;
	to->last = memcpy(room.last, from->last, from->n * sizeof(*to->last));
	to->keep = memcpy(room.keep, from->keep, from->n * sizeof(*to->keep));
}

static struct gf_shard_draft draft_copy(const struct search *s, const struct gf_shard_draft *from)
{
	struct gf_shard_draft d = draft_new(s);

	draft_set(&d, from);
	return d;
}

static bool has_units(const struct search *s)
{
	return gf_shard_has(&s->shard, GF_SHARD_PARAMETERS);
}

static size_t first_of(const struct gf_shard_draft *d, size_t unit)
{
	return unit ? d->last[unit - 1] + 1 : 0;
}

/* Nothing in the archive is as good; those that are worse leave it. */
static void archive(struct search *s, const struct gf_shard_draft *d)
{
	size_t i, n = 0;

	for (i = 0; i < s->nfront; i++)
		if (s->front[i].iteration_s <= d->iteration_s &&
		    s->front[i].peak_bytes <= d->peak_bytes)
			return;
	for (i = 0; i < s->nfront; i++)
		if (s->front[i].iteration_s >= d->iteration_s &&
		    s->front[i].peak_bytes >= d->peak_bytes)
			draft_release(&s->front[i]);
		else
			s->front[n++] = s->front[i];
	s->nfront = n;
	gf_array_push(&s->front, &s->nfront, &s->capacity);
	s->front[n] = draft_copy(s, d);
}

/* What was asked of keeps and units ahead holds of every candidate. */
static void obey(const struct search *s, struct gf_shard_draft *d)
{
	for (size_t i = 0; i < d->n; i++)
		if (!has_units(s) || s->keeps == KEEP_NO)
			d->keep[i] = false;
		else if (s->keeps == KEEP_YES)
			d->keep[i] = true;
	if (!has_units(s))
		d->ahead = 0;
	else if (s->ahead_asked)
		d->ahead = s->shard.ahead;
	d->ahead = d->ahead < d->n ? d->ahead : d->n;
}

static void evaluate(struct search *s, struct gf_shard_draft *d)
{
	struct gf_memory_setting setting = {s->model, &s->shard, &s->t->memory, false, 1};
	struct gf_sim_result result = {.messages = s->predicted};
	struct gf_sim_input in = {
		.model = s->model,
		.messages = s->priced,
		.nmessages = d->n,
		.lanes = d->lanes,
		.update_s = s->model->update_s / s->shard.group_ranks,
		.works = s->order,
	};
	struct gf_sim_shard_times times;
	struct gf_memory_use use;

	obey(s, d);
	for (size_t i = 0; i < d->n; i++) {
		struct gf_send send = {first_of(d, i), d->last[i], .half = GF_HALF_SPLIT};

		send.mode = d->lanes > 1 ? GF_MODE_SIMULTANEOUS : GF_MODE_NORMAL;
		send.option =
			gf_menu_pick(&s->w->menu, gf_workbench_bytes(s->w, send.first, send.last));
		setting.coded |= !gf_codec_is_plain(s->w->menu.options[send.option].codec);
		s->priced[i] = gf_workbench_message(s->w, &send);
		s->messages[i].keep = d->keep[i];
	}
	s->shard.ahead = d->ahead;
	in.nworks = gf_shard_order(&s->shard, s->messages, d->n, 1, s->order);
	times = (struct gf_sim_shard_times){s->times, s->times + in.nworks,
					    s->times + 2 * in.nworks,
					    s->times + 2 * in.nworks + 2 * d->n};
	result.shards = &times;
	gf_sim_step(&in, &result);
	gf_sim_memory(&setting, &in, &times, &use);
	d->iteration_s = result.iteration_s;
	d->peak_bytes = use.peak_bytes;
	s->works += in.nworks + d->n;
	archive(s, d);
}

/* --- where the search begins ------------------------------------------------ */

/* A cut with each choice of lanes, units ahead and keeps: none, all, and those whose backward
 * follows their forward the soonest. */
static void try_cut(struct search *s, struct gf_shard_draft *d)
{
	static const size_t aheads[] = {0, 1, 2, 4, SIZE_MAX};
	GF_RELEASED(draft_release) struct gf_shard_draft c = draft_new(s);
	size_t a, part, i;

	for (int lanes = s->lanes_least; lanes <= s->lanes_most; lanes++)
		for (a = 0; a < (has_units(s) && !s->ahead_asked ? GF_ARRAY_LENGTH(aheads) : 1);
		     a++)
			for (part = 0; part <= (has_units(s) && s->keeps == KEEP_AUTO ? 4 : 0);
			     part++) {
				draft_set(&c, d);
				c.lanes = lanes;
				c.ahead = aheads[a];
				for (i = 0; i < c.n; i++)
					c.keep[i] = i < c.n * part / 4;
				evaluate(s, &c);
			}
}

static void try_rule(struct search *s, const struct gf_shard_rule *rule)
{
	GF_RELEASED(draft_release) struct gf_shard_draft d = draft_new(s);

	rule->draft(s->model, &d);
	for (; rule->whole && d.lanes <= s->lanes_most; d.lanes++)
		evaluate(s, &d);
	d.lanes = s->lanes_least;
	if (!s->fixed || !rule->whole)
		try_cut(s, &d);
}

/* Units close with the layer in which they have more than so many bytes. */
static void cut_at(const struct search *s, double bytes, struct gf_shard_draft *d)
{
	size_t first = 0, i;

	d->n = 0;
	for (i = 0; i < s->model->ntensors; i++) {
		const bool ends =
			i + 1 == s->model->ntensors || gf_shards_layer_begins(s->model, i + 1);

		if (!ends ||
		    (i != s->w->run_last[i] && gf_workbench_bytes(s->w, first, i) <= bytes))
			continue;
		d->last[d->n++] = i;
		first = i + 1;
	}
}

static void try_thresholds(struct search *s)
{
	double bytes = gf_workbench_bytes(s->w, 0, s->model->ntensors - 1);
	GF_RELEASED(draft_release) struct gf_shard_draft d = draft_new(s);
	size_t before = 0;

	for (; bytes >= 1 && s->works < s->works_most; bytes /= sqrt(2)) {
		cut_at(s, bytes, &d);
		if (d.n != before)
			try_cut(s, &d);
		before = d.n;
	}
}

/* --- from there ------------------------------------------------------------- */

static void merge(struct gf_shard_draft *d, size_t unit)
{
	memmove(d->last + unit, d->last + unit + 1, (d->n - unit - 1) * sizeof(*d->last));
	memmove(d->keep + unit, d->keep + unit + 1, (d->n - unit - 1) * sizeof(*d->keep));
	d->n--;
}

static void split(struct gf_shard_draft *d, size_t unit, size_t last)
{
	memmove(d->last + unit + 1, d->last + unit, (d->n - unit) * sizeof(*d->last));
	memmove(d->keep + unit + 1, d->keep + unit, (d->n - unit) * sizeof(*d->keep));
	d->last[unit] = last;
	d->n++;
}

/* The layer's end nearest to the middle of the unit's bytes; its last tensor: there is none. */
static size_t middle_of(const struct search *s, const struct gf_shard_draft *d, size_t unit)
{
	const size_t first = first_of(d, unit), last = d->last[unit];
	const double half = gf_workbench_bytes(s->w, first, last) / 2;
	double least = INFINITY;
	size_t best = last, i;

	for (i = first; i < last; i++) {
		const double off = fabs(gf_workbench_bytes(s->w, first, i) - half);

		if (gf_shards_layer_begins(s->model, i + 1) && off < least) {
			least = off;
			best = i;
		}
	}
	return best;
}

/* The move-th change of a candidate: false: it has none of that number. `done` says whether there
 * are more. */
static bool change(const struct search *s, struct gf_shard_draft *d, size_t move, bool *done)
{
	const size_t unit = move / 3, kind = move % 3;

	*done = unit > d->n;
	if (unit == d->n) { /* of the whole */
		if (!has_units(s) || s->ahead_asked || kind > 1 || (kind && !d->ahead))
			return false;
		d->ahead = kind ? d->ahead - 1 : d->ahead + 1;
		return true;
	}
	if (*done)
		return false;
	if (kind == 0) {
		if (s->fixed || unit + 1 == d->n || s->w->run_last[d->last[unit]] == d->last[unit])
			return false;
		merge(d, unit);
	} else if (kind == 1) {
		const size_t at = middle_of(s, d, unit);

		if (s->fixed || at == d->last[unit])
			return false;
		split(d, unit, at);
	} else {
		if (!has_units(s) || !unit || s->keeps != KEEP_AUTO)
			return false;
		d->keep[unit] = !d->keep[unit];
	}
	return true;
}

/* Changes that make it faster and hold no more, as long as there are some. */
static void improve(struct search *s, const struct gf_shard_draft *from, size_t works_most)
{
	GF_RELEASED(draft_release) struct gf_shard_draft best = draft_copy(s, from);
	GF_RELEASED(draft_release) struct gf_shard_draft next = draft_new(s);
	bool better = true, done = false;
	size_t move;

	while (better && s->works < works_most) {
		better = false;
		for (move = 0, done = false; !done && s->works < works_most; move++) {
			draft_set(&next, &best);
			if (!change(s, &next, move, &done))
				continue;
			evaluate(s, &next);
			if (next.iteration_s >= best.iteration_s ||
			    next.peak_bytes > best.peak_bytes)
				continue;
			draft_set(&best, &next);
			better = true;
		}
	}
}

GF_ORDER(faster, struct gf_shard_draft, GF_BY(x->iteration_s, y->iteration_s))

#define STARTS 8

/* From candidates that are spread over the archive, each with a share of what is left. */
static void improve_all(struct search *s)
{
	struct gf_shard_draft starts[STARTS];
	const size_t n = s->nfront < STARTS ? s->nfront : STARTS, used = s->works;

	qsort(s->front, s->nfront, sizeof(*s->front), faster);
	for (size_t i = 0; i < n; i++)
		starts[i] = draft_copy(s, &s->front[n > 1 ? i * (s->nfront - 1) / (n - 1) : 0]);
	for (size_t i = 0; i < n; i++) {
		improve(s, &starts[i], used + (i + 1) * s->works_most / n);
		draft_release(&starts[i]);
	}
}

/* --- all of few ------------------------------------------------------------- */

/* Ends of layers but the last, at most `room`; more: room + 1. */
static size_t find_ends(const struct search *s, size_t *ends, size_t room)
{
	size_t n = 0, i;

	for (i = 1; i < s->model->ntensors; i++)
		if (gf_shards_layer_begins(s->model, i)) {
			if (n == room)
				return room + 1;
			ends[n++] = i - 1;
		}
	return n;
}

static double count_all(const struct search *s, size_t nends)
{
	const double lanes = s->lanes_most - s->lanes_least + 1;

	if (!has_units(s))
		return pow(2, (double)nends) * lanes;
	return pow(s->keeps == KEEP_AUTO ? 3 : 2, (double)nends) * lanes *
	       (s->ahead_asked ? 1 : (double)nends + 2);
}

/* Keeps as the bits say; the unit 0 is always there. */
static void try_keeps(struct search *s, struct gf_shard_draft *d)
{
	const size_t n = has_units(s) && s->keeps == KEEP_AUTO ? (size_t)1 << (d->n - 1) : 1;
	GF_RELEASED(draft_release) struct gf_shard_draft c = draft_new(s);
	size_t bits, i, ahead;

	for (bits = 0; bits < n; bits++)
		for (ahead = 0; ahead <= (has_units(s) && !s->ahead_asked ? d->n : 0); ahead++)
			for (int lanes = s->lanes_least; lanes <= s->lanes_most; lanes++) {
				draft_set(&c, d);
				c.lanes = lanes;
				c.ahead = ahead;
				for (i = 1; i < c.n; i++)
					c.keep[i] = bits >> (i - 1) & 1;
				evaluate(s, &c);
			}
}

static bool try_all(struct search *s)
{
	size_t ends[16], n = find_ends(s, ends, 16), bits, i;
	GF_RELEASED(draft_release) struct gf_shard_draft d = {0};

	if (n > 16 || s->fixed || count_all(s, n) > GF_SHARDS_EXACT)
		return false;
	d = draft_new(s);
	for (bits = 0; bits < (size_t)1 << n; bits++) {
		bool legal = true;

		d.n = 0;
		for (i = 0; i < n; i++)
			if (bits >> i & 1)
				d.last[d.n++] = ends[i];
			else
				legal &= s->w->run_last[ends[i]] != ends[i];
		d.last[d.n++] = s->model->ntensors - 1;
		if (legal)
			try_keeps(s, &d);
	}
	return true;
}

/* --- the search ------------------------------------------------------------- */

static const struct gf_shard_rule *rule_of(const char *units)
{
	return gf_named_find(gf_shard_rules, sizeof(*gf_shard_rules), units);
}

/* The units that were asked for: a rule, or bytes. -EINVAL: neither. */
static int try_asked(struct search *s, const char *units, struct gf_error *err)
{
	static const struct gf_registry rules = {gf_shard_rules, sizeof(*gf_shard_rules), NULL};
	const struct gf_shard_rule *rule = rule_of(units);
	GF_RELEASED(draft_release) struct gf_shard_draft d = {0};
	size_t bytes;

	s->fixed = true;
	if (rule) {
		try_rule(s, rule);
		return 0;
	}
	if (gf_units_size(units, &bytes, NULL) < 0)
		return gf_registry_refuse(&rules, "--shard: units", "auto, or bytes", units, err);
	d = draft_new(s);
	cut_at(s, (double)bytes, &d);
	try_cut(s, &d);
	return 0;
}

static int search(struct search *s, struct gf_error *err)
{
	const char *units = s->t->axes ? s->t->axes->shard_units : NULL;

	if (units && strcmp(units, "auto") != 0)
		return try_asked(s, units, err);
	if (try_all(s))
		return 0;
	for (size_t i = 0; gf_shard_rules[i].name; i++)
		try_rule(s, &gf_shard_rules[i]);
	try_thresholds(s);
	improve_all(s);
	return 0;
}

/* Two lanes first, then each number up to the usual one, then the most: all that fewer lanes find
 * is kept, so a looser bound is not slower. */
static int find_front(struct search *s, struct gf_error *err)
{
	const int most = s->lanes_most;
	int lanes = most < 2 ? most : 2, rc;

	for (s->lanes_most = lanes; (rc = search(s, err)) == 0 && lanes < most; s->works = 0) {
		lanes = lanes < GF_LANES_MOST ? lanes + 1 : most;
		s->lanes_least = s->lanes_most = lanes;
		s->works_most = GF_SHARDS_WORKS / (GF_LANES_MOST - 1);
	}
	return rc;
}

static void open_search(struct search *s, const struct gf_task *t, const struct gf_workbench *w)
{
	const struct gf_axes *a = t->axes;
	const size_t n = w->ntensors;

	*s = (struct search){
		.t = t,
		.w = w,
		.model = w->in->model,
		.shard = t->shard,
		.keeps = a ? a->shard_keep : KEEP_AUTO,
		.ahead_asked = a && a->shard_ahead != SIZE_MAX,
		.lanes_least = 1,
		.lanes_most = (int)fmin(t->problem.lanes ? t->problem.lanes : 2, (double)n),
		.works_most = GF_SHARDS_WORKS,
	};
	s->shard.ahead = s->ahead_asked ? a->shard_ahead : 0;
	s->messages = gf_xcalloc(n, sizeof(*s->messages));
	s->priced = gf_xcalloc(n, sizeof(*s->priced));
	s->predicted = gf_xcalloc(n, sizeof(*s->predicted));
	s->order = gf_xcalloc(3 * n, sizeof(*s->order));
	s->times = gf_xcalloc(10 * n, sizeof(*s->times));
}

static void close_search(struct search *s)
{
	for (size_t i = 0; i < s->nfront; i++)
		draft_release(&s->front[i]);
	free(s->front);
	free(s->messages);
	free(s->priced);
	free(s->predicted);
	free(s->order);
	free(s->times);
}

/* --- the plan --------------------------------------------------------------- */

static void write_plan(const struct search *s, const struct gf_shard_draft *d, struct gf_plan *p)
{
	const struct gf_problem *in = &s->t->problem;
	const char *units = s->t->axes ? s->t->axes->shard_units : NULL;

	*p = (struct gf_plan){
		.system = gf_xstrdup(s->t->system.name),
		.policy = gf_xstrdup(units && rule_of(units) ? units : "units"),
		.lanes = d->lanes,
		.model = gf_model_profile_copy(in->model),
		.staleness = 1,
		.reproducible = in->reproducible,
		.shard = s->shard,
		.memory = s->t->memory,
		.nmessages = d->n,
		.messages = gf_xcalloc(d->n, sizeof(*p->messages)),
	};
	gf_plan_take_fabric(p, &in->fabric);
	p->shard.ahead = d->ahead;
	for (size_t i = 0; i < d->n; i++) {
		struct gf_message *m = &p->messages[i];

		m->first = first_of(d, i);
		m->last = d->last[i];
		m->mode = d->lanes > 1 ? GF_MODE_SIMULTANEOUS : GF_MODE_NORMAL;
		m->half = GF_HALF_SPLIT;
		m->keep = d->keep[i];
		gf_option_tell(&s->w->menu.options[gf_menu_pick(
				       &s->w->menu, gf_workbench_bytes(s->w, m->first, m->last))],
			       m);
	}
	gf_plan_set_types(p);
}

/* The fastest that fits; of equals, what holds less. NULL: none does, and *least is the least. */
static const struct gf_shard_draft *choose(const struct search *s, double *least_bytes)
{
	const size_t limit = s->t->memory.limit_bytes;
	const struct gf_shard_draft *best = NULL;

	*least_bytes = INFINITY;
	for (size_t i = 0; i < s->nfront; i++) {
		const struct gf_shard_draft *d = &s->front[i];

		*least_bytes = fmin(*least_bytes, d->peak_bytes);
		if (limit && d->peak_bytes > (double)limit)
			continue;
		if (!best || d->iteration_s < best->iteration_s ||
		    (d->iteration_s == best->iteration_s && d->peak_bytes < best->peak_bytes))
			best = d;
	}
	return best;
}

static int refuse(const struct gf_task *t, const char *name, double least_bytes,
		  struct gf_error *err)
{
	return gf_error_set(
		err, -ENOTSUP,
		"--memory: want a plan that fits into %s, found at least %s with %s: give more "
		"ranks%s",
		gf_human_size((double)t->memory.limit_bytes).text, gf_human_size(least_bytes).text,
		name,
		t->memory.recompute ? " or a smaller --batch"
				    : ", a smaller --batch, or recompute=yes");
}

/* With shards of one method. */
static int plan_sharded(const struct gf_task *t, struct gf_plan *p, struct gf_error *err)
{
	struct gf_problem problem = t->problem;
	const struct gf_shard_draft *d;
	double least_bytes, bound_s;
	GF_RELEASED(gf_workbench_release) struct gf_workbench w = {0};
	struct search s;
	int rc;

	rc = gf_shard_check_batches(&t->shard, gf_model_micro_batches(problem.model), err);
	if (rc)
		return rc;
	problem.halves = true;
	problem.copies = problem.fabric.ranks / t->shard.group_ranks;
	rc = gf_workbench_init(&w, &problem, err);
	if (rc < 0)
		return rc;
	open_search(&s, t, &w);
	rc = find_front(&s, err);
	d = rc ? NULL : choose(&s, &least_bytes);
	if (!rc && !d)
		rc = refuse(t, gf_shard_plans[t->shard.method]->name, least_bytes, err);
	if (!rc) {
		write_plan(&s, d, p);
		bound_s = gf_workbench_split_bound_s(&w, s.lanes_most) -
			  (1 - 1.0 / t->shard.group_ranks) * problem.model->update_s;
		rc = gf_plan_check(p, err);
		rc = rc ?: gf_plan_predict(p, problem.fabric.derived, err);
		if (!rc)
			p->predicted->lower_bound_s = fmin(bound_s, p->predicted->iteration_s);
		rc = rc ?: gf_uncertainty_predict(p, problem.fabric.derived, err);
		if (rc < 0)
			gf_plan_release(p);
	}
	close_search(&s);
	return rc;
}

/* Without shards. */
static int plan_whole(const struct gf_task *t, struct gf_plan *p, struct gf_error *err)
{
	struct gf_task plain = *t;
	int rc;

	plain.shard = (struct gf_shard){0};
	plain.memory = (struct gf_memory_plan){0};
	rc = gf_task_plan_asked(&plain, p, err);
	if (rc < 0)
		return rc;
	p->memory = t->memory;
	rc = gf_plan_predict(p, t->problem.fabric.derived, err);
	if (rc == 0 && t->memory.limit_bytes &&
	    p->predicted->memory.peak_bytes > (double)t->memory.limit_bytes)
		rc = refuse(t, "no shards", p->predicted->memory.peak_bytes, err);
	if (rc < 0)
		gf_plan_release(p);
	return rc;
}

static int plan_one(const struct gf_task *t, struct gf_plan *p, struct gf_error *err)
{
	return gf_shard_is_used(&t->shard) ? plan_sharded(t, p, err) : plan_whole(t, p, err);
}

/* The fastest of all methods; of equals the first, which shards less. */
static int plan_any(const struct gf_task *t, struct gf_plan *p, struct gf_error *err)
{
	struct gf_error why, first = {""};
	struct gf_task one = *t;
	struct gf_plan other;
	bool found = false;
	int rc, k;

	for (k = 0; gf_shard_plans[k]; k++) {
		if (gf_shard_method_has(k, GF_SHARD_OPEN))
			continue;
		one.shard.method = k;
		rc = plan_one(&one, &other, &why);
		if (rc == -ENOTSUP) {
			first = why; /* that of the last method, which holds the least */
			continue;
		}
		if (rc < 0) {
			*err = why;
			if (found)
				gf_plan_release(p);
			return rc;
		}
		if (found && other.predicted->iteration_s >= p->predicted->iteration_s) {
			gf_plan_release(&other);
			continue;
		}
		if (found)
			gf_plan_release(p);
		*p = other;
		found = true;
	}
	if (!found)
		*err = first;
	return found ? 0 : -ENOTSUP;
}

int gf_shards_plan(const struct gf_task *t, struct gf_plan *p, struct gf_error *err)
{
	return gf_shard_has(&t->shard, GF_SHARD_OPEN) ? plan_any(t, p, err) : plan_one(t, p, err);
}
