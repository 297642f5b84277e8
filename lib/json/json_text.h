/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef GF_JSON_JSON_TEXT_H
#define GF_JSON_JSON_TEXT_H

#include <stddef.h>

/* JSON as bytes, before it is parsed. */

/* Line and column, both from 1, of an offset. */
void gf_json_place(const char *text, size_t offset, int *line, int *column);

#endif
