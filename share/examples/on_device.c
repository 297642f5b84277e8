/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Gradients in a GPU's memory, one GPU per rank: messages go by NCCL after the
 * work that makes the gradients, and the stream waits for the means.
 *
 *	cc on_device.c $(pkg-config --cflags --libs gradflow) -lcudart \
 *		-o on_device
 *	mpirun -np 2 ./on_device
 */
#include <cuda_runtime_api.h>
#include <gradflow.h>
#include <stdio.h>
#include <stdlib.h>

#define COUNT ((size_t)1 << 20)

static const struct gradflow_tensor tensors[] = {
	{"head", 1, {COUNT / 4}},
	{"body", 2, {3, COUNT / 4}},
};

/* Rank r's gradients are r + step; the host looks at the last mean. */
static int train(struct gradflow_exchange *x, cudaStream_t stream, float *grads, float *host)
{
	const struct gradflow_gradient made[] = {
		{0, grads, COUNT / 4, GRADFLOW_F32},
		{1, grads + COUNT / 4, 3 * (COUNT / 4), GRADFLOW_F32},
	};
	int rank = gradflow_exchange_rank(x), rc = 0;

	for (int step = 1; rc == 0 && step <= 10; step++) {
		for (size_t i = 0; i < COUNT; i++)
			host[i] = (float)(rank + step);
		cudaMemcpyAsync(grads, host, COUNT * sizeof(*host), cudaMemcpyHostToDevice, stream);
		rc = gradflow_exchange_post(x, made, 2);
		if (rc == 0)
			rc = gradflow_exchange_wait(x, GRADFLOW_ALL);
		/* an optimiser's kernels would follow here, on the stream */
		cudaMemcpyAsync(host, grads, COUNT * sizeof(*host), cudaMemcpyDeviceToHost, stream);
		cudaStreamSynchronize(stream);
	}
	return rc;
}

int main(void)
{
	const char *local = getenv("OMPI_COMM_WORLD_LOCAL_RANK");
	const int device = local ? atoi(local) : 0;
	struct gradflow_exchange_options options;
	float *grads = NULL, *host = malloc(COUNT * sizeof(*host));
	struct gradflow_exchange *x = NULL;
	cudaStream_t stream;
	cudaError_t cuda = cudaSetDevice(device);
	int rc = gradflow_exchange_options_init(&options, sizeof(options));

	if (cuda == cudaSuccess)
		cuda = cudaStreamCreate(&stream);
	if (cuda == cudaSuccess)
		cuda = cudaMalloc((void **)&grads, COUNT * sizeof(*grads));
	if (cuda != cudaSuccess || !host) {
		fprintf(stderr, "on_device: %s\n", cudaGetErrorString(cuda));
		return 1;
	}
	options.timeout_s = 60;
	options.on_device = 1;
	options.device = device;
	options.stream = stream;
	if (rc == 0)
		rc = gradflow_exchange_open(tensors, 2, &options, &x);
	if (rc == 0)
		rc = train(x, stream, grads, host);
	if (rc < 0)
		fprintf(stderr, "on_device: %s\n", gradflow_error());
	else if (gradflow_exchange_rank(x) == 0)
		printf("the mean of the last step is %g\n", host[COUNT - 1]);
	gradflow_exchange_close(x);
	cudaFree(grads);
	free(host);
	return rc < 0;
}
