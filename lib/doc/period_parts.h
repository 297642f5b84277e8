/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef GF_DOC_PERIOD_PARTS_H
#define GF_DOC_PERIOD_PARTS_H

#include "doc/period.h"
#include "json/record.h"

/* What the tables of periods have in common: the keys of every outer exchange,
 * before an entry's own and after them. For the files of periods alone. */
extern const struct gf_record gf_period_first_record;
extern const struct gf_record gf_period_last_record;

#define GF_PERIOD_AT(member) offsetof(struct gf_period, member)
#define GF_PERIOD_FIRST                                                        \
	{                                                                      \
		.type = GF_FIELD_INCLUDE, .record = &gf_period_first_record    \
	}
#define GF_PERIOD_LAST                                                         \
	{                                                                      \
		.type = GF_FIELD_INCLUDE, .record = &gf_period_last_record     \
	}
#define GF_PERIOD_RATE                                                         \
	{                                                                      \
		"outer_rate", GF_FIELD_REAL,                                   \
			.offset = GF_PERIOD_AT(outer_rate),                    \
			.low = GF_MIN_RATE, .high = 1e6,                       \
			.option = "outer-rate", .unit = "R",                   \
			.help = "the outer step's rate"                        \
	}
#define GF_PERIOD_MOMENTUM                                                     \
	{                                                                      \
		"outer_momentum", GF_FIELD_REAL,                               \
			.offset = GF_PERIOD_AT(outer_momentum),                \
			.high = 0.9999, .option = "outer-momentum",            \
			.unit = "M",                                           \
			.help = "the outer step's momentum, Nesterov's"        \
	}

#endif
