/* SPDX-License-Identifier: BSD-3-Clause */
#include "sim/bench.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "base/heap.h"

/* The links of the closed forms as levels. */
static void take_levels(struct gf_replay_bench *b)
{
	const struct gf_cost_net *net = b->net;
	size_t n = net->nlevels, i;

	b->levels = gf_xcalloc(n, sizeof(*b->levels));
	b->lines = gf_xcalloc(n, sizeof(*b->lines));
	b->reduce_s_per_byte = gf_xcalloc(n, sizeof(*b->reduce_s_per_byte));
	b->on = (struct gf_replay_input){
		.ranks = b->args.ranks,
		.levels = b->levels,
		.nlevels = n,
		.level_lines = b->lines,
		.level_reduce_s_per_byte = b->reduce_s_per_byte,
	};
	for (i = 0; i < n; i++) {
		const struct gf_link_cost *l = &net->links[i];

		b->levels[i].size = (size_t)net->sizes[i];
		gf_replay_take_link(l, &b->levels[i], &b->lines[i],
				    &b->reduce_s_per_byte[i]);
		b->on.reduce_s_per_byte =
			fmax(b->on.reduce_s_per_byte, l->gamma_s_per_byte);
	}
}

int gf_replay_bench_init(struct gf_replay_bench *b,
			 const struct gf_algorithm *a,
			 const struct gf_coll_args *args,
			 const struct gf_cost_net *net)
{
	int rank, rc = 0;

	*b = (struct gf_replay_bench){
		.algorithm = a, .args = *args, .net = net};
	/* every rank sends and receives */
	if (args->ranks > GF_DERIVED_STEPS_MOST / 2)
		return -E2BIG;
	take_levels(b);
	b->ranks = gf_xcalloc((size_t)args->ranks, sizeof(*b->ranks));
	for (rank = 0; rank < args->ranks && rc == 0; rank++) {
		rc = gf_algorithm_schedule(a, args, rank, &b->ranks[rank],
					   NULL);
		b->nsteps += b->ranks[rank].nsteps;
		if (b->nsteps > GF_DERIVED_STEPS_MOST)
			rc = -E2BIG;
	}
	return rc;
}

void gf_replay_bench_release(struct gf_replay_bench *b)
{
	int rank;

	for (rank = 0; b->ranks && rank < b->args.ranks; rank++)
		gf_schedule_release(&b->ranks[rank]);
	free(b->ranks);
	free(b->levels);
	free(b->lines);
	free(b->reduce_s_per_byte);
	*b = (struct gf_replay_bench){0};
}

double gf_replay_bench_s(struct gf_replay_bench *b, double bytes, size_t n)
{
	struct gf_replay_message *messages;
	struct gf_replay_input in = b->on;
	struct gf_replay_result result;
	double end_s = NAN;
	size_t i;

	if (n * b->nsteps > GF_DERIVED_STEPS_MOST)
		return NAN;
	b->nreplayed += n * b->nsteps;
	messages = gf_xcalloc(n, sizeof(*messages));
	for (i = 0; i < n; i++)
		messages[i] = (struct gf_replay_message){
			.ranks = b->ranks,
			.element.bytes = bytes / (double)b->args.count_elems,
		};
	in.messages = messages;
	in.nmessages = n;
	if (!gf_replay(&in, &result, NULL)) {
		end_s = result.end_s;
		gf_replay_result_release(&result);
	}
	free(messages);
	return end_s;
}
