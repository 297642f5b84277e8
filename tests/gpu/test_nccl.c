/* SPDX-License-Identifier: BSD-3-Clause */
/* What test_device_lane does on fakes, by NCCL: a rank to a GPU, as many as there are, each on a
 * thread of its own. */
#include "lane_test.h"

#include "../unit/ranks.h"

#define MOST_GPUS 8

static const struct gf_nccl_ops *nccl;

static void body(struct gf_comm *comm, void *ctx)
{
	struct gf_gpu *gpu = NULL;
	struct gf_error err = {""};

	(void)ctx;
	if (gf_gpu_open(comm->rank, &gpu, &err)) {
		printf("rank %d: %s\n", comm->rank, err.text);
		exit(1);
	}
	lane_test_all(comm, gpu, nccl);
	gf_gpu_close(gpu);
}

int main(void)
{
	struct gf_error why = {""};
	int gpus = gf_gpu_count(&why);

	if (!gpus || gf_nccl_load(&nccl, &why)) {
		printf("%s\n", why.text);
		return 77;
	}
	watchdog(240);
	gpus = gpus < MOST_GPUS ? gpus : MOST_GPUS;
	on_ranks(1, body, NULL);
	if (gpus > 1)
		on_ranks(gpus, body, NULL);
	printf("NCCL %d, ranks on 1 and on %d GPUs\n", nccl->version, gpus);
	return TEST_END();
}
