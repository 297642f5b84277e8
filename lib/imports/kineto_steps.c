/* SPDX-License-Identifier: BSD-3-Clause */
#include "imports/kineto.h"

#include <math.h>
#include <stdlib.h>

#include "base/array.h"

size_t gf_kineto_at(const struct gf_kineto_list *list, double at_s)
{
	size_t low = 0, high = list->count;

	while (low < high) {
		size_t middle = (low + high) / 2;

		if (list->spans[middle].start_s < at_s)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

/* --- the device's clock -------------------------------------------------- */

/* A kernel starts within this time where nothing holds it up. */
static const double latency_s = 100e-6;

/* What was launched after this: of all work, or (not NAN) of work by thread. */
static size_t launched_after(const struct gf_kineto_list *list, double thread, double at_s)
{
	size_t low = 0, high = list->count;

	while (low < high) {
		size_t middle = (low + high) / 2;
		const struct gf_kineto_span *w = &list->spans[middle];

		if (!isnan(thread) && w->thread != thread ? w->thread < thread
							  : w->launch_s <= at_s)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

/* The host's time without the calls that exchange gradients. */
static double without_exchanges(const struct gf_kineto *k, double at_s)
{
	size_t before = gf_kineto_at(&k->exchanges, at_s);
	const struct gf_kineto_span *x;

	if (before == 0)
		return at_s;
	x = &k->exchanges.spans[before - 1];
	return at_s - x->less_s - (fmin(at_s, x->end_s) - x->start_s);
}

double gf_kineto_end(const struct gf_kineto *k, double thread, double at_s)
{
	const struct gf_kineto_list *list = &k->by_thread;
	size_t after = isnan(thread) ? 0 : launched_after(list, thread, at_s);

	if (k->work.count == 0)
		return without_exchanges(k, at_s);
	if (after == 0 || list->spans[after - 1].thread != thread) {
		list = &k->work;
		after = launched_after(list, NAN, at_s);
	}
	return after ? fmax(at_s, list->spans[after - 1].end_s) : at_s;
}

double gf_kineto_begin(const struct gf_kineto *k, double at_s)
{
	size_t next = launched_after(&k->work, NAN, at_s);
	double begin_s = gf_kineto_end(k, NAN, at_s);

	if (next < k->work.count &&
	    k->work.spans[next].start_s > k->work.spans[next].launch_s + latency_s)
		begin_s = fmax(begin_s, k->work.spans[next].start_s);
	return begin_s;
}

/* --- passes of backward -------------------------------------------------- */

struct passes {
	struct gf_kineto_step *all; /* of one pass each */
	size_t count, capacity;
};

static void add_pass(struct passes *p, size_t first, double from_s)
{
	struct gf_kineto_step *s = gf_array_push(&p->all, &p->count, &p->capacity);

	s->first = first;
	s->passes = 1;
	s->from_s = from_s;
}

/* Do gradients [first, end) repeat with this period, and with more time between two than inside
 * one? */
static bool repeats(const struct gf_kineto_span *g, size_t count, size_t period)
{
	double inside_s = 0, between_s = INFINITY;

	for (size_t i = 1; i < count; i++) {
		double gap_s = g[i].start_s - g[i - 1].end_s;

		if (i >= period &&
		    (g[i].elems != g[i - period].elems || g[i].dtype != g[i - period].dtype))
			return false;
		if (i % period == 0)
			between_s = fmin(between_s, gap_s);
		else
			inside_s = fmax(inside_s, gap_s);
	}
	return between_s > inside_s;
}

/* The passes among gradients [first, end), which nothing tells apart: in a trace without operators
 * by the shortest period. */
static void divide(const struct gf_kineto *k, size_t first, size_t end, double from_s,
		   struct passes *p)
{
	const size_t count = end - first;
	size_t period, i;

	for (period = k->operators.count ? count : 2; period < count; period++)
		if (count % period == 0 && repeats(&k->gradients.spans[first], count, period))
			break;
	for (i = 0; i < count; i += period)
		add_pass(p, first + i, i ? NAN : from_s);
}

/* When forward began again in this time: at the first operator, or else at the last mark; NAN: at
 * neither. */
static double between(const struct gf_kineto *k, double after_s, double to_s)
{
	size_t op = gf_kineto_at(&k->operators, after_s);
	size_t mark = gf_kineto_at(&k->steps, to_s);

	if (op < gf_kineto_at(&k->operators, to_s))
		return k->operators.spans[op].start_s;
	if (mark > gf_kineto_at(&k->steps, after_s))
		return k->steps.spans[mark - 1].start_s;
	return NAN;
}

/* One pass gives each parameter one gradient; forward lies between two. */
static void split(const struct gf_kineto *k, struct passes *p)
{
	const struct gf_kineto_span *g = k->gradients.spans;
	const size_t count = k->gradients.count;
	double from_s = NAN, next_s;
	size_t i, first = 0;

	for (i = 0; i < count; i++) {
		next_s = between(k, i ? g[i - 1].end_s : -INFINITY, g[i].start_s);
		if (i && !isnan(next_s)) {
			divide(k, first, i, from_s, p);
			first = i;
		}
		if (i == first)
			from_s = next_s;
	}
	if (count)
		divide(k, first, count, from_s, p);
}

/* The nodes of each pass, and its number of gradients. */
static void bound(const struct gf_kineto *k, struct gf_kineto_step *passes, size_t count)
{
	const struct gf_kineto_span *g = k->gradients.spans;
	size_t i, node = 0;

	for (i = 0; i < count; i++) {
		struct gf_kineto_step *p = &passes[i];
		size_t next = i + 1 < count ? passes[i + 1].first : k->gradients.count;
		double to_s = i + 1 == count                ? INFINITY
			      : isnan(passes[i + 1].from_s) ? g[next - 1].end_s
							    : passes[i + 1].from_s;

		p->count = next - p->first;
		p->begin_s = g[p->first].start_s;
		p->end_s = g[next - 1].end_s;
		if (node < k->nodes.count)
			p->begin_s = fmin(p->begin_s, k->nodes.spans[node].start_s);
		for (; node < k->nodes.count && k->nodes.spans[node].start_s < to_s; node++)
			p->end_s = fmax(p->end_s, k->nodes.spans[node].end_s);
	}
}

/* --- steps --------------------------------------------------------------- */

/* The time of the updates that start in [from, to); NAN if none does. */
static double update_time(const struct gf_kineto *k, double from_s, double to_s)
{
	size_t i = gf_kineto_at(&k->updates, from_s);
	double sum_s = NAN;

	for (; i < k->updates.count && k->updates.spans[i].start_s < to_s; i++)
		sum_s = (isnan(sum_s) ? 0 : sum_s) +
			gf_kineto_end(k, k->updates.spans[i].thread, k->updates.spans[i].end_s) -
			gf_kineto_begin(k, k->updates.spans[i].start_s);
	return sum_s;
}

/* Of passes[first..last]: the last, with what came before. */
static struct gf_kineto_step step_of(const struct gf_kineto_step *passes, size_t first, size_t last)
{
	struct gf_kineto_step s = passes[last];

	s.passes = last - first + 1;
	s.from_s = passes[first].from_s;
	return s;
}

static size_t by_marks(const struct gf_kineto *k, struct gf_kineto_step *passes, size_t count)
{
	size_t i, first = 0, end, kept = 0;

	for (i = 0; i < k->steps.count; i++) {
		const struct gf_kineto_span *mark = &k->steps.spans[i];

		while (first < count && passes[first].begin_s < mark->start_s)
			first++;
		for (end = first; end < count && passes[end].begin_s < mark->end_s; end++)
			;
		if (end == first)
			continue;
		passes[kept] = step_of(passes, first, end - 1);
		passes[kept].from_s = mark->start_s;
		passes[kept++].update_s = update_time(k, mark->start_s, mark->end_s);
		first = end;
	}
	return kept;
}

static size_t by_updates(const struct gf_kineto *k, struct gf_kineto_step *passes, size_t count)
{
	size_t i, first = 0, kept = 0;

	for (i = 0; i < count; i++) {
		double to_s = i + 1 < count ? passes[i + 1].begin_s : INFINITY;
		double update_s = update_time(k, passes[i].end_s, to_s);
		size_t before = gf_kineto_at(&k->updates, passes[first].begin_s);

		/* a pass that no update follows belongs to the next one's step, or the trace is cut
		 * off there */
		if (k->updates.count && isnan(update_s) && (i + 1 < count || kept))
			continue;
		passes[kept] = step_of(passes, first, i);
		if (before > 0)
			passes[kept].from_s = k->updates.spans[before - 1].end_s;
		passes[kept++].update_s = update_s;
		first = i + 1;
	}
	return kept;
}

struct gf_kineto_step *gf_kineto_steps(const struct gf_kineto *k, size_t *count, size_t *outside)
{
	struct passes p = {0};

	split(k, &p);
	bound(k, p.all, p.count);
	*count = k->steps.count ? by_marks(k, p.all, p.count) : by_updates(k, p.all, p.count);
	*outside = p.count;
	for (size_t i = 0; i < *count; i++)
		*outside -= p.all[i].passes;
	return p.all;
}
