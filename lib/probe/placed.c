/* SPDX-License-Identifier: BSD-3-Clause */
#include "probe/placed.h"

#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/heap.h"

/* Links that end at a host's edge. */
static bool is_within_host(const struct gf_level *level)
{
	static const char *const links[] = {"shm", "pcie", "nvlink", "xgmi"};
	size_t i;

	for (i = 0; i < GF_ARRAY_LENGTH(links); i++)
		if (strcmp(level->link, links[i]) == 0)
			return true;
	return false;
}

int gf_levels_placed(struct gf_comm *c, const struct gf_level *levels,
		     size_t nlevels, struct gf_text *remark,
		     struct gf_error *err)
{
	int *host = gf_xcalloc((size_t)c->ranks, sizeof(*host));
	int rc = gf_comm_allgather(c, &c->host, sizeof(c->host), host, err);
	size_t inner = 1, i;
	int rank, first;

	for (i = 0; i < nlevels && is_within_host(&levels[i]); i++)
		inner *= levels[i].size;
	for (rank = 0; rc == 0 && c->rank == 0 && rank < c->ranks; rank++) {
		first = rank - rank % (int)inner;
		if (host[rank] == host[first])
			continue;
		gf_text_addf(remark,
			     "level \"%s\" is within a host, and "
			     "ranks %d and %d of one of its groups of %zu are "
			     "on two: steps take longer than predicted: start "
			     "the ranks by mpirun --map-by ppr:%zu:node, or "
			     "plan for these (mpirun ... gf-topo | gf-plan)\n",
			     levels[0].name, first, rank, inner, inner);
		break;
	}
	free(host);
	return rc;
}
