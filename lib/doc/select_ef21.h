/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef GF_DOC_SELECT_EF21_H
#define GF_DOC_SELECT_EF21_H

#include "doc/selection.h"

/*
 * ef21: error feedback of 2021 (Richtarik, Sokolov, Fatkhullin: EF21: A New,
 * Simpler, Theoretically Better, and Practically Faster Error Feedback, NeurIPS
 * 2021, Algorithm 2), with the k largest elements as its compressor. A rank
 * sends the change of an estimate of its gradient. Nothing waits to be sent
 * late: a rank has no residual.
 *
 * Step t on each of P ranks, for every message of n elements (h, the estimate
 * of this rank's gradient, and s, the sum of h over ranks, begin at 0):
 *	c = the k largest |gradient - h|, k = max(1, floor(density * n))
 *	h = h + c
 *	s = s + (sum over ranks of c)
 *	w = w - rate * s / P
 *
 * On the wire: one set of k entries per rank and message, all of them gathered,
 * as topk sends them (doc/select_topk.h), 8 k bytes. For n = 4, density 1/4,
 * P = 1, gradients that stay (4, -2, 1, 0): the first step sends 0: 4, and s is
 * (4, 0, 0, 0); the second sends 1: -2, and s is (4, -2, 0, 0); from the third
 * on s is the gradient, where topk would still apply single elements by turns.
 *
 * On another number P' of ranks every h is the mean of those before, and s is
 * s P'/P, their sum.
 */
struct gf_ef21_params {
	double density;           /* k/n, (0, 1] */
	double *warmup_densities; /* of the first epochs */
	size_t nwarmup;
	char *extra; /* x- keys */
};

extern const struct gf_select_plan gf_select_plan_ef21;

/* NULL: another selection; borrowed. */
const struct gf_ef21_params *gf_ef21_params(const struct gf_selection *s);

#endif
