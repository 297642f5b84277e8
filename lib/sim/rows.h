/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef GF_SIM_ROWS_H
#define GF_SIM_ROWS_H

#include "base/text.h"
#include "sim/whatif.h"

/* Outcomes as JSON Lines or CSV: one row each, the same columns in the same
 * order. Columns that nothing was asked for in (bandwidth, percentiles, totals,
 * samples) are left out. */
struct gf_row_choice {
	bool bandwidth, percentiles, samples;
	double iterations; /* 0: no total */
};

void gf_outcomes_csv(const struct gf_plan *p, const struct gf_outcome *o,
		     size_t n, const struct gf_row_choice *c,
		     struct gf_text *out);
void gf_outcomes_json(const struct gf_plan *p, const struct gf_outcome *o,
		      size_t n, const struct gf_row_choice *c,
		      struct gf_text *out);

/* The same for people, without the columns for machines. */
void gf_outcomes_table(const struct gf_outcome *outcomes, size_t n,
		       struct gf_text *out);

#endif
