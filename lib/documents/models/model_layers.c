/* SPDX-License-Identifier: BSD-3-Clause */
#include "documents/shared_records.h"

#include <string.h>

#include "base/array.h"
#include "base/heap.h"
#include "documents/models/layer.h"
#include "json/record_schema.h"

#define INPUT "input" /* the name that means the sample */
#define NONE  (-2)

/* A layer's `from`, kept until every layer's name is known. */
struct links {
	char **names;
	size_t count;
};

/* Layer names in order, to find one among many quickly. */
struct name_entry {
	const char *name;
	size_t index;
};

GF_ORDER(by_name, struct name_entry, strcmp(x->name, y->name) ?: GF_BY(x->index, y->index))

static int find_by_name(const void *key, const void *entry)
{
	return strcmp(key, ((const struct name_entry *)entry)->name);
}

static void free_links(struct links *links, size_t count)
{
	for (size_t i = 0; links && i < count; i++) {
		for (size_t k = 0; k < links[i].count; k++)
			free(links[i].names[k]);
		free(links[i].names);
	}
	free(links);
}

static int read_from(struct gf_json_at *at, const struct gf_layer_kind *kind, const char *type,
		     struct links *links, struct gf_error *err)
{
	struct gf_json_at row;
	size_t count, wanted, i;
	int rc;

	if (!gf_json_has(at, "from") && kind->inputs.least == 1)
		return 0;
	rc = gf_json_array(at, "from", &row, &count, err);
	if (rc)
		return rc;
	wanted = count < kind->inputs.least ? kind->inputs.least : kind->inputs.most;
	if (count < kind->inputs.least || count > kind->inputs.most)
		return gf_json_refuse(at, "from", err, "want %s%zu name%s for %s, got %zu",
				      kind->inputs.most == kind->inputs.least ? ""
				      : count < kind->inputs.least            ? "at least "
									      : "at most ",
				      wanted, wanted > 1 ? "s" : "", type, count);
	links->names = gf_xcalloc(count, sizeof(char *));
	links->count = count;
	for (i = 0; i < count && !rc; i++)
		rc = gf_json_string(gf_json_item(&row, i), NULL, &links->names[i], err);
	return rc;
}

static int read_layer(struct gf_json_at *at, struct gf_layer *l, struct links *links,
		      struct gf_error *err)
{
	const struct gf_layer_kind *kind;
	int type, rc;

	rc = gf_json_string(at, "name", &l->name, err);
	if (!rc && strcmp(l->name, INPUT) == 0)
		rc = gf_json_refuse(at, "name", err,
				    "want another name than \"%s\", which is the sample's", INPUT);
	rc = rc ?: gf_json_choice(at, "type", gf_layer_type_names, &type, err);
	if (rc)
		return rc;
	l->type = (enum gf_layer_type)type;
	kind = gf_layer_kinds[type];
	rc = read_from(at, kind, gf_layer_type_names[type], links, err);
	if (!rc) {
		const struct gf_record fields = {.fields = kind->fields};

		rc = gf_fields_read(at, &fields, l, err);
	}
	return rc ?: gf_json_end(at, &l->extra, err);
}

static int check_names(const struct gf_json_at *at, const struct name_entry *names, size_t count,
		       struct gf_error *err)
{
	for (size_t i = 1; i < count; i++)
		if (strcmp(names[i].name, names[i - 1].name) == 0)
			return gf_json_refuse(
				at, gf_json_path("layers/%zu/name", names[i].index).text, err,
				"want a name of its own, got \"%.40s\" again", names[i].name);
	return 0;
}

/* Layer numbers for names; without names, the layer before. */
static int resolve(const struct gf_json_at *at, struct gf_model *m, size_t index,
		   const struct links *links, const struct name_entry *names, struct gf_error *err)
{
	struct gf_layer *l = &m->layers[index];

	l->ninputs = links->count ? links->count : 1;
	l->inputs = gf_xcalloc(l->ninputs, sizeof(*l->inputs));
	l->inputs[0] = (int)index - 1;
	for (size_t k = 0; k < links->count; k++) {
		const char *name = links->names[k];
		const struct name_entry *found =
			bsearch(name, names, m->nlayers, sizeof(*names), find_by_name);

		if (strcmp(name, INPUT) == 0) {
			l->inputs[k] = -1;
		} else if (found && found->index < index) {
			l->inputs[k] = (int)found->index;
		} else {
			return gf_json_refuse(
				at, gf_json_path("layers/%zu/from/%zu", index, k).text, err,
				"want \"%s\" or an earlier layer, got \"%.60s\"", INPUT, name);
		}
	}
	l->from[0] = l->inputs[0];
	l->from[1] = l->ninputs > 1 ? l->inputs[1] : NONE;
	return 0;
}

static int resolve_all(const struct gf_json_at *at, struct gf_model *m, const struct links *links,
		       struct gf_error *err)
{
	GF_FREED struct name_entry *names = gf_xcalloc(m->nlayers, sizeof(*names));
	int rc;

	for (size_t i = 0; i < m->nlayers; i++)
		names[i] = (struct name_entry){m->layers[i].name, i};
	qsort(names, m->nlayers, sizeof(*names), by_name);
	rc = check_names(at, names, m->nlayers, err);
	for (size_t i = 0; i < m->nlayers && !rc; i++)
		rc = resolve(at, m, i, &links[i], names, err);
	return rc;
}

static int read_layers(struct gf_json_at *at, const char *key, void *place, struct gf_error *err)
{
	struct gf_json_at list, entry;
	struct gf_model *m = place;
	struct links *links;
	size_t count, i;
	int rc = gf_json_array(at, key, &list, &count, err);

	if (!rc && (!count || count > (size_t)GF_MAX_COUNT))
		rc = gf_json_refuse(at, key, err, "want at least one layer, got none");
	if (rc)
		return rc;
	m->layers = gf_xcalloc(count, sizeof(*m->layers));
	m->nlayers = count;
	links = gf_xcalloc(count, sizeof(*links));
	for (i = 0; i < count && !rc; i++) {
		rc = gf_json_object(gf_json_item(&list, i), NULL, &entry, err);
		if (rc)
			break;
		rc = read_layer(&entry, &m->layers[i], &links[i], err);
		gf_json_leave(&entry);
	}
	rc = rc ?: resolve_all(at, m, links, err);
	free_links(links, count);
	return rc;
}

static void write_from(struct gf_json_writer *w, const struct gf_model *m, size_t index)
{
	const struct gf_layer *l = &m->layers[index];

	if (l->ninputs == 1 && l->inputs[0] == (int)index - 1)
		return;
	gf_json_open_row(w, "from");
	for (size_t k = 0; k < l->ninputs; k++)
		gf_json_put_string(w, NULL,
				   l->inputs[k] < 0 ? INPUT : m->layers[l->inputs[k]].name);
	gf_json_close_array(w);
}

static void write_layers(struct gf_json_writer *w, const char *key, const void *place)
{
	const struct gf_model *m = place;

	gf_json_open_array(w, key);
	for (size_t i = 0; i < m->nlayers; i++) {
		const struct gf_layer *l = &m->layers[i];
		const struct gf_record fields = {.fields = gf_layer_kinds[l->type]->fields};

		gf_json_open_line(w, NULL);
		gf_json_put_string(w, "name", l->name);
		gf_json_put_string(w, "type", gf_layer_type_names[l->type]);
		write_from(w, m, i);
		gf_fields_write(w, &fields, l);
		gf_json_put_extra(w, l->extra);
		gf_json_close_object(w);
	}
	gf_json_close_array(w);
}

static void release_layers(void *place)
{
	struct gf_model *m = place;

	for (size_t i = 0; i < m->nlayers; i++) {
		free(m->layers[i].name);
		free(m->layers[i].inputs);
		free(m->layers[i].tied);
		free(m->layers[i].extra);
	}
	free(m->layers);
	for (size_t i = 0; i < m->nparams; i++)
		free(m->params[i].name);
	free(m->params);
}

/* A layer of each kind. */
static void add_schema(struct gf_text *out)
{
	gf_text_addf(out, "{\"type\": \"array\", \"minItems\": 1, \"items\": {\"oneOf\": [");
	for (size_t i = 0; gf_layer_type_names[i]; i++) {
		const struct gf_layer_kind *k = gf_layer_kinds[i];
		const struct gf_record fields = {.fields = k->fields};
		GF_FREED char *properties = gf_xasprintf(
			"\"name\": " GF_SCHEMA_TEXT ", \"type\": {\"const\": \"%s\"}, \"from\": "
			"{\"type\": \"array\", \"minItems\": %zu, "
			"\"maxItems\": %zu, \"items\": " GF_SCHEMA_TEXT "}",
			gf_layer_type_names[i], k->inputs.least, k->inputs.most);
		const struct gf_schema_first first = {
			k->inputs.least > 1 ? "\"name\", \"type\", \"from\"" : "\"name\", \"type\"",
			properties};

		gf_text_addf(out, "%s", i ? ", " : "");
		gf_schema_object(&fields, &first, out);
	}
	gf_text_addf(out, "]}}");
}

const struct gf_field_own gf_model_layers_own = {
	.read = read_layers,
	.write = write_layers,
	.release = release_layers,
	.schema = add_schema,
};
