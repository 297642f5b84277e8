/* SPDX-License-Identifier: BSD-3-Clause */
/* gf-schema FOLDER: writes the JSON Schema of every kind of document, NAME.schema.json, which the
 * tables of its reader make; and `keys`, for man/page.sh, of entries whose keys depend on the
 * entry: lines of LIST, ENTRY, KEY and what its value must be, between tabs. */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/heap.h"
#include "documents/periods/period.h"
#include "documents/selections/selection.h"
#include "json/record_schema.h"

extern const struct gf_document_format *const gf_document_formats[];

static const char *const types[GF_FIELD_OWN + 1] = {
	[GF_FIELD_STRING] = "string",
	[GF_FIELD_SIZE] = "integer",
	[GF_FIELD_INT] = "integer",
	[GF_FIELD_BOOL] = "true or false",
	[GF_FIELD_REAL] = "number",
	[GF_FIELD_STEPS] = "steps",
	[GF_FIELD_CHOICE] = "one of",
	[GF_FIELD_SIZES] = "array of integers",
	[GF_FIELD_REALS] = "array of numbers",
	[GF_FIELD_LIST] = "array",
};

static void add_bounds(const struct gf_field *f, struct gf_text *out)
{
	bool open = 0 < f->low && f->low <= GF_MIN_SHARE;

	if (f->high > 0 && f->high < GF_MAX_COUNT)
		gf_text_addf(out, " in %s%.10g, %.10g]", open ? "(" : "[", open ? 0 : f->low,
			     f->high);
	else if (f->low > 0)
		gf_text_addf(out, ", at least %.10g", f->low);
	if (f->type == GF_FIELD_REAL && f->names)
		gf_text_addf(out, " or %s", f->names[0]);
	for (size_t i = 0; f->type == GF_FIELD_CHOICE && f->names[i]; i++)
		gf_text_addf(out, "%s%s", i ? ", " : " ", f->names[i]);
}

static void add_absent(const struct gf_field *f, struct gf_text *out)
{
	if (f->type == GF_FIELD_BOOL)
		gf_text_addf(out, "; %s by default", f->absent > 0 ? "true" : "false");
	else if (f->names)
		gf_text_addf(out, "; %s by default",
			     f->names[isnan(f->absent) ? 0 : (int)f->absent]);
	else
		gf_text_addf(out, "; %.10g by default", f->absent);
}

static void add_fields(const char *list, const char *entry, const struct gf_field *f,
		       struct gf_text *out)
{
	for (; f->key || f->type == GF_FIELD_INCLUDE; f++) {
		if (f->type == GF_FIELD_INCLUDE) {
			add_fields(list, entry, f->record->fields, out);
			continue;
		}
		gf_text_addf(out, "%s\t%s\t%s\t%s", list, entry, f->key,
			     types[f->type] ? types[f->type] : "object");
		add_bounds(f, out);
		if (f->presence == GF_REQUIRED)
			gf_text_addf(out, ", required");
		else if (f->presence == GF_DEFAULTED)
			add_absent(f, out);
		gf_text_addf(out, "\n");
	}
}

/* entries: pointers to structs that begin with GF_ENTRY; NULL-terminated. */
static void add_keys(const char *list, const void *entries, struct gf_text *out)
{
	const struct gf_entry *const *e;

	for (e = entries; *e; e++)
		add_fields(list, (*e)->name, (*e)->record->fields, out);
}

/* Takes the text over. */
static int save(const char *folder, const char *name, const char *ending, char *text)
{
	GF_FREED char *path = gf_xasprintf("%s/%s%s", folder, name, ending);
	FILE *f = fopen(path, "w");
	int failed = !f || fputs(text, f) < 0;

	failed |= f && fclose(f);
	if (failed)
		fprintf(stderr, "gf-schema: %s: %s\n", path, strerror(errno));
	free(text);
	return failed;
}

int main(int argc, char **argv)
{
	const struct gf_document_format *const *f;
	struct gf_text keys = {0};
	int failed = 0;

	if (argc != 2) {
		fprintf(stderr, "gf-schema: want FOLDER\n");
		return 2;
	}
	for (f = gf_document_formats; *f && !failed; f++)
		failed = save(argv[1], (*f)->name, ".schema.json", gf_document_schema(*f));
	add_keys("gf_select_plans", gf_select_plans, &keys);
	add_keys("gf_period_plans", gf_period_plans, &keys);
	return save(argv[1], "keys", "", gf_text_take(&keys)) || failed;
}
