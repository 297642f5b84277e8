/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef GF_COMM_SHM_H
#define GF_COMM_SHM_H

#include "base/error.h"
#include "comm/comm.h"

/*
 * Ranks of one host meet in shared memory; everything else goes through the
 * transport below. The host's other ranks can read memory from buffer_alloc
 * directly. So a receive that reduces is one pass over the sender's memory and
 * the receiver's, with no copy between: the sum of two ranks reads two halves
 * and writes two halves.
 *
 * Collective. Takes `below`: closing *comm closes it. Where no two ranks share
 * a host, or some host does not let its processes share memory, *comm is
 * `below` itself on every rank.
 */
int gf_comm_shm_over(struct gf_comm *below, struct gf_comm **comm,
		     struct gf_error *err);

#endif
