/* SPDX-License-Identifier: BSD-3-Clause */
#include "nn/onednn.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdlib.h>

#include "base/heap.h"

/*
 * The oneDNN backend. Each batch size and mode is a program of its own; a few
 * are kept, the one unused for the longest time gives way.
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
static int choose(struct gf_net *net, size_t batch, bool training,
		  struct gf_error *err)
{
	struct state *s = net->priv;
	struct gf_onednn *p;
	size_t i = 0;

	while (i < MAX_PROGRAMS - 1 && s->programs[i] &&
	       (s->programs[i]->batch != batch ||
		s->programs[i]->training != training))
		i++;
	p = s->programs[i];
	if (p && (p->batch != batch || p->training != training)) {
		gf_onednn_free(p);
		p = NULL;
	}
	if (!p) {
		int rc = gf_onednn_new(net, batch, training, &p, err);

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
	struct state *s;

	if (!net)
		return;
	s = net->priv;
	for (size_t i = 0; i < MAX_PROGRAMS; i++)
		gf_onednn_free(s->programs[i]);
	free(s);
	gf_net_release(net);
	free(net);
}

/* By name, so that whatever OpenMP oneDNN came with is asked, and none is
 * needed if it came without. */
static void find_openmp(struct state *s)
{
	*(void **)&s->set_threads = dlsym(RTLD_DEFAULT, "omp_set_num_threads");
}

/* oneDNN computes in bf16 on other processors, too, and slowly. */
static int check_precision(enum gf_dtype precision, struct gf_error *err)
{
	const unsigned wanted = dnnl_cpu_isa_avx512_core_bf16;

	if (precision == GF_F16)
		return gf_error_set(err, -ENOTSUP,
				    "onednn computes in f32 or bf16, not in "
				    "f16");
	if (precision == GF_BF16 &&
	    ((unsigned)dnnl_get_effective_cpu_isa() & wanted) != wanted)
		return gf_error_set(err, -ENOTSUP,
				    "onednn computes in bf16 on processors "
				    "with AVX512-BF16, and this one has none");
	return 0;
}

static int net_new(const struct gf_model *m, size_t max_batch,
		   const struct gf_net_options *options, struct gf_net **net,
		   struct gf_error *err)
{
	struct gf_net *n = gf_xcalloc(1, sizeof(*n));
	int rc = check_precision(options->precision, err);

	rc = rc ? rc : gf_net_init(n, m, max_batch, options, err);
	if (rc) {
		free(n);
		return rc;
	}
	n->priv = gf_xcalloc(1, sizeof(struct state));
	find_openmp(n->priv);
	use_threads(n);
	rc = choose(n, max_batch, true, err);
	if (rc) {
		net_free(n);
		return rc;
	}
	*net = n;
	return 0;
}

static int forward(struct gf_net *net, const float *params, const float *input,
		   size_t batch, int training, struct gf_error *err)
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
	gf_onednn_bind(p, GF_ONEDNN_INPUT, input);
	gf_onednn_bind(p, GF_ONEDNN_PARAMS, params);
	rc = gf_onednn_run(p, &p->forward, err);
out:
	if (rc)
		net->stage = GF_NET_IDLE;
	return rc;
}

static int backward(struct gf_net *net, const float *params, float *grads,
		    void (*on_grad)(void *ctx, size_t tensor), void *ctx,
		    struct gf_error *err)
{
	struct state *s = net->priv;
	struct gf_onednn *p = s->programs[0];
	int rc = gf_net_begin_backward(net, err);

	if (rc)
		return rc;
	use_threads(net);
	gf_onednn_bind(p, GF_ONEDNN_PARAMS, params);
	gf_onednn_bind(p, GF_ONEDNN_GRADS, grads);
	p->grads = grads;
	p->on_grad = on_grad;
	p->ctx = ctx;
	return gf_onednn_run(p, &p->backward, err);
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
