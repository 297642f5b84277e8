/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef GF_COST_PRIMITIVES_H
#define GF_COST_PRIMITIVES_H

#include <stddef.h>

/*
 * The alpha-beta-gamma model (Hockney 1994; Thakur, Rabenseifner, Gropp 2005):
 * a round that moves m bytes costs alpha + beta*m, reducing them gamma*m.
 */
struct gf_link_cost {
	double alpha_s;           /* per round */
	double beta_s_per_byte;   /* transfer */
	double gamma_s_per_byte;  /* local reduction */
};

/*
 * A network of levels, innermost first. sizes[i] groups meet at level i; the
 * ranks inside one group one level down share link[i]'s bandwidth (that is
 * what a topology's bandwidth means). nlevels = 1: uniform.
 */
struct gf_net_cost {
	size_t nlevels;
	const int *sizes;
	const struct gf_link_cost *links;
};

/* One round of m bytes on a link, with and without reduction. */
double gf_cost_send_s(const struct gf_link_cost *link, double bytes);
double gf_cost_send_reduce_s(const struct gf_link_cost *link, double bytes);

#endif
