/* SPDX-License-Identifier: BSD-3-Clause */
#include "doc/fitted.h"

#include <math.h>

#include "doc/cost_line.h"
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

int gf_fit_check(const struct gf_json_at *at, const struct gf_fit *fit,
		 struct gf_error *err)
{
	size_t i;

	for (i = 1; i < fit->npoints; i++)
		if (fit->size_bytes[i] < fit->size_bytes[i - 1])
			return gf_json_refuse(at, "fit/size_bytes", err,
					      "want rising sizes, got %zu "
					      "after %zu",
					      fit->size_bytes[i],
					      fit->size_bytes[i - 1]);
	return 0;
}

static const double miss_share = 0.25, misses_share = 0.2, much = 1.5;

/* >= 1 */
static double factor_of(const struct gf_fit *fit,
			const struct gf_cost_lines *lines, size_t i)
{
	double factor = fit->time_s[i] /
			gf_cost_lines_s(lines, (double)fit->size_bytes[i]);

	return fmax(factor, 1 / factor);
}

size_t gf_fit_misses(const struct gf_fit *fit,
		     const struct gf_cost_lines *lines, size_t *most)
{
	size_t i, count = 0;

	for (i = 0; most && i < fit->npoints; i++)
		if (i == 0 ||
		    factor_of(fit, lines, i) > factor_of(fit, lines, *most))
			*most = i;

	for (i = 0; i < fit->npoints; i++) {
		double fitted_s =
			gf_cost_lines_s(lines, (double)fit->size_bytes[i]);

		count +=
			fabs(fit->time_s[i] - fitted_s) > miss_share * fitted_s;
	}
	return count;
}

bool gf_fit_is_rough(const struct gf_fit *fit,
		     const struct gf_cost_lines *lines)
{
	size_t most = 0, misses = gf_fit_misses(fit, lines, &most);

	return fit->npoints &&
	       ((double)misses > misses_share * (double)fit->npoints ||
		factor_of(fit, lines, most) >= much);
}
