/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef GF_DOCUMENTS_FOREIGN_H
#define GF_DOCUMENTS_FOREIGN_H

#include <stddef.h>

#include "base/error.h"

/*
 * Files that people give and that nothing here reads: what each is, and what to give instead. One
 * list serves all commands that read other programs' files.
 */

/* Refuses a file that the list knows as a whole, whatever a reader would make of its text: -EINVAL
 * "FILE: this is WHAT: REMEDY"; 0: it may be read. */
int gf_foreign_refuse(const char *file, const char *text, size_t size, struct gf_error *err);
/* The same of a text that no reader recognised, by what stands in it; and of a zero byte. */
int gf_foreign_refuse_rest(const char *file, const char *text, size_t size, struct gf_error *err);

#endif
