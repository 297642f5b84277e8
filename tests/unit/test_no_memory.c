/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Memory that is refused to a program's exchange, at each request of the library in turn, in a
 * process each: a call returns -ENOMEM, as do those after it, and the program goes on. Other ranks
 * learn it.
 */
#include <errno.h>
#include <sys/wait.h>

#if defined(__GLIBC__) && !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
#define OWN_ALONE
#include "../faults/no_memory.c"
#define REFUSES 1
#else
static long refuse_at, requests;
#define REFUSES 0
#endif

#include "caller.h"
#include "folder.h"

#define RANKS 2
/* A process that does not end by itself by then hangs. */
#define HANG_S 60

static float gradient[RANKS][64];
static const struct gradflow_tensor tensor = {"t", 1, {64}};

/* A call's end is said; after the first without memory all are so. */
static void note(int rc, bool *lost)
{
	if (rc > 0 || (rc < 0 && !gradflow_error()[0]) || (*lost && rc != -ENOMEM)) {
		fprintf(stderr, "%d, %s\n", rc, gradflow_error());
		_exit(2);
	}
	*lost |= rc == -ENOMEM;
}

static void use(struct gradflow_exchange *x, int rank, bool *lost)
{
	const struct gradflow_gradient g = {0, gradient[rank], 64, GRADFLOW_F32};
	struct gradflow_array a;
	int step, failed = 0;

	for (step = 0; step < 2 && !failed; step++) {
		failed = gradflow_exchange_post(x, &g, 1);
		note(failed, lost);
		failed = failed ? failed : gradflow_exchange_wait(x, GRADFLOW_ALL);
		note(failed, lost);
	}
	if (!failed)
		failed = gradflow_exchange_save(x, folder);
	note(failed, lost);
	if (*lost) {
		note(gradflow_exchange_state(x, 0, &a), lost);
		note(gradflow_exchange_flush(x), lost);
		note(gradflow_exchange_test(x, GRADFLOW_ALL), lost);
		if (gradflow_exchange_missing(x, NULL, 0) != -ENODATA)
			_exit(3);
	}
	gradflow_exchange_close(x);
}

/* --- ranks that have met -------------------------------------------------- */

static pthread_barrier_t met;
static long refused;
static bool lost[RANKS];

static void body(struct gf_comm *comm, void *ctx)
{
	const struct gradflow_exchange_options o = {
		.size = sizeof(o),
		.former = -1,
		.epoch_steps = 2,
		.timeout_s = 1,
	};
	struct gradflow_exchange *x;
	struct gf_error err = {""};

	(void)ctx;
	if (gf_embed_exchange_open(comm, &tensor, 1, &o, NULL, &x, &err))
		_exit(4);
	pthread_barrier_wait(&met);
	refuse_at = refused;
	use(x, comm->rank, &lost[comm->rank]);
}

static void steps(void)
{
	struct gf_comm *comms[RANKS];
	pthread_t threads[RANKS];
	struct ranks_thread t[RANKS];
	int i;

	pthread_barrier_init(&met, NULL, RANKS);
	if (gf_comm_local_new(RANKS, comms, NULL))
		_exit(5);
	for (i = 0; i < RANKS; i++) {
		t[i] = (struct ranks_thread){.comm = comms[i], .body = body};
		pthread_create(&threads[i], NULL, ranks_thread_main, &t[i]);
	}
	for (i = 0; i < RANKS; i++)
		pthread_join(threads[i], NULL);
}

/* --- one that opens ------------------------------------------------------- */

static int alone(void *ctx, const void *send, size_t size_bytes, void *recv)
{
	(void)ctx;
	memcpy(recv, send, size_bytes);
	return 0;
}

static void all(void)
{
	const struct gradflow_exchange_options o = {
		.size = sizeof(o),
		.former = -1,
		.plan_text = RULE("0", "1", "ring", "f32", DENSE),
		.epoch_steps = 2,
		.timeout_s = 1,
		.meet = GRADFLOW_MEET_ALLGATHER,
		.allgather = alone,
		.ranks = 1,
	};
	struct gradflow_exchange *x;
	bool refusal = false;
	int rc;

	refuse_at = refused;
	note(gradflow_exchange_check(o.plan_text, 0), &refusal);
	rc = gradflow_exchange_open(&tensor, 1, &o, &x);
	if (rc == -ENOTSUP) /* built without UCX */
		_exit(0);
	note(rc, &lost[0]);
	if (!rc)
		use(x, 0, &lost[0]);
	else if (x)
		_exit(6);
	lost[0] |= refusal;
}

/* In a process of its own, in which the nth request is refused: 0: nothing was, 1: -ENOMEM */
static int try(void (*fn)(void), long n)
{
	pid_t child = fork();
	int status = 0;

	if (!child) {
		alarm(HANG_S);
		refused = n;
		fn();
		refuse_at = -1;
		_exit(lost[0] || lost[1] ? 10 : requests < n ? 11 : 12);
	}
	waitpid(child, &status, 0);
	EXPECT(WIFEXITED(status) && (!WEXITSTATUS(status) || (WEXITSTATUS(status) >= 10)),
	       "request %ld: status %#x", n, (unsigned)status);
	return status;
}

static void sweep(void (*fn)(void), long step)
{
	int status = 0, refusals = 0;
	long n;

	for (n = 1;
	     !WIFEXITED(status) || WEXITSTATUS(status) == 10 || WEXITSTATUS(status) == 12 || n == 1;
	     n += getenv("GF_TEST_LONG") ? 1 : step) {
		status = try(fn, n);
		refusals += WIFEXITED(status) && WEXITSTATUS(status) == 10;
		if (test_failures > 5 || (WIFEXITED(status) && !WEXITSTATUS(status)))
			break;
	}
	EXPECT(refusals || !WEXITSTATUS(status), "never refused in %ld", n);
	printf("%ld requests, %d ended in -ENOMEM\n", n, refusals);
}

int main(void)
{
	if (!REFUSES) {
		puts("skipped: a sanitizer's memory is not refused");
		return 77;
	}
	refuse_at = -1;
	make_folder("gf-test-no-memory");
	sweep(steps, 11);
	sweep(all, 23);
	return TEST_END();
}
