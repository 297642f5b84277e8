/* SPDX-License-Identifier: BSD-3-Clause */
/* Gradients in the host's memory: from their types to the pool's, and back. */
#include <string.h>

#include "exchange/callers_parts.h"
#include "gf_kernels.h"

/* Values that stay in cache on their way to another type. */
#define BLOCK_ELEMS ((size_t)2048)

static const struct gf_codec_fns *codec_of(enum gf_dtype dtype)
{
	return &gf_kernels()->codecs[gf_codec_number(gf_memory_codec(dtype))];
}

static void narrow(float *to, const double *from, size_t n)
{
	size_t i;

	for (i = 0; i < n; i++)
		to[i] = (float)from[i];
}

static void widen(double *to, const float *from, size_t n)
{
	size_t i;

	for (i = 0; i < n; i++)
		to[i] = from[i];
}

static size_t block_at(size_t at, size_t n)
{
	return n - at < BLOCK_ELEMS ? n - at : BLOCK_ELEMS;
}

void gf_memory_pack(struct gf_memory *m, size_t tensor)
{
	struct gf_memory_tensor *t = &m->tensors[tensor];
	const bool wide = m->messages[t->message].wide;
	const size_t n = gf_memory_elems(m, tensor);
	const size_t bytes = gf_dtype_bytes(t->dtype);
	void *to = gf_memory_place(m, tensor);
	float block[BLOCK_ELEMS];
	size_t at;

	if (t->packed)
		return;
	t->packed = true;
	if (!t->data) {
		memset(to, 0, n * (wide ? sizeof(double) : sizeof(float)));
		return;
	}
	if (wide && t->dtype == GF_F64)
		memcpy(to, t->data, n * bytes);
	else if (t->dtype == GF_F64)
		narrow(to, t->data, n);
	else if (!wide)
		codec_of(t->dtype)->decode(to, t->data, n, 0);
	for (at = 0; wide && t->dtype != GF_F64 && at < n; at += BLOCK_ELEMS) {
		codec_of(t->dtype)->decode(block, (char *)t->data + at * bytes, block_at(at, n), 0);
		widen((double *)to + at, block, block_at(at, n));
	}
	gf_memory_count(m, n * bytes);
}

void gf_memory_put(struct gf_memory *m, size_t tensor, size_t first, const float *from, float share,
		   size_t n)
{
	const struct gf_memory_tensor *t = &m->tensors[tensor];
	const size_t bytes = gf_dtype_bytes(t->dtype);
	char *to = (char *)t->data + first * bytes;
	float block[BLOCK_ELEMS], *values = block;
	size_t at, k, count;

	for (at = 0; at < n; at += count) {
		count = block_at(at, n);
		if (t->dtype == GF_F32)
			values = (float *)to + at;
		for (k = 0; !from && k < count; k++)
			values[k] = share;
		if (from)
			gf_kernels()->scale_f32(share, from + at, values, count);
		if (t->dtype == GF_F64)
			widen((double *)to + at, block, count);
		else if (t->dtype != GF_F32)
			codec_of(t->dtype)->encode(to + at * bytes, block, count, 0);
	}
	gf_memory_count(m, n * bytes);
}

void gf_memory_put_wide(struct gf_memory *m, size_t tensor)
{
	const struct gf_memory_tensor *t = &m->tensors[tensor];
	const double *from = gf_memory_place(m, tensor);
	const size_t bytes = gf_dtype_bytes(t->dtype);
	const size_t n = gf_memory_elems(m, tensor);
	float block[BLOCK_ELEMS];
	size_t at;

	if (t->dtype == GF_F64)
		memcpy(t->data, from, n * bytes);
	for (at = 0; t->dtype != GF_F64 && at < n; at += BLOCK_ELEMS) {
		narrow(block, from + at, block_at(at, n));
		codec_of(t->dtype)->encode((char *)t->data + at * bytes, block, block_at(at, n), 0);
	}
	gf_memory_count(m, n * bytes);
}
