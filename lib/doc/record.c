/* SPDX-License-Identifier: BSD-3-Clause */
#include "doc/record.h"

#include <assert.h>
#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/heap.h"

/* The member of an item that a field describes. */
static void *at_offset(const void *item, size_t offset)
{
	return (char *)item + offset;
}

static char **extra_of(const struct gf_record *r, const void *item)
{
	return at_offset(item, r->extra_offset);
}

static size_t *count_of(const struct gf_field *f, const void *item)
{
	return at_offset(item, f->count_offset);
}

static void *pointer_of(const struct gf_field *f, const void *item)
{
	void *pointer;

	memcpy(&pointer, at_offset(item, f->offset), sizeof(pointer));
	return pointer;
}

static void set_pointer(const struct gf_field *f, void *item, void *pointer)
{
	memcpy(at_offset(item, f->offset), &pointer, sizeof(pointer));
}

/* The value of a scalar field as a double; exact, as sizes stay below 2^62
 * only in comparisons with `absent`, which is small. */
static double scalar_of(const struct gf_field *f, const void *item)
{
	const void *p = at_offset(item, f->offset);

	switch (f->type) {
	case GF_FIELD_SIZE:
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

static void set_absent(const struct gf_field *f, void *item)
{
	void *p = at_offset(item, f->offset);

	switch (f->type) {
	case GF_FIELD_SIZE:
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

static bool is_absent(const struct gf_field *f, const void *item)
{
	const void *p = at_offset(item, f->offset);
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
	case GF_FIELD_SIZES:
	case GF_FIELD_REALS:
	case GF_FIELD_LIST:
		return *count_of(f, item) == 0;
	case GF_FIELD_STRING:
	case GF_FIELD_RAW:
	case GF_FIELD_OBJECT:
		return pointer_of(f, item) == NULL;
	case GF_FIELD_GROUP:
		for (inner = f->record->fields; inner->key; inner++)
			if (!is_absent(inner, p))
				return false;
		return *extra_of(f->record, p) == NULL;
	case GF_FIELD_OWN:
		return f->own->absent && f->own->absent(p);
	default:
		return false;
	}
}

/* --- reading ------------------------------------------------------------- */

static int read_numbers(struct gf_json_at *at, const struct gf_field *f,
			void *item, struct gf_error *err)
{
	bool reals = f->type == GF_FIELD_REALS;
	struct gf_json_at row;
	size_t count, i;
	void *numbers;
	int rc;

	rc = gf_json_array(at, f->key, &row, &count, err);
	if (rc || !count)
		return rc;
	numbers = gf_xcalloc(count, reals ? sizeof(double) : sizeof(size_t));
	for (i = 0; i < count && !rc; i++)
		rc = reals ? gf_json_item_real(&row, i, f->low, f->high,
					       (double *)numbers + i, err)
			   : gf_json_item_size(&row, i, (size_t)f->low,
					       (size_t)f->high,
					       (size_t *)numbers + i, err);
	if (rc) {
		free(numbers);
		return rc;
	}
	set_pointer(f, item, numbers);
	*count_of(f, item) = count;
	return 0;
}

static int read_fields(struct gf_json_at *at, const struct gf_field *fields,
		       void *item, struct gf_error *err);

/* An object by pointer, or one inside the struct. */
static int read_object(struct gf_json_at *at, const struct gf_field *f,
		       void *item, struct gf_error *err)
{
	struct gf_json_at inner;
	void *object;
	int rc;

	rc = gf_json_object(at, f->key, &inner, err);
	if (rc)
		return rc;
	if (f->type == GF_FIELD_GROUP) {
		item = at_offset(item, f->offset);
		rc = read_fields(&inner, f->record->fields, item, err);
		if (!rc)
			rc = gf_json_end(&inner, extra_of(f->record, item),
					 err);
		gf_json_leave(&inner);
		return rc;
	}
	object = gf_xcalloc(1, f->record->bytes);
	rc = gf_record_read(&inner, f->record, object, err);
	if (rc)
		free(object);
	else
		set_pointer(f, item, object);
	return rc;
}

static int read_list(struct gf_json_at *at, const struct gf_field *f,
		     void *item, struct gf_error *err)
{
	void *items;
	int rc;

	rc = gf_list_read(at, f->key, f->record, &items, count_of(f, item),
			  err);
	if (!rc)
		set_pointer(f, item, items);
	return rc;
}

static int read_field(struct gf_json_at *at, const struct gf_field *f,
		      void *item, struct gf_error *err)
{
	void *p = at_offset(item, f->offset);

	switch (f->type) {
	case GF_FIELD_STRING:
		return gf_json_string(at, f->key, p, err);
	case GF_FIELD_SIZE:
		return gf_json_size(at, f->key, (size_t)f->low, (size_t)f->high,
				    p, err);
	case GF_FIELD_INT:
		return gf_json_int(at, f->key, (int)f->low, (int)f->high, p,
				   err);
	case GF_FIELD_BOOL:
		return gf_json_bool(at, f->key, p, err);
	case GF_FIELD_REAL:
		return gf_json_real(at, f->key, f->low, f->high, p, err);
	case GF_FIELD_CHOICE:
		return gf_json_choice(at, f->key, f->names, p, err);
	case GF_FIELD_RAW:
		return gf_json_raw(at, f->key, p, err);
	case GF_FIELD_SIZES:
	case GF_FIELD_REALS:
		return read_numbers(at, f, item, err);
	case GF_FIELD_LIST:
		return read_list(at, f, item, err);
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

static bool is_last(const struct gf_field *f)
{
	return !f->key && f->type != GF_FIELD_INCLUDE;
}

static int read_fields(struct gf_json_at *at, const struct gf_field *fields,
		       void *item, struct gf_error *err)
{
	const struct gf_field *f;
	int rc = 0;

	for (f = fields; !is_last(f) && !rc; f++) {
		if (f->type == GF_FIELD_INCLUDE)
			rc = read_fields(at, f->record->fields, item, err);
		else if (f->presence == GF_REQUIRED ||
			 (f->presence != GF_HIDDEN && gf_json_has(at, f->key)))
			rc = read_field(at, f, item, err);
		else
			set_absent(f, item);
	}
	return rc;
}

int gf_fields_read(struct gf_json_at *at, const struct gf_record *r, void *item,
		   struct gf_error *err)
{
	return read_fields(at, r->fields, item, err);
}

int gf_record_read(struct gf_json_at *at, const struct gf_record *r, void *item,
		   struct gf_error *err)
{
	int rc;

	rc = read_fields(at, r->fields, item, err);
	if (!rc)
		rc = gf_json_end(at, extra_of(r, item), err);
	if (!rc && r->finish)
		rc = r->finish(at, item, err);
	if (rc)
		gf_record_release(r, item);
	gf_json_leave(at);
	return rc;
}

int gf_list_read(struct gf_json_at *at, const char *key,
		 const struct gf_record *r, void *items_ptr, size_t *count,
		 struct gf_error *err)
{
	struct gf_json_at list, entry;
	char *items;
	size_t n, i;
	int rc;

	rc = gf_json_array(at, key, &list, &n, err);
	if (rc)
		return rc;
	items = n ? gf_xcalloc(n, r->bytes) : NULL;
	for (i = 0; i < n && !rc; i++) {
		rc = gf_json_item_object(&list, i, &entry, err);
		if (!rc)
			rc = gf_record_read(&entry, r, items + i * r->bytes,
					    err);
	}
	if (rc) {
		gf_list_free(r, items, n);
		return rc;
	}
	memcpy(items_ptr, &items, sizeof(items));
	*count = n;
	return 0;
}

/* --- writing ------------------------------------------------------------- */

static void write_fields(struct gf_json_writer *w,
			 const struct gf_field *fields, const void *item);

static void open_record(struct gf_json_writer *w, const char *key,
			const struct gf_record *r)
{
	if (r->one_line)
		gf_json_open_line(w, key);
	else
		gf_json_open_object(w, key);
}

static void write_numbers(struct gf_json_writer *w, const struct gf_field *f,
			  const void *item)
{
	const void *numbers = pointer_of(f, item);
	size_t i, count = *count_of(f, item);

	gf_json_open_row(w, f->key);
	for (i = 0; i < count; i++) {
		if (f->type == GF_FIELD_REALS)
			gf_json_put_real(w, NULL, ((const double *)numbers)[i]);
		else
			gf_json_put_size(w, NULL, ((const size_t *)numbers)[i]);
	}
	gf_json_close_array(w);
}

static void write_field(struct gf_json_writer *w, const struct gf_field *f,
			const void *item)
{
	const void *p = at_offset(item, f->offset);

	switch (f->type) {
	case GF_FIELD_STRING:
		gf_json_put_string(w, f->key, pointer_of(f, item));
		break;
	case GF_FIELD_SIZE:
		gf_json_put_size(w, f->key, *(const size_t *)p);
		break;
	case GF_FIELD_INT:
		gf_json_put_int(w, f->key, *(const int *)p);
		break;
	case GF_FIELD_BOOL:
		gf_json_put_bool(w, f->key, *(const bool *)p);
		break;
	case GF_FIELD_REAL:
		gf_json_put_real(w, f->key, *(const double *)p);
		break;
	case GF_FIELD_CHOICE:
		gf_json_put_string(w, f->key, f->names[*(const int *)p]);
		break;
	case GF_FIELD_RAW:
		gf_json_put_raw(w, f->key, pointer_of(f, item));
		break;
	case GF_FIELD_SIZES:
	case GF_FIELD_REALS:
		write_numbers(w, f, item);
		break;
	case GF_FIELD_LIST:
		gf_list_write(w, f->key, f->record, pointer_of(f, item),
			      *count_of(f, item));
		break;
	case GF_FIELD_OBJECT:
		open_record(w, f->key, f->record);
		gf_record_write(w, f->record, pointer_of(f, item));
		gf_json_close_object(w);
		break;
	case GF_FIELD_GROUP:
		open_record(w, f->key, f->record);
		gf_record_write(w, f->record, p);
		gf_json_close_object(w);
		break;
	case GF_FIELD_INCLUDE:
		write_fields(w, f->record->fields, item);
		break;
	case GF_FIELD_OWN:
		f->own->write(w, f->key, p);
		break;
	}
}

static void write_fields(struct gf_json_writer *w,
			 const struct gf_field *fields, const void *item)
{
	const struct gf_field *f;
	bool written = false;

	for (f = fields; !is_last(f); f++) {
		if (f->presence == GF_HIDDEN)
			written = false;
		else if (f->presence == GF_OMITTED)
			written = !is_absent(f, item);
		else if (f->presence != GF_FOLLOWS)
			written = true;
		if (written)
			write_field(w, f, item);
	}
}

void gf_fields_write(struct gf_json_writer *w, const struct gf_record *r,
		     const void *item)
{
	write_fields(w, r->fields, item);
}

void gf_record_write(struct gf_json_writer *w, const struct gf_record *r,
		     const void *item)
{
	write_fields(w, r->fields, item);
	gf_json_put_extra(w, *extra_of(r, item));
}

void gf_list_write(struct gf_json_writer *w, const char *key,
		   const struct gf_record *r, const void *items, size_t count)
{
	size_t i;

	gf_json_open_array(w, key);
	for (i = 0; i < count; i++) {
		open_record(w, NULL, r);
		gf_record_write(w, r, (const char *)items + i * r->bytes);
		gf_json_close_object(w);
	}
	gf_json_close_array(w);
}

/* --- ownership ----------------------------------------------------------- */

static void release_fields(const struct gf_field *fields, void *item)
{
	const struct gf_field *f;

	for (f = fields; !is_last(f); f++) {
		void *p = at_offset(item, f->offset);

		switch (f->type) {
		case GF_FIELD_STRING:
		case GF_FIELD_RAW:
		case GF_FIELD_SIZES:
		case GF_FIELD_REALS:
			free(pointer_of(f, item));
			break;
		case GF_FIELD_LIST:
			gf_list_free(f->record, pointer_of(f, item),
				     *count_of(f, item));
			break;
		case GF_FIELD_OBJECT:
			gf_list_free(f->record, pointer_of(f, item),
				     pointer_of(f, item) != NULL);
			break;
		case GF_FIELD_GROUP:
			free(*extra_of(f->record, p));
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
	free(*extra_of(r, item));
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
	set_pointer(f, item, gf_xstrdup_or_null(pointer_of(f, item)));
}

static void own_numbers(const struct gf_field *f, void *item)
{
	size_t bytes =
		f->type == GF_FIELD_REALS ? sizeof(double) : sizeof(size_t);

	if (pointer_of(f, item))
		set_pointer(f, item,
			    gf_xmemdup(pointer_of(f, item),
				       *count_of(f, item) * bytes));
}

static void own_records(const struct gf_field *f, void *item, size_t count)
{
	set_pointer(f, item,
		    gf_list_copy(f->record, pointer_of(f, item), count));
}

static void own_extra(const struct gf_record *r, void *item)
{
	char **extra = extra_of(r, item);

	*extra = gf_xstrdup_or_null(*extra);
}

/* item was copied bit by bit; gives it its own strings, arrays and objects. */
static void own_fields(const struct gf_field *fields, void *item)
{
	const struct gf_field *f;

	for (f = fields; !is_last(f); f++) {
		void *p = at_offset(item, f->offset);

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
			own_records(f, item, *count_of(f, item));
			break;
		case GF_FIELD_OBJECT:
			own_records(f, item, pointer_of(f, item) != NULL);
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

/* --- documents ----------------------------------------------------------- */

#define VERSION 1

int gf_document_read(const struct gf_json *root, const char *file,
		     const char *format, const struct gf_record *r, void *item,
		     struct gf_error *err)
{
	const char *const formats[] = {format, NULL};
	struct gf_json_at at;
	int index, version, rc;
	void *read;

	rc = gf_json_root(root, file, &at, err);
	if (rc)
		return rc;
	read = gf_xcalloc(1, r->bytes);
	rc = gf_json_choice(&at, "format", formats, &index, err);
	if (!rc)
		rc = gf_json_int(&at, "version", 1, INT_MAX, &version, err);
	if (!rc && version != VERSION)
		rc = gf_json_refuse(&at, "version", err, "want %d, got %d",
				    VERSION, version);
	if (!rc)
		rc = gf_record_read(&at, r, read, err);
	if (!rc)
		memcpy(item, read, r->bytes);
	gf_json_leave(&at);
	free(read);
	return rc;
}

char *gf_document_write(const char *format, const struct gf_record *r,
			const void *item)
{
	struct gf_json_writer w = {0};

	gf_json_open_object(&w, NULL);
	gf_json_put_string(&w, "format", format);
	gf_json_put_int(&w, "version", VERSION);
	gf_record_write(&w, r, item);
	gf_json_close_object(&w);
	return gf_text_take(&w.text);
}

int gf_document_check(const char *format, const struct gf_record *r,
		      const void *item, struct gf_error *err)
{
	char *text = gf_document_write(format, r, item);
	void *copy = gf_xcalloc(1, r->bytes);
	struct gf_json *root;
	int rc;

	rc = gf_json_parse(text, strlen(text), format, &root, err);
	if (!rc) {
		rc = gf_document_read(root, format, format, r, copy, err);
		if (!rc)
			gf_record_release(r, copy);
		gf_json_free(root);
	}
	free(copy);
	free(text);
	return rc;
}
