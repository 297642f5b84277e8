/* SPDX-License-Identifier: BSD-3-Clause */
#include "doc/plan_parts.h"

#include <math.h>
#include <stdlib.h>

#include "base/heap.h"
#include "doc/shared.h"

/* --- tensors ------------------------------------------------------------- */

/* A tensor of the model with its type in the plan, which live in two arrays.
 * -1: a document need not repeat what follows from its messages. */
struct typed_tensor {
	struct gf_tensor tensor; /* first: an included table's base */
	int type;
};

static const struct gf_field typed_fields[] = {
	{.type = GF_FIELD_INCLUDE, .record = &gf_tensor_record},
	{"type", GF_FIELD_CHOICE, GF_OMITTED,
	 .offset = offsetof(struct typed_tensor, type), .names = gf_mode_names,
	 .absent = -1},
	{NULL},
};

static const struct gf_record typed_record = {
	.bytes = sizeof(struct typed_tensor),
	.extra_offset = offsetof(struct typed_tensor, tensor.extra),
	.one_line = true,
	.fields = typed_fields,
};

static int read_tensors(struct gf_json_at *at, const char *key, void *place,
			struct gf_error *err)
{
	struct typed_tensor *typed;
	struct gf_plan *p = place;
	size_t count, i;
	int rc;

	if (!p->model)
		return gf_json_refuse(at, key, err,
				      "want a model beside them, got none");
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
	free(typed);
	return 0;
}

static void write_tensors(struct gf_json_writer *w, const char *key,
			  const void *place)
{
	const struct gf_plan *p = place;
	size_t i;

	gf_json_open_array(w, key);
	for (i = 0; i < p->model->ntensors; i++) {
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
		p->types = gf_xmemdup(p->types,
				      p->model->ntensors * sizeof(*p->types));
}

const struct gf_field_own gf_plan_tensors_own = {
	.read = read_tensors,
	.write = write_tensors,
	.absent = no_tensors,
	.release = release_types,
	.copy = copy_types,
};

/* --- predicted ----------------------------------------------------------- */

#define AT(member) offsetof(struct gf_prediction, member)
static const struct gf_field prediction_fields[] = {
	{"iteration_s", GF_FIELD_REAL, .offset = AT(iteration_s),
	 .high = GF_MAX_TIME_SUM_S},
	{"compute_s", GF_FIELD_REAL, .offset = AT(compute_s),
	 .high = GF_MAX_TIME_SUM_S},
	{"exposed_comm_s", GF_FIELD_REAL, .offset = AT(exposed_comm_s),
	 .high = GF_MAX_TIME_SUM_S},
	{"lower_bound_s", GF_FIELD_REAL, .offset = AT(lower_bound_s),
	 .high = GF_MAX_TIME_SUM_S},
	{"fastest_s", GF_FIELD_REAL, GF_OMITTED, .offset = AT(fastest_s),
	 .high = GF_MAX_TIME_SUM_S},
	{"iteration_low_s", GF_FIELD_REAL, GF_OMITTED,
	 .offset = AT(iteration_low_s), .high = GF_MAX_TIME_SUM_S},
	{"iteration_high_s", GF_FIELD_REAL, GF_OMITTED,
	 .offset = AT(iteration_high_s), .high = GF_MAX_TIME_SUM_S},
	{NULL},
};

static const struct gf_record prediction_record = {
	GF_RECORD(struct gf_prediction, prediction_fields),
};
#undef AT

/* A message's times with its x- keys, which live in two arrays. */
struct timed_message {
	struct gf_predicted_message times;
	char *extra;
};

#define AT(member) offsetof(struct timed_message, times.member)
static const struct gf_field timed_fields[] = {
	{"ready_s", GF_FIELD_REAL, .offset = AT(ready_s),
	 .high = GF_MAX_TIME_SUM_S},
	{"start_s", GF_FIELD_REAL, .offset = AT(start_s),
	 .high = GF_MAX_TIME_SUM_S},
	{"end_s", GF_FIELD_REAL, .offset = AT(end_s),
	 .high = GF_MAX_TIME_SUM_S},
	{NULL},
};
#undef AT

static const struct gf_record timed_record = {
	GF_RECORD(struct timed_message, timed_fields),
	.one_line = true,
};

static int read_times(struct gf_json_at *at, size_t nmessages,
		      struct gf_prediction *pr, struct gf_error *err)
{
	struct timed_message *timed;
	size_t count, i;
	int rc;

	rc = gf_list_read(at, "messages", &timed_record, &timed, &count, err);
	if (rc)
		return rc;
	if (count != nmessages) {
		gf_list_free(&timed_record, timed, count);
		return gf_json_refuse(at, "messages", err,
				      "want %zu entries, one per message, "
				      "got %zu",
				      nmessages, count);
	}
	pr->messages = gf_xcalloc(count + 1, sizeof(*pr->messages));
	pr->message_extras = gf_xcalloc(count + 1, sizeof(char *));
	for (i = 0; i < count; i++) {
		pr->messages[i] = timed[i].times;
		pr->message_extras[i] = timed[i].extra;
	}
	free(timed);
	return 0;
}

static void free_prediction(struct gf_prediction *pr, size_t nmessages)
{
	size_t i;

	for (i = 0; pr->message_extras && i < nmessages; i++)
		free(pr->message_extras[i]);
	free(pr->message_extras);
	free(pr->messages);
	free(pr->extra);
	free(pr);
}

static int read_predicted(struct gf_json_at *at, const char *key, void *place,
			  struct gf_error *err)
{
	struct gf_plan *p = place;
	struct gf_prediction *pr;
	struct gf_json_at inner;
	int rc;

	rc = gf_json_object(at, key, &inner, err);
	if (rc)
		return rc;
	pr = gf_xcalloc(1, sizeof(*pr));
	rc = read_times(&inner, p->nmessages, pr, err);
	if (!rc)
		rc = gf_fields_read(&inner, &prediction_record, pr, err);
	if (!rc && pr->iteration_low_s > 0 && pr->iteration_high_s == 0)
		rc = gf_json_refuse(&inner, "iteration_high_s", err,
				    "want it beside iteration_low_s, got "
				    "nothing");
	if (!rc && pr->iteration_low_s > pr->iteration_high_s)
		rc = gf_json_refuse(&inner, "iteration_low_s", err,
				    "want at most iteration_high_s, %g, got %g",
				    pr->iteration_high_s, pr->iteration_low_s);
	if (!rc)
		rc = gf_json_end(&inner, &pr->extra, err);
	gf_json_leave(&inner);
	if (rc)
		free_prediction(pr, p->nmessages);
	else
		p->predicted = pr;
	return rc;
}

static void write_predicted(struct gf_json_writer *w, const char *key,
			    const void *place)
{
	const struct gf_plan *p = place;
	const struct gf_prediction *pr = p->predicted;
	size_t i;

	gf_json_open_object(w, key);
	gf_fields_write(w, &prediction_record, pr);
	gf_json_open_array(w, "messages");
	for (i = 0; i < p->nmessages; i++) {
		struct timed_message timed = {pr->messages[i], NULL};

		if (pr->message_extras)
			timed.extra = pr->message_extras[i];
		gf_json_open_line(w, NULL);
		gf_record_write(w, &timed_record, &timed);
		gf_json_close_object(w);
	}
	gf_json_close_array(w);
	gf_json_put_extra(w, pr->extra);
	gf_json_close_object(w);
}

static bool no_prediction(const void *place)
{
	const struct gf_plan *p = place;

	return !p->predicted;
}

static void release_predicted(void *place)
{
	struct gf_plan *p = place;

	if (p->predicted)
		free_prediction(p->predicted, p->nmessages);
}

static void copy_predicted(void *place)
{
	struct gf_plan *p = place;
	const struct gf_prediction *old = p->predicted;
	struct gf_prediction *pr;
	size_t i;

	if (!old)
		return;
	pr = gf_xmemdup(old, sizeof(*old));
	pr->extra = gf_xstrdup_or_null(old->extra);
	pr->messages =
		gf_xmemdup(old->messages, p->nmessages * sizeof(*pr->messages));
	if (old->message_extras) {
		pr->message_extras =
			gf_xcalloc(p->nmessages + 1, sizeof(char *));
		for (i = 0; i < p->nmessages; i++)
			pr->message_extras[i] =
				gf_xstrdup_or_null(old->message_extras[i]);
	}
	p->predicted = pr;
}

const struct gf_field_own gf_predicted_own = {
	.read = read_predicted,
	.write = write_predicted,
	.absent = no_prediction,
	.release = release_predicted,
	.copy = copy_predicted,
};
