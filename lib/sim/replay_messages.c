/* SPDX-License-Identifier: BSD-3-Clause */
#include "sim/replay_parts.h"

#include <errno.h>
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/heap.h"

/* The numbers that a rank sends. */
static size_t elems_of(const struct gf_wire *wire)
{
	if (wire->share == 1)
		return (size_t)wire->count_elems;
	return (size_t)fmax(1, round(wire->count_elems * wire->share));
}

int gf_replay_arguments(const struct gf_replay_setting *s, size_t i,
			struct gf_way *way, struct gf_coll_args *args,
			struct gf_error *err)
{
	const struct gf_plan *p = &s->variant.plan;
	const struct gf_sim_message *m = &s->traffic.messages[i];
	const struct gf_message *from =
		&p->messages[s->traffic.plan_message[i]];
	struct gf_wire wires[GF_WIRES_MOST];
	bool gathers;
	int rc;

	gf_plan_wires(p, m->first, m->last, wires);
	gathers = wires[0].kind == GF_WIRE_GATHER;
	/* an element is one rank's whole set */
	if (wires[0].kind != GF_WIRE_REDUCE) {
		*way = (struct gf_way){
			.algorithm = gf_sparse_find(gathers ? "topk" : "gtopk"),
		};
		*args = gf_way_args(way, s->variant.fabric.ranks);
		args->count_elems = gathers ? (size_t)args->ranks : 1;
		args->half = gathers ? GF_COLL_ALL_GATHER : GF_COLL_WHOLE;
	} else {
		rc = gf_way_of_message(from, way, err);
		if (rc < 0)
			return rc;
		way->servers = s->variant.fabric.servers;
		*args = gf_way_args(way, s->variant.fabric.ranks);
		args->count_elems = elems_of(&wires[0]);
		if (m->half == GF_HALF_SPLIT)
			args->half = GF_COLL_REDUCE_SCATTER;
	}
	args->elem_bytes = 4;
	return 0;
}

int gf_replayed_message_init(struct gf_replayed_message *to,
			     struct gf_replay_setting *s, size_t i,
			     enum gf_coll_half half, struct gf_error *err)
{
	const struct gf_sim_message *m = &s->traffic.messages[i];
	struct gf_coll_args args;
	struct gf_way way;
	int rank, rc = gf_replay_arguments(s, i, &way, &args, err);

	if (rc < 0) {
		gf_error_prefix(err, "message %zu", i);
		return rc;
	}
	if (half == GF_COLL_ALL_GATHER)
		args.half = half;
	*to = (struct gf_replayed_message){
		.plan_message = s->traffic.plan_message[i],
		.first = m->first,
		.last = m->last,
		.bytes = (size_t)fmin(m->bytes, 0x1p62),
		.half = m->half,
		.elems = args.count_elems,
		.ranks = gf_xcalloc((size_t)args.ranks, sizeof(*to->ranks)),
	};
	to->bytes_per_elem =
		gf_selection_has(&s->variant.plan.selection, GF_SELECT_SETS)
			? m->bytes
			: m->bytes / (double)args.count_elems;
	for (rank = 0; rank < args.ranks && rc == 0; rank++) {
		rc = gf_algorithm_schedule(way.algorithm, &args, rank,
					   &to->ranks[rank], err);
		if (rc < 0) {
			gf_error_prefix(err, "message %zu", i);
			break;
		}
		/* the first rank speaks for all before they are built */
		if (rank == 0 &&
		    s->steps + (double)to->ranks[0].nsteps * args.ranks >
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
