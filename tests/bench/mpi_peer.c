/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The all-reduce of an MPI library alone, for libraries that cannot share a process with gradflow's
 * MPI: compiled by the library's own wrapper, run in turns with the other contestants (run.sh
 * contestants).
 *
 *	mpi_peer LABEL REPEATS BYTES...
 *
 * Rank 0 prints "LABEL BYTES SECONDS", the median over the repeats of the slowest rank's time, in
 * place, after repeats that do not count.
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int ascending(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static double once(float *data, int count)
{
	double mine, most;

	memset(data, 0, (size_t)count * sizeof(*data));
	MPI_Barrier(MPI_COMM_WORLD);
	mine = MPI_Wtime();
	MPI_Allreduce(MPI_IN_PLACE, data, count, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
	mine = MPI_Wtime() - mine;
	MPI_Allreduce(&mine, &most, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
	return most;
}

static double median(float *data, int count, int repeats)
{
	double *times = calloc((size_t)repeats, sizeof(*times)), value;
	int i;

	for (i = -2 - repeats / 4; i < repeats; i++) {
		value = once(data, count);
		if (i >= 0)
			times[i] = value;
	}
	qsort(times, (size_t)repeats, sizeof(*times), ascending);
	value = times[repeats / 2];
	free(times);
	return value;
}

int main(int argc, char **argv)
{
	int rank, i, repeats;

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	if (argc < 4) {
		if (rank == 0)
			fprintf(stderr, "mpi_peer: want LABEL REPEATS BYTES\n");
		MPI_Abort(MPI_COMM_WORLD, 2);
	}
	repeats = atoi(argv[2]);
	for (i = 3; i < argc; i++) {
		size_t bytes = strtoull(argv[i], NULL, 10);
		float *data = malloc(bytes);
		/* repeats of large messages are few */
		int n = bytes > 1 << 20 ? repeats / 4 + 1 : repeats;
		double time_s = median(data, (int)(bytes / sizeof(*data)), n);

		if (rank == 0)
			printf("%s %zu %.9f\n", argv[1], bytes, time_s);
		free(data);
	}
	MPI_Finalize();
	return 0;
}
