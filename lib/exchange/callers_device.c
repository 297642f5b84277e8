/* SPDX-License-Identifier: BSD-3-Clause */
/* Gradients in a GPU's memory: the same on streams. */
#include "exchange/callers_parts.h"

static const struct gf_gpu_codec *codec_of(const struct gf_memory *m, enum gf_dtype dtype)
{
	return &m->env->place.gpu->kernels->codecs[gf_codec_number(gf_memory_codec(dtype))];
}

int gf_memory_pack_on(struct gf_memory *m, size_t tensor, struct gf_gpu_stream *q,
		      struct gf_error *err)
{
	struct gf_memory_tensor *t = &m->tensors[tensor];
	struct gf_gpu *gpu = m->env->place.gpu;
	const size_t n = gf_memory_elems(m, tensor);
	float *to = gf_memory_place(m, tensor);

	if (t->packed)
		return 0;
	t->packed = true;
	if (!t->data)
		return gpu->ops->zero(gpu, q, to, n * sizeof(*to), err);
	gf_memory_count(m, n * gf_dtype_bytes(t->dtype));
	if (t->dtype == GF_F32)
		return gpu->ops->copy(gpu, q, to, t->data, n * sizeof(*to), GF_GPU_WITHIN, err);
	codec_of(m, t->dtype)->decode(q, to, t->data, n, 0);
	return gpu->ops->check(gpu, err);
}

int gf_memory_put_on(struct gf_memory *m, size_t tensor, struct gf_gpu_stream *q,
		     struct gf_error *err)
{
	const struct gf_memory_tensor *t = &m->tensors[tensor];
	struct gf_gpu *gpu = m->env->place.gpu;
	const size_t n = gf_memory_elems(m, tensor);
	const float *from = gf_memory_place(m, tensor);

	gf_memory_count(m, n * gf_dtype_bytes(t->dtype));
	if (t->dtype == GF_F32)
		return gpu->ops->copy(gpu, q, t->data, from, n * sizeof(*from), GF_GPU_WITHIN, err);
	codec_of(m, t->dtype)->encode(q, t->data, from, n, 0);
	return gpu->ops->check(gpu, err);
}

int gf_memory_put_all_on(struct gf_memory *m, struct gf_gpu_stream *q, struct gf_error *err)
{
	const struct gf_select_env *env = m->env;
	const struct gf_gpu_kernels *kernels = env->place.gpu->kernels;
	const struct gf_pool *pool = &env->pools[m->slot];
	struct gf_select_sums sums;
	size_t i;
	int rc = 0;

	gf_select_sums(m->select, m->slot, &sums);
	/* one that lies in the pool is all of it */
	if (!sums.npieces || sums.pieces->grad != pool->data)
		rc = env->place.gpu->ops->zero(env->place.gpu, q, pool->data,
					       pool->count_elems * sizeof(float), err);
	if (rc)
		return rc;
	for (i = 0; i < sums.npieces; i++)
		kernels->scale_f32(q, sums.share, sums.pieces[i].grad,
				   pool->data + sums.pieces[i].first, sums.pieces[i].count_elems);
	kernels->spoil_f32(q, m->flag, pool->data, pool->count_elems);
	for (i = 0; i < pool->ntensors && !rc; i++)
		if (m->tensors[i].data)
			rc = gf_memory_put_on(m, i, q, err);
	return rc ? rc : env->place.gpu->ops->check(env->place.gpu, err);
}
