/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef GF_BASE_DTYPE_H
#define GF_BASE_DTYPE_H

#include <stddef.h>

/* Element types of gradients, in memory and in documents. */
enum gf_dtype { GF_F32, GF_F64, GF_F16, GF_BF16, GF_I32 };
#define GF_DTYPES 5
extern const char *const gf_dtype_names[]; /* NULL-terminated */
size_t gf_dtype_bytes(enum gf_dtype dtype);

/* How an all-reduce combines contributions. The average is the sum, divided by their number at the
 * end (integers towards zero). */
enum gf_op { GF_OP_SUM, GF_OP_PROD, GF_OP_MAX, GF_OP_MIN, GF_OP_AVG };
#define GF_OPS 5
extern const char *const gf_op_names[]; /* NULL-terminated */

#endif
