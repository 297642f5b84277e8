/* SPDX-License-Identifier: BSD-3-Clause */
#include "nn/gpu_net.h"

/* The layers by type, and what they share. */
#define LAYER(NAME, name) [GF_LAYER_##NAME] = &gf_gpu_##name,
const struct gf_gpu_layer *const gf_gpu_layers[GF_LAYER_NTYPES] = {GF_COMPUTED_LAYERS(LAYER)};

struct gf_gpu_view gf_gpu_view_of(const struct gf_gpu_net *g, const struct gf_shape *s,
				  size_t batch)
{
	const size_t inner = gf_shape_spatial(s);
	struct gf_gpu_view v = {
		.dtype = g->dtype,
		.outer = batch * gf_shape_rows(s),
		.channels = s->rank == 2 ? s->dims[1] : s->dims[0],
		.inner = inner,
	};

	if (g->channels_last) {
		v.outer *= inner;
		v.inner = 1;
	}
	return v;
}

void gf_gpu_from_plain(const struct gf_gpu_net *g, const float *from, void *to,
		       const size_t sizes[3])
{
	const struct gf_gpu_permute p = {
		.from_type = GF_F32,
		.to_type = g->dtype,
		.from = from,
		.to = to,
		.outer = sizes[0],
		.a = g->channels_last ? sizes[1] : sizes[1] * sizes[2],
		.b = g->channels_last ? sizes[2] : 1,
		.scale = 1,
	};

	g->kernels->permute(g->stream, &p);
}

const void *gf_gpu_weight(const struct gf_gpu_io *io, size_t which, size_t at)
{
	return io->g->dtype == GF_F32 ? (const void *)io->param[which]
				      : (const char *)io->weight + at;
}
