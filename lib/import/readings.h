/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef GF_IMPORT_READINGS_H
#define GF_IMPORT_READINGS_H

#include <stdbool.h>
#include <stddef.h>

#include "import/importers.h"

/*
 * Times of all-reduces, sorted into one curve per algorithm: what gf-allreduce
 * measured, on its way into a profile. Zero-initialise; the owner calls
 * gf_readings_release.
 */
struct gf_reading {
	int ranks; /* 0: not said */
	size_t size_bytes;
	double time_s;
	const char *algorithm, *factors; /* "2x4:halving,ring", or "" */
	bool dense;                      /* of one message of plain numbers */
};

struct gf_readings_curve {
	char *algorithm, *factors;
	size_t *size_bytes; /* rising */
	double *time_s;
	size_t nsizes, ntimes, size_capacity, time_capacity;
};

struct gf_readings {
	struct gf_readings_curve *curves;
	size_t ncurves, capacity;
	int ranks;       /* 0: not said */
	size_t left_out; /* not dense, or by other factors */
};

/* Of two times of one algorithm and size the first counts. -EINVAL: other ranks
 * than before. */
int gf_readings_take(struct gf_readings *all, const struct gf_reading *r,
		     struct gf_error *err);
/* Fills a zeroed network; remarks name what is left out. -EINVAL: nothing is
 * left, or nobody knows the ranks. */
int gf_readings_finish(const struct gf_readings *all,
		       const struct gf_import *in, struct gf_network *net,
		       struct gf_text *remarks, struct gf_error *err);
void gf_readings_release(struct gf_readings *all);

#endif
