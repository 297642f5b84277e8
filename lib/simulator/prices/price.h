/* SPDX-License-Identifier: BSD-3-Clause */
/* lib/simulator/prices: what a message of a plan takes alone, by a closed form, a measurement or a
 * replay. */
#ifndef GF_PRICES_PRICE_H
#define GF_PRICES_PRICE_H

#include <stddef.h>

#include "base/error.h"
#include "collectives/algorithm.h"
#include "cost/primitives.h"
#include "documents/plan.h"
#include "documents/profile.h"
#include "documents/topology.h"

/*
 * What replays took, and the networks and algorithms that they were of. Several struct gf_derived
 * may share it: then no replay is made twice, and their counts and limits stay their own.
 * Zero-initialise; the owner releases it after them.
 */
struct gf_replays {
	struct gf_bench **benches;
	size_t nbenches, capacity;
	struct gf_fabric_net **nets;
	size_t nnets, nets_capacity;
};
void gf_replays_release(struct gf_replays *r);

/*
 * Replays of an algorithm on a topology: one message alone, at as many sizes as its cost needs
 * lines, and n messages at once. Closed forms hold where groups of ranks coincide with levels.
 * Elsewhere messages of one round drift apart, and only a replay tells when they share a link.
 * Replayed when first asked for, and kept by the network's costs, of which there may be several:
 * zero-initialise but for `lanes`, which may grow, and `replays`; prices borrow from it.
 */
struct gf_derived {
	int lanes;                  /* gamma_2 .. gamma_lanes; below 2: none */
	struct gf_replays *replays; /* borrowed; NULL: its own */
	struct gf_replays own;
	struct gf_derived_entry **entries;
	size_t nentries, capacity;
	/* an algorithm of which one message, or several at once, have too many steps; or NULL */
	const char *unpriced, *unknown;
	/* Steps of the replays asked for since the count was raised, those that were kept from
	 * before included: so a limit is the same for all that share them. */
	size_t nreplayed;
	unsigned count;
};

struct gf_derived_cost {
	/* Of a message that everything divides; the first from 0 on. None: the closed form holds,
	 * or there are too many steps. */
	const struct gf_line *lines;
	size_t nlines;
	/* Of all ranks, where a message's cost may depend on what is left over in its parts; else
	 * 0. */
	size_t nsteps;
	/* NULL: n messages take n times as long (gamma_n = n) */
	const struct gf_contention *contention;
};

/* Steps of all messages and ranks together that are replayed at once: a ring of 100 ranks, two
 * rings of 70. */
#define GF_DERIVED_STEPS_MOST 40000

/* Long enough that startup does not matter: a message's gamma is its bytes'. */
#define GF_DERIVED_BYTES 0x1p26

/* Empty where there are too many steps, nothing to replay, or one rank. Borrowed until the
 * release. */
const struct gf_derived_cost *gf_derived_find(struct gf_derived *d, const struct gf_algorithm *a,
					      const struct gf_coll_args *args,
					      const struct gf_cost_net *net);
/* A message of just so many elements alone; NAN: see above. */
double gf_derived_message_s(struct gf_derived *d, const struct gf_algorithm *a,
			    const struct gf_coll_args *args, const struct gf_cost_net *net,
			    double bytes);
void gf_derived_release(struct gf_derived *d);

/*
 * The cost of a message, startup_s + per_byte_s * bytes: as measured if the network was measured,
 * else the algorithm's on the levels: as its steps are replayed, or by its closed form. If several
 * lines were measured, of the all-reduce or of the levels that a closed form crosses, those for the
 * message's size count.
 *
 * A codec costs encoding and decoding, too, on every hop that a byte takes one after the other: as
 * often as the closed form passes it on. An entry that was measured with the codec has that in it.
 * One that may overflow has gradients multiplied by a loss scale on their way, and divided by it.
 *
 * A split message is a reduce-scatter and an all-gather, each with a price of its own: as both were
 * measured, by the closed form or the replay of each. Where all-reduces alone were measured, each
 * is taken to be half of one.
 */
struct gf_fabric {
	const struct gf_network *network; /* or NULL */
	const struct gf_level *levels;    /* or NULL; one of both is there */
	size_t nlevels;
	int ranks;   /* that take part */
	int servers; /* of them, that only serve (ps) */
	/* Replays of derived prices, and their contention; NULL: closed forms, and no
	 * contention. */
	struct gf_derived *derived;
	struct gf_replays *replays;             /* for each `derived` of such a fabric; or NULL */
	const struct gf_processing *processing; /* or NULL: nothing costs */
	const char *device;                     /* that runs messages; NULL: the processor */
};

/* The fabric's levels as closed forms and replays take them. A link costs what was measured under
 * its level's name, else its nominal figures. Borrows the measured lines. No levels: that of a
 * network that has one, or none, with room for one. */
struct gf_fabric_net {
	struct gf_cost_net cost;
	struct gf_link_cost *links;
	int *sizes;
};
void gf_fabric_net_init(struct gf_fabric_net *net, const struct gf_fabric *f);
void gf_fabric_net_release(struct gf_fabric_net *net);
/* Was an all-reduce of f32 measured, and of some level no link? Then what is derived here cannot be
 * compared with what was measured: one goes by a data sheet. */
bool gf_fabric_is_mixed(const struct gf_fabric *f);

enum gf_price_origin {
	GF_PRICE_MEASURED, /* an allreduce entry of the network */
	GF_PRICE_RESCALED, /* such an entry, for another number of ranks */
	GF_PRICE_DERIVED,  /* a closed form, or a replay */
};

struct gf_price {
	struct gf_line line;
	/* Of a split message: what of the line is the all-gather's, for the same sizes. */
	struct gf_line gather;
	bool halved;                             /* that is half of an all-reduce */
	/* Of a line that was derived, or of its reduce-scatter: what a byte of a long message takes
	 * (simulator/step.h); else 0. */
	double load_per_byte_s;
	const struct gf_contention *contention;  /* borrowed; NULL: gamma_n = n */
	const struct gf_beside_backward *mutual; /* borrowed; NULL: unknown */
	enum gf_price_origin origin;
	/* Of the line's per_byte_s: what a codec costs on each of so many hops, 0 where it was
	 * measured with the rest. */
	double codec_s_per_byte, hops;
	/* Of per_byte_s: that on all hops, and the loss scale. */
	double handling_s_per_byte;
	size_t nsteps; /* that tell apart how many elements there are; or 0 */
	/* What was measured, borrowed, and by what its sizes are multiplied to be those of messages
	 * here; NULL: derived. */
	const struct gf_allreduce_cost *entry;
	double scale;
};

/* How a message goes, and how many bytes it has on the wire. */
struct gf_priced {
	const char *algorithm;
	const struct gf_stage *stages;
	size_t nstages;
	double bytes;
	const char *codec; /* NULL: f32 */
	/* 0: by the line of messages that everything divides. Else a derived message of so many is
	 * replayed as it is, and its price passes through its size alone. */
	size_t count_elems;
	bool split;             /* its line is that of both halves */
	int copies;             /* that these leave; 0: one */
	enum gf_coll_half half; /* else of an all-reduce, or of one half alone */
};

/* -ENOTSUP: nothing says what it costs; -EINVAL: factors that do not fit. */
int gf_price_message(const struct gf_fabric *f, const struct gf_priced *m, struct gf_price *price,
		     struct gf_error *err);

/* What encodes and decodes messages, and what a selection costs; borrowed. NULL: nothing is known,
 * or there is nothing to it. */
const struct gf_codec_cost *gf_fabric_codec(const struct gf_fabric *f, const char *codec);
const struct gf_selection_cost *gf_fabric_selection(const struct gf_fabric *f, const char *method);

/* One transfer of the given bytes between neighbours when all ranks send at once, for costs that
 * know only alpha and beta; derived from the cost of the ring, or else of the cheapest, if only
 * all-reduces were measured. */
int gf_price_link(const struct gf_fabric *f, double bytes, struct gf_link_cost *link,
		  struct gf_error *err);
/* A rank's set of that many bytes by an algorithm for sets (gf_sparse_find), on the levels where
 * they are known, else with one line for all rounds. Merges are priced with the selection. */
int gf_price_set(const struct gf_fabric *f, const struct gf_algorithm *a, double bytes,
		 struct gf_line *line, struct gf_error *err);

#endif
