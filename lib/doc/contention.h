/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef GF_DOC_CONTENTION_H
#define GF_DOC_CONTENTION_H

#include "json/record.h"

/* `contention` of an all-reduce or a level, a struct gf_contention at the
 * field's offset; for lib/doc alone. */
extern const struct gf_field_own gf_contention_own;

#endif
