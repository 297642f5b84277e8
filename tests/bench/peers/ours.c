/* SPDX-License-Identifier: BSD-3-Clause */
/* gf-allreduce's ways: what it would choose (auto), and each of -a, over each transport of -t. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "arena.h"
#include "base/heap.h"
#include "transport/join.h"
#include "transport/mpi_state.h"
#include "runtime/engine/burst.h"
#include "profiler/autotune/chooser.h"

enum { WAYS_MOST = 24, TRANSPORTS_MOST = 4 };

struct carrier {
	char name[16];
	struct gf_comm *comm;
	struct gf_watch *watch, own;
	struct gf_chooser *chooser;
	float *data; /* in memory that the transport likes */
};

static struct carrier carriers[TRANSPORTS_MOST];
static int ncarriers;

static struct {
	struct carrier *carrier;
	struct gf_way way;    /* no algorithm: auto */
	size_t segment_bytes; /* 0: a good size */
} ways[WAYS_MOST];
static int nways;

static struct gf_element element(void)
{
	return gf_element_number(GF_F32, GF_OP_SUM);
}

static void enlist_way(struct arena *a, struct carrier *r, const struct gf_way *way,
		       size_t segment_bytes)
{
	struct contestant *c;
	char name[40], cut[24] = "";

	must(nways == WAYS_MOST, "too many algorithms");
	if (segment_bytes)
		snprintf(cut, sizeof(cut), "@%zu", segment_bytes);
	snprintf(name, sizeof(name), "gf-%.4s-%.14s%s%.9s", r->name,
		 way->algorithm ? way->algorithm->name : "auto", way->stages[0] ? ":ring" : "",
		 cut);
	ways[nways].carrier = r;
	ways[nways].way = *way;
	ways[nways].segment_bytes = segment_bytes;
	c = enlist(a, &our_side, OURS, name);
	c->number = nways++;
	c->family = (int)(r - carriers);
	c->leads = !way->algorithm;
	c->data = r->data;
}

/* rings: in all but the innermost stage, where that is something else */
static void enlist_algorithm(struct arena *a, struct carrier *r, const struct gf_algorithm *found,
			     bool asked, bool rings, size_t segment_bytes)
{
	struct gf_way way = {.algorithm = found};
	struct gf_element e = element();
	size_t nlayout;
	int layout[2], i;

	must(gf_choose_layout(r->comm, &nlayout, layout, NULL), "layout");
	if (gf_way_takes_factors(way.algorithm) && nlayout) {
		way.nfactors = nlayout;
		for (i = 0; i < 2; i++)
			way.factors[i] = layout[i];
	}
	if (rings && !gf_way_outer_rings(&way))
		return;
	if (asked || !gf_choose_check(&way, r->comm, &e, GF_COLL_WHOLE, 1024, NULL))
		enlist_way(a, r, &way, segment_bytes);
}

/* "ring", "ring@65536", "blueconnect:ring" */
static void enlist_named(struct arena *a, struct carrier *r, char *name)
{
	const struct gf_algorithm *found;
	char *rings, *segment = strchr(name, '@');

	if (segment)
		*segment++ = '\0';
	rings = strchr(name, ':');
	if (rings)
		*rings = '\0';
	found = gf_algorithm_find(name);
	must(!found || (rings && strcmp(rings + 1, "ring") != 0), name);
	enlist_algorithm(a, r, found, true, rings != NULL,
			 segment ? strtoul(segment, NULL, 10) : 0);
}

static void enlist_all(struct arena *a, struct carrier *r)
{
	char *names = gf_xstrdup(a->o.algorithms), *rest = names, *name;
	bool all = strcmp(names, "all") == 0;
	size_t i;

	enlist_way(a, r, &(struct gf_way){.algorithm = NULL}, 0);
	for (i = 0; all && gf_algorithms[i]; i++)
		enlist_algorithm(a, r, gf_algorithms[i], false, false, 0);
	while (!all && (name = strsep(&rest, ",")))
		enlist_named(a, r, name);
	free(names);
}

static int show(void *ctx, const void *send, size_t size_bytes, void *recv, struct gf_error *err)
{
	(void)ctx;
	(void)err;
	return MPI_Allgather(send, (int)size_bytes, MPI_BYTE, recv, (int)size_bytes, MPI_BYTE,
			     MPI_COMM_WORLD)
		       ? -1
		       : 0;
}

static void open_carrier(struct arena *a, struct carrier *r)
{
	const struct gf_join join = {
		.rank = a->comm->rank, .ranks = a->comm->ranks, .allgather = show};
	const struct gf_comm_how how = {.transport = r->name, .join = &join, .variable = getenv};
	struct gf_error err = {""};
	void *data;

	r->comm = a->comm;
	r->watch = &a->watch;
	r->data = a->data;
	if (strcmp(r->name, "mpi") == 0)
		return;
	must(gf_comm_open(&how, &r->comm, &err), err.text);
	r->watch = &r->own;
	gf_watch_init(r->watch, r->comm, 60);
	must(r->comm->ops->buffer_alloc(r->comm, a->o.high, &data, &err), err.text);
	r->data = data;
}

static void enter(struct arena *a)
{
	char *names = gf_xstrdup(a->o.transports), *rest = names, *name;
	struct gf_chooser_config config = {.element = element(), .lanes = 1};
	struct gf_error err = {""};

	while ((name = strsep(&rest, ","))) {
		struct carrier *r = &carriers[ncarriers];

		must(ncarriers++ == TRANSPORTS_MOST, "too many transports");
		snprintf(r->name, sizeof(r->name), "%s", name);
		open_carrier(a, r);
		config.comm = r->comm;
		config.watch = r->watch;
		must(gf_chooser_new(&config, &r->chooser, &err), err.text);
		enlist_all(a, r);
	}
	free(names);
}

static void start(struct arena *a, struct contestant *c)
{
	struct carrier *r = ways[c->number].carrier;
	struct gf_burst_message message = {
		.way = ways[c->number].way,
		.element = element(),
		.count_elems = a->count,
	};
	struct gf_burst_config config = {
		.comm = r->comm,
		.watch = r->watch,
		.messages = &message,
		.nmessages = 1,
		.lanes = 1,
		.segment_bytes = ways[c->number].segment_bytes,
	};
	struct gf_burst *burst;
	struct gf_error err = {""};

	gf_mpi_set_yields(false);
	if (c->leads) {
		must(gf_chooser_pick(r->chooser, a->count, c->data, &message.way, &err), err.text);
		snprintf(c->name, sizeof(c->name), "gf-%.4s-auto:%.20s", r->name,
			 message.way.algorithm->name);
	}
	must(gf_burst_new(&config, &burst, &err), err.text);
	gf_mpi_set_yields(a->comm->crowded);
	c->state = burst;
}

static void run(struct arena *a, struct contestant *c)
{
	struct gf_error err = {""};

	gf_mpi_set_yields(false);
	must(gf_burst_send(c->state, c->data, &err), err.text);
	gf_mpi_set_yields(a->comm->crowded);
}

static void end(struct arena *a, struct contestant *c)
{
	(void)a;
	gf_burst_free(c->state);
}

static void leave(struct arena *a)
{
	struct carrier *r;

	for (r = carriers; r < carriers + ncarriers; r++) {
		gf_chooser_free(r->chooser);
		if (r->comm == a->comm)
			continue;
		gf_watch_release(r->watch);
		r->comm->ops->buffer_free(r->comm, r->data);
		gf_comm_close(r->comm);
	}
}

const struct side our_side = {
	.enter = enter,
	.start = start,
	.run = run,
	.end = end,
	.leave = leave,
};
