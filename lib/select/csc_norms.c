/* SPDX-License-Identifier: BSD-3-Clause */
/* Norms of chunks: taken while messages move, and shared by ranks, with a word
 * on gradients that are not finite. */
#include "select/csc.h"

#include <math.h>
#include <string.h>

#include "gf_kernels.h"
#include "select/csc.h"
#include "select/finite.h"

/* A rank's bad gradient as numbers that f32 holds exactly: 1 + the high, the
 * middle and the low part of its element; zeros: none. */
#define BAD_PARTS GF_CSC_BAD_PARTS
#define BAD_BITS  21

void gf_csc_measure(struct gf_csc_step *s, size_t message)
{
	const struct gf_csc *c = s->csc;
	const float *from = s->work[message].data;
	size_t i, n;

	for (i = s->first_chosen[message]; i < s->first_chosen[message + 1];
	     i++, from += n) {
		n = gf_csc_chunk_count(c, s->chosen[i]);
		s->norms[s->chosen[i]] = gf_kernels()->sum_abs_f32(from, n);
	}
}

bool gf_csc_accumulate(struct gf_csc_step *s, size_t nready)
{
	const struct gf_csc *c = s->csc;
	size_t chunk, n;
	float *g;

	if (s->taken == s->nwaiting)
		return false;
	chunk = s->waiting[s->taken];
	if (gf_csc_chunk_last_tensor(c, chunk) >= nready)
		return false;
	n = gf_csc_chunk_count(c, chunk);
	g = s->data + gf_csc_chunk_first(c, chunk);
	s->norms[chunk] =
		c->empty[chunk]
			? gf_kernels()->sum_abs_f32(g, n)
			: gf_kernels()->add_sum_abs_f32(
				  g, c->history + gf_csc_chunk_first(c, chunk),
				  n);
	s->taken++;
	return true;
}

/* The lower of `least` and the chunk's first element that is not finite. */
static size_t bad_in(const struct gf_csc_step *s, size_t chunk,
		     const float *values, size_t least)
{
	size_t n = gf_csc_chunk_count(s->csc, chunk), at;

	if (isfinite(s->norms[chunk]))
		return least;
	at = values ? gf_finite_prefix(values, n) : 0;
	if (at == n || gf_csc_chunk_first(s->csc, chunk) + at >= least)
		return least;
	return gf_csc_chunk_first(s->csc, chunk) + at;
}

/* The first element whose gradient is not finite, of the sums and of what
 * waits on this rank; count_elems: none. */
static size_t find_bad(const struct gf_csc_step *s)
{
	const struct gf_csc *c = s->csc;
	size_t least = c->layout->count_elems, i, chunk;

	for (i = 0; i < s->nchosen; i++) {
		chunk = s->chosen[i];
		least = bad_in(s, chunk,
			       s->dense ? s->data + gf_csc_chunk_first(c, chunk)
					: s->packed + i * c->chunk_elems,
			       least);
	}
	for (i = 0; i < s->nwaiting; i++) {
		chunk = s->waiting[i];
		if (isfinite(s->norms[chunk]))
			continue;
		least = bad_in(s, chunk,
			       s->fetch
				       ? s->fetch(s->fetch_ctx, chunk)
				       : s->data + gf_csc_chunk_first(c, chunk),
			       least);
	}
	return least;
}

size_t gf_csc_shared_elems(const struct gf_csc *c)
{
	return c->nchunks + BAD_PARTS * (size_t)c->ranks;
}

void gf_csc_share(struct gf_csc_step *s, int rank)
{
	const struct gf_csc *c = s->csc;
	float *marks = s->shared + c->nchunks;
	double part = c->means ? 1 : 1.0 / c->ranks;
	size_t i, bad;

	if (s->dense)
		for (i = 0; i < c->nchunks; i++)
			s->norms[i] = gf_kernels()->sum_abs_f32(
				s->data + gf_csc_chunk_first(c, i),
				gf_csc_chunk_count(c, i));
	/* Every rank has the sum of an important chunk: they share it. As many
	 * means make up the sum. */
	for (i = 0; i < c->nchunks; i++)
		s->shared[i] = (float)s->norms[i];
	for (i = 0; i < s->nchosen; i++)
		s->shared[s->chosen[i]] =
			(float)(s->norms[s->chosen[i]] * part);
	memset(marks, 0, BAD_PARTS * (size_t)c->ranks * sizeof(*marks));
	bad = find_bad(s);
	if (bad == c->layout->count_elems)
		return;
	marks += BAD_PARTS * rank;
	marks[0] = 1 + (float)(bad >> 2 * BAD_BITS);
	marks[1] = (float)(bad >> BAD_BITS & (((size_t)1 << BAD_BITS) - 1));
	marks[2] = (float)(bad & (((size_t)1 << BAD_BITS) - 1));
}

size_t gf_csc_bad(const struct gf_csc_step *s)
{
	const float *marks = s->shared + s->csc->nchunks;
	size_t first = s->csc->layout->count_elems, at;
	int r;

	for (r = 0; r < s->csc->ranks; r++, marks += BAD_PARTS) {
		if (marks[0] < 1)
			continue;
		at = (size_t)(marks[0] - 1) << 2 * BAD_BITS |
		     (size_t)marks[1] << BAD_BITS | (size_t)marks[2];
		if (at < first)
			first = at;
	}
	return first;
}
