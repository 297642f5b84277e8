/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef GF_TRANSPORT_JOIN_H
#define GF_TRANSPORT_JOIN_H

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

/*
 * How ranks that know nothing of each other exchange what connects them: an allgather of small
 * blobs. The caller brings it: from a launcher, a store or another library; or gf_join_open makes
 * one at a place that all ranks know.
 */
struct gf_join {
	int rank, ranks;
	/* Shows size_bytes of every rank to all: recv holds ranks * size_bytes, in rank order.
	 * Every rank calls it with the same sizes in the same order. Blocking; it ends by itself if
	 * a rank does not come. */
	int (*allgather)(void *ctx, const void *send, size_t size_bytes, void *recv,
			 struct gf_error *err);
	void *ctx;
	/* What ranks that have met know, and strangers do not; zeros: nothing
	 */
	uint64_t key[2];
};

/*
 * Meets the other ranks, each of which has set rank and ranks, at a place:
 *
 *   FOLDER     that all ranks see, in which rank 0 leaves where it listens; it
 *              is made if it is not there. Text with a slash in it, or without
 *              a port.
 *   HOST:PORT  of rank 0, which listens there; [ADDRESS]:PORT.
 *
 * A time-out bounds this and each allgather. -ETIMEDOUT names the ranks that are missing; -EINVAL:
 * ranks disagree on their number, or two are the same.
 */
int gf_join_open(const char *place, double timeout_s, struct gf_join *join, struct gf_error *err);
void gf_join_close(struct gf_join *join);

#endif
