/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef GF_OPTIM_OPTIMIZERS_H
#define GF_OPTIM_OPTIMIZERS_H

#include "optim/optimizer.h"

/* The optimisers of registry.c. */
extern const struct gf_optimizer_ops gf_optimizer_sgd;
extern const struct gf_optimizer_ops gf_optimizer_nesterov;
extern const struct gf_optimizer_ops gf_optimizer_lars;

#endif
