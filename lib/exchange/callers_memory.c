/* SPDX-License-Identifier: BSD-3-Clause */
#include "exchange/exchange.h"
#include "exchange/callers_memory.h"

#include <errno.h>
#include <stdlib.h>

#include "base/array.h"
#include "base/heap.h"
#include "collectives/algorithm.h"

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
	m->hooks = gf_memory_hooks(m);
	m->tensors = gf_xcalloc(plan->model->ntensors, sizeof(*m->tensors));
	m->messages = gf_xcalloc(plan->nmessages, sizeof(*m->messages));
	for (i = 0; i < plan->nmessages; i++) {
		m->messages[i].gather = i;
		m->messages[i].pooled = read_here && goes_as_it_is(plan, i);
		for (k = plan->messages[i].first; k <= plan->messages[i].last; k++)
			m->tensors[k].message = i;
	}
	for (i = plan->nmessages; i < gf_work_count(plan, &env->pools[0]); i++)
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
	struct gf_work *work = gf_memory_work(m);
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
	const size_t *offsets = gf_memory_pool(m)->offsets;
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
