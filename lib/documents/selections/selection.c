/* SPDX-License-Identifier: BSD-3-Clause */
#include "documents/selections/selection.h"

#include <string.h>

#include "base/heap.h"
#include "base/registry.h"
#include "collectives/codecs/codec.h"
#include "documents/plan.h"
#include "documents/plan_parts.h"
#include "json/record.h"

const struct gf_select_plan *gf_select_plan_find(const char *name)
{
	return strcmp(name, gf_described_selection.name) == 0
		       ? &gf_described_selection
		       : gf_named_find(gf_select_plans, 0, name);
}

const struct gf_message gf_select_own_message = {
	.algorithm = (char *)"rhd",
	.codec = (char *)"f32",
};

const struct gf_select_plan *gf_selection_plan(const struct gf_selection *s)
{
	return s->plan ? s->plan : &gf_select_plan_dense;
}

const char *gf_selection_name(const struct gf_selection *s)
{
	return gf_selection_plan(s)->name;
}

const char *gf_selection_title(const struct gf_selection *s)
{
	const struct gf_select_plan *plan = gf_selection_plan(s);

	return plan->title ? plan->title(s->params) : plan->name;
}

double gf_selection_s_per_byte(const struct gf_selection *s)
{
	const struct gf_select_plan *plan = gf_selection_plan(s);

	return plan->select_s_per_byte ? plan->select_s_per_byte(s->params) : 0;
}

bool gf_selection_has(const struct gf_selection *s, unsigned traits)
{
	return (gf_selection_plan(s)->traits & traits) == traits;
}

const char *gf_wire_algorithm(enum gf_wire_kind kind)
{
	return kind == GF_WIRE_GATHER ? "gather" : kind == GF_WIRE_MERGE ? "gtopk" : NULL;
}

struct gf_wire_handled gf_wire_handled(enum gf_wire_kind kind, int ranks)
{
	int rounds = 0;

	if (kind == GF_WIRE_GATHER)
		return (struct gf_wire_handled){1, ranks};
	while (kind == GF_WIRE_MERGE && 1L << rounds < ranks)
		rounds++;
	return (struct gf_wire_handled){1 + rounds, 1 + 2 * rounds};
}

double gf_wire_handled_bytes(const struct gf_wire *w, int ranks)
{
	const struct gf_wire_handled n = gf_wire_handled(w->kind, ranks);

	return (n.made + n.taken) * w->size_bytes * w->share;
}

double gf_wire_set_bytes(const struct gf_wire *w, const char *codec)
{
	return w->among ? (double)gf_codec_set_bytes(gf_codec_find(codec), w->among,
						     (size_t)w->count_elems)
			: w->size_bytes;
}

size_t gf_selection_wire(const struct gf_selection *s, const struct gf_tensor *tensors,
			 size_t ntensors, size_t model_elems, struct gf_wire wires[GF_WIRES_MOST])
{
	struct gf_wired message = {
		.tensors = tensors, .ntensors = ntensors, .model_elems = model_elems};

	for (size_t i = 0; i < ntensors; i++) {
		message.count_elems += (double)tensors[i].count_elems;
		message.size_bytes += (double)gf_tensor_bytes(&tensors[i]);
	}
	return gf_selection_plan(s)->wire(s->params, &message, wires);
}

struct gf_selection gf_selection_new(const struct gf_select_plan *plan, const void *params)
{
	struct gf_selection s = {.plan = plan};

	if (params) {
		s.params = gf_xcalloc(1, plan->record->bytes);
		gf_record_copy(plan->record, s.params, params);
	}
	return s;
}

size_t gf_selection_own_elems(const struct gf_selection *s, size_t count_elems, int ranks)
{
	const struct gf_select_plan *plan = gf_selection_plan(s);

	return plan->own_elems ? plan->own_elems(s->params, count_elems, ranks) : 0;
}

size_t gf_selection_warmup(const struct gf_selection *s, size_t epoch_steps)
{
	GF_RELEASED(gf_selection_release) struct gf_selection then = gf_selection_copy(s);
	size_t step = 0, n;

	while ((n = gf_selection_warm(s, step, epoch_steps, &then)))
		step += n;
	return step;
}

size_t gf_selection_warm(const struct gf_selection *s, size_t step, size_t epoch_steps,
			 struct gf_selection *then)
{
	const struct gf_select_plan *plan = gf_selection_plan(s);

	return plan->warm && s->params ? plan->warm(s->params, step, epoch_steps, then->params) : 0;
}

struct gf_selection gf_selection_copy(const struct gf_selection *s)
{
	return gf_selection_new(s->plan, s->params);
}

void gf_selection_release(struct gf_selection *s)
{
	if (s->params)
		gf_record_release(s->plan->record, s->params);
	free(s->params);
	*s = (struct gf_selection){0};
}

/* --- in documents --------------------------------------------------------- */

#define METHODS_MOST 64

/* All methods that a plan may have: the entries, and the described one. */
static void methods(const struct gf_select_plan *plans[METHODS_MOST + 1],
		    const char *names[METHODS_MOST + 1])
{
	size_t n = 0;

	for (; n < METHODS_MOST - 1 && gf_select_plans[n]; n++)
		plans[n] = gf_select_plans[n];
	plans[n++] = &gf_described_selection;
	plans[n] = NULL;
	for (n = 0; plans[n]; n++)
		names[n] = plans[n]->name;
	names[n] = NULL;
}

static int read_selection(struct gf_json_at *at, const char *key, void *place, struct gf_error *err)
{
	const struct gf_select_plan *plans[METHODS_MOST + 1], *plan;
	const char *names[METHODS_MOST + 1];
	struct gf_selection *s = place;
	struct gf_json_at inner;
	int rc, method = 0;
	void *params;

	methods(plans, names);
	rc = gf_entry_open(at, key, names, &inner, &method, err);
	if (rc)
		return rc;
	plan = plans[method];
	params = gf_xcalloc(1, plan->record->bytes);
	rc = gf_record_read(&inner, plan->record, params, err);
	if (rc)
		free(params);
	else
		*s = (struct gf_selection){plan, params};
	return rc;
}

static void write_selection(struct gf_json_writer *w, const char *key, const void *place)
{
	const struct gf_selection *s = place;

	gf_json_open_line(w, key);
	gf_json_put_string(w, "method", gf_selection_name(s));
	if (s->params)
		gf_record_write(w, s->plan->record, s->params);
	gf_json_close_object(w);
}

static void release_selection(void *place)
{
	gf_selection_release(place);
}

static void own_selection(void *place)
{
	struct gf_selection *s = place;

	*s = gf_selection_copy(s);
}

static void add_schema(struct gf_text *out)
{
	const struct gf_select_plan *plans[METHODS_MOST + 1];
	const char *names[METHODS_MOST + 1];

	methods(plans, names);
	gf_entry_schema(plans, out);
}

const struct gf_field_own gf_selection_own = {
	.read = read_selection,
	.write = write_selection,
	.release = release_selection,
	.copy = own_selection,
	.schema = add_schema,
};
