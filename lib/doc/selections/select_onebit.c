/* SPDX-License-Identifier: BSD-3-Clause */
#include "doc/selections/select_onebit.h"

#include "json/record.h"

#define CHUNK_ELEMS 1024
#define SCALE_BYTES 4
#define WORD_BYTES  4
#define WORD_BITS   32

#define AT(member) offsetof(struct gf_onebit_params, member)
static const struct gf_field fields[] = {
	{"chunk_elems", GF_FIELD_SIZE, GF_DEFAULTED, .offset = AT(chunk_elems), .low = 1,
	 .high = GF_MAX_SIZE, .absent = CHUNK_ELEMS, .option = "chunk", .unit = "ELEMS",
	 .help = "elements of a chunk"},
	{NULL},
};

static const struct gf_record record = {
	GF_RECORD(struct gf_onebit_params, fields),
};
#undef AT

size_t gf_onebit_chunks(const struct gf_onebit_params *p, size_t count_elems)
{
	return count_elems ? (count_elems - 1) / p->chunk_elems + 1 : 0;
}

size_t gf_onebit_set_bytes(const struct gf_onebit_params *p, size_t count_elems)
{
	size_t words = (count_elems + WORD_BITS - 1) / WORD_BITS;

	return gf_onebit_chunks(p, count_elems) * SCALE_BYTES + words * WORD_BYTES;
}

static size_t wire(const void *params, const struct gf_wired *message, struct gf_wire *wires)
{
	*wires = (struct gf_wire){GF_WIRE_GATHER, message->count_elems,
				  (double)gf_onebit_set_bytes(params, (size_t)message->count_elems),
				  1};
	return 1;
}

static const struct gf_onebit_params defaults = {.chunk_elems = CHUNK_ELEMS};

const struct gf_select_plan gf_select_plan_onebit = {
	.name = "onebit",
	.description = "the sign of every element, and a scale per chunk",
	.place = 70,
	.source = "1-Bit SGD (Seide et al. 2014)",
	.traits = GF_SELECT_SETS,
	.record = &record,
	.defaults = &defaults,
	.encoding = "whose signs travel with their scales",
	.less_momentum = "most of a large element goes out steps later",
	.wire = wire,
};
