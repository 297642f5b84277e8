/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef GF_SELECTIONS_SELECT_EF21_H
#define GF_SELECTIONS_SELECT_EF21_H

#include "doc/selections/selection.h"

/*
 * ef21: error feedback of 2021 (Richtarik, Sokolov, Fatkhullin: EF21: A New,
 * Simpler, Theoretically Better, and Practically Faster Error Feedback, NeurIPS
 * 2021, Algorithm 2), with the k largest elements as its compressor. A rank
 * sends the change of an estimate of its velocity. Nothing waits to be sent
 * late: a rank has no residual.
 *
 * A gradient of few samples is mostly noise, and k elements cannot follow it.
 * The velocity is smoother, so momentum m comes before the compressor
 * (Fatkhullin, Tyurin, Richtarik: Momentum Provably Improves Error Feedback!,
 * NeurIPS 2023, Algorithm 1; here v is 1/(1 - m) times theirs, as SGD has it),
 * and the update adds none. Without momentum v is the gradient.
 *
 * Step t on each of P ranks, for every message of n elements (v, the velocity,
 * h, this rank's estimate of it, and s, the sum of h over ranks, begin at 0):
 *	v = m v + gradient
 *	c = the k largest |v - h|, k = max(1, floor(density * n))
 *	h = h + c
 *	s = s + (sum over ranks of c)
 *	w = w - rate * s / P
 *
 * On the wire: one set of k entries per rank and message, all of them gathered,
 * as topk sends them (doc/selections/select_topk.h), 8 k bytes. For n = 4,
 *density 1/4, P = 1, m = 0, gradients that stay (4, -2, 1, 0): the first step
 *sends 0: 4, and s is (4, 0, 0, 0); the second sends 1: -2, and s is (4, -2, 0,
 *0); from the third on s is the gradient, where topk would still apply single
 *elements by turns.
 *
 * On another number P' of ranks every h and v is the mean of those before, and
 * s is s P'/P, their sum.
 */
struct gf_ef21_params {
	double density;           /* k/n, (0, 1] */
	double *warmup_densities; /* of the first epochs */
	size_t nwarmup;
	char *extra; /* x- keys */
};

extern const struct gf_select_plan gf_select_plan_ef21;

/* NULL: another selection; borrowed. */
static inline const struct gf_ef21_params *gf_ef21_params(const struct gf_selection *s)
{
	return s->plan == &gf_select_plan_ef21 ? s->params : NULL;
}

#endif
