/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef GF_BASE_RNG_H
#define GF_BASE_RNG_H

#include <stddef.h>
#include <stdint.h>

/*
 * Reproducible random numbers: xoshiro256** (Blackman and Vigna, 2018) seeded through splitmix64.
 * Same seed, same numbers, on every machine. The state is plain data: a checkpoint may store it.
 * Not for cryptography.
 */
struct gf_rng {
	uint64_t state[4];
};

/* `stream` separates uses of one seed (data order, weights, dropout, ...). */
void gf_rng_init(struct gf_rng *rng, uint64_t seed, uint64_t stream);
uint64_t gf_rng_u64(struct gf_rng *rng);
/* Uniform in [0, bound), without bias; bound > 0. */
uint64_t gf_rng_below(struct gf_rng *rng, uint64_t bound);
/* Uniform in [0, 1), 53 bits. */
double gf_rng_uniform(struct gf_rng *rng);
/* Standard normal (Box-Muller; two draws each, nothing kept between calls). */
double gf_rng_normal(struct gf_rng *rng);
/* Fisher-Yates. */
void gf_rng_shuffle(struct gf_rng *rng, size_t *items, size_t count);

#endif
