/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A program with its own loop and its own optimiser: a line is fitted to points by SGD with
 * momentum on the mean gradient. Each rank has other points.
 *
 *	cc own_loop.c $(pkg-config --cflags --libs gradflow) -o own_loop
 *	mpirun -np 4 ./own_loop [PLAN]
 */
#include <gradflow.h>
#include <stdio.h>

enum { SLOPE, OFFSET, TENSORS };

static const struct gradflow_tensor tensors[TENSORS] = {
	{"slope", 1, {1}},
	{"offset", 1, {1}},
};

/* Of half the mean squared error at this rank's points of y = 3x - 1. */
static void backward(int rank, const float *w, float *grads)
{
	grads[SLOPE] = grads[OFFSET] = 0;
	for (int i = 0; i < 8; i++) {
		float x = (float)(i - 4 + rank % 2) / 4;
		float error = w[SLOPE] * x + w[OFFSET] - (3 * x - 1);

		grads[SLOPE] += error * x / 8;
		grads[OFFSET] += error / 8;
	}
}

static int fit(struct gradflow_exchange *x, float *w)
{
	float grads[TENSORS], velocity[TENSORS] = {0};
	int rc = 0;

	for (int step = 0; rc == 0 && step < 200; step++) {
		backward(gradflow_exchange_rank(x), w, grads);
		for (size_t i = 0; rc == 0 && i < TENSORS; i++) {
			struct gradflow_gradient made = {i, &grads[i], 1, GRADFLOW_F32};

			rc = gradflow_exchange_post(x, &made, 1);
		}
		if (rc == 0)
			rc = gradflow_exchange_wait(x, GRADFLOW_ALL);
		for (size_t i = 0; rc == 0 && i < TENSORS; i++) {
			velocity[i] = 0.9f * velocity[i] + grads[i];
			w[i] -= 0.1f * velocity[i];
		}
	}
	return rc;
}

int main(int argc, char **argv)
{
	struct gradflow_exchange_options options;
	struct gradflow_exchange *x = NULL;
	float w[TENSORS] = {0};
	int rc = gradflow_exchange_options_init(&options, sizeof(options));

	options.plan = argc > 1 ? argv[1] : NULL;
	options.timeout_s = 60;
	if (rc == 0)
		rc = gradflow_exchange_open(tensors, TENSORS, &options, &x);
	if (rc == 0)
		rc = fit(x, w);
	if (rc < 0)
		fprintf(stderr, "own_loop: %s\n", gradflow_error());
	else if (gradflow_exchange_rank(x) == 0)
		printf("y = %.3f x + %.3f\n", w[SLOPE], w[OFFSET]);
	gradflow_exchange_close(x);
	return rc < 0;
}
