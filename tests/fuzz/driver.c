/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Runs a fuzz target without libFuzzer:
 *
 *	fuzz_NAME [--seconds N] [--seed N] [FILE...]
 *
 * The kept inputs come first, as they are; then seeds and kept inputs with up to three changes. The
 * same seed tries the same inputs in the same order: seconds only say when to stop. Files: these
 * alone, as they are.
 */
#include "base/clock.h"
#include "base/file.h"
#include "base/units.h"
#include "harness.h"

static bool try_changed(const struct harness_inputs *in, struct gf_rng *rng)
{
	const struct harness_input *one = &in->items[gf_rng_below(rng, in->count)];
	size_t rounds = gf_rng_below(rng, 4);
	struct gf_text t = {0};
	bool accepted;

	gf_text_add(&t, one->data, one->size);
	while (rounds--)
		harness_mutate(&t, in, rng);
	accepted = harness_try(t.data, t.length);
	gf_text_release(&t);
	return accepted;
}

static int try_files(char **paths)
{
	struct gf_error err = {""};
	size_t size;
	char *data;

	for (; *paths; paths++) {
		if (gf_file_read(*paths, &data, &size, &err)) {
			printf("%s\n", err.text);
			return 1;
		}
		printf("%s: %s\n", *paths, harness_try(data, size) ? "accepted" : "refused");
		free(data);
	}
	return 0;
}

int main(int argc, char **argv)
{
	struct harness_inputs in = {0};
	long long seconds = 3, seed = 1;
	size_t tried, accepted = 0, corpus, i;
	struct gf_rng rng;
	double end_s;
	int a;

	for (a = 1; a + 1 < argc && strncmp(argv[a], "--", 2) == 0; a += 2) {
		if (strcmp(argv[a], "--seconds") == 0)
			gf_units_int(argv[a + 1], 0, 1000000, &seconds, NULL);
		else if (strcmp(argv[a], "--seed") == 0)
			gf_units_int(argv[a + 1], 0, 1000000, &seed, NULL);
	}
	if (a < argc)
		return try_files(argv + a);
	harness_load(argv[0], &in, &corpus);
	if (!in.count) {
		printf("nothing to begin with\n");
		return 1;
	}
	gf_rng_init(&rng, (uint64_t)seed, 0);
	end_s = gf_clock_s() + (double)seconds;
	for (i = 0; i < in.count; i++)
		accepted += harness_try(in.items[i].data, in.items[i].size);
	tried = in.count;
	/* a whole number of rounds, so that at least one always runs */
	do {
		for (i = 0; i < 100; i++)
			accepted += try_changed(&in, &rng);
		tried += 100;
	} while (gf_clock_s() < end_s);
	printf("%zu inputs tried, %zu accepted; %zu are kept ones\n", tried, accepted, corpus);
	harness_release(&in);
	return accepted > 0 ? 0 : 1;
}
