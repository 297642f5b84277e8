/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef GF_TRANSPORT_COMM_SPLIT_H
#define GF_TRANSPORT_COMM_SPLIT_H

#include "base/error.h"
#include "transport/comm.h"

/*
 * Two communicators out of one, so that two threads can exchange at a time: the same ranks, and the
 * group that this rank is in. Group g has the ranks g * group_ranks to (g + 1) * group_ranks - 1,
 * in their order. Messages of the two never meet. Each is used by one thread at a time, as every
 * communicator is, and takes a lock for the length of a call. A call that waits for other ranks
 * holds the lock if it is c's own: `team` alone is. While a view waits that has no on_wait of its
 * own, c's is called.
 *
 * Collective over c, whose number of ranks is a multiple of group_ranks. While one of the two is
 * open nothing else uses c. Closing both leaves c open; c is broken then if one of them was.
 */
int gf_comm_split(struct gf_comm *c, int group_ranks, struct gf_comm **whole,
		  struct gf_comm **group, struct gf_error *err);

#endif
