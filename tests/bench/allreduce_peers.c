/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The executor beside MPI's own all-reduce, in one run, and the processor time
 * of a rank that waits for a late one. Under mpirun:
 *
 *	allreduce_peers [SEGMENT_BYTES]
 *
 * Contestants take turns, so that all meet the same machine; medians.
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>

#include "base/clock.h"
#include "base/heap.h"
#include "coll/algorithm.h"
#include "comm/exec.h"

#define REPEATS 15
#define LATE_S  1.0

static double processor_s(void)
{
	struct rusage u;

	getrusage(RUSAGE_SELF, &u);
	return (double)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) +
	       (double)(u.ru_utime.tv_usec + u.ru_stime.tv_usec) * 1e-6;
}

static void must(int rc, const struct gf_error *err)
{
	if (!rc)
		return;
	fprintf(stderr, "%s\n", err->text);
	MPI_Abort(MPI_COMM_WORLD, 3);
}

static int ascending(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

enum contestant { PEER, RING, LIBRARY, CONTESTANTS };

/* A message, and the ring prepared for it. */
struct field {
	struct gf_comm *comm;
	struct gf_exec *exec;
	struct gf_schedule schedule;
	struct gf_exec_run *run;
	float *data;
	size_t count_elems;
};

static void open_field(struct field *f, struct gf_comm *c, size_t size_bytes,
		       size_t segment_bytes)
{
	struct gf_coll_args args = {
		.ranks = c->ranks,
		.count_elems = size_bytes / sizeof(float),
		.elem_bytes = sizeof(float),
		.segment_elems = segment_bytes / sizeof(float),
	};
	struct gf_error err = {""};
	void *data;

	f->comm = c;
	f->exec = gf_exec_new(c);
	f->count_elems = args.count_elems;
	must(c->ops->buffer_alloc(c, size_bytes, &data, &err), &err);
	f->data = data;
	must(gf_algorithm_schedule(gf_algorithm_find("ring"), &args, c->rank,
				   &f->schedule, &err),
	     &err);
	must(gf_exec_run_new(f->exec,
			     &(struct gf_exec_config){.schedule = &f->schedule},
			     &f->run, &err),
	     &err);
}

static void close_field(struct field *f)
{
	gf_exec_run_free(f->run);
	gf_schedule_release(&f->schedule);
	gf_exec_free(f->exec);
	f->comm->ops->buffer_free(f->comm, f->data);
}

/* One all-reduce. */
static void reduce(struct field *f, enum contestant who)
{
	struct gf_element sum = gf_element_number(GF_F32, GF_OP_SUM);
	struct gf_error err = {""};
	struct gf_request *request;

	switch (who) {
	case PEER:
		MPI_Allreduce(MPI_IN_PLACE, f->data, (int)f->count_elems,
			      MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
		break;
	case RING:
		must(gf_exec_start(f->run, f->data, &err), &err);
		must(gf_exec_wait(f->exec, f->run, 0, &err), &err);
		break;
	default:
		must(f->comm->ops->iallreduce(f->comm, f->data, f->count_elems,
					      &sum, &request, &err),
		     &err);
		must(gf_comm_wait(f->comm, request, &err), &err);
	}
}

static void compare(struct gf_comm *c, size_t size_bytes, size_t segment_bytes)
{
	double times[CONTESTANTS][REPEATS], median[CONTESTANTS], begin_s;
	struct field f;
	int i, who;

	open_field(&f, c, size_bytes, segment_bytes);
	for (i = -2; i < REPEATS; i++)
		for (who = 0; who < CONTESTANTS; who++) {
			MPI_Barrier(MPI_COMM_WORLD);
			begin_s = gf_clock_s();
			reduce(&f, (enum contestant)who);
			if (i >= 0)
				times[who][i] = gf_clock_s() - begin_s;
		}
	for (who = 0; who < CONTESTANTS; who++) {
		qsort(times[who], REPEATS, sizeof(double), ascending);
		median[who] = times[who][REPEATS / 2];
	}
	if (c->rank == 0)
		printf("%10zu  %9.3f  %9.3f %5.2f  %9.3f %5.2f\n", size_bytes,
		       median[PEER] * 1e3, median[RING] * 1e3,
		       median[PEER] / median[RING], median[LIBRARY] * 1e3,
		       median[PEER] / median[LIBRARY]);
	close_field(&f);
}

/* The last rank comes late: what do the others burn meanwhile? */
static void wait_for_late(struct gf_comm *c)
{
	double before_s, used_s[CONTESTANTS];
	struct field f;
	int who;

	open_field(&f, c, 1 << 20, 0);
	for (who = 0; who < CONTESTANTS; who++) {
		MPI_Barrier(MPI_COMM_WORLD);
		if (c->rank == c->ranks - 1)
			gf_clock_sleep(LATE_S);
		before_s = processor_s();
		reduce(&f, (enum contestant)who);
		used_s[who] = processor_s() - before_s;
	}
	if (c->rank == 0 && c->ranks > 1)
		printf("processor time of rank 0 while the last rank is %g s "
		       "late: MPI_Allreduce %.3f s, ring %.3f s (%.0f %%), "
		       "library %.3f s (%.0f %%)\n",
		       LATE_S, used_s[PEER], used_s[RING],
		       used_s[RING] / used_s[PEER] * 100, used_s[LIBRARY],
		       used_s[LIBRARY] / used_s[PEER] * 100);
	close_field(&f);
}

int main(int argc, char **argv)
{
	size_t segment_bytes = argc > 1 ? strtoul(argv[1], NULL, 10) : 1 << 20;
	size_t size_bytes;
	struct gf_comm *c;
	struct gf_error err = {""};

	if (gf_comm_open(&c, &err)) {
		fprintf(stderr, "%s\n", err.text);
		return 3;
	}
	if (c->rank == 0)
		printf("%d ranks, segments of %zu bytes, median ms, times "
		       "faster than MPI_Allreduce\n%10s  %9s  %9s %5s  %9s "
		       "%5s\n",
		       c->ranks, segment_bytes, "bytes", "Allreduce", "ring",
		       "x", "library", "x");
	for (size_bytes = 4096; size_bytes <= 64 << 20; size_bytes *= 4)
		compare(c, size_bytes, segment_bytes);
	wait_for_late(c);
	gf_comm_close(c);
	return 0;
}
