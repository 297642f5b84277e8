/* SPDX-License-Identifier: BSD-3-Clause */
/* What programs call that were built with gradflow.h of 0.2: posts without
 * counts and types, which are taken to be right. */
#include <errno.h>
#include <stdlib.h>

#include "embed/handle.h"

#define API __attribute__((visibility("default")))

API int gradflow_post(struct gradflow_exchange *x, size_t tensor, void *data);
API int gradflow_post_many(struct gradflow_exchange *x, const size_t *tensors,
			   void *const *data, size_t n);

API int gradflow_post_many(struct gradflow_exchange *x, const size_t *tensors,
			   void *const *data, size_t n)
{
	struct gradflow_gradient *g =
		n < SIZE_MAX ? calloc(n + 1, sizeof(*g)) : NULL;
	size_t i, at;
	int rc;

	if (!g)
		return gf_error_set(gf_embed_error(), -ENOMEM,
				    "gradflow_post_many: out of memory: want "
				    "%zu gradients",
				    n);
	for (i = 0; x && tensors && data && i < n; i++) {
		g[i].tensor = tensors[i];
		g[i].data = data[i];
		if (tensors[i] >= x->job.ntensors)
			continue;
		at = x->job.order[tensors[i]];
		g[i].count = x->job.plan.model->tensors[at].count_elems;
		while (*gf_embed_dtype(g[i].dtype) != x->dtypes[at])
			g[i].dtype++;
	}
	rc = gradflow_post_gradients(x, tensors && data ? g : NULL, n);
	free(g);
	return rc;
}

API int gradflow_post(struct gradflow_exchange *x, size_t tensor, void *data)
{
	return gradflow_post_many(x, &tensor, &data, 1);
}
