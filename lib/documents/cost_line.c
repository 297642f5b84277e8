/* SPDX-License-Identifier: BSD-3-Clause */
#include "documents/cost_line.h"

#include <math.h>
#include <stdio.h>

#include "base/heap.h"
#include "json/record.h"

#define AT(member) offsetof(struct gf_fit, member)
static const struct gf_field fit_fields[] = {
	{GF_MEMBER(r_squared, GF_FIELD_REAL, GF_REQUIRED), .low = -1e12, .high = 1},
	{GF_MEMBER(residual_rms, GF_FIELD_REAL, GF_REQUIRED), .high = 1e12},
	{GF_MEMBER(residual_max, GF_FIELD_REAL, GF_REQUIRED), .high = 1e12},
	{GF_MEMBER(size_bytes, GF_FIELD_SIZES, GF_REQUIRED), .count_offset = AT(npoints),
	 .high = GF_MAX_SIZE},
	{GF_MEMBER(time_s, GF_FIELD_REALS, GF_REQUIRED), .count_offset = AT(npoints),
	 .per = "size_bytes", .high = GF_MAX_TIME_S},
	{GF_MEMBER(spread_s, GF_FIELD_REALS, GF_OMITTED), .count_offset = AT(npoints),
	 .per = "size_bytes", .high = GF_MAX_TIME_S},
	{NULL},
};

const struct gf_record gf_fit_record = {
	GF_RECORD(struct gf_fit, fit_fields),
};
#undef AT

#define AT(member) offsetof(struct gf_cost_line, member)
static const struct gf_field cost_line_fields[] = {
	{GF_MEMBER(from_bytes, GF_FIELD_SIZE, GF_REQUIRED), .low = 1, .high = GF_MAX_SIZE},
	{GF_MEMBER(startup_s, GF_FIELD_REAL, GF_REQUIRED), .high = GF_MAX_TIME_S},
	{GF_MEMBER(per_byte_s, GF_FIELD_REAL, GF_REQUIRED), .high = GF_MAX_TIME_S},
	{NULL},
};

const struct gf_record gf_cost_line_record = {
	GF_RECORD(struct gf_cost_line, cost_line_fields),
	.one_line = true,
};

static const struct gf_field level_line_fields[] = {
	{GF_MEMBER(from_bytes, GF_FIELD_SIZE, GF_REQUIRED), .low = 1, .high = GF_MAX_SIZE},
	{"alpha_s", GF_FIELD_REAL, .offset = AT(startup_s), .high = GF_MAX_TIME_S},
	{"beta_s_per_byte", GF_FIELD_REAL, .offset = AT(per_byte_s), .high = GF_MAX_TIME_S},
	{NULL},
};

const struct gf_record gf_level_line_record = {
	GF_RECORD(struct gf_cost_line, level_line_fields),
	.one_line = true,
};

struct gf_cost_line gf_cost_line_at(const struct gf_cost_lines *lines, double bytes, double scale,
				    double *below_bytes)
{
	const struct gf_cost_line *larger = lines->larger;
	size_t i = lines->nlarger;

	while (i > 0 && scale * (double)larger[i - 1].from_bytes > bytes)
		i--;
	if (below_bytes)
		*below_bytes = i < lines->nlarger ? scale * (double)larger[i].from_bytes : INFINITY;
	return i ? larger[i - 1] : lines->first;
}

static double cost_s(const struct gf_cost_line *l, double bytes)
{
	return l->startup_s + l->per_byte_s * bytes;
}

double gf_cost_lines_s(const struct gf_cost_lines *lines, double bytes)
{
	struct gf_cost_line l = gf_cost_line_at(lines, bytes, 1, NULL);

	return cost_s(&l, bytes);
}

void gf_cost_line_add(struct gf_cost_line **larger, size_t *nlarger, struct gf_cost_line line)
{
	*larger = gf_xreallocarray(*larger, *nlarger + 1, sizeof(line));
	(*larger)[(*nlarger)++] = line;
}

int gf_cost_lines_check(const struct gf_json_at *at, const struct gf_cost_lines *lines,
			struct gf_error *err)
{
	const struct gf_cost_line *before = &lines->first;
	const struct gf_cost_line *larger = lines->larger;
	char place[64];

	if (lines->nlarger >= GF_COST_LINES_MOST)
		return gf_json_refuse(at, "larger", err, "want at most %d lines, got %zu",
				      GF_COST_LINES_MOST - 1, lines->nlarger);
	for (size_t i = 0; i < lines->nlarger; before = &larger[i++]) {
		snprintf(place, sizeof(place), "larger/%zu/from_bytes", i);
		if (i > 0 && larger[i].from_bytes <= before->from_bytes)
			return gf_json_refuse(at, place, err,
					      "want more than the %zu before, got %zu",
					      before->from_bytes, larger[i].from_bytes);
		snprintf(place, sizeof(place), "larger/%zu", i);
		if (!(cost_s(&larger[i], larger[i].from_bytes) > 0))
			return gf_json_refuse(at, place, err, "want a cost above 0, got 0 s");
	}
	return 0;
}
