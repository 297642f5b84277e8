/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef GF_OPTIM_OPTIMIZERS_H
#define GF_OPTIM_OPTIMIZERS_H

#include <math.h>

#include "optim/optimizer.h"

#define GF_OPTIM_NO_DEFAULTS                                                   \
	{                                                                      \
		NAN, NAN, NAN, NAN, NAN                                        \
	}

/* The optimisers of registry.c. */
extern const struct gf_optimizer_ops gf_optimizer_sgd;
extern const struct gf_optimizer_ops gf_optimizer_nesterov;
extern const struct gf_optimizer_ops gf_optimizer_lars;
extern const struct gf_optimizer_ops gf_optimizer_lars_paper;
extern const struct gf_optimizer_ops gf_optimizer_adamw;

#endif
