/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * DiLoCo between ranks on slow links: each fits a line to points of its own by SGD, and every H
 * steps the mean of how far the ranks have come is a gradient for an outer step with Nesterov's
 * momentum. RATE 1 and MOMENTUM 0 are local SGD. An exchange takes changes of parameters as it
 * takes gradients.
 *
 *	cc periods.c $(pkg-config --cflags --libs gradflow) -o periods
 *	mpirun -np 4 ./periods [PLAN]
 */
#include <gradflow.h>
#include <stdio.h>
#include <string.h>

enum { SLOPE, OFFSET, TENSORS, STEPS = 1000, H = 20 };
static const float RATE = 0.7f, MOMENTUM = 0.9f;

static const struct gradflow_tensor tensors[TENSORS] = {
	{"slope", 1, {1}},
	{"offset", 1, {1}},
};

/* SGD's step on half the mean squared error at this rank's points of
 * y = 3x - 1. */
static void step(int rank, float *x)
{
	float slope = 0, offset = 0;

	for (int i = 0; i < 8; i++) {
		float at = (float)(i - 4 + rank % 2) / 4;
		float error = x[SLOPE] * at + x[OFFSET] - (3 * at - 1);

		slope += error * at / 8;
		offset += error / 8;
	}
	x[SLOPE] -= 0.1f * slope;
	x[OFFSET] -= 0.1f * offset;
}

/* Moves the parameters w that all ranks share, by what became of them. */
static int outer_step(struct gradflow_exchange *exchange, const float *x, float *w, float *velocity)
{
	float change[TENSORS];
	struct gradflow_gradient made[TENSORS];
	int rc;

	for (size_t i = 0; i < TENSORS; i++) {
		change[i] = w[i] - x[i];
		made[i] = (struct gradflow_gradient){i, &change[i], 1, GRADFLOW_F32};
	}
	rc = gradflow_exchange_post(exchange, made, TENSORS);
	if (rc == 0)
		rc = gradflow_exchange_wait(exchange, GRADFLOW_ALL);
	for (size_t i = 0; rc == 0 && i < TENSORS; i++) {
		velocity[i] = MOMENTUM * velocity[i] + change[i];
		w[i] -= RATE * (change[i] + MOMENTUM * velocity[i]);
	}
	return rc;
}

int main(int argc, char **argv)
{
	struct gradflow_exchange_options options;
	struct gradflow_exchange *exchange = NULL;
	float x[TENSORS] = {0}, w[TENSORS] = {0}, velocity[TENSORS] = {0};
	int rc = gradflow_exchange_options_init(&options, sizeof(options));

	options.plan = argc > 1 ? argv[1] : NULL;
	options.timeout_s = 60;
	if (rc == 0)
		rc = gradflow_exchange_open(tensors, TENSORS, &options, &exchange);
	for (int i = 1; rc == 0 && i <= STEPS; i++) {
		step(gradflow_exchange_rank(exchange), x);
		if (i % H)
			continue;
		rc = outer_step(exchange, x, w, velocity);
		memcpy(x, w, sizeof(x));
	}
	if (rc < 0)
		fprintf(stderr, "periods: %s\n", gradflow_error());
	else if (gradflow_exchange_rank(exchange) == 0)
		printf("y = %.3f x + %.3f after %d exchanges\n", w[SLOPE], w[OFFSET],
		       (int)gradflow_exchange_steps(exchange));
	gradflow_exchange_close(exchange);
	return rc < 0;
}
