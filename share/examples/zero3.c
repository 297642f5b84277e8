/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A program that keeps shards (ZeRO stage 3): each rank keeps a part of the parameters and of the
 * optimiser's state. Parameters are gathered for a step, and the mean gradients of a part come to
 * the rank that keeps it. A polynomial is fitted to points; each rank has other points.
 *
 *	cc zero3.c $(pkg-config --cflags --libs gradflow) -o zero3
 *	mpirun -np 2 ./zero3 [PLAN]
 */
#include <gradflow.h>
#include <stdio.h>

#define TERMS 3

static const struct gradflow_tensor unit = {"terms", 1, {TERMS}};

/* Of half the mean squared error at this rank's points of y = 3 - x + 2x^2. */
static void backward(int rank, const float *w, float *grads)
{
	for (int k = 0; k < TERMS; k++)
		grads[k] = 0;
	for (int i = 0; i < 16; i++) {
		float x = (float)(i - 8 + rank % 2) / 8, error = x - 3 - 2 * x * x, power = 1;

		for (int k = 0; k < TERMS; k++, power *= x)
			error += w[k] * power;
		power = 1;
		for (int k = 0; k < TERMS; k++, power *= x)
			grads[k] += error * power / 16;
	}
}

static int fit(struct gradflow_exchange *x, float *w)
{
	const int rank = gradflow_exchange_rank(x), ranks = gradflow_exchange_ranks(x);
	/* equal parts in the order of ranks; the first ones have an element more */
	const int first = rank * (TERMS / ranks) + (rank < TERMS % ranks ? rank : TERMS % ranks);
	const int count = TERMS / ranks + (rank < TERMS % ranks);
	float grads[TERMS], velocity[TERMS] = {0};
	struct gradflow_half gather = {0, w, TERMS, GRADFLOW_F32};
	struct gradflow_half scatter = {0, grads, TERMS, GRADFLOW_F32};
	uint64_t number;
	int rc = 0;

	for (int step = 0; rc == 0 && step < 1000; step++) {
		rc = gradflow_all_gather(x, &gather, &number);
		rc = rc ? rc : gradflow_exchange_wait_half(x, number);
		if (rc == 0)
			backward(rank, w, grads);
		rc = rc ? rc : gradflow_reduce_scatter(x, &scatter, &number);
		rc = rc ? rc : gradflow_exchange_wait_half(x, number);
		for (int k = first; rc == 0 && k < first + count; k++) {
			velocity[k] = 0.9f * velocity[k] + grads[k];
			w[k] -= 0.1f * velocity[k];
		}
	}
	rc = rc ? rc : gradflow_all_gather(x, &gather, &number);
	return rc ? rc : gradflow_exchange_wait_half(x, number);
}

int main(int argc, char **argv)
{
	struct gradflow_exchange_options options;
	struct gradflow_exchange *x = NULL;
	float w[TERMS] = {0};
	int rc = gradflow_exchange_options_init(&options, sizeof(options));

	options.plan = argc > 1 ? argv[1] : NULL;
	options.timeout_s = 60;
	options.halves = 1;
	if (rc == 0)
		rc = gradflow_exchange_open(&unit, 1, &options, &x);
	if (rc == 0)
		rc = fit(x, w);
	if (rc < 0)
		fprintf(stderr, "zero3: %s\n", gradflow_error());
	else if (gradflow_exchange_rank(x) == 0)
		printf("y = %.2f %+.2f x %+.2f x^2\n", w[0], w[1], w[2]);
	gradflow_exchange_close(x);
	return rc < 0;
}
