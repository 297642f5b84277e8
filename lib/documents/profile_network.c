/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/heap.h"
#include "documents/profile.h"

#include <stdio.h>
#include <string.h>

#include "collectives/codecs/codec.h"
#include "documents/algorithm_traits.h"
#include "documents/library_tuning.h"
#include "documents/cost_line.h"
#include "documents/topology.h"
#include "json/record.h"
#include "documents/shared_records.h"

#define AT(member) offsetof(struct gf_beside_backward, member)
static const struct gf_field beside_fields[] = {
	{GF_MEMBERS(compute_slowdown, GF_FIELD_REALS, GF_OMITTED), .low = 1, .high = 1e6},
	{GF_MEMBER(message_slowdown, GF_FIELD_REAL, GF_OMITTED), .low = 1, .high = 1e6},
	{GF_MEMBER(startup_extra_s, GF_FIELD_REAL, GF_OMITTED), .high = GF_MAX_TIME_S},
	{NULL},
};

static const struct gf_record beside_record = {
	GF_RECORD(struct gf_beside_backward, beside_fields),
	.one_line = true,
};
#undef AT

#define AT(member) offsetof(struct gf_allreduce_cost, member)
static const struct gf_field allreduce_fields[] = {
	{GF_MEMBER(algorithm, GF_FIELD_STRING, GF_REQUIRED)},
	{GF_MEMBER(collective, GF_FIELD_CHOICE, GF_OMITTED), .names = gf_coll_half_names},
	{GF_MEMBER(codec, GF_FIELD_STRING, GF_OMITTED)},
	{GF_MEMBERS(stages, GF_FIELD_LIST, GF_OMITTED), .record = &gf_stage_record},
	{GF_MEMBER(startup_s, GF_FIELD_REAL, GF_REQUIRED), .high = GF_MAX_TIME_S},
	{GF_MEMBER(per_byte_s, GF_FIELD_REAL, GF_REQUIRED), .high = GF_MAX_TIME_S},
	{GF_MEMBERS(larger, GF_FIELD_LIST, GF_OMITTED), .record = &gf_cost_line_record,
	 .schema = "\"maxItems\": 100"},
	{GF_MEMBER(contention, GF_FIELD_OWN, GF_OMITTED), .own = &gf_contention_own},
	{"beside_backward", GF_FIELD_GROUP, GF_OMITTED, .offset = AT(beside),
	 .record = &beside_record},
	{GF_MEMBER(fit, GF_FIELD_GROUP, GF_OMITTED), .record = &gf_fit_record},
	{NULL},
};

/* A codec that the algorithm can carry. */
static int check_codec(const struct gf_json_at *at, const struct gf_allreduce_cost *cost,
		       struct gf_error *err)
{
	bool encoded = gf_algorithm_has(cost->algorithm, GF_ALGORITHM_ENCODED);
	const struct gf_codec *codec = gf_codec_find(gf_allreduce_codec(cost));
	GF_FREED char *names = NULL;

	if (codec && (encoded || codec->adds))
		return 0;
	names = gf_codec_names(!encoded, "\"");
	return gf_json_refuse(at, "codec", err, "want %s with algorithm %.40s, got \"%.40s\"",
			      names, cost->algorithm, cost->codec);
}

/* Called by the finish of what has lines, from a fit. */
static int check_lines(const struct gf_json_at *at, const struct gf_fit *fit,
		       const struct gf_cost_lines lines, struct gf_error *err)
{
	for (size_t i = 1; i < fit->npoints; i++)
		if (fit->size_bytes[i] < fit->size_bytes[i - 1])
			return gf_json_refuse(at, "fit/size_bytes", err,
					      "want rising sizes, got %zu after %zu",
					      fit->size_bytes[i], fit->size_bytes[i - 1]);
	return gf_cost_lines_check(at, &lines, err);
}

static int finish_allreduce(const struct gf_json_at *at, void *item, struct gf_error *err)
{
	const struct gf_allreduce_cost *cost = item;
	int rc = check_codec(at, cost, err);

	if (rc)
		return rc;
	if (cost->startup_s == 0 && cost->per_byte_s == 0)
		return gf_json_refuse(at, "per_byte_s", err,
				      "want a number > 0 where startup_s is 0, got 0");
	return check_lines(at, &cost->fit, gf_allreduce_lines(cost), err);
}

static const struct gf_record allreduce_record = {
	GF_RECORD(struct gf_allreduce_cost, allreduce_fields),
	.finish = finish_allreduce,
};

static const struct gf_field variant_fields[] = {
	{"variant", GF_FIELD_STRING, .offset = AT(algorithm)},
	{GF_MEMBER(startup_s, GF_FIELD_REAL, GF_REQUIRED), .high = GF_MAX_TIME_S},
	{GF_MEMBER(per_byte_s, GF_FIELD_REAL, GF_REQUIRED), .high = GF_MAX_TIME_S},
	{GF_MEMBERS(larger, GF_FIELD_LIST, GF_OMITTED), .record = &gf_cost_line_record,
	 .schema = "\"maxItems\": 100"},
	{GF_MEMBER(fit, GF_FIELD_GROUP, GF_OMITTED), .record = &gf_fit_record},
	{NULL},
};

static int finish_variant(const struct gf_json_at *at, void *item, struct gf_error *err)
{
	const struct gf_allreduce_cost *cost = item;

	return check_lines(at, &cost->fit, gf_allreduce_lines(cost), err);
}

static const struct gf_record variant_record = {
	GF_RECORD(struct gf_allreduce_cost, variant_fields),
	.finish = finish_variant,
};
#undef AT

#define AT(member) offsetof(struct gf_level_cost, member)
static const struct gf_field level_cost_fields[] = {
	{GF_MEMBER(name, GF_FIELD_STRING, GF_REQUIRED)},
	{GF_MEMBER(alpha_s, GF_FIELD_REAL, GF_REQUIRED), .high = GF_MAX_TIME_S},
	{GF_MEMBER(beta_s_per_byte, GF_FIELD_REAL, GF_REQUIRED), .high = GF_MAX_TIME_S},
	{GF_MEMBER(reduce_s_per_byte, GF_FIELD_REAL, GF_REQUIRED), .high = GF_MAX_TIME_S},
	{GF_MEMBERS(larger, GF_FIELD_LIST, GF_OMITTED), .record = &gf_level_line_record,
	 .schema = "\"maxItems\": 9"},
	{GF_MEMBER(contention, GF_FIELD_OWN, GF_OMITTED), .own = &gf_contention_own},
	{GF_MEMBER(fit, GF_FIELD_GROUP, GF_OMITTED), .record = &gf_fit_record},
	{NULL},
};

/* Every line of a level makes lines of what is derived from it, one for each size of message in an
 * algorithm. */
static int finish_level(const struct gf_json_at *at, void *item, struct gf_error *err)
{
	const struct gf_level_cost *cost = item;

	if (cost->nlarger >= GF_LEVEL_LINES_MOST)
		return gf_json_refuse(at, "larger", err, "want at most %d lines, got %zu",
				      GF_LEVEL_LINES_MOST - 1, cost->nlarger);
	return check_lines(at, &cost->fit, gf_level_lines(cost), err);
}

static const struct gf_record level_cost_record = {
	GF_RECORD(struct gf_level_cost, level_cost_fields),
	.finish = finish_level,
};
#undef AT

#define AT(member) offsetof(struct gf_copy_cost, member)
static const struct gf_field copy_cost_fields[] = {
	{GF_MEMBER(name, GF_FIELD_STRING, GF_REQUIRED)},
	{GF_MEMBER(alpha_s, GF_FIELD_REAL, GF_REQUIRED), .high = GF_MAX_TIME_S},
	{GF_MEMBER(beta_s_per_byte, GF_FIELD_REAL, GF_REQUIRED), .high = GF_MAX_TIME_S},
	{GF_MEMBER(fit, GF_FIELD_GROUP, GF_OMITTED), .record = &gf_fit_record},
	{NULL},
};

const struct gf_record gf_copy_cost_record = {
	GF_RECORD(struct gf_copy_cost, copy_cost_fields),
};
#undef AT

/* Checks a decomposition that was measured. */
static int check_stages(const struct gf_json_at *at, const struct gf_network *net, size_t index,
			struct gf_error *err)
{
	const struct gf_allreduce_cost *cost = &net->allreduce[index];
	const double product = gf_stages_ranks(cost->stages, cost->nstages);
	struct gf_error why;
	char place[64];

	snprintf(place, sizeof(place), "allreduce/%zu/algorithm", index);
	if (gf_algorithm_check(cost->algorithm, &why))
		return gf_json_refuse(at, place, err, "%s", why.text);
	snprintf(place, sizeof(place), "allreduce/%zu/stages", index);
	if (gf_stages_check(cost->algorithm, cost->stages, cost->nstages, &why))
		return gf_json_refuse(at, place, err, "%s", why.text);
	if (!cost->nstages || !net->ranks || product == net->ranks)
		return 0;
	return gf_json_refuse(at, place, err,
			      "want factors whose product is the network's %d ranks, got %.0f",
			      net->ranks, product);
}

static bool same_entry(const struct gf_allreduce_cost *a, const struct gf_allreduce_cost *b)
{
	return strcmp(a->algorithm, b->algorithm) == 0 && a->collective == b->collective &&
	       strcmp(gf_allreduce_codec(a), gf_allreduce_codec(b)) == 0 &&
	       gf_stages_same(a->stages, a->nstages, b->stages, b->nstages);
}

/* Of a library that is known, each once. */
static int check_variants(const struct gf_json_at *at, const struct gf_network *net,
			  struct gf_error *err)
{
	const struct gf_dialect *dialect = gf_dialect_of(net->library);
	struct gf_tuning t;
	char place[64];

	if (net->nvariants && !dialect)
		return gf_json_refuse(
			at, "library", err,
			"want Open MPI, NCCL or RCCL, whose variants these are, got \"%.40s\"",
			net->library ? net->library : "");
	for (size_t i = 0; i < net->nvariants; i++) {
		const char *text = net->variants[i].algorithm;
		struct gf_error why;

		snprintf(place, sizeof(place), "variants/%zu/variant", i);
		if (gf_tuning_read(dialect, text, &t, &why))
			return gf_json_refuse(at, place, err, "%s", why.text);
		for (size_t k = 0; k < i; k++)
			if (strcmp(text, net->variants[k].algorithm) == 0)
				return gf_json_refuse(at, place, err,
						      "want each once, got \"%.40s\" again", text);
	}
	return 0;
}

static int finish_network(const struct gf_json_at *at, void *item, struct gf_error *err)
{
	const struct gf_network *net = item;

	for (size_t i = 0; i < net->nallreduce; i++) {
		int rc = check_stages(at, net, i, err);

		if (rc)
			return rc;
		for (size_t k = 0; k < i; k++)
			if (same_entry(&net->allreduce[i], &net->allreduce[k]))
				return gf_json_refuse(
					at, gf_json_path("allreduce/%zu/algorithm", i).text, err,
					"want each algorithm once per codec and stages, got "
					"\"%.40s\" with %s again",
					net->allreduce[i].algorithm,
					gf_allreduce_codec(&net->allreduce[i]));
	}
	for (size_t i = 0; i < net->nlevels; i++)
		for (size_t k = 0; k < i; k++)
			if (strcmp(net->levels[i].name, net->levels[k].name) == 0)
				return gf_json_refuse(at, gf_json_path("levels/%zu/name", i).text,
						      err,
						      "want each level once, got \"%.40s\" again",
						      net->levels[i].name);
	return check_variants(at, net, err);
}

#define AT(member) offsetof(struct gf_network, member)
static const struct gf_field network_fields[] = {
	{GF_MEMBER(ranks, GF_FIELD_INT, GF_OMITTED), .low = 1, .high = GF_RANKS_MAX},
	{GF_MEMBERS(allreduce, GF_FIELD_LIST, GF_OMITTED), .record = &allreduce_record},
	{GF_MEMBERS(levels, GF_FIELD_LIST, GF_OMITTED), .record = &level_cost_record},
	{GF_MEMBER(drift, GF_FIELD_REAL, GF_OMITTED), .high = 1},
	{GF_MEMBER(library, GF_FIELD_STRING, GF_OMITTED)},
	{GF_MEMBER(hosts, GF_FIELD_INT, GF_OMITTED), .low = 1, .high = GF_RANKS_MAX},
	{GF_MEMBERS(variants, GF_FIELD_LIST, GF_OMITTED), .record = &variant_record},
	{NULL},
};

const struct gf_record gf_network_record = {
	GF_RECORD(struct gf_network, network_fields),
	.finish = finish_network,
};

const char *gf_allreduce_codec(const struct gf_allreduce_cost *c)
{
	return c->codec ? c->codec : gf_codecs[GF_CODEC_F32].name;
}

char *gf_allreduce_text(const struct gf_allreduce_cost *c)
{
	struct gf_text t = {0};

	gf_stages_text_of(&t, c->algorithm, c->stages, c->nstages);
	if (c->collective != GF_COLL_WHOLE)
		gf_text_addf(&t, " %s", gf_coll_half_names[c->collective]);
	return gf_text_take(&t);
}

bool gf_allreduce_plain(const struct gf_allreduce_cost *c)
{
	return c->collective == GF_COLL_WHOLE && gf_codec_is_plain(gf_allreduce_codec(c));
}

const struct gf_beside_backward *gf_beside_backward_of(const struct gf_allreduce_cost *c)
{
	const struct gf_beside_backward *b = &c->beside;

	return b->ncompute_slowdown || b->message_slowdown > 1 || b->startup_extra_s > 0 ? b : NULL;
}

struct gf_cost_lines gf_allreduce_lines(const struct gf_allreduce_cost *c)
{
	return (struct gf_cost_lines){
		{0, c->startup_s, c->per_byte_s, NULL}, c->larger, c->nlarger};
}

struct gf_cost_lines gf_level_lines(const struct gf_level_cost *c)
{
	return (struct gf_cost_lines){
		{0, c->alpha_s, c->beta_s_per_byte, NULL}, c->larger, c->nlarger};
}

const struct gf_allreduce_cost *gf_network_cheapest(const struct gf_network *net, double bytes)
{
	const struct gf_allreduce_cost *best = NULL;
	double least = 0, time_s;

	for (size_t i = 0; i < net->nallreduce; i++) {
		struct gf_cost_lines lines = gf_allreduce_lines(&net->allreduce[i]);

		if (!gf_allreduce_plain(&net->allreduce[i]))
			continue;
		time_s = gf_cost_lines_s(&lines, bytes);
		if (best && time_s >= least)
			continue;
		best = &net->allreduce[i];
		least = time_s;
	}
	return best;
}

const struct gf_level_cost *gf_network_level(const struct gf_network *net, const char *name)
{
	for (size_t i = 0; net && i < net->nlevels; i++)
		if (strcmp(net->levels[i].name, name) == 0)
			return &net->levels[i];
	return NULL;
}

struct gf_network *gf_network_copy(const struct gf_network *net)
{
	return gf_list_copy(&gf_network_record, net, net != NULL);
}

void gf_allreduce_cost_copy(struct gf_allreduce_cost *copy, const struct gf_allreduce_cost *cost)
{
	gf_record_copy(&allreduce_record, copy, cost);
}

void gf_network_free(struct gf_network *net)
{
	gf_list_free(&gf_network_record, net, net != NULL);
}
