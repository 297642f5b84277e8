/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * topk and gtopk (gTop-k, Shi et al. 2019): of every message each rank sends the k largest of
 * gradient plus residual, as values with 32-bit indices; the rest is its residual of the next step.
 * topk gathers all ranks' sets and applies their sum; gtopk merges them along a tree, keeping k at
 * each node (compressors/sets.h).
 *
 * Until the step has ended and is found finite, the residual is as before it; what it is to become
 * is in the pool. Then the pool becomes the sum.
 */
#include "compressors/halves.h"

#include <math.h>

#include "base/array.h"
#include "base/heap.h"
#include "compressors/sets.h"

struct params {
	double density;           /* k/n of a message of n elements, (0, 1] */
	double *warmup_densities; /* of the first epochs */
	size_t nwarmup;
	enum gf_putback putback;
	char *extra; /* x- keys */
};

#if GF_PLAN_HALF

static const char *const putback_names[] = {"paper", "conserve", "naive", NULL};

#define AT(member) offsetof(struct params, member)
static const struct gf_field fields[] = {
	GF_DENSITY_FIELDS,
	{GF_MEMBER(putback, GF_FIELD_CHOICE, GF_DEFAULTED), .names = putback_names, .unit = "RULE",
	 .help = "paper, conserve or naive"},
	{NULL},
};

static const struct gf_record record = {
	GF_RECORD(struct params, fields),
};
#undef AT

/*
 * The default density is meant for models of millions. What a step must send to learn does not
 * shrink with the model: the smallest model of the paper sends LEAST_SENT (ResNet-20, 269,722
 * weights). A small model gets the density for as many, at most that of the first epoch of warm-up,
 * and no epoch sends less.
 */
#define LEAST_SENT   270
#define MOST_DENSITY 0.25

static int fit(void *params, const struct gf_model_profile *model,
	       bool (*asked)(const void *ctx, const char *key), const void *ctx,
	       struct gf_text *notes, struct gf_error *err)
{
	struct params *p = params;
	const double elems = (double)gf_model_profile_bytes(model) / sizeof(float);
	const double least = fmin(LEAST_SENT / elems, MOST_DENSITY);
	const double before = p->density;

	(void)err;
	if (asked(ctx, "density") || !(before < least))
		return 0;
	p->density = least;
	for (size_t i = 0; i < p->nwarmup && !asked(ctx, "warmup_densities"); i++)
		p->warmup_densities[i] = fmax(p->warmup_densities[i], least);
	gf_text_addf(
		notes,
		"%s has %.0f elements: the density is %.3g instead of %g (--selection density)\n",
		model->name, elems, least, before);
	return 0;
}

static size_t wire_gtopk(const void *params, const struct gf_wired *message, struct gf_wire *wires)
{
	const struct params *p = params;

	*wires = gf_density_set(p->density, message,
				p->putback == GF_PUTBACK_NAIVE ? GF_WIRE_GATHER : GF_WIRE_MERGE);
	return 1;
}

/* gTop-k, section IV: densities of the first epochs. */
static double warmup_densities[] = {0.25, 0.0725, 0.015, 0.004};

#define LESS_MOMENTUM "an element goes out as the sum of many steps at once"
#define RATE_SHARE    0.5 /* docs/methods.md, "Accuracy" */

static const struct params defaults = {
	.density = 0.001,
	.warmup_densities = warmup_densities,
	.nwarmup = GF_ARRAY_LENGTH(warmup_densities),
	.putback = GF_PUTBACK_PAPER,
};

/* MANUAL
 * Each rank sends the k largest values of every message, gradient plus residual, as pairs of
 * index and value.
 * k is max(1, floor(density x elements)).
 * The sum of all pairs is applied, and the values that were not sent are the next step's
 * residual.
 * By default
 * .Xr gf-plan 1
 * lets a step send 270 elements at least, as many as the smallest model of the paper does, but no
 * more than a quarter. */
const struct gf_select_plan gf_select_plan_topk = {
	.name = "topk",
	.description = "each rank's k largest, all of them applied",
	.place = 30,
	.source = "gTop-k (Shi et al. 2019)",
	.traits = GF_SELECT_SETS,
	.record = &record,
	.defaults = &defaults,
	.less_momentum = LESS_MOMENTUM,
	.rate_share = RATE_SHARE,
	.wire = gf_density_wire,
	.warm = gf_density_warm,
	.fit = fit,
};

/* MANUAL
 * The same sets, merged along a tree of any number of ranks that keeps the k largest at every
 * node.
 * The rank that sent a value gets it back into its residual if the result has no place for it.
 * @key putback
 * the rule by which values return to the residual.
 * .Ql paper
 * looks only at the indices, and so loses a value that a merge drops if its index comes back by
 * another way.
 * .Ql conserve
 * gives a value that a merge drops to the merging rank's residual and loses nothing.
 * .Ql naive
 * gathers all sets and takes the k largest of the sum.
 * topk applies all that is sent, so the three are the same there */
const struct gf_select_plan gf_select_plan_gtopk = {
	.name = "gtopk",
	.description = "the k largest of all ranks, merged along a tree",
	.place = 40,
	.source = "gTop-k (Shi et al. 2019)",
	.traits = GF_SELECT_SETS,
	.record = &record,
	.defaults = &defaults,
	.less_momentum = LESS_MOMENTUM,
	.rate_share = RATE_SHARE,
	.wire = wire_gtopk,
	.warm = gf_density_warm,
	.fit = fit,
};

#else

#include "compressors/topk.h"

/* --- opening and closing -------------------------------------------------- */

size_t gf_topk_most_k(const struct gf_selector *s, size_t count_elems)
{
	return gf_density_count(gf_select_densest(s), count_elems);
}

size_t gf_topk_k(const struct gf_selector *s, size_t step, size_t count_elems)
{
	return gf_density_count(gf_select_density(s, step), count_elems);
}

struct gf_topk_kind gf_topk_kind(const struct gf_selector *s)
{
	const struct params *k = gf_select_params(s);

	return (struct gf_topk_kind){
		.merges = s->env.plan->selection.plan == &gf_select_plan_gtopk,
		.putback = k->putback,
	};
}

void gf_topk_open(struct gf_selector *s, const struct gf_topk_kind *kind)
{
	struct gf_topk_select *p = gf_xcalloc(1, sizeof(*p));

	s->priv = p;
	p->kind = *kind;
	for (size_t i = 0; i < s->env.depth; i++)
		gf_select_own_work(s, i, s->nplan_work);
}

static void init_message(struct gf_selector *s, size_t slot, size_t i)
{
	const struct gf_plan *plan = s->env.plan;
	const struct gf_work *w = &s->plan_work[slot][i];
	const struct gf_topk_select *p = s->priv;

	gf_topk_slot(s, slot)->messages[i] = (struct gf_sparse_message){
		.merges = p->kind.merges,
		.putback = p->kind.putback,
		.ranks = plan->ranks,
		.count_elems = w->count_elems,
		.codec = gf_codec_find(plan->messages[i].codec),
		.data = w->data,
		.residual = s->residual ? s->residual + ((float *)w->data - s->env.pools[slot].data)
					: NULL,
		.scratch = p->scratch,
	};
}

static int open_slot(struct gf_selector *s, size_t slot, struct gf_error *err)
{
	const struct gf_topk_select *p = s->priv;
	struct gf_topk_slot *t = gf_topk_slot(s, slot);
	size_t n = s->env.plan->nmessages, i, at = 0;
	int rc = gf_select_memory(s, slot, 0, p->sets_bytes, err);

	t->messages = gf_xcalloc(n, sizeof(*t->messages));
	for (i = 0; i < n && !rc; i++) {
		struct gf_sparse_message *m = &t->messages[i];
		size_t k = gf_topk_most_k(s, s->plan_work[0][i].count_elems);

		init_message(s, slot, i);
		rc = gf_sparse_init(m, k, err);
		m->sets = (char *)s->slots[slot].memory[0] + at;
		at += gf_sparse_sets_bytes(m, k);
	}
	return rc;
}

/* All messages' memory in one piece, which the transport likes. */
static int open_messages(struct gf_selector *s, struct gf_error *err)
{
	const struct gf_plan *plan = s->env.plan;
	struct gf_topk_select *p = s->priv;
	size_t most = 0, i, k, n;
	int rc = 0;

	for (i = 0; i < plan->nmessages; i++) {
		const struct gf_sparse_message m = {
			.merges = p->kind.merges,
			.putback = p->kind.putback,
			.ranks = plan->ranks,
			.count_elems = s->plan_work[0][i].count_elems,
			.codec = gf_codec_find(plan->messages[i].codec),
		};

		k = gf_topk_most_k(s, m.count_elems);
		n = gf_sparse_scratch_elems(&m, k);
		most = n > most ? n : most;
		p->sets_bytes += gf_sparse_sets_bytes(&m, k);
	}
	p->scratch = malloc((most + 1) * sizeof(*p->scratch));
	if (!p->scratch)
		return gf_error_set(err, -ENOMEM, "no memory to select among %zu gradients",
				    s->env.pools[0].count_elems);
	for (i = 0; i < s->env.depth && !rc; i++)
		rc = open_slot(s, i, err);
	return rc;
}

int gf_topk_open_arrays(struct gf_selector *s, struct gf_error *err)
{
	static const struct gf_topk_kind gathers = {0};
	const size_t count = s->env.pools[0].count_elems;
	struct gf_topk_select *p;

	gf_topk_open(s, &gathers);
	p = s->priv;
	for (size_t i = 0; i < GF_ARRAY_LENGTH(p->arrays); i++) {
		p->arrays[i] = calloc(count + 1, sizeof(float));
		if (!p->arrays[i])
			return gf_error_set(err, -ENOMEM,
					    "no memory for what %s keeps of %zu gradients",
					    gf_selection_name(&s->env.plan->selection), count);
	}
	return open_messages(s, err);
}

void gf_topk_close(struct gf_selector *s)
{
	struct gf_topk_select *p = s->priv;

	if (!p)
		return;
	for (size_t i = 0; i < s->env.depth; i++) {
		struct gf_topk_slot *t = gf_topk_slot(s, i);

		for (size_t k = 0; t->messages && k < s->env.plan->nmessages; k++)
			gf_sparse_release(&t->messages[k]);
		free(t->messages);
	}
	for (size_t i = 0; i < GF_ARRAY_LENGTH(p->arrays); i++)
		free(p->arrays[i]);
	free(p->scratch);
	free(p);
}

static int open_topk(struct gf_selector *s, struct gf_error *err)
{
	const struct gf_topk_kind kind = gf_topk_kind(s);

	gf_topk_open(s, &kind);
	return open_messages(s, err);
}

/* --- on the thread that moves messages -------------------------------------
 */

static int prepare(void *ctx, size_t slot, size_t message, struct gf_gpu_stream *q,
		   struct gf_error *err)
{
	const struct gf_selector *s = ctx;
	struct gf_sparse_message *m = &gf_topk_slot(s, slot)->messages[message];

	(void)q;
	(void)err;
	gf_sparse_select(m, m->k, s->env.rank);
	return 0;
}

int gf_topk_conclude(struct gf_selector *s, size_t slot, struct gf_error *err)
{
	struct gf_select_bad *bad = &s->slots[slot].bad;
	const struct gf_pool *pool = &s->env.pools[slot];
	size_t i, at;

	bad->found = false;
	for (i = 0; i < s->env.plan->nmessages && !bad->found; i++) {
		struct gf_sparse_message *m = &gf_topk_slot(s, slot)->messages[i];

		gf_sparse_conclude(m);
		if (m->damaged)
			return gf_error_set(err, -EBADMSG,
					    "message %zu: want sets of %zu ascending indices below "
					    "%zu, got damaged ones",
					    i, m->k, m->count_elems);
		at = gf_sparse_bad(m);
		if (at < m->count_elems)
			*bad = gf_select_bad_at(pool, at + (size_t)(m->data - pool->data));
	}
	return 0;
}

void gf_topk_commit(struct gf_selector *s, size_t slot)
{
	const struct gf_pool *pool = &s->env.pools[slot];
	const struct gf_topk_slot *t = gf_topk_slot(s, slot);

	if (s->slots[slot].bad.found)
		return;
	gf_feedback_commit(s, pool->data, 0, pool->count_elems);
	for (size_t i = 0; i < s->env.plan->nmessages; i++)
		gf_sparse_add(&t->messages[i], t->messages[i].data);
}

static int end(void *ctx, size_t slot, struct gf_gpu_stream *q, struct gf_error *err)
{
	int rc = gf_topk_conclude(ctx, slot, err);

	(void)q;
	if (rc == 0)
		gf_topk_commit(ctx, slot);
	return rc;
}

/* --- on the compute thread ------------------------------------------------ */

void gf_topk_begin(struct gf_selector *s, size_t slot, size_t step, const struct gf_work **list,
		   size_t *n)
{
	struct gf_topk_slot *t = gf_topk_slot(s, slot);
	struct gf_work *work = s->slots[slot].list;

	(void)list;
	for (size_t i = 0; i < *n; i++) {
		struct gf_sparse_message *m = &t->messages[i];

		m->k = gf_topk_k(s, step, m->count_elems);
		work[i] = s->plan_work[slot][i];
		gf_sparse_goes(m, &work[i]);
		work[i].element = gf_element_set(gf_sparse_set_bytes(m, m->k), gf_sparse_merge, m);
		work[i].data = m->sets;
	}
}

static const struct gf_select_ops ops = {
	.hooks = {.prepare = prepare, .end = end},
	.slot_bytes = sizeof(struct gf_topk_slot),
	.residual = "sparse.residual",
	.open = open_topk,
	.close = gf_topk_close,
	.begin = gf_topk_begin,
};

const struct gf_selection_entry gf_selection_topk = {
	.plan = &gf_select_plan_topk,
	.ops = &ops,
	.on_gpu = &gf_select_topk_gpu,
};

const struct gf_selection_entry gf_selection_gtopk = {
	.plan = &gf_select_plan_gtopk,
	.ops = &ops,
	.on_gpu = &gf_select_topk_gpu,
};

#endif
