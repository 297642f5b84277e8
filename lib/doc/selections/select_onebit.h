/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef GF_SELECTIONS_SELECT_ONEBIT_H
#define GF_SELECTIONS_SELECT_ONEBIT_H

#include "doc/selections/selection.h"

/*
 * onebit: the sign of every element and one scale per chunk, with error feedback (Seide, Fu,
 * Droppo, Li, Yu: 1-Bit Stochastic Gradient Descent and its Application to Data-Parallel
 * Distributed Training of Speech DNNs, Interspeech 2014; the scale is that of Karimireddy, Rebjock,
 * Stich, Jaggi: Error Feedback Fixes SignSGD and other Gradient Compression Schemes, ICML 2019).
 *
 * Step t on each of P ranks, for every message of n elements (e begins at 0):
 *	x = e + gradient
 *	per chunk c of chunk_elems elements, the last one short:
 *		s_c = (sum of |x_i| over the chunk) / (elements of the chunk)
 *	q_i = -s_c if x_i < 0, else s_c
 *	e = x - q
 *	w = w - rate * (sum over ranks of q) / P
 *
 * On the wire: one set per rank and message, all of them gathered. A set is gf_onebit_chunks(n)
 * scales as f32, then ceil(n/32) words of 32 bits; bit i%32 of word i/32 is 1 where x_i < 0, and
 * bits after the last element are 0. For n = 5 and chunks of 4, x = (1, -2, 3, 0, -4) goes out as
 * the scales 1.5 and 4 and the word 0x12, 12 bytes; q = (1.5, -1.5, 1.5, 1.5, -4) and
 * e = (-0.5, -0.5, 1.5, -1.5, 0).
 */
struct gf_onebit_params {
	size_t chunk_elems;
	char *extra; /* x- keys */
};

extern const struct gf_select_plan gf_select_plan_onebit;

/* NULL: another selection; borrowed. */
static inline const struct gf_onebit_params *gf_onebit_params(const struct gf_selection *s)
{
	return s->plan == &gf_select_plan_onebit ? s->params : NULL;
}

/* How many chunks n elements make, and the bytes of their set. */
size_t gf_onebit_chunks(const struct gf_onebit_params *p, size_t count_elems);
size_t gf_onebit_set_bytes(const struct gf_onebit_params *p, size_t count_elems);

#endif
