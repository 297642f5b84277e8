/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * MPI_Allreduce of f32 sums and nothing else: bytes and the median time, in
 * microseconds, of the slowest rank, a line for each size. It calls no code of
 * gradflow's, so that it shows what any program of MPI gets from settings that
 * gf-plan emits.
 *
 *	mpirun ... mpi_allreduce FROM_BYTES TO_BYTES FACTOR REPEATS
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

static int by_value(const void *a, const void *b)
{
	const double *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

static double median_s(float *data, int count, int repeats, double *times)
{
	int i;

	for (i = -1; i < repeats; i++) {
		double start, took;

		MPI_Barrier(MPI_COMM_WORLD);
		start = MPI_Wtime();
		MPI_Allreduce(MPI_IN_PLACE, data, count, MPI_FLOAT, MPI_SUM,
			      MPI_COMM_WORLD);
		took = MPI_Wtime() - start;
		MPI_Allreduce(MPI_IN_PLACE, &took, 1, MPI_DOUBLE, MPI_MAX,
			      MPI_COMM_WORLD);
		if (i >= 0)
			times[i] = took;
	}
	qsort(times, (size_t)repeats, sizeof(*times), by_value);
	return times[repeats / 2];
}

int main(int argc, char **argv)
{
	size_t from, to, factor, bytes;
	int repeats, rank;
	double *times;
	float *data;

	MPI_Init(&argc, &argv);
	if (argc != 5) {
		fprintf(stderr, "usage: %s FROM TO FACTOR REPEATS\n", argv[0]);
		MPI_Abort(MPI_COMM_WORLD, 2);
	}
	from = strtoull(argv[1], NULL, 10);
	to = strtoull(argv[2], NULL, 10);
	factor = strtoull(argv[3], NULL, 10);
	repeats = atoi(argv[4]);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	data = calloc(to / sizeof(*data) + 1, sizeof(*data));
	times = calloc((size_t)repeats, sizeof(*times));
	for (bytes = from; bytes <= to; bytes *= factor) {
		double s = median_s(data, (int)(bytes / sizeof(*data)), repeats,
				    times);

		if (rank == 0) {
			printf("%zu %.1f\n", bytes, 1e6 * s);
			fflush(stdout);
		}
	}
	free(data);
	free(times);
	MPI_Finalize();
	return 0;
}
