/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef GF_SIM_UNEVEN_H
#define GF_SIM_UNEVEN_H

#include "sim/whatif.h"

/* Ranks that are not alike, as a user or a measurement says. Zero-initialise;
 * the owner calls gf_uneven_release. */
struct gf_uneven {
	struct gf_slow_rank *slow;
	size_t nslow, slow_capacity;
	struct gf_what_link *links;
	size_t nlinks, links_capacity;
};

void gf_uneven_release(struct gf_uneven *u);

/* "RANK:FACTOR": its compute takes so many times as long. */
int gf_uneven_add_slow(struct gf_uneven *u, const char *text,
		       struct gf_error *err);
/* "RANK:FACTOR" or "RANK:FACTOR@LEVEL": its link has 1/FACTOR of the
 * bandwidth. */
int gf_uneven_add_link(struct gf_uneven *u, const char *text,
		       struct gf_error *err);
/* The rows that gf-profile --pairs --json prints. Adds the link of each host
 * all of whose ways out, or in, are slow, beside the median host. */
int gf_uneven_read_pairs(struct gf_uneven *u, const char *text, size_t size,
			 const char *file, struct gf_error *err);

#endif
