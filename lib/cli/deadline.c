/* SPDX-License-Identifier: BSD-3-Clause */
#include "cli/deadline.h"

#include <errno.h>
#include <math.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "base/heap.h"

/* A thread, for a signal could interrupt what it watches. */
struct gf_deadline {
	const struct gf_cli *cli;
	double limit_s;
	pthread_t thread;
	pthread_mutex_t lock;
	pthread_cond_t off_now;
	bool off;
};

static struct timespec after(double seconds)
{
	struct timespec t;
	double whole;

	clock_gettime(CLOCK_MONOTONIC, &t);
	t.tv_nsec += (long)(1e9 * modf(seconds, &whole));
	t.tv_sec += (time_t)whole + t.tv_nsec / 1000000000;
	t.tv_nsec %= 1000000000;
	return t;
}

static void *watch(void *arg)
{
	struct gf_deadline *d = arg;
	struct timespec end = after(d->limit_s);
	int rc = 0;

	pthread_mutex_lock(&d->lock);
	while (!d->off && rc != ETIMEDOUT)
		rc = pthread_cond_timedwait(&d->off_now, &d->lock, &end);
	if (!d->off) {
		gf_cli_warn(d->cli,
			    "MPI has not started for %g s: a rank is late, or "
			    "ended without it",
			    d->limit_s);
		_exit(gf_cli_status(-ETIMEDOUT));
	}
	pthread_mutex_unlock(&d->lock);
	return NULL;
}

double gf_cli_open_limit_s(double timeout_s)
{
	return timeout_s > 0 ? timeout_s : 1e8;
}

struct gf_deadline *gf_cli_start_deadline(const struct gf_cli *cli,
					  const char *join, double timeout_s)
{
	struct gf_deadline *d;
	pthread_condattr_t monotonic;

	if (!cli->launched || join || timeout_s <= 0)
		return NULL;
	d = gf_xcalloc(1, sizeof(*d));
	d->cli = cli;
	d->limit_s = fmax(timeout_s, GF_DEADLINE_LEAST_S);
	pthread_mutex_init(&d->lock, NULL);
	pthread_condattr_init(&monotonic);
	pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
	pthread_cond_init(&d->off_now, &monotonic);
	pthread_condattr_destroy(&monotonic);
	if (pthread_create(&d->thread, NULL, watch, d) == 0)
		return d;
	/* without it the wait has no end, as before */
	d->off = true;
	gf_cli_end_deadline(d);
	return NULL;
}

void gf_cli_end_deadline(struct gf_deadline *d)
{
	if (!d)
		return;
	if (!d->off) {
		pthread_mutex_lock(&d->lock);
		d->off = true;
		pthread_cond_signal(&d->off_now);
		pthread_mutex_unlock(&d->lock);
		pthread_join(d->thread, NULL);
	}
	pthread_cond_destroy(&d->off_now);
	pthread_mutex_destroy(&d->lock);
	free(d);
}
