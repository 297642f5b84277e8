/* SPDX-License-Identifier: BSD-3-Clause */
#include "planner/axis_option.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/heap.h"
#include "doc/periods/period.h"
#include "doc/selections/selection.h"
#include "json/record_text.h"

const struct gf_axis gf_axis_selection = {"selection", {gf_select_plans, 0, NULL}};
const struct gf_axis gf_axis_period = {"period", {gf_period_plans, 0, NULL}};

static const struct gf_entry *entry_at(const struct gf_axis *axis, size_t i)
{
	return (const void *)gf_registry_at(&axis->entries, i);
}

/* Counts *k down. */
static const struct gf_field *field_at(const struct gf_record *r, size_t *k)
{
	const struct gf_field *f, *found;

	for (f = r->fields; f->key || f->type == GF_FIELD_INCLUDE; f++) {
		if (f->type == GF_FIELD_INCLUDE) {
			found = field_at(f->record, k);
			if (found)
				return found;
		} else if (f->option && (*k)-- == 0) {
			return f;
		}
	}
	return NULL;
}

/* The k-th field with an option; NULL: there is none. */
static const struct gf_field *axis_field(const struct gf_record *r, size_t k)
{
	return field_at(r, &k);
}

const struct gf_field *gf_axis_find(const struct gf_record *r, const char *option)
{
	const struct gf_field *f;
	size_t k;

	for (k = 0; (f = axis_field(r, k)); k++)
		if (strcmp(f->option, option) == 0)
			return f;
	return NULL;
}

size_t gf_axis_options(const struct gf_axis *axis,
		       struct gf_axis_option options[GF_AXIS_OPTIONS_MOST], size_t n)
{
	const struct gf_entry *entry;
	const struct gf_field *f;
	size_t i, k, j;

	for (i = 0; (entry = entry_at(axis, i)); i++)
		for (k = 0; (f = axis_field(entry->record, k)); k++) {
			for (j = 0; j < n; j++)
				if (strcmp(options[j].field->option, f->option) == 0)
					break;
			if (j < n)
				continue;
			assert(n < GF_AXIS_OPTIONS_MOST);
			options[n++] =
				(struct gf_axis_option){.axis = axis, .entry = entry, .field = f};
		}
	return n;
}

/* "topk, gtopk", with `last` before the last of them. */
static void add_owners(const struct gf_axis_option *o, const char *last, struct gf_text *out)
{
	const struct gf_entry *entry;
	const char *owners[64];
	size_t count = 0, i;

	for (i = 0; (entry = entry_at(o->axis, i)); i++) {
		assert(count < 64);
		if (gf_axis_find(entry->record, o->field->option))
			owners[count++] = entry->name;
	}
	for (i = 0; i < count; i++)
		gf_text_addf(out, "%s%s", !i ? "" : i + 1 < count ? ", " : last, owners[i]);
}

/* The first owner's default, then others where they differ: "0.001; randomk: 0.01". */
static void add_defaults(const struct gf_axis_option *o, struct gf_text *out)
{
	const struct gf_entry *p;
	struct gf_text first = {0};
	size_t i;

	gf_field_print(o->field, o->entry->defaults, &first);
	gf_text_addf(out, "%s", first.data);
	for (i = 0; (p = entry_at(o->axis, i)); i++) {
		const struct gf_field *f = gf_axis_find(p->record, o->field->option);
		struct gf_text text = {0};

		if (!f)
			continue;
		gf_field_print(f, p->defaults, &text);
		if (strcmp(text.data, first.data) != 0)
			gf_text_addf(out, "; %s: %s", p->name, text.data);
		gf_text_release(&text);
	}
	gf_text_release(&first);
}

void gf_axis_option_help(const struct gf_axis_option *o, struct gf_text *out)
{
	add_owners(o, ", ", out);
	gf_text_addf(out, ": %s (", o->field->help);
	add_defaults(o, out);
	gf_text_addf(out, ")");
}

int gf_axis_option_store(const char *text, void *option, struct gf_error *err)
{
	struct gf_axis_option *o = option;
	const struct gf_record *record = o->entry->record;
	void *scratch = gf_xcalloc(1, record->bytes);
	int rc = gf_field_parse(o->field, text, scratch, err);

	if (rc == 0)
		o->text = text;
	gf_record_release(record, scratch);
	free(scratch);
	return rc;
}

static int refuse(const struct gf_axis_option *o, const struct gf_entry *entry,
		  struct gf_error *err)
{
	struct gf_text owners = {0};
	int rc;

	add_owners(o, " or ", &owners);
	rc = gf_error_set(err, -EINVAL, "--%s: want --%s %s, got %s", o->field->option,
			  o->axis->option, owners.data, entry->name);
	gf_text_release(&owners);
	return rc;
}

int gf_axis_options_apply(const struct gf_axis_option *options, size_t n,
			  const struct gf_axis *axis, const struct gf_entry *entry, void *item,
			  struct gf_error *err)
{
	const struct gf_field *field;
	size_t i;
	int rc = 0;

	for (i = 0; i < n && rc == 0; i++) {
		if (!options[i].text || options[i].axis != axis)
			continue;
		field = gf_axis_find(entry->record, options[i].field->option);
		rc = field ? gf_field_parse(field, options[i].text, item, err)
			   : refuse(&options[i], entry, err);
	}
	return rc;
}
