/* SPDX-License-Identifier: BSD-3-Clause */
#include "trainer/method_parts.h"

#include <string.h>

#include "base/heap.h"
#include "runtime/shard_list.h"
#include "trainer/optim/sgd.h"

/* --- on a GPU ---------------------------------------------------------------- */

/* --- the rules ------------------------------------------------------------ */

static struct gf_sgd_step step_of(const struct gf_train_update *u, double lr, float scale)
{
	const struct gf_optim_config *c = &u->host->config;

	return (struct gf_sgd_step){
		.lr = (float)lr,
		.momentum = (float)c->momentum,
		.weight_decay = (float)c->weight_decay,
		.scale = scale,
		.nesterov = u->host->ops->nesterov,
	};
}

static void step_sgd(struct gf_train_update *u, double lr, float scale,
		     const struct gf_gpu_gate *gate, const float *grads, float *params)
{
	for (size_t i = 0; i < u->nparts; i++) {
		const struct gf_train_part *r = &u->parts[i];
		struct gf_sgd_step o = step_of(u, lr, scale);

		if (r->excluded)
			o.weight_decay = 0;
		u->gpu->kernels->sgd_f32(u->stream, &o, gate, grads + r->first, params + r->first,
					 (float *)u->slots[0] + r->state, r->count_elems);
	}
}

static void step_lars(struct gf_train_update *u, double lr, float scale,
		      const struct gf_gpu_gate *gate, const float *grads, float *params)
{
	const struct gf_optim_config *c = &u->host->config;
	const bool inside = u->host->ops->rate_inside;
	const struct gf_gpu_lars o = {
		.step = step_of(u, inside ? 1 : lr, scale),
		.rate = inside ? lr : 1,
		.eta = c->eta,
		.epsilon = c->epsilon,
		.weight_decay = c->weight_decay,
		.work = u->work,
	};

	u->gpu->kernels->lars_f32(u->stream, &o, &u->tensors, gate, grads, params, u->slots[0]);
}

/* Offsets, pieces and exclusions of the tensors, in one piece of memory. */
static int open_lars(struct gf_train_update *u, struct gf_error *err)
{
	const struct gf_gpu_ops *ops = u->gpu->ops;
	const size_t n = u->host->nranges, words = 2 * (n + 1);
	const size_t size_bytes = words * sizeof(size_t) + n;
	size_t *table = gf_xcalloc(1, size_bytes), i;
	size_t *offsets = table, *pieces = table + n + 1;
	uint8_t *plain = (uint8_t *)(table + words);
	int rc;

	for (i = 0; i < n; i++) {
		const struct gf_optim_range *r = &u->host->ranges[i];

		offsets[i + 1] = offsets[i] + r->count_elems;
		pieces[i + 1] = pieces[i] + (r->count_elems + GF_GPU_PIECE - 1) / GF_GPU_PIECE;
		plain[i] = r->excluded;
	}
	u->tensors.count = n;
	u->tensors.npieces = pieces[n];
	rc = ops->alloc(u->gpu, size_bytes, &u->table, err);
	rc = rc ?: ops->alloc(u->gpu, u->gpu->kernels->lars_work_bytes(&u->tensors), &u->work, err);
	rc = rc ?: ops->copy(u->gpu, u->stream, u->table, table, size_bytes, GF_GPU_TO_DEVICE, err);
	rc = rc ?: ops->stream_sync(u->gpu, u->stream, err);
	u->tensors.offsets = u->table;
	u->tensors.pieces = (const size_t *)u->table + n + 1;
	u->tensors.plain = (const uint8_t *)((const size_t *)u->table + words);
	free(table);
	return rc;
}

static void step_adamw(struct gf_train_update *u, double lr, float scale,
		       const struct gf_gpu_gate *gate, const float *grads, float *params)
{
	const struct gf_optim_config *c = &u->host->config;
	const struct gf_adamw_rule rule = {
		.lr = lr,
		.beta1 = c->beta1,
		.beta2 = c->beta2,
		.weight_decay = c->weight_decay,
		.epsilon = c->epsilon,
	};
	const struct gf_gpu_kernels *k = u->gpu->kernels;

	k->adamw_begin(u->stream, &rule, scale, gate, u->steps, u->work);
	for (size_t i = 0; i < u->nparts; i++) {
		const struct gf_train_part *r = &u->parts[i];

		k->adamw_f32(u->stream, u->work, r->excluded, gate->skip, grads + r->first,
			     params + r->first, (float *)u->slots[0] + r->state,
			     (float *)u->slots[1] + r->state, r->count_elems);
	}
}

static int open_adamw(struct gf_train_update *u, struct gf_error *err)
{
	return u->gpu->ops->alloc(u->gpu, sizeof(struct gf_adamw_step), &u->work, err);
}

static const struct rule {
	bool pieces; /* also of some of a gradient */
	int (*open)(struct gf_train_update *u, struct gf_error *err);
	void (*step)(struct gf_train_update *u, double lr, float scale,
		     const struct gf_gpu_gate *gate, const float *grads, float *params);
} rules[] = {
	[GF_OPTIM_SGD] = {true, NULL, step_sgd},
	[GF_OPTIM_LARS] = {false, open_lars, step_lars},
	[GF_OPTIM_ADAMW] = {false, open_adamw, step_adamw},
};

/* NULL: the host computes it. */
static const struct rule *rule_of(const char *name)
{
	const struct gf_optimizer_ops *ops = gf_optimizer_find(name, NULL);

	return ops && ops->kernel != GF_OPTIM_NO_KERNEL ? &rules[ops->kernel] : NULL;
}

int gf_train_update_check(const struct gf_optim_config *c, bool pieces, struct gf_error *err)
{
	const struct rule *rule = rule_of(c->name);

	if (rule && (rule->pieces || !pieces))
		return 0;
	return gf_error_set(err, -ENOTSUP, "optimizer \"%s\" %sis not computed on GPUs", c->name,
			    rule ? "of some of the gradients " : "");
}

/* --- its memory ----------------------------------------------------------- */

static void add_part(void *ctx, const struct gf_optim_common *c)
{
	struct gf_train_update *u = ctx;
	const struct gf_train_part *last = u->nparts ? &u->parts[u->nparts - 1] : NULL;

	u->parts[u->nparts++] = (struct gf_train_part){
		c->first, c->count_elems, last ? last->state + last->count_elems : 0, c->excluded};
}

static void set_parts(struct gf_train_update *u, const struct gf_shards *shards, const float *any)
{
	const size_t n = shards ? shards->plan->nmessages : 1;
	GF_FREED struct gf_optim_piece *pieces = gf_xcalloc(n, sizeof(*pieces));
	struct gf_range own = gf_data(0, u->host->count_elems);
	size_t count = 0, i;

	for (i = 0; i < n; i++) {
		if (shards)
			own = gf_shards_part(shards, i, shards->rank);
		if (own.count)
			pieces[count++] = (struct gf_optim_piece){own.first, own.count, any};
	}
	u->parts = gf_xcalloc(u->host->nranges + count, sizeof(*u->parts));
	gf_optimizer_each_piece(u->host, pieces, count, add_part, u);
}

static size_t part_bytes(const struct gf_train_part *p)
{
	return p->count_elems * sizeof(float);
}

static int device_open(struct gf_train_update *u, struct gf_error *err)
{
	const struct gf_gpu_ops *ops = u->gpu->ops;
	const struct rule *rule = rule_of(u->host->ops->name);
	size_t size_bytes = 0, k;
	int rc = 0;

	for (k = 0; k < u->nparts; k++)
		size_bytes += part_bytes(&u->parts[k]);

	for (k = 0; u->host->ops->slots[k] && !rc; k++) {
		rc = ops->alloc(u->gpu, size_bytes, &u->slots[k], err);
		rc = rc ?: ops->zero(u->gpu, u->stream, u->slots[k], size_bytes, err);
	}
	if (!rc && u->host->ops->counts)
		rc = ops->alloc(u->gpu, sizeof(*u->steps), (void **)&u->steps, err);
	if (!rc && u->host->ops->counts)
		rc = ops->zero(u->gpu, u->stream, u->steps, sizeof(*u->steps), err);
	if (!rc && rule->open)
		rc = rule->open(u, err);
	if (!rc && u->host->config.clip_norm > 0) {
		rc = ops->alloc(u->gpu, u->gpu->kernels->clip_work_bytes(u->host->count_elems),
				&u->clip_work, err);
		rc = rc ?: ops->alloc(u->gpu, sizeof(float), &u->factor, err);
	}
	if (rc)
		gf_error_prefix(err, "optimizer");
	return rc;
}

static void device_close(struct gf_train_update *u)
{
	if (!u->gpu)
		return;
	for (size_t k = 0; k < GF_OPTIM_SLOTS; k++)
		u->gpu->ops->free(u->gpu, u->slots[k]);
	u->gpu->ops->free(u->gpu, u->steps);
	u->gpu->ops->free(u->gpu, u->table);
	u->gpu->ops->free(u->gpu, u->work);
	u->gpu->ops->free(u->gpu, u->clip_work);
	u->gpu->ops->free(u->gpu, u->factor);
	free(u->parts);
	memset(u, 0, sizeof(*u));
}

/* Enqueues an update. Nothing changes if *skip, a word on the device, is not 0.
 */
static void device_step(struct gf_train_update *u, double lr, float scale, const uint32_t *skip,
			const float *grads, float *params)
{
	const struct gf_gpu_clip clip = {
		.scale = scale,
		.norm = u->host->config.clip_norm,
		.work = u->clip_work,
	};
	/* without clipping there is no factor, and the step's scale holds */
	const struct gf_gpu_gate gate = {skip, u->factor};

	if (u->factor)
		u->gpu->kernels->clip_f32(u->stream, &clip, grads, u->host->count_elems, u->factor);
	rule_of(u->host->ops->name)->step(u, lr, scale, &gate, grads, params);
}

/* --- of some of a gradient ------------------------------------------------ */

struct pieces {
	struct gf_train_update *u;
	double lr;
	float scale;
	struct gf_gpu_gate gate;
	float *params;
};

static void step_piece(void *ctx, const struct gf_optim_common *c)
{
	const struct pieces *p = ctx;
	const struct gf_optim_config *config = &p->u->host->config;
	const struct gf_sgd folded = gf_sgd_folded(&(struct gf_sgd){
		.lr = p->lr,
		.weight_decay = c->excluded ? 0 : config->weight_decay,
	});
	const struct gf_sgd_step o = {
		.lr = (float)folded.lr,
		.momentum = (float)config->momentum,
		.weight_decay = (float)folded.weight_decay,
		.scale = (float)p->lr * p->scale,
		.nesterov = p->u->host->ops->nesterov,
	};

	p->u->gpu->kernels->sgd_f32(p->u->stream, &o, &p->gate, c->grad, p->params + c->first,
				    (float *)p->u->slots[0] + c->first, c->count_elems);
}

/* As gf_optimizer_step_pieces; the pieces' gradients lie one after the other, on the device, with
 * zeros between them if with anything. Clipping adds its norm up over all of them. skip: as above,
 * or NULL. */
static void device_pieces(struct gf_train_update *u, double lr, float scale, const uint32_t *skip,
			  const struct gf_optim_piece *pieces, size_t npieces, float *params)
{
	struct pieces p = {.u = u, .lr = lr, .scale = scale, .gate.skip = skip, .params = params};
	const struct gf_gpu_clip clip = {
		.scale = (float)lr * scale, /* which the factor stands for */
		.norm = lr * u->host->config.clip_norm,
		.work = u->clip_work,
	};
	const struct gf_optim_piece *last = pieces + npieces;

	if (u->factor && npieces) {
		last--;
		u->gpu->kernels->clip_f32(u->stream, &clip, pieces->grad,
					  (size_t)(last->grad - pieces->grad) + last->count_elems,
					  u->factor);
		p.gate.scale = u->factor;
	}
	gf_optimizer_each_piece(u->host, pieces, npieces, step_piece, &p);
}

/* --- checkpoints ---------------------------------------------------------- */

static int copy(struct gf_train_update *u, enum gf_gpu_copy kind, struct gf_error *err)
{
	const struct gf_gpu_ops *ops = u->gpu->ops;
	bool up = kind == GF_GPU_TO_DEVICE;
	uint64_t *own = &u->host->steps;
	int rc = 0;

	if (u->steps)
		rc = ops->copy(u->gpu, u->stream, up ? u->steps : own, up ? own : u->steps,
			       sizeof(*own), kind, err);

	for (size_t k = 0; u->host->ops->slots[k]; k++)
		for (size_t i = 0; i < u->nparts && !rc; i++) {
			const struct gf_train_part *p = &u->parts[i];
			float *there = (float *)u->slots[k] + p->state;
			float *here = u->host->slot[k] + p->first;

			rc = ops->copy(u->gpu, u->stream, up ? there : here, up ? here : there,
				       part_bytes(p), kind, err);
		}
	return rc ?: ops->stream_sync(u->gpu, u->stream, err);
}

/* Whether it keeps an optimiser's velocity, or moves some elements of it, and serves no optimiser
 * without one. */
static bool wants_velocity(const struct gf_selection *s)
{
	return (gf_selection_has(s, GF_SELECT_PIECES) || gf_selection_has(s, GF_SELECT_MOMENTUM)) &&
	       !gf_selection_has(s, GF_SELECT_BARE);
}

static int check_selection(const struct gf_update *u, struct gf_error *err)
{
	const struct gf_selection *s = &u->plan->selection;

	if (u->optimizer.ops->velocity || !wants_velocity(s))
		return 0;
	return gf_error_set(err, -EINVAL,
			    "optimizer \"%s\": selection \"%s\" corrects momentum, and wants an "
			    "optimizer that has it",
			    u->optimizer.ops->name, gf_selection_name(s));
}

int gf_update_open(struct gf_update *u, const struct gf_optim_config *config,
		   const struct gf_place *place, struct gf_error *err)
{
	const struct gf_model_profile *model = u->plan->model;
	size_t n = model->ntensors, i;
	GF_FREED struct gf_optim_tensor *tensors = NULL;
	int rc;

	memset(&u->optimizer, 0, sizeof(u->optimizer));
	if (!u->params)
		return 0;
	tensors = gf_xcalloc(n + 1, sizeof(*tensors));
	for (i = 0; i < n; i++)
		tensors[i] = (struct gf_optim_tensor){
			.name = model->tensors[i].name,
			.rank = u->shapes[i].rank,
			.count_elems = model->tensors[i].count_elems,
		};
	rc = gf_optimizer_init(&u->optimizer, config, tensors, n, err);
	rc = rc ?: check_selection(u, err);
	u->optimizer.watch = u->watch;
	if (rc || !place->nccl)
		return rc;
	u->device_params = place->params;
	u->device = (struct gf_train_update){
		.gpu = place->gpu, .stream = place->stream, .host = &u->optimizer};
	set_parts(&u->device, u->shards, u->params);
	return device_open(&u->device, err);
}

int gf_update_copy(struct gf_update *u, enum gf_gpu_copy kind, struct gf_error *err)
{
	const struct gf_train_update *d = &u->device;
	const bool up = kind == GF_GPU_TO_DEVICE;
	int rc;

	if (!d->gpu)
		return 0;
	rc = d->gpu->ops->copy(d->gpu, d->stream, up ? u->device_params : u->params,
			       up ? u->params : u->device_params,
			       u->optimizer.count_elems * sizeof(float), kind, err);
	return rc ?: d->gpu->ops->stream_sync(d->gpu, d->stream, err);
}

int gf_update_fetch(struct gf_update *u, struct gf_error *err)
{
	int rc = gf_update_copy(u, GF_GPU_TO_HOST, err);

	return rc || !u->device.gpu ? rc : copy(&u->device, GF_GPU_TO_HOST, err);
}

int gf_update_send(struct gf_update *u, struct gf_error *err)
{
	return u->device.gpu ? copy(&u->device, GF_GPU_TO_DEVICE, err) : 0;
}

void gf_update_close(struct gf_update *u)
{
	device_close(&u->device);
	gf_optimizer_release(&u->optimizer);
}

void gf_update_state(struct gf_update *u, struct gf_state *s)
{
	const struct gf_model_profile *model = u->plan->model;
	struct gf_optimizer *o = &u->optimizer;

	for (size_t k = 0; o->ops->slots[k]; k++)
		for (size_t i = 0; i < model->ntensors; i++)
			gf_state_add(s, GF_STATE_SHARED,
				     gf_xasprintf("optim.%s.%s", model->tensors[i].name,
						  o->ops->slots[k]),
				     &u->shapes[i], o->slot[k] + u->offsets[i]);
	if (o->ops->counts)
		gf_state_add_words(s, GF_STATE_SHARED, "optim.steps", "U64", &o->steps, 1);
}

void gf_update_sums(struct gf_update *u, double lr, const struct gf_select_sums *sums, bool pieces,
		    const uint32_t *skip)
{
	const struct gf_optim_piece *p = sums->pieces;

	if (u->device.gpu && pieces)
		device_pieces(&u->device, lr, sums->share, skip, p, sums->npieces,
			      u->device_params);
	else if (u->device.gpu)
		device_step(&u->device, lr, sums->share, skip, p->grad, u->device_params);
	else if (pieces)
		gf_optimizer_step_pieces(&u->optimizer, lr, sums->share, p, sums->npieces,
					 u->params);
	else
		gf_optimizer_step(&u->optimizer, lr, sums->share, p->grad, u->params);
}
