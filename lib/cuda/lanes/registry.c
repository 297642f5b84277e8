/* SPDX-License-Identifier: BSD-3-Clause */

#include "cuda/lanes/nccl.h"

int gf_nccl_load(const struct gf_nccl_ops **ops, struct gf_error *err)
{
#if GF_HAVE_NCCL
	return gf_nccl_open_library(ops, err);
#else
	(void)ops;
	return gf_error_set(err, -ENOTSUP, "built without NCCL");
#endif
}
