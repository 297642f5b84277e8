/* SPDX-License-Identifier: BSD-3-Clause */
#include "transport/processors.h"

#include <math.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>

#include "base/allowance.h"
#include "base/heap.h"

static const char kernel_file[] = "/proc/sys/kernel/random/boot_id";

/* As many as Linux serves; a cpu_set_t has 1024. */
enum { PROCESSORS = 8192, SETS = PROCESSORS / CPU_SETSIZE };

struct place {
	int host;
	char kernel[GF_KERNEL_BYTES];
	cpu_set_t processors[SETS];
	struct gf_allowance limits[GF_ALLOWANCES];
	size_t nlimits;
};

void gf_comm_kernel(char kernel[GF_KERNEL_BYTES])
{
	FILE *f = gf_heap_need(fopen(kernel_file, "r"));

	kernel[0] = '\0';
	if (f && !fgets(kernel, GF_KERNEL_BYTES, f))
		kernel[0] = '\0';
	if (f)
		fclose(f);
}

static bool same_processors(const struct place *a, const struct place *b)
{
	return a->host == b->host || (a->kernel[0] && strcmp(a->kernel, b->kernel) == 0);
}

/* Of the processors that a control group has, by the ranks in it. */
static double limited(const struct place *all, int ranks, int rank, double share)
{
	const struct place *mine = &all[rank];
	size_t i, k;

	for (i = 0; i < mine->nlimits; i++) {
		int sharers = 0;

		for (int r = 0; r < ranks; r++)
			for (k = 0; same_processors(&all[r], mine) && k < all[r].nlimits; k++)
				sharers += all[r].limits[k].group == mine->limits[i].group;
		share = fmin(share, mine->limits[i].processors / sharers);
	}
	return share;
}

static double share_of(const struct place *all, int ranks, int rank)
{
	const struct place *mine = &all[rank];
	double share = 0;

	for (int cpu = 0; cpu < PROCESSORS; cpu++) {
		int sharers = 0;

		if (!CPU_ISSET_S(cpu, sizeof(mine->processors), mine->processors))
			continue;
		for (int r = 0; r < ranks; r++)
			sharers += same_processors(&all[r], mine) &&
				   CPU_ISSET_S(cpu, sizeof(all[r].processors), all[r].processors);
		share += 1.0 / sharers;
	}
	return limited(all, ranks, rank, share);
}

int gf_comm_processor_share(struct gf_comm *c, double *share, struct gf_error *err)
{
	struct place mine, *all = gf_xcalloc((size_t)c->ranks, sizeof(*all));
	int rc, r;

	memset(&mine, 0, sizeof(mine));
	mine.host = c->host;
	gf_comm_kernel(mine.kernel);
	/* if it fails, none is set, and the answer is the safe one */
	(void)sched_getaffinity(0, sizeof(mine.processors), mine.processors);
	mine.nlimits = gf_allowance_processors("", mine.limits);
	rc = gf_comm_allgather(c, &mine, sizeof(mine), all, err);
	if (rc == 0)
		*share = share_of(all, c->ranks, c->rank);
	for (r = c->ranks - 1; rc == 0 && r >= 0; r--)
		if (same_processors(&all[r], &all[c->rank]))
			c->machine = r;
	free(all);
	return rc;
}

int gf_comm_compute_threads(struct gf_comm *c, int *threads, struct gf_error *err)
{
	double share = 0;
	int rc = gf_comm_processor_share(c, &share, err);

	if (rc < 0)
		return rc;
	/* thirds of a processor may sum to a little less than one */
	*threads = (int)(share + 1e-6);
	if (*threads >= 4 && c->ranks > 1)
		--*threads;
	if (*threads < 1)
		*threads = 1;
	return 0;
}

/* Compute weighs a ninth of a communication thread: after 100 us of work, that thread has made up
 * for them in a sleep of 11 us. */
enum { LOWER_BY = 10 };

struct start {
	void *(*main)(void *ctx);
	void *ctx;
	pthread_t id;
	int status;
	bool done;
};

/* The thread that starts threads. */
static struct {
	pthread_mutex_t lock;
	pthread_cond_t change;
	bool alive;
	struct start *wanted; /* or NULL */
} starter = {.lock = PTHREAD_MUTEX_INITIALIZER, .change = PTHREAD_COND_INITIALIZER};

bool gf_priority_crowded(const struct gf_comm *c, int compute_threads)
{
	return c->crowded || (c->processors > 0 && c->processors < compute_threads + 1 - 1e-6);
}

static void *start_threads(void *unused)
{
	struct start *s;

	(void)unused;
	pthread_mutex_lock(&starter.lock);
	for (;;) {
		while (!starter.wanted)
			pthread_cond_wait(&starter.change, &starter.lock);
		s = starter.wanted;
		s->status = pthread_create(&s->id, NULL, s->main, s->ctx);
		s->done = true;
		starter.wanted = NULL;
		pthread_cond_broadcast(&starter.change);
	}
	return NULL;
}

/* Under lock. It lasts as long as the process. */
static bool have_starter(void)
{
	sigset_t all, before;
	pthread_t id;

	if (starter.alive)
		return true;
	/* signals are for the threads that know what to do with them */
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	starter.alive = !pthread_create(&id, NULL, start_threads, NULL);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (starter.alive)
		pthread_detach(id);
	return starter.alive;
}

void gf_priority_give_way(void)
{
	pthread_mutex_lock(&starter.lock);
	/* a refusal costs promptness, nothing else */
	if (have_starter())
		(void)setpriority(PRIO_PROCESS, 0, getpriority(PRIO_PROCESS, 0) + LOWER_BY);
	pthread_mutex_unlock(&starter.lock);
}

/* Under lock. */
static void ask(struct start *s)
{
	while (starter.wanted)
		pthread_cond_wait(&starter.change, &starter.lock);
	starter.wanted = s;
	pthread_cond_broadcast(&starter.change);
	while (!s->done)
		pthread_cond_wait(&starter.change, &starter.lock);
}

int gf_priority_start(pthread_t *id, void *(*main)(void *ctx), void *ctx)
{
	struct start s = {.main = main, .ctx = ctx};

	pthread_mutex_lock(&starter.lock);
	if (starter.alive)
		ask(&s);
	else
		s.status = pthread_create(&s.id, NULL, main, ctx);
	pthread_mutex_unlock(&starter.lock);
	*id = s.id;
	return s.status;
}
