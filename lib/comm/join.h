/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef GF_COMM_JOIN_H
#define GF_COMM_JOIN_H

#include <stddef.h>

#include "base/error.h"

/*
 * How ranks that know nothing of each other exchange what connects them: an
 * allgather of small blobs. The caller brings it: from a launcher, a store or
 * another library.
 */
struct gf_join {
	int rank, ranks;
	/* Shows size_bytes of every rank to all: recv holds ranks * size_bytes,
	 * in rank order. Every rank calls it with the same sizes in the same
	 * order. Blocking; it ends by itself if a rank does not come. */
	int (*allgather)(void *ctx, const void *send, size_t size_bytes,
			 void *recv, struct gf_error *err);
	void *ctx;
};

#endif
