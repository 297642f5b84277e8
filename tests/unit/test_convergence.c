/* SPDX-License-Identifier: BSD-3-Clause */
#include "test.h"

#include <errno.h>

#include "base/array.h"
#include "base/file.h"
#include "base/heap.h"
#include "data/dataset.h"
#include "data/loader.h"
#include "nn/net.h"

/*
 * What the papers' methods need in order to learn, shown by trainers of its
 * own: P ranks one after the other, plain arrays, none of lib/trainer. Each
 *rule is broken once. On the shipped digits two rules do not learn at a high
 *rate: a step up the gradient (w + u, as GradientFlow prints it), and the sum
 *over ranks in place of the mean. Where the ranks disagree loudly about one
 *weight and agree softly about another, top-k that forgets what it did not send
 *never moves the second.
 *
 *	test_convergence --table	also prints the accuracies
 */
#define RANKS  4
#define BATCH  16
#define EPOCHS 4

struct variant {
	const char *name;
	double density; /* 1: dense */
	double lr;
	bool ascends;
	bool sums;                /* over ranks, in place of the mean */
	double at_least, at_most; /* the accuracy that it comes to */
};

static const struct variant variants[] = {
	{.name = "dense", .density = 1, .lr = .05, .at_least = .80, .at_most = 1},
	{.name = "top-k", .density = .01, .lr = .05, .at_least = .75, .at_most = 1},
	{.name = "up the gradient",
	 .density = 1,
	 .lr = .05,
	 .ascends = true,
	 .at_least = 0,
	 .at_most = .30},
	{.name = "the mean at a high rate", .density = 1, .lr = .2, .at_least = .75, .at_most = 1},
	{.name = "the sum at a high rate",
	 .density = 1,
	 .lr = .2,
	 .sums = true,
	 .at_least = 0,
	 .at_most = .30},
};

struct trainer {
	const struct variant *v;
	const struct gf_model *model;
	const struct gf_dataset *data;
	struct gf_net *net;
	size_t count;                                      /* of parameters */
	float *params, *velocity, *grads, *sum, *residual; /* RANKS of these */
	float *values;
	int32_t *labels;
};

static const struct gf_backend *backend;
static bool prints;

/* --- a rank's part -------------------------------------------------------- */

static void gradient(struct trainer *t, const size_t *samples)
{
	struct gf_error err = {""};
	int rc;

	gf_dataset_batch(t->data, GF_PART_TRAIN, samples, BATCH, t->values, t->labels, NULL);
	rc = backend->forward(t->net, t->params, t->values, BATCH, 1, &err);
	if (!rc)
		rc = backend->loss(t->net, t->labels, &err);
	if (!rc)
		rc = backend->backward(t->net, t->params, t->grads, NULL, NULL, &err);
	EXPECT(rc == 0, "%s: %s", t->v->name, err.text);
}

static int falling(const void *a, const void *b)
{
	float x = *(const float *)a, y = *(const float *)b;

	return (x < y) - (x > y);
}

/* The k-th largest magnitude; by sorting, as a reference may. */
static float threshold(const float *x, size_t n, size_t k)
{
	float *sorted = gf_xcalloc(n, sizeof(*sorted)), value;

	for (size_t i = 0; i < n; i++)
		sorted[i] = fabsf(x[i]);
	qsort(sorted, n, sizeof(*sorted), falling);
	value = sorted[k - 1];
	free(sorted);
	return value;
}

/* Adds what this rank sends to the sum; keeps the rest. */
static void contribute(struct trainer *t, int rank)
{
	float *residual = t->residual + (size_t)rank * t->count;
	size_t k = (size_t)fmax(1, t->v->density * (double)t->count);
	float least;

	for (size_t i = 0; i < t->count; i++)
		residual[i] += t->grads[i];
	least = k < t->count ? threshold(residual, t->count, k) : 0;
	for (size_t i = 0; i < t->count; i++) {
		bool sent = fabsf(residual[i]) >= least;

		if (sent)
			t->sum[i] += residual[i];
		if (sent)
			residual[i] = 0;
	}
}

/* --- all ranks ------------------------------------------------------------ */

static void update(struct trainer *t)
{
	float share = t->v->sums ? 1 : 1.0f / RANKS;
	float lr = (float)(t->v->ascends ? -t->v->lr : t->v->lr);

	for (size_t i = 0; i < t->count; i++) {
		t->velocity[i] = .9f * t->velocity[i] + share * t->sum[i];
		t->params[i] -= lr * t->velocity[i];
	}
}

static void train(struct trainer *t)
{
	struct gf_order order;
	size_t steps, epoch, step;

	gf_order_init(&order, t->data->count[GF_PART_TRAIN], 1, false);
	steps = gf_order_steps(&order, RANKS, BATCH);
	for (epoch = 0; epoch < EPOCHS; epoch++)
		for (step = 0; step < steps; step++) {
			memset(t->sum, 0, t->count * sizeof(*t->sum));
			for (int r = 0; r < RANKS; r++) {
				gradient(t, gf_order_slice(&order, epoch, step, RANKS, r, BATCH));
				contribute(t, r);
			}
			update(t);
		}
	gf_order_release(&order);
}

/* Weights that are no numbers answer nothing. */
static double accuracy(struct trainer *t)
{
	size_t count = t->data->count[GF_PART_TEST], right = 0, i;

	for (i = 0; i < count; i++) {
		size_t correct = 0;
		double loss;

		gf_dataset_batch(t->data, GF_PART_TEST, &i, 1, t->values, t->labels, NULL);
		if (!backend->forward(t->net, t->params, t->values, 1, 0, NULL) &&
		    !backend->loss(t->net, t->labels, NULL) &&
		    !backend->result(t->net, &loss, &correct, NULL) && isfinite(loss))
			right += correct;
	}
	return (double)right / (double)count;
}

static void run(const struct variant *v, const struct gf_model *m, const struct gf_dataset *d)
{
	struct trainer t = {.v = v, .model = m, .data = d};
	struct gf_error err = {""};
	double got;

	t.count = gf_model_param_count(m);
	t.params = gf_xcalloc(t.count * (4 + RANKS), sizeof(float));
	t.velocity = t.params + t.count;
	t.grads = t.velocity + t.count;
	t.sum = t.grads + t.count;
	t.residual = t.sum + t.count;
	t.values = gf_xcalloc(BATCH * gf_shape_elems(&d->shape), sizeof(float));
	t.labels = gf_xcalloc(BATCH, sizeof(int32_t));
	EXPECT(!backend->net_new(m, BATCH, &(struct gf_net_options){0}, &t.net, &err), "%s",
	       err.text);
	gf_net_init_params(m, 1, t.params);
	train(&t);
	got = accuracy(&t);
	if (prints)
		printf("%-24s %8.2f %%\n", v->name, 100 * got);
	EXPECT(got >= v->at_least && got <= v->at_most,
	       "%s: want an accuracy from %g to %g, got %g", v->name, v->at_least, v->at_most, got);
	backend->net_free(t.net);
	free(t.params);
	free(t.values);
	free(t.labels);
}

/* --- residuals ------------------------------------------------------------ */

/* Four ranks, two weights, top-1. The first weight's gradients are +10 and -10 by turns of the
 * ranks, so that their mean is 0; the second's is w - 1 everywhere. */
static float second_weight(bool keeps)
{
	float residual[RANKS][2] = {{0}}, w[2] = {0};

	for (int step = 0; step < 2000; step++) {
		float sum[2] = {0};

		for (int r = 0; r < RANKS; r++) {
			float *x = residual[r];
			int largest;

			x[0] += (r + step) % 2 ? 10.f : -10.f;
			x[1] += w[1] - 1;
			largest = fabsf(x[1]) > fabsf(x[0]);
			sum[largest] += x[largest];
			x[largest] = 0;
			if (!keeps)
				x[!largest] = 0;
		}
		for (int i = 0; i < 2; i++)
			w[i] -= .05f * sum[i] / RANKS;
	}
	return w[1];
}

static void test_residual(void)
{
	float kept = second_weight(true), forgotten = second_weight(false);

	EXPECT(fabsf(kept - 1) < .5f, "kept: %g", kept);
	EXPECT(forgotten == 0, "forgotten: %g", forgotten);
}

static void read_model(const char *path, struct gf_model *m)
{
	struct gf_error err = {""};
	struct gf_json *root = NULL;
	char *text = NULL;
	size_t size;
	int rc = gf_file_read(path, &text, &size, &err);

	if (!rc)
		rc = gf_json_parse(text, size, path, &root, &err);
	if (!rc)
		rc = gf_model_read(root, path, m, &err);
	EXPECT(rc == 0, "%s", err.text);
	gf_json_free(root);
	free(text);
}

int main(int argc, char **argv)
{
	static const struct gf_dataset_want any = {.seed = 1};
	struct gf_dataset data = {0};
	struct gf_model model = {0};
	struct gf_error err = {""};
	size_t i;

	prints = argc == 2 && strcmp(argv[1], "--table") == 0;
	test_residual();
	backend = gf_backend_find("ref");
	read_model("share/models/digits-mlp.json", &model);
	EXPECT(!gf_dataset_open("share/data/digits", &any, &data, &err), "%s", err.text);
	if (model.nlayers && data.format)
		for (i = 0; i < GF_ARRAY_LENGTH(variants); i++)
			run(&variants[i], &model, &data);
	gf_dataset_close(&data);
	gf_model_release(&model);
	return TEST_END();
}
