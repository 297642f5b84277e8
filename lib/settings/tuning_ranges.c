/* SPDX-License-Identifier: BSD-3-Clause */

#include <math.h>
#include <string.h>

#include "base/array.h"
#include "base/heap.h"
#include "cli/human.h"
#include "planner/policies/policy.h"
#include "settings/emit.h"

/* A variant at a size. */
struct reading {
	const struct gf_allreduce_cost *cost;
	double time_s, half_s;
};

/* false: it was not measured at that size. */
static bool read_at(const struct gf_allreduce_cost *cost, size_t bytes, struct reading *r)
{
	const struct gf_fit *fit = &cost->fit;

	for (size_t i = 0; i < fit->npoints; i++)
		if (fit->size_bytes[i] == bytes) {
			*r = (struct reading){
				.cost = cost,
				.time_s = fit->time_s[i],
				.half_s = fit->spread_s ? fit->spread_s[i] / 2 : 0,
			};
			return true;
		}
	return false;
}

static bool is_default(const struct gf_picks *p, const struct gf_allreduce_cost *cost)
{
	struct gf_tuning t;
	struct gf_error err;

	return gf_tuning_read(p->dialect, cost->algorithm, &t, &err) == 0 && !t.algorithm;
}

static const struct gf_allreduce_cost *default_of(const struct gf_picks *p)
{
	for (size_t i = 0; i < p->network->nvariants; i++)
		if (is_default(p, &p->network->variants[i]))
			return &p->network->variants[i];
	return NULL;
}

/* Is a faster than b by more than chance? */
static bool beats(const struct reading *a, const struct reading *b)
{
	double gain_s = b->time_s - a->time_s;

	return gain_s > GF_PICK_GAIN * b->time_s && gain_s > hypot(a->half_s, b->half_s);
}

static bool may(const struct gf_picks *p, const struct gf_picks_wish *w,
		const struct gf_allreduce_cost *cost)
{
	struct gf_tuning t;
	struct gf_error err;

	return gf_tuning_read(p->dialect, cost->algorithm, &t, &err) == 0 &&
	       (!w->always || t.algorithm) && (!w->named || t.channels);
}

/* The fastest at that size; the default and `before` go first if they are as good. false: there is
 * none. */
static bool best_at(const struct gf_picks *p, const struct gf_picks_wish *w, size_t bytes,
		    const struct gf_allreduce_cost *before, struct reading *best)
{
	const struct gf_network *net = p->network;
	struct reading r = {0};
	bool found = false;

	for (size_t i = 0; i < net->nvariants; i++) {
		if (!may(p, w, &net->variants[i]) || !read_at(&net->variants[i], bytes, &r))
			continue;
		if (!found || r.time_s < best->time_s)
			*best = r;
		found = true;
	}
	if (before && read_at(before, bytes, &r) && r.time_s * (1 - GF_PICK_GAIN) <= best->time_s)
		*best = r;
	if (!w->always && read_at(default_of(p), bytes, &r) && !beats(best, &r))
		*best = r;
	return found;
}

static void push(struct gf_picks *p, size_t *capacity, size_t from_bytes,
		 const struct gf_allreduce_cost *cost)
{
	struct gf_error err;
	struct gf_pick *pick = gf_array_push(&p->list, &p->count, capacity);

	*pick = (struct gf_pick){.from_bytes = from_bytes, .cost = cost};
	gf_tuning_read(p->dialect, cost->algorithm, &pick->tuning, &err);
}

/* From where on a variant is told that is the best at b, but not at a: halfway, whole, or from b if
 * its cost falls there. Sizes before a fall take the longer time. */
static size_t between(const struct gf_allreduce_cost *best, size_t a, size_t b)
{
	const struct gf_cost_lines lines = gf_allreduce_lines(best);

	if (gf_cost_lines_s(&lines, (double)b) < gf_cost_lines_s(&lines, (double)(b - 1)))
		return b;
	return (size_t)ceil(sqrt((double)a) * sqrt((double)b));
}

static int pick_all(struct gf_picks *p, const struct gf_picks_wish *w, struct gf_error *err)
{
	const struct gf_allreduce_cost *own = default_of(p);
	const struct gf_fit *fit = &own->fit;
	size_t capacity = 0, i, told = 0;
	struct reading best = {0}, as_it_is = {0};

	if (!w->always)
		push(p, &capacity, 0, own);
	p->sizes = gf_xcalloc(fit->npoints, sizeof(*p->sizes));
	for (i = 0; i < fit->npoints; i++) {
		const size_t bytes = fit->size_bytes[i];
		const struct gf_allreduce_cost *last = p->count ? p->list[p->count - 1].cost : NULL;

		read_at(own, bytes, &as_it_is);
		if (!best_at(p, w, bytes, i ? last : NULL, &best) ||
		    (w->always && best.time_s > as_it_is.time_s))
			return gf_error_set(err, 1,
					    "%s as it is is faster for %s than what was "
					    "measured%s, and the target would lose it",
					    p->dialect->call, gf_human_size((double)bytes).text,
					    w->named ? " with a number of channels" : "");
		if (best.cost != last)
			push(p, &capacity,
			     p->count == 0 ? 0
			     : i == 0      ? bytes
					   : between(best.cost, fit->size_bytes[i - 1], bytes),
			     best.cost);
		told += best.cost != own;
		p->sizes[p->nsizes++] = (struct gf_pick_size){
			.bytes = bytes,
			.time_s = best.time_s,
			.default_s = as_it_is.time_s,
		};
	}
	if (!told)
		return gf_error_set(err, 1,
				    "%s as it is is as good as all that was measured, at every "
				    "size: change nothing",
				    p->dialect->call);
	return 0;
}

static void find_picks(struct gf_picks *p)
{
	size_t i, k;

	for (i = 0, k = 0; i < p->nsizes; i++) {
		while (k + 1 < p->count && p->list[k + 1].from_bytes <= p->sizes[i].bytes)
			k++;
		p->sizes[i].pick = &p->list[k];
	}
}

int gf_picks_make(const struct gf_network *network, const struct gf_picks_wish *wish,
		  struct gf_picks *picks, struct gf_error *err)
{
	struct gf_picks p = {.network = network, .dialect = gf_dialect_of(wish->library)};
	int rc;

	if (!network || !network->nvariants || gf_dialect_of(network->library) != p.dialect)
		return gf_error_set(err, -ENOTSUP,
				    "want a profile with variants of %s, got %s%s: gf-emit(7) says "
				    "how they are measured",
				    wish->library,
				    network && network->nvariants ? "those of " : "none",
				    network && network->nvariants ? network->library : "");
	if (!network->ranks || !default_of(&p))
		return gf_error_set(err, -ENOTSUP,
				    "want the variant \"default\" to set others beside, got a "
				    "profile without it");
	rc = pick_all(&p, wish, err);
	if (rc)
		gf_picks_release(&p);
	else {
		find_picks(&p);
		*picks = p;
	}
	return rc;
}

void gf_picks_release(struct gf_picks *picks)
{
	free(picks->list);
	free(picks->sizes);
	memset(picks, 0, sizeof(*picks));
}

/* The lines of a cost from one size up to another. */
static void add_lines(const struct gf_pick *pick, double below, struct gf_allreduce_cost *to)
{
	const struct gf_cost_lines lines = gf_allreduce_lines(pick->cost);
	double from = (double)pick->from_bytes, next = 0;

	while (from < below) {
		struct gf_cost_line line = gf_cost_line_at(&lines, from, 1, &next);

		line.extra = NULL;
		line.from_bytes = (size_t)from;
		if (line.from_bytes == 0) {
			to->startup_s = line.startup_s;
			to->per_byte_s = line.per_byte_s;
		} else {
			gf_cost_line_add(&to->larger, &to->nlarger, line);
		}
		from = next;
	}
}

/* The network with one all-reduce in place of all, the library's own, as it is, or told as the
 * picks say. The caller frees it. */
static struct gf_network *told_network(const struct gf_picks *picks, bool told)
{
	struct gf_network plain = *picks->network, *net;
	struct gf_allreduce_cost cost = {.algorithm = (char *)"library"};
	const struct gf_pick as_it_is = {.cost = default_of(picks)};

	if (!told)
		add_lines(&as_it_is, INFINITY, &cost);
	for (size_t i = 0; told && i < picks->count; i++)
		add_lines(&picks->list[i],
			  i + 1 < picks->count ? (double)picks->list[i + 1].from_bytes : INFINITY,
			  &cost);
	plain.allreduce = &cost;
	plain.nallreduce = 1;
	plain.nvariants = 0;
	net = gf_network_copy(&plain);
	free(cost.larger);
	return net;
}

void gf_picks_table(const struct gf_picks *picks, struct gf_text *out)
{
	char text[GF_TUNING_TEXT];

	gf_text_addf(out, "# %d ranks, %s, measured times:\n", picks->network->ranks,
		     picks->network->library);
	for (size_t i = 0; i < picks->nsizes; i++) {
		const struct gf_pick_size *s = &picks->sizes[i];

		gf_text_addf(out, "# %12zu B: %s by default", s->bytes,
			     gf_human_time(s->default_s).text);
		if (s->pick->tuning.algorithm)
			gf_text_addf(out, ", %s by %s", gf_human_time(s->time_s).text,
				     gf_tuning_text(&s->pick->tuning, text));
		gf_text_addf(out, "\n");
	}
}

/* A step in the buckets of DistributedDataParallel, by the library as it is or told; 0: there is no
 * model. */
static double step_s(const struct gf_request *r, const struct gf_picks *picks, bool told)
{
	struct gf_network *net = told_network(picks, told);
	struct gf_request there = *r, plain = {.algorithm = "library",
					       .policy = gf_policy_ddp.name,
					       .lanes = 1};
	double s;

	there.fabric.network = net;
	there.fabric.ranks = picks->network->ranks;
	s = r->model ? gf_request_plain_s(&there, &plain) : 0;
	gf_network_free(net);
	return s;
}

static void note_picks(const struct gf_picks *picks, double default_s, double told_s,
		       struct gf_text *notes)
{
	size_t i, told = 0;

	for (i = 0; i < picks->nsizes; i++)
		told += picks->sizes[i].pick->tuning.algorithm != NULL;
	gf_text_addf(notes, "%zu of %zu sizes are told; at %zu bytes, %s by default, %s as told\n",
		     told, picks->nsizes, picks->sizes[picks->nsizes - 1].bytes,
		     gf_human_time(picks->sizes[picks->nsizes - 1].default_s).text,
		     gf_human_time(picks->sizes[picks->nsizes - 1].time_s).text);
	if (default_s > 0)
		gf_text_addf(notes, "%s as it is: %s a step in buckets of 25 MiB; as told: %s\n",
			     picks->dialect->call, gf_human_time(default_s).text,
			     gf_human_time(told_s).text);
}

int gf_emit_by_size(const struct gf_request *r, const struct gf_plan *given,
		    const struct gf_emitter *e, struct gf_text *out, struct gf_text *notes,
		    struct gf_error *err)
{
	const struct gf_network *net = given ? given->network : r->fabric.network;
	GF_RELEASED(gf_picks_release) struct gf_picks picks = {0};
	struct gf_emit_times times = {0};
	double told_s;
	int rc = gf_picks_make(net, &e->wish, &picks, err);

	if (rc) {
		gf_error_prefix(err, "--emit %s", e->name);
		return rc;
	}
	times.default_s = step_s(r, &picks, false);
	told_s = step_s(r, &picks, true);
	if (!gf_emit_pays(&times, told_s))
		rc = gf_emit_nothing(e, picks.dialect->call, &times, told_s, err);
	else
		rc = e->emit_picks(&picks, out, err);
	if (rc == 0)
		note_picks(&picks, times.default_s, told_s, notes);
	return rc;
}
