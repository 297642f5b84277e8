/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/clock.h"

#include <errno.h>

/* The rest that is spun: above the usual wake-up latency of a timer. */
#define SPIN_S 1.5e-4

double gf_clock_s(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

struct timespec gf_clock_after(double seconds)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	t.tv_nsec += (long)((seconds - (double)(time_t)seconds) * 1e9);
	t.tv_sec += (time_t)seconds + t.tv_nsec / 1000000000;
	t.tv_nsec %= 1000000000;
	return t;
}

void gf_clock_sleep(double seconds)
{
	struct timespec left;

	if (!(seconds > 0))
		return;
	left.tv_sec = (time_t)seconds;
	left.tv_nsec = (long)((seconds - (double)left.tv_sec) * 1e9);
	while (nanosleep(&left, &left) && errno == EINTR)
		;
}

void gf_clock_sleep_until(double at_s)
{
	gf_clock_sleep(at_s - gf_clock_s() - SPIN_S);
	while (gf_clock_s() < at_s)
		;
}
