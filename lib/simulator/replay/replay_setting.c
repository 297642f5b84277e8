/* SPDX-License-Identifier: BSD-3-Clause */
#include "simulator/replay/replay_plan.h"

#include <math.h>
#include <stdbool.h>
#include <string.h>

#include "base/heap.h"
#include "collectives/codecs/codec.h"
#include "collectives/prove.h"
#include "collectives/way.h"
#include "simulator/prices/price.h"

/* The cost of a round of the ring, by its measured lines. */
static int take_ring(struct gf_replay_setting *s, struct gf_error *err)
{
	const struct gf_fabric *f = &s->variant.fabric;
	struct gf_priced ring = {.algorithm = "ring"};
	struct gf_link_cost link;
	struct gf_price price;
	size_t n, from;
	int rc;

	for (n = 0;; n++) {
		rc = gf_price_message(f, &ring, &price, err);
		if (rc < 0 || !isfinite(price.line.below_bytes))
			return rc;
		ring.bytes = price.line.below_bytes;
		from = (size_t)fmin(ceil(ring.bytes / f->ranks), 0x1p62);
		rc = gf_price_link(f, (double)from, &link, err);
		if (rc < 0)
			return rc;
		s->ring = gf_xreallocarray(s->ring, n + 1, sizeof(*s->ring));
		s->ring[n] = (struct gf_cost_line){from, link.alpha_s, link.beta_s_per_byte, NULL};
		s->net.links[0].larger = s->ring;
		s->net.links[0].nlarger = n + 1;
	}
}

static int take_uniform(struct gf_replay_setting *s, struct gf_text *notes, struct gf_error *err)
{
	const struct gf_fabric *f = &s->variant.fabric;
	const bool measured = s->net.cost.nlevels == 1;
	struct gf_link_cost *to = &s->net.links[0], link;
	int rc = gf_price_link(f, 0, &link, err);

	if (rc < 0)
		return rc;
	link.larger = to->larger;
	link.nlarger = to->nlarger;
	*to = link;
	s->net.sizes[0] = f->ranks;
	s->net.cost.nlevels = 1;
	gf_text_addf(notes, "no topology is known: replayed on a uniform network that costs a ring "
			    "what was measured\n");
	return measured ? 0 : take_ring(s, err);
}

/* The level whose link is meant: the narrowest on the way, by default. */
static int find_level(const struct gf_replay_setting *s, const char *name, size_t *level,
		      struct gf_error *err)
{
	const struct gf_fabric *f = &s->variant.fabric;
	const struct gf_link_cost *links = s->net.links;
	GF_RELEASED(gf_text_release) struct gf_text names = {0};
	size_t i, best = 0;
	bool found = !name;

	for (i = 0; i < s->net.cost.nlevels; i++) {
		const char *own = f->nlevels ? f->levels[i].name : "net";

		if (name ? strcmp(own, name) == 0
			 : links[i].beta_s_per_byte > links[best].beta_s_per_byte) {
			best = i;
			found = true;
		}
		gf_text_addf(&names, "%s%s", i ? ", " : "", own);
	}
	*level = best;
	if (!found)
		gf_error_set(err, -EINVAL, "want a slow link of one of the levels %s, got %s",
			     names.data, name);
	return found ? 0 : -EINVAL;
}

static int take_slow_links(struct gf_replay_setting *s, const struct gf_what_if *w,
			   struct gf_error *err)
{
	size_t i;
	int rc = 0;

	s->slow_links = gf_xcalloc(w->nslow_links, sizeof(*s->slow_links));
	for (i = 0; i < w->nslow_links && rc == 0; i++) {
		const struct gf_what_link *from = &w->slow_links[i];
		struct gf_slow_link *to = &s->slow_links[i];

		*to = (struct gf_slow_link){from->rank, 0, from->out, from->in};
		rc = find_level(s, from->level, &to->level, err);
	}
	s->nslow_links = i;
	return rc;
}

int gf_replay_setting_init(struct gf_replay_setting *s, const struct gf_plan *p,
			   const struct gf_what_if *w, struct gf_text *notes, struct gf_error *err)
{
	int rc = gf_variant_init(&s->variant, p, w, err), i;

	rc = rc ?: gf_traffic_init(&s->traffic, &s->variant.plan, &s->variant.fabric, err);
	if (rc < 0)
		return rc;
	gf_fabric_net_init(&s->net, &s->variant.fabric);
	if (!s->variant.fabric.nlevels)
		rc = take_uniform(s, notes, err);
	s->factor = gf_xcalloc((size_t)s->variant.fabric.ranks, sizeof(*s->factor));
	for (i = 0; i < s->variant.fabric.ranks; i++)
		s->factor[i] = 1;
	for (size_t k = 0; k < w->nslow; k++)
		s->factor[w->slow[k].rank] = w->slow[k].factor;
	return rc ?: take_slow_links(s, w, err);
}

void gf_replay_setting_release(struct gf_replay_setting *s)
{
	gf_traffic_release(&s->traffic);
	gf_fabric_net_release(&s->net);
	free(s->ring);
	free(s->factor);
	free(s->slow_links);
	gf_variant_release(&s->variant);
}

struct gf_replay_input gf_replay_setting_input(const struct gf_replay_setting *s)
{
	return (struct gf_replay_input){
		.ranks = s->variant.fabric.ranks,
		.net = &s->net.cost,
		.slow_links = s->slow_links,
		.nslow_links = s->nslow_links,
	};
}

/* One of a message's collectives: its way, and the arguments for its schedule, which point into the
 * way. */
struct part {
	struct gf_way way;
	struct gf_coll_args args;
};

static int make_part(const struct gf_replay_setting *s, size_t i, const struct gf_wire *wire,
		     struct part *part, struct gf_error *err)
{
	const struct gf_plan *p = &s->variant.plan;
	const struct gf_sim_message *m = &s->traffic.messages[i];
	const struct gf_message *from = gf_traffic_like(p, s->traffic.plan_message[i]);
	struct gf_coll_args *args = &part->args;
	bool gathers = wire->kind == GF_WIRE_GATHER;
	int rc;

	/* an element is one rank's whole set */
	if (wire->kind != GF_WIRE_REDUCE) {
		part->way = (struct gf_way){
			.algorithm = gf_sparse_find(gf_wire_algorithm(wire->kind)),
		};
		*args = gf_way_args(&part->way, s->variant.fabric.ranks);
		args->count_elems = gathers ? (size_t)args->ranks : 1;
		args->half = gathers ? GF_COLL_ALL_GATHER : GF_COLL_WHOLE;
	} else {
		rc = gf_way_of_message(from, &part->way, err);
		if (rc < 0)
			return rc;
		part->way.servers = s->variant.fabric.servers;
		part->way.copies = gf_plan_copies(p);
		*args = gf_way_args(&part->way, s->variant.fabric.ranks);
		args->count_elems = gf_wire_elems(wire);
		if (m->half == GF_HALF_SPLIT)
			args->half = GF_COLL_REDUCE_SCATTER;
		args->segment_elems = p->segment_bytes / sizeof(float);
	}
	args->elem_bytes = sizeof(float);
	args->lossy = gf_codec_find(from->codec)->error > 0;
	return 0;
}

/* Numbers of the selection's own. */
static size_t own_wire(const struct gf_sim_message *m, struct gf_wire *wire)
{
	*wire = (struct gf_wire){GF_WIRE_REDUCE, m->bytes / sizeof(float), m->bytes, 1};
	return 1;
}

/* The collectives of the traffic's i-th message; returns how many, or an error. A split message has
 * only its reduce-scatter here. */
static int parts_of(const struct gf_replay_setting *s, size_t i, struct part parts[GF_WIRES_MOST],
		    struct gf_error *err)
{
	const struct gf_sim_message *m = &s->traffic.messages[i];
	struct gf_wire wires[GF_WIRES_MOST];
	bool own = s->traffic.plan_message[i] == s->variant.plan.nmessages;
	size_t n, k;
	int rc = 0;

	n = own ? own_wire(m, wires) : gf_plan_wires(&s->variant.plan, m->first, m->last, wires);

	for (k = 0; k < n && rc == 0; k++)
		rc = make_part(s, i, &wires[k], &parts[k], err);
	return rc < 0 ? rc : (int)n;
}

/* A rank's schedule of all parts, one after the other. */
static int schedule(const struct part *parts, int n, int rank, struct gf_schedule *to,
		    struct gf_error *err)
{
	int i, rc;

	rc = gf_algorithm_schedule(parts[0].way.algorithm, &parts[0].args, rank, to, err);
	for (i = 1; i < n && rc == 0; i++) {
		GF_RELEASED(gf_schedule_release) struct gf_schedule next = {0};

		rc = gf_algorithm_schedule(parts[i].way.algorithm, &parts[i].args, rank, &next,
					   err);
		if (rc == 0)
			gf_schedule_append(to, &next);
	}
	return rc;
}

int gf_replayed_message_init(struct gf_replayed_message *to, struct gf_replay_setting *s, size_t i,
			     enum gf_coll_half half, struct gf_error *err)
{
	const struct gf_sim_message *m = &s->traffic.messages[i];
	struct part parts[GF_WIRES_MOST];
	int ranks = s->variant.fabric.ranks, rank, k, rc;
	size_t elems = 0; /* of the schedule */
	const struct gf_codec *codec;
	int n;

	*to = (struct gf_replayed_message){0};
	/* every one of several ranks sends and receives */
	if (ranks > 1 && s->steps + 2.0 * ranks > GF_REPLAY_STEPS_MOST)
		return -E2BIG;
	/* and every segment is a step of somebody */
	if (s->variant.plan.segment_bytes &&
	    m->bytes / (double)s->variant.plan.segment_bytes > GF_REPLAY_STEPS_MOST)
		return -E2BIG;
	n = parts_of(s, i, parts, err);
	if (n < 0) {
		gf_error_prefix(err, "message %zu", i);
		return n;
	}
	if (half == GF_COLL_ALL_GATHER)
		parts[0].args.half = half;
	*to = (struct gf_replayed_message){
		.plan_message = s->traffic.plan_message[i],
		.first = m->first,
		.last = m->last,
		.bytes = (size_t)fmin(m->bytes, 0x1p62),
		.ranks = gf_xcalloc((size_t)ranks, sizeof(*to->ranks)),
	};
	for (k = 0; k < n; k++)
		elems += parts[k].args.count_elems;
	if (gf_selection_has(&s->variant.plan.selection, GF_SELECT_SETS)) {
		to->element.bytes = m->bytes;
	} else {
		to->element.bytes = m->bytes / (double)elems;
		codec = gf_codec_find(gf_traffic_like(&s->variant.plan, to->plan_message)->codec);
		to->element.codec = codec->block_elems ? codec : NULL;
	}
	for (rank = 0, rc = 0; rank < ranks && rc == 0; rank++) {
		rc = schedule(parts, n, rank, &to->ranks[rank], err);
		if (rc < 0) {
			gf_error_prefix(err, "message %zu", i);
			break;
		}
		/* the first rank speaks for all before they are built */
		if (rank == 0 &&
		    s->steps + (double)to->ranks[0].nsteps * ranks > GF_REPLAY_STEPS_MOST)
			rc = -E2BIG;
		s->steps += (double)to->ranks[rank].nsteps;
	}
	return rc;
}

void gf_replayed_messages_free(struct gf_replayed_message *m, size_t n, int ranks)
{
	for (size_t i = 0; i < n; i++) {
		for (int rank = 0; m[i].ranks && rank < ranks; rank++)
			gf_schedule_release(&m[i].ranks[rank]);
		free(m[i].ranks);
	}
	free(m);
}

static int prove_part(struct part *part, const char *codec, struct gf_text *out,
		      struct gf_error *err)
{
	int rc = gf_prove_line(&part->way, &part->args, codec, NULL, NULL, out, err);
	if (rc || part->args.half != GF_COLL_REDUCE_SCATTER)
		return rc;
	part->args.half = GF_COLL_ALL_GATHER;
	return gf_prove_line(&part->way, &part->args, codec, NULL, NULL, out, err);
}

static int prove_message(const struct gf_replay_setting *s, size_t i, struct gf_text *out,
			 struct gf_error *err)
{
	const struct gf_plan *p = &s->variant.plan;
	const char *codec = gf_traffic_like(p, s->traffic.plan_message[i])->codec;
	struct part parts[GF_WIRES_MOST];
	int n = parts_of(s, i, parts, err), k, rc = n < 0 ? n : 0;

	for (k = 0; k < n && !rc; k++)
		rc = prove_part(&parts[k], codec, out, err);
	return rc;
}

/* The exchange of a group, then that of all ranks. */
static int prove_period(const struct gf_plan *p, const struct gf_what_if *w, struct gf_text *out,
			struct gf_error *err)
{
	GF_RELEASED(gf_plan_release) struct gf_plan inner = {0}, outer = {0};
	struct gf_what_if there = *w;

	there.ranks = 0;
	gf_period_inner(p, &inner);
	gf_period_outer(p, &outer);
	return gf_prove_plan(&inner, &there, out, err) ?: gf_prove_plan(&outer, w, out, err);
}

int gf_prove_plan(const struct gf_plan *p, const struct gf_what_if *w, struct gf_text *out,
		  struct gf_error *err)
{
	GF_RELEASED(gf_replay_setting_release) struct gf_replay_setting s = {0};
	GF_RELEASED(gf_text_release) struct gf_text notes = {0}; /* about times */
	int rc;

	if (!gf_period_has(&p->period, GF_PERIOD_EVERY))
		return prove_period(p, w, out, err);
	rc = gf_replay_setting_init(&s, p, w, &notes, err);

	for (size_t i = 0; i < s.traffic.nmessages && !rc; i++) {
		rc = prove_message(&s, i, out, err);
		if (rc)
			gf_error_prefix(err, "message %zu", i);
	}
	return rc;
}
