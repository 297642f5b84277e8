/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef GF_COMM_PROCESSORS_H
#define GF_COMM_PROCESSORS_H

#include "base/error.h"
#include "comm/comm.h"

/* An identity of the running kernel; empty: not known. Containers and emulated
 * hosts have names of their own and share a kernel, whose processors they
 * are. */
#define GF_KERNEL_BYTES 40
void gf_comm_kernel(char kernel[GF_KERNEL_BYTES]);

/*
 * This rank's share of the processors that it may run on: a processor that n
 * ranks of the machine may run on counts 1/n. Hosts with one kernel
 * (containers, namespaces) are one machine. Where control groups have fewer
 * (base/allowance.h), it is the share of theirs. Collective.
 */
int gf_comm_processor_share(struct gf_comm *c, double *share,
			    struct gf_error *err);

/*
 * How many threads a rank should compute with: its share of the processors it
 * may run on, where a processor that several ranks may run on is
 * shared by them; at least 1. From four up and with several ranks, one is left
 * to the communication thread. It does not matter whether the launcher bound
 * the ranks. Collective; ranks may get different numbers.
 */
int gf_comm_compute_threads(struct gf_comm *c, int *threads,
			    struct gf_error *err);

#endif
