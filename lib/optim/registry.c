/* SPDX-License-Identifier: BSD-3-Clause */
#include "optim/optimizers.h"

const struct gf_optimizer_ops *const gf_optimizers[] = {
	&gf_optimizer_sgd,        &gf_optimizer_nesterov, &gf_optimizer_lars,
	&gf_optimizer_lars_paper, &gf_optimizer_adamw,    NULL,
};
