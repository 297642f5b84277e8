/* SPDX-License-Identifier: BSD-3-Clause */
/* gf-allreduce's ways: what it would choose (auto), and each of -a. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "arena.h"
#include "base/heap.h"
#include "rt/burst.h"
#include "rt/choose.h"

enum { WAYS_MOST = 16 };

/* ways[0] has no algorithm: auto */
static struct gf_way ways[WAYS_MOST];
static size_t segments[WAYS_MOST]; /* 0: a good size */
static int nways;
static struct gf_chooser *chooser;

static struct gf_element element(void)
{
	return gf_element_number(GF_F32, GF_OP_SUM);
}

static void enlist_way(struct arena *a, const struct gf_way *way,
		       size_t segment_bytes)
{
	char name[40], cut[24] = "";

	must(nways == WAYS_MOST, "too many algorithms");
	if (segment_bytes)
		snprintf(cut, sizeof(cut), "@%zu", segment_bytes);
	snprintf(name, sizeof(name), "gf-%.16s%s%.14s",
		 way->algorithm ? way->algorithm->name : "auto",
		 way->stages[0] ? ":ring" : "", cut);
	ways[nways] = *way;
	segments[nways] = segment_bytes;
	enlist(a, &our_side, OURS, name)->number = nways++;
}

/* rings: in all but the innermost stage, where that is something else */
static void enlist_algorithm(struct arena *a, const struct gf_algorithm *found,
			     bool asked, bool rings, size_t segment_bytes)
{
	struct gf_way way = {.algorithm = found};
	struct gf_element e = element();
	size_t nlayout;
	int layout[2], i;

	must(gf_way_layout(a->comm, &nlayout, layout, NULL), "layout");
	if (gf_way_takes_factors(way.algorithm) && nlayout) {
		way.nfactors = nlayout;
		for (i = 0; i < 2; i++)
			way.factors[i] = layout[i];
	}
	if (rings && !gf_way_outer_rings(&way))
		return;
	if (asked || !gf_way_check(&way, a->comm, &e, 1024, NULL))
		enlist_way(a, &way, segment_bytes);
}

static void enter(struct arena *a)
{
	struct gf_chooser_config config = {.comm = a->comm,
					   .watch = &a->watch,
					   .element = element(),
					   .lanes = 1};
	char *names = gf_xstrdup(a->o.algorithms), *rest = names, *name;
	char *rings, *segment;
	bool all = strcmp(names, "all") == 0;
	const struct gf_algorithm *found;
	struct gf_error err = {""};
	size_t i;

	must(gf_chooser_new(&config, &chooser, &err), err.text);
	enlist_way(a, &(struct gf_way){.algorithm = NULL}, 0);
	for (i = 0; all && gf_algorithms[i]; i++)
		enlist_algorithm(a, gf_algorithms[i], false, false, 0);
	while (!all && (name = strsep(&rest, ","))) {
		segment = strchr(name, '@');
		if (segment)
			*segment++ = '\0';
		rings = strchr(name, ':');
		if (rings)
			*rings = '\0';
		found = gf_algorithm_find(name);
		must(!found || (rings && strcmp(rings + 1, "ring") != 0), name);
		enlist_algorithm(a, found, true, rings != NULL,
				 segment ? strtoul(segment, NULL, 10) : 0);
	}
	free(names);
}

static void start(struct arena *a, struct contestant *c)
{
	struct gf_burst_message message = {
		.way = ways[c->number],
		.element = element(),
		.count_elems = a->count,
	};
	struct gf_burst *burst;
	struct gf_error err = {""};

	if (!message.way.algorithm) {
		must(gf_chooser_pick(chooser, a->count, a->data, &message.way,
				     &err),
		     err.text);
		snprintf(c->name, sizeof(c->name), "gf-auto:%.20s",
			 message.way.algorithm->name);
	}
	must(gf_burst_new(
		     &(struct gf_burst_config){.comm = a->comm,
					       .watch = &a->watch,
					       .messages = &message,
					       .nmessages = 1,
					       .lanes = 1,
					       .segment_bytes =
						       segments[c->number]},
		     &burst, &err),
	     err.text);
	c->state = burst;
}

static void run(struct arena *a, struct contestant *c)
{
	struct gf_error err = {""};

	must(gf_burst_send(c->state, a->data, &err), err.text);
}

static void end(struct arena *a, struct contestant *c)
{
	(void)a;
	gf_burst_free(c->state);
}

static void leave(struct arena *a)
{
	(void)a;
	gf_chooser_free(chooser);
}

const struct side our_side = {
	.enter = enter,
	.start = start,
	.run = run,
	.end = end,
	.leave = leave,
};
