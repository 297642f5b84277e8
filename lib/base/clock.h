/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef GF_BASE_CLOCK_H
#define GF_BASE_CLOCK_H

/* Seconds on the monotonic clock; only differences mean anything. */
double gf_clock_s(void);

/* Sleeps at least that long (0 and less: returns at once), through signals. */
void gf_clock_sleep(double seconds);

/* Sleeps, then spins the last stretch, to end within microseconds of `at_s` on gf_clock_s: the
 * kernel's own sleep overshoots by 50 us and more. */
void gf_clock_sleep_until(double at_s);

#endif
