/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef GF_TRANSPORT_PROCESSORS_H
#define GF_TRANSPORT_PROCESSORS_H

#include <pthread.h>
#include <stdbool.h>

#include "base/error.h"
#include "transport/comm.h"

/* An identity of the running kernel; empty: not known. Containers and emulated hosts have names of
 * their own and share a kernel, whose processors they are. */
#define GF_KERNEL_BYTES 40
void gf_comm_kernel(char kernel[GF_KERNEL_BYTES]);

/*
 * This rank's share of the processors that it may run on: a processor that n ranks of the machine
 * may run on counts 1/n. Hosts with one kernel (containers, namespaces) are one machine. Where
 * control groups have fewer (base/allowance.h), it is the share of theirs. Collective.
 */
int gf_comm_processor_share(struct gf_comm *c, double *share, struct gf_error *err);

/*
 * How many threads a rank should compute with: its share of the processors it may run on, where a
 * processor that several ranks may run on is shared by them; at least 1. From four up and with
 * several ranks, one is left to the communication thread. It does not matter whether the launcher
 * bound the ranks. Collective; ranks may get different numbers.
 */
int gf_comm_compute_threads(struct gf_comm *c, int *threads, struct gf_error *err);

/*
 * Threads that compute give way to communication threads on the same processors. A communication
 * thread sleeps often and is wanted at once when it wakes. Linux lets a thread that wakes interrupt
 * another only if its use of the processor is below its share at that moment. Else the thread waits
 * for the next tick, up to 4 ms later, while its message stands still on all ranks. A communication
 * thread is often above its share if priorities are equal.
 *
 * A lower priority of compute needs no privilege, but cannot be taken back, and threads inherit it.
 * So another thread, which keeps the priority, starts all communication threads.
 */

/* Would the communication thread of a rank with so many compute threads have no processor of its
 * own? false where that is unknown. */
bool gf_priority_crowded(const struct gf_comm *comm, int compute_threads);

/* The calling thread and all that it starts from now on compute. Does nothing if that cannot be
 * arranged. */
void gf_priority_give_way(void);

/* As pthread_create without attributes, for a communication thread: it has the priority from before
 * the process's first gf_priority_give_way. */
int gf_priority_start(pthread_t *id, void *(*main)(void *ctx), void *ctx);

#endif
