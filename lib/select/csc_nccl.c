/* SPDX-License-Identifier: BSD-3-Clause */
#include "select/csc_nccl.h"

#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/heap.h"
#include "select/csc.h"

/* What the host and the device tell each other of a step, in pinned memory. */
struct told {
	uint32_t *chosen; /* as the step's */
	uint32_t *next;   /* nnext chunks, ascending, from the device */
	uint8_t *sent;    /* per chunk, 1: it goes */
	size_t nnext;
};

struct gf_csc_nccl {
	struct gf_csc_nccl_config k;
	struct gf_csc_step *steps; /* depth */
	struct told *told;         /* likewise */
	double *scale;             /* likewise; 0: none */
	void *host;
	/* The device's; `packed` of all slots, the others of the step that is
	 * taken: a step's end comes before the next one's first take. */
	void *history, *packed;
	void *norms, *sums;  /* of chunks; of packed ones, when they are sums */
	void *chosen, *sent; /* as told */
	void *shared, *next, *work;
	/* of the step begun last */
	size_t slot;
	size_t taken_tensors, taken_chunks, taken_packs;
	bool listed;
	struct gf_work *sizes; /* of gf_csc_nccl_sizes */
	size_t nsizes, sizes_capacity;
};

static size_t count_elems(const struct gf_csc_nccl *c)
{
	return c->k.csc->layout->count_elems;
}

static float *grads(const struct gf_csc_nccl *c, size_t slot)
{
	return c->k.grads + slot * c->k.stride_elems;
}

static float *packed(const struct gf_csc_nccl *c, size_t slot)
{
	return (float *)c->packed + slot * c->k.stride_elems;
}

/* --- memory --------------------------------------------------------------- */

static int open_told(struct gf_csc_nccl *c, struct gf_error *err)
{
	const size_t n = c->k.csc->nchunks, all = n * c->k.depth;
	uint32_t *words;
	size_t i;
	int rc = c->k.gpu->ops->host_alloc(
		c->k.gpu, all * (2 * sizeof(*words) + 1), &c->host, err);

	words = c->host;
	for (i = 0; i < c->k.depth && !rc; i++)
		c->told[i] = (struct told){
			.chosen = words + i * n,
			.next = words + all + i * n,
			.sent = (uint8_t *)(words + 2 * all) + i * n,
		};
	return rc;
}

static int allocate(struct gf_csc_nccl *c, struct gf_error *err)
{
	const struct gf_gpu_ops *ops = c->k.gpu->ops;
	const size_t n = c->k.csc->nchunks;
	const struct {
		void **p;
		size_t size_bytes;
	} wanted[] = {
		{&c->history, count_elems(c) * sizeof(float)},
		{&c->packed, c->k.depth * c->k.stride_elems * sizeof(float)},
		{&c->norms, n * sizeof(double)},
		{&c->sums, n * sizeof(double)},
		{&c->chosen, n * sizeof(uint32_t)},
		{&c->next, n * sizeof(uint32_t)},
		{&c->sent, n},
		{&c->shared, gf_csc_shared_elems(c->k.csc) * sizeof(float)},
		{&c->work, c->k.gpu->kernels->topk_work_bytes(n)},
	};
	size_t i;
	int rc = open_told(c, err);

	for (i = 0; i < sizeof(wanted) / sizeof(wanted[0]) && !rc; i++)
		rc = ops->alloc(c->k.gpu, wanted[i].size_bytes, wanted[i].p,
				err);
	for (i = 0; i < c->k.depth && !rc; i++) {
		rc = gf_csc_step_init(&c->steps[i], c->k.csc, NULL, err);
		c->steps[i].list = gf_xcalloc(n + c->k.nmessages + 1,
					      sizeof(*c->steps[i].list));
		c->steps[i].data = c->steps[i].packed;
	}
	rc = rc ? rc
		: ops->zero(c->k.gpu, c->k.compute, c->history,
			    count_elems(c) * sizeof(float), err);
	return rc ? rc : ops->stream_sync(c->k.gpu, c->k.compute, err);
}

int gf_csc_nccl_new(const struct gf_csc_nccl_config *config,
		    struct gf_csc_nccl **made, struct gf_error *err)
{
	struct gf_csc_nccl *c = gf_xcalloc(1, sizeof(*c));
	int rc;

	c->k = *config;
	c->steps = gf_xcalloc(config->depth, sizeof(*c->steps));
	c->told = gf_xcalloc(config->depth, sizeof(*c->told));
	c->scale = gf_xcalloc(config->depth, sizeof(*c->scale));
	rc = allocate(c, err);
	if (rc) {
		gf_error_prefix(err, "selection");
		gf_csc_nccl_free(c);
		return rc;
	}
	*made = c;
	return 0;
}

void gf_csc_nccl_free(struct gf_csc_nccl *c)
{
	const struct gf_gpu_ops *ops;
	size_t i;

	if (!c)
		return;
	ops = c->k.gpu->ops;
	ops->host_free(c->k.gpu, c->host);
	ops->free(c->k.gpu, c->history);
	ops->free(c->k.gpu, c->packed);
	ops->free(c->k.gpu, c->norms);
	ops->free(c->k.gpu, c->sums);
	ops->free(c->k.gpu, c->chosen);
	ops->free(c->k.gpu, c->next);
	ops->free(c->k.gpu, c->sent);
	ops->free(c->k.gpu, c->shared);
	ops->free(c->k.gpu, c->work);
	for (i = 0; i < c->k.depth; i++)
		gf_csc_step_release(&c->steps[i]);
	free(c->steps);
	free(c->told);
	free(c->sizes);
	free(c->scale);
	free(c);
}

/* --- a step --------------------------------------------------------------- */

/* The place on the device of a message that is cut from the step's `packed`. */
static float *place(const struct gf_csc_nccl *c, const struct gf_work *w)
{
	return packed(c, c->slot) +
	       ((const float *)w->data - c->steps[c->slot].packed);
}

/* The plan's messages, or the packed ones; then the norms. */
static void make_list(struct gf_csc_nccl *c, const struct gf_plan *plan)
{
	struct gf_csc_step *s = &c->steps[c->slot];
	struct gf_pool pool = *c->k.csc->layout;

	s->nlist = s->dense ? plan->nmessages : s->nwork;
	pool.data = grads(c, c->slot);
	if (s->dense)
		gf_work_of_plan(plan, &pool, s->list);
	else
		memcpy(s->list, s->work, s->nwork * sizeof(*s->list));
	for (size_t i = 0; i < s->nlist && !s->dense; i++)
		s->list[i].data = place(c, &s->work[i]);
	s->list[s->nlist++] = (struct gf_work){
		.last = pool.ntensors - 1,
		.after = GF_AFTER_ALL,
		.at_end = true,
		.how = &gf_csc_norms_how,
		.data = c->shared,
		.count_elems = gf_csc_shared_elems(c->k.csc),
		.name = "norms of chunks",
	};
}

void gf_csc_nccl_begin(struct gf_csc_nccl *c, size_t slot, size_t number,
		       double scale, const struct gf_plan *plan,
		       const struct gf_work **list, size_t *n)
{
	struct gf_csc_step *s;
	struct told *told;
	size_t i;

	c->slot = slot;
	c->taken_tensors = c->taken_chunks = c->taken_packs = 0;
	c->listed = false;
	c->scale[c->slot] = scale;
	s = &c->steps[c->slot];
	told = &c->told[c->slot];
	gf_csc_begin(s, plan, number);
	memcpy(told->chosen, s->chosen, s->nchosen * sizeof(*told->chosen));
	memset(told->sent, 0, c->k.csc->nchunks);
	for (i = 0; i < s->nchosen; i++)
		told->sent[s->chosen[i]] = 1;
	make_list(c, plan);
	*list = s->list;
	*n = s->nlist;
}

static int send_lists(struct gf_csc_nccl *c, struct gf_gpu_stream *q,
		      struct gf_error *err)
{
	const struct gf_gpu_ops *ops = c->k.gpu->ops;
	const struct told *told = &c->told[c->slot];
	int rc;

	if (c->listed)
		return 0;
	c->listed = true;
	rc = ops->copy(c->k.gpu, q, c->sent, told->sent, c->k.csc->nchunks,
		       GF_GPU_TO_DEVICE, err);
	return rc ? rc
		  : ops->copy(c->k.gpu, q, c->chosen, told->chosen,
			      c->steps[c->slot].nchosen * sizeof(uint32_t),
			      GF_GPU_TO_DEVICE, err);
}

/* All of it goes. */
static void take_dense(struct gf_csc_nccl *c, size_t ntensors,
		       struct gf_gpu_stream *q)
{
	const size_t *offsets = c->k.csc->layout->offsets;
	const size_t first = offsets[c->taken_tensors];

	c->k.gpu->kernels->add_f32(q, grads(c, c->slot) + first,
				   (float *)c->history + first,
				   offsets[ntensors] - first);
}

/* Those that go are measured when they are sums, too: one pass over neighbours
 * costs less than many over what lies between. */
static void measure(struct gf_csc_nccl *c, size_t ntensors,
		    struct gf_gpu_stream *q)
{
	const struct gf_csc *csc = c->k.csc;
	const size_t first = c->taken_chunks;
	size_t end = first, at, n;

	while (end < csc->nchunks &&
	       gf_csc_chunk_last_tensor(csc, end) < ntensors)
		end++;
	c->taken_chunks = end;
	if (end == first)
		return;
	at = gf_csc_chunk_first(csc, first);
	n = gf_csc_chunk_first(csc, end - 1) +
	    gf_csc_chunk_count(csc, end - 1) - at;
	c->k.gpu->kernels->chunk_norms_f32(
		q, grads(c, c->slot) + at, (float *)c->history + at, n,
		csc->chunk_elems, (double *)c->norms + first);
}

static void gather(struct gf_csc_nccl *c, size_t ntensors,
		   struct gf_gpu_stream *q)
{
	const struct gf_csc_step *s = &c->steps[c->slot];
	size_t i = c->taken_packs;

	for (; i < s->nwork && s->work[i].last < ntensors; i++)
		c->k.gpu->kernels->gather_chunks_f32(
			q, place(c, &s->work[i]), grads(c, c->slot),
			count_elems(c), c->k.csc->chunk_elems,
			(uint32_t *)c->chosen + s->first_chosen[i],
			s->first_chosen[i + 1] - s->first_chosen[i]);
	c->taken_packs = i;
}

/* On q, after the gradients of the first so many tensors: chunks that they
 * complete take up their history and are measured; those that a packed message
 * of theirs has are packed. */
static int take(struct gf_csc_nccl *c, size_t ntensors, struct gf_gpu_stream *q,
		struct gf_error *err)
{
	int rc = send_lists(c, q, err);

	if (rc)
		return rc;
	if (c->steps[c->slot].dense) {
		take_dense(c, ntensors, q);
	} else {
		measure(c, ntensors, q);
		gather(c, ntensors, q);
	}
	c->taken_tensors = ntensors;
	return c->k.gpu->ops->check(c->k.gpu, err);
}

static int share(struct gf_csc_nccl *c, struct gf_gpu_stream *q,
		 struct gf_error *err)
{
	const struct gf_csc *csc = c->k.csc;
	const struct gf_csc_step *step = &c->steps[c->slot];
	const size_t nmarks = gf_csc_shared_elems(csc) - csc->nchunks;
	float *marks = (float *)c->shared + csc->nchunks;
	const struct gf_gpu_norms o = {
		.shared = c->shared,
		.bad = marks + (size_t)c->k.rank * (nmarks / csc->ranks),
		.left = c->norms,
		.sent = c->sent,
		.count = csc->nchunks,
		.sums = c->sums,
		.chosen = c->chosen,
		.nchosen = step->nchosen,
		/* a sum is every rank's: they share its norm */
		.part = csc->means ? 1 : 1.0 / csc->ranks,
	};
	int rc = c->k.gpu->ops->zero(c->k.gpu, q, marks,
				     nmarks * sizeof(*marks), err);

	if (rc)
		return rc;
	if (step->dense)
		c->k.gpu->kernels->chunk_norms_f32(q, grads(c, c->slot), NULL,
						   count_elems(c),
						   csc->chunk_elems, c->sums);
	c->k.gpu->kernels->share_norms(q, &o);
	return c->k.gpu->ops->check(c->k.gpu, err);
}

static bool is_norms(const struct gf_csc_nccl *c, size_t message)
{
	return message + 1 == c->steps[c->slot].nlist;
}

static void multiply(struct gf_csc_nccl *c, const struct gf_work *w,
		     struct gf_gpu_stream *q, double by)
{
	c->k.gpu->kernels->axpby_f32(q, (float)by, w->data, 0, w->data,
				     w->count_elems);
}

int gf_csc_nccl_prepare(struct gf_csc_nccl *c, size_t message,
			struct gf_gpu_stream *q, struct gf_error *err)
{
	const struct gf_work *w = &c->steps[c->slot].list[message];
	int rc = take(c, w->last + 1, q, err);

	if (rc)
		return rc;
	if (is_norms(c, message))
		return share(c, q, err);
	if (c->scale[c->slot] > 0)
		multiply(c, w, q, c->scale[c->slot] / c->k.csc->ranks);
	return c->k.gpu->ops->check(c->k.gpu, err);
}

int gf_csc_nccl_finish(struct gf_csc_nccl *c, size_t message,
		       struct gf_gpu_stream *q, struct gf_error *err)
{
	const struct gf_csc_step *s = &c->steps[c->slot];
	const struct gf_work *w = &s->list[message];

	if (is_norms(c, message))
		return 0;
	if (c->scale[c->slot] > 0)
		multiply(c, w, q, 1 / c->scale[c->slot]);
	if (!s->dense)
		c->k.gpu->kernels->chunk_norms_f32(
			q, w->data, NULL, w->count_elems, c->k.csc->chunk_elems,
			(double *)c->sums + s->first_chosen[message]);
	return c->k.gpu->ops->check(c->k.gpu, err);
}

int gf_csc_nccl_end(struct gf_csc_nccl *c, size_t slot, struct gf_gpu_stream *s,
		    uint32_t *flag, struct gf_error *err)
{
	const struct gf_gpu_kernels *k = c->k.gpu->kernels;
	const struct gf_csc *csc = c->k.csc;
	const size_t n = csc->nchunks;
	struct told *told = &c->told[slot];
	const struct gf_gpu_topk top = {
		.values = c->shared,
		.count = n,
		.k = gf_csc_kept(csc->params, n, c->steps[slot].number + 1),
		.index = c->next,
		.work = c->work,
	};

	/* marks of ranks, not norms: these may be infinite in f32 */
	k->nonfinite_f32(s, (float *)c->shared + n, flag,
			 gf_csc_shared_elems(csc) - n);
	k->keep_chunks_f32(s, flag, c->history, grads(c, slot), count_elems(c),
			   csc->chunk_elems, c->sent, csc->decay);
	k->topk_f32(s, &top);
	told->nnext = top.k;
	return c->k.gpu->ops->copy(c->k.gpu, s, told->next, c->next,
				   top.k * sizeof(uint32_t), GF_GPU_TO_HOST,
				   err);
}

/* --- sizes to come -------------------------------------------------------- */

/* So many chunks in one of the plan's messages, and where the pool's short one
 * is the last of them. */
static void expect_packs(struct gf_csc_nccl *c, const struct gf_message *how,
			 size_t nchunks)
{
	const struct gf_csc *csc = c->k.csc;
	const size_t whole = nchunks * csc->chunk_elems;
	const size_t short_by =
		csc->chunk_elems - gf_csc_chunk_count(csc, csc->nchunks - 1);
	struct gf_work *w;

	if (!nchunks)
		return;
	w = gf_array_push(&c->sizes, &c->nsizes, &c->sizes_capacity);
	*w = (struct gf_work){.how = how, .count_elems = whole};
	if (!short_by || whole == short_by)
		return;
	w = gf_array_push(&c->sizes, &c->nsizes, &c->sizes_capacity);
	*w = (struct gf_work){.how = how, .count_elems = whole - short_by};
}

/* A message closes when more than the threshold waits (gf_csc_begin): all but
 * the last of a step have as many chunks. */
static void expect_count(struct gf_csc_nccl *c, const struct gf_plan *plan,
			 size_t nchunks)
{
	const size_t most = plan->threshold_bytes /
				    (c->k.csc->chunk_elems * sizeof(float)) +
			    1;
	size_t i;

	if (nchunks == c->k.csc->nchunks) /* the plan's own messages */
		return;
	for (i = 0; i < plan->nmessages; i++) {
		if (nchunks >= most)
			expect_packs(c, &plan->messages[i], most);
		expect_packs(c, &plan->messages[i], nchunks % most);
	}
}

/* Of every step of the ramp; one of more steps than chunks passes every count,
 * and may have any number of steps. */
static void expect_ramp(struct gf_csc_nccl *c, const struct gf_plan *plan)
{
	const struct gf_csc_params *s = c->k.csc->params;
	const size_t n = c->k.csc->nchunks;
	const bool every = s->warmup_steps >= n;
	const size_t steps = every ? n - gf_csc_kept(s, n, s->warmup_steps + 1)
				   : s->warmup_steps + 1;
	size_t step, kept, before = n;

	for (step = 1; step <= steps; step++) {
		kept = every ? n - step : gf_csc_kept(s, n, step);
		if (kept != before)
			expect_count(c, plan, kept);
		before = kept;
	}
	*(struct gf_work *)gf_array_push(&c->sizes, &c->nsizes,
					 &c->sizes_capacity) =
		(struct gf_work){.how = &gf_csc_norms_how,
				 .count_elems = gf_csc_shared_elems(c->k.csc)};
}

const struct gf_work *gf_csc_nccl_sizes(struct gf_csc_nccl *c,
					const struct gf_plan *plan,
					const uint64_t *chosen, size_t *n)
{
	size_t count = 0, i;

	c->nsizes = 0;
	for (i = 0; chosen && i < c->k.csc->nchunks; i++)
		count += chosen[i] != 0;
	if (chosen)
		expect_count(c, plan, count);
	else
		expect_ramp(c, plan);
	*n = c->nsizes;
	return c->sizes;
}

/* --- after a step --------------------------------------------------------- */

/* Per chunk: does it go next? */
static void mark_next(const struct gf_csc_nccl *c, size_t slot, uint64_t *marks)
{
	const struct told *told = &c->told[slot];
	size_t i;

	memset(marks, 0, c->k.csc->nchunks * sizeof(*marks));
	for (i = 0; i < told->nnext; i++)
		marks[told->next[i]] = 1;
}

void gf_csc_nccl_adopt(struct gf_csc_nccl *c, size_t slot)
{
	mark_next(c, slot, c->k.csc->important);
}

const struct gf_csc_step *gf_csc_nccl_step(const struct gf_csc_nccl *c,
					   size_t slot)
{
	return &c->steps[slot];
}

const float *gf_csc_nccl_sums(const struct gf_csc_nccl *c, size_t slot)
{
	return c->steps[slot].dense ? grads(c, slot) : packed(c, slot);
}

/* --- checkpoints ---------------------------------------------------------- */

static int copy(struct gf_csc_nccl *c, void *to, const void *from,
		enum gf_gpu_copy kind, struct gf_error *err)
{
	const struct gf_gpu_ops *ops = c->k.gpu->ops;
	int rc = ops->copy(c->k.gpu, c->k.compute, to, from,
			   count_elems(c) * sizeof(float), kind, err);

	return rc ? rc : ops->stream_sync(c->k.gpu, c->k.compute, err);
}

int gf_csc_nccl_fetch(struct gf_csc_nccl *c, struct gf_error *err)
{
	return copy(c, c->k.csc->history, c->history, GF_GPU_TO_HOST, err);
}

int gf_csc_nccl_send(struct gf_csc_nccl *c, struct gf_error *err)
{
	return copy(c, c->history, c->k.csc->history, GF_GPU_TO_DEVICE, err);
}

int gf_csc_nccl_keep(struct gf_csc_nccl *c, size_t slot, size_t age, bool bad,
		     float *values, struct gf_error *err)
{
	struct gf_csc_step *s = &c->steps[slot];
	int rc = copy(c, s->packed, gf_csc_nccl_sums(c, slot), GF_GPU_TO_HOST,
		      err);

	s->bad = bad;
	mark_next(c, slot, s->next);
	gf_csc_keep(s, age, values);
	return rc;
}

int gf_csc_nccl_restore(struct gf_csc_nccl *c, size_t slot, size_t age,
			const float *values, struct gf_error *err)
{
	struct gf_csc_step *s = &c->steps[slot];
	struct told *told = &c->told[slot];
	size_t i;

	gf_csc_restore(s, age, values);
	told->nnext = 0;
	for (i = 0; i < c->k.csc->nchunks; i++)
		if (s->next[i])
			told->next[told->nnext++] = (uint32_t)i;
	return copy(c, (float *)(uintptr_t)gf_csc_nccl_sums(c, slot), s->packed,
		    GF_GPU_TO_DEVICE, err);
}
