/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef GF_TESTS_FUZZ_HARNESS_H
#define GF_TESTS_FUZZ_HARNESS_H

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/error.h"
#include "base/heap.h"
#include "base/rng.h"
#include "base/text.h"

/*
 * A fuzz target feeds bytes to the readers of one kind of input. Each file fuzz_NAME.c defines one.
 * Two programs run it: driver.c, which mutates by itself, and libFuzzer (libfuzzer.c), which is led
 * by coverage. Both begin with the seeds and with tests/fuzz/corpus/NAME.
 *
 * A target must do the same with the same bytes. What it draws, it draws from `rng`, whose seed is
 * made of the bytes.
 */
struct harness {
	/* Files of the source tree to begin with: patterns, NULL-ended. */
	const char *const *seeds;
	size_t most_bytes; /* of an input; 0: 16 KiB */
	/* There is a NUL after the bytes. Returns whether they were accepted; calls harness_fail if
	 * what must hold does not. */
	bool (*try)(const char *data, size_t size, struct gf_rng *rng);
};

extern const struct harness harness; /* of the program's target */

/* Prints what did not hold and the input, and aborts. */
_Noreturn void harness_fail(const char *what, const char *why);
/* A refusal must be one line; it begins with that text (optional). */
void harness_expect_line(const struct gf_error *err, const char *begins);

/* Writes a file for readers that want one; its path is valid until the next call with that name. */
const char *harness_put(const char *name, const void *data, size_t size);
/* The folder of those files. */
const char *harness_folder(void);

/* --- for the two programs ------------------------------------------------- */

struct harness_input {
	char *data; /* a NUL after it */
	size_t size;
};

struct harness_inputs {
	struct harness_input *items;
	size_t count, capacity;
};

/* What the target begins with; `corpus` is its kept inputs' share, at the front. */
void harness_load(const char *program, struct harness_inputs *in, size_t *corpus);
void harness_release(struct harness_inputs *in);
/* One input through the target. */
bool harness_try(const char *data, size_t size);
/* Changes the text in one place; `in` has pieces of others. */
void harness_mutate(struct gf_text *t, const struct harness_inputs *in, struct gf_rng *rng);

#endif
