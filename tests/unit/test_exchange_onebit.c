/* SPDX-License-Identifier: BSD-3-Clause */
/* onebit: signs and scales, and what they weigh. */
#include "base/array.h"
#include "exchange_run.h"

static struct gf_selection selection(size_t chunk_elems)
{
	char *object = gf_xasprintf("{\"method\": \"onebit\", \"chunk_elems\": %zu}", chunk_elems);
	struct gf_selection s = test_selection_of(object);

	free(object);
	return s;
}

/* Ends of chunks and words: a scale of 4 bytes per chunk, a word per 32 signs. */
static void test_bytes(void)
{
	static const struct {
		size_t chunk, elems, bytes;
	} cases[] = {
		{4, 5, 12}, {4, 4, 8}, {1, 33, 4 * (33 + 2)}, {1024, 1024, 132}, {1024, 1025, 140},
	};
	struct gf_wire wires[GF_WIRES_MOST];
	size_t i;

	for (i = 0; i < GF_ARRAY_LENGTH(cases); i++) {
		const struct gf_tensor t = {
			.name = (char *)"t", .count_elems = cases[i].elems, .dtype = GF_F32};
		const struct gf_selection s = selection(cases[i].chunk);

		EXPECT(gf_selection_wire(&s, &t, 1, 0, wires) == 1 &&
			       wires->kind == GF_WIRE_GATHER &&
			       wires->size_bytes == (double)cases[i].bytes,
		       "case %zu: %g bytes", i, wires->size_bytes);
	}
}

static float five(int rank, size_t step, size_t i)
{
	static const float g[5] = {1, -2, 3, 0, -4};

	(void)rank;
	(void)step;
	return g[i];
}

/* The worked example: two chunks, of which the last is short, and what waits. */
static void test_example(void)
{
	static const float mean[5] = {1.5f, -1.5f, 1.5f, 1.5f, -4};
	static const float waits[5] = {-.5f, -.5f, 1.5f, -1.5f, 0};
	static const size_t counts[] = {5};
	static struct exchange_run run;
	size_t i;

	run = (struct exchange_run){
		.ranks = 2,
		.counts = counts,
		.ntensors = 1,
		.lanes = 1,
		.selection = selection(4),
		.lr = 1,
		.first_step = 1,
		.steps = 1,
		.gradient = five,
	};
	run_exchange(&run, "example");
	for (i = 0; i < 5; i++)
		EXPECT(run.weights[0][0][i] == -mean[i] && run.own[1][i] == waits[i],
		       "element %zu: %g, %g wait", i, (double)run.weights[0][0][i],
		       (double)run.own[1][i]);
	EXPECT(run.sent_bytes[0] == 12, "%zu bytes", (size_t)run.sent_bytes[0]);
}

int main(void)
{
	watchdog(60);
	test_bytes();
	test_example();
	return TEST_END();
}
