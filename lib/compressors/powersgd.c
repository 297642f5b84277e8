/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * powersgd; compressors/powersgd.h has its source and equations, and decides which
 * tensors are compressed, and with which rank. A P that would be summed and a tensor that goes
 * whole share the first message.
 *
 * All arrays of a matrix lie column by column: P and Q have r runs of n and of m elements.
 */
#include <math.h>
#include <string.h>

#include "base/heap.h"
#include "compressors/topk.h"
#include "compressors/powersgd.h"
#include "gf_kernels.h"
#include "lists/gf_select_plans.h"

/* Sums of products are made in so many lanes, the same on every machine. */
#define LANES ((size_t)8)
/* A column may depend on the columns before it. The rest of the column counts as nothing below this
 * share of its length. */
#define DEPENDS 1e-5

/* A tensor of a message. */
struct part {
	size_t first, count_elems; /* of the pool */
	size_t tensor;
	struct gf_powersgd_matrix m; /* rank 0: it goes whole */
	/* P, or the whole tensor, in the first message's memory; Q in the second's and among all
	 * that lasts. */
	size_t at_p, at_q, at_kept;
};

/* A message of the plan: two of a step's list, or one where nothing has factors. */
struct pair {
	struct part *parts;
	size_t nparts, p_elems, q_elems;
	size_t number; /* of its first, in the list */
};

struct powersgd {
	const struct gf_powersgd_params *params; /* borrowed */
	struct pair *pairs;
	size_t npairs, nlist;
	size_t *pair_of; /* per message of the list */
	float *kept;     /* Q of all matrices, for the next step */
	size_t kept_elems;
};

/* A step goes dense, as the plan has it. */
static bool warms_up(const struct gf_selector *s, size_t slot)
{
	const struct powersgd *p = s->priv;

	return s->slots[slot].step.number <= p->params->warmup_steps;
}

/* --- linear algebra ------------------------------------------------------- */

static float dot(const float *a, const float *b, size_t n)
{
	float lane[LANES] = {0}, sum = 0;
	size_t i, k;

	for (i = 0; i + LANES <= n; i += LANES)
		for (k = 0; k < LANES; k++)
			lane[k] += a[i + k] * b[i + k];
	for (; i < n; i++)
		lane[i % LANES] += a[i] * b[i];
	for (k = 0; k < LANES; k++)
		sum += lane[k];
	return sum;
}

/* y += a*x */
static void add_times(float *y, float a, const float *x, size_t n)
{
	gf_kernels()->axpby_f32(a, x, 1, y, n);
}

/* P = M Q */
static void times_q(const struct gf_powersgd_matrix *t, const float *m, const float *q, float *p)
{
	for (size_t i = 0; i < t->rows; i++)
		for (size_t j = 0; j < t->rank; j++)
			p[j * t->rows + i] = dot(m + i * t->cols, q + j * t->cols, t->cols);
}

/* Q = M^T P */
static void times_p(const struct gf_powersgd_matrix *t, const float *m, const float *p, float *q)
{
	memset(q, 0, t->rank * t->cols * sizeof(*q));
	for (size_t i = 0; i < t->rows; i++)
		for (size_t j = 0; j < t->rank; j++)
			add_times(q + j * t->cols, p[j * t->rows + i], m + i * t->cols, t->cols);
}

/* M += P Q^T */
static void add_product(const struct gf_powersgd_matrix *t, const float *p, const float *q,
			float *m)
{
	for (size_t i = 0; i < t->rows; i++)
		for (size_t j = 0; j < t->rank; j++)
			add_times(m + i * t->cols, p[j * t->rows + i], q + j * t->cols, t->cols);
}

/* Columns of length 1 at right angles; one that depends on those before is zero. */
static void orthogonalise(float *p, size_t rows, size_t rank)
{
	for (size_t j = 0; j < rank; j++) {
		float *column = p + j * rows;
		const float before = sqrtf(dot(column, column, rows));
		float length;

		for (size_t i = 0; i < j; i++)
			add_times(column, -dot(p + i * rows, column, rows), p + i * rows, rows);
		length = sqrtf(dot(column, column, rows));
		length = length > (float)DEPENDS * before ? 1 / length : 0;
		gf_kernels()->scale_f32(length, column, column, rows);
	}
}

/* --- on the thread that moves messages ------------------------------------ */

static const float *first_q(const struct powersgd *p, const struct gf_select_slot *t,
			    const struct part *part, float *drawn)
{
	if (p->params->warm_start)
		return p->kept + part->at_kept;
	gf_powersgd_start(t->step.number - 1, part->tensor, part->m.rank * part->m.cols, drawn);
	return drawn;
}

/* In the second message's memory a Q without warm start is drawn; it is not in use yet. */
static void prepare_p(const struct gf_selector *s, size_t slot, const struct pair *pair)
{
	const struct powersgd *p = s->priv;
	const struct gf_select_slot *t = &s->slots[slot];
	float *data = s->env.pools[slot].data, *to = t->list[pair->number].data;
	float *drawn = pair->q_elems ? t->list[pair->number + 1].data : NULL;

	for (size_t i = 0; i < pair->nparts; i++) {
		const struct part *part = &pair->parts[i];
		float *m = data + part->first;

		if (!part->m.rank) {
			memcpy(to + part->at_p, m, part->count_elems * sizeof(*m));
			continue;
		}
		gf_feedback_add(s, data, part->first, part->count_elems);
		times_q(&part->m, m, first_q(p, t, part, drawn + part->at_q), to + part->at_p);
	}
}

static void prepare_q(const struct gf_selector *s, size_t slot, const struct pair *pair)
{
	const struct gf_select_slot *t = &s->slots[slot];
	const float *data = s->env.pools[slot].data;
	float *ps = t->list[pair->number].data;
	float *qs = t->list[pair->number + 1].data;

	for (size_t i = 0; i < pair->nparts; i++) {
		const struct part *part = &pair->parts[i];

		if (part->m.rank)
			times_p(&part->m, data + part->first, ps + part->at_p, qs + part->at_q);
	}
}

static const struct pair *pair_of(const struct gf_selector *s, size_t message)
{
	const struct powersgd *p = s->priv;

	return &p->pairs[p->pair_of[message]];
}

static int prepare(void *ctx, size_t slot, size_t message, struct gf_gpu_stream *q,
		   struct gf_error *err)
{
	struct gf_selector *s = ctx;
	const struct gf_select_slot *t = &s->slots[slot];
	const struct pair *pair;

	(void)q;
	(void)err;
	if (warms_up(s, slot))
		return gf_select_scale(s, slot, &s->plan_work[slot][message], q, err);
	pair = pair_of(s, message);
	if (message == pair->number)
		prepare_p(s, slot, pair);
	else
		prepare_q(s, slot, pair);
	return gf_select_scale(s, slot, &t->list[message], q, err);
}

/* by * data */
static void multiply(float *data, float by, size_t n)
{
	gf_kernels()->scale_f32(by, data, data, n);
}

static int finish(void *ctx, size_t slot, size_t message, struct gf_gpu_stream *q,
		  struct gf_error *err)
{
	struct gf_selector *s = ctx;
	struct gf_select_slot *t = &s->slots[slot];
	const struct gf_work *w;
	const struct pair *pair;
	int rc;

	(void)q;
	(void)err;
	w = warms_up(s, slot) ? &s->plan_work[slot][message] : &t->list[message];
	rc = gf_select_unscale(s, slot, w, q, err);
	if (rc || warms_up(s, slot))
		return rc;
	pair = pair_of(s, message);
	if (!t->bad.found && gf_finite_prefix(w->data, w->count_elems) < w->count_elems)
		t->bad = gf_select_bad_at(&s->env.pools[slot], pair->parts[0].first);
	if (message != pair->number && !s->env.scaled)
		multiply(w->data, 1.0f / (float)s->env.plan->ranks, w->count_elems);
	for (size_t i = 0; message == pair->number && i < pair->nparts; i++)
		if (pair->parts[i].m.rank)
			orthogonalise((float *)w->data + pair->parts[i].at_p, pair->parts[i].m.rows,
				      pair->parts[i].m.rank);
	return 0;
}

/* A column of zeros would stay so, and what it could carry be kept back for ever: the next step
 * begins with a new one. */
static void revive(const struct gf_powersgd_matrix *m, size_t step, size_t tensor, float *q)
{
	GF_FREED float *drawn = NULL;

	for (size_t j = 0; j < m->rank; j++) {
		float *column = q + j * m->cols;

		if (dot(column, column, m->cols) > 0)
			continue;
		if (!drawn) {
			drawn = gf_xcalloc(m->rank * m->cols, sizeof(*drawn));
			gf_powersgd_start(step, tensor, m->rank * m->cols, drawn);
		}
		memcpy(column, drawn + j * m->cols, m->cols * sizeof(*column));
	}
}

/* Gradients become the sums over ranks, or scaled the means; the residual becomes what the means
 * leave out. */
static void take_up(struct gf_selector *s, size_t slot, const struct pair *pair)
{
	struct powersgd *p = s->priv;
	const struct gf_select_slot *t = &s->slots[slot];
	const float *ps = t->list[pair->number].data;
	const float *qs = pair->q_elems ? t->list[pair->number + 1].data : NULL;
	float *data = s->env.pools[slot].data;

	for (size_t i = 0; i < pair->nparts; i++) {
		const struct part *part = &pair->parts[i];
		float *m = data + part->first;

		if (!part->m.rank) {
			memcpy(m, ps + part->at_p, part->count_elems * sizeof(*m));
			continue;
		}
		gf_feedback_commit(s, data, part->first, part->count_elems);
		add_product(&part->m, ps + part->at_p, qs + part->at_q, m);
		add_times(s->residual + part->first, -1, m, part->count_elems);
		if (!s->env.scaled)
			multiply(m, (float)s->env.plan->ranks, part->count_elems);
		memcpy(p->kept + part->at_kept, qs + part->at_q,
		       part->m.rank * part->m.cols * sizeof(*qs));
		revive(&part->m, t->step.number, part->tensor, p->kept + part->at_kept);
	}
}

static int end(void *ctx, size_t slot, struct gf_gpu_stream *q, struct gf_error *err)
{
	struct gf_selector *s = ctx;
	const struct powersgd *p = s->priv;
	struct gf_select_slot *t = &s->slots[slot];
	const struct gf_pool *pool = &s->env.pools[slot];

	(void)q;
	(void)err;
	if (warms_up(s, slot))
		t->bad = gf_select_find_bad(pool, pool->data, 0, pool->count_elems);
	for (size_t i = 0; i < p->npairs && !warms_up(s, slot) && !t->bad.found; i++)
		take_up(s, slot, &p->pairs[i]);
	return 0;
}

/* --- opening and closing -------------------------------------------------- */

static void lay_out_part(const struct gf_selector *s, struct powersgd *p, struct pair *pair,
			 size_t tensor)
{
	const size_t *offsets = s->env.pools[0].offsets;
	struct part *part = &pair->parts[pair->nparts++];

	part->tensor = tensor;
	part->first = offsets[tensor];
	part->count_elems = offsets[tensor + 1] - offsets[tensor];
	part->m = gf_powersgd_matrix_of(p->params, &s->env.plan->model->tensors[tensor]);
	part->at_p = pair->p_elems;
	part->at_q = pair->q_elems;
	part->at_kept = p->kept_elems;
	pair->p_elems += part->m.rank ? part->m.rank * part->m.rows : part->count_elems;
	pair->q_elems += part->m.rank * part->m.cols;
	p->kept_elems += part->m.rank * part->m.cols;
}

static void lay_out(struct gf_selector *s, struct powersgd *p)
{
	const struct gf_plan *plan = s->env.plan;

	p->npairs = plan->nmessages;
	p->pairs = gf_xcalloc(p->npairs + 1, sizeof(*p->pairs));
	p->pair_of = gf_xcalloc(2 * p->npairs + 1, sizeof(*p->pair_of));
	for (size_t i = 0; i < p->npairs; i++) {
		const struct gf_message *m = &plan->messages[i];
		struct pair *pair = &p->pairs[i];

		pair->number = p->nlist;
		pair->parts = gf_xcalloc(m->last - m->first + 1, sizeof(*pair->parts));
		for (size_t k = m->first; k <= m->last; k++)
			lay_out_part(s, p, pair, k);
		p->pair_of[p->nlist++] = i;
		if (pair->q_elems)
			p->pair_of[p->nlist++] = i;
	}
}

static int open_slot(struct gf_selector *s, size_t slot, struct gf_error *err)
{
	const struct powersgd *p = s->priv;
	struct gf_select_slot *t = &s->slots[slot];
	struct gf_work *list = gf_select_own_work(s, slot, p->nlist);
	size_t np = 0, nq = 0, i;
	int rc;

	for (i = 0; i < p->npairs; i++) {
		np += p->pairs[i].p_elems;
		nq += p->pairs[i].q_elems;
	}
	rc = gf_select_memory(s, slot, 0, np * sizeof(float), err);
	rc = rc ?: gf_select_memory(s, slot, 1, nq * sizeof(float), err);
	for (i = 0, np = 0, nq = 0; i < p->npairs && !rc; i++) {
		const struct pair *pair = &p->pairs[i];
		struct gf_work *w = &list[pair->number];

		w[0] = w[1] = s->plan_work[slot][i];
		w[0].data = (float *)t->memory[0] + np;
		w[0].count_elems = pair->p_elems;
		np += pair->p_elems;
		if (!pair->q_elems)
			continue;
		w[1].after = pair->number + 1;
		w[1].data = (float *)t->memory[1] + nq;
		w[1].count_elems = pair->q_elems;
		nq += pair->q_elems;
	}
	return rc;
}

/* Q of the first step. */
static void start(struct powersgd *p)
{
	p->kept = gf_xcalloc(p->kept_elems + 1, sizeof(*p->kept));
	for (size_t i = 0; i < p->npairs; i++)
		for (size_t k = 0; k < p->pairs[i].nparts; k++) {
			const struct part *part = &p->pairs[i].parts[k];

			gf_powersgd_start(0, part->tensor, part->m.rank * part->m.cols,
					  p->kept + part->at_kept);
		}
}

static int open_powersgd(struct gf_selector *s, struct gf_error *err)
{
	struct powersgd *p = gf_xcalloc(1, sizeof(*p));

	(void)err;
	s->priv = p;
	p->params = gf_select_params(s);
	lay_out(s, p);
	start(p);
	return 0;
}

static void close_powersgd(struct gf_selector *s)
{
	struct powersgd *p = s->priv;

	if (!p)
		return;
	for (size_t i = 0; i < p->npairs; i++)
		free(p->pairs[i].parts);
	free(p->pairs);
	free(p->pair_of);
	free(p->kept);
	free(p);
}

/* --- on the compute thread ------------------------------------------------ */

static void begin(struct gf_selector *s, size_t slot, size_t step, const struct gf_work **list,
		  size_t *n)
{
	(void)step;
	s->slots[slot].bad.found = false;
	if (!warms_up(s, slot))
		return;
	*list = s->plan_work[slot];
	*n = s->nplan_work;
}

static void state(struct gf_selector *s, struct gf_state *list)
{
	struct powersgd *p = s->priv;
	const struct gf_shape shape = {1, {p->kept_elems}};

	if (p->params->warm_start && p->kept_elems)
		gf_state_add(list, GF_STATE_SHARED, gf_xstrdup("powersgd.q"), &shape, p->kept);
}

static const struct gf_select_ops ops = {
	.hooks = {.prepare = prepare, .finish = finish, .end = end},
	.residual = "powersgd.residual",
	.open = open_powersgd,
	.open_slot = open_slot,
	.close = close_powersgd,
	.begin = begin,
	.state = state,
};

const struct gf_selection_entry gf_selection_powersgd = {
	.plan = &gf_select_plan_powersgd,
	.ops = &ops,
};
