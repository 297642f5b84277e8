/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef GF_DOC_FIT_H
#define GF_DOC_FIT_H

#include <stdbool.h>
#include <stddef.h>

struct gf_record;

/* Quality of a least-squares fit. */
struct gf_fit {
	double r_squared;
	double residual_rms; /* relative: (measured - fitted) / fitted */
	double residual_max; /* relative, absolute value */
	size_t npoints;      /* 0: no fit is recorded */
	size_t *size_bytes;  /* npoints */
	double *time_s;      /* npoints, medians */
	double *spread_s;    /* npoints, interquartile range; or NULL */
	char *extra;
};

/* Do its lines describe the points poorly? (R^2 below 0.95 with points that are
 * off by a tenth, root mean square, or a point that is off by half) */
bool gf_fit_is_rough(const struct gf_fit *fit);

extern const struct gf_record gf_fit_record; /* for lib/doc alone */

#endif
