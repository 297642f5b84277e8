/* SPDX-License-Identifier: BSD-3-Clause */
#include "transport/backoff.h"

#include <sched.h>
#include <stdint.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/clock.h"

#define SPINS       64
#define YIELDS      64
#define SLEEP_MIN_S 5e-6
#define SLEEP_CAP_S 1e-4
/* Beside compute on the same processors: a round of spinning takes 50 ns in shared memory and 2 us
 * on sockets, and a sleep costs two switches. */
#define CROWDED_SPIN_S  5e-6
#define CROWDED_SLEEP_S 5e-5
/* The shortest slice that Linux grants. */
#define SLICE_NS 100000
/* A shorter free time is not worth a sleep that may end 50 us late. Longer sleeps would keep ranks
 * waiting that ask whether this rank is alive. */
#define FREE_MIN_S 2e-4
#define FREE_CAP_S 1e-3
/* This many sleeps of one length before it doubles. */
#define REPEATS 4
/* In the average of how late sleeps end, each sleep counts for an eighth. Each time lateness alone
 * keeps a sleep from being worth it, the average falls by a 1024th. */
#define WEIGHT 8
#define FORGET 1024

/* Does it still spin, with compute on the same processors? */
static bool spins_in_crowd(struct gf_backoff *b)
{
	if (!b->asked++)
		b->since_s = gf_clock_s();
	else if (gf_clock_s() - b->since_s >= CROWDED_SPIN_S)
		b->asked = SPINS + YIELDS;
	return b->asked < SPINS + YIELDS;
}

double gf_backoff_next(struct gf_backoff *b)
{
	bool squeezed = b->beside_compute && b->crowded;
	unsigned n, doublings;
	double sleep_s;

	if (squeezed && b->asked < SPINS + YIELDS && spins_in_crowd(b))
		return 0;
	if (!b->asked && b->crowded)
		b->asked = SPINS;
	if (b->asked == SPINS && b->beside_compute)
		b->asked += YIELDS;
	n = b->asked;
	if (n < SPINS + YIELDS) {
		b->asked++;
		if (n == SPINS + YIELDS - 1 && !b->beside_compute)
			gf_backoff_precise_sleeps();
		if (n >= SPINS)
			sched_yield();
		return 0;
	}
	doublings = (n - SPINS - YIELDS) / REPEATS;
	sleep_s = (squeezed ? CROWDED_SLEEP_S : SLEEP_MIN_S) *
		  (1u << (doublings < 16 ? doublings : 16));
	if (sleep_s >= SLEEP_CAP_S)
		return SLEEP_CAP_S;
	b->asked++;
	return sleep_s;
}

static bool is_worth(const struct gf_backoff *b, double free_s)
{
	return free_s - b->late_s >= FREE_MIN_S;
}

bool gf_backoff_worth(struct gf_backoff *b, double free_s)
{
	if (free_s < FREE_MIN_S)
		return false;
	if (is_worth(b, free_s))
		return true;
	b->late_s -= b->late_s / FORGET;
	return false;
}

double gf_backoff_next_free(struct gf_backoff *b, double free_s)
{
	if (!is_worth(b, free_s))
		return gf_backoff_next(b);
	if (!b->precise && !b->beside_compute)
		gf_backoff_precise_sleeps();
	b->precise = true;
	free_s -= b->late_s;
	return free_s / 2 < FREE_CAP_S ? free_s / 2 : FREE_CAP_S;
}

void gf_backoff_slept(struct gf_backoff *b, double wanted_s, double took_s)
{
	double late_s = took_s > wanted_s ? took_s - wanted_s : 0;

	b->late_s += (late_s - b->late_s) / WEIGHT;
}

void gf_backoff_rest(struct gf_backoff *b, double free_s)
{
	double wanted_s = gf_backoff_next_free(b, free_s), from_s;

	if (!is_worth(b, free_s)) {
		gf_clock_sleep(wanted_s);
		return;
	}
	from_s = gf_clock_s();
	gf_clock_sleep(wanted_s);
	gf_backoff_slept(b, wanted_s, gf_clock_s() - from_s);
}

void gf_backoff_wait(struct gf_backoff *b)
{
	gf_clock_sleep(gf_backoff_next(b));
}

/* Linux's struct sched_attr, of which glibc has none. */
struct attributes {
	uint32_t size, policy;
	uint64_t flags;
	int32_t nice;
	uint32_t priority;
	uint64_t runtime_ns, deadline_ns, period_ns;
};

void gf_backoff_short_slices(void)
{
	struct attributes a = {0};

	/* A refusal, or an older kernel that ignores it, costs promptness. */
	if (syscall(SYS_sched_getattr, 0, &a, sizeof(a), 0) || a.policy != SCHED_OTHER)
		return;
	a.size = sizeof(a);
	a.runtime_ns = SLICE_NS;
	(void)syscall(SYS_sched_setattr, 0, &a, 0);
}

void gf_backoff_precise_sleeps(void)
{
	/* A refusal costs precision, nothing else. */
	(void)prctl(PR_SET_TIMERSLACK, 1000ul, 0ul, 0ul, 0ul);
}
