/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef GF_BASE_TEXT_H
#define GF_BASE_TEXT_H

#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

/*
 * A growing string. Zero-initialise; data is NULL until something was added, and NUL-terminated
 * from then on. Owner calls gf_text_release.
 */
struct gf_text {
	char *data;
	size_t length;
	size_t capacity;
};

void gf_text_add(struct gf_text *t, const char *data, size_t length);
void gf_text_addf(struct gf_text *t, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void gf_text_addv(struct gf_text *t, const char *fmt, va_list ap)
	__attribute__((format(printf, 2, 0)));
/* Bytes of the character of UTF-8 at `text`, and the character; 0: there is none. */
size_t gf_text_decode(const char *text, uint32_t *code);
/* The bytes at `text` that must not reach a terminal: those of a control character, of a mark that
 * changes the direction of writing, or one that is no UTF-8. 0: a character that people see. */
size_t gf_text_hidden(const char *text);
/* At most `limit` bytes of it as people can see them: hidden bytes as \xHH, "..." where it was
 * cut. */
void gf_text_add_printable(struct gf_text *t, const char *text, size_t limit);
/* All of it so, on one line of less than `size` bytes: what is too long has "..." for its middle,
 * since reasons end messages. */
void gf_text_one_line(char *to, size_t size, const char *text);
/* Hands the string to the caller ("" if nothing was added) and zeroes t. */
char *gf_text_take(struct gf_text *t);
void gf_text_release(struct gf_text *t);

/* A cell of CSV, or of TSV where the separator is a tab: with the separator, a quote or the end of
 * a line in it, it stands in quotes, which are doubled (RFC 4180). */
void gf_text_add_cell(struct gf_text *t, const char *text, char separator);

#endif
