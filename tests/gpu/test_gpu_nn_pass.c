/* SPDX-License-Identifier: BSD-3-Clause */
#include "nn_device.h"

#include <errno.h>

#include "../unit/nn_run.h"
#include "base/array.h"
#include "nn/graph.h"

/*
 * Passes on a device: in sixteen bits, with a loss scale, captured into a graph, with wrong labels,
 * and without the host's waiting.
 */
#define MAX_SPECS 15

static const struct {
	const char *name;
	struct {
		size_t input[3];
		size_t batch;
	};
	struct spec specs[MAX_SPECS];
} models[] = {
	{"residual network",
	 {{3, 9, 8}, 4},
	 {{CONV, .filters = 8, .kernel = 3, .pad = 1, .no_bias = true},
	  {NORM},
	  {RELU},
	  {CONV, .filters = 8, .kernel = 3, .pad = 1, .no_bias = true},
	  {NORM},
	  {ADD, .a = 5, .b = 3},
	  {RELU},
	  {MAXPOOL, .kernel = 3, .pad = 1, .stride = 2},
	  {CONV, .filters = 12, .kernel = 1, .groups = 4},
	  {GLOBALPOOL},
	  {FC, .filters = 5}}},
	{"residual blocks",
	 {{3, 7, 6}, 9},
	 {{CONV, .filters = 16, .kernel = 3, .pad = 1, .no_bias = true},
	  {NORM},
	  {RELU},
	  {CONV, .filters = 16, .kernel = 3, .pad = 1, .no_bias = true},
	  {NORM},
	  {ADD, .a = 5, .b = 3},
	  {RELU},
	  {CONV, .a = 7, .filters = 24, .stride = 2, .no_bias = true},
	  {NORM},
	  {CONV, .a = 7, .filters = 24, .kernel = 3, .pad = 1, .stride = 2},
	  {NORM},
	  {ADD, .a = 9, .b = 11},
	  {RELU},
	  {FC, .filters = 5}}},
	{"residual blocks of odd channels",
	 {{3, 7, 6}, 5},
	 {{CONV, .filters = 13, .kernel = 3, .pad = 1},
	  {NORM},
	  {RELU},
	  {CONV, .filters = 13, .kernel = 3, .pad = 1, .no_bias = true},
	  {NORM},
	  {ADD, .a = 3, .b = 5},
	  {RELU},
	  {CONV, .a = 7, .filters = 7, .stride = 2, .no_bias = true},
	  {NORM},
	  {CONV, .a = 7, .filters = 7, .kernel = 3, .pad = 1, .stride = 2},
	  {NORM},
	  {ADD, .a = 11, .b = 9},
	  {RELU},
	  {FC, .filters = 5}}},
	{"many channels",
	 {{3, 8, 8}, 9},
	 {{CONV, .filters = 264, .kernel = 1},
	  {NORM},
	  {RELU},
	  {GLOBALPOOL},
	  {NORM},
	  {RELU},
	  {FC, .filters = 3}}},
	{"sums of sums",
	 {{3, 6, 5}, 4},
	 {{CONV, .filters = 8, .kernel = 3, .pad = 1},
	  {CONV, .a = 1, .filters = 8},
	  {NORM},
	  {RELU},
	  {CONV, .a = 1, .filters = 8, .kernel = 3, .pad = 1},
	  {ADD, .a = 4, .b = 5},
	  {RELU},
	  {ADD, .a = 7, .b = 1},
	  {TANH},
	  {ADD, .a = 9, .b = 7},
	  {ADD, .a = 10, .b = 10},
	  {RELU},
	  {ADD, .a = 12, .b = 9},
	  {FC, .filters = 4}}},
	{"pools of eight channels",
	 {{3, 7, 9}, 3},
	 {{CONV, .filters = 16, .kernel = 3, .pad = 1},
	  {MAXPOOL, .a = 1, .kernel = 3, .pad = 1},
	  {CONV, .a = 1, .filters = 16},
	  {ADD, .a = 2, .b = 3},
	  {MAXPOOL, .kernel = 2, .kernel_w = 3, .stride = 2},
	  {FC, .filters = 4}}},
	{"images side by side",
	 {{4, 6, 5}, 3},
	 {{CONV, .filters = 6, .kernel = 3, .pad = 1},
	  {GELU},
	  {AVGPOOL, .a = 2, .kernel = 3, .pad = 1, .stride = 1},
	  {CONCAT, .a = 2, .b = 3, .c = INPUT},
	  {TANH},
	  {FC, .filters = 6},
	  {FC, .a = 5, .filters = 6},
	  {ADD, .a = 6, .b = 7},
	  {FC, .filters = 3}}},
	{"dropout of images",
	 {{2, 6, 5}, 3},
	 {{CONV, .filters = 8, .kernel = 3}, {RELU}, {DROPOUT, .rate = 0.3}, {FC, .filters = 4}}},
	{"dropout in parts", {{4099}, 3}, {{DROPOUT, .rate = 0.3}, {FC, .filters = 3}}},
	{"language model",
	 {{6}, 3},
	 {{EMBEDDING, .entries = 9, .filters = 8},
	  {LSTM, .filters = 8},
	  {DROPOUT, .rate = 0.2},
	  {LSTM, .filters = 6},
	  {FC, .filters = 9}}},
	{"transformer",
	 {{5}, 2},
	 {{EMBEDDING, .entries = 9, .filters = 8},
	  {ATTENTION, .a = 1, .b = 1, .c = 1, .heads = 2},
	  {FC, .filters = 8},
	  {ADD, .a = 3, .b = 1},
	  {LAYERNORM},
	  {FC, .filters = 12},
	  {GELU},
	  {FC, .filters = 8},
	  {ADD, .a = 8, .b = 5},
	  {LAYERNORM},
	  {SELECT, .position = 1},
	  {FC, .filters = 3}}},
	{"decoder",
	 {{8}, 3},
	 {{EMBEDDING, .entries = 9, .filters = 16},
	  {EMBEDDING, .a = INPUT, .entries = 8, .filters = 16, .positional = true},
	  {ADD, .a = 1, .b = 2},
	  {LAYERNORM},
	  {FC, .filters = 48},
	  {ATTENTION, .heads = 2, .causal = true},
	  {FC, .filters = 16},
	  {ADD, .a = 7, .b = 3},
	  {LAYERNORM},
	  {FC, .filters = 32},
	  {GELU},
	  {FC, .filters = 16},
	  {ADD, .a = 12, .b = 8},
	  {LAYERNORM},
	  {FC, .filters = 9, .no_bias = true}}},
	{"causal attention of odd sizes",
	 {{7, 6}, 3},
	 {{FC, .filters = 9},
	  {FC, .a = INPUT, .filters = 9},
	  {ATTENTION, .a = 1, .b = 2, .c = 2, .heads = 3, .causal = true},
	  {FC, .filters = 36},
	  {ATTENTION, .heads = 4},
	  {FC, .filters = 3}}},
	{"attention of one input",
	 {{16, 4}, 2},
	 {{FC, .filters = 24},
	  {ATTENTION, .heads = 1},
	  {FC, .a = 1, .filters = 8},
	  {ADD, .a = 2, .b = 3},
	  {FC, .filters = 3}}},
};

/* Of the length of all gradients; of the loss. */
static const struct {
	enum gf_dtype dtype;
	float loss_scale;
	double gradients, loss, running;
} precisions[] = {
	{GF_F32, 1, 1e-4, 1e-4, 1e-4},  {GF_F32, 1024, 1e-4, 1e-4, 1e-4},
	{GF_F16, 1, 2e-2, 1e-2, 5e-3},  {GF_F16, 256, 2e-2, 1e-2, 5e-3},
	{GF_BF16, 1, 1e-1, 5e-2, 3e-2},
};

static struct gf_model *model_of(size_t c)
{
	return build_model(models[c].input, models[c].specs, GF_ARRAY_LENGTH(models[c].specs));
}

static void test_precision(size_t c, size_t p)
{
	const struct gf_backend *ref = gf_backend_find("ref");
	const struct gf_backend *b = nn_device_backends[0];
	const char *type = gf_dtype_names[precisions[p].dtype];
	struct gf_model *m = model_of(c);
	struct gf_net *net, *ref_net;
	struct run want, got;

	gf_rng_init(&rng, c, 7);
	run_init(&want, m, models[c].batch, models[c].batch + 1);
	got = want;
	got.grads = draw(want.nparams, 1);
	got.emitted = gf_xcalloc(m->nparams + 1, sizeof(size_t));
	got.options.precision = precisions[p].dtype;
	net = new_net(b, &got);
	gf_net_set_loss_scale(net, precisions[p].loss_scale);
	ref_net = new_net(ref, &want);
	pass(ref, ref_net, &want);
	pass(b, net, &got);
	EXPECT_NEAR(got.loss, want.loss, precisions[p].loss * want.loss, "%s in %s: loss",
		    models[c].name, type);
	EXPECT(apart(got.grads, want.grads, want.nparams) <= precisions[p].gradients,
	       "%s in %s: gradients are %g away", models[c].name, type,
	       apart(got.grads, want.grads, want.nparams));
	EXPECT(apart(got.running, want.running, want.nrunning) <= precisions[p].running,
	       "%s in %s: running statistics are %g away", models[c].name, type,
	       apart(got.running, want.running, want.nrunning));
	EXPECT_NEAR(loss_of(b, net, &got, 0), loss_of(ref, ref_net, &want, 0),
		    precisions[p].loss * want.loss, "%s in %s: loss by running statistics",
		    models[c].name, type);
	b->net_free(net);
	ref->net_free(ref_net);
	free(got.grads);
	free(got.emitted);
	free(got.running);
	run_release(&want);
	free_model(m);
}

/* A value too large for f16 shows in the gradients. */
static void test_overflow(void)
{
	const struct gf_backend *b = nn_device_backends[0];
	struct gf_model *m = model_of(0);
	struct gf_net *net;
	size_t wrong = 0;
	struct run r;

	gf_rng_init(&rng, 1, 7);
	run_init(&r, m, 4, 4);
	r.options.precision = GF_F16;
	net = new_net(b, &r);
	gf_net_set_loss_scale(net, 0x1p30f);
	pass(b, net, &r);
	for (size_t i = 0; i < r.nparams; i++)
		wrong += !isfinite(r.grads[i]);
	EXPECT(wrong > 0 && isfinite(r.loss), "a loss scale too large makes %zu gradients infinite",
	       wrong);
	gf_net_set_loss_scale(net, 1);
	pass(b, net, &r);
	for (size_t i = wrong = 0; i < r.nparams; i++)
		wrong += !isfinite(r.grads[i]);
	EXPECT(wrong == 0, "a smaller one again none, but %zu", wrong);
	b->net_free(net);
	run_release(&r);
	free_model(m);
}

/* --- without the adapter ----------------------------------------------------
 */

struct device {
	struct gf_gpu *gpu;
	struct gf_gpu_stream *stream;
	struct gf_net *net;
	float *params, *input, *grads;
	int32_t *labels;
};

static void put_run(struct device *d, const struct run *r)
{
	struct gf_error err = {""};
	const char *why = nn_device_open(&d->gpu, &d->stream);
	struct gf_net_options options = r->options;

	EXPECT(!why, "%s", why);
	options.gpu = d->gpu;
	options.stream = d->stream;
	EXPECT(!gf_backend_cuda.net_new(r->m, r->max_batch, &options, &d->net, &err), "%s",
	       err.text);
	d->params = nn_device_put(r->params, r->nparams);
	d->input = nn_device_put(r->input, r->batch * gf_shape_elems(&r->m->input));
	d->labels =
		(int32_t *)(void *)nn_device_put(r->labels, r->batch * gf_model_positions(r->m));
	d->grads = nn_device_put(NULL, r->nparams);
}

static void drop_run(struct device *d)
{
	gf_backend_cuda.net_free(d->net);
	nn_device_drop(d->params);
	nn_device_drop(d->input);
	nn_device_drop((float *)(void *)d->labels);
	nn_device_drop(d->grads);
}

static int enqueue(const struct device *d, struct run *r, struct gf_error *err)
{
	const struct gf_backend *b = &gf_backend_cuda;
	int rc = b->forward(d->net, d->params, d->input, r->batch, 1, err);

	r->nemitted = 0;
	rc = rc ? rc : b->loss(d->net, d->labels, err);
	return rc ? rc : b->backward(d->net, d->params, d->grads, note_grad, r, err);
}

/* An error comes with the result, and names the first place. */
static void test_wrong_labels(void)
{
	struct gf_model *m = model_of(9);
	struct gf_error err = {""};
	struct device d;
	double loss;
	size_t correct;
	struct run r;

	gf_rng_init(&rng, 2, 7);
	run_init(&r, m, 3, 3);
	r.labels[7] = 9;
	r.labels[12] = -3;
	put_run(&d, &r);
	EXPECT(!enqueue(&d, &r, &err), "%s", err.text);
	EXPECT(gf_backend_cuda.result(d.net, &loss, &correct, &err) == -EINVAL,
	       "a label too large");
	EXPECT_TEXT(err.text, "label 7: want 0 to 8, got 9");
	drop_run(&d);
	run_release(&r);
	free_model(m);
}

static void replay(const struct device *d, struct gf_gpu_graph *graph, struct run *r,
		   uint64_t first)
{
	struct gf_error err = {""};

	gf_net_set_samples(d->net, 5, first);
	EXPECT(!d->gpu->ops->graph_launch(d->gpu, d->stream, graph, &err) &&
		       !gf_backend_cuda.result(d->net, &r->loss, &r->correct, &err),
	       "%s", err.text);
	nn_device_get(r->grads, d->grads, r->nparams);
}

/* A graph gives what its pass gives, sample numbers heeded. */
static void test_graph(size_t c)
{
	struct gf_model *m = model_of(c);
	struct gf_gpu_graph *graph = NULL;
	struct gf_error err = {""};
	float *grads[2];
	double loss[2];
	struct device d;
	size_t correct;
	struct run r;

	gf_rng_init(&rng, c, 8);
	run_init(&r, m, models[c].batch, models[c].batch);
	put_run(&d, &r);
	for (int k = 0; k < 2; k++) {
		gf_net_set_samples(d.net, 5, (uint64_t)(100 * k));
		EXPECT(!enqueue(&d, &r, &err), "%s", err.text);
		EXPECT(!gf_backend_cuda.result(d.net, &loss[k], &correct, &err), "%s", err.text);
		grads[k] = gf_xcalloc(r.nparams, sizeof(float));
		nn_device_get(grads[k], d.grads, r.nparams);
	}
	EXPECT(!d.gpu->ops->capture_begin(d.gpu, d.stream, &err) && !enqueue(&d, &r, &err) &&
		       !d.gpu->ops->capture_end(d.gpu, d.stream, &graph, &err),
	       "%s", err.text);
	for (int k = 0; k < 2; k++) {
		replay(&d, graph, &r, (uint64_t)(100 * k));
		EXPECT(r.loss == loss[k] &&
			       memcmp(r.grads, grads[k], r.nparams * sizeof(float)) == 0,
		       "%s: pass %d of a graph: loss %.9g, want %.9g", models[c].name, k, r.loss,
		       loss[k]);
		free(grads[k]);
	}
	d.gpu->ops->graph_free(d.gpu, graph);
	drop_run(&d);
	run_release(&r);
	free_model(m);
}

/* Memory is what its parts are. */
static void test_memory(void)
{
	struct gf_model *m = model_of(0);
	struct gf_net_memory small, large;
	size_t kept = 0;
	struct device d;
	struct run r;

	gf_rng_init(&rng, 3, 8);
	run_init(&r, m, 2, 2);
	put_run(&d, &r);
	small = gf_net_memory(d.net);
	drop_run(&d);
	r.max_batch = 64;
	put_run(&d, &r);
	large = gf_net_memory(d.net);
	for (size_t l = 0; l < m->nlayers; l++)
		kept += gf_net_layer_memory(d.net, l).activations_bytes;
	drop_run(&d);
	EXPECT(small.weights_bytes == large.weights_bytes && small.weights_bytes > 0,
	       "weights: %zu bytes, %zu", small.weights_bytes, large.weights_bytes);
	EXPECT(large.activations_bytes > 16 * small.activations_bytes &&
		       large.gradients_bytes > small.gradients_bytes,
	       "32 times the batch: activations %zu bytes, %zu", small.activations_bytes,
	       large.activations_bytes);
	EXPECT(kept > large.activations_bytes / 2 && kept <= large.activations_bytes,
	       "%zu of the %zu bytes stay from forward to backward", kept, large.activations_bytes);
	run_release(&r);
	free_model(m);
}

int main(void)
{
	struct gf_gpu *gpu;
	struct gf_gpu_stream *stream;
	const char *why = nn_device_open(&gpu, &stream);

	if (why) {
		printf("%s\n", why);
		return 77;
	}
	for (size_t c = 0; c < GF_ARRAY_LENGTH(models); c++) {
		for (size_t p = 0; p < GF_ARRAY_LENGTH(precisions); p++)
			if (test_tries(c + p, 1))
				test_precision(c, p);
		test_graph(c);
	}
	test_overflow();
	test_wrong_labels();
	test_memory();
	return TEST_END();
}
