/* SPDX-License-Identifier: BSD-3-Clause */
#include "nn/ref.h"

#include <string.h>

#include "base/rng.h"

/*
 * Dropout (Srivastava et al. 2014), scaled in training so that evaluation passes values through:
 * each is zero with probability `rate` (in steps of 2^-16), else divided by 1 - rate. The values
 * that a sample loses depend on the seed, the layer and the sample's number only. `saved` has one
 * byte per value.
 */
#define FIRST_STREAM 16 /* of gf_rng_init; lower ones have other uses */
#define SAMPLE_BITS  40

static void draw(const struct gf_ref_io *io, size_t n, unsigned char *keeps, size_t elems)
{
	const uint64_t stream =
		(uint64_t)(FIRST_STREAM + io->index) << SAMPLE_BITS | (io->net->first_sample + n);
	const unsigned limit = (unsigned)(io->layer->rate * 65536);
	struct gf_rng rng;
	uint64_t bits = 0;

	gf_rng_init(&rng, io->net->dropout_seed, stream);
	for (size_t i = 0; i < elems; i++, bits >>= 16) {
		if (i % 4 == 0)
			bits = gf_rng_u64(&rng);
		keeps[i] = (bits & 0xffff) >= limit;
	}
}

static void forward(const struct gf_ref_io *io)
{
	const size_t elems = gf_shape_elems(&io->layer->out);
	const float scale = 1 / (1 - (float)io->layer->rate);
	unsigned char *keeps = io->saved;

	if (!io->training) {
		memcpy(io->out, io->in[0], io->batch * elems * sizeof(float));
		return;
	}
	for (size_t n = 0; n < io->batch; n++)
		draw(io, n, keeps + n * elems, elems);
	for (size_t i = 0; i < io->batch * elems; i++)
		io->out[i] = keeps[i] ? io->in[0][i] * scale : 0;
}

static void backward(const struct gf_ref_io *io)
{
	const size_t count = io->batch * gf_shape_elems(&io->layer->out);
	const float scale = 1 / (1 - (float)io->layer->rate);
	const unsigned char *keeps = io->saved;

	for (size_t i = 0; io->din[0] && i < count; i++)
		if (keeps[i])
			io->din[0][i] += io->dout[i] * scale;
}

static size_t saved_bytes(const struct gf_layer *l, size_t batch)
{
	return batch * gf_shape_elems(&l->out);
}

const struct gf_ref_layer gf_ref_dropout = {
	.forward = forward,
	.backward = backward,
	.saved_bytes = saved_bytes,
};
