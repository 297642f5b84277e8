/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Ranks that are plain processes: they find each other in a folder that all of them see, or at
 * host:port, where rank 0 listens. No mpirun, no MPI call.
 *
 *	cc joined.c $(pkg-config --cflags --libs gradflow) -o joined
 *	for r in 0 1 2; do ./joined /shared/job-1 $r 3 & done; wait
 *
 * If a rank dies, the others end with a line that names it.
 */
#include <gradflow.h>
#include <stdio.h>
#include <stdlib.h>

#define COUNT ((size_t)1 << 20)

int main(int argc, char **argv)
{
	const struct gradflow_tensor tensor = {"w", 1, {COUNT}};
	struct gradflow_exchange_options options;
	float *grads = malloc(COUNT * sizeof(*grads));
	struct gradflow_gradient made = {0, grads, COUNT, GRADFLOW_F32};
	struct gradflow_exchange *x = NULL;
	int rc = gradflow_exchange_options_init(&options, sizeof(options));

	if (argc != 4 || !grads) {
		fprintf(stderr, "usage: joined PLACE RANK RANKS\n");
		return 2;
	}
	options.meet = GRADFLOW_MEET_PLACE;
	options.place = argv[1];
	options.rank = atoi(argv[2]);
	options.ranks = atoi(argv[3]);
	options.timeout_s = 10;
	if (rc == 0)
		rc = gradflow_exchange_open(&tensor, 1, &options, &x);
	for (int step = 1; rc == 0 && step <= 10; step++) {
		for (size_t i = 0; i < COUNT; i++)
			grads[i] = (float)(options.rank + step);
		rc = gradflow_exchange_post(x, &made, 1);
		if (rc == 0)
			rc = gradflow_exchange_wait(x, GRADFLOW_ALL);
	}
	if (rc < 0)
		fprintf(stderr, "joined: %s\n", gradflow_error());
	else if (options.rank == 0)
		printf("the mean of the last step is %g\n", grads[COUNT - 1]);
	gradflow_exchange_close(x);
	free(grads);
	return rc < 0;
}
