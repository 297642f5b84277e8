/* SPDX-License-Identifier: BSD-3-Clause */
#include "json/record.h"

#include <stdlib.h>
#include <string.h>

#include "base/heap.h"
#include "json/record_parts.h"

static void release_fields(const struct gf_field *fields, void *item)
{
	const struct gf_field *f;

	for (f = fields; !gf_field_is_last(f); f++) {
		void *p = gf_field_place(f, item);

		switch (f->type) {
		case GF_FIELD_STRING:
		case GF_FIELD_RAW:
		case GF_FIELD_SIZES:
		case GF_FIELD_REALS:
			free(gf_field_pointer(f, item));
			break;
		case GF_FIELD_LIST:
			gf_list_free(f->record, gf_field_pointer(f, item),
				     *gf_field_count(f, item));
			break;
		case GF_FIELD_OBJECT:
			gf_list_free(f->record, gf_field_pointer(f, item),
				     gf_field_pointer(f, item) != NULL);
			break;
		case GF_FIELD_GROUP:
			free(*gf_record_extra(f->record, p));
			release_fields(f->record->fields, p);
			break;
		case GF_FIELD_INCLUDE:
			release_fields(f->record->fields, item);
			break;
		case GF_FIELD_OWN:
			if (f->own->release)
				f->own->release(p);
			break;
		default:
			break;
		}
	}
}

void gf_record_release(const struct gf_record *r, void *item)
{
	release_fields(r->fields, item);
	free(*gf_record_extra(r, item));
	memset(item, 0, r->bytes);
}

void gf_list_free(const struct gf_record *r, void *items, size_t count)
{
	size_t i;

	for (i = 0; items && i < count; i++)
		gf_record_release(r, (char *)items + i * r->bytes);
	free(items);
}

static void own_text(const struct gf_field *f, void *item)
{
	gf_field_set_pointer(f, item,
			     gf_xstrdup_or_null(gf_field_pointer(f, item)));
}

static void own_numbers(const struct gf_field *f, void *item)
{
	size_t bytes =
		f->type == GF_FIELD_REALS ? sizeof(double) : sizeof(size_t);

	if (gf_field_pointer(f, item))
		gf_field_set_pointer(
			f, item,
			gf_xmemdup(gf_field_pointer(f, item),
				   *gf_field_count(f, item) * bytes));
}

static void own_records(const struct gf_field *f, void *item, size_t count)
{
	gf_field_set_pointer(
		f, item,
		gf_list_copy(f->record, gf_field_pointer(f, item), count));
}

static void own_extra(const struct gf_record *r, void *item)
{
	char **extra = gf_record_extra(r, item);

	*extra = gf_xstrdup_or_null(*extra);
}

/* item was copied bit by bit; gives it its own strings, arrays and objects. */
static void own_fields(const struct gf_field *fields, void *item)
{
	const struct gf_field *f;

	for (f = fields; !gf_field_is_last(f); f++) {
		void *p = gf_field_place(f, item);

		switch (f->type) {
		case GF_FIELD_STRING:
		case GF_FIELD_RAW:
			own_text(f, item);
			break;
		case GF_FIELD_SIZES:
		case GF_FIELD_REALS:
			own_numbers(f, item);
			break;
		case GF_FIELD_LIST:
			own_records(f, item, *gf_field_count(f, item));
			break;
		case GF_FIELD_OBJECT:
			own_records(f, item, gf_field_pointer(f, item) != NULL);
			break;
		case GF_FIELD_GROUP:
			own_extra(f->record, p);
			own_fields(f->record->fields, p);
			break;
		case GF_FIELD_INCLUDE:
			own_fields(f->record->fields, item);
			break;
		case GF_FIELD_OWN:
			if (f->own->copy)
				f->own->copy(p);
			break;
		default:
			break;
		}
	}
}

void gf_record_copy(const struct gf_record *r, void *copy, const void *item)
{
	memcpy(copy, item, r->bytes);
	own_fields(r->fields, copy);
	own_extra(r, copy);
}

void *gf_list_copy(const struct gf_record *r, const void *items, size_t count)
{
	char *copy = items && count ? gf_xcalloc(count, r->bytes) : NULL;
	size_t i;

	for (i = 0; copy && i < count; i++)
		gf_record_copy(r, copy + i * r->bytes,
			       (const char *)items + i * r->bytes);
	return copy;
}
