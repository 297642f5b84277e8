/* SPDX-License-Identifier: BSD-3-Clause */
#include "nn/graph.h"

#include <math.h>
#include <string.h>

/* One of the labels of a pass. */
struct target {
	size_t classes, label;
	float scale; /* of the gradient */
};

/*
 * Softmax cross-entropy of one sample and its gradient by the logits, scaled. The largest logit is
 * subtracted first, so that no exponential overflows.
 * The first of equal logits is the answer.
 */
static double sample_loss(const struct target *t, const float *logits, float *dlogits,
			  size_t *answer)
{
	const size_t classes = t->classes;
	double sum = 0;
	float inverse;

	*answer = 0;
	for (size_t c = 1; c < classes; c++)
		if (logits[c] > logits[*answer])
			*answer = c;
	for (size_t c = 0; c < classes; c++) {
		dlogits[c] = expf(logits[c] - logits[*answer]);
		sum += dlogits[c];
	}
	inverse = t->scale / (float)sum;
	for (size_t c = 0; c < classes; c++)
		dlogits[c] *= inverse;
	dlogits[t->label] -= t->scale;
	return log(sum) - (double)(logits[t->label] - logits[*answer]);
}

int gf_net_softmax_loss(struct gf_net *net, const int32_t *labels, struct gf_error *err)
{
	size_t classes = net->model->classes, hits = 0, answer;
	const size_t rows = net->batch * net->positions;
	const size_t count = net->batch * net->labels;
	struct target target = {
		.classes = classes,
		.scale = 1.0f / (float)count,
	};
	double sum = 0;
	int rc = gf_net_begin_loss(net, err);

	if (rc)
		return rc;
	for (size_t i = 0; i < rows; i++)
		if (labels[i] != GF_NO_LABEL && (labels[i] < 0 || (size_t)labels[i] >= classes))
			return gf_net_bad_label(net, i, labels[i], err);
	for (size_t i = 0; i < rows; i++) {
		const float *logits = net->logits + i * classes;
		float *dlogits = net->dlogits + i * classes;

		if (labels[i] == GF_NO_LABEL) {
			memset(dlogits, 0, classes * sizeof(*dlogits));
			continue;
		}
		target.label = (size_t)labels[i];
		sum += sample_loss(&target, logits, dlogits, &answer);
		hits += answer == target.label;
	}
	net->stage = GF_NET_LOSS;
	net->loss = sum / (double)count;
	net->correct = hits;
	net->has_loss = true;
	return 0;
}

int gf_net_bad_label(const struct gf_net *net, size_t at, int32_t label, struct gf_error *err)
{
	return gf_error_set(err, -EINVAL, "label %zu: want 0 to %zu, got %d", at,
			    net->model->classes - 1, label);
}

int gf_net_result(struct gf_net *net, double *loss, size_t *correct, struct gf_error *err)
{
	if (!net->has_loss)
		return gf_error_set(err, -EINVAL, "result: want a loss before it");
	*loss = net->loss;
	*correct = net->correct;
	return 0;
}
