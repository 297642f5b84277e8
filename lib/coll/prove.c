/* SPDX-License-Identifier: BSD-3-Clause */
#include "coll/prove.h"

#include <errno.h>
#include <stdlib.h>

#include "base/heap.h"
#include "coll/verify.h"

static int build(const struct gf_algorithm *a, const struct gf_coll_args *args,
		 struct gf_schedule *ranks, size_t *steps, struct gf_error *err)
{
	int rank, rc;

	for (rank = 0; rank < args->ranks; rank++) {
		rc = gf_algorithm_schedule(a, args, rank, &ranks[rank], err);
		if (rc)
			return rc;
		*steps += ranks[rank].nsteps;
		if (*steps > GF_PROVE_STEPS_MOST)
			return gf_error_set(err, -ENOTSUP,
					    "want at most %d steps of all "
					    "ranks for a proof, got more",
					    GF_PROVE_STEPS_MOST);
	}
	return 0;
}

static int verify(const struct gf_coll_args *args,
		  const struct gf_schedule *ranks, struct gf_error *err)
{
	if (args->half == GF_COLL_REDUCE_SCATTER)
		return gf_verify_reduce_scatter(ranks, args->ranks, err);
	if (args->half == GF_COLL_ALL_GATHER)
		return gf_verify_all_gather(ranks, args->ranks, err);
	return gf_verify_allreduce(ranks, args->ranks, err);
}

int gf_prove(const struct gf_algorithm *a, const struct gf_coll_args *args,
	     size_t *steps, struct gf_error *err)
{
	struct gf_schedule *ranks;
	size_t count = 0;
	int rank, rc = gf_coll_args_check(args, err);

	if (rc)
		return rc;
	if (args->ranks > GF_PROVE_RANKS_MOST)
		return gf_error_set(err, -ENOTSUP,
				    "want at most %d ranks for a proof, got %d",
				    GF_PROVE_RANKS_MOST, args->ranks);
	ranks = gf_xcalloc((size_t)args->ranks, sizeof(*ranks));
	rc = build(a, args, ranks, &count, err);
	if (!rc && verify(args, ranks, err))
		rc = 1;
	for (rank = 0; rank < args->ranks; rank++)
		gf_schedule_release(&ranks[rank]);
	free(ranks);
	if (!rc)
		*steps = count;
	return rc;
}
