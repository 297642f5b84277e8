/* SPDX-License-Identifier: BSD-3-Clause */
#include "simulator/replay/fluid.h"

#include <assert.h>
#include <math.h>
#include <stdbool.h>

#include "base/array.h"
#include "base/heap.h"

/* --- events ---------------------------------------------------------------- */

static bool before(const struct gf_event *a, const struct gf_event *b)
{
	return a->at_s < b->at_s || (a->at_s == b->at_s && a->order < b->order);
}

void gf_events_add(struct gf_events *q, struct gf_event event)
{
	size_t i;

	event.order = q->added++;
	gf_array_push(&q->heap, &q->count, &q->capacity);
	for (i = q->count - 1; i && before(&event, &q->heap[(i - 1) / 2]); i = (i - 1) / 2)
		q->heap[i] = q->heap[(i - 1) / 2];
	q->heap[i] = event;
}

const struct gf_event *gf_events_first(const struct gf_events *q)
{
	return q->count ? q->heap : NULL;
}

bool gf_events_take(struct gf_events *q, struct gf_event *event)
{
	struct gf_event last;
	size_t i = 0, child;

	if (!q->count)
		return false;
	*event = q->heap[0];
	last = q->heap[--q->count];
	while ((child = 2 * i + 1) < q->count) {
		if (child + 1 < q->count && before(&q->heap[child + 1], &q->heap[child]))
			child++;
		if (!before(&q->heap[child], &last))
			break;
		q->heap[i] = q->heap[child];
		i = child;
	}
	q->heap[i] = last;
	return true;
}

void gf_events_release(struct gf_events *q)
{
	free(q->heap);
	*q = (struct gf_events){0};
}

/* Shares that differ by rounding only are one. */
#define SAME_SHARE (1 + 1e-12)
/* No flow is for nothing: it would have no rate. */
#define LEAST_WEIGHT 1e-9
/* A link that is faster takes no time; its product with a weight is finite. */
#define MOST_BYTES_PER_S 1e30
/* A link's load is added up anew when less than this share is left. Otherwise the rest, of flows
 * that weigh much less, would be the rounding of the others.
 */
#define SUM_ANEW 1e-3

struct gf_fluid_link {
	double bytes_per_s;
	size_t level;
	size_t *flows;
	size_t nflows, capacity;
	bool dirty;
	uint32_t visit;
	/* while rates are shared out */
	double left, load; /* what the open ones take of it, per rate ... */
	double summed;     /* ... and took when that was added up */
	size_t open;
};

struct gf_fluid_flow {
	int from, to;
	size_t owner;
	double bytes, left_bytes, rate, since_s;
	uint32_t version;
	uint32_t visit;
	bool open; /* while rates are shared out */
};

static double level_bytes_per_s(const struct gf_fluid *f, size_t level)
{
	double beta_s_per_byte = f->net->links[level].beta_s_per_byte;

	return beta_s_per_byte > 0 ? fmin(1 / beta_s_per_byte, MOST_BYTES_PER_S) : MOST_BYTES_PER_S;
}

static size_t link_of(const struct gf_fluid *f, size_t level, int rank, bool into)
{
	return f->out_links[level * (size_t)f->ranks + (size_t)rank] + (size_t)into;
}

void gf_fluid_init(struct gf_fluid *f, int ranks, const struct gf_cost_net *net,
		   const double *slowdown, const struct gf_slow_link *slow, size_t nslow,
		   uint32_t finish_kind)
{
	size_t nlevels = net->nlevels, i, k, unit = 1, n = (size_t)ranks;

	*f = (struct gf_fluid){
		.ranks = ranks,
		.net = net,
		.out_links = gf_xcalloc(nlevels * n, sizeof(*f->out_links)),
		.finish_kind = finish_kind,
	};
	for (i = 0; i < nlevels; i++) {
		for (k = 0; k < n; k++)
			f->out_links[i * n + k] = (uint32_t)(f->nlinks + 2 * (k / unit));
		f->nlinks += 2 * ((n + unit - 1) / unit);
		if (unit < n)
			unit *= (size_t)net->sizes[i];
	}
	f->links = gf_xcalloc(f->nlinks, sizeof(*f->links));
	for (i = 0; i < nlevels; i++)
		for (k = 0; k < 2 * n; k++) {
			struct gf_fluid_link *link = &f->links[f->out_links[i * n + k / 2] + k % 2];

			link->level = i;
			link->bytes_per_s =
				level_bytes_per_s(f, i) / (slowdown && !i ? slowdown[k / 2] : 1);
		}
	for (i = 0; i < nslow; i++) {
		const size_t level = slow[i].level;

		f->links[link_of(f, level, slow[i].rank, false)].bytes_per_s /= slow[i].out;
		f->links[link_of(f, level, slow[i].rank, true)].bytes_per_s /= slow[i].in;
	}
}

void gf_fluid_release(struct gf_fluid *f)
{
	for (size_t k = 0; k < f->nlinks; k++)
		free(f->links[k].flows);
	free(f->links);
	free(f->out_links);
	free(f->flows);
	free(f->idle);
	free(f->dirty);
	free(f->found_links);
	free(f->found_flows);
	*f = (struct gf_fluid){0};
}

/* The levels that a message crosses: 0 to this less one. */
static size_t crossed(const struct gf_fluid *f, int from, int to)
{
	size_t i = 0;

	while (i < f->net->nlevels && link_of(f, i, from, false) != link_of(f, i, to, false))
		i++;
	return i;
}

/* Link k of a flow's way, out and in by turns, level by level. */
static size_t way(const struct gf_fluid *f, const struct gf_fluid_flow *flow, size_t k)
{
	return link_of(f, k / 2, k % 2 ? flow->to : flow->from, k % 2);
}

static size_t way_length(const struct gf_fluid *f, const struct gf_fluid_flow *flow)
{
	return 2 * crossed(f, flow->from, flow->to);
}

/* The line that takes the place of a level's figures; false: none does. */
static bool larger_line(const struct gf_fluid *f, size_t level, double bytes,
			struct gf_cost_line *line)
{
	const struct gf_link_cost *link = &f->net->links[level];
	const struct gf_cost_lines lines = {.larger = link->larger, .nlarger = link->nlarger};

	if (!link->nlarger)
		return false;
	*line = gf_cost_line_at(&lines, bytes, 1, NULL);
	return line->from_bytes > 0;
}

struct gf_fluid_hop gf_fluid_hop(const struct gf_fluid *f, int from, int to, double bytes)
{
	size_t levels = crossed(f, from, to), level = levels - 1;
	struct gf_cost_line line;

	assert(levels);
	if (larger_line(f, level, bytes, &line))
		return (struct gf_fluid_hop){level, line.startup_s, bytes * line.per_byte_s};
	return (struct gf_fluid_hop){level, f->net->links[level].alpha_s,
				     bytes / level_bytes_per_s(f, level)};
}

/* How much of a link a flow's byte takes, beside one by the level's figures. */
static double weight(const struct gf_fluid *f, const struct gf_fluid_flow *flow,
		     const struct gf_fluid_link *link)
{
	struct gf_cost_line line;

	if (!larger_line(f, link->level, flow->bytes, &line))
		return 1;
	return fmax(line.per_byte_s * level_bytes_per_s(f, link->level), LEAST_WEIGHT);
}

static void mark(struct gf_fluid *f, size_t link)
{
	if (f->links[link].dirty)
		return;
	f->links[link].dirty = true;
	*gf_array_push(&f->dirty, &f->ndirty, &f->dirty_capacity) = link;
}

size_t gf_fluid_start(struct gf_fluid *f, int from, int to, double bytes, size_t owner,
		      double now_s)
{
	struct gf_fluid_flow *flow;
	size_t id, k, length;
	uint32_t version;

	if (f->nidle) {
		id = f->idle[--f->nidle];
	} else {
		gf_array_push(&f->flows, &f->nflows, &f->flows_capacity);
		id = f->nflows - 1;
	}
	flow = &f->flows[id];
	version = flow->version;
	*flow = (struct gf_fluid_flow){
		.from = from,
		.to = to,
		.owner = owner,
		.bytes = bytes,
		.left_bytes = bytes,
		.since_s = now_s,
		.version = version + 1,
	};
	length = way_length(f, flow);
	for (k = 0; k < length; k++) {
		size_t at = way(f, flow, k);
		struct gf_fluid_link *link = &f->links[at];

		*gf_array_push(&link->flows, &link->nflows, &link->capacity) = id;
		mark(f, at);
	}
	return id;
}

size_t gf_fluid_finish(struct gf_fluid *f, const struct gf_event *event)
{
	size_t id = event->id, k, i, length;
	struct gf_fluid_flow *flow = &f->flows[id];

	if (flow->version != event->version)
		return SIZE_MAX;
	length = way_length(f, flow);
	for (k = 0; k < length; k++) {
		size_t at = way(f, flow, k);
		struct gf_fluid_link *link = &f->links[at];

		for (i = 0; link->flows[i] != id; i++)
			;
		link->flows[i] = link->flows[--link->nflows];
		mark(f, at);
	}
	flow->version++;
	*gf_array_push(&f->idle, &f->nidle, &f->idle_capacity) = id;
	return flow->owner;
}

/* Everything that shares links with everything else, from one link on. */
static void find_component(struct gf_fluid *f, size_t start)
{
	size_t i, k, m, length;

	f->nfound_links = f->nfound_flows = 0;
	f->links[start].visit = f->visit;
	*gf_array_push(&f->found_links, &f->nfound_links, &f->found_links_capacity) = start;
	for (i = 0; i < f->nfound_links; i++) {
		struct gf_fluid_link *link = &f->links[f->found_links[i]];

		link->left = link->bytes_per_s;
		link->open = link->nflows;
		link->load = 0;
		for (k = 0; k < link->nflows; k++) {
			struct gf_fluid_flow *flow = &f->flows[link->flows[k]];

			link->load += weight(f, flow, link);
			if (flow->visit == f->visit)
				continue;
			flow->visit = f->visit;
			flow->open = true;
			*gf_array_push(&f->found_flows, &f->nfound_flows,
				       &f->found_flows_capacity) = link->flows[k];
			length = way_length(f, flow);
			for (m = 0; m < length; m++) {
				size_t at = way(f, flow, m);

				if (f->links[at].visit == f->visit)
					continue;
				f->links[at].visit = f->visit;
				*gf_array_push(&f->found_links, &f->nfound_links,
					       &f->found_links_capacity) = at;
			}
		}
		link->summed = link->load;
	}
}

/* A flow's new rate; what it moved so far is accounted for at the old one. An unchanged rate keeps
 * the end that is already in the queue. */
static void set_rate(struct gf_fluid *f, size_t id, double rate, double now_s, struct gf_events *q)
{
	struct gf_fluid_flow *flow = &f->flows[id];
	size_t k, length = way_length(f, flow);

	flow->open = false;
	for (k = 0; k < length; k++) {
		struct gf_fluid_link *link = &f->links[way(f, flow, k)];
		double takes = weight(f, flow, link);

		link->left = fmax(0, link->left - rate * takes);
		link->load -= takes;
		link->open--;
	}
	if (rate == flow->rate)
		return;
	flow->left_bytes -= flow->rate * (now_s - flow->since_s);
	if (flow->left_bytes < 0)
		flow->left_bytes = 0;
	flow->rate = rate;
	flow->since_s = now_s;
	flow->version++;
	gf_events_add(q, (struct gf_event){
				 .at_s = now_s + flow->left_bytes / rate,
				 .kind = f->finish_kind,
				 .version = flow->version,
				 .id = id,
			 });
}

/* The rate of the link's open flows if it were the one that bounds them. */
static double share_of(const struct gf_fluid *f, struct gf_fluid_link *link)
{
	if (link->load < link->summed * SUM_ANEW) {
		link->load = 0;
		for (size_t k = 0; k < link->nflows; k++) {
			const struct gf_fluid_flow *flow = &f->flows[link->flows[k]];

			link->load += flow->open ? weight(f, flow, link) : 0;
		}
		link->summed = link->load;
	}
	return link->left / link->load;
}

/* Fills the component's links evenly; the fullest ones settle first. */
static void share_out(struct gf_fluid *f, double now_s, struct gf_events *q)
{
	size_t i, k, left = f->nfound_flows;

	while (left) {
		double least = INFINITY;

		for (i = 0; i < f->nfound_links; i++) {
			struct gf_fluid_link *link = &f->links[f->found_links[i]];

			if (link->open)
				least = fmin(least, share_of(f, link));
		}
		for (i = 0; i < f->nfound_links; i++) {
			struct gf_fluid_link *link = &f->links[f->found_links[i]];

			if (!link->open || share_of(f, link) > least * SAME_SHARE)
				continue;
			for (k = 0; k < link->nflows; k++) {
				if (!f->flows[link->flows[k]].open)
					continue;
				set_rate(f, link->flows[k], least, now_s, q);
				left--;
			}
		}
	}
}

void gf_fluid_settle(struct gf_fluid *f, double now_s, struct gf_events *q)
{
	if (!f->ndirty)
		return;
	f->visit++;
	for (size_t i = 0; i < f->ndirty; i++) {
		struct gf_fluid_link *link = &f->links[f->dirty[i]];

		link->dirty = false;
		if (link->visit == f->visit)
			continue;
		find_component(f, f->dirty[i]);
		share_out(f, now_s, q);
	}
	f->ndirty = 0;
}
