/* SPDX-License-Identifier: BSD-3-Clause */
#include "doc/fit.h"

#include "json/record.h"

#define AT(member) offsetof(struct gf_fit, member)
static const struct gf_field fit_fields[] = {
	{"r_squared", GF_FIELD_REAL, .offset = AT(r_squared), .low = -1e12,
	 .high = 1},
	{"residual_rms", GF_FIELD_REAL, .offset = AT(residual_rms),
	 .high = 1e12},
	{"residual_max", GF_FIELD_REAL, .offset = AT(residual_max),
	 .high = 1e12},
	{"size_bytes", GF_FIELD_SIZES, .offset = AT(size_bytes),
	 .count_offset = AT(npoints), .high = GF_MAX_SIZE},
	{"time_s", GF_FIELD_REALS, .offset = AT(time_s),
	 .count_offset = AT(npoints), .per = "size_bytes",
	 .high = GF_MAX_TIME_S},
	{"spread_s", GF_FIELD_REALS, GF_OMITTED, .offset = AT(spread_s),
	 .count_offset = AT(npoints), .per = "size_bytes",
	 .high = GF_MAX_TIME_S},
	{NULL},
};

const struct gf_record gf_fit_record = {
	GF_RECORD(struct gf_fit, fit_fields),
};
#undef AT

bool gf_fit_is_rough(const struct gf_fit *fit)
{
	/* of times that hardly depend on the size, a line explains nothing */
	bool unexplained = fit->r_squared < 0.95 && fit->residual_rms > 0.1;

	return unexplained || fit->residual_max > 0.5;
}
