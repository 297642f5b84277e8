/* SPDX-License-Identifier: BSD-3-Clause */
#include <malloc.h>
#include <math.h>

#include "base/array.h"
#include "base/heap.h"
#include "cost/layer_times.h"
#include "nn/net.h"
#include "shipped_model.h"

/*
 * The memory that a net says it has: what the heap lost when the net was made, and, of layers that
 * both keep, what an estimate of the model says.
 */
#define BATCH 32

static size_t total(const struct gf_net_memory *m)
{
	return m->weights_bytes + m->activations_bytes + m->gradients_bytes + m->workspace_bytes;
}

static struct gf_net *net_of(const struct gf_backend *b, const struct gf_model *m)
{
	struct gf_net *net = NULL;
	struct gf_error err = {""};

	EXPECT(!b->net_new(m, BATCH, &(struct gf_net_options){.threads = 1}, &net, &err), "%s: %s",
	       b->name, err.text);
	return net;
}

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
/* The heap is a sanitizer's. */
static double heap_bytes(void)
{
	return NAN;
}
#else
static double heap_bytes(void)
{
	const struct mallinfo2 m = mallinfo2();

	return (double)m.uordblks + (double)m.hblkhd;
}
#endif

static void test_heap(const struct gf_backend *b, const char *path)
{
	struct gf_net_memory all, sum = {0};
	struct gf_model m;
	double before, bytes;
	struct gf_net *net;

	load_model(path, &m);
	before = heap_bytes();
	net = net_of(b, &m);
	bytes = heap_bytes() - before;
	all = gf_net_memory(net);
	for (size_t l = 0; l < m.nlayers; l++) {
		const struct gf_net_memory layer = gf_net_layer_memory(net, l);

		sum.weights_bytes += layer.weights_bytes;
		sum.activations_bytes += layer.activations_bytes;
		sum.gradients_bytes += layer.gradients_bytes;
	}
	EXPECT(total(&sum) + all.workspace_bytes == total(&all),
	       "%s, %s: %zu in layers, %zu in all", b->name, path, total(&sum), total(&all));
	/* oneDNN makes code, and fills every array up to a page */
	EXPECT(isnan(bytes) || fabs((double)total(&all) / bytes - 1) < 0.05,
	       "%s, %s: says %zu bytes, takes %.0f", b->name, path, total(&all), bytes);
	b->net_free(net);
	gf_model_release(&m);
}

/* oneDNN keeps the output of a convolution and that of the normalisation with its ReLU, as PyTorch
 * does. It also has bn3's output, which `add` reads in forward alone. PyTorch keeps samples, labels
 * and what becomes of the logits, which no layer of a net owns. */
static void test_estimate(const struct gf_backend *b)
{
	const struct gf_estimate in = {.batch = BATCH, .flops_per_s = 1e12};
	struct gf_model_profile *p = NULL;
	struct gf_error err = {""};
	double estimated, has = 0;
	struct gf_net *net;
	struct gf_model m;

	load_model("share/models/digits-cnn.json", &m);
	net = net_of(b, &m);
	EXPECT(!gf_model_estimate(&m, &in, &p, &err), "%s", err.text);
	estimated = (double)gf_model_profile_activations(p) - BATCH * (64 * 4 + 10 * 4 + 8);
	for (size_t l = 0; l < m.nlayers; l++)
		has += (double)gf_net_layer_memory(net, l).activations_bytes;
	has -= BATCH * 32 * 8 * 8 * 4;
	EXPECT(fabs(has / estimated - 1) < 0.05, "estimated %.0f, has %.0f", estimated, has);
	gf_model_profile_free(p);
	b->net_free(net);
	gf_model_release(&m);
}

int main(void)
{
	static const char *const paths[] = {
		"share/models/resnet20.json",
		"share/models/gpt-text.json",
	};

	for (size_t i = 0; gf_backends[i]; i++) {
		if (gf_backends[i]->on_device)
			continue;
		for (size_t k = 0; k < GF_ARRAY_LENGTH(paths); k++)
			test_heap(gf_backends[i], paths[k]);
		if (strcmp(gf_backends[i]->name, "ref") != 0)
			test_estimate(gf_backends[i]);
	}
	return TEST_END();
}
