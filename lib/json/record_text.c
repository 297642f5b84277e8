/* SPDX-License-Identifier: BSD-3-Clause */
#include "json/keys.h"

#include <assert.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/heap.h"
#include "base/registry.h"
#include "base/units.h"
#include "json/record_parts.h"

/* Whole numbers up to this one are exact as double, too. */
#define MAX_WHOLE 1e15

static const char *const switches[] = {"off", "on", NULL};

static bool is_in(const struct gf_field *f, const char *unit)
{
	return f->unit && strcmp(f->unit, unit) == 0;
}

static int parse_real(const struct gf_field *f, const char *text, double *p, struct gf_error *err)
{
	if (is_in(f, "TIME"))
		return gf_units_time(text, p, err);
	if (f->unit && strcmp(f->unit, "RATE") == 0)
		return gf_units_rate(text, p, err);
	if (!f->names || strcmp(text, f->names[0]) != 0)
		return gf_units_real(text, f->low, f->high, p, err);
	*p = NAN;
	return 0;
}

static int parse_reals(const struct gf_field *f, const char *text, void *item, struct gf_error *err)
{
	char *copy = gf_xstrdup(text), *rest = copy, *part;
	double *numbers = gf_xcalloc(strlen(text) + 1, sizeof(*numbers));
	size_t count = 0;
	int rc = 0;

	if (f->names && strcmp(text, f->names[0]) == 0)
		rest = NULL;
	while (!rc && (part = strsep(&rest, ",")))
		rc = gf_units_real(part, f->low, f->high, &numbers[count++], err);
	free(copy);
	if (rc) {
		free(numbers);
		return rc;
	}
	free(gf_field_pointer(f, item));
	gf_field_set_pointer(f, item, numbers);
	*gf_field_count(f, item) = count;
	return 0;
}

int gf_field_parse(const struct gf_field *f, const char *text, void *item, struct gf_error *err)
{
	void *p = gf_field_place(f, item);
	long long whole;
	int rc, index = 0;

	switch (f->type) {
	case GF_FIELD_SIZE:
	case GF_FIELD_INT:
		if (is_in(f, "SIZE"))
			return gf_units_size(text, p, err);
		rc = gf_units_int(text, (long long)f->low, (long long)fmin(f->high, MAX_WHOLE),
				  &whole, err);
		if (!rc && f->type == GF_FIELD_INT)
			*(int *)p = (int)whole;
		else if (!rc)
			*(size_t *)p = (size_t)whole;
		return rc;
	case GF_FIELD_STEPS:
		return gf_steps_parse(text, p, gf_field_part(f, item), err);
	case GF_FIELD_BOOL:
		text = strcmp(text, "yes") == 0 ? "on" : strcmp(text, "no") == 0 ? "off" : text;
		rc = gf_names_find(switches, text, &index, err);
		if (!rc)
			*(bool *)p = index;
		return rc;
	case GF_FIELD_REAL:
		return parse_real(f, text, p, err);
	case GF_FIELD_CHOICE:
		return gf_names_find(f->names, text, p, err);
	case GF_FIELD_REALS:
		return parse_reals(f, text, item, err);
	case GF_FIELD_STRING:
		if (!*text)
			return gf_error_set(err, -EINVAL, "want %s, got \"\"", f->unit);
		free(gf_field_pointer(f, item));
		gf_field_set_pointer(f, item, gf_xstrdup(text));
		return 0;
	default:
		assert(!"a field type that no option can set");
		return -EINVAL;
	}
}

static void print_reals(const struct gf_field *f, const void *item, struct gf_text *out)
{
	const double *numbers = gf_field_pointer(f, item);
	size_t i, count = *gf_field_count(f, item);

	for (i = 0; i < count; i++)
		gf_text_addf(out, "%s%g", i ? "," : "", numbers[i]);
	if (!count && f->names)
		gf_text_addf(out, "%s", f->names[0]);
}

void gf_field_print(const struct gf_field *f, const void *item, struct gf_text *out)
{
	const void *p = gf_field_place(f, item);

	switch (f->type) {
	case GF_FIELD_SIZE:
		gf_text_addf(out, "%zu", *(const size_t *)p);
		break;
	case GF_FIELD_STEPS:
		if (gf_field_part(f, item)->of == GF_STEPS_KNOWN)
			gf_text_addf(out, "%zu", *(const size_t *)p);
		gf_steps_text(gf_field_part(f, item), out);
		break;
	case GF_FIELD_INT:
		gf_text_addf(out, "%d", *(const int *)p);
		break;
	case GF_FIELD_BOOL:
		gf_text_addf(out, "%s", switches[*(const bool *)p]);
		break;
	case GF_FIELD_REAL:
		if (f->names && isnan(*(const double *)p))
			gf_text_addf(out, "%s", f->names[0]);
		else if (!isnan(*(const double *)p))
			gf_text_addf(out, "%g", *(const double *)p);
		break;
	case GF_FIELD_CHOICE:
		if (*(const int *)p >= 0)
			gf_text_addf(out, "%s", f->names[*(const int *)p]);
		break;
	case GF_FIELD_STRING:
		if (gf_field_pointer(f, item))
			gf_text_addf(out, "%s", (const char *)gf_field_pointer(f, item));
		break;
	case GF_FIELD_REALS:
		print_reals(f, item, out);
		break;
	default:
		assert(!"a field type that no option can set");
	}
}
