/* SPDX-License-Identifier: BSD-3-Clause */
#include "sim/replay_parts.h"

#include <errno.h>
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/heap.h"
#include "codec/codec.h"

static int make_part(const struct gf_replay_setting *s, size_t i,
		     const struct gf_wire *wire, struct gf_replay_part *part,
		     struct gf_error *err)
{
	const struct gf_plan *p = &s->variant.plan;
	const struct gf_sim_message *m = &s->traffic.messages[i];
	const struct gf_message *from = gf_traffic_like(&s->traffic, p, i);
	struct gf_coll_args *args = &part->args;
	bool gathers = wire->kind == GF_WIRE_GATHER;
	int rc;

	/* an element is one rank's whole set */
	if (wire->kind != GF_WIRE_REDUCE) {
		part->way = (struct gf_way){
			.algorithm =
				gf_sparse_find(gf_wire_algorithm(wire->kind)),
		};
		*args = gf_way_args(&part->way, s->variant.fabric.ranks);
		args->count_elems = gathers ? (size_t)args->ranks : 1;
		args->half = gathers ? GF_COLL_ALL_GATHER : GF_COLL_WHOLE;
	} else {
		rc = gf_way_of_message(from, &part->way, err);
		if (rc < 0)
			return rc;
		part->way.servers = s->variant.fabric.servers;
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
	*wire = (struct gf_wire){GF_WIRE_REDUCE, m->bytes / sizeof(float),
				 m->bytes, 1};
	return 1;
}

int gf_replay_parts(const struct gf_replay_setting *s, size_t i,
		    struct gf_replay_part parts[GF_WIRES_MOST],
		    struct gf_error *err)
{
	const struct gf_sim_message *m = &s->traffic.messages[i];
	struct gf_wire wires[GF_WIRES_MOST];
	bool own = s->traffic.plan_message[i] == s->variant.plan.nmessages;
	size_t n, k;
	int rc = 0;

	n = own ? own_wire(m, wires)
		: gf_plan_wires(&s->variant.plan, m->first, m->last, wires);

	for (k = 0; k < n && rc == 0; k++)
		rc = make_part(s, i, &wires[k], &parts[k], err);
	return rc < 0 ? rc : (int)n;
}

/* A rank's schedule of all parts, one after the other. */
static int schedule(const struct gf_replay_part *parts, int n, int rank,
		    struct gf_schedule *to, struct gf_error *err)
{
	struct gf_schedule next;
	int i, rc;

	rc = gf_algorithm_schedule(parts[0].way.algorithm, &parts[0].args, rank,
				   to, err);
	for (i = 1; i < n && rc == 0; i++) {
		rc = gf_algorithm_schedule(parts[i].way.algorithm,
					   &parts[i].args, rank, &next, err);
		if (rc < 0)
			break;
		gf_schedule_append(to, &next);
		gf_schedule_release(&next);
	}
	return rc;
}

int gf_replayed_message_init(struct gf_replayed_message *to,
			     struct gf_replay_setting *s, size_t i,
			     enum gf_coll_half half, struct gf_error *err)
{
	const struct gf_sim_message *m = &s->traffic.messages[i];
	struct gf_replay_part parts[GF_WIRES_MOST];
	int ranks = s->variant.fabric.ranks, rank, k, rc;
	const struct gf_codec *codec;
	int n;

	*to = (struct gf_replayed_message){0};
	/* every one of several ranks sends and receives */
	if (ranks > 1 && s->steps + 2.0 * ranks > GF_REPLAY_STEPS_MOST)
		return -E2BIG;
	/* and every segment is a step of somebody */
	if (s->variant.plan.segment_bytes &&
	    m->bytes / (double)s->variant.plan.segment_bytes >
		    GF_REPLAY_STEPS_MOST)
		return -E2BIG;
	n = gf_replay_parts(s, i, parts, err);
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
		.half = m->half,
		.ranks = gf_xcalloc((size_t)ranks, sizeof(*to->ranks)),
	};
	for (k = 0; k < n; k++)
		to->elems += parts[k].args.count_elems;
	if (gf_selection_has(&s->variant.plan.selection, GF_SELECT_SETS)) {
		to->element.bytes = m->bytes;
	} else {
		to->element.bytes = m->bytes / (double)to->elems;
		codec = gf_codec_find(
			gf_traffic_like(&s->traffic, &s->variant.plan, i)
				->codec);
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
		    s->steps + (double)to->ranks[0].nsteps * ranks >
			    GF_REPLAY_STEPS_MOST)
			rc = -E2BIG;
		s->steps += (double)to->ranks[rank].nsteps;
	}
	return rc;
}

void gf_replayed_messages_free(struct gf_replayed_message *m, size_t n,
			       int ranks)
{
	size_t i;
	int rank;

	for (i = 0; i < n; i++) {
		for (rank = 0; m[i].ranks && rank < ranks; rank++)
			gf_schedule_release(&m[i].ranks[rank]);
		free(m[i].ranks);
	}
	free(m);
}
