/* SPDX-License-Identifier: BSD-3-Clause */
#include "exchange/exchange.h"
#include "exchange/callers_parts.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "base/array.h"
#include "base/heap.h"
#include "collectives/algorithm.h"
#include "gf_kernels.h"

const struct gf_codec *gf_memory_codec(enum gf_dtype dtype)
{
	const struct gf_codec *c;

	for (c = gf_codecs; c->name; c++)
		if (c->adds && c->dtype == dtype)
			return c;
	return NULL;
}

/* --- opening -------------------------------------------------------------- */

bool gf_memory_is_wide(const struct gf_plan *plan, const enum gf_dtype *dtypes, size_t message)
{
	const struct gf_message *m = &plan->messages[message];
	size_t k;

	for (k = m->first; k <= m->last && dtypes[k] != GF_F64; k++)
		;
	return k <= m->last && gf_codec_is_plain(m->codec) &&
	       gf_selection_has(&plan->selection, GF_SELECT_LOSSLESS);
}

void gf_memory_lay_out(const struct gf_plan *plan, const enum gf_dtype *dtypes, size_t *counts)
{
	size_t i, k;

	for (i = 0; dtypes && i < plan->nmessages; i++) {
		const struct gf_message *m = &plan->messages[i];

		if (!gf_memory_is_wide(plan, dtypes, i))
			continue;
		for (k = m->first; k <= m->last; k++)
			counts[k] *= sizeof(double) / sizeof(float);
		counts[m->last]++; /* so that it can begin at a whole f64 */
	}
}

void gf_exchange_set_codecs(struct gf_plan *plan, const enum gf_dtype *dtypes)
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
		/* a library's own takes f32, and f64 is no codec */
		if (k <= m->last || !gf_memory_codec(dtype) || !asked || asked->error > 0 ||
		    (a && !a->build))
			continue;
		free(m->codec);
		m->codec = gf_xstrdup(gf_memory_codec(dtype)->name);
	}
}

static int prepare(void *ctx, size_t slot, size_t message, struct gf_gpu_stream *q,
		   struct gf_error *err);
static int finish(void *ctx, size_t slot, size_t message, struct gf_gpu_stream *q,
		  struct gf_error *err);
static int end(void *ctx, size_t slot, struct gf_gpu_stream *q, struct gf_error *err);
static bool meanwhile(void *ctx, size_t slot, size_t nready);
static void failed(void *ctx, int rc);

static const struct gf_pool *pool_of(const struct gf_memory *m)
{
	return &m->env->pools[m->slot];
}

static struct gf_work *work_of(const struct gf_memory *m)
{
	return gf_select_messages(m->select, m->slot);
}

/* Is there a rank that reads this one's pool without a copy? */
static bool has_neighbours(struct gf_comm *c)
{
	int rank;

	for (rank = 0; rank < c->ranks; rank++)
		if (rank != c->rank && c->ops->reduces_from && c->ops->reduces_from(c, rank))
			return true;
	return false;
}

/* Neither coded, into memory of the transport's, nor given to a library. */
static bool goes_as_it_is(const struct gf_plan *plan, size_t message)
{
	const struct gf_message *m = &plan->messages[message];
	const struct gf_algorithm *a = gf_algorithm_find(m->algorithm);

	return gf_codec_find(m->codec) == gf_memory_codec(GF_F32) && !(a && !a->build);
}

/* Its elements are f64, in every slot, and in the half that gathers. */
static int make_wide(struct gf_memory *m, size_t message, struct gf_error *err)
{
	const struct gf_select_env *env = m->env;
	const struct gf_message *p = &env->plan->messages[message];
	struct gf_memory_message *g = &m->messages[message];
	size_t slot, k, count = 0;
	int rc = gf_way_of_message(p, &g->way, err);

	g->wide = true;
	g->way.servers = env->plan->servers;
	for (k = p->first; k <= p->last; k++)
		count += env->plan->model->tensors[k].count_elems;
	for (slot = 0; slot < env->depth; slot++) {
		struct gf_work *work = gf_select_messages(m->select, slot);
		struct gf_work *of[] = {&work[message], &work[g->gather]};

		for (k = 0; k < GF_ARRAY_LENGTH(of); k++) {
			of[k]->way = &g->way;
			of[k]->element = gf_element_number(GF_F64, GF_OP_SUM);
			of[k]->count_elems = count;
			of[k]->data = gf_memory_base(m, slot, message);
		}
	}
	return rc;
}

int gf_memory_open(struct gf_memory *m, struct gf_selector *select, struct gf_comm *comm,
		   const enum gf_dtype *dtypes, struct gf_error *err)
{
	const struct gf_select_env *env = gf_select_env(select);
	const struct gf_plan *plan = env->plan;
	const struct gf_work *work = gf_select_messages(select, 0);
	const bool read_here = !env->place.gpu && has_neighbours(comm);
	size_t i, k;
	int rc = 0;

	*m = (struct gf_memory){
		.select = select,
		.env = env,
		.inner = gf_select_hooks(select),
		.by_message = gf_selection_has(&plan->selection, GF_SELECT_LOSSLESS),
	};
	m->hooks = (struct gf_engine_hooks){
		.prepare = prepare,
		.finish = finish,
		.end = end,
		.meanwhile = m->by_message ? NULL : meanwhile,
		.failed = failed,
		.ctx = m,
		.serial = m->inner->serial,
	};
	m->tensors = gf_xcalloc(plan->model->ntensors, sizeof(*m->tensors));
	m->messages = gf_xcalloc(plan->nmessages, sizeof(*m->messages));
	for (i = 0; i < plan->nmessages; i++) {
		m->messages[i].gather = i;
		m->messages[i].pooled = read_here && goes_as_it_is(plan, i);
		for (k = plan->messages[i].first; k <= plan->messages[i].last; k++)
			m->tensors[k].message = i;
	}
	for (i = plan->nmessages; i < gf_work_count(plan); i++)
		m->messages[work[i].after - 1].gather = i;
	for (i = 0; i < plan->model->ntensors; i++) {
		m->tensors[i].dtype = dtypes[i];
		if (!gf_memory_codec(dtypes[i]) && (dtypes[i] != GF_F64 || env->place.gpu))
			return gf_error_set(
				err, -ENOTSUP, "tensor %s: want f32, f16%s or bf16, got %s",
				plan->model->tensors[i].name, env->place.gpu ? "" : ", f64",
				gf_dtype_names[dtypes[i]]);
	}
	for (i = 0; i < plan->nmessages && !rc; i++)
		if (gf_memory_is_wide(plan, dtypes, i))
			rc = make_wide(m, i, err);
	return rc;
}

void gf_memory_close(struct gf_memory *m)
{
	free(m->tensors);
	free(m->messages);
	*m = (struct gf_memory){0};
}

/* --- a step, from the caller's thread ------------------------------------- */

void gf_memory_begin(struct gf_memory *m, size_t slot, uint32_t *flag, const struct gf_work *list)
{
	const struct gf_plan *plan = m->env->plan;
	size_t i;

	m->slot = slot;
	m->flag = flag;
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
	struct gf_work *work = work_of(m);
	const bool alone = m->env->plan->ranks == 1;

	if (!m->by_message)
		return;
	/* one rank's gradients are the means: nothing moves */
	g->in_place = alone || (whole && !g->scattered && !g->pooled);
	work[message].data =
		g->in_place && !alone ? (void *)g->base : gf_memory_base(m, m->slot, message);
	work[g->gather].data = work[message].data;
	gf_engine_place(m->engine, message, work[message].data);
	if (g->gather != message)
		gf_engine_place(m->engine, g->gather, work[message].data);
}

static size_t tensors_in(const struct gf_memory *m, size_t message)
{
	const struct gf_message *p = &m->env->plan->messages[message];

	return p->last - p->first + 1;
}

void gf_memory_post(struct gf_memory *m, size_t tensor, void *data)
{
	struct gf_memory_tensor *t = &m->tensors[tensor];
	struct gf_memory_message *g = &m->messages[t->message];
	const size_t *offsets = pool_of(m)->offsets;
	const size_t first = m->env->plan->messages[t->message].first;
	const uintptr_t base = (uintptr_t)data - (offsets[tensor] - offsets[first]) * sizeof(float);

	t->data = data;
	if (!g->nposted)
		g->base = base;
	g->scattered |= g->base != base || t->dtype != (g->wide ? GF_F64 : GF_F32);
	m->nposted++;
	if (++g->nposted == tensors_in(m, t->message))
		place(m, t->message, true);
}

void gf_memory_flush(struct gf_memory *m)
{
	size_t i;

	for (i = 0; i < m->env->plan->nmessages; i++)
		if (m->messages[i].nposted < tensors_in(m, i))
			place(m, i, false);
}

bool gf_memory_done(const struct gf_memory *m, size_t tensor)
{
	return atomic_load(&m->messages[m->tensors[tensor].message].done);
}

/* --- on the engine's thread: to the pool ---------------------------------- */

void gf_memory_count(struct gf_memory *m, size_t bytes)
{
	atomic_fetch_add_explicit(&m->copied_bytes, bytes, memory_order_relaxed);
}

static int pack(struct gf_memory *m, size_t tensor, struct gf_gpu_stream *q, struct gf_error *err)
{
	if (q)
		return gf_memory_pack_on(m, tensor, q, err);
	gf_memory_pack(m, tensor);
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
		gf_memory_pack(m, m->front);
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
	const struct gf_work *w = &work_of(m)[message];
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
			gf_memory_put_wide(m, k);
		else if (m->tensors[k].data)
			gf_memory_put(m, k, 0, gf_memory_place(m, k), share, gf_memory_elems(m, k));
	}
	tell(m, message, 0);
}

/* On a GPU the stream waits, and nobody is told. */
static int give_back_on(struct gf_memory *m, size_t message, float share, struct gf_gpu_stream *q,
			struct gf_error *err)
{
	const struct gf_work *w = &work_of(m)[message];
	int rc = gf_select_multiply(m->select, w, share, q, err);
	size_t k;

	for (k = w->first; !m->messages[message].in_place && k <= w->last && !rc; k++)
		if (m->tensors[k].data)
			rc = gf_memory_put_on(m, k, q, err);
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
		gf_memory_put(m, tensor, at - begin, NULL, 0, from - at);
		if (from < to)
			gf_memory_put(m, tensor, from - begin, p->grad + (from - p->first),
				      sums->share, to - from);
		at = to > from ? to : from;
		if (p->first + p->count_elems > end)
			return;
		++*piece;
	}
	gf_memory_put(m, tensor, at - begin, NULL, 0, end - at);
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
			gf_memory_put(m, i, 0, NULL, NAN, gf_memory_elems(m, i));
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
		return gf_memory_put_all_on(m, q, err);
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
