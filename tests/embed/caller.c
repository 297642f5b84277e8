/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A program with an optimiser of its own on libgradflow's exchange. It includes nothing of gradflow
 * but gradflow.h.
 *
 *	caller [-j PLACE RANK RANKS] means PLAN		exact means
 *	caller [-j ...] save PLAN DIR	so many steps, a set in the middle
 *	caller [-j ...] load PLAN DIR	the rest of them; both print a sum
 *	caller [-j ...] carry PLAN DIR	loads, and prints what was carried
 *	caller [-j ...] two PLAN	two exchanges at once, and one after
 *	caller [-j ...] hangs PLAN	rank 1 stops in its second step
 *	caller [-j ...] dies PLAN	rank 1 ends in its second step; the
 *					others go on without it
 *	caller [-j ...] frees PLAN	rank 1 ends; closing frees what is large
 *	caller -j ... elastic PLAN DIR	a set; rank 1 kills itself; the others
 *					go on, and then with two ranks more,
 *					which are the two below
 *	caller -j PLACE-5 ... resume PLAN DIR-2 -1
 *	caller -j ... resume PLAN DIR FORMER	goes on from a set, having been
 *					the rank FORMER (-1: new)
 *	caller gather FOLDER RANK RANKS	joined by an allgather of its own
 *	caller [-j ...] post		what posts and copies cost
 *
 * PLAN may be "-": none.
 */
#define _GNU_SOURCE
#include <gradflow.h>

#include <locale.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define TENSORS 3
#define LARGE   ((size_t)8 << 20)

static const struct gradflow_tensor three[TENSORS] = {
	{"c", 1, {5}},
	{"b", 2, {3, 2}},
	{"a", 3, {20, 20, 2}},
};
static const size_t counts[TENSORS] = {5, 6, 800};

static struct gradflow_exchange_options options; /* main */
static float c[5], b[6], a[800];
static float *const data[TENSORS] = {c, b, a};

static int post(struct gradflow_exchange *x, size_t i)
{
	const struct gradflow_gradient g = {i, data[i], counts[i], GRADFLOW_F32};

	return gradflow_exchange_post(x, &g, 1);
}

static void need(int rc)
{
	if (rc >= 0)
		return;
	fprintf(stderr, "caller: %s\n", gradflow_error());
	exit(rc == -22 ? 2 : 1);
}

static void check(int holds, const char *what, double found)
{
	if (holds)
		return;
	fprintf(stderr, "caller: %s: got %.9g\n", what, found);
	exit(1);
}

static struct gradflow_exchange *begin(void)
{
	struct gradflow_exchange *x;

	need(gradflow_exchange_open(three, TENSORS, &options, &x));
	return x;
}

/* Element k of tensor i on rank r in step s. */
static float value(int r, size_t i, size_t k, size_t s)
{
	return (float)((r + 1) * 4) * (float)(i + k % 16 + s);
}

static void fill(int rank, size_t step)
{
	size_t i, k;

	for (i = 0; i < TENSORS; i++)
		for (k = 0; k < counts[i]; k++)
			data[i][k] = value(rank, i, k, step);
}

static int try_step(struct gradflow_exchange *x, size_t step)
{
	int rank = gradflow_exchange_rank(x), rc = 0;
	struct gradflow_gradient all[TENSORS];
	size_t n, i;

	fill(rank, step);
	for (n = 0; n < TENSORS && rc == 0; n++) {
		i = (n + (size_t)rank) % TENSORS;
		all[n] = (struct gradflow_gradient){i, data[i], counts[i], GRADFLOW_F32};
		if (step % 2)
			rc = post(x, i);
	}
	if (step % 2 == 0)
		rc = gradflow_exchange_post(x, all, TENSORS);
	return rc ? rc : gradflow_exchange_wait(x, GRADFLOW_ALL);
}

static void exact_step(struct gradflow_exchange *x, size_t step)
{
	/* the mean of 4(r + 1) over P ranks is 2(P + 1) */
	const float mean = (float)(2 * (gradflow_exchange_ranks(x) + 1));
	size_t i, k;

	need(try_step(x, step));
	for (i = 0; i < TENSORS; i++)
		for (k = 0; k < counts[i]; k++)
			check(data[i][k] == mean * (float)(i + k % 16 + step), "a mean",
			      data[i][k]);
}

static void means(void)
{
	struct gradflow_exchange *x = begin();
	size_t s;

	for (s = 1; s <= 4; s++)
		exact_step(x, s);
	check(gradflow_exchange_steps(x) == 4, "steps, want 4", (double)gradflow_exchange_steps(x));
	gradflow_exchange_close(x);
}

static double sum(void)
{
	double all = 0;
	size_t i, k;

	for (i = 0; i < TENSORS; i++)
		for (k = 0; k < counts[i]; k++)
			all += data[i][k] * (double)(i + k + 1);
	return all;
}

static void checkpoint(const char *folder, int load)
{
	struct gradflow_exchange *x = begin();
	double all = 0;
	size_t s;

	if (load)
		need(gradflow_exchange_load(x, folder));
	for (s = gradflow_exchange_steps(x) + 1; s <= 7; s++) {
		need(try_step(x, s));
		all = all * 0.5 + sum();
		if (s == 3)
			all = 0;
		if (s == 3 && !load)
			need(gradflow_exchange_save(x, folder));
	}
	if (gradflow_exchange_rank(x) == 0)
		printf("%a\n", all);
	gradflow_exchange_close(x);
}

static double held_back(struct gradflow_exchange *x)
{
	struct gradflow_array array;
	double squares = 0;
	size_t i, k;

	for (i = 0; gradflow_exchange_state(x, i, &array) == 0; i++)
		for (k = 0; !array.shared && k < array.size_bytes / 4; k++)
			squares += pow(((float *)array.data)[k], 2);
	return sqrt(squares);
}

static void carry(const char *folder)
{
	struct gradflow_exchange *x = begin();

	need(gradflow_exchange_load(x, folder));
	printf("rank %d of %d: step %d, carried %.6g, holds %.6g\n", gradflow_exchange_rank(x),
	       gradflow_exchange_ranks(x), (int)gradflow_exchange_steps(x),
	       gradflow_exchange_carried(x), held_back(x));
	need(try_step(x, gradflow_exchange_steps(x) + 1));
	gradflow_exchange_close(x);
}

static void two(void)
{
	struct gradflow_exchange *x, *y;
	char place[300];
	const char *place_of_x = options.place;

	x = begin();
	if (place_of_x) {
		snprintf(place, sizeof(place), "%s-2", place_of_x);
		options.place = place;
	}
	y = begin();
	fill(gradflow_exchange_rank(x), 1);
	need(post(x, 0));
	need(post(y, 2));
	need(gradflow_exchange_flush(y));
	need(gradflow_exchange_wait(y, GRADFLOW_ALL));
	check(a[3] == (float)(2 * (gradflow_exchange_ranks(x) + 1) * 6), "a mean", a[3]);
	need(gradflow_exchange_flush(x));
	need(gradflow_exchange_wait(x, GRADFLOW_ALL));
	exact_step(y, 2);
	gradflow_exchange_close(y);
	exact_step(x, 2);
	gradflow_exchange_close(x);
}

static void hangs(void)
{
	struct gradflow_exchange *x;
	int rc, missing = -1;

	options.timeout_s = 5;
	x = begin();
	exact_step(x, 1);
	if (gradflow_exchange_rank(x) == 1)
		raise(SIGSTOP);
	rc = try_step(x, 2);
	check(rc == -110, "status of a step without rank 1", rc);
	check(post(x, 0) == rc, "status of a later call", rc);
	fprintf(stderr, "caller: %s\n", gradflow_error());
	check(gradflow_exchange_missing(x, &missing, 1) == 1 && missing == 1,
	      "the rank that is missing", missing);
	need(post(x, 0));
}

/* The next place is named after the number of ranks. */
static void meet_again(void)
{
	static const char *first;
	static char place[300];

	first = first ? first : options.place;
	snprintf(place, sizeof(place), "%s-%d", first, options.ranks);
	options.place = place;
}

/* After a failure: the others become the ranks of the next exchange, which meet at a place of its
 * own. Closes x. */
static void leave_missing(struct gradflow_exchange *x)
{
	int missing[8], n = gradflow_exchange_missing(x, missing, 8), i;
	int rank = options.rank;

	need(n);
	check(n <= 8, "ranks that are missing", n);
	for (i = 0; i < n; i++) {
		fprintf(stderr, "caller: rank %d on %s is missing\n", missing[i],
			gradflow_exchange_host(x, missing[i]));
		options.rank -= missing[i] < rank;
	}
	options.ranks -= n;
	gradflow_exchange_close(x);
	meet_again();
}

/* The others open anew, without the ranks that are missing. */
static void dies(void)
{
	struct gradflow_exchange *x;
	int rc;

	options.timeout_s = 5;
	x = begin();
	exact_step(x, 1);
	check(gradflow_exchange_missing(x, NULL, 0) == 0, "ranks missing", 0);
	if (options.rank == 1)
		_exit(7);
	rc = try_step(x, 2);
	check(rc < 0, "status of a step without rank 1", rc);
	fprintf(stderr, "caller: %s\n", gradflow_error());
	leave_missing(x);
	means();
	puts("went on");
}

/* Of the process. */
static double mapped_bytes(void)
{
	FILE *f = fopen("/proc/self/statm", "r");
	double pages = 0;

	check(f && fscanf(f, "%lf", &pages) == 1, "statm", pages);
	fclose(f);
	return pages * (double)sysconf(_SC_PAGESIZE);
}

/* In the library's memory, too: 16 bits are not summed as such. */
static void frees(void)
{
	const struct gradflow_tensor large = {"large", 1, {LARGE}};
	const enum gradflow_dtype halves = GRADFLOW_F16;
	struct gradflow_exchange *x;
	double bytes;
	void *memory = calloc(LARGE, 2);
	const struct gradflow_gradient g = {0, memory, LARGE, halves};
	int rc;

	options.timeout_s = 5;
	options.dtypes = &halves;
	need(gradflow_exchange_open(&large, 1, &options, &x));
	need(gradflow_exchange_post(x, &g, 1));
	need(gradflow_exchange_wait(x, GRADFLOW_ALL));
	if (options.rank == 1)
		_exit(7);
	rc = gradflow_exchange_post(x, &g, 1);
	rc = rc ? rc : gradflow_exchange_wait(x, GRADFLOW_ALL);
	check(rc < 0, "status of a step without rank 1", rc);
	bytes = mapped_bytes();
	gradflow_exchange_close(x);
	bytes -= mapped_bytes();
	check(bytes >= 4.0 * LARGE, "bytes that closing gave back", bytes);
	free(memory);
}

/* An epoch is 60 steps of one rank. */
static void resume(const char *folder, const char *next)
{
	struct gradflow_exchange *x;
	double all = 0;
	size_t s, last;

	options.timeout_s = 10;
	options.epoch_steps = 60 / (size_t)options.ranks;
	x = begin();
	need(gradflow_exchange_load(x, folder));
	s = gradflow_exchange_steps(x);
	if (options.rank == 0)
		printf("%d ranks from step %d: carried %.6g, ", options.ranks, (int)s,
		       gradflow_exchange_carried(x));
	for (last = s + 9; s < last; s++) {
		need(try_step(x, s + 1));
		all = all * 0.5 + sum();
	}
	if (options.rank == 0)
		printf("%a\n", all);
	if (next)
		need(gradflow_exchange_save(x, next));
	gradflow_exchange_close(x);
}

static void elastic(const char *folder)
{
	struct gradflow_exchange *x;
	char next[300];
	size_t s;

	options.timeout_s = 10;
	options.epoch_steps = 60 / (size_t)options.ranks;
	x = begin();
	for (s = 1; s <= 3; s++)
		need(try_step(x, s));
	need(gradflow_exchange_save(x, folder));
	printf("rank %d holds %.6g\n", options.rank, held_back(x));
	fflush(stdout);
	need(try_step(x, s));
	if (options.rank == 1) {
		need(post(x, 0));
		raise(SIGKILL);
	}
	check(try_step(x, s) < 0, "status of a step without rank 1", 0);
	options.former = options.rank;
	leave_missing(x);
	snprintf(next, sizeof(next), "%s-2", folder);
	resume(folder, next);
	options.former = options.rank;
	options.ranks += 2;
	meet_again();
	resume(next, NULL);
}

/* --- an allgather of the program's own, in a folder ------------------------
 */

static int gather(void *ctx, const void *send, size_t size_bytes, void *recv)
{
	static int round;
	char name[300], temporary[310];
	FILE *f;
	int r, tries;

	snprintf(name, sizeof(name), "%s/%d.%d", (char *)ctx, round, options.rank);
	snprintf(temporary, sizeof(temporary), "%s.tmp", name);
	f = fopen(temporary, "w");
	if (!f || fwrite(send, 1, size_bytes, f) != size_bytes || fclose(f) ||
	    rename(temporary, name))
		return -5;
	for (r = 0; r < options.ranks; r++) {
		snprintf(name, sizeof(name), "%s/%d.%d", (char *)ctx, round, r);
		for (tries = 0; !(f = fopen(name, "r")); tries++) {
			if (tries == 3000)
				return -110;
			usleep(10000);
		}
		if (fread((char *)recv + (size_t)r * size_bytes, 1, size_bytes, f) != size_bytes)
			return -5;
		fclose(f);
	}
	round++;
	return 0;
}

/* --- what a post costs ------------------------------------------------------
 */

static double now_s(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static int by_size(const void *p, const void *q)
{
	return (*(const double *)p > *(const double *)q) -
	       (*(const double *)p < *(const double *)q);
}

enum { MANY = 100, STEPS = 200, COUNT = 8192, GAP = 16 };

/* Tensors that lie so far apart are posted so many at a time. A line: the median of microseconds
 * per tensor, what 90 % of them stay below, milliseconds per step, and bytes copied in a step. */
static void measure_posts(struct gradflow_exchange *x, size_t gap, size_t batch)
{
	static float memory[MANY * (COUNT + GAP)];
	static double took[STEPS * MANY], steps[STEPS];
	const uint64_t before = gradflow_exchange_copied_bytes(x);
	struct gradflow_gradient all[MANY];
	size_t i, k, s, n = 0;
	double began;

	for (i = 0; i < MANY; i++)
		all[i] = (struct gradflow_gradient){i, memory + i * (COUNT + gap), COUNT,
						    GRADFLOW_F32};
	for (s = 0; s < STEPS; s++) {
		steps[s] = now_s();
		for (i = 0; i < MANY; i += batch) {
			began = now_s();
			need(gradflow_exchange_post(x, all + i, batch));
			began = (now_s() - began) / (double)batch;
			for (k = 0; k < batch; k++)
				took[n++] = began;
		}
		need(gradflow_exchange_wait(x, GRADFLOW_ALL));
		steps[s] = now_s() - steps[s];
	}
	qsort(took, n, sizeof(*took), by_size);
	qsort(steps, STEPS, sizeof(*steps), by_size);
	if (gradflow_exchange_rank(x) == 0)
		printf("%s %zu %.3f %.3f %.3f %llu\n", gap ? "apart" : "one-piece", batch,
		       took[n / 2] * 1e6, took[n * 9 / 10] * 1e6, steps[STEPS / 2] * 1e3,
		       (unsigned long long)((gradflow_exchange_copied_bytes(x) - before) / STEPS));
}

/* 50 messages of 64 KiB, of two tensors each, which lie in one piece of memory or apart, and are
 * posted one by one or ten at a time. */
static void time_posts(void)
{
	struct gradflow_tensor tensors[MANY];
	char names[MANY][8];
	size_t twos[MANY / 2], i, gap;
	struct gradflow_exchange *x;

	memset(tensors, 0, sizeof(tensors));
	for (i = 0; i < MANY; i++) {
		snprintf(names[i], sizeof(names[i]), "t%zu", i);
		tensors[i].name = names[i];
		tensors[i].dimensions = 1;
		tensors[i].shape[0] = COUNT;
		twos[i / 2] = 2;
	}
	options.messages = twos;
	options.nmessages = MANY / 2;
	need(gradflow_exchange_open(tensors, MANY, &options, &x));
	for (gap = 0; gap <= GAP; gap += GAP) {
		measure_posts(x, gap, 1);
		measure_posts(x, gap, 10);
	}
	gradflow_exchange_close(x);
}

int main(int argc, char **argv)
{
	const char *mode;

	setlocale(LC_ALL, "");
	need(gradflow_exchange_options_init(&options, sizeof(options)));
	options.timeout_s = 30;
	if (argc > 5 && !strcmp(argv[1], "-j")) {
		options.meet = GRADFLOW_MEET_PLACE;
		options.place = argv[2];
		options.rank = atoi(argv[3]);
		options.ranks = atoi(argv[4]);
		argv += 4;
		argc -= 4;
	}
	mode = argc > 1 ? argv[1] : "";
	if (!strcmp(mode, "gather") && argc == 5) {
		options.meet = GRADFLOW_MEET_ALLGATHER;
		options.allgather = gather;
		options.allgather_ctx = argv[2];
		options.rank = atoi(argv[3]);
		options.ranks = atoi(argv[4]);
		means();
		return 0;
	}
	if (argc > 2 && strcmp(argv[2], "-"))
		options.plan = argv[2];
	if (!strcmp(mode, "means") && argc == 3)
		means();
	else if ((!strcmp(mode, "save") || !strcmp(mode, "load")) && argc == 4)
		checkpoint(argv[3], mode[0] == 'l');
	else if (!strcmp(mode, "carry") && argc == 4)
		carry(argv[3]);
	else if (!strcmp(mode, "two") && argc == 3)
		two();
	else if (!strcmp(mode, "hangs") && argc == 3)
		hangs();
	else if (!strcmp(mode, "dies") && argc == 3)
		dies();
	else if (!strcmp(mode, "frees") && argc == 3)
		frees();
	else if (!strcmp(mode, "elastic") && argc == 4)
		elastic(argv[3]);
	else if (!strcmp(mode, "resume") && argc == 5) {
		options.former = atoi(argv[4]);
		resume(argv[3], NULL);
	} else if (!strcmp(mode, "post") && argc == 2)
		time_posts();
	else
		return 64;
	return 0;
}
