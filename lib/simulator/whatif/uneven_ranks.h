/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef GF_WHATIF_UNEVEN_RANKS_H
#define GF_WHATIF_UNEVEN_RANKS_H

#include "base/text.h"
#include "simulator/whatif/whatif.h"

/* Ranks that are not alike, as a user or a measurement says. Zero-initialise; the owner calls
 * gf_uneven_release. */
struct gf_uneven {
	struct gf_slow_rank *slow;
	size_t nslow, slow_capacity;
	struct gf_what_link *links;
	size_t nlinks, links_capacity;
};

void gf_uneven_release(struct gf_uneven *u);

/* "RANK:FACTOR": its compute takes so many times as long. */
int gf_uneven_add_slow(const char *text, void *uneven, struct gf_error *err);
/* "RANK:FACTOR" or "RANK:FACTOR@LEVEL", several with commas between: its link has 1/FACTOR of the
 * bandwidth. */
int gf_uneven_add_links(const char *text, void *uneven, struct gf_error *err);
/* A file of the rows that gf-profile --pairs --table=json prints. Adds the link of each host all of
 * whose ways out, or in, are slow, beside the median host, and a line about it to notes. */
int gf_uneven_read_pairs(struct gf_uneven *u, const char *file, struct gf_text *notes,
			 struct gf_error *err);

#endif
