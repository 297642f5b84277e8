/* SPDX-License-Identifier: BSD-3-Clause */
#include "json/record.h"

#include <math.h>
#include <string.h>

#include "base/heap.h"
#include "json/record_parts.h"

/* The value of a scalar field as a double; exact, as sizes stay below 2^62 only in comparisons with
 * `absent`, which is small. */
static double scalar_of(const struct gf_field *f, const void *item)
{
	const void *p = gf_field_place(f, item);

	switch (f->type) {
	case GF_FIELD_SIZE:
	case GF_FIELD_STEPS:
		return (double)*(const size_t *)p;
	case GF_FIELD_INT:
	case GF_FIELD_CHOICE:
		return *(const int *)p;
	case GF_FIELD_BOOL:
		return *(const bool *)p;
	default:
		return *(const double *)p;
	}
}

double gf_record_number(const struct gf_record *r, const void *item, const char *key)
{
	const struct gf_field *f = r->fields;

	while (!gf_field_is_last(f) && !(f->key && strcmp(f->key, key) == 0))
		f++;
	return gf_field_is_last(f) ? NAN : scalar_of(f, item);
}

bool gf_field_is_absent(const struct gf_field *f, const void *item)
{
	const void *p = gf_field_place(f, item);
	const struct gf_field *inner;
	double value;

	switch (f->type) {
	case GF_FIELD_SIZE:
	case GF_FIELD_INT:
	case GF_FIELD_BOOL:
	case GF_FIELD_CHOICE:
	case GF_FIELD_REAL:
		value = scalar_of(f, item);
		return value == f->absent || (isnan(value) && isnan(f->absent));
	case GF_FIELD_STEPS:
		return gf_field_part(f, item)->of == GF_STEPS_KNOWN &&
		       scalar_of(f, item) == f->absent;
	case GF_FIELD_SIZES:
	case GF_FIELD_REALS:
	case GF_FIELD_LIST:
		return *gf_field_count(f, item) == 0 || (f->per && !gf_field_pointer(f, item));
	case GF_FIELD_STRING:
	case GF_FIELD_RAW:
	case GF_FIELD_OBJECT:
		return gf_field_pointer(f, item) == NULL;
	case GF_FIELD_GROUP:
		for (inner = f->record->fields; inner->key; inner++)
			if (!gf_field_is_absent(inner, p))
				return false;
		return *gf_record_extra(f->record, p) == NULL;
	case GF_FIELD_OWN:
		return f->own->absent && f->own->absent(p);
	default:
		return false;
	}
}

static void open_record(struct gf_json_writer *w, const char *key, const struct gf_record *r)
{
	if (r->one_line)
		gf_json_open_line(w, key);
	else
		gf_json_open_object(w, key);
}

static void write_numbers(struct gf_json_writer *w, const struct gf_field *f, const void *item)
{
	const void *numbers = gf_field_pointer(f, item);
	size_t i, count = *gf_field_count(f, item);

	gf_json_open_row(w, f->key);
	for (i = 0; i < count; i++) {
		if (f->type == GF_FIELD_REALS)
			gf_json_put_real(w, NULL, ((const double *)numbers)[i]);
		else
			gf_json_put_size(w, NULL, ((const size_t *)numbers)[i]);
	}
	gf_json_close_array(w);
}

static void write_list(struct gf_json_writer *w, const char *key, const struct gf_record *r,
		       const void *items, size_t count)
{
	gf_json_open_array(w, key);
	for (size_t i = 0; i < count; i++) {
		open_record(w, NULL, r);
		gf_record_write(w, r, (const char *)items + i * r->bytes);
		gf_json_close_object(w);
	}
	gf_json_close_array(w);
}

static void write_steps(struct gf_json_writer *w, const struct gf_field *f, const void *item)
{
	const struct gf_steps_part *part = gf_field_part(f, item);

	if (part->of == GF_STEPS_KNOWN) {
		gf_json_put_size(w, f->key, *(const size_t *)gf_field_place(f, item));
		return;
	}
	gf_json_open_line(w, f->key);
	gf_json_put_real(w, part->of == GF_STEPS_OF_RUN ? "run_share" : "epochs", part->share);
	gf_json_close_object(w);
}

static void write_field(struct gf_json_writer *w, const struct gf_field *f, const void *item)
{
	const void *p = gf_field_place(f, item);

	switch (f->type) {
	case GF_FIELD_STRING:
		gf_json_put_string(w, f->key, gf_field_pointer(f, item));
		break;
	case GF_FIELD_SIZE:
		gf_json_put_size(w, f->key, *(const size_t *)p);
		break;
	case GF_FIELD_STEPS:
		write_steps(w, f, item);
		break;
	case GF_FIELD_INT:
		gf_json_put_int(w, f->key, *(const int *)p);
		break;
	case GF_FIELD_BOOL:
		gf_json_put_bool(w, f->key, *(const bool *)p);
		break;
	case GF_FIELD_REAL:
		if (f->names && isnan(*(const double *)p))
			gf_json_put_string(w, f->key, f->names[0]);
		else
			gf_json_put_real(w, f->key, *(const double *)p);
		break;
	case GF_FIELD_CHOICE:
		gf_json_put_string(w, f->key, f->names[*(const int *)p]);
		break;
	case GF_FIELD_RAW:
		gf_json_put_raw(w, f->key, gf_field_pointer(f, item));
		break;
	case GF_FIELD_SIZES:
	case GF_FIELD_REALS:
		write_numbers(w, f, item);
		break;
	case GF_FIELD_LIST:
		write_list(w, f->key, f->record, gf_field_pointer(f, item),
			   *gf_field_count(f, item));
		break;
	case GF_FIELD_OBJECT:
	case GF_FIELD_GROUP:
		open_record(w, f->key, f->record);
		gf_record_write(w, f->record,
				f->type == GF_FIELD_GROUP ? p : gf_field_pointer(f, item));
		gf_json_close_object(w);
		break;
	case GF_FIELD_INCLUDE:
		gf_fields_write(w, f->record, item);
		break;
	case GF_FIELD_OWN:
		f->own->write(w, f->key, p);
		break;
	}
}

void gf_fields_write(struct gf_json_writer *w, const struct gf_record *r, const void *item)
{
	const struct gf_field *f;
	bool written = false;

	for (f = r->fields; !gf_field_is_last(f); f++) {
		if (f->presence == GF_HIDDEN)
			written = false;
		else if (f->presence == GF_OMITTED)
			written = !gf_field_is_absent(f, item);
		else if (f->presence != GF_FOLLOWS)
			written = true;
		if (written)
			write_field(w, f, item);
	}
}

void gf_record_write(struct gf_json_writer *w, const struct gf_record *r, const void *item)
{
	gf_fields_write(w, r, item);
	gf_json_put_extra(w, *gf_record_extra(r, item));
}

/*
 * Two walks over what a struct owns are one: an item is released, or it was copied bit by bit and
 * gets strings, arrays and objects of its own.
 */
enum walk { RELEASE, OWN };

static void walk_fields(enum walk walk, const struct gf_field *fields, void *item);

static void walk_bytes(enum walk walk, const struct gf_field *f, void *item, size_t bytes)
{
	void *p = gf_field_pointer(f, item);

	if (walk == RELEASE)
		free(p);
	else if (p)
		gf_field_set_pointer(f, item, gf_xmemdup(p, bytes));
}

static void walk_list(enum walk walk, const struct gf_field *f, void *item, size_t count)
{
	void *items = gf_field_pointer(f, item);

	if (walk == RELEASE)
		gf_list_free(f->record, items, count);
	else
		gf_field_set_pointer(f, item, gf_list_copy(f->record, items, count));
}

/* The fields, and the keys that a reader does not know. */
static void walk_record(enum walk walk, const struct gf_record *r, void *item)
{
	char **extra = gf_record_extra(r, item);

	if (walk == RELEASE)
		free(*extra);
	else
		*extra = gf_xstrdup_or_null(*extra);
	walk_fields(walk, r->fields, item);
}

static void walk_field(enum walk walk, const struct gf_field *f, void *item)
{
	void *p = gf_field_place(f, item), *pointer;

	switch (f->type) {
	case GF_FIELD_STRING:
	case GF_FIELD_RAW:
		pointer = gf_field_pointer(f, item);
		walk_bytes(walk, f, item, pointer ? strlen(pointer) + 1 : 0);
		break;
	case GF_FIELD_SIZES:
	case GF_FIELD_REALS:
		walk_bytes(walk, f, item, *gf_field_count(f, item) * gf_field_bytes(f));
		break;
	case GF_FIELD_LIST:
		walk_list(walk, f, item, *gf_field_count(f, item));
		break;
	case GF_FIELD_OBJECT:
		walk_list(walk, f, item, gf_field_pointer(f, item) != NULL);
		break;
	case GF_FIELD_GROUP:
		walk_record(walk, f->record, p);
		break;
	case GF_FIELD_INCLUDE:
		walk_fields(walk, f->record->fields, item);
		break;
	case GF_FIELD_OWN:
		if (walk == RELEASE && f->own->release)
			f->own->release(p);
		else if (walk == OWN && f->own->copy)
			f->own->copy(p);
		break;
	default:
		break;
	}
}

static void walk_fields(enum walk walk, const struct gf_field *fields, void *item)
{
	const struct gf_field *f;

	for (f = fields; !gf_field_is_last(f); f++)
		walk_field(walk, f, item);
}

void gf_record_release(const struct gf_record *r, void *item)
{
	walk_record(RELEASE, r, item);
	memset(item, 0, r->bytes);
}

void gf_list_free(const struct gf_record *r, void *items, size_t count)
{
	for (size_t i = 0; items && i < count; i++)
		gf_record_release(r, (char *)items + i * r->bytes);
	free(items);
}

void gf_record_copy(const struct gf_record *r, void *copy, const void *item)
{
	memcpy(copy, item, r->bytes);
	walk_record(OWN, r, copy);
}

void *gf_list_copy(const struct gf_record *r, const void *items, size_t count)
{
	char *copy = items && count ? gf_xcalloc(count, r->bytes) : NULL;

	for (size_t i = 0; copy && i < count; i++)
		gf_record_copy(r, copy + i * r->bytes, (const char *)items + i * r->bytes);
	return copy;
}
