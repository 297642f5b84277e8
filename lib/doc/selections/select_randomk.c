/* SPDX-License-Identifier: BSD-3-Clause */
#include "doc/selections/select_randomk.h"

#include <assert.h>

#include "base/rng.h"
#include "doc/selections/select_density.h"
#include "json/record.h"

#define VALUE_BYTES 4

#define AT(member) offsetof(struct gf_randomk_params, member)
static const struct gf_field fields[] = {
	GF_DENSITY_FIELDS,
	{"seed", GF_FIELD_SIZE, GF_DEFAULTED, .offset = AT(seed), .high = GF_MAX_COUNT, .absent = 1,
	 .option = "seed", .unit = "N", .help = "of the random elements"},
	{NULL},
};

static const struct gf_record record = {
	GF_RECORD(struct gf_randomk_params, fields),
};
#undef AT

void gf_randomk_pick(uint64_t seed, uint64_t step, uint64_t message, size_t n, size_t k,
		     uint32_t *index)
{
	struct gf_rng rng;
	uint64_t first = 0, next, r;

	assert(1 <= k && k <= n && n <= UINT32_MAX);
	/* a stream for every step, and in it one for every message */
	gf_rng_init(&rng, seed, step);
	gf_rng_init(&rng, gf_rng_u64(&rng), message);
	for (r = 0; r < k; r++) {
		next = (r + 1) * n / k;
		index[r] = (uint32_t)(first + gf_rng_below(&rng, next - first));
		first = next;
	}
}

static size_t wire(const void *params, const struct gf_wired *message, struct gf_wire *wires)
{
	const struct gf_randomk_params *p = params;
	double k = (double)gf_density_count(p->density, (size_t)message->count_elems);

	*wires = (struct gf_wire){GF_WIRE_REDUCE, k, VALUE_BYTES * k, 1};
	return 1;
}

static const struct gf_randomk_params defaults = {.density = 0.1, .seed = 1};

const struct gf_select_plan gf_select_plan_randomk = {
	.name = "randomk",
	.description = "k random elements, the same on all ranks",
	.place = 90,
	.source = "Sparsified SGD with memory (Stich et al. 2018)",
	.traits = GF_SELECT_ADDS | GF_SELECT_SCALES | GF_SELECT_SELDOM,
	.record = &record,
	.defaults = &defaults,
	.less_momentum = "an element goes out as the sum of many steps at once",
	.clipped_share = 0.3, /* docs/methods.md, "Accuracy" */
	.wire = wire,
	.warm = gf_density_warm,
};
