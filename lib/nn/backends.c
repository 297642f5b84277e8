/* SPDX-License-Identifier: BSD-3-Clause */
#include "nn/graph.h"

#include <stdatomic.h>
#include <string.h>

/* The fastest first: "auto" takes it. */
const struct gf_backend *const gf_backends[] = {
#if GF_HAVE_ONEDNN
	&gf_backend_onednn,
#endif
	&gf_backend_ref,
	NULL,
};

const struct gf_backend *gf_backend_find(const char *name)
{
	if (!name || strcmp(name, "auto") == 0)
		return gf_backends[0];
	for (size_t i = 0; gf_backends[i]; i++)
		if (strcmp(gf_backends[i]->name, name) == 0)
			return gf_backends[i];
	return NULL;
}

static atomic_int wanted_threads;

void gf_nn_set_threads(int threads)
{
	atomic_store(&wanted_threads, threads > 0 ? threads : 0);
}

int gf_nn_threads(void)
{
	return atomic_load(&wanted_threads);
}
