/* SPDX-License-Identifier: BSD-3-Clause */
#include "doc/selections/select_topk.h"

#include <math.h>

#include "base/array.h"
#include "doc/selections/select_density.h"
#include "json/record.h"

static const char *const putback_names[] = {"paper", "conserve", "naive", NULL};

#define AT(member) offsetof(struct gf_topk_params, member)
static const struct gf_field fields[] = {
	GF_DENSITY_FIELDS,
	{"putback", GF_FIELD_CHOICE, GF_DEFAULTED, .offset = AT(putback), .names = putback_names,
	 .option = "putback", .unit = "RULE", .help = "paper, conserve or naive"},
	{NULL},
};

static const struct gf_record record = {
	GF_RECORD(struct gf_topk_params, fields),
};
#undef AT

/*
 * The default density is meant for models of millions. What a step must send to learn does not
 * shrink with the model: the smallest model of the paper sends LEAST_SENT (ResNet-20, 269,722
 * weights). A small model gets the density for as many, at most that of the first epoch of warm-up,
 * and no epoch sends less.
 */
#define LEAST_SENT   270
#define MOST_DENSITY 0.25

static int fit(void *params, const struct gf_model_profile *model,
	       bool (*asked)(const void *ctx, const char *option), const void *ctx,
	       struct gf_text *notes, struct gf_error *err)
{
	struct gf_topk_params *p = params;
	const double elems = (double)gf_model_profile_bytes(model) / sizeof(float);
	const double least = fmin(LEAST_SENT / elems, MOST_DENSITY);
	const double before = p->density;
	size_t i;

	(void)err;
	if (asked(ctx, "density") || !(before < least))
		return 0;
	p->density = least;
	for (i = 0; i < p->nwarmup && !asked(ctx, "warmup-densities"); i++)
		p->warmup_densities[i] = fmax(p->warmup_densities[i], least);
	gf_text_addf(notes, "%s has %.0f elements: the density is %.3g instead of %g (--density)\n",
		     model->name, elems, least, before);
	return 0;
}

const struct gf_topk_params *gf_topk_params(const struct gf_selection *s)
{
	return s->plan == &gf_select_plan_topk || gf_topk_merges(s) ? s->params : NULL;
}

bool gf_topk_merges(const struct gf_selection *s)
{
	return s->plan == &gf_select_plan_gtopk;
}

static size_t wire_gtopk(const void *params, const struct gf_wired *message, struct gf_wire *wires)
{
	const struct gf_topk_params *p = params;

	*wires = gf_density_set(p->density, message,
				p->putback == GF_PUTBACK_NAIVE ? GF_WIRE_GATHER : GF_WIRE_MERGE);
	return 1;
}

/* gTop-k, section IV: densities of the first epochs. */
static double warmup_densities[] = {0.25, 0.0725, 0.015, 0.004};

#define LESS_MOMENTUM "an element goes out as the sum of many steps at once"
#define RATE_SHARE    0.5 /* docs/methods.md, "Accuracy" */

static const struct gf_topk_params defaults = {
	.density = 0.001,
	.warmup_densities = warmup_densities,
	.nwarmup = GF_ARRAY_LENGTH(warmup_densities),
	.putback = GF_PUTBACK_PAPER,
};

const struct gf_select_plan gf_select_plan_topk = {
	.name = "topk",
	.description = "each rank's k largest, all of them applied",
	.place = 30,
	.source = "gTop-k (Shi et al. 2019)",
	.traits = GF_SELECT_SETS,
	.record = &record,
	.defaults = &defaults,
	.less_momentum = LESS_MOMENTUM,
	.rate_share = RATE_SHARE,
	.wire = gf_density_wire,
	.warm = gf_density_warm,
	.fit = fit,
};

const struct gf_select_plan gf_select_plan_gtopk = {
	.name = "gtopk",
	.description = "the k largest of all ranks, merged along a tree",
	.place = 40,
	.source = "gTop-k (Shi et al. 2019)",
	.traits = GF_SELECT_SETS,
	.record = &record,
	.defaults = &defaults,
	.less_momentum = LESS_MOMENTUM,
	.rate_share = RATE_SHARE,
	.wire = wire_gtopk,
	.warm = gf_density_warm,
	.fit = fit,
};
