/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/dtype.h"

const char *const gf_dtype_names[] = {"f32", "f64", "f16", "bf16", "i32", NULL};
const char *const gf_op_names[] = {"sum", "prod", "max", "min", "avg", NULL};

size_t gf_dtype_bytes(enum gf_dtype dtype)
{
	static const size_t bytes[GF_DTYPES] = {4, 8, 2, 2, 4};

	return bytes[dtype];
}
