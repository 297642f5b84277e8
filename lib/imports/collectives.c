/* SPDX-License-Identifier: BSD-3-Clause */
#include "imports/collectives.h"

#include <ctype.h>
#include <stdbool.h>
#include <string.h>

#include "base/array.h"
#include "base/heap.h"
#include "imports/readings.h"

enum { CHOICES_MOST = 64 }; /* NCCL has half as many */

static const struct {
	const char *name, *begins;
	bool whole; /* no name that goes on after it */
} kinds[] = {
	[GF_COLLECTIVE_ALL_REDUCE] = {"all-reduce", "allreduce", true},
	[GF_COLLECTIVE_OTHER_ALL_REDUCE] = {"other all-reduce", "allreduce"},
	[GF_COLLECTIVE_ALL_GATHER] = {"all-gather", "allgather"},
	[GF_COLLECTIVE_REDUCE_SCATTER] = {"reduce-scatter", "reducescatter"},
	[GF_COLLECTIVE_BROADCAST] = {"broadcast", "broadcast"},
	[GF_COLLECTIVE_ALL_TO_ALL] = {"all-to-all", "alltoall"},
	[GF_COLLECTIVE_BARRIER] = {"barrier", "barrier"},
	[GF_COLLECTIVE_REDUCE] = {"reduce", "reduce"},
	[GF_COLLECTIVE_GATHER] = {"gather", "gather"},
	[GF_COLLECTIVE_SCATTER] = {"scatter", "scatter"},
	[GF_COLLECTIVE_OTHER] = {"other", ""},
	[GF_COLLECTIVE_SETS] = {"sparse sets", ""},
};

const char *gf_collective_name(enum gf_collective_kind kind)
{
	return kinds[kind].name;
}

/* Without regard to case and underscores. */
static bool is_kind(const char *name, size_t kind)
{
	const char *p = kinds[kind].begins;

	for (; *p && *name; name++)
		if (*name != '_' && tolower((unsigned char)*name) != *p++)
			return false;
	name += strspn(name, "_"); /* of one in place */
	return !*p && !(*name && kinds[kind].whole);
}

enum gf_collective_kind gf_collective_kind(const char *name)
{
	size_t i = 0;

	while (!is_kind(name, i))
		i++;
	return (enum gf_collective_kind)i;
}

/* FNV-1a: two communicators of one run hardly ever share it. */
uint64_t gf_collectives_group(const char *name, int ranks)
{
	uint64_t h = 0xcbf29ce484222325u + (uint64_t)ranks;

	while (*name)
		h = (h ^ (unsigned char)*name++) * 0x100000001b3u;
	return h;
}

static int choice_of(struct gf_collectives *c, const char *name)
{
	size_t i;

	for (i = 0; i < c->nchoices; i++)
		if (strcmp(c->choices[i].name, name) == 0)
			return (int)i;
	if (i == CHOICES_MOST)
		return CHOICES_MOST - 1;
	gf_array_push(&c->choices, &c->nchoices, &c->choice_capacity)->name = gf_xstrdup(name);
	return (int)i;
}

void gf_collectives_add(struct gf_collectives *c, const struct gf_collective *r, const char *choice)
{
	struct gf_collective *to = gf_array_push(&c->all, &c->count, &c->capacity);

	*to = *r;
	to->choice = choice ? choice_of(c, choice) : -1;
}

/* Each all-reduce's ranks together, the shortest time first. */
GF_ORDER(by_collective, struct gf_collective,
	 GF_BY(x->group, y->group)
	 ?: GF_BY(x->sequence, y->sequence)
	 ?: GF_BY(x->size_bytes, y->size_bytes) ?: GF_BY(x->time_s, y->time_s))
GF_ORDER(by_size, struct gf_collective,
	 GF_BY(x->size_bytes, y->size_bytes) ?: GF_BY(x->time_s, y->time_s))

/* Behind the last record of the all-reduce that begins at `first`. */
static size_t end_of(const struct gf_collectives *c, size_t first)
{
	const struct gf_collective *r = c->all;
	size_t end = first + 1;

	while (end < c->count && r[end].group == r[first].group &&
	       r[end].sequence == r[first].sequence && r[end].size_bytes == r[first].size_bytes)
		end++;
	return end;
}

/* The ranks that are told, or those of the largest group. */
static int ranks_of(const struct gf_collectives *c, int told)
{
	int most = 0;

	for (size_t i = 0; i < c->count; i++) {
		if (c->all[i].ranks == told)
			return told;
		if (c->all[i].ranks > most)
			most = c->all[i].ranks;
	}
	return most;
}

size_t gf_collectives_match(struct gf_collectives *c, const char *file, int ranks,
			    struct gf_text *remarks)
{
	size_t i, end, kept = 0, present = 0;

	ranks = ranks_of(c, ranks);
	if (c->count)
		qsort(c->all, c->count, sizeof(*c->all), by_collective);
	for (i = 0; i < c->count; i = end) {
		end = end_of(c, i);
		if (c->all[i].ranks == ranks && end - i > present)
			present = end - i;
	}
	for (i = 0; i < c->count; i = end) {
		const struct gf_collective *r = &c->all[i];

		end = end_of(c, i);
		if (r->ranks == ranks && end - i == present) {
			if (r->choice >= 0)
				c->choices[r->choice].count++;
			c->all[kept++] = *r;
			continue;
		}
		gf_imported_leave(c->imported,
				  r->ranks == ranks
					  ? "all-reduces that some rank's file does not hold"
					  : "all-reduces of fewer or more ranks",
				  r->place);
	}
	c->count = kept;
	if (kept)
		qsort(c->all, kept, sizeof(*c->all), by_size);
	if (kept && present < (size_t)ranks)
		gf_text_addf(remarks,
			     "%s: it has the records of %zu of %d ranks, whose times hold the "
			     "waits for the others: give the folder with all ranks' files\n",
			     file, present, ranks);
	return present;
}

/* Behind the last that has the size of `first`; the records are matched. */
static size_t same_size(const struct gf_collectives *c, size_t first)
{
	size_t end = first + 1;

	while (end < c->count && c->all[end].size_bytes == c->all[first].size_bytes)
		end++;
	return end;
}

static int take_medians(const struct gf_collectives *c, struct gf_readings *all,
			struct gf_error *err)
{
	size_t i, end;
	int rc = 0;

	for (i = 0; i < c->count && rc == 0; i = end) {
		const struct gf_collective *r = &c->all[i];
		struct gf_reading reading = {
			.ranks = r->ranks,
			.size_bytes = r->size_bytes,
			.algorithm = "library",
			.factors = "",
			.dense = true,
			.place = r->place,
		};

		end = same_size(c, i);
		reading.time_s = (r[(end - i - 1) / 2].time_s + r[(end - i) / 2].time_s) / 2;
		rc = gf_readings_take(all, &reading, err);
	}
	return rc;
}

int gf_collectives_finish(const struct gf_collectives *c, const struct gf_import *in,
			  struct gf_profile *out, struct gf_text *remarks, struct gf_error *err)
{
	GF_RELEASED(gf_readings_release) struct gf_readings all = {.imported = c->imported};

	gf_imported_find(c->imported, "%zu all-reduces", c->count);
	for (size_t i = 0; i < c->nchoices; i++)
		if (c->choices[i].count)
			gf_imported_find(c->imported, "%zu by %s", c->choices[i].count,
					 c->choices[i].name);
	return take_medians(c, &all, err) ?: gf_readings_finish(&all, in, out, remarks, err);
}

void gf_collectives_release(struct gf_collectives *c)
{
	for (size_t i = 0; i < c->nchoices; i++)
		free(c->choices[i].name);
	free(c->choices);
	free(c->all);
	memset(c, 0, sizeof(*c));
}
