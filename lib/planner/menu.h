/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef GF_PLANNER_MENU_H
#define GF_PLANNER_MENU_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "documents/plan.h"
#include "planner/policies/policy.h"
#include "simulator/prices/price.h"

/*
 * The ways in which one message can be sent: every algorithm (with its decomposition factors) times
 * every allowed codec. Each costs startup_s + per_byte_s * bytes alone, bytes counted in memory. If
 * a way has several lines, each is an option for the sizes for which it holds; they stand
 * together.
 *
 * Of a problem with halves, an option's line is that of a reduce-scatter and an all-gather
 * together, and holds for the sizes for which both do.
 */
struct gf_option {
	const char *algorithm; /* borrowed from the network or the registry */
	const char *codec;
	struct gf_stage *stages; /* owned, names static; or none */
	size_t nstages;
	struct gf_line line, gather;             /* gather: of it, with halves; else no time */
	double load_per_byte_s;                  /* simulator/step.h; bytes in memory */
	double wire_ratio;                       /* bytes on the wire per byte in memory */
	const struct gf_contention *contention;  /* borrowed; or NULL */
	const struct gf_beside_backward *mutual; /* borrowed; or NULL */
	enum gf_price_origin origin;
	bool final;  /* replayed, if it can be */
	bool halved; /* halves are taken for half of an all-reduce */
};

/*
 * envelope[k] is the cheapest option for messages of from_bytes[k] up to from_bytes[k+1]. With one
 * line per way the envelope is concave: each option appears at most once, and slopes fall. With
 * several lines it may jump up, and then one message may cost more than two halves of it; or it may
 * fall, and then one message may cost more than a longer one. least_s[k] is the least cost of all
 * messages of from_bytes[k] and more.
 *
 * choices are the options worth trying when messages share the network, or when halves are not
 * alike: all that no other option replaces in sizes, startup, slope and contention, of each half.
 * If these are too many, they are the envelope's options, unless halves are not alike.
 *
 * floors are two lines below each way's cost, for gf_menu_floor_s.
 */
struct gf_menu_floor {
	/* tight for the smallest, and for the largest messages */
	struct gf_line low, high;
};

struct gf_menu {
	struct gf_option *options;
	size_t noptions;
	size_t *envelope;
	double *from_bytes, *least_s;
	size_t nenvelope;
	struct gf_menu_floor *floors; /* NULL: every way is one line */
	size_t nfloors;
	size_t *choices; /* indices into options */
	size_t nchoices;
	struct gf_derived *derived; /* that the options borrow ... */
	struct gf_derived own;      /* ... this one, unless the problem has one */
};

/* -EINVAL: a codec that there is not, or that the model's types do not take. */
int gf_menu_check_codecs(const struct gf_problem *in, struct gf_error *err);
/* -EINVAL, -ENOTSUP: no option is left, with the reason. */
int gf_menu_init(struct gf_menu *m, const struct gf_problem *in, struct gf_error *err);
void gf_menu_release(struct gf_menu *m);

/* For gf_menu_init: of thousands of ways, forgets those that come nowhere near the best; then finds
 * the envelope of the options, or of other ones; and at last what else the menu says of them. */
void gf_menu_drop_far(struct gf_menu *m);
void gf_menu_find_envelope(struct gf_menu *m);
void gf_menu_finish(struct gf_menu *m);

/* The cheapest option for a message of its own (an index into options). */
size_t gf_menu_pick(const struct gf_menu *m, double bytes);
/* What that costs; and what messages of so many bytes or more cost at the least. */
double gf_menu_cost_s(const struct gf_menu *m, double bytes);
double gf_menu_least_s(const struct gf_menu *m, double bytes);
/* What its reduce-scatter takes; without halves, all of it. */
struct gf_line gf_option_scatter(const struct gf_option *o);
/* Fills in how a message goes, with copies of its names. */
void gf_option_tell(const struct gf_option *o, struct gf_message *m);

/* A set of ways: a bit for each of the first GF_MENU_BITS, all bits for all of more. gf_menu_part
 * makes a menu of its own of a set. The part borrows what the options own. Returns the option of
 * the whole per option of the part, for the caller to free. */
#define GF_MENU_BITS 32
size_t *gf_menu_part(const struct gf_menu *m, uint32_t ways, struct gf_menu *part);
void gf_menu_part_release(struct gf_menu *part);
/* A menu of its own of one half of each option, for what that half costs at the least; borrows
 * likewise. */
void gf_menu_half(const struct gf_menu *m, enum gf_coll_half half, struct gf_menu *part);
/* Is one half of some option not just the other? Then a message's cheapest option need not be the
 * best for it. False without halves. */
bool gf_menu_unlike(const struct gf_menu *m);

/*
 * The least cost of the given bytes in any number of messages, sent one after the other. Equal to
 * gf_menu_cost_s if every way has one line.
 */
double gf_menu_floor_s(const struct gf_menu *m, double bytes);

#endif
