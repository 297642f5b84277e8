/* SPDX-License-Identifier: BSD-3-Clause */
/* The fake device's kernels of chunks: ref's, when their turn comes. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/heap.h"
#include "fake_parts.h"
#include "gf_kernels.h"

struct chunks {
	float *to;
	const float *from;
	double *norms;
	size_t n, elems;
	const uint32_t *chunks;
	size_t nchunks;
	const uint8_t *sent;
	const uint32_t *skip;
	float decay;
};

static size_t length(const struct chunks *c, size_t chunk)
{
	const size_t left = c->n - chunk * c->elems;

	return left < c->elems ? left : c->elems;
}

static void run_norms(void *ctx)
{
	const struct chunks *c = ctx;
	const struct gf_kernels *ref = gf_kernels_named("ref");

	for (size_t i = 0; i * c->elems < c->n; i++) {
		float *y = c->to + i * c->elems;

		c->norms[i] =
			c->from ? ref->add_sum_abs_f32(y, c->from + i * c->elems, length(c, i))
				: ref->sum_abs_f32(y, length(c, i));
	}
}

void fake_chunk_norms_f32(struct gf_gpu_stream *s, float *y, const float *x, size_t n,
			  size_t chunk_elems, double *norms)
{
	const struct chunks c = {.to = y, .from = x, .norms = norms, .n = n, .elems = chunk_elems};

	fake_enqueue_copy(s, run_norms, &c, sizeof(c));
}

/* Of a list that does not ascend, or leaves the pool, nothing is right. */
static size_t chunk_at(const struct chunks *c, size_t i)
{
	if (c->chunks[i] * c->elems >= c->n || (i && c->chunks[i] <= c->chunks[i - 1]))
		abort();
	return c->chunks[i];
}

static void run_gather(void *ctx)
{
	const struct chunks *c = ctx;

	for (size_t i = 0; i < c->nchunks; i++)
		memcpy(c->to + i * c->elems, c->from + chunk_at(c, i) * c->elems,
		       length(c, chunk_at(c, i)) * sizeof(float));
}

void fake_gather_chunks_f32(struct gf_gpu_stream *s, float *to, const float *from, size_t n,
			    size_t chunk_elems, const uint32_t *chunks, size_t nchunks)
{
	const struct chunks c = {.to = to,
				 .from = from,
				 .n = n,
				 .elems = chunk_elems,
				 .chunks = chunks,
				 .nchunks = nchunks};

	fake_enqueue_copy(s, run_gather, &c, sizeof(c));
}

static void run_keep(void *ctx)
{
	const struct chunks *c = ctx;

	for (size_t i = 0; i < c->n && !(c->skip && *c->skip); i++)
		c->to[i] = c->sent[i / c->elems] ? 0 : c->decay * c->from[i];
}

static void run_share(void *ctx)
{
	const struct gf_gpu_norms *o = ctx;
	bool bad = false;

	for (size_t i = 0; i < o->count; i++)
		if (!o->sent[i]) {
			o->shared[i] = (float)o->left[i];
			bad |= !isfinite(o->left[i]);
		}
	for (size_t i = 0; i < o->nchosen; i++) {
		o->shared[o->chosen[i]] = (float)(o->sums[i] * o->part);
		bad |= !isfinite(o->sums[i]);
	}
	if (bad)
		*o->bad = INFINITY;
}

void fake_share_norms(struct gf_gpu_stream *s, const struct gf_gpu_norms *o)
{
	fake_enqueue_copy(s, run_share, o, sizeof(*o));
}

void fake_keep_chunks_f32(struct gf_gpu_stream *s, const uint32_t *skip, float *residual,
			  const float *grad, size_t n, size_t chunk_elems, const uint8_t *sent,
			  float decay)
{
	const struct chunks c = {.to = residual,
				 .from = grad,
				 .n = n,
				 .elems = chunk_elems,
				 .sent = sent,
				 .skip = skip,
				 .decay = decay};

	fake_enqueue_copy(s, run_keep, &c, sizeof(c));
}
