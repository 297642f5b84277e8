/* SPDX-License-Identifier: BSD-3-Clause */
#include "nn/graph.h"

#include "base/registry.h"

#include <string.h>

/* The fastest on the host first: "auto" takes it. */
const struct gf_backend *const gf_backends[] = {
#if GF_HAVE_ONEDNN
	&gf_backend_onednn,
#endif
	&gf_backend_ref,
#if GF_HAVE_CUDNN
	&gf_backend_cuda,
#endif
	NULL,
};

const struct gf_backend *gf_backend_find(const char *name)
{
	if (!name || strcmp(name, "auto") == 0)
		return gf_backends[0];
	return gf_named_find(gf_backends, 0, name);
}
