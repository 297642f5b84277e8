/* SPDX-License-Identifier: BSD-3-Clause */
#include "doc/selections/select_dgc.h"

#include <math.h>

#include "base/array.h"
#include "doc/selections/select_density.h"
#include "json/record.h"

static const char *const momentum_words[] = {"optimizer", NULL};

#define AT(member) offsetof(struct gf_dgc_params, member)
static const struct gf_field fields[] = {
	GF_DENSITY_FIELDS,
	{"clip_norm", GF_FIELD_REAL, GF_DEFAULTED, .offset = AT(clip_norm), .high = 1e30,
	 .option = "local-clip", .unit = "NORM",
	 .help = "the largest norm of a sum of gradients of all ranks, each of which is clipped by "
		 "itself; 0: no clipping"},
	{"momentum", GF_FIELD_REAL, GF_DEFAULTED, .offset = AT(momentum), .high = 0.999999,
	 .absent = NAN, .names = momentum_words, .option = "momentum", .unit = "M",
	 .help = "of the velocity that is sent, 0 to 0.999999 or optimizer"},
	{"masking", GF_FIELD_BOOL, GF_DEFAULTED, .offset = AT(masking), .absent = true,
	 .option = "masking", .unit = "SWITCH",
	 .help = "whether an element that is sent loses its momentum, on or off"},
	{NULL},
};

static const struct gf_record record = {
	GF_RECORD(struct gf_dgc_params, fields),
};
#undef AT

/* Section 3.3 of the paper: the sparsity of the first epochs, 75 %, 93.75 %,
 * 98.4375 %, 99.6 % and 99.9 %. */
static double warmup_densities[] = {0.25, 0.0625, 0.015625, 0.004, 0.001};

static const struct gf_dgc_params defaults = {
	.density = 0.001,
	.warmup_densities = warmup_densities,
	.nwarmup = GF_ARRAY_LENGTH(warmup_densities),
	.momentum = NAN,
	.masking = true,
};

const struct gf_select_plan gf_select_plan_dgc = {
	.name = "dgc",
	.description = "the k largest of each rank's velocity, all of them applied",
	.place = 50,
	.source = "Deep Gradient Compression (Lin et al. 2018)",
	.traits = GF_SELECT_SETS | GF_SELECT_MOMENTUM,
	.record = &record,
	.defaults = &defaults,
	.wire = gf_density_wire,
	.warm = gf_density_warm,
};
