/* SPDX-License-Identifier: BSD-3-Clause */
#include "json/record.h"

#include <assert.h>
#include <math.h>
#include <string.h>

#include "base/heap.h"
#include "json/record_parts.h"

/* item was zeroed */
static void set_absent(const struct gf_field *f, void *item)
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
			set_absent(f, p);
		break;
	default:
		break; /* pointers and counts are zero already */
	}
}

void gf_record_clear(const struct gf_record *r, void *item)
{
	const struct gf_field *f;

	for (f = r->fields; !gf_field_is_last(f); f++)
		set_absent(f, item);
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
	GF_FREED void *copy = gf_xcalloc(1, r->bytes);

	gf_record_copy(r, copy, under);
	take(r, item, copy);
	gf_record_release(r, copy);
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

static int read_numbers(struct gf_json_at *at, const struct gf_field *f, void *item,
			struct gf_error *err)
{
	bool reals = f->type == GF_FIELD_REALS;
	struct gf_json_at row;
	size_t count, i;
	void *numbers;
	int rc = gf_json_array(at, f->key, &row, &count, err);

	if (!rc && f->per && count != *gf_field_count(f, item))
		rc = gf_json_refuse(at, f->key, err, "want %zu numbers, one per %s, got %zu",
				    *gf_field_count(f, item), f->per, count);
	if (rc || !count)
		return rc;
	numbers = gf_xcalloc(count, reals ? sizeof(double) : sizeof(size_t));
	for (i = 0; i < count && !rc; i++)
		rc = reals ? gf_json_real(gf_json_item(&row, i), NULL, f->low, f->high,
					  (double *)numbers + i, err)
			   : gf_json_size(gf_json_item(&row, i), NULL, (size_t)f->low,
					  (size_t)f->high, (size_t *)numbers + i, err);
	if (rc) {
		free(numbers);
		return rc;
	}
	gf_field_set_pointer(f, item, numbers);
	*gf_field_count(f, item) = count;
	return 0;
}

/* An object by pointer, or one inside the struct. */
static int read_object(struct gf_json_at *at, const struct gf_field *f, void *item,
		       struct gf_error *err)
{
	struct gf_json_at inner;
	void *object;
	int rc = gf_json_object(at, f->key, &inner, err);

	if (rc)
		return rc;
	if (f->type == GF_FIELD_GROUP) {
		item = gf_field_place(f, item);
		rc = gf_fields_read(&inner, f->record, item, err);
		rc = rc ?: gf_json_end(&inner, gf_record_extra(f->record, item), err);
		gf_json_leave(&inner);
		return rc;
	}
	object = gf_xcalloc(1, f->record->bytes);
	rc = gf_record_read(&inner, f->record, object, err);
	if (rc)
		free(object);
	else
		gf_field_set_pointer(f, item, object);
	return rc;
}

/* A number, or a word that stands for NAN. */
static int read_real(struct gf_json_at *at, const struct gf_field *f, double *p,
		     struct gf_error *err)
{
	int index;

	if (!f->names || !gf_json_is_string(at, f->key))
		return gf_json_real(at, f->key, f->low, f->high, p, err);
	*p = NAN;
	return gf_json_choice(at, f->key, f->names, &index, err);
}

/* A number, or the part of another length. */
static int read_steps(struct gf_json_at *at, const struct gf_field *f, void *item,
		      struct gf_error *err)
{
	struct gf_steps_part *part = gf_field_part(f, item);
	struct gf_json_at inner;
	bool of_run;
	int rc;

	if (!gf_json_is_object(at, f->key))
		return gf_json_size(at, f->key, (size_t)f->low, (size_t)f->high,
				    gf_field_place(f, item), err);
	rc = gf_json_object(at, f->key, &inner, err);
	if (rc)
		return rc;
	of_run = gf_json_has(&inner, "run_share");
	rc = gf_json_real(&inner, of_run ? "run_share" : "epochs", GF_MIN_SHARE,
			  of_run ? 1 : GF_MAX_COUNT, &part->share, err);
	part->of = of_run ? GF_STEPS_OF_RUN : GF_STEPS_OF_EPOCH;
	if (!rc)
		return gf_json_end(&inner, NULL, err);
	gf_json_leave(&inner);
	return rc;
}

static int read_field(struct gf_json_at *at, const struct gf_field *f, void *item,
		      struct gf_error *err)
{
	void *p = gf_field_place(f, item);

	switch (f->type) {
	case GF_FIELD_STRING:
		return gf_json_string(at, f->key, p, err);
	case GF_FIELD_SIZE:
		return gf_json_size(at, f->key, (size_t)f->low, (size_t)f->high, p, err);
	case GF_FIELD_STEPS:
		return read_steps(at, f, item, err);
	case GF_FIELD_INT:
		return gf_json_int(at, f->key, (int)f->low, (int)f->high, p, err);
	case GF_FIELD_BOOL:
		return gf_json_bool(at, f->key, p, err);
	case GF_FIELD_REAL:
		return read_real(at, f, p, err);
	case GF_FIELD_CHOICE:
		return gf_json_choice(at, f->key, f->names, p, err);
	case GF_FIELD_RAW:
		return gf_json_raw(at, f->key, p, err);
	case GF_FIELD_SIZES:
	case GF_FIELD_REALS:
		return read_numbers(at, f, item, err);
	case GF_FIELD_LIST:
		return gf_list_read(at, f->key, f->record, p, gf_field_count(f, item), err);
	case GF_FIELD_OBJECT:
	case GF_FIELD_GROUP:
		return read_object(at, f, item, err);
	case GF_FIELD_INCLUDE:
		break;
	case GF_FIELD_OWN:
		return f->own->read(at, f->key, p, err);
	}
	assert(!"a field type without a reader");
	return 0;
}

int gf_fields_read(struct gf_json_at *at, const struct gf_record *r, void *item,
		   struct gf_error *err)
{
	const struct gf_field *f;
	int rc = 0;

	for (f = r->fields; !gf_field_is_last(f) && !rc; f++) {
		if (f->type == GF_FIELD_INCLUDE)
			rc = gf_fields_read(at, f->record, item, err);
		else if (f->presence == GF_REQUIRED ||
			 (f->presence != GF_HIDDEN && gf_json_has(at, f->key)))
			rc = read_field(at, f, item, err);
		else
			set_absent(f, item);
	}
	return rc;
}

int gf_record_read(struct gf_json_at *at, const struct gf_record *r, void *item,
		   struct gf_error *err)
{
	int rc = gf_fields_read(at, r, item, err);

	rc = rc ?: gf_json_end(at, gf_record_extra(r, item), err);
	if (!rc && r->finish)
		rc = r->finish(at, item, err);
	if (rc)
		gf_record_release(r, item);
	gf_json_leave(at);
	return rc;
}

int gf_list_read(struct gf_json_at *at, const char *key, const struct gf_record *r, void *items_ptr,
		 size_t *count, struct gf_error *err)
{
	struct gf_json_at list, entry;
	char *items;
	size_t n, i;
	int rc = gf_json_array(at, key, &list, &n, err);

	if (rc)
		return rc;
	items = n ? gf_xcalloc(n, r->bytes) : NULL;
	for (i = 0; i < n && !rc; i++) {
		rc = gf_json_object(gf_json_item(&list, i), NULL, &entry, err);
		rc = rc ?: gf_record_read(&entry, r, items + i * r->bytes, err);
	}
	if (rc) {
		gf_list_free(r, items, n);
		return rc;
	}
	memcpy(items_ptr, &items, sizeof(items));
	*count = n;
	return 0;
}
