/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef GF_SIM_PRICE_PARTS_H
#define GF_SIM_PRICE_PARTS_H

#include "sim/price.h"

/* The price of a message of f32 by its algorithm's own form on these levels;
 * -ENOTSUP: it has none. */
int gf_price_closed_form(const struct gf_fabric *f, const struct gf_priced *m,
			 const struct gf_cost_net *net, struct gf_price *price,
			 struct gf_error *err);

#endif
