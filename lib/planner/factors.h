/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef GF_PLANNER_FACTORS_H
#define GF_PLANNER_FACTORS_H

#include <stdbool.h>
#include <stddef.h>

#include "documents/plan.h"
#include "documents/topology.h"

/*
 * The ways to write a number of ranks as an ordered product, with an algorithm per factor: ring,
 * halving where the factor is a power of two, and shm where it is exactly the ranks of a host.
 */
struct gf_factor_rules {
	int ranks;
	const struct gf_level *levels; /* for shm; or NULL */
	size_t nlevels;
	/* Factors; fewest 0: 2, or 1 within one host. Less than most where there would be too many
	 * ways to price: 10,000, and fewer above 160,000 ranks. */
	size_t fewest, most;
	bool rings_only;
	bool gpus; /* each factor by NCCL, too, and none by shm */
	/* These factors only; an algorithm that is not NULL stays, too. */
	const struct gf_stage *fixed;
	size_t nfixed;
};

/* The stages live until `each` returns; their names are static. */
void gf_factors_each(const struct gf_factor_rules *rules,
		     void (*each)(void *ctx, const struct gf_stage *stages, size_t nstages),
		     void *ctx);

#endif
