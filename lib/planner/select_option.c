/* SPDX-License-Identifier: BSD-3-Clause */
#include "planner/select_option.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/heap.h"
#include "json/record_text.h"

/* NULL: no key of the selection has that option. */
static const struct gf_field *find_field(const struct gf_select_plan *plan,
					 const char *option)
{
	const struct gf_field *f;

	for (f = plan->record->fields; f->key; f++)
		if (f->option && strcmp(f->option, option) == 0)
			return f;
	return NULL;
}

size_t
gf_select_options(struct gf_select_option options[GF_SELECT_OPTIONS_MOST])
{
	const struct gf_field *f;
	size_t count = 0, i, k;

	for (i = 0; gf_select_plans[i]; i++) {
		for (f = gf_select_plans[i]->record->fields; f->key; f++) {
			if (!f->option)
				continue;
			for (k = 0; k < count; k++)
				if (strcmp(options[k].field->option,
					   f->option) == 0)
					break;
			if (k < count)
				continue;
			assert(count < GF_SELECT_OPTIONS_MOST);
			options[count++] = (struct gf_select_option){
				.plan = gf_select_plans[i], .field = f};
		}
	}
	return count;
}

/* "topk, gtopk", with `last` before the last of them. */
static void add_owners(const char *option, const char *last,
		       struct gf_text *out)
{
	const char *owners[64];
	size_t count = 0, i;

	for (i = 0; gf_select_plans[i]; i++) {
		assert(count < 64);
		if (find_field(gf_select_plans[i], option))
			owners[count++] = gf_select_names[i];
	}
	for (i = 0; i < count; i++)
		gf_text_addf(out, "%s%s",
			     !i              ? ""
			     : i + 1 < count ? ", "
					     : last,
			     owners[i]);
}

/* The first owner's default, then others where they differ: "0.001; randomk:
 * 0.01". */
static void add_defaults(const struct gf_select_option *o, struct gf_text *out)
{
	struct gf_text first = {0};
	size_t i;

	gf_field_print(o->field, o->plan->defaults, &first);
	gf_text_addf(out, "%s", first.data);
	for (i = 0; gf_select_plans[i]; i++) {
		const struct gf_select_plan *p = gf_select_plans[i];
		const struct gf_field *f = find_field(p, o->field->option);
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

void gf_select_option_help(const struct gf_select_option *o,
			   struct gf_text *out)
{
	add_owners(o->field->option, ", ", out);
	gf_text_addf(out, ": %s (", o->field->help);
	add_defaults(o, out);
	gf_text_addf(out, ")");
}

int gf_select_option_store(const char *text, void *option, struct gf_error *err)
{
	struct gf_select_option *o = option;
	const struct gf_record *record = o->plan->record;
	void *scratch = gf_xcalloc(1, record->bytes);
	int rc = gf_field_parse(o->field, text, scratch, err);

	if (rc == 0)
		o->text = text;
	gf_record_release(record, scratch);
	free(scratch);
	return rc;
}

static int refuse(const struct gf_select_option *o,
		  const struct gf_selection *s, struct gf_error *err)
{
	struct gf_text owners = {0};
	int rc;

	add_owners(o->field->option, " or ", &owners);
	rc = gf_error_set(err, -EINVAL, "--%s: want --selection %s, got %s",
			  o->field->option, owners.data, gf_selection_name(s));
	gf_text_release(&owners);
	return rc;
}

int gf_select_options_apply(const struct gf_select_option *options, size_t n,
			    struct gf_selection *s, struct gf_error *err)
{
	const struct gf_field *field;
	size_t i;
	int rc = 0;

	for (i = 0; i < n && rc == 0; i++) {
		if (!options[i].text)
			continue;
		field = find_field(gf_selection_plan(s),
				   options[i].field->option);
		rc = field ? gf_field_parse(field, options[i].text, s->params,
					    err)
			   : refuse(&options[i], s, err);
	}
	return rc;
}
