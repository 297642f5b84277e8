/* SPDX-License-Identifier: BSD-3-Clause */
#include "compressors/sets_gpu.h"

#include <assert.h>

#include "base/heap.h"
#include "collectives/algorithm.h"

#define ALIGN      256
#define LINE_BYTES (GF_LANE_GRAIN_ELEMS * sizeof(float))

struct gf_sparse_gpu {
	struct gf_sparse_gpu_config c;
	struct gf_sparse_message as; /* how compressors/sets.h sees it */
	float *grads;                /* of the step that was run last */
	struct gf_lane_sets form;
	struct gf_lane_program program;
	char *memory; /* all that follows */
	void *sets, *work, *merge_work;
	uint32_t *at; /* places of the k largest of a sum */
	/* The values that a rank drops and gets back, list by list: the values of a sum that were
	 * not kept, or else those that the rank sent. Sums are made there, too. */
	struct gf_gpu_sparse lists[32];
	size_t room;          /* of a list, at most */
	size_t nlists, nused; /* there are; hold something in this step */
};

static bool conserves(const struct gf_sparse_gpu *n)
{
	return n->c.merges && n->c.putback == GF_PUTBACK_CONSERVE;
}

static bool puts_back(const struct gf_sparse_gpu *n)
{
	return n->c.merges && !conserves(n);
}

/* --- opening -------------------------------------------------------------- */

/* A merge in each of the tree's rounds; or one after another, of which the last two sums are
 * wanted; and what was sent. */
static void count_lists(struct gf_sparse_gpu *n)
{
	const size_t ranks = (size_t)n->c.ranks;
	size_t rounds = 0;

	while (((size_t)1 << rounds) < ranks)
		rounds++;
	n->nlists = !n->c.merges ? 0 : conserves(n) ? rounds : gf_sparse_gathers(&n->as) ? 3 : 2;
	n->room = n->c.most_k * (gf_sparse_gathers(&n->as) && ranks > 2 ? ranks : 2);
}

/* From one set to the next. Those of several ranks go together, and each begins a line of memory
 * (cuda/lanes/program.h). */
static size_t set_bytes(const struct gf_sparse_gpu *n, size_t k)
{
	size_t bytes = gf_sparse_set_bytes(&n->as, k);

	if (gf_sparse_gathers(&n->as)) {
		bytes += LINE_BYTES - 1;
		bytes -= bytes % LINE_BYTES;
	}
	return bytes;
}

static void *carve(char *memory, size_t *used, size_t size_bytes)
{
	const size_t at = *used;

	*used += size_bytes + ALIGN - 1;
	*used -= *used % ALIGN;
	return memory ? memory + at : NULL;
}

/* Lays out memory; NULL: returns how much is wanted. */
static size_t lay_out(struct gf_sparse_gpu *n, char *memory)
{
	const struct gf_gpu_kernels *k = n->c.gpu->kernels;
	const size_t most = n->room > n->c.count_elems ? n->room : n->c.count_elems;
	size_t used = 0, i;

	n->sets = carve(memory, &used,
			set_bytes(n, n->c.most_k) *
				(gf_sparse_gathers(&n->as) ? (size_t)n->c.ranks : 1));
	n->work = carve(memory, &used, k->topk_work_bytes(most));
	if (!n->nlists)
		return used;
	n->merge_work = carve(memory, &used, k->merge_work_bytes(n->room));
	n->at = carve(memory, &used, n->c.most_k * sizeof(*n->at));
	for (i = 0; i < n->nlists; i++) {
		n->lists[i].index = carve(memory, &used, n->room * sizeof(uint32_t));
		n->lists[i].value = carve(memory, &used, n->room * sizeof(float));
	}
	return used;
}

static int merge(void *ctx, struct gf_gpu_stream *s, void *to, const void *from,
		 struct gf_error *err);

static int make_program(struct gf_sparse_gpu *n, struct gf_error *err)
{
	struct gf_coll_args args = {
		.ranks = n->c.ranks,
		.elem_bytes = set_bytes(n, n->c.most_k),
	};
	struct gf_work w = {0};
	GF_RELEASED(gf_schedule_release) struct gf_schedule s = {0};
	int rc;

	gf_sparse_goes(&n->as, &w);
	args.count_elems = w.count_elems;
	args.half = w.half;
	rc = gf_algorithm_schedule(w.sparse, &args, n->c.rank, &s, err);
	if (rc)
		return rc;
	n->form = (struct gf_lane_sets){.size_bytes = args.elem_bytes, .merge = merge, .ctx = n};
	gf_lane_program_of_sets(&s, &n->form, &n->program);
	return 0;
}

int gf_sparse_gpu_new(const struct gf_sparse_gpu_config *config, struct gf_sparse_gpu **made,
		      struct gf_error *err)
{
	struct gf_sparse_gpu *n;
	void *memory = NULL;
	int rc;

	if (config->count_elems > GF_GPU_NO_INDEX)
		return gf_error_set(
			err, -EINVAL,
			"want at most %u elements in a message with selection %s, got %zu",
			GF_GPU_NO_INDEX, config->merges ? "gtopk" : "topk", config->count_elems);
	n = gf_xcalloc(1, sizeof(*n));
	n->c = *config;
	n->as = (struct gf_sparse_message){.merges = config->merges,
					   .putback = config->putback,
					   .ranks = config->ranks,
					   .count_elems = config->count_elems};
	count_lists(n);
	rc = make_program(n, err);
	rc = rc ?: config->gpu->ops->alloc(config->gpu, lay_out(n, NULL), &memory, err);
	if (rc) {
		gf_error_prefix(err, "selection");
		gf_sparse_gpu_free(n);
		return rc;
	}
	n->memory = memory;
	(void)lay_out(n, memory);
	*made = n;
	return 0;
}

void gf_sparse_gpu_free(struct gf_sparse_gpu *n)
{
	if (!n)
		return;
	n->c.gpu->ops->free(n->c.gpu, n->memory);
	gf_lane_program_release(&n->program);
	free(n);
}

void gf_sparse_gpu_work(const struct gf_sparse_gpu *n, struct gf_work *w)
{
	gf_sparse_goes(&n->as, w);
	w->sets = &n->form;
	w->data = n->sets;
}

const struct gf_lane_program *gf_sparse_gpu_program(const struct gf_sparse_gpu *n)
{
	return &n->program;
}

/* --- a step --------------------------------------------------------------- */

static struct gf_gpu_sparse set_of(void *set, size_t k)
{
	uint32_t *index = set;

	return (struct gf_gpu_sparse){index, (float *)(void *)(index + k), k};
}

static struct gf_gpu_sparse set_at(const struct gf_sparse_gpu *n, size_t place)
{
	return set_of((char *)n->sets + place * n->form.size_bytes, n->as.k);
}

/* The k largest of a sum move to `kept`; what is left stays there. */
static void keep_largest(const struct gf_sparse_gpu *n, struct gf_gpu_stream *s,
			 const struct gf_gpu_sparse *sum, const struct gf_gpu_sparse *kept)
{
	const struct gf_gpu_kernels *k = n->c.gpu->kernels;
	/* Room after the sum's end holds zeros, of which none is chosen: a sum of sets has k
	 * entries at least, and they come first. */
	const struct gf_gpu_topk top = {
		.values = sum->value,
		.count = sum->room,
		.k = n->as.k,
		.index = n->at,
		.work = n->work,
	};

	k->topk_f32(s, &top);
	k->move_f32(s, sum, n->at, n->as.k, kept);
}

/* The tree's: gf_sparse_merge. */
static int merge(void *ctx, struct gf_gpu_stream *s, void *to, const void *from,
		 struct gf_error *err)
{
	struct gf_sparse_gpu *n = ctx;
	const struct gf_gpu_sparse a = set_of(to, n->as.k);
	const struct gf_gpu_sparse b = set_of((void *)(uintptr_t)from, n->as.k);
	/* the first one is what was sent */
	struct gf_gpu_sparse *sum = &n->lists[conserves(n) ? n->nused : 1];

	assert(n->nused < n->nlists);
	sum->room = a.room + b.room;
	n->c.gpu->kernels->merge_f32(s, &a, &b, sum, n->merge_work);
	keep_largest(n, s, sum, &a);
	n->nused += conserves(n);
	return n->c.gpu->ops->check(n->c.gpu, err);
}

/* The sum of all ranks' sets, in rank order, to the first one's place. */
static void add_up(struct gf_sparse_gpu *n, struct gf_gpu_stream *s)
{
	struct gf_gpu_sparse *sum = &n->lists[1], *next = &n->lists[2], *swap;
	const struct gf_gpu_sparse first = set_at(n, 0);

	sum->room = 0;
	for (int r = 0; r < n->c.ranks; r++) {
		const struct gf_gpu_sparse set = set_at(n, (size_t)r);

		next->room = sum->room + set.room;
		n->c.gpu->kernels->merge_f32(s, sum, &set, next, n->merge_work);
		swap = sum;
		sum = next;
		next = swap;
	}
	keep_largest(n, s, sum, &first);
}

static int choose(struct gf_sparse_gpu *n, struct gf_gpu_stream *s, struct gf_error *err)
{
	const struct gf_gpu *gpu = n->c.gpu;
	const struct gf_gpu_sparse own = set_at(n, gf_sparse_own_place(&n->as, n->c.rank));
	const struct gf_gpu_topk top = {
		.values = n->grads,
		.add = n->c.residual,
		.count = n->c.count_elems,
		.k = n->as.k,
		.index = own.index,
		.work = n->work,
	};

	gpu->kernels->topk_f32(s, &top);
	gpu->kernels->take_f32(s, own.value, n->grads, own.index, own.room);
	if (!puts_back(n))
		return 0;
	/* a set: its values follow its indices */
	n->lists[0] = set_of(n->lists[0].index, n->as.k);
	n->nused = 1;
	return gpu->ops->copy(n->c.gpu, s, n->lists[0].index, own.index,
			      gf_sparse_set_bytes(&n->as, n->as.k), GF_GPU_WITHIN, err);
}

int gf_sparse_gpu_prepare(struct gf_sparse_gpu *n, float *grads, size_t k, struct gf_gpu_stream *q,
			  struct gf_error *err)
{
	assert(k >= 1 && k <= n->c.most_k);
	n->grads = grads;
	n->as.k = k;
	n->form.size_bytes = set_bytes(n, k);
	n->nused = 0;
	return choose(n, q, err);
}

int gf_sparse_gpu_finish(struct gf_sparse_gpu *n, struct gf_gpu_stream *q, struct gf_error *err)
{
	if (!puts_back(n))
		return 0;
	if (gf_sparse_gathers(&n->as))
		add_up(n, q);
	/* what this rank sent in vain */
	n->c.gpu->kernels->leave_out(q, &n->lists[0],
				     &(struct gf_gpu_sparse){
					     .index = set_at(n, 0).index,
					     .value = set_at(n, 0).value,
					     .room = n->as.k,
				     });
	return n->c.gpu->ops->check(n->c.gpu, err);
}

void gf_sparse_gpu_look(const struct gf_sparse_gpu *n, struct gf_gpu_stream *s, uint32_t *flag)
{
	for (size_t r = 0; r < gf_sparse_common(&n->as); r++)
		n->c.gpu->kernels->nonfinite_f32(s, set_at(n, r).value, flag, n->as.k);
}

int gf_sparse_gpu_apply(struct gf_sparse_gpu *n, struct gf_gpu_stream *s, const uint32_t *skip,
			struct gf_error *err)
{
	const struct gf_gpu_ops *ops = n->c.gpu->ops;
	const struct gf_gpu_kernels *k = n->c.gpu->kernels;
	const size_t bytes = n->c.count_elems * sizeof(float);
	int rc = 0;

	/* lists may name an element more than once: one after the other */
	for (size_t i = 0; i < n->nused; i++)
		k->scatter_add_f32(s, n->grads, n->lists[i].value, n->lists[i].index,
				   n->lists[i].room);
	if (skip)
		k->copy_f32(s, skip, n->c.residual, n->grads, n->c.count_elems);
	else
		rc = ops->copy(n->c.gpu, s, n->c.residual, n->grads, bytes, GF_GPU_WITHIN, err);
	rc = rc ?: ops->zero(n->c.gpu, s, n->grads, bytes, err);
	/* in the order of ranks, as everywhere */
	for (size_t i = 0; i < gf_sparse_common(&n->as) && !rc; i++) {
		const struct gf_gpu_sparse set = set_at(n, i);

		k->scatter_add_f32(s, n->grads, set.value, set.index, set.room);
	}
	return rc ?: ops->check(n->c.gpu, err);
}
