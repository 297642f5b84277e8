/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * UCX's promises, with a worker of each process and of each thread: those of every transport, and
 * what happens when a rank has gone.
 */
#include <dlfcn.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/array.h"
#include "base/clock.h"
#include "base/heap.h"
#include "ranks.h"
#include "transport.h"
#include "transport/join.h"
#include "transport/transport.h"

static int show(void *below, const void *send, size_t size_bytes, void *recv, struct gf_error *err)
{
	return gf_comm_allgather(below, send, size_bytes, recv, err);
}

static const struct gf_comm_how told = {.variable = getenv};

static const struct gf_transport *ucx(void)
{
	const struct gf_transport *const *t = gf_transports;

	while (*t && !(*t)->join)
		t++;
	return *t;
}

/* The threads find each other by the communicator that they have. */
static struct gf_join by(struct gf_comm *below)
{
	return (struct gf_join){
		.rank = below->rank, .ranks = below->ranks, .allgather = show, .ctx = below};
}

static void promises(struct gf_comm *below, void *ctx)
{
	const struct gf_join join = by(below);
	struct gf_error err = {""};
	struct gf_comm *c;

	(void)ctx;
	if (ucx()->join(&told, &join, &c, &err)) {
		EXPECT(0, "%s", err.text);
		return;
	}
	check_transport(c);
	check_mismatch(c, 100000, 50000);
	check_mismatch(c, 50000, 100000);
	check_mismatch(c, 3000000, 2000000);
	check_shift(c, 5000000, true);
	check_shift(c, 5000000, false);
	check_kept(c);
	gf_comm_close(c);
}

/* As a command opens it: the ranks see that they are on one host. Two at once, and again after they
 * have been closed. */
static void opened(struct gf_comm *below, void *ctx)
{
	const struct gf_join join = by(below);
	const struct gf_comm_how how = {.join = &join, .variable = getenv};
	struct gf_error err = {""};
	struct gf_comm *c[2];
	int round, i, rc = 0;

	(void)ctx;
	for (round = 0; round < 2; round++) {
		for (i = 0; i < 2; i++)
			rc |= gf_comm_open(&how, &c[i], &err);
		EXPECT(!rc, "%s", err.text);
		for (i = 0; i < 2 && !rc; i++) {
			EXPECT(c[i]->host == 0 && c[i]->local_rank == below->rank &&
				       c[i]->local_ranks == below->ranks,
			       "rank %d: host %d, %d of %d", below->rank, c[i]->host,
			       c[i]->local_rank, c[i]->local_ranks);
			EXPECT_TEXT(c[i]->ops->name, below->ranks > 1 ? "shm" : "ucx");
			check_transport(c[i]);
		}
		for (i = 0; i < 2 && !rc; i++)
			gf_comm_close(c[i]);
	}
}

/* What a rank says of its address, as a stranger could: the first bytes are a status and the ranks,
 * and then the address's length. */
static const struct claim {
	size_t at;
	uint64_t says;
	const char *want;
} claims[] = {
	{8, UINT64_MAX,
	 "rank 0: want an address of at most 1048576 bytes, got 18446744073709551615"},
	{0, 5 | 2ull << 32, "rank 0: "},
	{8, 0, "rank 0: want an address of at most 1048576 bytes, got 0"},
};

struct claimant {
	struct gf_comm *below;
	const struct claim *claim;
};

static int show_claim(void *ctx, const void *send, size_t size_bytes, void *recv,
		      struct gf_error *err)
{
	const struct claimant *c = ctx;
	char *said = gf_xmalloc(size_bytes);
	int rc;

	memcpy(said, send, size_bytes);
	if (c->below->rank == 0)
		memcpy(said + c->claim->at, &c->claim->says, sizeof(c->claim->says));
	rc = show(c->below, said, size_bytes, recv, err);
	free(said);
	return rc;
}

static void claimed(struct gf_comm *below, void *ctx)
{
	struct gf_join join = by(below);
	struct gf_error err = {""};
	struct gf_comm *c;
	size_t i;

	(void)ctx;
	join.allgather = show_claim;
	for (i = 0; i < GF_ARRAY_LENGTH(claims); i++) {
		struct claimant me = {below, &claims[i]};

		join.ctx = &me;
		EXPECT(ucx()->join(&told, &join, &c, &err) == -EPROTO, "%s", err.text);
		EXPECT(!strncmp(err.text, claims[i].want, strlen(claims[i].want)), "%s", err.text);
	}
}

/* Rank 0's way is refused; so every rank's is, in the same words. */
static void refused(struct gf_comm *below, void *ctx)
{
	struct gf_join join = by(below);
	struct gf_comm_how how = {.join = &join, .variable = getenv};
	struct gf_error err = {""};
	struct gf_comm *c;

	(void)ctx;
	join.ranks += below->rank == 1;
	EXPECT(gf_comm_open(&how, &c, &err) == -EINVAL, "ranks");
	join.ranks = below->ranks;
	how.meet = "/tmp";
	EXPECT(gf_comm_open(&how, &c, &err) == -EINVAL, "two ways");
	EXPECT_TEXT(err.text, "/tmp: want an allgather or a place to meet, got both");
	how.meet = NULL;
	how.transport = "mpi";
	EXPECT(gf_comm_open(&how, &c, &err) == -EINVAL, "MPI's launcher");
	EXPECT_TEXT(err.text,
		    "transport mpi: its launcher says which ranks there are, nothing else can");
	how.transport = "shm";
	EXPECT(gf_comm_open(&how, &c, &err) == -ENOTSUP, "a layer");
	EXPECT_TEXT(err.text, "transport shm: not in this build");
	how.transport = NULL;
	join.rank = join.ranks;
	EXPECT(gf_comm_open(&how, &c, &err) == -EINVAL, "rank");
	EXPECT(strstr(err.text, "want 0 <= rank < ranks"), "%s", err.text);
}

/* --- processes ---------------------------------------------------------- */

static char folder[] = "/tmp/gf-test-ucx.XXXXXX";

/* The bare transport, or with what is over it. */
static struct gf_comm *open_process(int rank, int ranks, bool bare)
{
	struct gf_join join = {.rank = rank, .ranks = ranks};
	const struct gf_comm_how how = {
		.meet = folder, .rank = rank, .ranks = ranks, .timeout_s = 20, .variable = getenv};
	struct gf_error err = {""};
	struct gf_comm *c = NULL;
	int rc;

	if (!bare) {
		EXPECT(!gf_comm_open(&how, &c, &err), "%s", err.text);
		return c;
	}
	rc = gf_join_open(folder, 20, &join, &err);
	if (!rc) {
		rc = ucx()->join(&told, &join, &c, &err);
		gf_join_close(&join);
	}
	EXPECT(!rc, "%s", err.text);
	return c;
}

static void promises_of_process(int rank, int ranks)
{
	int bare;

	for (bare = 0; bare < 2; bare++) {
		struct gf_comm *c = open_process(rank, ranks, bare);

		if (!c)
			return;
		check_transport(c);
		check_shift(c, 5000000, true);
		gf_comm_close(c);
	}
}

/* The last rank dies while the others wait for it, for one another and to send. Each is told which
 * rank is gone; then they go on without it. */
static void survive(int rank, int ranks)
{
	struct gf_comm *c = open_process(rank, ranks, true);
	char want[64], *data;
	void *memory = NULL;
	struct gf_comm_request *r[2];
	struct gf_error err = {""};
	double began_s;
	int dead = ranks - 1, rc;

	if (!c || c->ops->buffer_alloc(c, 8 << 20, &memory, &err))
		return;
	data = memory;
	check_shift(c, 1000, true);
	EXPECT(!gf_comm_barrier(c, &err), "%s", err.text);
	if (rank == dead)
		raise(SIGKILL);
	began_s = gf_clock_s();
	rc = c->ops->irecv(c, dead, gf_tag(3, 0), data, 4 << 20, &r[0], &err);
	rc = rc ? rc : c->ops->isend(c, dead, gf_tag(3, 0), data + (4 << 20), 4 << 20, &r[1], &err);
	EXPECT(!rc, "%s", err.text);
	snprintf(want, sizeof(want), "rank %d is gone (UCX: ", dead);
	/* a send may end before the rank is known to be gone */
	if (rank % 2)
		rc = gf_comm_wait(c, r[1], &err);
	EXPECT(!rc || rc == -ECONNRESET, "send: %d, %s", rc, err.text);
	rc = gf_comm_wait(c, r[0], &err);
	EXPECT(rc == -ECONNRESET && !strncmp(err.text, want, strlen(want)), "rank %d: %d, %s", rank,
	       rc, err.text);
	EXPECT(c->broken && gf_clock_s() - began_s < 5, "after %g s", gf_clock_s() - began_s);
	if (rank == 2)
		c->ops->cancel(c, r[1]);
	/* UCX has let go of the memory */
	EXPECT(gf_comm_sever(c), "messages that cannot be given up");
	c->ops->buffer_free(c, data);
	if (rank == 0)
		c->ops->cancel(c, r[1]);
	gf_comm_close(c);
	promises_of_process(rank, ranks - 1);
}

/* --- signals ------------------------------------------------------------ */

static volatile sig_atomic_t caught;

static void catch (int number)
{
	caught = number;
}

/* Signals of errors are the program's once a communicator has been opened, and stay so when another
 * one is. */
static void check_signals(int rank, int ranks)
{
	static const int numbers[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL};
	const struct sigaction own = {.sa_handler = catch};
	struct gf_comm *c = open_process(rank, ranks, false), *second;
	struct sigaction found;
	Dl_info taker;
	size_t i;

	/* a sanitizer may have a handler there */
	for (i = 0; i < GF_ARRAY_LENGTH(numbers); i++)
		EXPECT(!sigaction(numbers[i], &own, &found) &&
			       (!dladdr((void *)(uintptr_t)found.sa_handler, &taker) ||
				!strstr(taker.dli_fname, "libuc")),
		       "signal %d is taken", numbers[i]);
	second = open_process(rank, ranks, false);
	for (i = 0; i < GF_ARRAY_LENGTH(numbers); i++) {
		raise(numbers[i]);
		EXPECT(caught == numbers[i], "signal %d", numbers[i]);
	}
	if (second)
		gf_comm_close(second);
	if (c)
		gf_comm_close(c);
}

static void in_processes(void (*body)(int rank, int ranks), int ranks, int survivors)
{
	pid_t pids[16];
	int rank, status;

	for (rank = 0; rank < ranks; rank++) {
		pids[rank] = fork();
		if (pids[rank] < 0)
			abort();
		if (pids[rank])
			continue;
		test_failures = 0;
		watchdog(60);
		body(rank, ranks);
		fflush(stdout);
		_exit(test_failures > 0);
	}
	for (rank = 0; rank < ranks; rank++) {
		EXPECT(waitpid(pids[rank], &status, 0) == pids[rank], "wait");
		EXPECT(rank >= survivors || status == 0, "rank %d: status %x", rank,
		       (unsigned)status);
	}
}

int main(void)
{
	static const int ranks[] = {1, 2, 3, 4, 7};
	size_t i;

	if (!ucx()) {
		puts("built without UCX");
		return 77;
	}
	watchdog(100);
	if (!mkdtemp(folder))
		abort();
	/* before there are threads */
	in_processes(promises_of_process, 2, 2);
	in_processes(promises_of_process, 4, 4);
	in_processes(survive, 4, 3);
	in_processes(survive, 2, 1);
	if (!getenv("UCX_HANDLE_ERRORS"))
		in_processes(check_signals, 2, 2);
	EXPECT(!rmdir(folder), "the folder is empty");
	for (i = 0; i < GF_ARRAY_LENGTH(ranks); i++) {
		on_ranks(ranks[i], promises, NULL);
		on_ranks(ranks[i], opened, NULL);
	}
	on_ranks(3, refused, NULL);
	on_ranks(2, claimed, NULL);
	return TEST_END();
}
