/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef GF_JSON_KEYS_H
#define GF_JSON_KEYS_H

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"
#include "base/registry.h"
#include "base/text.h"
#include "json/record.h"

/*
 * Keys of a document as people type them behind a name: "density=0.01,warmup_densities=0.25,0.1". A
 * piece without "=" goes on with the list of the key before it; of a key that is there twice the
 * last one counts. A key may be cut short where it stays the only one. People may set the fields of
 * a record that have `help` and no option of their own.
 */

/* What every entry of a registry has whose keys depend on the entry. These are the first members of
 * the entry's struct. */
#define GF_ENTRY                                                                                   \
	const char *name;                                                                          \
	const char *description; /* one line, for --list */                                        \
	const char *source;      /* author, year, title */                                         \
	unsigned place;          /* in listings, ascending (lib/list.sh) */                        \
	unsigned traits;                                                                           \
	const struct gf_record *record; /* the keys of the document's object */                    \
	/* values of keys that are not given; a struct of the record */                            \
	const void *defaults

struct gf_entry {
	GF_ENTRY;
};

/* Objects of a document whose key "method" names an entry: selections
 * (documents/selections/selection.h) and periods (documents/periods/period.h). */

/* Adds the JSON Schema of an object that is one of these entries (NULL-terminated): its key
 * "method" and the entry's keys. */
void gf_entry_schema(const void *entries, struct gf_text *out);
/* Opens the object at key, and reads which entry of names (NULL-terminated) its key "method" names.
 * The caller reads on in *inner. */
int gf_entry_open(struct gf_json_at *at, const char *key, const char *const *names,
		  struct gf_json_at *inner, int *method, struct gf_error *err);

/* A record whose keys may be set, and the struct that they go to; item NULL: they are only
 * checked. */
struct gf_keyed {
	const struct gf_record *record;
	void *item;
};

/* The k-th field that people may set, those of included tables among them; NULL: there is none. */
const struct gf_field *gf_keys_at(const struct gf_record *r, size_t k);
const struct gf_field *gf_keys_find(const struct gf_record *r, const char *key);
/* Whether such a text sets that key; text NULL: none. */
bool gf_keys_have(const char *text, const char *key);
/* Stores each key in the first of the records that has it. A key that none has is passed over if it
 * may be `absent`, else refused: -EINVAL with the keys that there are, or with the key and the
 * values that it takes. text NULL: nothing is stored. */
int gf_keys_set(const char *text, const struct gf_keyed *of, size_t n, bool absent,
		struct gf_error *err);
/* For each key of the registry's entries, in their order, and of `shared` (or NULL): its field, and
 * for which entries it is, what it means, and its defaults: "topk, gtopk: the share of elements
 * that is sent (0.001)". */
void gf_keys_each(const struct gf_registry *entries, const struct gf_record *shared,
		  void (*take)(void *ctx, const struct gf_field *f, const char *help), void *ctx);

/*
 * The values of a table's fields as people type them in options. Only for some types: SIZE, INT,
 * REAL, CHOICE, BOOL ("on" or "off") and REALS ("0.25,0.01" or "none"), and STRING.
 */

/* Stores the value in the item ("5ms" or "4K" where the field's unit is TIME or SIZE), and releases
 * the field's old value. -EINVAL with the values that were wanted. */
int gf_field_parse(const struct gf_field *f, const char *text, void *item, struct gf_error *err);
/* Appends the item's value; nothing of an absent one. */
void gf_field_print(const struct gf_field *f, const void *item, struct gf_text *out);

#endif
