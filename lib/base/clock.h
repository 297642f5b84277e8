/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef GF_BASE_CLOCK_H
#define GF_BASE_CLOCK_H

#include <time.h>

/* Seconds on the monotonic clock; only differences mean anything. */
double gf_clock_s(void);

/* On the same clock, so many seconds (>= 0) from now: for pthread_cond_timedwait. */
struct timespec gf_clock_after(double seconds);

/* Sleeps at least that long (0 and less: returns at once), through signals. */
void gf_clock_sleep(double seconds);

/* Sleeps, then spins the last stretch, to end within microseconds of `at_s` on gf_clock_s: the
 * kernel's own sleep overshoots by 50 us and more. */
void gf_clock_sleep_until(double at_s);

#endif
