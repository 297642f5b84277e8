/* SPDX-License-Identifier: BSD-3-Clause */
#include "nn/onednn.h"

#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>

#include "base/array.h"
#include "base/heap.h"

/* --- a program ------------------------------------------------------------ */

static const struct gf_onednn_layer *const layers[] = {
	[GF_LAYER_CONV] = &gf_onednn_conv,
	[GF_LAYER_BATCHNORM] = &gf_onednn_batchnorm,
	[GF_LAYER_RELU] = &gf_onednn_eltwise,
	[GF_LAYER_MAXPOOL] = &gf_onednn_maxpool,
	[GF_LAYER_AVGPOOL] = &gf_onednn_avgpool,
	[GF_LAYER_GLOBALPOOL] = &gf_onednn_globalpool,
	[GF_LAYER_FC] = &gf_onednn_fc,
	[GF_LAYER_ADD] = &gf_onednn_add,
	[GF_LAYER_CONCAT] = &gf_onednn_plain_ops,
	[GF_LAYER_DROPOUT] = &gf_onednn_plain_ops,
	[GF_LAYER_LAYERNORM] = &gf_onednn_layernorm,
	[GF_LAYER_GELU] = &gf_onednn_eltwise,
	[GF_LAYER_TANH] = &gf_onednn_eltwise,
	[GF_LAYER_EMBEDDING] = &gf_onednn_plain_ops,
	[GF_LAYER_ATTENTION] = &gf_onednn_plain_ops,
	[GF_LAYER_SELECT] = &gf_onednn_plain_ops,
	[GF_LAYER_LSTM] = &gf_onednn_plain_ops,
};

static void report(struct gf_onednn *p, size_t l)
{
	gf_net_emit(p->net, l, p->on_grad, p->ctx);
}

void gf_onednn_report(struct gf_onednn *p, size_t l)
{
	gf_onednn_add_call(p, &p->backward, report, l);
}

static void zero_gradients(struct gf_onednn *p, size_t l)
{
	gf_net_zero_gradients(p->net, p->grads, l);
}

static void need(struct gf_onednn *p, size_t l)
{
	gf_net_need(p->net, l);
}

static void build_forward(struct gf_onednn *p)
{
	const struct gf_model *m = p->net->model;
	const struct gf_onednn_value *last;
	const_dnnl_memory_desc_t plain;

	p->input.md = gf_onednn_samples(p, &m->input);
	p->input.data = gf_onednn_bound(p, p->input.md, GF_ONEDNN_INPUT, 0);
	for (size_t l = 0; l < m->nlayers && !p->rc; l++) {
		p->layer = l;
		if (!p->net->on_path[l] || p->fused[l])
			continue;
		if (gf_layer_uses(&m->layers[l]))
			gf_onednn_add_call(p, &p->forward, need, l);
		layers[m->layers[l].type]->forward(p, l);
	}
	if (p->rc)
		return;
	last = p->values[m->nlayers - 1];
	plain = gf_onednn_plain_of(p, last->md);
	if (!gf_onednn_same(plain, last->md))
		gf_onednn_reorder(p, &p->forward, last->data,
				  gf_onednn_memory(p, plain, p->net->logits));
}

static void build_backward(struct gf_onednn *p)
{
	const struct gf_model *m = p->net->model;
	struct gf_onednn_value *last = p->values[m->nlayers - 1];
	dnnl_memory_t dlogits;

	p->makes_backward = true;
	dlogits = gf_onednn_memory(p, gf_onednn_plain_of(p, last->md), p->net->dlogits);
	last->gradient = gf_onednn_as(p, &p->backward, dlogits, last->md);
	for (size_t l = m->nlayers; l-- > 0 && !p->rc;) {
		p->layer = l;
		if (p->fused[l])
			continue;
		if (gf_layer_uses(&m->layers[l]))
			gf_onednn_add_call(p, &p->backward, need, l);
		if (p->net->has_gradient[l]) {
			layers[m->layers[l].type]->backward(p, l);
		} else if (m->layers[l].nparams && !m->layers[l].frozen) {
			gf_onednn_add_call(p, &p->backward, zero_gradients, l);
			gf_onednn_report(p, l);
		}
	}
}

/* Primitives run one after another, so they take turns in one scratchpad. */
static void share_scratchpad(struct gf_onednn *p)
{
	if (p->rc || p->scratchpad_bytes == 0)
		return;
	if (posix_memalign(&p->scratchpad, 64, p->scratchpad_bytes)) {
		p->rc = -ENOMEM;
		gf_error_errno(p->err, p->rc, "scratchpad of %zu bytes", p->scratchpad_bytes);
		return;
	}
	for (size_t i = 0; i < p->nscratchpads; i++)
		dnnl_memory_set_data_handle(p->scratchpads[i], p->scratchpad);
}

static void add_up_memory(struct gf_onednn *p)
{
	struct gf_net *net = p->net;

	p->memory.workspace_bytes = p->scratchpad_bytes;
	for (size_t l = 0; l < net->model->nlayers; l++) {
		gf_net_memory_add(&p->memory, &p->layer_memory[l], false);
		if (p->training && p->batch == net->max_batch)
			net->layer_memory[l] = p->layer_memory[l];
	}
	gf_net_memory_add(&net->memory, &p->memory, false);
}

/* All keep their scratchpad in memory that the caller gives. */
static dnnl_primitive_attr_t attributes(struct gf_onednn *p)
{
	dnnl_primitive_attr_t attr = NULL;

	gf_onednn_ok(p, dnnl_primitive_attr_create(&attr), "attributes");
	if (!p->rc)
		gf_onednn_ok(
			p, dnnl_primitive_attr_set_scratchpad_mode(attr, dnnl_scratchpad_mode_user),
			"scratchpad");
	return attr;
}

static void make_attributes(struct gf_onednn *p)
{
	dnnl_post_ops_t ops = NULL;

	p->attr = attributes(p);
	p->relu_attr = attributes(p);
	if (p->rc || !gf_onednn_ok(p, dnnl_post_ops_create(&ops), "post-ops"))
		return;
	gf_onednn_ok(p, dnnl_post_ops_append_eltwise(ops, dnnl_eltwise_relu, 0, 0), "post-ops");
	gf_onednn_ok(p, dnnl_primitive_attr_set_post_ops(p->relu_attr, ops), "post-ops");
	dnnl_post_ops_destroy(ops);
}

/* What only the build needs. */
static void release_descriptions(struct gf_onednn *p)
{
	for (size_t i = 0; i < p->ndescs; i++)
		dnnl_primitive_desc_destroy(p->descs[i]);
	for (size_t i = 0; i < p->nmds; i++)
		gf_onednn_md_free(p->mds[i]);
	p->ndescs = p->nmds = 0;
	dnnl_primitive_attr_destroy(p->attr);
	dnnl_primitive_attr_destroy(p->relu_attr);
	p->attr = p->relu_attr = NULL;
}

static void *per_layer(const struct gf_onednn *p, size_t size)
{
	return gf_xcalloc(p->net->model->nlayers, size);
}

/* For as long as oneDNN computes. Its products of matrices take a buffer of the heap for their
 * stack (2.6), and the kernel would put the frame of a handled signal below that. oneDNN's own
 * threads are begun here, and hold them always. What an instruction raises is not held. */
static void hold_signals(sigset_t *before)
{
	static const int raised[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGABRT, SIGSYS};
	sigset_t held;

	sigfillset(&held);
	for (size_t i = 0; i < GF_ARRAY_LENGTH(raised); i++)
		sigdelset(&held, raised[i]);
	pthread_sigmask(SIG_BLOCK, &held, before);
}

static void free_ops(struct gf_onednn_ops *ops)
{
	for (size_t i = 0; i < ops->count; i++)
		dnnl_primitive_destroy(ops->items[i].primitive);
	free(ops->items);
}

static void program_free(struct gf_onednn *p)
{
	if (!p)
		return;
	gf_net_memory_add(&p->net->memory, &p->memory, true);
	free_ops(&p->forward);
	free_ops(&p->backward);
	for (size_t i = 0; i < p->nmemories; i++)
		dnnl_memory_destroy(p->memories[i]);
	for (size_t l = 0; l < p->net->model->nlayers; l++) {
		gf_onednn_free_plain(p->plain[l]);
		if (!p->fused[l])
			free(p->values[l]);
	}
	dnnl_stream_destroy(p->stream);
	dnnl_engine_destroy(p->engine);
	free(p->values);
	free(p->fused);
	free(p->hints);
	free(p->weight);
	free(p->workspace);
	free(p->plain);
	free(p->mean);
	free(p->variance);
	free(p->layer_memory);
	free(p->bindings);
	free(p->copies);
	free(p->memories);
	free(p->descs);
	free(p->mds);
	free(p->scratchpads);
	free(p->scratchpad);
	free(p);
}

/* A program for one batch size and mode. */
static int program_new(struct gf_net *net, size_t batch, bool training, struct gf_onednn **program,
		       struct gf_error *err)
{
	struct gf_onednn *p = gf_xcalloc(1, sizeof(*p));
	sigset_t before;
	int rc;

	hold_signals(&before);
	p->net = net;
	p->batch = batch;
	p->training = training;
	p->err = err;
	p->values = per_layer(p, sizeof(*p->values));
	p->fused = per_layer(p, sizeof(*p->fused));
	p->hints = per_layer(p, sizeof(*p->hints));
	p->weight = per_layer(p, sizeof(*p->weight));
	p->workspace = per_layer(p, sizeof(*p->workspace));
	p->plain = per_layer(p, sizeof(*p->plain));
	p->mean = per_layer(p, sizeof(*p->mean));
	p->variance = per_layer(p, sizeof(*p->variance));
	p->layer_memory = per_layer(p, sizeof(*p->layer_memory));
	gf_onednn_ok(p, dnnl_engine_create(&p->engine, dnnl_cpu, 0), "engine");
	if (!p->rc)
		gf_onednn_ok(p,
			     dnnl_stream_create(&p->stream, p->engine, dnnl_stream_default_flags),
			     "stream");
	make_attributes(p);
	build_forward(p);
	if (training && !p->rc)
		build_backward(p);
	share_scratchpad(p);
	add_up_memory(p);
	release_descriptions(p);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	p->err = NULL;
	rc = p->rc;
	if (rc)
		program_free(p);
	else
		*program = p;
	return rc;
}

static void bind(struct gf_onednn *p, enum gf_onednn_base base, const float *to)
{
	if (p->base[base] == to)
		return;
	p->base[base] = to;
	for (size_t i = 0; i < p->nbindings; i++)
		if (p->bindings[i].base == base)
			dnnl_memory_set_data_handle(p->bindings[i].memory,
						    (float *)to + p->bindings[i].at);
}

static int run(struct gf_onednn *p, const struct gf_onednn_ops *ops, struct gf_error *err)
{
	dnnl_status_t status = dnnl_success;
	sigset_t before;

	hold_signals(&before);
	for (size_t i = 0; i < ops->count && status == dnnl_success; i++) {
		const struct gf_onednn_op *op = &ops->items[i];

		if (op->call) { /* may wait for other ranks */
			pthread_sigmask(SIG_SETMASK, &before, NULL);
			op->call(p, op->layer);
			hold_signals(&before);
		} else {
			status = dnnl_primitive_execute(op->primitive, p->stream, op->nargs,
							op->args);
		}
	}
	dnnl_stream_wait(p->stream);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return status == dnnl_success
		       ? 0
		       : gf_error_set(err, status == dnnl_out_of_memory ? -ENOMEM : -EIO,
				      "oneDNN: %s", dnnl_status2str(status));
}

/* --- a net ---------------------------------------------------------------- */

/*
 * The oneDNN backend. Each batch size and mode is a program of its own; a few are kept, the one
 * unused for the longest time gives way.
 */
#define MAX_PROGRAMS 6

struct state {
	struct gf_onednn *programs[MAX_PROGRAMS]; /* latest use first */
	void (*set_threads)(int threads);
};

static void use_threads(const struct gf_net *net)
{
	const struct state *s = net->priv;

	if (net->threads > 0 && s->set_threads)
		s->set_threads(net->threads);
}

/* The program in front, made if it is not among those that are there. */
static int choose(struct gf_net *net, size_t batch, bool training, struct gf_error *err)
{
	struct state *s = net->priv;
	struct gf_onednn *p;
	size_t i = 0;

	while (i < MAX_PROGRAMS - 1 && s->programs[i] &&
	       (s->programs[i]->batch != batch || s->programs[i]->training != training))
		i++;
	p = s->programs[i];
	if (p && (p->batch != batch || p->training != training)) {
		program_free(p);
		p = NULL;
	}
	if (!p) {
		int rc = program_new(net, batch, training, &p, err);

		s->programs[i] = NULL;
		if (rc)
			return rc;
	}
	for (; i > 0; i--)
		s->programs[i] = s->programs[i - 1];
	s->programs[0] = p;
	return 0;
}

static void net_free(struct gf_net *net)
{
	GF_FREED struct state *s = NULL;

	if (!net)
		return;
	s = net->priv;
	for (size_t i = 0; i < MAX_PROGRAMS; i++)
		program_free(s->programs[i]);
	gf_net_release(net);
	free(net);
}

/* oneDNN computes in bf16 on other processors, too, and slowly. */
static int check_precision(enum gf_dtype precision, struct gf_error *err)
{
	const unsigned wanted = dnnl_cpu_isa_avx512_core_bf16;

	if (precision == GF_F16)
		return gf_error_set(err, -ENOTSUP, "onednn computes in f32 or bf16, not in f16");
	if (precision == GF_BF16 && ((unsigned)dnnl_get_effective_cpu_isa() & wanted) != wanted)
		return gf_error_set(err, -ENOTSUP,
				    "onednn computes in bf16 on processors with AVX512-BF16, and "
				    "this one has none");
	return 0;
}

static int net_new(const struct gf_model *m, size_t max_batch, const struct gf_net_options *options,
		   struct gf_net **net, struct gf_error *err)
{
	struct gf_net *n = gf_xcalloc(1, sizeof(*n));
	struct state *s;
	int rc = check_precision(options->precision, err);

	rc = rc ?: gf_net_init(n, m, max_batch, options, err);
	if (rc) {
		free(n);
		return rc;
	}
	n->priv = s = gf_xcalloc(1, sizeof(*s));
	/* by name: whatever OpenMP oneDNN came with is asked, and none is needed without */
	*(void **)&s->set_threads = dlsym(RTLD_DEFAULT, "omp_set_num_threads");
	use_threads(n);
	rc = choose(n, max_batch, true, err);
	if (rc) {
		net_free(n);
		return rc;
	}
	*net = n;
	return 0;
}

static int forward(struct gf_net *net, const float *params, const float *input, size_t batch,
		   int training, struct gf_error *err)
{
	struct state *s = net->priv;
	struct gf_onednn *p;
	int rc = gf_net_begin_forward(net, input, batch, training, err);

	if (rc)
		return rc;
	use_threads(net);
	rc = choose(net, batch, training, err);
	if (rc)
		goto out;
	p = s->programs[0];
	bind(p, GF_ONEDNN_INPUT, input);
	bind(p, GF_ONEDNN_PARAMS, params);
	rc = run(p, &p->forward, err);
out:
	if (rc)
		net->stage = GF_NET_IDLE;
	return rc;
}

static int backward(struct gf_net *net, const float *params, float *grads,
		    void (*on_grad)(void *ctx, size_t tensor), void *ctx, struct gf_error *err)
{
	struct state *s = net->priv;
	struct gf_onednn *p = s->programs[0];
	int rc = gf_net_begin_backward(net, err);

	if (rc)
		return rc;
	use_threads(net);
	bind(p, GF_ONEDNN_PARAMS, params);
	bind(p, GF_ONEDNN_GRADS, grads);
	p->grads = grads;
	p->on_grad = on_grad;
	p->ctx = ctx;
	return run(p, &p->backward, err);
}

const struct gf_backend gf_backend_onednn = {
	.name = "onednn",
	.net_new = net_new,
	.net_free = net_free,
	.forward = forward,
	.loss = gf_net_softmax_loss,
	.result = gf_net_result,
	.backward = backward,
	.running = gf_net_running,
};
