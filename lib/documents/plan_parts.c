/* SPDX-License-Identifier: BSD-3-Clause */
#include "documents/plan_parts.h"

#include "base/heap.h"
#include "documents/shared_records.h"
#include "json/record_schema.h"

/* --- tensors ------------------------------------------------------------- */

/* A tensor of the model with its type in the plan, which live in two arrays. -1: a document need
 * not repeat what follows from its messages. */
struct typed_tensor {
	struct gf_tensor tensor; /* first: an included table's base */
	int type;
};

static const struct gf_field typed_fields[] = {
	{GF_INCLUDE(gf_tensor_record)},
	{"type", GF_FIELD_CHOICE, GF_OMITTED, .offset = offsetof(struct typed_tensor, type),
	 .names = gf_mode_names, .absent = -1},
	{NULL},
};

static const struct gf_record typed_record = {
	.bytes = sizeof(struct typed_tensor),
	.extra_offset = offsetof(struct typed_tensor, tensor.extra),
	.one_line = true,
	.fields = typed_fields,
};

static int read_tensors(struct gf_json_at *at, const char *key, void *place, struct gf_error *err)
{
	GF_FREED struct typed_tensor *typed = NULL;
	struct gf_plan *p = place;
	size_t count, i;
	int rc;

	if (!p->model)
		return gf_json_refuse(at, key, err, "want a model beside them, got none");
	rc = gf_list_read(at, key, &typed_record, &typed, &count, err);
	if (rc)
		return rc;
	p->model->tensors = gf_xcalloc(count, sizeof(*p->model->tensors));
	p->model->ntensors = count;
	p->types = gf_xcalloc(count, sizeof(*p->types));
	for (i = 0; i < count; i++) {
		p->model->tensors[i] = typed[i].tensor;
		p->types[i] = (enum gf_mode)typed[i].type;
	}
	return 0;
}

static void write_tensors(struct gf_json_writer *w, const char *key, const void *place)
{
	const struct gf_plan *p = place;

	gf_json_open_array(w, key);
	for (size_t i = 0; i < p->model->ntensors; i++) {
		struct typed_tensor typed = {p->model->tensors[i], -1};

		if (p->types)
			typed.type = (int)p->types[i];
		gf_json_open_line(w, NULL);
		gf_record_write(w, &typed_record, &typed);
		gf_json_close_object(w);
	}
	gf_json_close_array(w);
}

static bool no_tensors(const void *place)
{
	const struct gf_plan *p = place;

	return !p->model || !p->model->ntensors;
}

/* The tensors themselves belong to the model. */
static void release_types(void *place)
{
	struct gf_plan *p = place;

	free(p->types);
}

static void copy_types(void *place)
{
	struct gf_plan *p = place;

	if (p->types)
		p->types = gf_xmemdup(p->types, p->model->ntensors * sizeof(*p->types));
}

static void tensors_schema(struct gf_text *out)
{
	gf_text_addf(out, "{\"type\": \"array\", \"minItems\": 1, \"items\": ");
	gf_schema_object(&typed_record, NULL, out);
	gf_text_addf(out, "}");
}

const struct gf_field_own gf_plan_tensors_own = {
	.read = read_tensors,
	.write = write_tensors,
	.absent = no_tensors,
	.release = release_types,
	.copy = copy_types,
	.schema = tensors_schema,
};

/* --- predicted ----------------------------------------------------------- */

#define AT(member) offsetof(struct gf_predicted_message, member)
static const struct gf_field timed_fields[] = {
	{GF_MEMBER(ready_s, GF_FIELD_REAL, GF_REQUIRED), .high = GF_MAX_TIME_SUM_S},
	{GF_MEMBER(start_s, GF_FIELD_REAL, GF_REQUIRED), .high = GF_MAX_TIME_SUM_S},
	{GF_MEMBER(end_s, GF_FIELD_REAL, GF_REQUIRED), .high = GF_MAX_TIME_SUM_S},
	{GF_MEMBER(error, GF_FIELD_REAL, GF_OMITTED), .high = 1e6},
	{NULL},
};
#undef AT

static const struct gf_record timed_record = {
	GF_RECORD(struct gf_predicted_message, timed_fields),
	.one_line = true,
};

#define AT(member) offsetof(struct gf_memory_use, member)
#define BYTES(name)                                                                                \
	{                                                                                          \
#name, GF_FIELD_REAL, GF_OMITTED, .offset = AT(name), .high = GF_MAX_SIZE          \
	}
static const struct gf_field memory_fields[] = {
	BYTES(parameters_bytes), BYTES(gradients_bytes),
	BYTES(state_bytes),      BYTES(gathered_bytes),
	BYTES(buffers_bytes),    BYTES(activations_bytes),
	BYTES(peak_bytes),       {NULL},
};
#undef BYTES
#undef AT

static const struct gf_record memory_record = {
	GF_RECORD(struct gf_memory_use, memory_fields),
	.one_line = true,
};

#define AT(member) offsetof(struct gf_prediction, member)
static const struct gf_field prediction_fields[] = {
	{GF_MEMBER(iteration_s, GF_FIELD_REAL, GF_REQUIRED), .high = GF_MAX_TIME_SUM_S},
	{GF_MEMBER(compute_s, GF_FIELD_REAL, GF_REQUIRED), .high = GF_MAX_TIME_SUM_S},
	{GF_MEMBER(exposed_comm_s, GF_FIELD_REAL, GF_REQUIRED), .high = GF_MAX_TIME_SUM_S},
	{GF_MEMBER(lower_bound_s, GF_FIELD_REAL, GF_REQUIRED), .high = GF_MAX_TIME_SUM_S},
	{GF_MEMBER(fastest_s, GF_FIELD_REAL, GF_OMITTED), .high = GF_MAX_TIME_SUM_S},
	{GF_MEMBER(iteration_low_s, GF_FIELD_REAL, GF_OMITTED), .high = GF_MAX_TIME_SUM_S},
	{GF_MEMBER(iteration_high_s, GF_FIELD_REAL, GF_OMITTED), .high = GF_MAX_TIME_SUM_S},
	{GF_MEMBER(error, GF_FIELD_REAL, GF_OMITTED), .high = 1e6},
	{GF_MEMBER(memory, GF_FIELD_GROUP, GF_OMITTED), .record = &memory_record},
	{GF_MEMBERS(messages, GF_FIELD_LIST, GF_REQUIRED), .record = &timed_record},
	{NULL},
};

static int finish_prediction(const struct gf_json_at *at, void *item, struct gf_error *err)
{
	const struct gf_prediction *pr = item;

	if (pr->iteration_low_s > 0 && pr->iteration_high_s == 0)
		return gf_json_refuse(at, "iteration_high_s", err,
				      "want it beside iteration_low_s, got nothing");
	if (pr->iteration_low_s > pr->iteration_high_s)
		return gf_json_refuse(at, "iteration_low_s", err,
				      "want at most iteration_high_s, %g, got %g",
				      pr->iteration_high_s, pr->iteration_low_s);
	return 0;
}

const struct gf_record gf_prediction_record = {
	GF_RECORD(struct gf_prediction, prediction_fields),
	.finish = finish_prediction,
};
