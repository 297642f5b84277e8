/* SPDX-License-Identifier: BSD-3-Clause */
#include "doc/selections/selection.h"

#include "json/record.h"

struct params {
	int none;
	char *extra; /* x- keys */
};

static const struct gf_field fields[] = {
	{NULL},
};

static const struct gf_record record = {
	GF_RECORD(struct params, fields),
};

static size_t wire(const void *params, const struct gf_wired *message, struct gf_wire *wires)
{
	(void)params;
	*wires = (struct gf_wire){GF_WIRE_REDUCE, message->count_elems, message->size_bytes, 1};
	return 1;
}

const struct gf_select_plan gf_select_plan_dense = {
	.name = "dense",
	.description = "all gradients",
	.place = 10,
	.source = "every data-parallel SGD",
	.traits = GF_SELECT_LOSSLESS | GF_SELECT_ADDS | GF_SELECT_HALVES | GF_SELECT_SERVERS |
		  GF_SELECT_SCALES,
	.record = &record,
	.wire = wire,
};
