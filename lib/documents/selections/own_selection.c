/* SPDX-License-Identifier: BSD-3-Clause */
/* A selection that is described by what it sends and costs, and that nothing runs: of every message
 * k = density * n values of so many bytes each, gathered, or merged along a tree. */
#include "documents/selections/selection.h"

#include "documents/selections/select_density.h"
#include "json/record.h"

struct params {
	double density; /* k/n, (0, 1] */
	double *warmup_densities;
	size_t nwarmup;
	double bytes_per_value; /* with what tells its place */
	bool merges;
	double select_bytes_per_s; /* of gradients that it reads; 0: not known */
	char *name;                /* owned; or NULL */
	char *extra;               /* x- keys */
};

#define AT(member) offsetof(struct params, member)
static const struct gf_field fields[] = {
	GF_DENSITY_FIELDS,
	{GF_MEMBER(bytes_per_value, GF_FIELD_REAL, GF_DEFAULTED), .low = GF_MIN_RATE,
	 .high = GF_MAX_COUNT, .absent = 8, .unit = "BYTES",
	 .help = "of a value that is sent, with its place"},
	{GF_MEMBER(merges, GF_FIELD_BOOL, GF_OMITTED), .unit = "yes|no",
	 .help = "sets are merged along a tree, not gathered"},
	{GF_MEMBER(select_bytes_per_s, GF_FIELD_REAL, GF_OMITTED), .high = GF_MAX_SIZE,
	 .unit = "RATE", .help = "how fast values are chosen among gradients"},
	{GF_MEMBER(name, GF_FIELD_STRING, GF_OMITTED), .unit = "NAME",
	 .help = "what tables call it"},
	{NULL},
};

static const struct gf_record record = {
	GF_RECORD(struct params, fields),
};

static size_t wire(const void *params, const struct gf_wired *message, struct gf_wire *wires)
{
	const struct params *p = params;
	double k = (double)gf_density_count(p->density, (size_t)message->count_elems);

	*wires = (struct gf_wire){p->merges ? GF_WIRE_MERGE : GF_WIRE_GATHER, k,
				  p->bytes_per_value * k, 1};
	return 1;
}

static double select_s_per_byte(const void *params)
{
	const struct params *p = params;

	return p->select_bytes_per_s > 0 ? 1 / p->select_bytes_per_s : 0;
}

static const char *title(const void *params)
{
	const struct params *p = params;

	return p->name ? p->name : gf_described_selection.name;
}

static const struct params defaults = {.density = 0.01, .bytes_per_value = 8};

const struct gf_select_plan gf_described_selection = {
	.name = "described",
	.description = "sets of one's own, by their figures",
	.traits = GF_SELECT_SETS,
	.record = &record,
	.defaults = &defaults,
	.encoding = "whose values have the bytes that its description says",
	.wire = wire,
	.warm = gf_density_warm,
	.select_s_per_byte = select_s_per_byte,
	.title = title,
};
