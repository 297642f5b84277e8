/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Contestants take turns, repeat by repeat, so that all meet the same machine. Before each run
 * every rank writes its message, as backward would, and turns are drawn anew for each repeat: a
 * contestant that always ran after one that left the messages in the right caches would seem twice
 * as fast as it is. A time is the slowest rank's.
 */
#include <math.h>
#include <mpi.h>
#include <stdio.h>
#include <sys/resource.h>

#include "arena.h"
#include "base/clock.h"
#include "base/rng.h"

enum { FEWEST = 3, HEATS_FEWEST = 2, HEATS_MOST = 10 };
/* In so long the heats of a short message are run. */
static const double short_s = 1e-3;
/* So much slower than the default on its first runs: out of the race. */
static const double hopeless = 3;

static double processor_s(void)
{
	struct rusage u;

	getrusage(RUSAGE_SELF, &u);
	return (double)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) +
	       (double)(u.ru_utime.tv_usec + u.ru_stime.tv_usec) * 1e-6;
}

static void prepare(const struct arena *a, float *data)
{
	size_t i;

	for (i = 0; i < a->count; i++)
		data[i] = input_of(a);
}

static double once(struct arena *a, struct contestant *c)
{
	double begin_s, used_s, mine, all;

	prepare(a, c->data);
	MPI_Barrier(MPI_COMM_WORLD);
	used_s = processor_s();
	begin_s = gf_clock_s();
	c->side->run(a, c);
	mine = gf_clock_s() - begin_s;
	c->processor_s += processor_s() - used_s;
	MPI_Allreduce(&mine, &all, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
	return all;
}

/* A contestant with wrong sums does not take part. */
static void check(struct arena *a, struct contestant *c)
{
	float sum = (float)(a->comm->ranks * (a->comm->ranks + 1) / 2);
	size_t wrong = 0, i;

	for (i = 0; i < a->count; i++)
		wrong += c->data[i] != sum;
	must(wrong != 0, c->name);
}

/* All others stay in: they say what the table is about. */
static bool may_leave(const struct contestant *c)
{
	return c->standing == PEER || (c->standing == OURS && !c->leads);
}

/* The best of some runs: of short messages two say little. */
static double heat_of(struct arena *a, struct contestant *c)
{
	double best_s = INFINITY, spent_s = 0, time_s;
	int k;

	for (k = 0; k < HEATS_FEWEST || (k < HEATS_MOST && spent_s < short_s); k++) {
		time_s = once(a, c);
		spent_s += time_s;
		best_s = fmin(best_s, time_s);
	}
	return best_s;
}

/* Those that have a chance; how long a round of them takes. */
static double heats(struct arena *a)
{
	double round_s = 0;
	int i;

	for (i = 0; i < a->n; i++) {
		struct contestant *c = &a->list[i];

		if (c->side->start)
			c->side->start(a, c);
		once(a, c);
		check(a, c);
	}
	for (i = 0; i < a->n; i++) {
		struct contestant *c = &a->list[i];

		c->heat_s = heat_of(a, c);
		c->out = may_leave(c) && c->heat_s > hopeless * a->list[0].heat_s;
		c->processor_s = 0;
		c->n = 0;
		if (!c->out)
			round_s += c->heat_s;
	}
	return round_s;
}

void race(struct arena *a)
{
	size_t turns[CONTESTANTS_MOST];
	struct gf_rng rng;
	double round_s = heats(a), total;
	int repeats = (int)fmin(REPEATS_MOST, fmax(FEWEST, a->o.seconds / round_s));
	int i, k;

	gf_rng_init(&rng, a->count, 0); /* alike on all ranks */
	for (i = 0; i < a->n; i++)
		turns[i] = (size_t)i;
	for (k = 0; k < repeats; k++) {
		gf_rng_shuffle(&rng, turns, (size_t)a->n);
		for (i = 0; i < a->n; i++) {
			struct contestant *c = &a->list[turns[i]];

			if (!c->out)
				c->times[c->n++] = once(a, c);
		}
	}
	for (i = 0; i < a->n; i++) {
		struct contestant *c = &a->list[i];

		MPI_Allreduce(&c->processor_s, &total, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
		c->processor_s = c->n ? total / a->comm->ranks / c->n : 0;
		if (c->side->end)
			c->side->end(a, c);
	}
}
