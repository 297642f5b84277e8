/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>

#include "doc/algorithm_traits.h"
#include "exec/exec.h"

/* The first rank of this rank's group that shares no memory with it; -1: all
 * share it. */
static int stranger(struct gf_comm *c, int stride, int size)
{
	int first = c->rank - c->rank / stride % size * stride, i, peer;

	for (i = 0; i < size; i++) {
		peer = first + i * stride;
		if (peer != c->rank &&
		    !(c->ops->reduces_from && c->ops->reduces_from(c, peer)))
			return peer;
	}
	return -1;
}

int gf_exec_stages_check(struct gf_comm *c, const struct gf_coll_args *args,
			 struct gf_error *err)
{
	int stride = 1, peer;
	size_t i;

	for (i = 0; args->stage_algorithms && i < args->nfactors; i++) {
		const char *name = args->stage_algorithms[i];

		if (!gf_stage_has(name, GF_STAGE_BY_HOST))
			return gf_error_set(
				err, -ENOTSUP,
				"stage %zu: %s runs between GPUs, and messages "
				"go from processor to processor here",
				i, name);
		peer = gf_stage_has(name, GF_STAGE_ONE_HOST)
			       ? stranger(c, stride, args->factors[i])
			       : -1;
		if (peer >= 0)
			return gf_error_set(
				err, -ENOTSUP,
				"stage %zu: %s wants ranks that share memory, "
				"and ranks %d and %d do not; ring, halving and "
				"mpi go between hosts",
				i, name, c->rank, peer);
		if (gf_stage_has(name, GF_STAGE_CALL) && !c->ops->team)
			return gf_error_set(
				err, -ENOTSUP,
				"stage %zu: %s wants transport mpi, got %s", i,
				name, c->ops->name);
		if (gf_stage_has(name, GF_STAGE_CALL) && args->lossy)
			return gf_error_set(
				err, -ENOTSUP,
				"stage %zu: %s moves f32 as they are, without "
				"a codec",
				i, name);
		stride *= args->factors[i];
	}
	return 0;
}
