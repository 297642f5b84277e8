/* SPDX-License-Identifier: BSD-3-Clause */
/* Gradients that are not finite: wherever one is, all ranks name it, and the step leaves no trace:
 * the run goes on as if it had not been. */
#include <math.h>
#include <string.h>

#include "base/array.h"
#include "exchange_run.h"
#include "selections.h"

static float noise(int rank, size_t step, size_t i)
{
	return run_noise(rank, step, i, 20);
}

/* Of one run at a time. */
static size_t bad_element;
static float bad_value;

static float spoilt(int rank, size_t step, size_t i)
{
	return step == 4 && rank == 1 && i == bad_element ? bad_value : noise(rank, step, i);
}

static float unspoilt(int rank, size_t step, size_t i)
{
	return noise(rank, step >= 4 ? step + 1 : step, i);
}

static const struct {
	const char *selection;
	bool finds_element; /* not only the tensor */
} cases[] = {
	{"plain", true},         {"gathered: small", true},
	{"merged: small", true}, {"merged: conserve, small", true},
	{"merged: naive", true}, {"pieces: spoilt", false},
};

/* Tensors of 60, 7 and 33 elements. */
static const size_t counts[] = {60, 7, 33};
static const struct {
	size_t element, tensor, in_tensor;
} places[] = {{0, 0, 0}, {59, 0, 59}, {60, 1, 0}, {66, 1, 6}, {67, 2, 0}, {99, 2, 32}};

static void check(size_t c, size_t p)
{
	static struct exchange_run run, want;
	const char *what = cases[c].selection;
	size_t element = places[p].element;

	run = (struct exchange_run){
		.ranks = 3,
		.counts = counts,
		.ntensors = GF_ARRAY_LENGTH(counts),
		.lanes = 1,
		.selection = test_selection(cases[c].selection),
		.momentum = .5,
		.lr = .25,
		.first_step = 1,
		.steps = 9,
		.gradient = spoilt,
	};
	bad_element = element;
	bad_value = p % 2 ? INFINITY : NAN;
	want = run;
	want.gradient = unspoilt;
	want.steps = 8;
	run_exchange(&run, "spoilt");
	run_exchange(&want, "unspoilt");
	EXPECT(run.bad[0].found && run.bad[0].tensor == places[p].tensor,
	       "%s, element %zu: tensor %zu", what, element, run.bad[0].tensor);
	EXPECT(!cases[c].finds_element || run.bad[0].element == places[p].in_tensor,
	       "%s, element %zu: %zu of its tensor", what, element, run.bad[0].element);
	EXPECT(!memcmp(run.weights[0][8], want.weights[0][7], 100 * sizeof(float)),
	       "%s, element %zu left a trace", what, element);
	EXPECT(!memcmp(run.own, want.own, sizeof(run.own)), "%s, element %zu in a rank's own state",
	       what, element);
}

int main(void)
{
	size_t c, p;

	watchdog(250);
	for (c = 0; c < GF_ARRAY_LENGTH(cases); c++)
		for (p = 0; p < GF_ARRAY_LENGTH(places); p++)
			check(c, p);
	return TEST_END();
}
