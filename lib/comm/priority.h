/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef GF_COMM_PRIORITY_H
#define GF_COMM_PRIORITY_H

#include <pthread.h>
#include <stdbool.h>

#include "comm/comm.h"

/*
 * Threads that compute give way to communication threads on the same
 * processors. A communication thread sleeps often and is wanted at once when it
 * wakes. Linux lets a thread that wakes interrupt another only if its use of
 * the processor is below its share at that moment. Else the thread waits for
 * the next tick, up to 4 ms later, while its message stands still on all ranks.
 * A communication thread is often above its share if priorities are equal.
 *
 * A lower priority of compute needs no privilege, but cannot be taken back, and
 * threads inherit it. So another thread, which keeps the priority, starts all
 * communication threads.
 */

/* Would the communication thread of a rank with so many compute threads have no
 * processor of its own? false where that is unknown. */
bool gf_priority_crowded(const struct gf_comm *comm, int compute_threads);

/* The calling thread and all that it starts from now on compute. Does nothing
 * if that cannot be arranged. */
void gf_priority_give_way(void);

/* As pthread_create without attributes, for a communication thread: it has the
 * priority from before the process's first gf_priority_give_way. */
int gf_priority_start(pthread_t *id, void *(*main)(void *ctx), void *ctx);

#endif
