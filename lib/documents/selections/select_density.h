/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef GF_SELECTIONS_SELECT_DENSITY_H
#define GF_SELECTIONS_SELECT_DENSITY_H

#include <stddef.h>

#include "documents/selections/selection.h"
#include "json/record.h"

/*
 * What selections share that send k of a message's n elements: the keys, in a struct whose first
 * members are those of this one, and k itself.
 */
struct gf_density {
	double density;
	double *warmup_densities;
	size_t nwarmup;
};

extern const char *const gf_density_words[]; /* "none" */

#define GF_DENSITY_FIELDS                                                                          \
	{"density",                                                                                \
	 GF_FIELD_REAL,                                                                            \
	 .offset = offsetof(struct gf_density, density),                                           \
	 .low = GF_MIN_SHARE,                                                                      \
	 .high = 1,                                                                                \
	 .share = true,                                                                            \
	 .unit = "SHARE",                                                                          \
	 .help = "the share of elements that is sent"},                                            \
	{                                                                                          \
		"warmup_densities", GF_FIELD_REALS, GF_DEFAULTED,                                  \
			.offset = offsetof(struct gf_density, warmup_densities),                   \
			.count_offset = offsetof(struct gf_density, nwarmup), .low = GF_MIN_SHARE, \
			.high = 1, .names = gf_density_words, .unit = "LIST",                      \
			.help = "of the first epochs, or none"                                     \
	}

/* The first members of params. */
struct gf_density gf_density_of(const void *params);
/* k of a message of count elements: max(1, floor(density*count)). */
size_t gf_density_count(double density, size_t count_elems);
/* The density of an epoch (from 0), and the greatest of all epochs. */
double gf_density_at(double density, const double *warmup, size_t nwarmup, size_t epoch);
/* gf_select_plan.warm, and .wire of sets that are gathered. */
size_t gf_density_warm(const void *params, size_t step, size_t epoch_steps, void *then);
size_t gf_density_wire(const void *params, const struct gf_wired *message, struct gf_wire *wires);
double gf_density_greatest(double density, const double *warmup, size_t nwarmup);
/* k of a message's elements, each an index of 32 bits and an f32. */
struct gf_wire gf_density_set(double density, const struct gf_wired *message,
			      enum gf_wire_kind kind);

#endif
