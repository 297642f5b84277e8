/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef GF_PLANNER_MENU_H
#define GF_PLANNER_MENU_H

#include <stddef.h>

#include "base/error.h"
#include "doc/plan.h"
#include "planner/policy.h"
#include "sim/price.h"

/*
 * The ways in which one message can be sent: every algorithm (with its
 * decomposition factors) times every allowed codec. Each costs
 * startup_s + per_byte_s * bytes alone, bytes counted in memory.
 */
struct gf_option {
	const char *algorithm; /* borrowed from the network or the registry */
	const char *codec;
	struct gf_stage *stages; /* owned, names static; or none */
	size_t nstages;
	double startup_s, per_byte_s;
	double wire_ratio; /* bytes on the wire per byte in memory */
	const struct gf_contention *contention; /* borrowed; or NULL */
	enum gf_price_origin origin;
};

/*
 * envelope[k] is the cheapest option for messages of from_bytes[k] up to
 * from_bytes[k+1]: the minimum of straight lines is concave, so each option
 * appears at most once and their slopes fall.
 * choices are those worth trying where messages share the network: all that no
 * other replaces in startup, slope and contention, or where these are too many
 * the envelope.
 */
struct gf_menu {
	struct gf_option *options;
	size_t noptions;
	size_t *envelope;
	double *from_bytes;
	size_t nenvelope;
	size_t *choices; /* indices into options */
	size_t nchoices;
	struct gf_derived derived; /* that the options borrow */
};

/* What a problem's messages are priced on. */
struct gf_fabric gf_problem_fabric(const struct gf_problem *in);

/* -EINVAL, -ENOTSUP: no option is left, with the reason. */
int gf_menu_init(struct gf_menu *m, const struct gf_problem *in,
		 struct gf_error *err);
void gf_menu_release(struct gf_menu *m);

/* The cheapest option for a message of its own (an index into options). */
size_t gf_menu_pick(const struct gf_menu *m, double bytes);
/* What that costs. */
double gf_menu_cost_s(const struct gf_menu *m, double bytes);

#endif
