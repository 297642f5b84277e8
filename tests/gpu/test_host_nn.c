/* SPDX-License-Identifier: BSD-3-Clause */
#include "nn_device.h"

#include <errno.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../unit/nn_run.h"
#include "base/array.h"
#include "base/file.h"
#include "host_gpu.h"
#include "nn/gpu_math.h"
#include "nn/gpu_net.h"
#include "nn/graph.h"

/*
 * Nets on a device that only the emulated one can show: that nothing waits in a pass, what is said
 * when memory, a library or a call fails, and how memory is planned.
 */
static const size_t image[3] = {2, 6, 6};
static const struct spec specs[] = {
	{CONV, .filters = 4, .kernel = 3, .pad = 1},
	{NORM},
	{RELU},
	{MAXPOOL, .kernel = 2, .stride = 2},
	{DROPOUT, .rate = 0.2},
	{CONV, .filters = 4, .kernel = 3, .pad = 1},
	{FC, .filters = 4},
};

struct device {
	struct gf_model *m;
	struct run r;
	struct gf_net *net;
	float *params, *input, *grads;
	int32_t *labels;
};

static void open_run(struct device *d, size_t batch)
{
	d->m = build_model(image, specs, GF_ARRAY_LENGTH(specs));
	gf_rng_init(&rng, 4, 0);
	run_init(&d->r, d->m, batch, batch);
	d->params = nn_device_put(d->r.params, d->r.nparams);
	d->input = nn_device_put(d->r.input, batch * gf_shape_elems(&d->m->input));
	d->labels = (int32_t *)(void *)nn_device_put(d->r.labels, batch);
	d->grads = nn_device_put(NULL, d->r.nparams);
	d->net = NULL;
	d->r.options.gpu = host_gpu();
	d->r.options.stream = host_gpu_stream();
}

static void close_run(struct device *d)
{
	gf_backend_cuda.net_free(d->net);
	nn_device_drop(d->params);
	nn_device_drop(d->input);
	nn_device_drop((float *)(void *)d->labels);
	nn_device_drop(d->grads);
	run_release(&d->r);
	free_model(d->m);
}

static int make(struct device *d, struct gf_error *err)
{
	return gf_backend_cuda.net_new(d->m, d->r.max_batch, &d->r.options, &d->net, err);
}

static int enqueue(struct device *d, size_t batch, struct gf_error *err)
{
	const struct gf_backend *b = &gf_backend_cuda;
	int rc = b->forward(d->net, d->params, d->input, batch, 1, err);

	d->r.nemitted = 0;
	rc = rc ? rc : b->loss(d->net, d->labels, err);
	return rc ? rc : b->backward(d->net, d->params, d->grads, note_grad, &d->r, err);
}

/* What a graph holds of a batch size stays, however many others come by. */
static void test_graph_stays(void)
{
	enum { BATCH = 9 };
	struct gf_gpu *gpu = host_gpu();
	struct gf_gpu_stream *stream = host_gpu_stream();
	struct gf_gpu_graph *graph = NULL;
	struct gf_error err = {""};
	double loss, want;
	size_t correct;
	struct device d;

	open_run(&d, BATCH);
	EXPECT(!make(&d, &err), "%s", err.text);
	gf_net_set_samples(d.net, 1, 7);
	EXPECT(!enqueue(&d, BATCH - 1, &err) &&
		       !gf_backend_cuda.result(d.net, &want, &correct, &err) &&
		       !gpu->ops->capture_begin(gpu, stream, &err) &&
		       !enqueue(&d, BATCH - 1, &err) &&
		       !gpu->ops->capture_end(gpu, stream, &graph, &err),
	       "%s", err.text);
	for (size_t batch = 1; batch <= BATCH; batch++)
		EXPECT(!enqueue(&d, batch, &err) &&
			       !gf_backend_cuda.result(d.net, &loss, &correct, &err),
		       "batch of %zu: %s", batch, err.text);
	gf_net_set_samples(d.net, 1, 7);
	EXPECT(!gpu->ops->graph_launch(gpu, stream, graph, &err) &&
		       !gf_backend_cuda.result(d.net, &loss, &correct, &err),
	       "%s", err.text);
	EXPECT(loss == want, "loss %.9g, want %.9g", loss, want);
	gpu->ops->graph_free(gpu, graph);
	close_run(&d);
}

static void test_no_waiting(void)
{
	struct gf_error err = {""};
	struct host_gpu_counts before, after;
	double loss;
	size_t correct;
	struct device d;

	open_run(&d, 4);
	EXPECT(!make(&d, &err), "%s", err.text);
	/* a smaller batch may want a larger workspace, once */
	for (size_t batch = 4; batch > 0; batch--)
		EXPECT(!enqueue(&d, batch, &err), "%s", err.text);
	for (size_t batch = 4; batch > 0; batch--) {
		before = host_gpu_counts();
		gf_net_set_samples(d.net, 1, batch);
		EXPECT(!enqueue(&d, batch, &err), "%s", err.text);
		after = host_gpu_counts();
		EXPECT(after.waits == before.waits && after.allocations == before.allocations &&
			       after.elsewhere == 0 && after.enqueued > before.enqueued,
		       "batch of %zu: %zu waits, %zu allocations, %zu on other streams", batch,
		       after.waits - before.waits, after.allocations - before.allocations,
		       after.elsewhere);
		EXPECT(d.r.nemitted == d.m->nparams, "all are reported");
		EXPECT(!gf_backend_cuda.result(d.net, &loss, &correct, &err) &&
			       host_gpu_counts().waits == after.waits + 1,
		       "the result is waited for");
	}
	close_run(&d);
	EXPECT(fake_math_left() == 0, "%zu handles left", fake_math_left());
}

/* --- what fails -------------------------------------------------------------
 */

static const struct {
	const char *call, *text; /* of net_new if `early` */
	bool early;
} failures[] = {
	{"cudnnCreate", "cudnnCreate: CUDNN_STATUS_EXECUTION_FAILED", true},
	{"cublasCreate_v2", "cublasCreate_v2: the GPU program failed to execute", true},
	{"cudnnGetConvolutionForwardAlgorithm_v7",
	 "layer conv0: cudnnGetConvolutionForwardAlgorithm_v7: CUDNN_STATUS_EXECUTION_FAILED",
	 true},
	{"cudnnConvolutionForward",
	 "layer conv0: cudnnConvolutionForward: CUDNN_STATUS_EXECUTION_FAILED", false},
	{"cudnnConvolutionBackwardData",
	 "layer conv5: cudnnConvolutionBackwardData: CUDNN_STATUS_EXECUTION_FAILED", false},
	{"cudnnConvolutionBackwardFilter",
	 "layer conv5: cudnnConvolutionBackwardFilter: CUDNN_STATUS_EXECUTION_FAILED", false},
	{"cublasGemmStridedBatchedEx",
	 "layer fc6: cublasGemmStridedBatchedEx: the GPU program failed to execute", false},
};

static void test_failure(size_t f)
{
	struct gf_error err = {""};
	struct device d;
	int rc;

	open_run(&d, 2);
	if (failures[f].early)
		fake_math_fail(failures[f].call);
	rc = make(&d, &err);
	fake_math_fail(failures[f].call);
	if (!failures[f].early)
		rc = enqueue(&d, 2, &err);
	fake_math_fail(NULL);
	EXPECT(rc == -EIO, "%s: got %d", failures[f].call, rc);
	EXPECT_TEXT(err.text, failures[f].text);
	if (d.net)
		EXPECT(!enqueue(&d, 2, &err), "the next pass: %s", err.text);
	close_run(&d);
	EXPECT(fake_math_left() == 0, "%s: %zu handles left", failures[f].call, fake_math_left());
}

static void test_no_memory(void)
{
	struct gf_error err = {""};
	struct device d;

	open_run(&d, 2);
	host_gpu_set_free(1000000);
	EXPECT(make(&d, &err) == -ENOMEM && !d.net, "no memory");
	EXPECT(strncmp(err.text, "test, batches of 2: want 3357", 29) == 0 &&
		       strstr(err.text, " bytes on GPU 0 (weights ") &&
		       strstr(err.text, "), found 1000000 free"),
	       "%s", err.text);
	host_gpu_set_free((size_t)1 << 40);
	close_run(&d);
}

static void test_no_device(void)
{
	struct gf_error err = {""};
	struct device d;

	open_run(&d, 2);
	d.r.options.gpu = NULL;
	EXPECT(make(&d, &err) == -EINVAL, "no device");
	EXPECT_TEXT(err.text, "cuda: want a GPU to compute on");
	close_run(&d);
}

/* A library is looked for once in a process. */
static void test_lacking(int which, const char *text)
{
	const pid_t child = fork();
	int status = 1;

	if (child == 0) {
		struct gf_error err = {""};
		struct device d;

		fake_math_lack(which);
		open_run(&d, 2);
		EXPECT(make(&d, &err) == -ENOTSUP && !d.net, "a library lacks");
		EXPECT(strncmp(err.text, text, strlen(text)) == 0, "%s", err.text);
		_exit(TEST_END());
	}
	EXPECT(child > 0 && waitpid(child, &status, 0) == child && status == 0, "%s: status %d",
	       text, status);
}

/* --- convolutions ------------------------------------------------------------
 */

/* With less than any way wants, the one that wants least; the fake refuses those that it did not
 * offer, and those that are not deterministic. */
static void test_little_workspace(void)
{
	static const struct gf_gpu_conv_shape shape = {
		.batch = 2,
		.groups = 1,
		.in = {3, 5, 5},
		.out = {4, 3, 3},
		.kernel = {3, 3},
		.stride = 1,
	};
	const size_t most[] = {0, 10, 1000, (size_t)1 << 30};
	struct gf_error err = {""};
	struct gf_gpu_dnn *dnn = NULL;

	EXPECT(!gf_gpu_dnn_new(host_gpu_stream(), &dnn, &err), "%s", err.text);
	for (size_t i = 0; i < GF_ARRAY_LENGTH(most); i++) {
		struct gf_gpu_conv *conv = NULL;

		EXPECT(!gf_gpu_conv_new(dnn, &shape, most[i], &conv, &err), "%s", err.text);
		/* the filter's gradient, of two images */
		EXPECT(gf_gpu_conv_work_bytes(conv) == 8000, "of at most %zu bytes: %zu", most[i],
		       gf_gpu_conv_work_bytes(conv));
		gf_gpu_conv_free(conv);
	}
	gf_gpu_dnn_free(dnn);
}

/* --- shipped models ----------------------------------------------------------
 */

static struct gf_model *ship(const char *name)
{
	char *path = gf_xasprintf("share/models/%s.json", name), *text;
	struct gf_error err = {""};
	struct gf_model *m;
	size_t size;

	EXPECT(!gf_file_read(path, &text, &size, &err), "%s", err.text);
	m = read_model(text);
	free(path);
	free(text);
	return m;
}

static const struct {
	const char *name;
	size_t batch;
	double most_gb; /* of memory, in f16 */
} shipped[] = {
	{"alexnet-bn", 256, 1.5}, {"resnet50", 128, 6.5},    {"vgg16", 64, 3},
	{"densenet201", 64, 7.5}, {"inception-v4", 64, 3.5}, {"lstm-ptb", 20, 0.5},
	{"resnet20", 128, 0.5},
};

/* If no memory is free, the error says how much is wanted, without computing anything.
 */
static void test_shipped(size_t c)
{
	const struct gf_net_options options = {
		.precision = GF_F16, .gpu = host_gpu(), .stream = host_gpu_stream()};
	struct gf_model *m = ship(shipped[c].name);
	struct gf_error err = {""};
	struct gf_net *net = NULL;
	const char *at;

	host_gpu_set_free(1);
	EXPECT(gf_backend_cuda.net_new(m, shipped[c].batch, &options, &net, &err) == -ENOMEM,
	       "%s: %s", shipped[c].name, err.text);
	at = strstr(err.text, "want ");
	EXPECT(at && strtod(at + 5, NULL) < 1e9 * shipped[c].most_gb &&
		       strtod(at + 5, NULL) > 1e8 * shipped[c].most_gb,
	       "%s: want at most %g GB: %s", shipped[c].name, shipped[c].most_gb, err.text);
	host_gpu_set_free((size_t)1 << 40);
	free_model(m);
}

/* --- the plan ----------------------------------------------------------------
 */

#define THINGS 40

static bool overlap(const struct gf_gpu_thing *a, const struct gf_gpu_thing *b)
{
	return a->size_bytes && b->size_bytes && a->first <= b->last && b->first <= a->last &&
	       a->at < b->at + b->size_bytes && b->at < a->at + a->size_bytes;
}

/* No plan needs less than the arrays that are alive at one time. */
static void test_plan(uint64_t seed)
{
	struct gf_gpu_thing t[THINGS];
	size_t total, least = 0, n;

	gf_rng_init(&rng, seed, 9);
	n = 1 + gf_rng_below(&rng, THINGS);
	for (size_t i = 0; i < n; i++) {
		const size_t first = gf_rng_below(&rng, 30);

		t[i] = (struct gf_gpu_thing){
			.size_bytes = gf_rng_below(&rng, 5000),
			.first = first,
			.last = first + gf_rng_below(&rng, 8),
		};
	}
	total = gf_gpu_plan(t, n);
	for (size_t at = 0; at < 40; at++) {
		size_t alive = 0;

		for (size_t i = 0; i < n; i++)
			if (t[i].first <= at && at <= t[i].last)
				alive += t[i].size_bytes;
		least = alive > least ? alive : least;
	}
	EXPECT(total >= least && total <= 2 * least + 256 * n,
	       "plan %d: %zu bytes for %zu alive at once", (int)seed, total, least);
	for (size_t i = 0; i < n; i++) {
		EXPECT(t[i].at % 256 == 0 && t[i].at + t[i].size_bytes <= total,
		       "plan %d: thing %zu at %zu", (int)seed, i, t[i].at);
		for (size_t k = 0; k < i; k++)
			EXPECT(!overlap(&t[i], &t[k]), "plan %d: things %zu and %zu meet",
			       (int)seed, k, i);
	}
}

int main(void)
{
	struct gf_gpu *gpu;
	struct gf_gpu_stream *stream;

	test_lacking(1, "no cuDNN here: libcudnn.so.");
	test_lacking(2, "no cuBLAS here: libcublas.so.");
	EXPECT(!nn_device_open(&gpu, &stream), "the emulated device");
	test_no_waiting();
	test_graph_stays();
	for (size_t f = 0; f < GF_ARRAY_LENGTH(failures); f++)
		test_failure(f);
	test_no_memory();
	test_no_device();
	test_little_workspace();
	for (size_t c = 0; c < GF_ARRAY_LENGTH(shipped); c++)
		test_shipped(c);
	for (uint64_t s = 0; s < 200; s++)
		test_plan(s);
	return TEST_END();
}
