/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The engine over MPI: one rank when started by itself, any number under
 * mpirun (tests/mpi/engine.bats).
 *
 *	test_engine_mpi [ALGORITHM [STOP|KILL RANK [ABORT|EXIT]]]
 *
 * With STOP or KILL that rank gets the signal in the middle of a step; the others time out after 5
 * s and end the job with status 4, by MPI's abort or by leaving without a word to MPI.
 */
#include <errno.h>
#include <signal.h>

#include "ranks.h"
#include "rig.h"

#define STEPS 20

static int one_step(struct rig *r, struct gf_comm *c, size_t step, int signal, struct gf_error *err)
{
	size_t i;
	float want;
	int k, rc = 0;

	for (i = 0; i < r->pool.count_elems; i++)
		r->pool.data[i] = (float)((c->rank + 1) * (int)(i % 7 + step));
	rig_begin(r);
	for (i = 0; i < TENSORS; i++) {
		if (i == TENSORS / 2 && signal)
			raise(signal);
		/* The last layer waits for message 0: without progress on another thread this would
		 * never end. */
		if (i == TENSORS - 1)
			rc = gf_engine_wait_message(r->engine, 0, err);
		gf_engine_ready_all(r->engine, &(size_t){i}, 1);
	}
	gf_engine_backward_end(r->engine);
	if (!rc)
		rc = gf_engine_wait(r->engine, err);
	for (i = 0; i < r->pool.count_elems && !rc; i++) {
		for (k = 0, want = 0; k < c->ranks; k++)
			want += (float)((k + 1) * (int)(i % 7 + step));
		if (r->pool.data[i] == want)
			continue;
		EXPECT(0, "rank %d, step %zu, element %zu: want %g, got %g", c->rank, step, i, want,
		       r->pool.data[i]);
		break;
	}
	return rc;
}

int main(int argc, char **argv)
{
	struct setting s = {0, 2, argc > 1 ? argv[1] : "ring", false, 5};
	int signal = argc > 3 && !strcmp(argv[2], "STOP")   ? SIGSTOP
		     : argc > 3 && !strcmp(argv[2], "KILL") ? SIGKILL
							    : 0;
	int victim = argc > 3 ? atoi(argv[3]) : -1, rank, rc = 0;
	struct rig r = {0};
	struct gf_comm *c;
	struct gf_error err = {""};
	size_t step;

#if defined(__SANITIZE_THREAD__)
	puts("MPI has its own threads, which are not instrumented");
	return 77;
#endif
	watchdog(100);
	if (gf_comm_open(NULL, &c, &err)) {
		printf("%s\n", err.text);
		return 1;
	}
	rank = c->rank;
	rc = rig_open(&r, c, &s, &err);
	for (step = 1; step <= STEPS && !rc; step++)
		rc = one_step(&r, c, step, step == STEPS / 2 && rank == victim ? signal : 0, &err);
	rig_close(&r);
	if (rc) {
		fprintf(stderr, "[%d]: %s\n", rank, err.text);
		if (rc == -ETIMEDOUT && argc > 4 && !strcmp(argv[4], "ABORT"))
			gf_comm_abort(c, 4);
	}
	gf_comm_close(c);
	if (!rc && rank == 0 && !test_failures)
		puts("all steps hold");
	return rc == -ETIMEDOUT ? 4 : rc ? 3 : TEST_END();
}
