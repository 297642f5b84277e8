/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef GF_COST_FIT_H
#define GF_COST_FIT_H

#include <stddef.h>

#include "base/error.h"

/*
 * Weighted least squares of time = startup + per_byte * size, weights 1/time^2 (relative residuals:
 * small and large messages count alike).
 * Unphysical results (a negative startup or slope) are clamped to the best fit with that
 * coefficient 0, and flagged.
 */
struct gf_linear_fit {
	double startup_s, per_byte_s;
	int clamped_startup, clamped_slope;
};

/* -EINVAL: fewer than 2 distinct sizes, or a time that is not > 0. */
int gf_fit_linear(const double *size_bytes, const double *time_s, size_t count,
		  struct gf_linear_fit *fit, struct gf_error *err);

#endif
