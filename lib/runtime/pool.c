/* SPDX-License-Identifier: BSD-3-Clause */
#include "runtime/work.h"

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>

#include "base/heap.h"

int gf_pool_init(struct gf_pool *p, struct gf_comm *comm, const size_t *count_elems,
		 size_t ntensors, struct gf_error *err)
{
	const size_t most = SIZE_MAX / 2 / sizeof(float);
	size_t *offsets = gf_xcalloc(ntensors + 1, sizeof(*offsets)), i;
	void *data;
	int rc = 0;

	for (i = 0; i < ntensors && !rc; i++) {
		if (count_elems[i] > most - offsets[i])
			rc = gf_error_set(err, -ENOMEM, "gradients: more than %zu elements", most);
		else
			offsets[i + 1] = offsets[i] + count_elems[i];
	}
	if (!rc)
		rc = comm->ops->buffer_alloc(comm, offsets[ntensors] * sizeof(float), &data, err);
	if (rc) {
		free(offsets);
		return rc;
	}
	*p = (struct gf_pool){
		.comm = comm,
		.data = data,
		.count_elems = offsets[ntensors],
		.offsets = offsets,
		.ntensors = ntensors,
	};
	return 0;
}

void gf_pool_on(struct gf_pool *p, float *data, const size_t *count_elems, size_t ntensors)
{
	size_t i;

	*p = (struct gf_pool){.data = data, .ntensors = ntensors};
	p->offsets = gf_xcalloc(ntensors + 1, sizeof(*p->offsets));
	for (i = 0; i < ntensors; i++)
		p->offsets[i + 1] = p->offsets[i] + count_elems[i];
	p->count_elems = p->offsets[ntensors];
}

int gf_pool_pin(struct gf_pool *p, struct gf_gpu *gpu, struct gf_error *err)
{
	int rc = gpu->ops->host_pin(gpu, p->data, p->count_elems * sizeof(float), err);

	if (!rc)
		p->gpu = gpu;
	else
		gf_error_prefix(err, "gradients");
	return rc;
}

void gf_pool_release(struct gf_pool *p)
{
	if (!p)
		return;
	if (p->gpu)
		p->gpu->ops->host_unpin(p->gpu, p->data);
	if (p->comm)
		p->comm->ops->buffer_free(p->comm, p->data);
	free(p->offsets);
	*p = (struct gf_pool){0};
}

size_t gf_pool_tensor_at(const struct gf_pool *p, size_t element)
{
	size_t low = 0, high = p->ntensors, middle;

	/* offsets[low] <= element < offsets[high] */
	while (high - low > 1) {
		middle = low + (high - low) / 2;
		if (p->offsets[middle] <= element)
			low = middle;
		else
			high = middle;
	}
	return low;
}
