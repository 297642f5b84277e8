/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef GF_MEASURE_GAMMA_H
#define GF_MEASURE_GAMMA_H

#include "base/text.h"
#include "measure/curve.h"
#include "doc/profile.h"
#include "doc/topology.h"

/*
 * gamma_n at a few sizes. n equal messages at once take
 * startup + gamma_n * per_byte * bytes; one alone takes
 * startup + per_byte * bytes. So
 * gamma_n = 1 + (T_n - T_1) / (per_byte * bytes), whatever both of them spend
 * on meeting and waking up. Sizes whose transfer is shorter than two startups
 * tell nothing about gamma_n and are left out. Sizes for which there is no time
 * are left out, too. A per-byte cost of 0 leaves no contention to find.
 * Collective; the curve is fitted already. sitting_s is the time that a sitting
 * takes besides its messages.
 */
int gf_measure_contention(const struct gf_measure_curve_config *config,
			  const struct gf_measure_subject *subject,
			  double sitting_s, struct gf_measure_curve *curve,
			  struct gf_error *err);

/*
 * Messages that travel together are no faster than the network. An all-reduce
 * of m bytes sends at least 2 (g - 1) / g * m through the link of each of g
 * groups of ranks (Patarasuk and Yuan 2009). n all-reduces at once pass this
 * link as n messages on that level alone do. So on each level between hosts
 *
 *	gamma_n >= 2 (g - 1) / g * beta / per_byte * gamma_n of the level
 *
 * A gamma measured below that, on a machine with other work for example, is
 * raised to it, though not above n; a remark says so. net->levels are measured,
 * `levels` are what they were measured on, local_ranks share a host.
 */
void gf_measure_contention_floor(const struct gf_network *net,
				 const struct gf_level *levels, size_t nlevels,
				 int local_ranks,
				 struct gf_allreduce_cost *cost,
				 struct gf_text *remarks);

#endif
