/* SPDX-License-Identifier: BSD-3-Clause */
/* JSON Schema (draft 2020-12) of what json/record_read.c takes. */
#include "json/record_schema.h"

#include "base/heap.h"
#include "json/record_parts.h"

/* What a text may have in it: no control characters, no marks of direction. */
#define TEXT                                                                                       \
	"{\"type\": \"string\", \"pattern\": "                                                     \
	"\"^[^\\\\u0000-\\\\u001f\\\\u007f-\\\\u009f\\\\u061c\\\\u200e\\\\u200f"                   \
	"\\\\u2028-\\\\u202e\\\\u2066-\\\\u2069]+$\"}"

#define ENDS "\"patternProperties\": {\"^x-\": {}}, \"additionalProperties\": false}"

void gf_schema_size(double low, double high, struct gf_text *out)
{
	gf_text_addf(out, "{\"type\": \"integer\", \"minimum\": %.0f, \"maximum\": %.0f}", low,
		     high);
}

static void add_real(double low, double high, struct gf_text *out)
{
	char least[GF_JSON_REAL_TEXT], most[GF_JSON_REAL_TEXT];

	gf_json_real_text(low, least);
	gf_json_real_text(high, most);
	gf_text_addf(out, "{\"type\": \"number\", \"minimum\": %s, \"maximum\": %s}", least, most);
}

/* A number of steps, or what share of another length. */
static void add_steps(const struct gf_field *f, struct gf_text *out)
{
	gf_text_addf(out, "{\"anyOf\": [");
	gf_schema_size(f->low, f->high, out);
	gf_text_addf(out, ", {\"type\": \"object\", \"required\": [\"epochs\"], \"properties\": "
			  "{\"epochs\": ");
	add_real(GF_MIN_SHARE, GF_MAX_COUNT, out);
	gf_text_addf(out, "}, \"additionalProperties\": false}, {\"type\": \"object\", "
			  "\"required\": [\"run_share\"], \"properties\": {\"run_share\": ");
	add_real(GF_MIN_SHARE, 1, out);
	gf_text_addf(out, "}, \"additionalProperties\": false}]}");
}

static void add_value(const struct gf_field *f, struct gf_text *out)
{
	switch (f->type) {
	case GF_FIELD_STRING:
		gf_text_addf(out, "{\"$ref\": \"#/$defs/text\"%s%s}", f->schema ? ", " : "",
			     f->schema ? f->schema : "");
		break;
	case GF_FIELD_SIZE:
	case GF_FIELD_INT:
		gf_schema_size(f->low, f->high, out);
		break;
	case GF_FIELD_STEPS:
		add_steps(f, out);
		break;
	case GF_FIELD_BOOL:
		gf_text_addf(out, "{\"type\": \"boolean\"}");
		break;
	case GF_FIELD_REAL:
		if (f->names)
			gf_text_addf(out, "{\"anyOf\": [{\"const\": \"%s\"}, ", f->names[0]);
		add_real(f->low, f->high, out);
		if (f->names)
			gf_text_addf(out, "]}");
		break;
	case GF_FIELD_CHOICE:
		for (size_t i = 0; f->names[i]; i++)
			gf_text_addf(out, "%s\"%s\"", i ? ", " : "{\"enum\": [", f->names[i]);
		gf_text_addf(out, "]}");
		break;
	case GF_FIELD_RAW:
		gf_text_addf(out, "{\"type\": \"object\"}");
		break;
	case GF_FIELD_SIZES:
	case GF_FIELD_REALS:
	case GF_FIELD_LIST:
		gf_text_addf(out,
			     "{\"type\": \"array\", %s%s\"items\": ", f->schema ? f->schema : "",
			     f->schema ? ", " : "");
		if (f->type == GF_FIELD_LIST)
			gf_schema_object(f->record, NULL, out);
		else if (f->type == GF_FIELD_SIZES)
			gf_schema_size(f->low, f->high, out);
		else
			add_real(f->low, f->high, out);
		gf_text_addf(out, "}");
		break;
	case GF_FIELD_OBJECT:
	case GF_FIELD_GROUP:
		gf_schema_object(f->record, NULL, out);
		break;
	case GF_FIELD_OWN:
		f->own->schema(out);
		break;
	case GF_FIELD_INCLUDE:
		break;
	}
}

static bool add_required(const struct gf_field *f, bool listed, struct gf_text *out)
{
	for (; !gf_field_is_last(f); f++)
		if (f->type == GF_FIELD_INCLUDE) {
			listed = add_required(f->record->fields, listed, out);
		} else if (f->presence == GF_REQUIRED) {
			gf_text_addf(out, "%s\"%s\"", listed ? ", " : "", f->key);
			listed = true;
		}
	return listed;
}

static bool add_properties(const struct gf_field *f, bool listed, struct gf_text *out)
{
	for (; !gf_field_is_last(f); f++)
		if (f->type == GF_FIELD_INCLUDE) {
			listed = add_properties(f->record->fields, listed, out);
		} else if (f->presence != GF_HIDDEN) {
			gf_text_addf(out, "%s\"%s\": ", listed ? ", " : "", f->key);
			add_value(f, out);
			listed = true;
		}
	return listed;
}

void gf_schema_object(const struct gf_record *r, const struct gf_schema_first *first,
		      struct gf_text *out)
{
	const char *required = first ? first->required : "";
	const char *properties = first ? first->properties : "";

	gf_text_addf(out, "{\"type\": \"object\", %s\"required\": [%s", r->schema ? r->schema : "",
		     required);
	add_required(r->fields, *required, out);
	gf_text_addf(out, "], \"properties\": {%s", properties);
	add_properties(r->fields, *properties, out);
	gf_text_addf(out, "}, " ENDS);
}

char *gf_document_schema(const struct gf_document_format *d)
{
	GF_FREED char *properties = gf_xasprintf(
		"\"format\": {\"const\": \"%s\"}, \"version\": {\"const\": 1}", d->name);
	const struct gf_schema_first first = {"\"format\", \"version\"", properties};
	GF_RELEASED(gf_text_release) struct gf_text text = {0};
	GF_RELEASED(gf_text_release) struct gf_text object = {0};
	struct gf_json_writer w = {0};

	gf_schema_object(d->record, &first, &object);
	gf_text_addf(&text,
		     "{\"$schema\": \"https://json-schema.org/draft/2020-12/schema\", "
		     "\"$id\": \"%s.schema.json\", \"title\": \"%s: %s\", "
		     "\"$defs\": {\"text\": " TEXT "}, %s",
		     d->name, d->name, d->description, object.data + 1);
	gf_json_put_raw(&w, NULL, text.data);
	return gf_text_take(&w.text);
}
