/* SPDX-License-Identifier: BSD-3-Clause */
/* Absent fields: setting them, and filling them from another struct. */
#include "json/record.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/heap.h"
#include "json/record_parts.h"

void gf_field_set_absent(const struct gf_field *f, void *item)
{
	void *p = gf_field_place(f, item);

	switch (f->type) {
	case GF_FIELD_SIZE:
	case GF_FIELD_STEPS:
		*(size_t *)p = (size_t)f->absent;
		break;
	case GF_FIELD_INT:
	case GF_FIELD_CHOICE:
		*(int *)p = (int)f->absent;
		break;
	case GF_FIELD_BOOL:
		*(bool *)p = f->absent != 0;
		break;
	case GF_FIELD_REAL:
		*(double *)p = f->absent;
		break;
	case GF_FIELD_GROUP:
		for (f = f->record->fields; f->key; f++)
			gf_field_set_absent(f, p);
		break;
	default:
		break; /* pointers and counts are zero already */
	}
}

void gf_record_clear(const struct gf_record *r, void *item)
{
	const struct gf_field *f;

	for (f = r->fields; !gf_field_is_last(f); f++)
		gf_field_set_absent(f, item);
}

static void swap(void *a, void *b, size_t bytes)
{
	unsigned char kept[sizeof(double)];

	assert(bytes <= sizeof(kept));
	memcpy(kept, a, bytes);
	memcpy(a, b, bytes);
	memcpy(b, kept, bytes);
}

/* The field's value, with what it owns. */
static void swap_field(const struct gf_field *f, void *a, void *b)
{
	assert(f->type < GF_FIELD_GROUP && f->type != GF_FIELD_STEPS);
	swap(gf_field_place(f, a), gf_field_place(f, b), gf_field_bytes(f));
	if (f->type == GF_FIELD_SIZES || f->type == GF_FIELD_REALS || f->type == GF_FIELD_LIST)
		swap(gf_field_count(f, a), gf_field_count(f, b), sizeof(size_t));
}

/* `from` is the caller's own copy, which gets what was absent. */
static void take(const struct gf_record *r, void *item, void *from)
{
	char **extra = gf_record_extra(r, item), *merged;
	const struct gf_field *f;

	for (f = r->fields; !gf_field_is_last(f); f++) {
		if (f->type == GF_FIELD_GROUP)
			take(f->record, gf_field_place(f, item), gf_field_place(f, from));
		else if (gf_field_is_absent(f, item))
			swap_field(f, item, from);
	}
	merged = gf_json_merge(*extra, *gf_record_extra(r, from));
	free(*extra);
	*extra = merged;
}

void gf_record_fill(const struct gf_record *r, void *item, const void *under)
{
	void *copy = gf_xcalloc(1, r->bytes);

	gf_record_copy(r, copy, under);
	take(r, item, copy);
	gf_record_release(r, copy);
	free(copy);
}

const char *gf_record_settle(const struct gf_record *r, void *item, double epoch_steps,
			     double run_steps)
{
	const struct gf_field *f;
	const char *open = NULL;

	for (f = r->fields; !gf_field_is_last(f); f++) {
		struct gf_steps_part *part = gf_field_part(f, item);

		if (f->type != GF_FIELD_STEPS)
			continue;
		gf_steps_settle(gf_field_place(f, item), part, epoch_steps, run_steps);
		open = part->of == GF_STEPS_KNOWN ? open : f->key;
	}
	return open;
}

bool gf_record_shorten(const struct gf_record *r, void *item, size_t steps, size_t epochs)
{
	const struct gf_field *f;
	bool shorter = false;

	for (f = r->fields; !gf_field_is_last(f); f++) {
		const bool listed = f->type == GF_FIELD_REALS;
		const size_t run = listed ? epochs : steps;
		size_t *length = listed ? gf_field_count(f, item) : gf_field_place(f, item);

		if ((!listed && f->type != GF_FIELD_STEPS) || *length < run)
			continue;
		*length = run / 2;
		shorter = true;
	}
	return shorter;
}
