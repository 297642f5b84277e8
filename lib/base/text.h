/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef GF_BASE_TEXT_H
#define GF_BASE_TEXT_H

#include <stddef.h>

/*
 * A growing string. Zero-initialise; data is NULL until something was added,
 * and NUL-terminated from then on. Owner calls gf_text_release.
 */
struct gf_text {
	char *data;
	size_t length;
	size_t capacity;
};

void gf_text_add(struct gf_text *t, const char *data, size_t length);
void gf_text_addf(struct gf_text *t, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));
/* Hands the string to the caller ("" if nothing was added) and zeroes t. */
char *gf_text_take(struct gf_text *t);
void gf_text_release(struct gf_text *t);

#endif
