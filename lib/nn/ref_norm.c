/* SPDX-License-Identifier: BSD-3-Clause */
#include "nn/ref.h"

#include <math.h>

#include "nn/graph.h"

/*
 * Batch normalisation (Ioffe and Szegedy 2015), per channel over samples and places: out =
 * weight*(in - mean)/sqrt(variance + epsilon) + bias, with the batch's mean and (biased) variance
 * in training and the running ones else. saved: means, then variances. With xhat = (in - mean)/s, m
 * values:
 *	din = weight/s * (dout - mean(dout) - xhat*mean(dout*xhat))
 */
struct channel {
	const struct gf_ref_io *io;
	size_t c, channels, spatial;
};

static size_t at(const struct channel *ch, size_t n)
{
	return (n * ch->channels + ch->c) * ch->spatial;
}

static void statistics(const struct channel *ch, float *mean, float *variance)
{
	double count = (double)(ch->io->batch * ch->spatial);
	double sum = 0, squares = 0;

	for (size_t n = 0; n < ch->io->batch; n++)
		for (size_t x = 0; x < ch->spatial; x++)
			sum += ch->io->in[0][at(ch, n) + x];
	sum /= count;
	for (size_t n = 0; n < ch->io->batch; n++)
		for (size_t x = 0; x < ch->spatial; x++) {
			double d = ch->io->in[0][at(ch, n) + x] - sum;

			squares += d * d;
		}
	*mean = (float)sum;
	*variance = (float)(squares / count);
}

static void normalise(const struct channel *ch, float mean, float variance)
{
	const struct gf_ref_io *io = ch->io;
	float inverse = 1 / sqrtf(variance + (float)io->layer->epsilon);
	float scale = io->weight[ch->c] * inverse;

	for (size_t n = 0; n < io->batch; n++)
		for (size_t x = 0; x < ch->spatial; x++) {
			size_t i = at(ch, n) + x;

			io->out[i] = scale * (io->in[0][i] - mean) + io->bias[ch->c];
		}
}

static void forward(const struct gf_ref_io *io)
{
	size_t channels = io->layer->in.dims[0];
	float *saved = io->saved;

	for (size_t c = 0; c < channels; c++) {
		struct channel ch = {io, c, channels, gf_shape_spatial(&io->layer->in)};

		if (io->training) {
			statistics(&ch, &saved[c], &saved[channels + c]);
			normalise(&ch, saved[c], saved[channels + c]);
		} else {
			normalise(&ch, io->running[c], io->running[channels + c]);
		}
	}
}

static void channel_backward(const struct channel *ch, float mean, float variance)
{
	const struct gf_ref_io *io = ch->io;
	double inverse = 1 / sqrt((double)variance + io->layer->epsilon);
	double count = (double)(io->batch * ch->spatial);
	double sum = 0, dot = 0;

	for (size_t n = 0; n < io->batch; n++)
		for (size_t x = 0; x < ch->spatial; x++) {
			size_t i = at(ch, n) + x;

			sum += io->dout[i];
			dot += io->dout[i] * (io->in[0][i] - mean) * inverse;
		}
	io->dbias[ch->c] = (float)sum;
	io->dweight[ch->c] = (float)dot;
	if (!io->din[0])
		return;
	for (size_t n = 0; n < io->batch; n++)
		for (size_t x = 0; x < ch->spatial; x++) {
			size_t i = at(ch, n) + x;
			double xhat = (io->in[0][i] - mean) * inverse;

			io->din[0][i] += (float)(io->weight[ch->c] * inverse *
						 (io->dout[i] - sum / count - xhat * dot / count));
		}
}

static void backward(const struct gf_ref_io *io)
{
	size_t channels = io->layer->in.dims[0];
	const float *saved = io->saved;

	for (size_t c = 0; c < channels; c++) {
		struct channel ch = {io, c, channels, gf_shape_spatial(&io->layer->in)};

		channel_backward(&ch, saved[c], saved[channels + c]);
	}
}

static size_t saved_bytes(const struct gf_layer *l, size_t batch)
{
	(void)batch;
	return 2 * l->in.dims[0] * sizeof(float);
}

const struct gf_ref_layer gf_ref_batchnorm = {
	.forward = forward,
	.backward = backward,
	.saved_bytes = saved_bytes,
};
