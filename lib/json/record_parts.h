/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef GF_JSON_RECORD_PARTS_H
#define GF_JSON_RECORD_PARTS_H

#include <string.h>

#include "base/steps.h"
#include "json/record.h"

/* How the walkers of a table reach into a struct; for record*.c and keys.c alone. */

static inline void *gf_field_place(const struct gf_field *f, const void *item)
{
	return (char *)item + f->offset;
}

/* Of a scalar, a pointer, or one of the numbers of a row. */
static inline size_t gf_field_bytes(const struct gf_field *f)
{
	_Static_assert(sizeof(size_t) == 8 && sizeof(void *) == 8, "64 bits");
	return f->type == GF_FIELD_BOOL                                ? sizeof(bool)
	       : f->type == GF_FIELD_INT || f->type == GF_FIELD_CHOICE ? sizeof(int)
								       : 8;
}

static inline size_t *gf_field_count(const struct gf_field *f, const void *item)
{
	return (size_t *)((char *)item + f->count_offset);
}

static inline struct gf_steps_part *gf_field_part(const struct gf_field *f, const void *item)
{
	return (struct gf_steps_part *)(void *)((char *)item + f->count_offset);
}

static inline char **gf_record_extra(const struct gf_record *r, const void *item)
{
	return (char **)((char *)item + r->extra_offset);
}

/* The owned pointer of a string, an array or an object. */
static inline void *gf_field_pointer(const struct gf_field *f, const void *item)
{
	void *pointer;

	memcpy(&pointer, gf_field_place(f, item), sizeof(pointer));
	return pointer;
}

static inline void gf_field_set_pointer(const struct gf_field *f, void *item, void *pointer)
{
	memcpy(gf_field_place(f, item), &pointer, sizeof(pointer));
}

static inline bool gf_field_is_last(const struct gf_field *f)
{
	return !f->key && f->type != GF_FIELD_INCLUDE;
}

bool gf_field_is_absent(const struct gf_field *f, const void *item);

#endif
