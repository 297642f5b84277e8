/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdlib.h>

#include "base/heap.h"
#include "base/text.h"
#include "lane/program.h"

#define NAMED 8 /* of many */

static void mark(const struct gf_lane_program *p,
		 const struct gf_lane_step *step, bool *met)
{
	const struct gf_group all = {0, 1, p->ranks, p->rank};
	const struct gf_group *team = NULL;
	int i;

	switch (step->op) {
	case GF_LANE_SEND:
	case GF_LANE_RECV:
		met[step->peer] = true;
		break;
	case GF_LANE_ALL_REDUCE:
		team = &all;
		break;
	case GF_LANE_REDUCE_SCATTER:
	case GF_LANE_ALL_GATHER:
		team = &p->teams[step->team];
		break;
	default:
		break;
	}
	for (i = 0; team && i < team->size; i++)
		met[team->first + i * team->stride] = true;
}

char *gf_lane_program_peers(const struct gf_lane_program *p)
{
	bool *met = gf_xcalloc((size_t)p->ranks + 1, sizeof(*met));
	struct gf_text t = {0};
	size_t i;
	int rank, count = 0, named = 0;

	for (i = 0; i < p->nsteps; i++)
		mark(p, &p->steps[i], met);
	met[p->rank] = false;
	for (rank = 0; rank < p->ranks; rank++)
		count += met[rank];
	for (rank = 0; rank < p->ranks && named < NAMED; rank++)
		if (met[rank])
			gf_text_addf(&t, "%s%d",
				     named++      ? ", "
				     : count == 1 ? "rank "
						  : "ranks ",
				     rank);
	if (count > named)
		gf_text_addf(&t, " and %d more", count - named);
	if (!count)
		gf_text_addf(&t, "nobody");
	free(met);
	return gf_text_take(&t);
}
