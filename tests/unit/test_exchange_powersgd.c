/* SPDX-License-Identifier: BSD-3-Clause */
/* powersgd: the matrices that tensors are, and where their approximation begins. */
#include "base/array.h"
#include "exchange_run.h"

static struct gf_selection selection(const char *keys)
{
	char *object = gf_xasprintf("{\"method\": \"powersgd\", %s}", keys);
	struct gf_selection s = test_selection_of(object);

	free(object);
	return s;
}

static size_t conv[] = {64, 64, 3, 3}, vector[] = {64};
static size_t wide[] = {1, 900}, tall[] = {1000, 1};

/* Rank 2: twice the rows, then twice the columns; 0: it goes as it is. */
static void test_matrices(void)
{
	static const struct {
		struct gf_tensor tensor;
		const char *min_compression;
		size_t rows, cols;
	} cases[] = {
		{{.count_elems = 36864, .shape = conv, .nshape = 4}, "2", 64, 576},
		{{.count_elems = 36864, .shape = conv, .nshape = 4}, "28.8", 0, 0},
		{{.count_elems = 36864, .shape = conv, .nshape = 4}, "28.7", 64, 576},
		{{.count_elems = 64, .shape = vector, .nshape = 1}, "1", 0, 0},
		{{.count_elems = 900, .shape = wide, .nshape = 2}, "1", 0, 0},
		{{.count_elems = 1000, .shape = tall, .nshape = 2}, "1", 0, 0},
		/* shapes that nobody knows */
		{{.count_elems = 600}, "1", 24, 25},
		{{.count_elems = 10007}, "1", 0, 0},
		{{.count_elems = 1}, "1", 0, 0},
		{{.count_elems = (size_t)1 << 60}, "1", (size_t)1 << 30, (size_t)1 << 30},
	};
	struct gf_wire wires[GF_WIRES_MOST];
	size_t i, n;

	for (i = 0; i < GF_ARRAY_LENGTH(cases); i++) {
		char *keys = gf_xasprintf("\"rank\": 2, \"min_compression\": %s",
					  cases[i].min_compression);
		const struct gf_selection s = selection(keys);

		n = gf_selection_wire(&s, &cases[i].tensor, 1, 0, wires);
		EXPECT(cases[i].rows
			       ? n == 2 && wires[0].count_elems == 2. * (double)cases[i].rows &&
					 wires[1].count_elems == 2. * (double)cases[i].cols
			       : n == 1 && wires[0].count_elems ==
						   (double)cases[i].tensor.count_elems,
		       "case %zu: %zu wires, %g elements", i, n, wires[0].count_elems);
		free(keys);
	}
}

/* The worked example: a matrix and a vector in one message. */
static void test_message(void)
{
	const struct gf_tensor message[] = {
		{.count_elems = 36864, .shape = conv, .nshape = 4},
		{.count_elems = 64, .shape = vector, .nshape = 1},
	};
	const struct gf_selection s = selection("\"rank\": 2, \"min_compression\": 2");
	struct gf_wire wires[GF_WIRES_MOST];

	EXPECT(gf_selection_wire(&s, message, 2, 0, wires) == 2, "two");
	EXPECT(wires[0].count_elems == 192 && wires[1].count_elems == 1152, "%g, %g",
	       wires[0].count_elems, wires[1].count_elems);
}

/* The same matrix in two tensors, of 16 x 16. */
static float twice(int rank, size_t step, size_t i)
{
	(void)rank;
	return run_noise(0, step, i % 256, 20);
}

/* Each tensor begins with random numbers of its own, the same each time. */
static void test_start(void)
{
	static const size_t counts[] = {256, 256};
	static struct exchange_run run, again;

	run = (struct exchange_run){
		.ranks = 2,
		.counts = counts,
		.ntensors = 2,
		.lanes = 1,
		.selection = selection("\"rank\": 2, \"warm_start\": false"),
		.lr = 1,
		.first_step = 1,
		.steps = 2,
		.gradient = twice,
	};
	again = run;
	run_exchange(&run, "start");
	run_exchange(&again, "again");
	EXPECT(!memcmp(run.weights[0], again.weights[0], 2 * sizeof(run.weights[0][0])),
	       "the same again");
	EXPECT(memcmp(run.weights[0][0], run.weights[0][0] + 256, 256 * sizeof(float)) != 0,
	       "another tensor");
}

/* Nothing in the first step, and then noise. */
static float late(int rank, size_t step, size_t i)
{
	return step == 1 ? 0 : run_noise(rank, step, i, 20);
}

/* A step of zeros does not end what follows. */
static void test_zeros(void)
{
	static const size_t counts[] = {256};
	static struct exchange_run run;
	size_t i, moved = 0;

	run = (struct exchange_run){
		.ranks = 2,
		.counts = counts,
		.ntensors = 1,
		.lanes = 1,
		.selection = selection("\"rank\": 2"),
		.lr = 1,
		.first_step = 1,
		.steps = 3,
		.gradient = late,
	};
	run_exchange(&run, "a step of zeros");
	for (i = 0; i < counts[0]; i++)
		moved += run.weights[0][2][i] != run.weights[0][0][i];
	EXPECT(moved > counts[0] / 2, "%zu of %zu weights have moved", moved, counts[0]);
}

int main(void)
{
	watchdog(60);
	test_matrices();
	test_message();
	test_start();
	test_zeros();
	return TEST_END();
}
