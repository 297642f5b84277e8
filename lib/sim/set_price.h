/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef GF_SIM_SET_PRICE_H
#define GF_SIM_SET_PRICE_H

#include "doc/selection.h"
#include "sim/price.h"
#include "sim/step.h"

/*
 * The price of sets of sparse gradients: the transfers, by the links, and what
 * the runtime takes for any message beside its transfers. The latter is the
 * median by which measured all-reduces start up later than their closed forms
 * on the same links; 0 where one of both is unknown.
 */
double gf_price_call_s(const struct gf_fabric *f);

/* Fills in m's startup, price per byte, and what backward and it do to each
 * other, from its bytes; call_s is of gf_price_call_s. -ENOTSUP: nothing says
 * what a link costs. */
int gf_price_sets(const struct gf_fabric *f, enum gf_wire_kind kind,
		  double call_s, struct gf_sim_message *m,
		  struct gf_error *err);

/* What it takes to encode and decode the sets of a wire under a codec. */
double gf_price_codings_s(const struct gf_fabric *f, const struct gf_wire *wire,
			  const char *codec);

#endif
