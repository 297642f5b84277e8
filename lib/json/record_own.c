/* SPDX-License-Identifier: BSD-3-Clause */
#include "json/record.h"

#include <stdlib.h>
#include <string.h>

#include "base/heap.h"
#include "json/record_parts.h"

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
	size_t i;

	for (i = 0; items && i < count; i++)
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
	size_t i;

	for (i = 0; copy && i < count; i++)
		gf_record_copy(r, copy + i * r->bytes, (const char *)items + i * r->bytes);
	return copy;
}
