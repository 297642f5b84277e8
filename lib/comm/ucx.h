/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef GF_COMM_UCX_H
#define GF_COMM_UCX_H

#include "comm/comm.h"
#include "comm/join.h"

/*
 * The ranks that the allgather connects, over UCX: sockets, InfiniBand, RoCE,
 * as UCX finds them. Shared memory between processes is left to the layer above
 * (comm/shm.h) unless UCX_TLS says otherwise. Any number of communicators in a
 * process. A rank that dies breaks its connections: what waits for it fails
 * with -ECONNRESET, and the communicator closes all the same. Collective.
 */
int gf_comm_ucx_join(const struct gf_join *join, struct gf_comm **comm,
		     struct gf_error *err);

#endif
