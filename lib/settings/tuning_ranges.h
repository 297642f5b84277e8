/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef GF_SETTINGS_TUNING_RANGES_H
#define GF_SETTINGS_TUNING_RANGES_H

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"
#include "base/text.h"
#include "doc/library_tuning.h"
#include "doc/profile.h"

/*
 * What a library is to be told for each size of message: of its variants that a profile has
 * (gf-profile(5)), the fastest at the sizes that were measured. A variant takes the default's place
 * only where it is faster by more than GF_PICK_GAIN and by more than the hypotenuse of both halves
 * of their interquartile ranges; and another pick's, from one size to the next, only where it is
 * faster by GF_PICK_GAIN. A range ends halfway, in the logarithm, between two sizes that were
 * measured.
 */
#define GF_PICK_GAIN 0.03

struct gf_pick {
	size_t from_bytes; /* up to the next pick's; the last one's: and more */
	struct gf_tuning tuning;
	const struct gf_allreduce_cost *cost; /* of the profile */
};

/* A size that was measured. */
struct gf_pick_size {
	size_t bytes;
	const struct gf_pick *pick; /* borrowed */
	double time_s, default_s;
};

struct gf_picks {
	const struct gf_network *network; /* borrowed */
	const struct gf_dialect *dialect;
	struct gf_pick *list; /* the first is the default, from 0 bytes */
	size_t count;
	struct gf_pick_size *sizes;
	size_t nsizes;
};

/* -ENOTSUP: the profile has no variants of such a library, or not the default among them; 1: the
 * default is the best at every size. always: the default is no choice, and the first pick holds
 * from 0 bytes on; 1: some size has nothing as good. named: a variant must name its channels. */
struct gf_picks_wish {
	const char *library; /* as gf_dialect_of reads it */
	bool always, named;
};
int gf_picks_make(const struct gf_network *network, const struct gf_picks_wish *wish,
		  struct gf_picks *picks, struct gf_error *err);
void gf_picks_release(struct gf_picks *picks);

/* Comments: each measured size with its time by default and as told. */
void gf_picks_table(const struct gf_picks *picks, struct gf_text *out);

#endif
