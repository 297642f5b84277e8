/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef GF_SELECT_SELECTIONS_H
#define GF_SELECT_SELECTIONS_H

#include "select/select.h"

/*
 * The selections that run: name, the `gf_select_...` of gradients on the host,
 * and the entry of gradients on a GPU, or NULL. To add one:
 *	lib/doc/select_NAME.[ch]	equations, keys, traits, what it sends;
 *					a row in lib/doc/select_registry.c
 *	lib/select/NAME.c		what it does (select.h); a row here
 *	share/schema, man/gf-plan.5	its keys, and a sentence
 *	tests/data/selections.txt	its keys in tests, which walk that file
 * A selection without a row here can be planned and simulated, and is refused
 * where it would run.
 */
/* clang-format off */
#define GF_SELECTIONS(X) \
	X(dense, dense, &gf_select_dense) \
	X(csc, csc, &gf_select_csc_gpu) \
	X(topk, topk, &gf_select_topk_gpu) \
	X(gtopk, topk, &gf_select_topk_gpu) \
	X(dgc, dgc, NULL) \
	X(ef21, ef21, NULL) \
	X(onebit, onebit, NULL) \
	X(powersgd, powersgd, NULL) \
	X(randomk, randomk, NULL)
/* clang-format on */

#define GF_DECLARE_SELECTION(name, host, gpu)                                  \
	extern const struct gf_select_ops gf_select_##host;

GF_SELECTIONS(GF_DECLARE_SELECTION)
extern const struct gf_select_ops gf_select_csc_gpu, gf_select_topk_gpu;

#endif
