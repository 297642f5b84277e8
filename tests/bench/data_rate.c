/* SPDX-License-Identifier: BSD-3-Clause */
/* Images per second that a loader makes of a folder of JPEG files:
 * data_rate FOLDER THREADS SECONDS (tests/bench/data.sh). */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "data/loader.h"

#define SIDE  224
#define BATCH 32

int main(int argc, char **argv)
{
	const struct gf_dataset_want want = {.input = {3, {3, SIDE, SIDE}}};
	struct gf_dataset d;
	struct gf_error err;
	struct gf_loader *l;
	const struct gf_batch *batch;
	double began_s = 0, until_s;
	size_t step, images = 0;

	if (argc != 4 || gf_dataset_open(argv[1], &want, &d, &err)) {
		fprintf(stderr, "data_rate: %s\n",
			argc == 4 ? err.text : "want FOLDER THREADS SECONDS");
		return 2;
	}
	l = gf_loader_new(&(struct gf_loader_config){
		.data = &d,
		.augment = {.flip = true, .area = 0.08},
		.batch = BATCH,
		.accumulate = 1,
		.ranks = 1,
		.seed = 1,
		.threads = (size_t)atoi(argv[2]),
	});
	until_s = HUGE_VAL;
	for (step = 1; gf_clock_s() < until_s; step++) {
		if (gf_loader_take(l, step, 0, &batch, &err)) {
			fprintf(stderr, "data_rate: %s\n", err.text);
			return 2;
		}
		if (step == 4) { /* files are in memory, threads at work */
			began_s = gf_clock_s();
			until_s = began_s + atof(argv[3]);
		}
		images += step > 4 ? BATCH : 0;
	}
	printf("%.1f\n", (double)images / (gf_clock_s() - began_s));
	gf_loader_free(l);
	gf_dataset_close(&d);
	return 0;
}
