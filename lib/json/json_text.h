/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef GF_JSON_JSON_TEXT_H
#define GF_JSON_JSON_TEXT_H

#include <stddef.h>

#include "base/error.h"
#include "base/text.h"

/* JSON as bytes, before it is parsed. */

/* Line and column, both from 1, of an offset. */
void gf_json_place(const char *text, size_t offset, int *line, int *column);

/* "<file>:<line>:<column>: <reason>"; returns -EINVAL. */
int gf_json_refuse_at(const char *text, size_t offset, const char *file, struct gf_error *err,
		      const char *reason);

size_t gf_json_skip_blanks(const char *text, size_t size, size_t from);

/* Refuses a value that opens more than GF_JSON_MAX_DEPTH levels, before any parser recurses into
 * it. */
int gf_json_check_depth(const char *text, size_t size, size_t from, const char *file,
			struct gf_error *err);

#endif
