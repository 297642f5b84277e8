/* SPDX-License-Identifier: BSD-3-Clause */
#include "exchange/memory_parts.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/heap.h"
#include "coll/algorithm.h"
#include "gf_kernels.h"

/* Values that stay in cache on their way to another type. */
#define BLOCK_ELEMS ((size_t)2048)

const struct gf_codec *gf_memory_codec(enum gf_dtype dtype)
{
	const struct gf_codec *c;

	for (c = gf_codecs; c->name; c++)
		if (c->adds && c->dtype == dtype)
			return c;
	return NULL;
}

/* --- opening -------------------------------------------------------------- */

void gf_memory_set_codecs(struct gf_plan *plan, const enum gf_dtype *dtypes)
{
	size_t i, k;

	if (!gf_selection_has(&plan->selection, GF_SELECT_SCALES))
		return; /* its messages are no sums of gradients */
	for (i = 0; i < plan->nmessages; i++) {
		struct gf_message *m = &plan->messages[i];
		const enum gf_dtype dtype = dtypes[m->first];
		const struct gf_codec *asked = gf_codec_find(m->codec);
		const struct gf_algorithm *a = gf_algorithm_find(m->algorithm);

		for (k = m->first; k <= m->last && dtypes[k] == dtype; k++)
			;
		/* a library's own takes f32 */
		if (k <= m->last || !asked || asked->error > 0 ||
		    (a && !a->build))
			continue;
		free(m->codec);
		m->codec = gf_xstrdup(gf_memory_codec(dtype)->name);
	}
}

static int prepare(void *ctx, size_t slot, size_t message,
		   struct gf_gpu_stream *q, struct gf_error *err);
static int finish(void *ctx, size_t slot, size_t message,
		  struct gf_gpu_stream *q, struct gf_error *err);
static int end(void *ctx, size_t slot, struct gf_gpu_stream *q,
	       struct gf_error *err);
static bool meanwhile(void *ctx, size_t slot, size_t nready);
static void failed(void *ctx, int rc);

static const struct gf_pool *pool_of(const struct gf_memory *m)
{
	return &m->select->env.pools[m->slot];
}

/* Is there a rank that reads this one's pool without a copy? */
static bool has_neighbours(struct gf_comm *c)
{
	int rank;

	for (rank = 0; rank < c->ranks; rank++)
		if (rank != c->rank && c->ops->reduces_from &&
		    c->ops->reduces_from(c, rank))
			return true;
	return false;
}

/* Neither coded, into memory of the transport's, nor given to a library. */
static bool goes_as_it_is(const struct gf_plan *plan, size_t message)
{
	const struct gf_message *m = &plan->messages[message];
	const struct gf_algorithm *a = gf_algorithm_find(m->algorithm);

	return gf_codec_find(m->codec) == gf_memory_codec(GF_F32) &&
	       !(a && !a->build);
}

int gf_memory_open(struct gf_memory *m, struct gf_selector *select,
		   struct gf_comm *comm, const enum gf_dtype *dtypes,
		   struct gf_error *err)
{
	const struct gf_plan *plan = select->env.plan;
	const bool read_here = !select->env.gpu && has_neighbours(comm);
	size_t i, k;

	if (select->env.gpu && !select->ops->by_message)
		return gf_error_set(err, -ENOTSUP,
				    "selection \"%s\" between GPUs: a "
				    "caller's memory wants \"dense\"",
				    gf_selection_name(&plan->selection));
	*m = (struct gf_memory){.select = select};
	m->hooks = (struct gf_engine_hooks){
		.prepare = prepare,
		.finish = finish,
		.end = end,
		.meanwhile = select->ops->by_message ? NULL : meanwhile,
		.failed = failed,
		.ctx = m,
		.serial = select->hooks.serial,
	};
	m->tensors = gf_xcalloc(plan->model->ntensors, sizeof(*m->tensors));
	m->messages = gf_xcalloc(plan->nmessages, sizeof(*m->messages));
	for (i = 0; i < plan->nmessages; i++) {
		m->messages[i].gather = i;
		m->messages[i].pooled = read_here && goes_as_it_is(plan, i);
		for (k = plan->messages[i].first; k <= plan->messages[i].last;
		     k++)
			m->tensors[k].message = i;
	}
	for (i = plan->nmessages; i < select->nplan_work; i++)
		m->messages[select->plan_work[0][i].after - 1].gather = i;
	for (i = 0; i < plan->model->ntensors; i++) {
		m->tensors[i].dtype = dtypes[i];
		if (!gf_memory_codec(dtypes[i]))
			return gf_error_set(err, -ENOTSUP,
					    "tensor %s: want f32, f16 or bf16, "
					    "got %s",
					    plan->model->tensors[i].name,
					    gf_dtype_names[dtypes[i]]);
	}
	return 0;
}

void gf_memory_close(struct gf_memory *m)
{
	free(m->tensors);
	free(m->messages);
	*m = (struct gf_memory){0};
}

/* --- a step, from the caller's thread ------------------------------------- */

void gf_memory_begin(struct gf_memory *m, size_t slot,
		     const struct gf_work *list)
{
	const struct gf_plan *plan = m->select->env.plan;
	size_t i;

	m->slot = slot;
	m->list = list;
	m->nposted = m->front = 0;
	for (i = 0; i < plan->model->ntensors; i++) {
		m->tensors[i].data = NULL;
		m->tensors[i].packed = false;
	}
	for (i = 0; i < plan->nmessages; i++) {
		struct gf_memory_message *g = &m->messages[i];

		g->nposted = 0;
		g->scattered = false;
		atomic_store(&g->done, false);
	}
}

/* All that will come of the message has come: where will it move? */
static void place(struct gf_memory *m, size_t message, bool whole)
{
	struct gf_memory_message *g = &m->messages[message];
	struct gf_work *work = m->select->plan_work[m->slot];
	const struct gf_pool *pool = pool_of(m);
	const bool alone = m->select->env.plan->ranks == 1;

	if (!m->select->ops->by_message)
		return;
	/* one rank's gradients are the means: nothing moves */
	g->in_place = alone || (whole && !g->scattered && !g->pooled);
	work[message].data =
		g->in_place && !alone
			? (void *)g->base
			: (void *)(pool->data +
				   pool->offsets[work[message].first]);
	work[g->gather].data = work[message].data;
	gf_engine_place(m->engine, message, work[message].data);
	if (g->gather != message)
		gf_engine_place(m->engine, g->gather, work[message].data);
}

static size_t tensors_in(const struct gf_memory *m, size_t message)
{
	const struct gf_message *p = &m->select->env.plan->messages[message];

	return p->last - p->first + 1;
}

void gf_memory_post(struct gf_memory *m, size_t tensor, void *data)
{
	struct gf_memory_tensor *t = &m->tensors[tensor];
	struct gf_memory_message *g = &m->messages[t->message];
	const size_t *offsets = pool_of(m)->offsets;
	const size_t first = m->select->env.plan->messages[t->message].first;
	const uintptr_t base =
		(uintptr_t)data -
		(offsets[tensor] - offsets[first]) * sizeof(float);

	t->data = data;
	if (!g->nposted)
		g->base = base;
	g->scattered |= g->base != base || t->dtype != GF_F32;
	m->nposted++;
	if (++g->nposted == tensors_in(m, t->message))
		place(m, t->message, true);
}

void gf_memory_flush(struct gf_memory *m)
{
	size_t i;

	for (i = 0; i < m->select->env.plan->nmessages; i++)
		if (m->messages[i].nposted < tensors_in(m, i))
			place(m, i, false);
}

size_t gf_memory_brings(const struct gf_memory *m, size_t tensor)
{
	return m->messages[m->tensors[tensor].message].gather;
}

bool gf_memory_done(const struct gf_memory *m, size_t tensor)
{
	return atomic_load(&m->messages[m->tensors[tensor].message].done);
}

/* --- on the engine's thread: to the pool ---------------------------------- */

void gf_memory_count(struct gf_memory *m, size_t bytes)
{
	atomic_fetch_add_explicit(&m->copied_bytes, bytes,
				  memory_order_relaxed);
}

static int pack(struct gf_memory *m, size_t tensor)
{
	struct gf_memory_tensor *t = &m->tensors[tensor];
	const size_t n = gf_memory_elems(m, tensor);
	const struct gf_codec *codec = gf_memory_codec(t->dtype);
	float *to = gf_memory_place(m, tensor);

	if (t->packed)
		return 0;
	t->packed = true;
	if (!t->data) {
		memset(to, 0, n * sizeof(*to));
		return 0;
	}
	gf_kernels()->codecs[gf_codec_number(codec)].decode(to, t->data, n, 0);
	gf_memory_count(m, n * gf_dtype_bytes(t->dtype));
	return 0;
}

/* Packs the tensors that the i-th of the step's list needs. */
static void pack_for(struct gf_memory *m, size_t i)
{
	const struct gf_work *w = &m->list[i];
	const bool all = w->at_end || w->after == GF_AFTER_ALL;
	const size_t ntensors = m->select->env.plan->model->ntensors;
	size_t k;

	for (k = all ? 0 : w->first; k <= (all ? ntensors - 1 : w->last); k++)
		(void)pack(m, k);
}

/* The message of the plan that the i-th of a plan's own list is, or is a half
 * of. */
static size_t whole_of(const struct gf_memory *m, size_t i)
{
	const size_t n = m->select->env.plan->nmessages;

	return i < n ? i : m->list[i].after - 1;
}

static int prepare(void *ctx, size_t slot, size_t message,
		   struct gf_gpu_stream *q, struct gf_error *err)
{
	struct gf_memory *m = ctx;
	const struct gf_engine_hooks *inner = &m->select->hooks;
	const struct gf_work *w = &m->list[message];
	size_t k;
	int rc = 0;

	if (!m->select->ops->by_message)
		pack_for(m, message);
	else if (!m->messages[whole_of(m, message)].in_place)
		for (k = w->first; k <= w->last && !rc; k++)
			rc = q ? gf_memory_pack_on(m, k, q, err) : pack(m, k);
	return rc || !inner->prepare
		       ? rc
		       : inner->prepare(inner->ctx, slot, message, q, err);
}

/* A tensor that is ready need not wait for its message. */
static bool meanwhile(void *ctx, size_t slot, size_t nready)
{
	struct gf_memory *m = ctx;
	const struct gf_engine_hooks *inner = &m->select->hooks;

	while (m->front < nready && m->tensors[m->front].packed)
		m->front++;
	if (m->front < nready) {
		(void)pack(m, m->front);
		return true;
	}
	return inner->meanwhile && inner->meanwhile(inner->ctx, slot, nready);
}

/* --- and back ------------------------------------------------------------- */

/* share * from becomes elements `first` and so on of the tensor; from NULL:
 * each becomes `share`. */
static void put(struct gf_memory *m, size_t tensor, size_t first,
		const float *from, float share, size_t n)
{
	const struct gf_memory_tensor *t = &m->tensors[tensor];
	const size_t bytes = gf_dtype_bytes(t->dtype);
	const struct gf_codec_fns *fns =
		&gf_kernels()
			 ->codecs[gf_codec_number(gf_memory_codec(t->dtype))];
	char *to = (char *)t->data + first * bytes;
	float block[BLOCK_ELEMS], *values = block;
	size_t at, k, count_elems;

	for (at = 0; at < n; at += count_elems) {
		count_elems = n - at < BLOCK_ELEMS ? n - at : BLOCK_ELEMS;
		if (t->dtype == GF_F32)
			values = (float *)to + at;
		for (k = 0; !from && k < count_elems; k++)
			values[k] = share;
		if (from)
			gf_kernels()->scale_f32(share, from + at, values,
						count_elems);
		if (t->dtype != GF_F32)
			fns->encode(to + at * bytes, block, count_elems, 0);
	}
	gf_memory_count(m, n * bytes);
}

static void tell(struct gf_memory *m, size_t message, int status)
{
	const struct gf_message *p = &m->select->env.plan->messages[message];
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
	const struct gf_work *w = &m->select->plan_work[m->slot][message];
	size_t k;

	if (m->messages[message].in_place)
		(void)gf_select_multiply(m->select, w, share, NULL, NULL);
	for (k = w->first; !m->messages[message].in_place && k <= w->last; k++)
		if (m->tensors[k].data)
			put(m, k, 0, gf_memory_place(m, k), share,
			    gf_memory_elems(m, k));
	tell(m, message, 0);
}

/* On a GPU the stream waits, and nobody is told. */
static int give_back_on(struct gf_memory *m, size_t message, float share,
			struct gf_gpu_stream *q, struct gf_error *err)
{
	const struct gf_work *w = &m->select->plan_work[m->slot][message];
	int rc = gf_select_multiply(m->select, w, share, q, err);
	size_t k;

	for (k = w->first;
	     !m->messages[message].in_place && k <= w->last && !rc; k++)
		if (m->tensors[k].data)
			rc = gf_memory_put_on(m, k, q, err);
	return rc;
}

static int finish(void *ctx, size_t slot, size_t message,
		  struct gf_gpu_stream *q, struct gf_error *err)
{
	struct gf_memory *m = ctx;
	const struct gf_engine_hooks *inner = &m->select->hooks;
	const struct gf_select_env *env = &m->select->env;
	const float share = env->scaled ? 1 : 1.0f / (float)env->plan->ranks;
	size_t whole;
	int rc = 0;

	if (inner->finish)
		rc = inner->finish(inner->ctx, slot, message, q, err);
	if (rc || !m->select->ops->by_message)
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
static void put_pieces(struct gf_memory *m, size_t tensor,
		       const struct gf_select_sums *sums, size_t *piece)
{
	const size_t begin = pool_of(m)->offsets[tensor];
	const size_t end = begin + gf_memory_elems(m, tensor);
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
			put(m, tensor, from - begin,
			    p->grad + (from - p->first), sums->share,
			    to - from);
		at = to > from ? to : from;
		if (p->first + p->count_elems > end)
			return;
		++*piece;
	}
	put(m, tensor, at - begin, NULL, 0, end - at);
}

/* The whole step has come. */
static int give_all_back(struct gf_memory *m, struct gf_error *err)
{
	const struct gf_plan *plan = m->select->env.plan;
	struct gf_select_sums sums = {NULL, 0, 0};
	const bool bad = gf_select_inspect(m->select, m->slot).found;
	size_t piece = 0, i;
	int rc = bad ? 0 : gf_select_sums(m->select, m->slot, &sums, err);

	for (i = 0; i < plan->model->ntensors && !rc; i++) {
		if (!m->tensors[i].data)
			continue;
		if (bad)
			put(m, i, 0, NULL, NAN, gf_memory_elems(m, i));
		else
			put_pieces(m, i, &sums, &piece);
	}
	if (!rc && !bad)
		gf_select_adopt(m->select, m->slot);
	for (i = 0; i < plan->nmessages && !rc; i++)
		tell(m, i, 0);
	return rc;
}

static int end(void *ctx, size_t slot, struct gf_gpu_stream *q,
	       struct gf_error *err)
{
	struct gf_memory *m = ctx;
	const struct gf_engine_hooks *inner = &m->select->hooks;
	int rc;

	if (m->select->ops->by_message) /* there is no state */
		return 0;
	rc = inner->end ? inner->end(inner->ctx, slot, q, err) : 0;
	return rc ? rc : give_all_back(m, err);
}

static void failed(void *ctx, int rc)
{
	struct gf_memory *m = ctx;
	size_t i;

	for (i = 0; i < m->select->env.plan->nmessages; i++)
		if (!atomic_load(&m->messages[i].done))
			tell(m, i, rc);
}
