/* SPDX-License-Identifier: BSD-3-Clause */
#include "doc/select_topk.h"

#include <math.h>

#include "base/array.h"
#include "json/record.h"

const char *const gf_putback_names[] = {"paper", "conserve", "naive", NULL};
static const char *const no_densities[] = {"none", NULL};

/* On the wire: an index of 32 bits and an f32. */
#define ENTRY_BYTES 8

#define AT(member) offsetof(struct gf_topk_params, member)
static const struct gf_field fields[] = {
	{"density", GF_FIELD_REAL, .offset = AT(density), .low = GF_MIN_SHARE,
	 .high = 1, .option = "density", .unit = "SHARE",
	 .help = "the share of elements that is sent"},
	{"warmup_densities", GF_FIELD_REALS, GF_DEFAULTED,
	 .offset = AT(warmup_densities), .count_offset = AT(nwarmup),
	 .low = GF_MIN_SHARE, .high = 1, .names = no_densities,
	 .option = "warmup-densities", .unit = "LIST",
	 .help = "of the first epochs, or none"},
	{"putback", GF_FIELD_CHOICE, GF_DEFAULTED, .offset = AT(putback),
	 .names = gf_putback_names, .option = "putback", .unit = "RULE",
	 .help = "paper, conserve or naive"},
	{NULL},
};

static const struct gf_record record = {
	.bytes = sizeof(struct gf_topk_params),
	.extra_offset = AT(extra),
	.fields = fields,
};
#undef AT

const struct gf_topk_params *gf_topk_params(const struct gf_selection *s)
{
	return s->plan == &gf_select_plan_topk || gf_topk_merges(s) ? s->params
								    : NULL;
}

bool gf_topk_merges(const struct gf_selection *s)
{
	return s->plan == &gf_select_plan_gtopk;
}

static double count_of(double density, double elems)
{
	return fmax(1, floor(density * elems));
}

size_t gf_topk_count(double density, size_t count_elems)
{
	return (size_t)count_of(density, (double)count_elems);
}

double gf_topk_density(const struct gf_topk_params *p, size_t epoch)
{
	return epoch < p->nwarmup ? p->warmup_densities[epoch] : p->density;
}

double gf_topk_greatest_density(const struct gf_topk_params *p)
{
	double most = p->density;
	size_t i;

	for (i = 0; i < p->nwarmup; i++)
		most = fmax(most, p->warmup_densities[i]);
	return most;
}

/* One set of k entries; k of the elements as f32. */
static struct gf_wire set_of(const struct gf_topk_params *p,
			     const struct gf_wired *message,
			     enum gf_wire_kind kind)
{
	double k = count_of(p->density, message->size_bytes / 4);

	return (struct gf_wire){kind, k, ENTRY_BYTES * k, 1};
}

static size_t wire_topk(const void *params, const struct gf_wired *message,
			struct gf_wire *wires)
{
	*wires = set_of(params, message, GF_WIRE_GATHER);
	return 1;
}

static size_t wire_gtopk(const void *params, const struct gf_wired *message,
			 struct gf_wire *wires)
{
	*wires = set_of(params, message, GF_WIRE_MERGE);
	return 1;
}

/* gTop-k, section IV: densities of the first epochs. */
static double warmup_densities[] = {0.25, 0.0725, 0.015, 0.004};

static const struct gf_topk_params defaults = {
	.density = 0.001,
	.warmup_densities = warmup_densities,
	.nwarmup = GF_ARRAY_LENGTH(warmup_densities),
	.putback = GF_PUTBACK_PAPER,
};

#define ENCODING "whose values travel with their indices"

const struct gf_select_plan gf_select_plan_topk = {
	.name = "topk",
	.description = "each rank's k largest, all of them applied",
	.source = "gTop-k (Shi et al. 2019)",
	.traits = GF_SELECT_SETS | GF_SELECT_NCCL,
	.record = &record,
	.defaults = &defaults,
	.encoding = ENCODING,
	.wire = wire_topk,
};

const struct gf_select_plan gf_select_plan_gtopk = {
	.name = "gtopk",
	.description = "the k largest of all ranks, merged along a tree",
	.source = "gTop-k (Shi et al. 2019)",
	.traits = GF_SELECT_SETS | GF_SELECT_NCCL,
	.record = &record,
	.defaults = &defaults,
	.encoding = ENCODING,
	.wire = wire_gtopk,
};
