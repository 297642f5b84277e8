/* SPDX-License-Identifier: BSD-3-Clause */
#include "documents/profile.h"

#include <string.h>

#include "json/record.h"
#include "documents/shared_records.h"
#include "base/heap.h"

#define AT(member) offsetof(struct gf_passes, member)
static const struct gf_field passes_fields[] = {
	{GF_MEMBER(model, GF_FIELD_STRING, GF_REQUIRED)},
	{GF_MEMBER(device, GF_FIELD_STRING, GF_OMITTED)},
	{GF_MEMBER(batch_per_rank, GF_FIELD_SIZE, GF_REQUIRED), .low = 1, .high = GF_MAX_COUNT},
	{GF_MEMBER(accumulate, GF_FIELD_SIZE, GF_OMITTED), .low = 1, .high = GF_MAX_COUNT},
	{GF_MEMBER(forward_s, GF_FIELD_REAL, GF_REQUIRED), .high = GF_MAX_TIME_S},
	{GF_MEMBER(backward_s, GF_FIELD_REAL, GF_REQUIRED), .low = GF_MIN_RATE,
	 .high = GF_MAX_TIME_S},
	{NULL},
};

static const struct gf_record passes_record = {
	GF_RECORD(struct gf_passes, passes_fields),
};
#undef AT

#define AT(member) offsetof(struct gf_profile, member)
static const struct gf_field profile_fields[] = {
	{GF_MEMBER(producer, GF_FIELD_STRING, GF_OMITTED)},
	{GF_MEMBER(model, GF_FIELD_OBJECT, GF_OMITTED), .record = &gf_model_profile_record},
	{GF_MEMBER(passes, GF_FIELD_OBJECT, GF_OMITTED), .record = &passes_record},
	{GF_MEMBER(network, GF_FIELD_OBJECT, GF_OMITTED), .record = &gf_network_record},
	{GF_MEMBERS(copies, GF_FIELD_LIST, GF_OMITTED), .record = &gf_copy_cost_record},
	{"codecs", GF_FIELD_LIST, GF_OMITTED, .offset = AT(processing.codecs),
	 .count_offset = AT(processing.ncodecs), .record = &gf_codec_cost_record},
	{"selections", GF_FIELD_LIST, GF_OMITTED, .offset = AT(processing.selections),
	 .count_offset = AT(processing.nselections), .record = &gf_selection_cost_record},
	{GF_MEMBER(measured, GF_FIELD_RAW, GF_OMITTED)},
	{NULL},
};

bool gf_device_is_gpu(const char *device)
{
	return device && strcmp(device, "cuda") == 0;
}

static int finish(const struct gf_json_at *at, void *item, struct gf_error *err)
{
	const struct gf_profile *p = item;

	if (p->model && p->passes)
		return gf_json_refuse(
			at, "passes", err,
			"want none of it beside a model with times of its own, got some");
	if (!p->model && !p->passes && !p->network && !p->processing.ncodecs &&
	    !p->processing.nselections)
		return gf_json_refuse(at, NULL, err,
				      "want a model, passes, a network or costs of codecs or "
				      "selections, got none of them");
	return gf_processing_check(at, &p->processing, err);
}

static const struct gf_record profile_record = {
	GF_RECORD(struct gf_profile, profile_fields),
	.finish = finish,
	.schema = "\"anyOf\": [{\"required\": [\"model\"]}, {\"required\": [\"passes\"]}, "
		  "{\"required\": [\"network\"]}, {\"required\": [\"codecs\"], \"properties\": "
		  "{\"codecs\": {\"minItems\": 1}}}, {\"required\": [\"selections\"], "
		  "\"properties\": "
		  "{\"selections\": {\"minItems\": 1}}}], "
		  "\"not\": {\"required\": [\"model\", \"passes\"]}, ",
};

const struct gf_document_format gf_document_profile = {
	.name = "gf-profile",
	.description = "what a backward pass and an all-reduce cost",
	.record = &profile_record,
};

int gf_profile_check(const struct gf_profile *p, struct gf_error *err)
{
	return gf_document_check(&gf_document_profile, p, err);
}

char *gf_profile_write(const struct gf_profile *p)
{
	return gf_document_write(&gf_document_profile, p);
}

void gf_profile_release(struct gf_profile *p)
{
	gf_record_release(&profile_record, p);
}

/* One text of two, which are both owned; *b is taken. */
static void merge_into(char **a, char **b)
{
	char *merged = gf_json_merge(*a, *b);

	free(*a);
	free(*b);
	*a = merged;
	*b = NULL;
}

/* Whether both say what a model takes. Passes give way to the times of their model's layers. */
static bool two_models(const struct gf_profile *a, const struct gf_profile *b)
{
	if (a->model && b->passes)
		return strcmp(a->model->name, b->passes->model) != 0;
	if (a->passes && b->model)
		return strcmp(b->model->name, a->passes->model) != 0;
	return (a->model && b->model) || (a->passes && b->passes);
}

/* Is there more than variants? */
static bool has_costs(const struct gf_network *net)
{
	return net->nallreduce || net->nlevels;
}

/* gf_profile_combine of networks. */
static int combine_networks(struct gf_network *a, struct gf_network *b, struct gf_error *err)
{
	struct gf_network swap = *a;

	if (!a->nvariants || !b->nvariants || (has_costs(a) && has_costs(b)))
		return gf_error_set(err, -EINVAL, "want one network half, got two that differ");
	if (a->ranks != b->ranks || a->hosts != b->hosts || strcmp(a->library, b->library) != 0)
		return gf_error_set(
			err, -EINVAL,
			"want variants of one library between the same ranks, got %.40s of %d "
			"ranks on %d hosts and %.40s of %d on %d (0: not said)",
			a->library, a->ranks, a->hosts, b->library, b->ranks, b->hosts);
	for (size_t i = 0; i < a->nvariants; i++)
		for (size_t k = 0; k < b->nvariants; k++)
			if (strcmp(a->variants[i].algorithm, b->variants[k].algorithm) == 0)
				return gf_error_set(err, -EINVAL,
						    "want each variant once, got \"%.40s\" again",
						    a->variants[i].algorithm);
	if (has_costs(b)) {
		*a = *b;
		*b = swap;
	}
	a->variants =
		gf_xreallocarray(a->variants, a->nvariants + b->nvariants, sizeof(*a->variants));
	memcpy(a->variants + a->nvariants, b->variants, b->nvariants * sizeof(*b->variants));
	a->nvariants += b->nvariants;
	b->nvariants = 0;
	return 0;
}

int gf_profile_combine(struct gf_profile *a, struct gf_profile *b, struct gf_error *err)
{
	int rc = 0;

	if (two_models(a, b))
		rc = gf_error_set(err, -EINVAL, "want one model half, got two that differ");
	else if (a->network && b->network)
		rc = combine_networks(a->network, b->network, err);
	if (rc)
		return rc;
	if (!a->model) {
		a->model = b->model;
		b->model = NULL;
	}
	if (!a->passes) {
		a->passes = b->passes;
		b->passes = NULL;
	}
	if (a->model) {
		gf_list_free(&passes_record, a->passes, a->passes != NULL);
		a->passes = NULL;
	}
	if (!a->network) {
		a->network = b->network;
		b->network = NULL;
	}
	if (!a->ncopies) {
		a->copies = b->copies;
		a->ncopies = b->ncopies;
		b->copies = NULL;
		b->ncopies = 0;
	}
	gf_processing_add(&a->processing, &b->processing);
	merge_into(&a->measured, &b->measured);
	merge_into(&a->extra, &b->extra);
	return 0;
}
