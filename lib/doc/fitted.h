/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef GF_DOC_FITTED_H
#define GF_DOC_FITTED_H

#include <stdbool.h>
#include <stddef.h>

#include "json/json.h"

struct gf_record;
struct gf_cost_lines;

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

/* -EINVAL: its sizes do not rise; called by the finish of what has lines. */
int gf_fit_check(const struct gf_json_at *at, const struct gf_fit *fit,
		 struct gf_error *err);
/* How many points are off their line by more than a quarter of it. *most: the
 * one that is so by the largest factor; or NULL. */
size_t gf_fit_misses(const struct gf_fit *fit,
		     const struct gf_cost_lines *lines, size_t *most);
/* Do the lines describe the points poorly: are more than a fifth of the points
 * misses, or is one off by half its line or more? */
bool gf_fit_is_rough(const struct gf_fit *fit,
		     const struct gf_cost_lines *lines);

extern const struct gf_record gf_fit_record; /* for lib/doc alone */

#endif
