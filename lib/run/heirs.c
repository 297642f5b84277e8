/* SPDX-License-Identifier: BSD-3-Clause */
#include "run/marks.h"

#include <errno.h>
#include <stdlib.h>

#include "base/heap.h"

static int set_heir(int *heirs, int before, int rank, size_t former,
		    struct gf_error *err)
{
	if (former > (size_t)before)
		return gf_error_set(err, -EINVAL,
				    "former: want at most %d, the ranks that "
				    "wrote the set, got %zu on rank %d",
				    before, former, rank);
	if (heirs[former - 1] >= 0)
		return gf_error_set(err, -EINVAL,
				    "former: want each rank to have been "
				    "another one, got %zu on ranks %d and %d",
				    former, heirs[former - 1], rank);
	heirs[former - 1] = rank;
	return 0;
}

int gf_heirs_find(struct gf_team *team, size_t former, int before, int **heirs,
		  struct gf_error *err)
{
	const int ranks = team->comm->ranks;
	size_t *all = gf_xcalloc((size_t)ranks, sizeof(*all));
	int rc = gf_team_allgather(team, &former, sizeof(former), all, err);
	int *found = gf_xcalloc((size_t)before, sizeof(*found)), r, known = 0;

	for (r = 0; r < before; r++)
		found[r] = -1;
	for (r = 0; r < ranks && !rc; r++) {
		if (!all[r])
			continue;
		rc = set_heir(found, before, r, all[r], err);
		known++;
	}
	free(all);
	*heirs = known && !rc ? found : NULL;
	if (!*heirs)
		free(found);
	return rc;
}
