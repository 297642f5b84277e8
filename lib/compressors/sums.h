/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef GF_COMPRESSORS_SUMS_H
#define GF_COMPRESSORS_SUMS_H

#include <stdbool.h>
#include <stddef.h>

struct gf_optim_piece;

/* The first gradient that is infinite or not a number, the same on all ranks. */
struct gf_select_bad {
	bool found;
	size_t tensor, element; /* of the tensor */
};

/* What came of a step: ascending ranges of the pool with their values, which times `share` are
 * means over the ranks. Elements in no range are not updated: they keep the optimiser's state,
 * too. */
struct gf_select_sums {
	const struct gf_optim_piece *pieces; /* the selection's */
	size_t npieces;
	float share;
};

#endif
