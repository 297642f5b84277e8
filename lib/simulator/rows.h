/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef GF_SIMULATOR_ROWS_H
#define GF_SIMULATOR_ROWS_H

#include "base/text.h"
#include "simulator/whatif/whatif.h"

/* One plan in one set of circumstances. */
struct gf_row {
	const struct gf_plan *plan; /* borrowed */
	char *name;                 /* of the plan where there are several, owned; or NULL */
	struct gf_outcome outcome;  /* owned */
	/* Why it has no times, but only ranks and bandwidth; owned; or NULL. */
	char *left_out;
};

/* Rows as JSON Lines. A row says what plan it is, the circumstances and the times. It lacks what
 * was not asked for (bandwidth, percentiles, total) and what is not known (samples). A row that is
 * left out has no times; left_out says why. series: a member that tells the curves of a picture
 * apart, by plan and bandwidth, or also by ranks. */
enum gf_series { GF_SERIES_NONE, GF_SERIES_RATES, GF_SERIES_RANKS };
void gf_rows_json(const struct gf_row *rows, size_t n, enum gf_series series, struct gf_text *out);

/* The rows as a table for people, without the columns for machines. window: gf_table's. */
void gf_rows_table(const struct gf_row *rows, size_t n, size_t window, struct gf_text *out);

/* The answer, one line: of one plan up to which number of ranks, or from which bandwidth on, a step
 * keeps ranks busy, and what bounds it elsewhere; of several the fastest, and where another is
 * faster by 1 % or more. */
void gf_rows_answer(const struct gf_row *rows, size_t n, struct gf_text *out);

#endif
