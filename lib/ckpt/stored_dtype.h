/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef GF_CKPT_STORED_DTYPE_H
#define GF_CKPT_STORED_DTYPE_H

/* The table's own copy of a dtype's name, or NULL: a name that needs no
 * owner. */
const char *gf_dtype_intern(const char *name);

#endif
