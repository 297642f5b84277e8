/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/rng.h"

#include <assert.h>
#include <math.h>

static uint64_t splitmix64(uint64_t *x)
{
	uint64_t z = (*x += 0x9e3779b97f4a7c15u);

	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
	return z ^ (z >> 31);
}

static uint64_t rotl(uint64_t x, int k)
{
	return (x << k) | (x >> (64 - k));
}

void gf_rng_init(struct gf_rng *rng, uint64_t seed, uint64_t stream)
{
	uint64_t mixed = stream, x;

	x = seed ^ splitmix64(&mixed);
	for (int i = 0; i < 4; i++)
		rng->state[i] = splitmix64(&x);
}

uint64_t gf_rng_u64(struct gf_rng *rng)
{
	uint64_t *s = rng->state;
	uint64_t result = rotl(s[1] * 5, 7) * 9;
	uint64_t t = s[1] << 17;

	s[2] ^= s[0];
	s[3] ^= s[1];
	s[1] ^= s[2];
	s[0] ^= s[3];
	s[2] ^= t;
	s[3] = rotl(s[3], 45);
	return result;
}

uint64_t gf_rng_below(struct gf_rng *rng, uint64_t bound)
{
	uint64_t limit, x;

	assert(bound > 0);
	limit = UINT64_MAX - UINT64_MAX % bound;
	do
		x = gf_rng_u64(rng);
	while (x >= limit);
	return x % bound;
}

double gf_rng_uniform(struct gf_rng *rng)
{
	return (double)(gf_rng_u64(rng) >> 11) * 0x1p-53;
}

double gf_rng_normal(struct gf_rng *rng)
{
	double u = 1.0 - gf_rng_uniform(rng); /* (0, 1]: log is finite */
	double v = gf_rng_uniform(rng);

	return sqrt(-2.0 * log(u)) * cos(6.283185307179586 * v);
}

void gf_rng_shuffle(struct gf_rng *rng, size_t *items, size_t count)
{
	for (size_t i = count; i > 1; i--) {
		size_t j = (size_t)gf_rng_below(rng, i);
		size_t swap = items[i - 1];

		items[i - 1] = items[j];
		items[j] = swap;
	}
}
