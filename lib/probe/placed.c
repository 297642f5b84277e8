/* SPDX-License-Identifier: BSD-3-Clause */
#include "probe/placed.h"

#include <stdlib.h>

#include "base/heap.h"

int gf_levels_placed(struct gf_comm *c, const struct gf_level *levels,
		     size_t nlevels, struct gf_text *remark,
		     struct gf_error *err)
{
	int *host = gf_xcalloc((size_t)c->ranks, sizeof(*host));
	int rc = gf_comm_allgather(c, &c->host, sizeof(c->host), host, err);
	const int inner = gf_levels_host(levels, nlevels);
	int rank, first;

	for (rank = 0; rc == 0 && inner && c->rank == 0 && rank < c->ranks;
	     rank++) {
		first = rank - rank % inner;
		if (host[rank] == host[first])
			continue;
		gf_text_addf(remark,
			     "level \"%s\" is within a host, and "
			     "ranks %d and %d of one of its groups of %d are "
			     "on two: steps take longer than predicted: start "
			     "the ranks by mpirun --map-by ppr:%d:node, or "
			     "plan for these (mpirun ... gf-topo | gf-plan)\n",
			     levels[0].name, first, rank, inner, inner);
		break;
	}
	free(host);
	return rc;
}
