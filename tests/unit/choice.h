/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef GF_TESTS_CHOICE_H
#define GF_TESTS_CHOICE_H

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

#endif
