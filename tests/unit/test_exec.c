/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>

#include "base/array.h"
#include "base/heap.h"
#include "collectives/algorithm.h"
#include "runtime/exec/exec.h"
#include "transport/transport.h"
#include "ranks.h"

/* Small integers: every sum is exact, whatever the order. */
static float exact(int rank, size_t i)
{
	return (float)((rank + 1) * (int)(i % 11 + 1));
}

/* Sums of these depend on the order of the additions. */
static float inexact(int rank, size_t i)
{
	return 1.0f / (float)(3 + rank * 7 + (int)(i % 101));
}

/* Every rank shows its bits to the others. */
static void expect_same_bits(struct gf_comm *c, const float *data, size_t n, int contributors,
			     const char *what)
{
	size_t size = n * sizeof(float);
	char *all = gf_xmalloc(size * (size_t)c->ranks + 1);
	struct gf_error err = {""};

	EXPECT(!gf_comm_allgather(c, data, size, all, &err), "%s", err.text);
	if (c->rank < contributors)
		EXPECT(!memcmp(all, all + (size_t)c->rank * size, size),
		       "%s: ranks 0 and %d differ", what, c->rank);
	free(all);
}

static void run_once(struct gf_exec *x, struct gf_exec_run *run, float *data, const char *what)
{
	struct gf_error err = {""};
	int rc = gf_exec_start(run, data, &err);

	rc = rc ? rc : gf_exec_wait(x, run, 0, &err);
	EXPECT(!rc && gf_exec_done(run), "%s: %s", what, err.text);
}

/* Both kinds of numbers through one prepared run. */
static void check_run(struct gf_comm *c, struct gf_exec *x, const struct gf_schedule *s,
		      const char *what)
{
	size_t n = s->count_elems, i;
	float *data, want;
	struct gf_exec_run *run;
	struct gf_error err = {""};
	void *memory;
	int r;

	if (c->ops->buffer_alloc(c, (n + 1) * sizeof(*data), &memory, &err)) {
		EXPECT(0, "%s: %s", what, err.text);
		return;
	}
	data = memory;
	if (gf_exec_run_new(x, &(struct gf_exec_config){.schedule = s, .channel = 3}, &run, &err)) {
		EXPECT(0, "%s: %s", what, err.text);
		goto out;
	}
	for (i = 0; i < n; i++)
		data[i] = exact(c->rank, i);
	data[n] = -1;
	run_once(x, run, data, what);
	for (i = 0; i < n && c->rank < s->contributors; i++) {
		for (r = 0, want = 0; r < s->contributors; r++)
			want += exact(r, i);
		if (data[i] != want) {
			EXPECT(0, "%s: rank %d, element %zu: want %g, got %g", what, c->rank, i,
			       want, data[i]);
			break;
		}
	}
	for (i = 0; i < n; i++)
		data[i] = inexact(c->rank, i);
	run_once(x, run, data, what);
	expect_same_bits(c, data, n, s->contributors, what);
	EXPECT(data[n] == -1, "%s: beyond the end", what);
	gf_exec_run_free(run);
out:
	c->ops->buffer_free(c, memory);
}

struct algorithm_case {
	const struct gf_algorithm *algorithm;
	const int *factors;
	size_t nfactors;
	int servers;
	int done; /* on rank 0 */
};

static void check_size(struct gf_comm *c, struct algorithm_case *one, size_t n, size_t segment)
{
	static const size_t staging[] = {4 << 20, 0, 100};
	struct gf_coll_args args = {
		.ranks = c->ranks,
		.count_elems = n,
		.elem_bytes = sizeof(float),
		.segment_elems = segment,
		.factors = one->factors,
		.nfactors = one->nfactors,
		.servers = one->servers,
	};
	struct gf_exec *x = gf_exec_new(c);
	struct gf_schedule s;
	struct gf_error err = {""};
	char what[128];
	size_t k;

	if (gf_algorithm_schedule(one->algorithm, &args, c->rank, &s, &err))
		goto out;
	/* How much staging there is matters where there are segments. */
	for (k = 0; k < (segment ? GF_ARRAY_LENGTH(staging) : 1); k++) {
		snprintf(what, sizeof(what),
			 "%s, %zu factors, p = %d, n = %zu, segments of %zu, staging %zu",
			 one->algorithm->name, one->nfactors, c->ranks, n, segment, staging[k]);
		gf_exec_staging_bytes(x, staging[k]);
		check_run(c, x, &s, what);
	}
	gf_schedule_release(&s);
	if (c->rank == 0)
		one->done++;
out:
	gf_exec_free(x);
}

static void check_sizes(struct gf_comm *c, void *ctx)
{
	size_t p = (size_t)c->ranks;
	size_t sizes[] = {0, 1, p - 1, p, p + 1, 4 * p + 3, 1009, 12000}, i;

	for (i = 0; i < GF_ARRAY_LENGTH(sizes); i++)
		if (test_tries(p + i, 2))
			check_size(c, ctx, sizes[i], 0);
	check_size(c, ctx, 1009, 1009 / p / 3 + 1);
	check_size(c, ctx, 37, 1);
	check_size(c, ctx, 40000, 0); /* beyond what an entry holds */
}

/* Prime factors, smallest first. */
static size_t factorise(int n, int *factors)
{
	size_t count = 0;
	int f;

	for (f = 2; n > 1; f++)
		for (; n % f == 0; n /= f)
			factors[count++] = f;
	return count;
}

static bool by_factors(const struct gf_algorithm *a)
{
	return !strcmp(a->name, "blueconnect") || !strcmp(a->name, "hierarchical");
}

static void test_algorithms(void)
{
	static const int ranks[] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 16};
	const struct gf_algorithm *const *a;
	struct algorithm_case one;
	int factors[8], done;
	size_t i;

	for (a = gf_algorithms; *a; a++) {
		if (!(*a)->build)
			continue;
		for (i = 0, done = 0; i < GF_ARRAY_LENGTH(ranks); i++) {
			one = (struct algorithm_case){.algorithm = *a};
			on_ranks(ranks[i], check_sizes, &one);
			on_ranks_over(ranks[i], gf_comm_shm_over, check_sizes, &one);
			one.servers = 1;
			if (!strcmp((*a)->name, "ps") && ranks[i] > 1)
				on_ranks(ranks[i], check_sizes, &one);
			one.servers = 0;
			one.factors = factors;
			one.nfactors = factorise(ranks[i], factors);
			if (one.nfactors > 1 && by_factors(*a))
				on_ranks(ranks[i], check_sizes, &one);
			done += one.done;
		}
		EXPECT(done > 0, "%s was never run", (*a)->name);
	}
}

/* Eight messages at once, begun in another order by every rank. */
#define MANY 8

static void many(struct gf_comm *c, void *ctx)
{
	struct gf_coll_args args = {
		.ranks = c->ranks, .elem_bytes = sizeof(float), .segment_elems = 100};
	struct gf_exec *x = gf_exec_new(c);
	struct gf_schedule s[MANY];
	struct gf_exec_run *run[MANY];
	struct gf_error err = {""};
	float *data[MANY], want;
	size_t i, k, n;
	int r;

	(void)ctx;
	for (i = 0; i < MANY; i++) {
		n = args.count_elems = 1 + i * 531;
		EXPECT(!gf_algorithm_schedule(gf_algorithm_find("ring"), &args, c->rank, &s[i],
					      &err) &&
			       !gf_exec_run_new(x,
						&(struct gf_exec_config){.schedule = &s[i],
									 .channel = (uint32_t)i},
						&run[i], &err),
		       "%s", err.text);
		data[i] = gf_xcalloc(n, sizeof(float));
		for (k = 0; k < n; k++)
			data[i][k] = exact(c->rank, k + i);
	}
	for (i = 0; i < MANY; i++) {
		k = (i * 3 + (size_t)c->rank) % MANY;
		EXPECT(!gf_exec_start(run[k], data[k], &err), "%s", err.text);
	}
	for (i = 0; i < MANY; i++)
		EXPECT(!gf_exec_wait(x, run[i], 0, &err), "%s", err.text);
	for (i = 0; i < MANY; i++) {
		for (k = 0; k < s[i].count_elems; k++) {
			for (r = 0, want = 0; r < c->ranks; r++)
				want += exact(r, k + i);
			EXPECT(data[i][k] == want, "message %zu, element %zu", i, k);
		}
		gf_exec_run_free(run[i]);
		gf_schedule_release(&s[i]);
		free(data[i]);
	}
	gf_exec_free(x);
}

static int give_up(void *ctx, struct gf_error *err)
{
	(void)ctx;
	return gf_error_set(err, -ETIMEDOUT, "enough");
}

/* Rank 1 never begins: the others say so, and can still end. ctx: not NULL if the transport's watch
 * gives up, and not the wait. */
static void absent(struct gf_comm *c, void *ctx)
{
	struct gf_coll_args args = {
		.ranks = c->ranks, .elem_bytes = sizeof(float), .count_elems = 10};
	struct gf_exec *x = gf_exec_new(c);
	struct gf_schedule s;
	struct gf_exec_run *run = NULL;
	struct gf_error err = {""};
	float data[10] = {0};
	size_t step;
	int peer;

	EXPECT(!gf_algorithm_schedule(gf_algorithm_find("ring"), &args, c->rank, &s, &err) &&
		       !gf_exec_run_new(x, &(struct gf_exec_config){.schedule = &s}, &run, &err),
	       "%s", err.text);
	gf_exec_waiting_for(run, &peer, &step);
	EXPECT(peer == -1, "not begun");
	if (c->rank == 0) {
		EXPECT(!gf_exec_start(run, data, &err), "%s", err.text);
		c->on_wait = ctx ? give_up : NULL;
		EXPECT(gf_exec_wait(x, run, ctx ? 0 : 0.05, &err) == -ETIMEDOUT, "timeout");
		EXPECT_TEXT(
			err.text,
			ctx ? "enough"
			    : "no progress for 0.05 s in step 0 of 4 (send to rank 1, 20 bytes)");
		EXPECT(gf_exec_failed(run) && !gf_exec_done(run) && c->broken, "state");
		gf_exec_waiting_for(run, &peer, &step);
		EXPECT(peer == -1, "nothing is left behind");
	}
	gf_exec_run_free(run);
	gf_schedule_release(&s);
	gf_exec_free(x);
}

/* Ranks that disagree on the size find out, and name both. */
static void disagree(struct gf_comm *c, void *ctx)
{
	struct gf_coll_args args = {.ranks = c->ranks,
				    .elem_bytes = sizeof(float),
				    .count_elems = c->rank == 0 ? 10 : 12};
	struct gf_exec *x = gf_exec_new(c);
	struct gf_schedule s;
	struct gf_exec_run *run = NULL;
	struct gf_error err = {""};
	float data[12] = {0};

	(void)ctx;
	EXPECT(!gf_algorithm_schedule(gf_algorithm_find("ring"), &args, c->rank, &s, &err) &&
		       !gf_exec_run_new(x, &(struct gf_exec_config){.schedule = &s}, &run, &err) &&
		       !gf_exec_start(run, data, &err),
	       "%s", err.text);
	EXPECT(gf_exec_wait(x, run, 10, &err) == -EMSGSIZE, "%s", err.text);
	EXPECT(strstr(err.text, c->rank == 0 ? "want 20 bytes, got 24" : "want 24 bytes, got 20"),
	       "%s", err.text);
	EXPECT(gf_exec_failed(run), "state");
	/* A run on its way may go, too. */
	EXPECT(!gf_comm_barrier(c, &err), "%s", err.text);
	EXPECT(!gf_exec_start(run, data, &err), "%s", err.text);
	gf_exec_run_free(run);
	gf_schedule_release(&s);
	gf_exec_free(x);
}

static void refusals(struct gf_comm *c, void *ctx)
{
	struct gf_exec *x = gf_exec_new(c);
	struct gf_exec_run *run;
	struct gf_schedule s;
	struct gf_error err = {""};

	(void)ctx;
	gf_schedule_init(&s, 1, 3, 5);
	gf_schedule_finish(&s);
	EXPECT(gf_exec_run_new(x, &(struct gf_exec_config){.schedule = &s}, &run, &err) == -EINVAL,
	       "rank");
	EXPECT_TEXT(err.text, "schedule of rank 1 of 3 on rank 0 of 1");
	gf_schedule_release(&s);
	gf_schedule_init(&s, 0, 1, 5);
	gf_schedule_finish(&s);
	EXPECT(gf_exec_run_new(
		       x, &(struct gf_exec_config){.schedule = &s, .channel = GF_CHANNEL_LAST + 1},
		       &run, &err) == -EINVAL,
	       "channel");
	gf_schedule_release(&s);
	gf_exec_free(x);
}

/* What a rank moves in shared memory, in parts of the message: a part's sum that goes back to the
 * rank it came from is not copied. */
struct traffic {
	const char *algorithm;
	int ranks;
	size_t parts, moved; /* of so many parts of the message, so many */
};

static void moves_so_much(struct gf_comm *c, void *ctx)
{
	const struct traffic *t = ctx;
	struct gf_coll_args args = {.ranks = c->ranks,
				    .count_elems = t->parts * 5000,
				    .elem_bytes = sizeof(float),
				    .segment_elems = 2500};
	struct gf_exec *x = gf_exec_new(c);
	struct gf_schedule s;
	struct gf_error err = {""};
	uint64_t moved = c->moved_bytes;

	EXPECT(!gf_algorithm_schedule(gf_algorithm_find(t->algorithm), &args, c->rank, &s, &err),
	       "%s", err.text);
	check_run(c, x, &s, t->algorithm);
	/* check_run runs it twice */
	EXPECT(c->moved_bytes - moved == 2 * t->moved * 5000 * sizeof(float),
	       "%s, p = %d: want %zu, got %g parts of %zu", t->algorithm, c->ranks, t->moved,
	       (double)(c->moved_bytes - moved) / (2 * 5000 * sizeof(float)), t->parts);
	gf_schedule_release(&s);
	gf_exec_free(x);
}

static void test_traffic(void)
{
	static struct traffic all[] = {
		{"rhd", 2, 2, 1}, /* without: 2 */
		{"ring", 2, 2, 1},
		{"rhd", 4, 4, 5},  /* without: 6 */
		{"ring", 4, 4, 6}, /* sums go on, not back */
	};
	size_t i;

	for (i = 0; i < GF_ARRAY_LENGTH(all); i++)
		on_ranks_over(all[i].ranks, gf_comm_shm_over, moves_so_much, &all[i]);
}

int main(void)
{
	bool watched = true;

	watchdog(280);
	test_traffic();
	test_algorithms();
	on_ranks(4, many, NULL);
	on_ranks(7, many, NULL);
	on_ranks_over(7, gf_comm_shm_over, many, NULL);
	on_ranks(2, absent, NULL);
	on_ranks(2, absent, &watched);
	on_ranks(2, disagree, NULL);
	on_ranks(1, refusals, NULL);
	return TEST_END();
}
