/* SPDX-License-Identifier: BSD-3-Clause */
/* Runs a fuzz target under libFuzzer, which brings its own main. Half of the changes are those of
 * harness.c, which know what a value of a document is. */
#include <stdint.h>

#include "harness.h"

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t most, unsigned int seed);
size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t most);

static struct harness_inputs inputs;

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	size_t corpus;

	(void)argc;
	harness_load((*argv)[0], &inputs, &corpus);
	return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *copy = gf_xmalloc(size + 1);

	if (size)
		memcpy(copy, data, size);
	copy[size] = '\0';
	harness_try(copy, size);
	free(copy);
	return 0;
}

/* One in 16 begins anew with a seed: libFuzzer knows of the corpus alone. */
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t most, unsigned int seed)
{
	struct gf_text t = {0};
	struct gf_rng rng;
	const struct harness_input *one;

	gf_rng_init(&rng, seed, 1);
	if (!inputs.count || gf_rng_below(&rng, 2))
		return LLVMFuzzerMutate(data, size, most);
	one = &inputs.items[gf_rng_below(&rng, inputs.count)];
	if (gf_rng_below(&rng, 8) == 0)
		gf_text_add(&t, one->data, one->size);
	else
		gf_text_add(&t, (const char *)data, size);
	harness_mutate(&t, &inputs, &rng);
	if (t.length < most)
		most = t.length;
	memcpy(data, t.data, most);
	gf_text_release(&t);
	return most;
}
