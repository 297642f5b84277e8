/* SPDX-License-Identifier: BSD-3-Clause */
#include "trainer/optim/optimizer.h"

/*
 * To add an optimiser: one file here that steps a range of elements and names its arrays of state,
 * its settings and its defaults (optimizer.h), its declaration in optimizer.h, and a row below.
 * Checkpoints, exclusions, clipping, --optimizer, --list and the refusal of other optimisers'
 * options follow. A GPU computes it if the entry names one of the rules of trainer/update.c.
 * tests/unit/test_optim.c compares it with f64.
 */
/* clang-format off */
const struct gf_optimizer_ops *const gf_optimizers[] = {
	&gf_optimizer_sgd,
	&gf_optimizer_nesterov,
	&gf_optimizer_lars,
	&gf_optimizer_lars_paper,
	&gf_optimizer_adamw,
	NULL,
};
/* clang-format on */
