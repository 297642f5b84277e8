/* SPDX-License-Identifier: BSD-3-Clause */
#include "runtime/work.h"

#include <inttypes.h>
#include <stdint.h>

#include "base/heap.h"
#include "cuda/lanes/program.h"
#include "runtime/shard_list.h"

/* --- memory of gradients ----------------------------------------------------- */

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
	rc = rc ?: comm->ops->buffer_alloc(comm, offsets[ntensors] * sizeof(float), &data, err);
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

/* --- a step's messages ------------------------------------------------------ */

size_t gf_work_count(const struct gf_plan *plan, const struct gf_pool *pool)
{
	return pool->shards ? pool->shards->nworks : plan->nmessages + gf_plan_splits(plan);
}

bool gf_work_ready(const struct gf_work *w, const bool *tensor_ready, size_t *seen)
{
	if (*seen < w->first)
		*seen = w->first;
	while (*seen <= w->last && tensor_ready[*seen])
		++*seen;
	return *seen > w->last;
}

static struct gf_work of_message(const struct gf_message *m, const struct gf_pool *pool)
{
	return (struct gf_work){
		.first = m->first,
		.last = m->last,
		.simultaneous = m->mode == GF_MODE_SIMULTANEOUS,
		.at_end = m->release == GF_RELEASE_BACKWARD_END,
		.how = m,
		.half = m->half == GF_HALF_SPLIT ? GF_COLL_REDUCE_SCATTER : GF_COLL_WHOLE,
		.data = pool->data + pool->offsets[m->first],
		.skew_elems = pool->lent ? 0 : pool->offsets[m->first] % GF_LANE_GRAIN_ELEMS,
		.count_elems = pool->offsets[m->last + 1] - pool->offsets[m->first],
	};
}

void gf_work_of_plan(const struct gf_plan *plan, const struct gf_pool *pool, struct gf_work *work)
{
	size_t n = plan->nmessages, i;
	struct gf_work *gather = work + n;

	if (pool->shards) {
		gf_shards_work(pool->shards, pool, work);
		return;
	}
	for (i = 0; i < n; i++)
		work[i] = of_message(&plan->messages[i], pool);
	for (i = n; i-- > 0;) {
		if (work[i].half == GF_COLL_WHOLE)
			continue;
		*gather = work[i];
		gather->half = GF_COLL_ALL_GATHER;
		gather++->after = i + 1;
	}
}

static size_t elem_bytes(const struct gf_work *w)
{
	if (!w->sparse && !w->way)
		return sizeof(float);
	return w->sets ? w->sets->size_bytes : w->element.size_bytes;
}

int gf_work_recipe(const struct gf_work *w, const struct gf_plan *plan, int ranks,
		   struct gf_recipe *r, struct gf_error *err)
{
	int rc = 0;

	*r = (struct gf_recipe){.element = w->element};
	if (w->way) {
		r->way = *w->way;
	} else if (w->sparse) {
		r->way.algorithm = w->sparse;
	} else {
		rc = gf_element_coded(w->how->codec, GF_OP_SUM, &r->element, err);
		rc = rc ?: gf_way_of_message(w->how, &r->way, err);
		r->way.servers = plan->servers;
		r->way.copies = gf_plan_copies(plan);
	}
	if (rc)
		return rc;
	r->args = gf_way_args(&r->way, ranks);
	r->args.count_elems = w->count_elems;
	r->args.elem_bytes = elem_bytes(w);
	r->args.skew_elems = w->skew_elems;
	r->args.half = w->half;
	r->args.owners = w->owners;
	r->args.lossy = gf_element_lossy(&r->element);
	return 0;
}

char *gf_work_name(const struct gf_work *w, const struct gf_plan *plan, uint64_t step,
		   size_t message)
{
	const struct gf_tensor *tensors = plan ? plan->model->tensors : NULL;
	const size_t bytes = w->count_elems * elem_bytes(w);
	const bool gathers = w->half == GF_COLL_ALL_GATHER;

	if (tensors && w->owners) /* a shard's waits for no tensors, or for its own */
		return gf_xasprintf("step %" PRIu64 ", %s of message %zu (%s to %s, %zu bytes)",
				    step, gathers ? "all-gather" : "reduce-scatter",
				    (size_t)(w->how - plan->messages), tensors[w->how->first].name,
				    tensors[w->how->last].name, bytes);
	if (w->name)
		return gf_xasprintf("step %" PRIu64 ", %s", step, w->name);
	if (!tensors)
		return gf_xasprintf("step %" PRIu64 ", message %zu (%zu bytes)", step, message,
				    bytes);
	if (w->first == w->last)
		return gf_xasprintf("step %" PRIu64 ", message %zu (tensor %zu, %s, %zu bytes)",
				    step, message, w->first, tensors[w->first].name, bytes);
	return gf_xasprintf(
		"step %" PRIu64 ", message %zu (tensors %zu to %zu, %s to %s, %zu bytes)", step,
		message, w->first, w->last, tensors[w->first].name, tensors[w->last].name, bytes);
}
