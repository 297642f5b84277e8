/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * dgc: Deep Gradient Compression (Lin, Han, Mao, Wang, Dally: Deep Gradient
 * Compression: Reducing the Communication Bandwidth for Distributed Training,
 * ICLR 2018). Each rank sends the k largest elements of a velocity that it
 * gathers over steps; the sets of all ranks are gathered and applied.
 *
 * Step t on each of P ranks, for every message of n elements (Algorithm 4 of
 * the paper; u and v begin at 0; m is the momentum):
 *	g = gradient, of the loss that is the mean over this rank's samples
 *	if clip_norm > 0 and |g| > clip_norm * P^-1/2, over all messages:
 *		g = g * clip_norm * P^-1/2 / |g|	(local clipping)
 *	u = m u + g					(momentum correction)
 *	v = v + u
 *	the k largest |v| are sent, k = max(1, floor(density * n))
 *	v = 0 where an element was sent
 *	u = 0 where an element was sent, with masking
 *	w = w - rate * (sum over ranks of the sets) / P
 * The update has no momentum of its own: the velocity carries it.
 *
 * On the wire: one set of k entries per rank and message, all of them gathered,
 * as topk sends them: k indices of 32 bits, then
 * k f32, 8 k bytes. For n = 6, density 1/3, m = 0.5, without clipping, one
 * rank's g = (1, -4, 2, 0, 3, 1)	u = v = g	sent: 1: -4, 4: 3 leaves
 * v = (1, 0, 2, 0, 0, 1) and, with masking, u = (1, 0, 2, 0, 0, 1). In the next
 * step the same g makes u = (1.5, -4, 3, 0, 3, 1.5) and v = (2.5, -4, 5, 0,
 * 3, 2.5), of which 1: -4 and 2: 5 are sent.
 *
 * The norm that is
 * clipped is that of all gradients: with a clip_norm every message waits for the end of backward.
 *
 * Until the step has ended and is found finite, u and v are as before it. The pool has the values
 * that v is to become, and `next` those of u.
 */
#include "compressors/halves.h"

#include <math.h>
#include <string.h>

#include "base/array.h"
#include "base/heap.h"

struct params {
	double density;           /* k/n, (0, 1] */
	double *warmup_densities; /* of the first epochs */
	size_t nwarmup;
	double clip_norm; /* of the sum over ranks; 0: no clipping */
	double momentum;  /* [0, 1); NAN: the optimiser's */
	bool masking;
	char *extra; /* x- keys */
};

#if GF_PLAN_HALF

static const char *const momentum_words[] = {"optimizer", NULL};

#define AT(member) offsetof(struct params, member)
static const struct gf_field fields[] = {
	GF_DENSITY_FIELDS,
	{GF_MEMBER(clip_norm, GF_FIELD_REAL, GF_DEFAULTED), .high = 1e30, .unit = "NORM",
	 .help = "the largest norm of a sum of gradients of all ranks, each of which is clipped by "
		 "itself; 0: no clipping"},
	{GF_MEMBER(momentum, GF_FIELD_REAL, GF_DEFAULTED), .high = 0.999999, .absent = NAN,
	 .names = momentum_words, .unit = "M",
	 .help = "of the velocity that is sent, 0 to 0.999999 or optimizer"},
	{GF_MEMBER(masking, GF_FIELD_BOOL, GF_DEFAULTED), .absent = true, .unit = "SWITCH",
	 .help = "whether an element that is sent loses its momentum, on or off"},
	{NULL},
};

static const struct gf_record record = {
	GF_RECORD(struct params, fields),
};
#undef AT

/* Section 3.3 of the paper: the sparsity of the first epochs, 75 %, 93.75 %,
 * 98.4375 %, 99.6 % and 99.9 %. */
static double warmup_densities[] = {0.25, 0.0625, 0.015625, 0.004, 0.001};

static const struct params defaults = {
	.density = 0.001,
	.warmup_densities = warmup_densities,
	.nwarmup = GF_ARRAY_LENGTH(warmup_densities),
	.momentum = NAN,
	.masking = true,
};

/* MANUAL
 * Deep Gradient Compression.
 * Each rank keeps a velocity u = m u + g and sends the k largest values of the sum of its
 * velocities, as topk does.
 * @key clip_norm
 * each rank scales its gradient down to a norm of at most this divided by the square root of the
 * number of ranks, and every message waits for the end of backward; 0: neither
 * @key momentum
 * that of the velocity
 * @key masking
 * an element that was sent loses its momentum */
const struct gf_select_plan gf_select_plan_dgc = {
	.name = "dgc",
	.description = "the k largest of each rank's velocity, all of them applied",
	.place = 50,
	.source = "Deep Gradient Compression (Lin et al. 2018)",
	.traits = GF_SELECT_SETS | GF_SELECT_MOMENTUM,
	.record = &record,
	.defaults = &defaults,
	.wire = gf_density_wire,
	.warm = gf_density_warm,
};

#else

#include "compressors/topk.h"

/* Arrays: u, and what it is to become. The factor is that for this step's gradients. */
enum { VELOCITY, NEXT };

static const struct params *params_of(const struct gf_selector *s)
{
	return gf_select_params(s);
}

/* --- on the thread that moves messages ------------------------------------ */

/* The factor for gradients: 1, or less to clip them. */
static float clipping(const struct gf_selector *s, const struct gf_pool *pool)
{
	const double most = params_of(s)->clip_norm / sqrt(s->env.plan->ranks);
	double norm;

	if (most == 0)
		return 1;
	norm = sqrt(gf_kernels()->sum_squares_f32(pool->data, pool->count_elems));
	if (isinf(norm)) { /* of f32 */
		norm = 0;
		for (size_t i = 0; i < pool->count_elems; i++)
			norm = hypot(norm, pool->data[i]);
	}
	return norm > most ? (float)(most / norm) : 1;
}

static int prepare(void *ctx, size_t slot, size_t message, struct gf_gpu_stream *q,
		   struct gf_error *err)
{
	struct gf_selector *s = ctx;
	const struct gf_pool *pool = &s->env.pools[slot];
	struct gf_sparse_message *m = &gf_topk_slot(s, slot)->messages[message];
	const size_t bytes = m->count_elems * sizeof(*m->data);
	float *next = gf_topk_of(s)->arrays[NEXT] + (m->data - pool->data);
	const double momentum =
		isnan(params_of(s)->momentum) ? s->env.momentum : params_of(s)->momentum;

	(void)q;
	(void)err;
	if (message == 0) /* no other gradient has been touched yet */
		gf_topk_of(s)->factor = clipping(s, pool);
	/* u becomes g + m u in `next`, then in the pool */
	memcpy(next, gf_topk_of(s)->arrays[VELOCITY] + (m->data - pool->data), bytes);
	gf_kernels()->axpby_f32(gf_topk_of(s)->factor, m->data, (float)momentum, next,
				m->count_elems);
	memcpy(m->data, next, bytes);
	gf_sparse_select(m, m->k, s->env.rank);
	return 0;
}

static int end(void *ctx, size_t slot, struct gf_gpu_stream *q, struct gf_error *err)
{
	struct gf_selector *s = ctx;
	const struct gf_pool *pool = &s->env.pools[slot];
	const struct gf_topk_slot *t = gf_topk_slot(s, slot);
	int rc = gf_topk_conclude(s, slot, err);

	(void)q;
	if (rc || s->slots[slot].bad.found)
		return rc;
	/* u where this rank sent something is zero */
	for (size_t i = 0; i < s->env.plan->nmessages && params_of(s)->masking; i++) {
		const struct gf_sparse_message *m = &t->messages[i];
		float *next = gf_topk_of(s)->arrays[NEXT] + (m->data - pool->data);

		for (size_t k = 0; k < m->k; k++)
			next[m->sent[k]] = 0;
	}
	memcpy(gf_topk_of(s)->arrays[VELOCITY], gf_topk_of(s)->arrays[NEXT],
	       pool->count_elems * sizeof(*pool->data));
	gf_topk_commit(s, slot);
	return 0;
}

/* --- on the compute thread ------------------------------------------------ */

static void begin(struct gf_selector *s, size_t slot, size_t step, const struct gf_work **list,
		  size_t *n)
{
	struct gf_work *work = s->slots[slot].list;

	gf_topk_begin(s, slot, step, list, n);
	for (size_t i = 0; i < *n && params_of(s)->clip_norm > 0; i++)
		work[i].at_end = true;
}

static void state(struct gf_selector *s, struct gf_state *list)
{
	const struct gf_shape shape = {1, {s->env.pools[0].count_elems}};

	gf_state_add(list, GF_STATE_OWN, gf_xstrdup("dgc.velocity"), &shape,
		     gf_topk_of(s)->arrays[VELOCITY])
		->rule = GF_STATE_SUM;
}

static const struct gf_select_ops ops = {
	.hooks = {.prepare = prepare, .end = end},
	.slot_bytes = sizeof(struct gf_topk_slot),
	.residual = "dgc.residual",
	.open = gf_topk_open_arrays,
	.close = gf_topk_close,
	.begin = begin,
	.state = state,
};

const struct gf_selection_entry gf_selection_dgc = {
	.plan = &gf_select_plan_dgc,
	.ops = &ops,
};

#endif
