/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef GF_COMM_BACKOFF_H
#define GF_COMM_BACKOFF_H

/*
 * Waiting by asking again: a little spinning, because most answers come soon;
 * then yielding; then short sleeps that grow to a cap, so that a waiting
 * thread leaves the processor to those who compute.
 *
 *	struct gf_backoff b = {0};
 *	while (!done())
 *		gf_backoff_wait(&b);
 */
struct gf_backoff {
	unsigned asked; /* since something moved */
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
/* Lets this thread's sleeps end close to when they should: the kernel's usual
 * tolerance of 50 us is as long as the sleeps are. */
void gf_backoff_precise_sleeps(void);

#endif
