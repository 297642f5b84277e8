/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef GF_JSON_RECORD_TEXT_H
#define GF_JSON_RECORD_TEXT_H

#include "base/error.h"
#include "base/text.h"
#include "json/record.h"

/*
 * The values of a table's fields as people type them in options. Only for some types: SIZE, INT,
 * REAL, CHOICE, BOOL ("on" or "off") and REALS ("0.25,0.01" or "none"), and STRING.
 */

/* Stores the value in the item ("5ms" or "4K" where the field's unit is TIME or SIZE), and releases
 * the field's old value. -EINVAL with the values that were wanted. */
int gf_field_parse(const struct gf_field *f, const char *text, void *item, struct gf_error *err);
/* The words that stand for some or all values of the field; NULL: only numbers do. */
const char *const *gf_field_words(const struct gf_field *f);
/* Appends the item's value; nothing of an absent one. */
void gf_field_print(const struct gf_field *f, const void *item, struct gf_text *out);

#endif
