/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef GF_COMM_MEET_H
#define GF_COMM_MEET_H

#include "comm/comm.h"

/*
 * What all ranks do together, made of messages: entries of gf_comm_ops for a
 * transport that has nothing better. Each takes about log2(ranks) rounds, waits
 * as gf_comm_wait does, and cancels what is pending after a failure.
 */
int gf_meet_barrier(struct gf_comm *c, struct gf_error *err);
int gf_meet_bcast(struct gf_comm *c, int root, void *data, size_t size_bytes,
		  struct gf_error *err);
int gf_meet_allgather(struct gf_comm *c, void *all, size_t size_bytes,
		      struct gf_error *err);

/* Fills in c's host, local_rank and local_ranks: processes that share a kernel,
 * a host name and process numbers are on one host. Collective. */
int gf_meet_hosts(struct gf_comm *c, struct gf_error *err);

#endif
