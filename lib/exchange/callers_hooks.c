/* SPDX-License-Identifier: BSD-3-Clause */
/* Gradients between a caller's memory and the pool: what the engine's hooks do about it. */
#include "exchange/callers_memory.h"

#include <math.h>
#include <string.h>

#include "collectives/codecs/codec.h"
#include "gf_kernels.h"

/* Where the tensor lies in the pool: f32, or f64 of a wide message; its elements. */
static void *place_of(const struct gf_memory *m, size_t tensor)
{
	const struct gf_pool *pool = &m->env->pools[m->slot];
	const size_t message = m->tensors[tensor].message;
	const size_t first = m->env->plan->messages[message].first;

	return (float *)gf_memory_base(m, m->slot, message) +
	       (pool->offsets[tensor] - pool->offsets[first]);
}

static size_t elems_of(const struct gf_memory *m, size_t tensor)
{
	return m->env->plan->model->tensors[tensor].count_elems;
}

/* More bytes are copied. */
static void count_copied(struct gf_memory *m, size_t bytes)
{
	atomic_fetch_add_explicit(&m->copied_bytes, bytes, memory_order_relaxed);
}

/* --- on the host: from their types to the pool's, and back ---------------- */

/* Values that stay in cache on their way to another type. */
#define BLOCK_ELEMS ((size_t)2048)

static const struct gf_codec_fns *codec_of(enum gf_dtype dtype)
{
	return &gf_kernels()->codecs[gf_codec_number(gf_memory_codec(dtype))];
}

static void narrow(float *to, const double *from, size_t n)
{
	size_t i;

	for (i = 0; i < n; i++)
		to[i] = (float)from[i];
}

static void widen(double *to, const float *from, size_t n)
{
	size_t i;

	for (i = 0; i < n; i++)
		to[i] = from[i];
}

static size_t block_at(size_t at, size_t n)
{
	return n - at < BLOCK_ELEMS ? n - at : BLOCK_ELEMS;
}

/* The tensor, or zeros, into the pool, once in a step. */
static void pack_here(struct gf_memory *m, size_t tensor)
{
	struct gf_memory_tensor *t = &m->tensors[tensor];
	const bool wide = m->messages[t->message].wide;
	const size_t n = elems_of(m, tensor);
	const size_t bytes = gf_dtype_bytes(t->dtype);
	void *to = place_of(m, tensor);
	float block[BLOCK_ELEMS];
	size_t at;

	if (t->packed)
		return;
	t->packed = true;
	if (!t->data) {
		memset(to, 0, n * (wide ? sizeof(double) : sizeof(float)));
		return;
	}
	if (wide && t->dtype == GF_F64)
		memcpy(to, t->data, n * bytes);
	else if (t->dtype == GF_F64)
		narrow(to, t->data, n);
	else if (!wide)
		codec_of(t->dtype)->decode(to, t->data, n, 0);
	for (at = 0; wide && t->dtype != GF_F64 && at < n; at += BLOCK_ELEMS) {
		codec_of(t->dtype)->decode(block, (char *)t->data + at * bytes, block_at(at, n), 0);
		widen((double *)to + at, block, block_at(at, n));
	}
	count_copied(m, n * bytes);
}

/* share * from, of n values, becomes elements `first` and so on of the tensor; from NULL: each
 * becomes `share`. */
static void put(struct gf_memory *m, size_t tensor, size_t first, const float *from, float share,
		size_t n)
{
	const struct gf_memory_tensor *t = &m->tensors[tensor];
	const size_t bytes = gf_dtype_bytes(t->dtype);
	char *to = (char *)t->data + first * bytes;
	float block[BLOCK_ELEMS], *values = block;
	size_t at, k, count;

	for (at = 0; at < n; at += count) {
		count = block_at(at, n);
		if (t->dtype == GF_F32)
			values = (float *)to + at;
		for (k = 0; !from && k < count; k++)
			values[k] = share;
		if (from)
			gf_kernels()->scale_f32(share, from + at, values, count);
		if (t->dtype == GF_F64)
			widen((double *)to + at, block, count);
		else if (t->dtype != GF_F32)
			codec_of(t->dtype)->encode(to + at * bytes, block, count, 0);
	}
	count_copied(m, n * bytes);
}

/* The tensor of a wide message from where it lies in the pool. */
static void put_wide(struct gf_memory *m, size_t tensor)
{
	const struct gf_memory_tensor *t = &m->tensors[tensor];
	const double *from = place_of(m, tensor);
	const size_t bytes = gf_dtype_bytes(t->dtype);
	const size_t n = elems_of(m, tensor);
	float block[BLOCK_ELEMS];
	size_t at;

	if (t->dtype == GF_F64)
		memcpy(t->data, from, n * bytes);
	for (at = 0; t->dtype != GF_F64 && at < n; at += BLOCK_ELEMS) {
		narrow(block, from + at, block_at(at, n));
		codec_of(t->dtype)->encode((char *)t->data + at * bytes, block, block_at(at, n), 0);
	}
	count_copied(m, n * bytes);
}

/* --- on a GPU: the same, enqueued on q ------------------------------------ */

static const struct gf_gpu_codec *codec_on(const struct gf_memory *m, enum gf_dtype dtype)
{
	return &m->env->place.gpu->kernels->codecs[gf_codec_number(gf_memory_codec(dtype))];
}

static int pack_on(struct gf_memory *m, size_t tensor, struct gf_gpu_stream *q,
		   struct gf_error *err)
{
	struct gf_memory_tensor *t = &m->tensors[tensor];
	struct gf_gpu *gpu = m->env->place.gpu;
	const size_t n = elems_of(m, tensor);
	float *to = place_of(m, tensor);

	if (t->packed)
		return 0;
	t->packed = true;
	if (!t->data)
		return gpu->ops->zero(gpu, q, to, n * sizeof(*to), err);
	count_copied(m, n * gf_dtype_bytes(t->dtype));
	if (t->dtype == GF_F32)
		return gpu->ops->copy(gpu, q, to, t->data, n * sizeof(*to), GF_GPU_WITHIN, err);
	codec_on(m, t->dtype)->decode(q, to, t->data, n, 0);
	return gpu->ops->check(gpu, err);
}

static int put_on(struct gf_memory *m, size_t tensor, struct gf_gpu_stream *q, struct gf_error *err)
{
	const struct gf_memory_tensor *t = &m->tensors[tensor];
	struct gf_gpu *gpu = m->env->place.gpu;
	const size_t n = elems_of(m, tensor);
	const float *from = place_of(m, tensor);

	count_copied(m, n * gf_dtype_bytes(t->dtype));
	if (t->dtype == GF_F32)
		return gpu->ops->copy(gpu, q, t->data, from, n * sizeof(*from), GF_GPU_WITHIN, err);
	codec_on(m, t->dtype)->encode(q, t->data, from, n, 0);
	return gpu->ops->check(gpu, err);
}

/* The whole step has come, of a selection that gives back all at once: the means in all of the
 * pool, or NaN, and from there. */
static int put_all_on(struct gf_memory *m, struct gf_gpu_stream *q, struct gf_error *err)
{
	const struct gf_select_env *env = m->env;
	const struct gf_gpu_kernels *kernels = env->place.gpu->kernels;
	const struct gf_pool *pool = &env->pools[m->slot];
	struct gf_select_sums sums;
	size_t i;
	int rc = 0;

	gf_select_sums(m->select, m->slot, &sums);
	/* one that lies in the pool is all of it */
	if (!sums.npieces || sums.pieces->grad != pool->data)
		rc = env->place.gpu->ops->zero(env->place.gpu, q, pool->data,
					       pool->count_elems * sizeof(float), err);
	if (rc)
		return rc;
	for (i = 0; i < sums.npieces; i++)
		kernels->scale_f32(q, sums.share, sums.pieces[i].grad,
				   pool->data + sums.pieces[i].first, sums.pieces[i].count_elems);
	kernels->spoil_f32(q, m->flag, pool->data, pool->count_elems);
	for (i = 0; i < pool->ntensors && !rc; i++)
		if (m->tensors[i].data)
			rc = put_on(m, i, q, err);
	return rc ? rc : env->place.gpu->ops->check(env->place.gpu, err);
}

/* --- what the hooks do: before a message goes ----------------------------- */

static int pack(struct gf_memory *m, size_t tensor, struct gf_gpu_stream *q, struct gf_error *err)
{
	if (q)
		return pack_on(m, tensor, q, err);
	pack_here(m, tensor);
	return 0;
}

/* Packs the tensors that the i-th of the step's list needs. */
static int pack_for(struct gf_memory *m, size_t i, struct gf_gpu_stream *q, struct gf_error *err)
{
	const struct gf_work *w = &m->list[i];
	const bool all = w->at_end || w->after == GF_AFTER_ALL;
	const size_t ntensors = m->env->plan->model->ntensors;
	size_t k;
	int rc = 0;

	for (k = all ? 0 : w->first; k <= (all ? ntensors - 1 : w->last) && !rc; k++)
		rc = pack(m, k, q, err);
	return rc;
}

/* The message of the plan that the i-th of a plan's own list is, or is a half of. */
static size_t whole_of(const struct gf_memory *m, size_t i)
{
	const size_t n = m->env->plan->nmessages;

	return i < n ? i : m->list[i].after - 1;
}

/* What a selection does with f32 is not for it. */
static bool is_wide(const struct gf_memory *m, size_t i)
{
	return m->by_message && m->messages[whole_of(m, i)].wide;
}

static int prepare(void *ctx, size_t slot, size_t message, struct gf_gpu_stream *q,
		   struct gf_error *err)
{
	struct gf_memory *m = ctx;
	const struct gf_engine_hooks *inner = m->inner;
	const struct gf_work *w = &m->list[message];
	size_t k;
	int rc = 0;

	if (!m->by_message)
		rc = pack_for(m, message, q, err);
	else if (!m->messages[whole_of(m, message)].in_place)
		for (k = w->first; k <= w->last && !rc; k++)
			rc = pack(m, k, q, err);
	return rc || !inner->prepare || is_wide(m, message)
		       ? rc
		       : inner->prepare(inner->ctx, slot, message, q, err);
}

/* A tensor that is ready need not wait for its message. */
static bool meanwhile(void *ctx, size_t slot, size_t nready)
{
	struct gf_memory *m = ctx;
	const struct gf_engine_hooks *inner = m->inner;

	while (m->front < nready && m->tensors[m->front].packed)
		m->front++;
	if (m->front < nready) {
		pack_here(m, m->front);
		return true;
	}
	return inner->meanwhile && inner->meanwhile(inner->ctx, slot, nready);
}

/* --- and back ------------------------------------------------------------- */

static void tell(struct gf_memory *m, size_t message, int status)
{
	const struct gf_message *p = &m->env->plan->messages[message];
	size_t k;

	if (!status)
		atomic_store(&m->messages[message].done, true);
	for (k = p->first; m->on_done && k <= p->last; k++)
		if (m->tensors[k].data)
			m->on_done(m->on_done_ctx, k, status);
}

/* A message of sums, or scaled of means, has come. */
static void give_back(struct gf_memory *m, size_t message, float share)
{
	const struct gf_work *w = &gf_memory_work(m)[message];
	const int ranks = m->env->plan->ranks;
	size_t k;

	const struct gf_memory_message *g = &m->messages[message];

	/* one rank's gradients, which have not moved, are the means */
	if (g->wide && ranks > 1)
		gf_kernels()->divide[GF_F64](w->data, w->count_elems, ranks);
	else if (g->in_place && !g->wide)
		(void)gf_select_multiply(m->select, w, share, NULL, NULL);
	for (k = w->first; !g->in_place && k <= w->last; k++) {
		if (m->tensors[k].data && g->wide)
			put_wide(m, k);
		else if (m->tensors[k].data)
			put(m, k, 0, place_of(m, k), share, elems_of(m, k));
	}
	tell(m, message, 0);
}

/* On a GPU the stream waits, and nobody is told. */
static int give_back_on(struct gf_memory *m, size_t message, float share, struct gf_gpu_stream *q,
			struct gf_error *err)
{
	const struct gf_work *w = &gf_memory_work(m)[message];
	int rc = gf_select_multiply(m->select, w, share, q, err);
	size_t k;

	for (k = w->first; !m->messages[message].in_place && k <= w->last && !rc; k++)
		if (m->tensors[k].data)
			rc = put_on(m, k, q, err);
	return rc;
}

static int finish(void *ctx, size_t slot, size_t message, struct gf_gpu_stream *q,
		  struct gf_error *err)
{
	struct gf_memory *m = ctx;
	const struct gf_engine_hooks *inner = m->inner;
	const struct gf_select_env *env = m->env;
	const float share = env->scaled ? 1 : 1.0f / (float)env->plan->ranks;
	size_t whole;
	int rc = 0;

	if (inner->finish && !is_wide(m, message))
		rc = inner->finish(inner->ctx, slot, message, q, err);
	if (rc || !m->by_message)
		return rc;
	whole = whole_of(m, message);
	if (m->messages[whole].gather != message)
		return 0;
	if (q)
		return give_back_on(m, whole, share, q, err);
	give_back(m, whole, share);
	return 0;
}

/* The elements of a tensor: those in the pieces, and zeros between. */
static void put_pieces(struct gf_memory *m, size_t tensor, const struct gf_select_sums *sums,
		       size_t *piece)
{
	const size_t begin = gf_memory_pool(m)->offsets[tensor];
	const size_t end = begin + elems_of(m, tensor);
	const struct gf_optim_piece *p;
	size_t at = begin, from, to;

	while (*piece < sums->npieces && at < end) {
		p = &sums->pieces[*piece];
		from = p->first > at ? p->first : at;
		from = from < end ? from : end;
		to = p->first + p->count_elems;
		to = to < end ? to : end;
		put(m, tensor, at - begin, NULL, 0, from - at);
		if (from < to)
			put(m, tensor, from - begin, p->grad + (from - p->first), sums->share,
			    to - from);
		at = to > from ? to : from;
		if (p->first + p->count_elems > end)
			return;
		++*piece;
	}
	put(m, tensor, at - begin, NULL, 0, end - at);
}

/* The whole step has come. */
static void give_all_back(struct gf_memory *m)
{
	const struct gf_plan *plan = m->env->plan;
	struct gf_select_sums sums = {NULL, 0, 0};
	const bool bad = gf_select_inspect(m->select, m->slot).found;
	size_t piece = 0, i;

	if (!bad)
		gf_select_sums(m->select, m->slot, &sums);
	for (i = 0; i < plan->model->ntensors; i++) {
		if (!m->tensors[i].data)
			continue;
		if (bad)
			put(m, i, 0, NULL, NAN, elems_of(m, i));
		else
			put_pieces(m, i, &sums, &piece);
	}
	if (!bad)
		gf_select_adopt(m->select, m->slot);
	for (i = 0; i < plan->nmessages; i++)
		tell(m, i, 0);
}

static int end(void *ctx, size_t slot, struct gf_gpu_stream *q, struct gf_error *err)
{
	struct gf_memory *m = ctx;
	const struct gf_engine_hooks *inner = m->inner;
	int rc;

	if (m->by_message) /* there is no state */
		return 0;
	rc = inner->end ? inner->end(inner->ctx, slot, q, err) : 0;
	if (rc)
		return rc;
	if (q)
		return put_all_on(m, q, err);
	give_all_back(m);
	return 0;
}

static void failed(void *ctx, int rc)
{
	struct gf_memory *m = ctx;
	size_t i;

	for (i = 0; i < m->env->plan->nmessages; i++)
		if (!atomic_load(&m->messages[i].done))
			tell(m, i, rc);
}

struct gf_engine_hooks gf_memory_hooks(struct gf_memory *m)
{
	return (struct gf_engine_hooks){
		.prepare = prepare,
		.finish = finish,
		.end = end,
		.meanwhile = m->by_message ? NULL : meanwhile,
		.failed = failed,
		.ctx = m,
		.serial = m->inner->serial,
	};
}
