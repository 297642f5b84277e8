/* SPDX-License-Identifier: BSD-3-Clause */
#include "sim/replay.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/heap.h"

/* Sizes at which closed forms are straight: rounding to whole elements and
 * startup are lost in them, yet startup is not lost in rounding of doubles. */
#define SMALL_BYTES ((size_t)1 << 30)
#define LARGE_BYTES ((size_t)1 << 34)

/* Contention is replayed with messages of this size up to so many steps. */
#define CONTENTION_BYTES ((size_t)1 << 26)
#define CONTENTION_STEPS 60000

/* What a message costs that goes nowhere: documents want more than nothing. */
#define NOWHERE_S 1e-9

struct gf_net_cost gf_replay_net_cost(const struct gf_level *levels,
				      size_t nlevels, double reduce_s_per_byte)
{
	struct gf_link_cost *links = gf_xcalloc(nlevels, sizeof(*links));
	int *sizes = gf_xcalloc(nlevels, sizeof(*sizes));
	size_t i;

	for (i = 0; i < nlevels; i++) {
		sizes[i] = (int)levels[i].size;
		links[i] = (struct gf_link_cost){
			.alpha_s = levels[i].latency_s,
			.beta_s_per_byte = 1 / levels[i].bandwidth_bytes_per_s,
			.gamma_s_per_byte = reduce_s_per_byte,
		};
	}
	return (struct gf_net_cost){nlevels, sizes, links};
}

size_t gf_replay_factors(const struct gf_level *levels, size_t nlevels,
			 int ranks, int *factors)
{
	size_t i, count = 0;
	int left = ranks;

	for (i = 0; i + 1 < nlevels && left > 1; i++) {
		if (levels[i].size < 2)
			continue;
		if (levels[i].size > (size_t)left)
			break;
		if ((size_t)left % levels[i].size)
			return 0;
		factors[count++] = (int)levels[i].size;
		left /= (int)levels[i].size;
	}
	if (left > 1 && count < nlevels)
		factors[count++] = left;
	return left > 1 && !count ? 0 : count;
}

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

	for (rank = 0; rank < args->ranks && steps <= CONTENTION_STEPS;
	     rank++) {
		if (gf_algorithm_schedule(a, args, rank, &s[rank], NULL))
			goto out;
		steps += n * s[rank].nsteps;
	}
	if (steps > CONTENTION_STEPS)
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
static void add_contention(const struct gf_algorithm *a,
			   const struct gf_coll_args *args,
			   const struct gf_replay_input *on, int lanes,
			   struct gf_allreduce_cost *cost)
{
	struct gf_coll_args large = *args;
	struct gf_contention_entry *entry;
	double *gamma, alone_s, end_s;
	size_t n;

	large.elem_bytes = 4;
	large.count_elems = CONTENTION_BYTES / 4;
	alone_s = together_s(a, &large, on, 1);
	if (lanes < 2 || !(alone_s > cost->startup_s))
		return;
	gamma = gf_xcalloc((size_t)lanes, sizeof(*gamma));
	gamma[0] = 1;
	for (n = 2; n <= (size_t)lanes; n++) {
		end_s = together_s(a, &large, on, n);
		if (isnan(end_s)) /* the rest follows from the last one */
			break;
		gamma[n - 1] =
			fmax(gamma[n - 2], (end_s - cost->startup_s) /
						   (alone_s - cost->startup_s));
	}
	entry = gf_xcalloc(1, sizeof(*entry));
	*entry = (struct gf_contention_entry){.gamma = gamma, .ngamma = n - 1};
	cost->contention = (struct gf_contention){entry, 1};
}

static void add_algorithm(const struct gf_algorithm *a,
			  const struct gf_coll_args *args,
			  const struct gf_replay_input *on, int lanes,
			  struct gf_network *net)
{
	struct gf_net_cost levels = gf_replay_net_cost(on->levels, on->nlevels,
						       on->reduce_s_per_byte);
	struct gf_allreduce_cost *cost;
	struct gf_coll_args sized = *args;
	double small_s, large_s;

	sized.elem_bytes = 1;
	sized.count_elems = SMALL_BYTES;
	small_s = a->cost_s(&sized, &levels);
	sized.count_elems = LARGE_BYTES;
	large_s = a->cost_s(&sized, &levels);
	free((void *)levels.sizes);
	free((void *)levels.links);

	cost = &net->allreduce[net->nallreduce++];
	cost->algorithm = gf_xstrdup(a->name);
	cost->per_byte_s =
		(large_s - small_s) / (double)(LARGE_BYTES - SMALL_BYTES);
	cost->startup_s =
		fmax(0, small_s - cost->per_byte_s * (double)SMALL_BYTES);
	if (args->ranks == 1)
		cost->startup_s = NOWHERE_S;
	else
		add_contention(a, args, on, lanes, cost);
}

struct gf_network *gf_replay_network(const struct gf_level *levels,
				     size_t nlevels, int ranks,
				     double reduce_s_per_byte, int lanes)
{
	struct gf_network *net = gf_xcalloc(1, sizeof(*net));
	struct gf_replay_input on = {
		.ranks = ranks,
		.levels = levels,
		.nlevels = nlevels,
		.reduce_s_per_byte = reduce_s_per_byte,
	};
	int *factors = gf_xcalloc(nlevels, sizeof(*factors));
	struct gf_coll_args args = {.ranks = ranks, .factors = factors};
	size_t i, n = 0;

	args.nfactors = gf_replay_factors(levels, nlevels, ranks, factors);
	while (gf_algorithms[n])
		n++;
	net->ranks = ranks;
	net->allreduce = gf_xcalloc(n, sizeof(*net->allreduce));
	for (i = 0; i < n; i++)
		if (gf_algorithms[i]->build)
			add_algorithm(gf_algorithms[i], &args, &on, lanes, net);
	free(factors);

	net->levels = gf_xcalloc(nlevels, sizeof(*net->levels));
	net->nlevels = nlevels;
	for (i = 0; i < nlevels; i++)
		net->levels[i] = (struct gf_level_cost){
			.name = gf_xstrdup(levels[i].name),
			.alpha_s = levels[i].latency_s,
			.beta_s_per_byte = 1 / levels[i].bandwidth_bytes_per_s,
			.reduce_s_per_byte = reduce_s_per_byte,
		};
	return net;
}

int gf_replay_algorithm(const struct gf_algorithm *a,
			const struct gf_coll_args *args,
			const struct gf_replay_input *on, double *end_s,
			struct gf_error *err)
{
	struct gf_schedule *s = gf_xcalloc((size_t)args->ranks, sizeof(*s));
	struct gf_replay_message message = {s, args->elem_bytes, 0};
	struct gf_replay_input in = *on;
	struct gf_replay_result result;
	int rank, rc = 0;

	in.ranks = args->ranks;
	in.messages = &message;
	in.nmessages = 1;
	for (rank = 0; !rc && rank < args->ranks; rank++)
		rc = gf_algorithm_schedule(a, args, rank, &s[rank], err);
	if (!rc)
		rc = gf_replay(&in, &result, err);
	if (!rc) {
		*end_s = result.end_s;
		gf_replay_result_release(&result);
	}
	for (rank = 0; rank < args->ranks; rank++)
		gf_schedule_release(&s[rank]);
	free(s);
	return rc;
}
