/* SPDX-License-Identifier: BSD-3-Clause */
#include "sim/replay.h"

#include <stdlib.h>

#include "base/heap.h"

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
