/* SPDX-License-Identifier: BSD-3-Clause */
#include "nn/graph.h"

#include <errno.h>
#include <math.h>

/*
 * Softmax cross-entropy of one sample and its gradient by the logits, scaled.
 * The largest logit is subtracted first, so that no exponential overflows.
 * The first of equal logits is the answer.
 */
static double sample_loss(const float *logits, float *dlogits, size_t classes,
			  size_t label, float scale, size_t *answer)
{
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
	inverse = scale / (float)sum;
	for (size_t c = 0; c < classes; c++)
		dlogits[c] *= inverse;
	dlogits[label] -= scale;
	return log(sum) - (double)(logits[label] - logits[*answer]);
}

int gf_net_softmax_loss(struct gf_net *net, const int32_t *labels,
			struct gf_error *err)
{
	size_t classes = net->model->classes, hits = 0, answer;
	size_t count = net->batch * net->positions;
	float scale = 1.0f / (float)count;
	double sum = 0;
	int rc = gf_net_begin_loss(net, err);

	if (rc)
		return rc;
	for (size_t i = 0; i < count; i++)
		if (labels[i] < 0 || (size_t)labels[i] >= classes)
			return gf_net_bad_label(net, i, labels[i], err);
	for (size_t i = 0; i < count; i++) {
		sum += sample_loss(net->logits + i * classes,
				   net->dlogits + i * classes, classes,
				   (size_t)labels[i], scale, &answer);
		hits += answer == (size_t)labels[i];
	}
	net->stage = GF_NET_LOSS;
	net->loss = sum / (double)count;
	net->correct = hits;
	net->has_loss = true;
	return 0;
}

int gf_net_bad_label(const struct gf_net *net, size_t at, int32_t label,
		     struct gf_error *err)
{
	return gf_error_set(err, -EINVAL, "label %zu: want 0 to %zu, got %d",
			    at, net->model->classes - 1, label);
}

int gf_net_result(struct gf_net *net, double *loss, size_t *correct,
		  struct gf_error *err)
{
	if (!net->has_loss)
		return gf_error_set(err, -EINVAL,
				    "result: want a loss before it");
	*loss = net->loss;
	*correct = net->correct;
	return 0;
}
