/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef GF_JSON_RECORD_H
#define GF_JSON_RECORD_H

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"
#include "json/json.h"

/*
 * To add a key to a document: a row in its record (lib/documents), what its check wants of it, the
 * page, and a document in tests/data/invalid with the message that it must give.
 *
 * Documents as tables: one struct gf_field per key says where its value lives in a C struct, what
 * it may be, and whether it may be absent. All functions, from reading to checking, walk the same
 * table in its order, so they cannot disagree.
 *
 * Structs are zero-initialised before they are read into. Strings, arrays and objects by pointer
 * are owned by the struct.
 */
enum gf_field_type {
	GF_FIELD_STRING,  /* char *; absent: NULL */
	GF_FIELD_SIZE,    /* size_t */
	GF_FIELD_INT,     /* int */
	GF_FIELD_BOOL,    /* bool */
	GF_FIELD_REAL,    /* double; with names: or their first, which is NAN */
	GF_FIELD_STEPS,   /* size_t, and at count_offset the struct gf_steps_part that it may follow
			   * from */
	GF_FIELD_CHOICE,  /* an enum: index into names */
	GF_FIELD_RAW,     /* char *: an object's text; absent: NULL */
	GF_FIELD_SIZES,   /* size_t * and its count */
	GF_FIELD_REALS,   /* double * and its count */
	GF_FIELD_LIST,    /* record * and its count: an array of objects */
	GF_FIELD_OBJECT,  /* record *; absent: NULL */
	GF_FIELD_GROUP,   /* an object that lives inside this struct; at offset 0 its members are
			   * the struct's own */
	GF_FIELD_INCLUDE, /* no key: the fields of another table, here */
	GF_FIELD_OWN,     /* by the callbacks in own */
};

enum gf_presence {
	GF_REQUIRED,
	GF_OMITTED,   /* may be absent; not written while it is `absent` */
	GF_DEFAULTED, /* may be absent, then `absent`; always written */
	GF_FOLLOWS,   /* the same, but written if the field before it was */
	GF_HIDDEN,    /* owned by the struct, but no part of this document */
};

/* A field that a table cannot describe. `place` is the struct plus the field's offset. release and
 * copy are optional where nothing is owned. */
struct gf_field_own {
	int (*read)(struct gf_json_at *at, const char *key, void *place, struct gf_error *err);
	void (*write)(struct gf_json_writer *w, const char *key, const void *place);
	bool (*absent)(const void *place); /* (optional: never) */
	void (*release)(void *place);
	void (*copy)(void *place); /* was copied bit by bit: own it */
	/* Adds its JSON Schema (json/record_schema.h). */
	void (*schema)(struct gf_text *out);
};

struct gf_field {
	const char *key; /* NULL in GF_FIELD_INCLUDE and at the end */
	enum gf_field_type type;
	enum gf_presence presence;
	size_t offset;
	size_t count_offset;      /* SIZES, REALS, LIST, STEPS */
	const char *per;          /* REALS: one per entry of that field, which came before and has
				   * the same count_offset */
	double low, high;         /* SIZE, INT, REAL, SIZES, REALS, STEPS */
	double absent;            /* SIZE, INT, BOOL, REAL, CHOICE, STEPS */
	const char *const *names; /* CHOICE, REAL; NULL-terminated; REALS: first, what an option
				   * calls no numbers */
	const struct gf_record *record; /* LIST, OBJECT, GROUP, INCLUDE */
	const struct gf_field_own *own; /* OWN */
	bool binds;                     /* what a program saves means nothing with another value */
	bool share;                     /* REAL: the share of elements that goes out */
	/* STRING, LIST, SIZES, REALS: members of its JSON Schema that no other member here says:
	 * `"minItems": 1`; or NULL. */
	const char *schema;
	/* For people who set it: the name of an option that is its own, or NULL, and it is set
	 * behind an entry's name (json/keys.h); what the value is, and what it means. help NULL:
	 * they cannot. */
	const char *option, *unit, *help;
};

/* A field by the name of its member of the struct that AT, a macro of the table's file, finds
 * members of; GF_MEMBERS: with its count, which is called as the member with an n before. */
#define GF_MEMBER(member, type, presence) #member, type, presence, .offset = AT(member)
#define GF_MEMBERS(member, type, presence)                                                         \
	GF_MEMBER(member, type, presence), .count_offset = AT(n##member)
#define GF_INCLUDE(of) .type = GF_FIELD_INCLUDE, .record = &(of)

struct gf_record {
	size_t bytes;        /* of the struct */
	size_t extra_offset; /* of its char *extra, which is never first */
	bool one_line;       /* how it is written */
	const struct gf_field *fields;
	/* Members of its JSON Schema that stand before the keys, with a comma and a blank after
	 * them; or NULL. */
	const char *schema;
	/* Checks between fields, and values that follow from others; called when all were read. The
	 * cursor names places (optional). */
	int (*finish)(const struct gf_json_at *at, void *item, struct gf_error *err);
};

/* The struct has a member `extra`. */
#define GF_RECORD(type, table)                                                                     \
	.bytes = sizeof(type), .extra_offset = offsetof(type, extra), .fields = (table)

/* Limits that keep every sum and quotient of valid documents finite. */
#define GF_MAX_SIZE       ((double)((size_t)1 << 62)) /* sizes lie below */
#define GF_MAX_COUNT      1e9                         /* int fields */
#define GF_MAX_TIME_S     1e12
#define GF_MAX_TIME_SUM_S 1e40  /* sums of many, and times bytes */
#define GF_MIN_RATE       1e-12 /* of what must be > 0 */
#define GF_MIN_SHARE      1e-12 /* of what is more than nothing */
#define GF_MAX_RATE       1e18

/* Reads an open object cursor to its gf_json_end. On failure the item is left as gf_record_release
 * leaves it. */
int gf_record_read(struct gf_json_at *at, const struct gf_record *r, void *item,
		   struct gf_error *err);
/* Writes the members, without braces. */
void gf_record_write(struct gf_json_writer *w, const struct gf_record *r, const void *item);
/* Reads and writes the fields without the x- keys, for a caller that has more of its own to read or
 * write in the object. */
int gf_fields_read(struct gf_json_at *at, const struct gf_record *r, void *item,
		   struct gf_error *err);
void gf_fields_write(struct gf_json_writer *w, const struct gf_record *r, const void *item);
/* Settles all STEPS by these lengths (base/steps.h), 0 where not known. Returns the key of one that
 * stays open; NULL: none does. */
const char *gf_record_settle(const struct gf_record *r, void *item, double epoch_steps,
			     double run_steps);
/* Halves a run of so many steps and epochs between each warm-up that would outlast it (STEPS, or
 * REALS with a number for each epoch) and the rest. False:
 * none would. */
bool gf_record_shorten(const struct gf_record *r, void *item, size_t steps, size_t epochs);
/* Frees what the item owns and zeroes it. */
void gf_record_release(const struct gf_record *r, void *item);
/* *copy = *item, with everything owned anew. */
void gf_record_copy(const struct gf_record *r, void *copy, const void *item);

/* The value of the SIZE, STEPS, INT, CHOICE, BOOL or REAL of that key. NAN: there is none. */
double gf_record_number(const struct gf_record *r, const void *item, const char *key);

/* A zeroed item: every field absent. */
void gf_record_clear(const struct gf_record *r, void *item);
/* Copies from `under` every field that is absent in item. The record may have fields of the types
 * before GF_FIELD_GROUP, and groups of them. */
void gf_record_fill(const struct gf_record *r, void *item, const void *under);

/* Arrays of objects. */
int gf_list_read(struct gf_json_at *at, const char *key, const struct gf_record *r, void *items_ptr,
		 size_t *count, struct gf_error *err);
void *gf_list_copy(const struct gf_record *r, const void *items, size_t count);
void gf_list_free(const struct gf_record *r, void *items, size_t count);

/* A kind of document, by the name that its key "format" has. */
struct gf_document_format {
	const char *name, *description;
	const struct gf_record *record;
};

/* A whole document: the envelope's format and version, then the record. */
int gf_document_read(const struct gf_json *root, const char *file,
		     const struct gf_document_format *format, void *item, struct gf_error *err);
char *gf_document_write(const struct gf_document_format *format, const void *item);
/* Whether a reader would take the struct: it is written and read back. The message calls it "the
 * plan", by the format. */
int gf_document_check(const struct gf_document_format *format, const void *item,
		      struct gf_error *err);

#endif
