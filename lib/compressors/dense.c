/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Every gradient goes out, as the plan's messages say, and comes back as the sum over ranks; scaled
 * ones as the mean, since a sum of many could overflow what goes on the wire. Its state is in the
 * pools alone. A split message's all-gather follows the step's other messages.
 *
 * With shards between GPUs a rank sees its own parts alone of the sums. The step's last message is
 * the verdict on them: a number that is added up over ranks, not finite if a part is not.
 */
#include "compressors/halves.h"

#if GF_PLAN_HALF

struct params {
	int none;
	char *extra; /* x- keys */
};

static const struct gf_field fields[] = {
	{NULL},
};

static const struct gf_record record = {
	GF_RECORD(struct params, fields),
};

static size_t wire(const void *params, const struct gf_wired *message, struct gf_wire *wires)
{
	(void)params;
	*wires = (struct gf_wire){GF_WIRE_REDUCE, message->count_elems, message->size_bytes, 1};
	return 1;
}

/* MANUAL
 * All gradients are sent. */
const struct gf_select_plan gf_select_plan_dense = {
	.name = "dense",
	.description = "all gradients",
	.place = 10,
	.source = "every data-parallel SGD",
	.traits = GF_SELECT_LOSSLESS | GF_SELECT_ADDS | GF_SELECT_HALVES | GF_SELECT_SERVERS |
		  GF_SELECT_SCALES,
	.record = &record,
	.wire = wire,
};

#else

#include "runtime/shard_list.h"

/* Enqueues the verdict on this rank's parts. */
static int judge(const struct gf_selector *s, size_t slot, struct gf_gpu_stream *q,
		 struct gf_error *err)
{
	const struct gf_gpu *gpu = s->env.place.gpu;
	const struct gf_pool *pool = &s->env.pools[slot];
	uint32_t *flag = s->slots[slot].step.flag;
	int rc = gf_select_clear_flag(s, slot, q, err);
	size_t i;

	rc = rc ? rc : gpu->ops->zero(s->env.place.gpu, q, s->priv, sizeof(float), err);
	for (i = 0; i < s->env.plan->nmessages && !rc; i++) {
		const struct gf_range own = gf_shards_part(pool->shards, i, s->env.rank);

		gpu->kernels->nonfinite_f32(q, pool->data + own.first, flag, own.count);
	}
	if (!rc)
		gpu->kernels->spoil_f32(q, flag, s->priv, 1);
	return rc;
}

static int prepare(void *ctx, size_t slot, size_t message, struct gf_gpu_stream *q,
		   struct gf_error *err)
{
	const struct gf_selector *s = ctx;
	const struct gf_work *w = &s->plan_work[slot][message];

	if (message == s->nplan_work)
		return judge(s, slot, q, err);
	return w->half == GF_COLL_ALL_GATHER ? 0 : gf_select_scale(s, slot, w, q, err);
}

static int finish(void *ctx, size_t slot, size_t message, struct gf_gpu_stream *q,
		  struct gf_error *err)
{
	const struct gf_selector *s = ctx;
	const struct gf_work *w = &s->plan_work[slot][message];
	struct gf_shards *shards = s->env.pools[slot].shards;
	size_t i;
	int rc;

	if (message == s->nplan_work)
		return 0;
	/* what shards gather is no gradient */
	if (w->half == (shards ? GF_COLL_ALL_GATHER : GF_COLL_REDUCE_SCATTER))
		return 0;
	rc = gf_select_unscale(s, slot, w, q, err);
	if (rc || q || !shards || !gf_shards_have(shards, GF_SHARD_GRADIENTS))
		return rc;
	i = (size_t)(w->how - s->env.plan->messages);
	gf_shards_give_back(shards, i, s->env.pools[slot].data, 0, SIZE_MAX);
	atomic_fetch_sub(&shards->grads_bytes, gf_shards_others_bytes(shards, i));
	return 0;
}

/* On the host, `inspect` looks. */
static int end(void *ctx, size_t slot, struct gf_gpu_stream *q, struct gf_error *err)
{
	const struct gf_selector *s = ctx;
	const struct gf_pool *pool = &s->env.pools[slot];
	int rc = gf_select_clear_flag(s, slot, q, err);

	if (!rc)
		s->env.place.gpu->kernels->nonfinite_f32(q, s->priv ? s->priv : pool->data,
							 s->slots[slot].step.flag,
							 s->priv ? 1 : pool->count_elems);
	return rc;
}

static int open_verdict(struct gf_selector *s, struct gf_error *err)
{
	const struct gf_gpu_ops *ops = s->env.place.gpu->ops;
	struct gf_work *list = gf_select_own_work(s, 0, s->nplan_work + 1);
	int rc = ops->alloc(s->env.place.gpu, sizeof(float), &s->priv, err);

	list[s->nplan_work] = (struct gf_work){
		.last = s->env.pools[0].ntensors - 1,
		.after = GF_AFTER_ALL,
		.at_end = true,
		.how = &gf_select_own_message,
		.data = s->priv,
		.count_elems = 1,
		.name = "verdict on gradients",
	};
	return rc;
}

static int open_dense(struct gf_selector *s, struct gf_error *err)
{
	const bool judges = s->env.place.gpu && s->env.pools[0].shards;

	if (!s->env.scaled && !judges) /* nothing to do on the way */
		s->hooks.prepare = NULL;
	if (!s->env.scaled && !s->env.pools[0].shards)
		s->hooks.finish = NULL;
	if (!s->env.place.gpu)
		s->hooks.end = NULL;
	return judges ? open_verdict(s, err) : 0;
}

static void close_dense(struct gf_selector *s)
{
	if (s->priv)
		s->env.place.gpu->ops->free(s->env.place.gpu, s->priv);
}

/* A sum with a bad term is bad: all ranks see the same. */
static struct gf_select_bad inspect(struct gf_selector *s, size_t slot)
{
	const struct gf_pool *pool = &s->env.pools[slot];

	return gf_select_find_bad(pool, pool->data, 0, pool->count_elems);
}

static const struct gf_select_ops ops = {
	.hooks = {.prepare = prepare, .finish = finish, .end = end},
	.open = open_dense,
	.close = close_dense,
	.inspect = inspect,
};

const struct gf_selection_entry gf_selection_dense = {
	.plan = &gf_select_plan_dense,
	.ops = &ops,
	.on_gpu = &ops,
};

#endif
