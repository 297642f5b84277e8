/* SPDX-License-Identifier: BSD-3-Clause */
#include "sim/derived.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/heap.h"

#define ELEM_BYTES 4

struct gf_derived_entry {
	const char *algorithm;
	int *factors;
	const char **stage_algorithms; /* constants or borrowed until release */
	size_t nfactors;
	struct gf_contention_entry entry;
	struct gf_contention contention;
	bool known;
};

/* `n` messages at once by replay, or NAN where that takes too long. */
static double together_s(const struct gf_algorithm *a,
			 const struct gf_coll_args *args,
			 const struct gf_replay_input *on, size_t n)
{
	struct gf_schedule *s = gf_xcalloc((size_t)args->ranks, sizeof(*s));
	struct gf_replay_message *messages = gf_xcalloc(n, sizeof(*messages));
	struct gf_replay_input in = *on;
	struct gf_replay_result result;
	size_t steps = 0, i;
	double end_s = NAN;
	int rank;

	for (rank = 0; rank < args->ranks && steps <= GF_DERIVED_STEPS_MOST;
	     rank++) {
		if (gf_algorithm_schedule(a, args, rank, &s[rank], NULL))
			goto out;
		steps += n * s[rank].nsteps;
	}
	if (steps > GF_DERIVED_STEPS_MOST)
		goto out;
	for (i = 0; i < n; i++)
		messages[i] =
			(struct gf_replay_message){s, args->elem_bytes, 0};
	in.messages = messages;
	in.nmessages = n;
	if (!gf_replay(&in, &result, NULL)) {
		end_s = result.end_s;
		gf_replay_result_release(&result);
	}
out:
	for (rank = 0; rank < args->ranks; rank++)
		gf_schedule_release(&s[rank]);
	free(messages);
	free(s);
	return end_s;
}

/* gamma_n of startup + gamma_n * per_byte * bytes, 1 <= n <= lanes. */
static void derive(struct gf_derived_entry *e, int lanes,
		   const struct gf_algorithm *a,
		   const struct gf_coll_args *args,
		   const struct gf_replay_input *on, double startup_s)
{
	struct gf_coll_args large = *args;
	double *gamma, alone_s;
	size_t n;

	large.elem_bytes = ELEM_BYTES;
	large.count_elems = GF_DERIVED_BYTES / ELEM_BYTES;
	alone_s = together_s(a, &large, on, 1);
	if (!(alone_s > startup_s))
		return;
	gamma = gf_xcalloc((size_t)lanes, sizeof(*gamma));
	gamma[0] = 1;
	for (n = 2; n <= (size_t)lanes; n++) {
		double end_s = together_s(a, &large, on, n);

		if (isnan(end_s)) /* the rest follows from the last one */
			break;
		gamma[n - 1] =
			fmax(gamma[n - 2],
			     (end_s - startup_s) / (alone_s - startup_s));
	}
	e->entry =
		(struct gf_contention_entry){.gamma = gamma, .ngamma = n - 1};
	e->contention = (struct gf_contention){&e->entry, 1};
	e->known = n > 2;
}

static bool same(const struct gf_derived_entry *e, const struct gf_algorithm *a,
		 const struct gf_coll_args *args)
{
	size_t i;

	if (strcmp(e->algorithm, a->name) != 0 || e->nfactors != args->nfactors)
		return false;
	for (i = 0; i < e->nfactors; i++)
		if (e->factors[i] != args->factors[i] ||
		    strcmp(e->stage_algorithms[i], args->stage_algorithms[i]) !=
			    0)
			return false;
	return true;
}

static struct gf_derived_entry *add(struct gf_derived *d,
				    const struct gf_algorithm *a,
				    const struct gf_coll_args *args)
{
	struct gf_derived_entry *e = gf_xcalloc(1, sizeof(*e));
	size_t n = args->nfactors, i;

	e->algorithm = a->name;
	e->nfactors = n;
	if (n > 0) {
		e->factors = gf_xmemdup(args->factors, n * sizeof(*e->factors));
		e->stage_algorithms =
			gf_xcalloc(n, sizeof(*e->stage_algorithms));
		for (i = 0; i < n; i++)
			e->stage_algorithms[i] =
				gf_xstrdup(args->stage_algorithms[i]);
	}
	*gf_array_push(&d->entries, &d->nentries, &d->capacity) = e;
	return e;
}

/* The links of the closed forms as levels. */
static struct gf_level *levels_of(const struct gf_net_cost *net,
				  double *reduce_s_per_byte,
				  double *level_reduce,
				  struct gf_cost_lines *lines)
{
	struct gf_level *levels = gf_xcalloc(net->nlevels, sizeof(*levels));
	size_t i;

	*reduce_s_per_byte = 0;
	for (i = 0; i < net->nlevels; i++) {
		const struct gf_link_cost *l = &net->links[i];

		levels[i].size = (size_t)net->sizes[i];
		levels[i].latency_s = l->alpha_s;
		levels[i].bandwidth_bytes_per_s = 1 / l->beta_s_per_byte;
		lines[i].larger = l->larger;
		lines[i].nlarger = l->nlarger;
		level_reduce[i] = l->gamma_s_per_byte;
		*reduce_s_per_byte =
			fmax(*reduce_s_per_byte, l->gamma_s_per_byte);
	}
	return levels;
}

const struct gf_contention *
gf_derived_contention(struct gf_derived *d, const struct gf_algorithm *a,
		      const struct gf_coll_args *args,
		      const struct gf_net_cost *net, double startup_s)
{
	struct gf_replay_input on = {.ranks = args->ranks,
				     .nlevels = net->nlevels};
	struct gf_derived_entry *e;
	struct gf_cost_lines *lines;
	struct gf_level *levels;
	double *level_reduce;
	size_t i;

	if (d->lanes < 2 || args->ranks < 2 || !a->build)
		return NULL;
	for (i = 0; i < net->nlevels; i++)
		if (!(net->links[i].beta_s_per_byte > 0) || !net->sizes)
			return NULL;
	for (i = 0; i < d->nentries; i++)
		if (same(d->entries[i], a, args))
			return d->entries[i]->known ? &d->entries[i]->contention
						    : NULL;
	e = add(d, a, args);
	level_reduce = gf_xcalloc(net->nlevels, sizeof(*level_reduce));
	lines = gf_xcalloc(net->nlevels, sizeof(*lines));
	levels = levels_of(net, &on.reduce_s_per_byte, level_reduce, lines);
	on.levels = levels;
	on.level_lines = lines;
	on.level_reduce_s_per_byte = level_reduce;
	derive(e, d->lanes, a, args, &on, startup_s);
	free(levels);
	free(lines);
	free(level_reduce);
	if (!e->known)
		d->unknown = e->algorithm;
	return e->known ? &e->contention : NULL;
}

void gf_derived_release(struct gf_derived *d)
{
	size_t i, k;

	for (i = 0; i < d->nentries; i++) {
		struct gf_derived_entry *e = d->entries[i];

		for (k = 0; k < e->nfactors; k++)
			free((char *)e->stage_algorithms[k]);
		free(e->stage_algorithms);
		free(e->factors);
		free(e->entry.gamma);
		free(e);
	}
	free(d->entries);
	memset(d, 0, sizeof(*d));
}
