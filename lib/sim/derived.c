/* SPDX-License-Identifier: BSD-3-Clause */
#include "sim/derived.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/heap.h"
#include "sim/bench.h"

/* A message that was replayed as it is. */
struct sized {
	size_t count_elems;
	double bytes, seconds;
};

struct gf_derived_entry {
	const char *algorithm;
	int ranks, servers;
	int *factors;
	const char **stage_algorithms; /* or NULL */
	size_t nfactors;
	struct gf_derived_cost cost;
	struct gf_derived_line *lines;
	size_t nreplayed; /* steps that the cost comes from */
	unsigned counted; /* in the derived's count of that number */
	int lanes;
	struct gf_contention_entry entry;
	struct gf_contention contention;
	struct sized *sized;
	size_t nsized, sized_capacity;
};

static bool same(const struct gf_derived_entry *e, const struct gf_algorithm *a,
		 const struct gf_coll_args *args)
{
	size_t i;

	if (strcmp(e->algorithm, a->name) != 0 || e->ranks != args->ranks ||
	    e->servers != args->servers || e->nfactors != args->nfactors ||
	    !e->stage_algorithms != !args->stage_algorithms)
		return false;
	for (i = 0; i < e->nfactors; i++)
		if (e->factors[i] != args->factors[i] ||
		    (e->stage_algorithms &&
		     strcmp(e->stage_algorithms[i],
			    args->stage_algorithms[i]) != 0))
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
	e->ranks = args->ranks;
	e->servers = args->servers;
	e->nfactors = n;
	if (n > 0)
		e->factors = gf_xmemdup(args->factors, n * sizeof(*e->factors));
	if (n > 0 && args->stage_algorithms) {
		e->stage_algorithms =
			gf_xcalloc(n, sizeof(*e->stage_algorithms));
		for (i = 0; i < n; i++)
			e->stage_algorithms[i] =
				gf_xstrdup(args->stage_algorithms[i]);
	}
	*gf_array_push(&d->entries, &d->nentries, &d->capacity) = e;
	return e;
}

/* gamma_n of startup + gamma_n * per_byte * bytes, 1 <= n <= lanes. */
static void find_contention(struct gf_derived_entry *e,
			    struct gf_replay_bench *b, int lanes)
{
	const double bytes = GF_DERIVED_BYTES, longer = bytes * (1 + 0x1p-10);
	double alone_s = gf_replay_bench_s(b, bytes, 1), end_s, *gamma;
	double drain_s = (gf_replay_bench_s(b, longer, 1) - alone_s) /
			 (longer - bytes) * bytes;
	size_t n;

	e->lanes = lanes;
	if (lanes < 2 || !(drain_s > 0))
		return;
	gamma = gf_xcalloc((size_t)lanes, sizeof(*gamma));
	gamma[0] = 1;
	for (n = 2; n <= (size_t)lanes; n++) {
		end_s = gf_replay_bench_s(b, bytes, n);
		if (isnan(end_s)) /* the rest follows from the last one */
			break;
		gamma[n - 1] =
			fmax(gamma[n - 2], 1 + (end_s - alone_s) / drain_s);
	}
	free(e->entry.gamma);
	e->entry =
		(struct gf_contention_entry){.gamma = gamma, .ngamma = n - 1};
	e->contention = (struct gf_contention){&e->entry, 1};
	if (n > 2)
		e->cost.contention = &e->contention;
}

/* One level, on which links carry what their own rank sends and receives: there
 * closed forms are exact, whatever is left over in parts. */
static bool uniform(const struct gf_coll_args *args,
		    const struct gf_cost_net *net)
{
	return !args->servers &&
	       (net->nlevels == 1 || net->sizes[0] >= args->ranks);
}

static void derive(struct gf_derived *d, struct gf_derived_entry *e,
		   const struct gf_algorithm *a,
		   const struct gf_coll_args *args,
		   const struct gf_cost_net *net)
{
	struct gf_coll_args whole = *args;
	bool first = !e->lanes;
	struct gf_replay_bench b;

	whole.count_elems = gf_coll_divisible(args);
	e->lanes = d->lanes > 1 ? d->lanes : 1;
	if (uniform(args, net) && e->lanes < 2)
		return;
	if (gf_replay_bench_init(&b, a, &whole, net) == 0) {
		if (first && !uniform(args, net)) {
			e->lines = gf_replay_bench_lines(&b, &e->cost.nlines);
			e->cost.lines = e->lines;
			e->cost.nsteps = b.nsteps;
		}
		find_contention(e, &b, e->lanes);
		e->nreplayed += b.nreplayed;
	} else if (!uniform(args, net)) {
		d->unpriced = e->algorithm;
	}
	gf_replay_bench_release(&b);
	if (!e->cost.contention && e->lanes > 1)
		d->unknown = e->algorithm;
}

static bool has_steps(const struct gf_algorithm *a,
		      const struct gf_coll_args *args,
		      const struct gf_cost_net *net)
{
	size_t i;

	for (i = 0; i < net->nlevels; i++)
		if (!(net->links[i].beta_s_per_byte > 0) || !net->sizes)
			return false;
	return args->ranks > 1 && a->build;
}

static struct gf_derived_entry *find(struct gf_derived *d,
				     const struct gf_algorithm *a,
				     const struct gf_coll_args *args,
				     const struct gf_cost_net *net)
{
	struct gf_derived_entry *e = NULL;
	size_t i;

	for (i = 0; i < d->nentries && !e; i++)
		if (same(d->entries[i], a, args))
			e = d->entries[i];
	if (!e)
		e = add(d, a, args);
	if (!e->lanes || e->lanes < d->lanes)
		derive(d, e, a, args, net);
	if (e->counted != d->count)
		d->nreplayed += e->nreplayed;
	e->counted = d->count;
	return e;
}

const struct gf_derived_cost *gf_derived_find(struct gf_derived *d,
					      const struct gf_algorithm *a,
					      const struct gf_coll_args *args,
					      const struct gf_cost_net *net)
{
	static const struct gf_derived_cost nothing;

	return has_steps(a, args, net) ? &find(d, a, args, net)->cost
				       : &nothing;
}

double gf_derived_message_s(struct gf_derived *d, const struct gf_algorithm *a,
			    const struct gf_coll_args *args,
			    const struct gf_cost_net *net, double bytes)
{
	struct sized *s, now = {args->count_elems, bytes, NAN};
	struct gf_derived_entry *e;
	struct gf_replay_bench b;
	size_t i;

	if (!has_steps(a, args, net) || !args->count_elems)
		return NAN;
	e = find(d, a, args, net);
	for (i = 0; i < e->nsized; i++) {
		s = &e->sized[i];
		if (s->count_elems == now.count_elems && s->bytes == bytes)
			return s->seconds;
	}
	if (gf_replay_bench_init(&b, a, args, net) == 0)
		now.seconds = gf_replay_bench_s(&b, bytes, 1);
	gf_replay_bench_release(&b);
	*gf_array_push(&e->sized, &e->nsized, &e->sized_capacity) = now;
	return now.seconds;
}

void gf_derived_recount(struct gf_derived *d)
{
	d->nreplayed = 0;
	d->count++;
}

void gf_derived_release(struct gf_derived *d)
{
	size_t i, k;

	for (i = 0; i < d->nentries; i++) {
		struct gf_derived_entry *e = d->entries[i];

		for (k = 0; e->stage_algorithms && k < e->nfactors; k++)
			free((char *)e->stage_algorithms[k]);
		free(e->stage_algorithms);
		free(e->factors);
		free(e->lines);
		free(e->sized);
		free(e->entry.gamma);
		free(e);
	}
	free(d->entries);
	memset(d, 0, sizeof(*d));
}
