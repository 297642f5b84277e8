/* SPDX-License-Identifier: BSD-3-Clause */
#include "documents/plan.h"

#include <string.h>

#include "base/heap.h"
#include "collectives/codecs/codec.h"
#include "documents/plan_parts.h"
#include "json/record.h"
#include "documents/shared_records.h"

const char *const gf_mode_names[] = {"normal", "merged", "simultaneous", NULL};
const char *const gf_release_names[] = {"ready", "backward_end", NULL};
const char *const gf_half_names[] = {"all", "split", NULL};

/* --- inputs, fusion, pipeline: objects whose members are the plan's ------- */

#define AT(member) offsetof(struct gf_plan, member)
static const struct gf_field inputs_fields[] = {
	{"topology", GF_FIELD_STRING, GF_OMITTED, .offset = AT(topology_digest)},
	{"profile", GF_FIELD_STRING, GF_OMITTED, .offset = AT(profile_digest)},
	{NULL},
};

static const struct gf_record inputs_record = {
	.extra_offset = AT(inputs_extra),
	.fields = inputs_fields,
};

static const struct gf_field fusion_fields[] = {
	{GF_MEMBER(threshold_bytes, GF_FIELD_SIZE, GF_OMITTED), .high = GF_MAX_SIZE},
	{NULL},
};

static const struct gf_record fusion_record = {
	.extra_offset = AT(fusion_extra),
	.one_line = true,
	.fields = fusion_fields,
};

static const struct gf_field pipeline_fields[] = {
	{GF_MEMBER(staleness, GF_FIELD_INT, GF_DEFAULTED), .low = 1, .high = GF_MAX_COUNT,
	 .absent = 1},
	{"warmup_steps", GF_FIELD_STEPS, GF_DEFAULTED, .offset = AT(pipeline_warmup_steps),
	 .count_offset = AT(pipeline_warmup_part), .high = GF_MAX_SIZE},
	{NULL},
};

static const struct gf_record pipeline_record = {
	.extra_offset = AT(pipeline_extra),
	.one_line = true,
	.fields = pipeline_fields,
};
#undef AT

#define AT(member) offsetof(struct gf_memory_plan, member)
static const struct gf_field memory_fields[] = {
	{GF_MEMBER(limit_bytes, GF_FIELD_SIZE, GF_OMITTED), .high = GF_MAX_SIZE},
	{GF_MEMBER(state_bytes, GF_FIELD_REAL, GF_OMITTED), .high = 1e6},
	{GF_MEMBER(recompute, GF_FIELD_BOOL, GF_OMITTED)},
	{NULL},
};

static const struct gf_record memory_record = {
	GF_RECORD(struct gf_memory_plan, memory_fields),
	.one_line = true,
};
#undef AT

/* --- messages ------------------------------------------------------------ */

#define AT(member) offsetof(struct gf_message, member)
static const struct gf_field message_fields[] = {
	{GF_MEMBER(first, GF_FIELD_SIZE, GF_REQUIRED), .high = GF_MAX_SIZE},
	{GF_MEMBER(last, GF_FIELD_SIZE, GF_REQUIRED), .high = GF_MAX_SIZE},
	{GF_MEMBER(mode, GF_FIELD_CHOICE, GF_REQUIRED), .names = gf_mode_names},
	{GF_MEMBER(release, GF_FIELD_CHOICE, GF_DEFAULTED), .names = gf_release_names},
	{GF_MEMBER(half, GF_FIELD_CHOICE, GF_DEFAULTED), .names = gf_half_names},
	{GF_MEMBER(algorithm, GF_FIELD_STRING, GF_REQUIRED)},
	{GF_MEMBERS(stages, GF_FIELD_LIST, GF_OMITTED), .record = &gf_stage_record},
	{GF_MEMBER(codec, GF_FIELD_STRING, GF_REQUIRED)},
	{GF_MEMBER(keep, GF_FIELD_BOOL, GF_OMITTED)},
	{NULL},
};

const struct gf_record gf_message_record = {
	GF_RECORD(struct gf_message, message_fields),
	.one_line = true,
};
#undef AT

/* --- rule ---------------------------------------------------------------- */

#define AT(member) offsetof(struct gf_rule_algorithm, member)
static const struct gf_field rule_algorithm_fields[] = {
	{GF_MEMBER(min_bytes, GF_FIELD_SIZE, GF_REQUIRED), .high = GF_MAX_SIZE},
	{GF_MEMBER(algorithm, GF_FIELD_STRING, GF_REQUIRED)},
	{GF_MEMBERS(stages, GF_FIELD_LIST, GF_OMITTED), .record = &gf_stage_record},
	{GF_MEMBER(codec, GF_FIELD_STRING, GF_OMITTED)},
	{NULL},
};

static const struct gf_record rule_algorithm_record = {
	GF_RECORD(struct gf_rule_algorithm, rule_algorithm_fields),
	.one_line = true,
};
#undef AT

#define AT(member) offsetof(struct gf_rule, member)
static const struct gf_field rule_fields[] = {
	{GF_MEMBER(threshold_bytes, GF_FIELD_SIZE, GF_REQUIRED), .high = GF_MAX_SIZE},
	{GF_MEMBER(lanes, GF_FIELD_INT, GF_DEFAULTED), .low = 1, .high = GF_MAX_COUNT, .absent = 1},
	{GF_MEMBER(segment_bytes, GF_FIELD_SIZE, GF_OMITTED), .high = GF_MAX_SIZE},
	{GF_MEMBERS(algorithms, GF_FIELD_LIST, GF_REQUIRED), .record = &rule_algorithm_record},
	{NULL},
};

static const struct gf_record rule_record = {
	GF_RECORD(struct gf_rule, rule_fields),
};
#undef AT

const struct gf_rule_algorithm *gf_rule_for(const struct gf_rule *r, size_t size_bytes)
{
	size_t i = r->nalgorithms - 1;

	while (i > 0 && r->algorithms[i].min_bytes > size_bytes)
		i--;
	return &r->algorithms[i];
}

/* --- the model without its tensors, which stand beside it ----------------- */

#define AT(member) offsetof(struct gf_model_profile, member)
static const struct gf_field model_fields[] = {
	{GF_INCLUDE(gf_model_scalars_record)},
	{GF_MEMBERS(tensors, GF_FIELD_LIST, GF_HIDDEN), .record = &gf_tensor_record},
	{NULL},
};

static const struct gf_record model_record = {
	GF_RECORD(struct gf_model_profile, model_fields),
};
#undef AT

/* --- the document -------------------------------------------------------- */

#define AT(member) offsetof(struct gf_plan, member)
static const struct gf_field plan_fields[] = {
	{GF_MEMBER(producer, GF_FIELD_STRING, GF_OMITTED)},
	{"inputs", GF_FIELD_GROUP, GF_OMITTED, .record = &inputs_record},
	{GF_MEMBER(system, GF_FIELD_STRING, GF_OMITTED)},
	{GF_MEMBER(policy, GF_FIELD_STRING, GF_OMITTED)},
	{GF_MEMBER(ranks, GF_FIELD_INT, GF_OMITTED), .low = 1, .high = GF_RANKS_MAX},
	{GF_MEMBER(servers, GF_FIELD_INT, GF_OMITTED), .high = 1},
	{GF_MEMBER(lanes, GF_FIELD_INT, GF_OMITTED), .low = 1, .high = GF_MAX_COUNT},
	{GF_MEMBER(reproducible, GF_FIELD_BOOL, GF_OMITTED)},
	{GF_MEMBER(segment_bytes, GF_FIELD_SIZE, GF_OMITTED), .high = GF_MAX_SIZE},
	{GF_MEMBER(model, GF_FIELD_OBJECT, GF_OMITTED), .record = &model_record},
	{GF_MEMBER(network, GF_FIELD_OBJECT, GF_OMITTED), .record = &gf_network_record},
	{"codecs", GF_FIELD_LIST, GF_OMITTED, .offset = AT(processing.codecs),
	 .count_offset = AT(processing.ncodecs), .record = &gf_codec_cost_record},
	{"selections", GF_FIELD_LIST, GF_OMITTED, .offset = AT(processing.selections),
	 .count_offset = AT(processing.nselections), .record = &gf_selection_cost_record},
	{GF_MEMBERS(levels, GF_FIELD_LIST, GF_OMITTED), .record = &gf_level_record},
	{"tensors", GF_FIELD_OWN, GF_OMITTED, .own = &gf_plan_tensors_own},
	{GF_MEMBERS(messages, GF_FIELD_LIST, GF_OMITTED), .record = &gf_message_record,
	 .schema = "\"minItems\": 1"},
	{GF_MEMBER(rule, GF_FIELD_OBJECT, GF_OMITTED), .record = &rule_record},
	{"fusion", GF_FIELD_GROUP, GF_OMITTED, .record = &fusion_record},
	{GF_MEMBER(selection, GF_FIELD_OWN, GF_DEFAULTED), .own = &gf_selection_own},
	{"pipeline", GF_FIELD_GROUP, GF_DEFAULTED, .record = &pipeline_record},
	{GF_MEMBER(period, GF_FIELD_OWN, GF_OMITTED), .own = &gf_period_own},
	{GF_MEMBER(shard, GF_FIELD_GROUP, GF_OMITTED), .record = &gf_shard_record},
	{GF_MEMBER(memory, GF_FIELD_GROUP, GF_OMITTED), .record = &memory_record},
	{GF_MEMBER(predicted, GF_FIELD_OBJECT, GF_OMITTED), .record = &gf_prediction_record},
	{NULL},
};

static const struct gf_record plan_record = {
	GF_RECORD(struct gf_plan, plan_fields),
	.finish = gf_plan_finish,
	/* a rule makes the rest when the model is known */
	.schema =
		"\"if\": {\"required\": [\"rule\"]}, \"then\": {\"properties\": {\"ranks\": false, "
		"\"servers\": false, \"lanes\": false, \"segment_bytes\": false, \"model\": false, "
		"\"tensors\": false, \"messages\": false, \"predicted\": false, \"period\": false, "
		"\"fusion\": false, \"shard\": "
		"false}}, "
		"\"else\": {\"required\": [\"ranks\", \"lanes\", \"model\", \"tensors\", "
		"\"messages\"]}, ",
};

const struct gf_document_format gf_document_plan = {
	.name = "gf-plan",
	.description = "how gradients are exchanged, and what that was predicted to cost",
	.record = &plan_record,
};

/* The plan as it is written: a rule plan's lanes and segments stand in the rule, and messages name
 * what runs. Its messages are to be freed, and borrow.
 */
static struct gf_plan as_written(const struct gf_plan *p)
{
	struct gf_plan plan = *p;

	plan.messages = gf_xmemdup(p->messages, p->nmessages * sizeof(*p->messages));
	for (size_t i = 0; i < p->nmessages; i++) {
		struct gf_message *m = &plan.messages[i];
		const char *runs =
			gf_plan_has(p, m) ? gf_plan_runs(p, m->first, m->last, m) : m->algorithm;

		if (runs == m->algorithm)
			continue;
		m->algorithm = (char *)runs;
		m->stages = NULL;
		m->nstages = 0;
	}
	if (plan.rule) {
		plan.lanes = 0;
		plan.segment_bytes = 0;
	}
	return plan;
}

int gf_plan_check(const struct gf_plan *p, struct gf_error *err)
{
	struct gf_plan plan = as_written(p);
	int rc = gf_document_check(&gf_document_plan, &plan, err);

	free(plan.messages);
	return rc;
}

char *gf_plan_write(const struct gf_plan *p)
{
	struct gf_plan plan = as_written(p);
	char *text = gf_document_write(&gf_document_plan, &plan);

	free(plan.messages);
	return text;
}

void gf_plan_release(struct gf_plan *p)
{
	gf_record_release(&plan_record, p);
}

void gf_plan_copy(struct gf_plan *copy, const struct gf_plan *p)
{
	gf_record_copy(&plan_record, copy, p);
}

void gf_plan_set_types(struct gf_plan *p)
{
	free(p->types);
	p->types = NULL;
	if (!p->model)
		return;
	p->types = gf_xmalloc((p->model->ntensors + 1) * sizeof(*p->types));
	for (size_t i = 0; i < p->model->ntensors; i++)
		p->types[i] = GF_MODE_MERGED;
	for (size_t i = 0; i < p->nmessages; i++)
		p->types[p->messages[i].last] = p->messages[i].mode;
}

size_t gf_plan_splits(const struct gf_plan *p)
{
	size_t n = 0;

	for (size_t i = 0; i < p->nmessages; i++)
		n += p->messages[i].half == GF_HALF_SPLIT;
	return n;
}

size_t gf_plan_message_bytes(const struct gf_plan *p, size_t i)
{
	size_t sum = 0, k;

	for (k = p->messages[i].first; k <= p->messages[i].last; k++)
		sum += gf_tensor_bytes(&p->model->tensors[k]);
	return sum;
}

size_t gf_plan_message_elems(const struct gf_plan *p, size_t i)
{
	size_t sum = 0, k;

	for (k = p->messages[i].first; k <= p->messages[i].last; k++)
		sum += p->model->tensors[k].count_elems;
	return sum;
}

const char *gf_plan_runs(const struct gf_plan *p, size_t first, size_t last,
			 const struct gf_message *like)
{
	struct gf_wire wires[GF_WIRES_MOST];
	const char *name = NULL;

	if (p->model &&
	    gf_selection_wire(&p->selection, &p->model->tensors[first], last - first + 1, 0, wires))
		name = gf_wire_algorithm(wires[0].kind);
	return name ? name : like->algorithm;
}

char *gf_plan_runs_text(const struct gf_plan *p, size_t first, size_t last,
			const struct gf_message *like)
{
	const char *name = gf_plan_runs(p, first, last, like);
	struct gf_text t = {0};

	/* the sets of a selection go by one algorithm of their own */
	gf_stages_text_of(&t, name, like->stages, name == like->algorithm ? like->nstages : 0);
	return gf_text_take(&t);
}

bool gf_plan_is_coded(const struct gf_plan *p)
{
	for (size_t i = 0; i < p->nmessages; i++)
		if (!gf_codec_is_plain(p->messages[i].codec))
			return true;
	return false;
}

bool gf_message_is_open(const struct gf_message *m)
{
	return strcmp(m->algorithm, "auto") == 0;
}

bool gf_message_goes_as(const struct gf_message *a, const struct gf_message *b)
{
	return a == b || (a && b && strcmp(a->algorithm, b->algorithm) == 0 &&
			  strcmp(a->codec, b->codec) == 0 &&
			  gf_stages_same(a->stages, a->nstages, b->stages, b->nstages));
}

bool gf_plan_settle(struct gf_plan *p, double epoch_steps, double run_steps)
{
	gf_steps_settle(&p->pipeline_warmup_steps, &p->pipeline_warmup_part, epoch_steps,
			run_steps);
	return (!p->selection.params ||
		!gf_record_settle(p->selection.plan->record, p->selection.params, epoch_steps,
				  run_steps)) &&
	       p->pipeline_warmup_part.of == GF_STEPS_KNOWN;
}

int gf_plan_check_settled(const struct gf_plan *p, struct gf_error *err)
{
	struct gf_plan as_it_is = *p;

	/* without lengths nothing is written */
	if (gf_plan_settle(&as_it_is, 0, 0))
		return 0;
	return gf_error_set(err, -EINVAL,
			    "warmup_steps: want a number of steps where nothing says how long an "
			    "epoch or the run is, got a part of it");
}
