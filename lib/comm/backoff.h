/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef GF_COMM_BACKOFF_H
#define GF_COMM_BACKOFF_H

#include <stdbool.h>

/*
 * Waiting by asking again: a little spinning, because most answers come soon;
 * then yielding; then short sleeps that grow to a cap, so that a waiting
 * thread leaves the processor to those who compute.
 *
 *	struct gf_backoff b = {0};
 *	while (!done())
 *		gf_backoff_wait(&b);
 *
 * A thread beside others that compute on the same processors does not yield:
 * Linux would let them have a whole time slice before it comes back, while one
 * that wakes from a sleep is let in at once. Where ranks are more than
 * processors, it does not spin: it yields to the rank that it waits for.
 *
 * Who knows for how long nobody needs to ask (exec/pace.h) sleeps at once.
 * Where others want the processors, sleeps end late: how late is learned, and
 * of what is left of the free time half is slept.
 */
struct gf_backoff {
	unsigned asked; /* since something moved */
	bool precise;   /* gf_backoff_precise_sleeps was called */
	double late_s;  /* that sleeps ended late, on average */
	/* set by the caller */
	bool beside_compute;
	bool crowded; /* who is waited for may want this processor */
};

/* Something moved. */
static inline void gf_backoff_reset(struct gf_backoff *b)
{
	b->asked = 0;
}

/* Spins, yields, or returns the seconds (> 0) the caller is to sleep: for
 * callers who sleep on a condition variable. */
double gf_backoff_next(struct gf_backoff *b);
/* The same, sleeping itself. */
void gf_backoff_wait(struct gf_backoff *b);
/* Is so long worth sleeping, although something has just moved? Asked once a
 * round: where it would have been but for late sleeps, a little of how late
 * they were is forgotten. */
bool gf_backoff_worth(struct gf_backoff *b, double free_s);
/* The two for a caller who knows that nothing is lost if nobody asks for
 * free_s seconds: that less what sleeps end late, and half of it, is slept, at
 * most 1 ms, if it is worth it. */
double gf_backoff_next_free(struct gf_backoff *b, double free_s);
void gf_backoff_rest(struct gf_backoff *b, double free_s);
/* Who sleeps himself tells how long what gf_backoff_next_free said was. */
void gf_backoff_slept(struct gf_backoff *b, double wanted_s, double took_s);
/* Lets this thread's sleeps end close to when they should: the kernel's usual
 * tolerance of 50 us is as long as the sleeps are. */
void gf_backoff_precise_sleeps(void);

#endif
