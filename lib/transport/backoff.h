/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef GF_TRANSPORT_BACKOFF_H
#define GF_TRANSPORT_BACKOFF_H

#include <stdbool.h>

/*
 * Waits by asking again. At first the thread spins a little, because most
 * answers come soon. Then it yields. Then it sleeps for short times that grow
 * to a cap, which leaves the processor to threads that compute.
 *
 *	struct gf_backoff b = {0};
 *	while (!done())
 *		gf_backoff_wait(&b);
 *
 * A thread beside others that compute on the same processors does not yield:
 * Linux would give the others a whole time slice first, while a thread that
 * wakes from a sleep runs at once. If there are more ranks than processors, the
 * waiting thread does not spin: it yields to the rank that it waits for. A
 * thread that is both, beside compute and crowded, spins for 5 us and sleeps
 * longer: each round and each switch delays compute.
 *
 * A caller that knows a time in which nobody needs to ask (runtime/exec/pace.h)
 * sleeps at once. Sleeps end late if other threads want the processors. The
 * average lateness is measured and subtracted from the free time, and half of
 * the rest is slept.
 */
struct gf_backoff {
	unsigned asked; /* since something moved */
	double since_s; /* the first of these */
	bool precise;   /* gf_backoff_precise_sleeps was called */
	double late_s;  /* that sleeps ended late, on average */
	/* set by the caller */
	bool beside_compute;
	bool crowded; /* other threads of the job may want this processor */
};

/* Something moved. */
static inline void gf_backoff_reset(struct gf_backoff *b)
{
	b->asked = 0;
}

/* Spins, yields, or returns the seconds (> 0) that the caller is to sleep. For callers that sleep
 * on a condition variable. */
double gf_backoff_next(struct gf_backoff *b);
/* Spins, yields or sleeps. */
void gf_backoff_wait(struct gf_backoff *b);
/* Is a sleep within free_s worth it, although something has just moved? Asked once a round. If
 * lateness alone makes the answer no, the measured lateness is reduced a little. */
bool gf_backoff_worth(struct gf_backoff *b, double free_s);
/* gf_backoff_next and gf_backoff_wait for a caller that loses nothing if it does not look for
 * free_s seconds. If a sleep is worth it, its length is half of free_s less the average lateness,
 * at most 1 ms. */
double gf_backoff_next_free(struct gf_backoff *b, double free_s);
void gf_backoff_rest(struct gf_backoff *b, double free_s);
/* A caller that sleeps by itself for wanted_s, which gf_backoff_next_free returned, reports how
 * long the sleep took. */
void gf_backoff_slept(struct gf_backoff *b, double wanted_s, double took_s);
/* Asks Linux for the shortest time slices: a thread that has slept then interrupts threads with
 * ordinary slices, and owes little time if it yields. Needs no privilege (sched_setattr, 6.12). */
void gf_backoff_short_slices(void);
/* Lets this thread's sleeps end close to when they should: the kernel's usual tolerance of 50 us is
 * as long as the sleeps are. */
void gf_backoff_precise_sleeps(void);

#endif
