/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef GF_SELECTIONS_SELECT_DGC_H
#define GF_SELECTIONS_SELECT_DGC_H

#include "doc/selections/selection.h"

/*
 * dgc: Deep Gradient Compression (Lin, Han, Mao, Wang, Dally: Deep Gradient
 * Compression: Reducing the Communication Bandwidth for Distributed Training,
 * ICLR 2018). Each rank sends the k largest elements of a velocity that it
 * gathers over steps; the sets of all ranks are gathered and applied.
 *
 * Step t on each of P ranks, for every message of n elements (Algorithm 4 of
 * the paper; u and v begin at 0; m is the momentum):
 *	g = gradient, of the loss that is the mean over this rank's samples
 *	if clip_norm > 0 and |g| > clip_norm * P^-1/2, over all messages:
 *		g = g * clip_norm * P^-1/2 / |g|	(local clipping)
 *	u = m u + g					(momentum correction)
 *	v = v + u
 *	the k largest |v| are sent, k = max(1, floor(density * n))
 *	v = 0 where an element was sent
 *	u = 0 where an element was sent, with masking
 *	w = w - rate * (sum over ranks of the sets) / P
 * The update has no momentum of its own: the velocity carries it.
 *
 * On the wire: one set of k entries per rank and message, all of them gathered,
 * as topk sends them (doc/selections/select_topk.h): k indices of 32 bits, then
 *k f32, 8 k bytes. For n = 6, density 1/3, m = 0.5, without clipping, one
 *rank's g = (1, -4, 2, 0, 3, 1)	u = v = g	sent: 1: -4, 4: 3 leaves
 *v = (1, 0, 2, 0, 0, 1) and, with masking, u = (1, 0, 2, 0, 0, 1). In the next
 *step the same g makes u = (1.5, -4, 3, 0, 3, 1.5) and v = (2.5, -4, 5, 0,
 *3, 2.5), of which 1: -4 and 2: 5 are sent.
 */
struct gf_dgc_params {
	double density;           /* k/n, (0, 1] */
	double *warmup_densities; /* of the first epochs */
	size_t nwarmup;
	double clip_norm; /* of the sum over ranks; 0: no clipping */
	double momentum;  /* [0, 1); NAN: the optimiser's */
	bool masking;
	char *extra; /* x- keys */
};

extern const struct gf_select_plan gf_select_plan_dgc;

/* NULL: another selection; borrowed. */
static inline const struct gf_dgc_params *gf_dgc_params(const struct gf_selection *s)
{
	return s->plan == &gf_select_plan_dgc ? s->params : NULL;
}

#endif
