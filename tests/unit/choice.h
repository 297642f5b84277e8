/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef GF_TESTS_CHOICE_H
#define GF_TESTS_CHOICE_H

#include <math.h>

#include "base/rng.h"

/* Values that a kernel chooses the largest of: element i. */
static struct gf_rng rng;

static float normal(size_t i)
{
	(void)i;
	return (float)gf_rng_normal(&rng);
}

static float equal(size_t i)
{
	return i % 2 ? 3.0f : -3.0f;
}

static float few(size_t i)
{
	(void)i;
	return (float)gf_rng_below(&rng, 5) - 2;
}

static float rising(size_t i)
{
	return (float)i;
}

static float falling(size_t i)
{
	return -1.0f / (float)(i + 1);
}

static float zero(size_t i)
{
	(void)i;
	return 0;
}

static float last(size_t i)
{
	return i > 29000 ? (float)i : 0;
}

/* Large exactly where the sample of 30,011 values looks: it promises too much, and everything must
 * be listed. */
static float treacherous(size_t i)
{
	return i % 14 < 4 ? 100 : (float)gf_rng_uniform(&rng);
}

static float strange(size_t i)
{
	static const float values[] = {NAN, -INFINITY, 0x1p-149f, -0.0f, 1e38f};

	return i % 3 ? (float)gf_rng_normal(&rng) : values[i / 3 % 5];
}

static const struct {
	const char *name;
	float (*value)(size_t i);
} shapes[] = {
	{"normal", normal},   {"equal", equal},     {"few", few},
	{"rising", rising},   {"falling", falling}, {"zero", zero},
	{"strange", strange}, {"last", last},       {"treacherous", treacherous},
};

#endif
