/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef GF_IMPORTS_READINGS_H
#define GF_IMPORTS_READINGS_H

#include <stdbool.h>
#include <stddef.h>

#include "documents/algorithm_traits.h"
#include "imports/importers.h"

/*
 * Times of collectives, sorted into one curve per collective, algorithm and stages: what
 * gf-allreduce measured, on its way into a profile. Zero-initialise; the owner calls
 * gf_readings_release.
 */
struct gf_reading {
	int ranks; /* 0: not said */
	enum gf_coll_half collective;
	size_t size_bytes; /* of all ranks' parts */
	double time_s;
	double spread_s;                 /* interquartile range; 0: not said */
	const char *algorithm, *factors; /* "2x4:halving,ring", or "" */
	/* What the library was told, and its name and version; NULL: not said.
	 */
	const char *variant, *library;
	int hosts;    /* 0: not said */
	bool dense;   /* of one message of plain numbers */
	double wrong; /* values that were not as wanted */
	size_t place; /* line of the file */
};

struct gf_readings_curve {
	enum gf_coll_half collective;
	char *algorithm, *factors;
	bool told; /* the algorithm is what a library was told */
	struct gf_readings_point {
		size_t size_bytes; /* rising */
		double time_s, spread_s;
	} * points;
	size_t npoints, point_capacity;
	bool unspread; /* some time has no spread */
};

struct gf_readings {
	struct gf_readings_curve *curves;
	size_t ncurves, capacity;
	int ranks, hosts;             /* 0: not said */
	char *library;                /* NULL: not said */
	bool told;                    /* some row says its variant */
	size_t nwrong, first_wrong;   /* rows; a line */
	struct gf_imported *imported; /* what is left out; set by the owner */
};

/* Of two times of one algorithm and size the first counts. What does not count is left out by name.
 * -EINVAL: other ranks than before. */
int gf_readings_take(struct gf_readings *all, const struct gf_reading *r, struct gf_error *err);
/* Adds a network, and what was found; remarks name wrong results.
 * -EINVAL: nothing is left, or nobody knows the ranks. */
int gf_readings_finish(const struct gf_readings *all, const struct gf_import *in,
		       struct gf_profile *out, struct gf_text *remarks, struct gf_error *err);
void gf_readings_release(struct gf_readings *all);

#endif
