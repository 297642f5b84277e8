/* SPDX-License-Identifier: BSD-3-Clause */
/* lib/documents/selections: the pure half of selections: keys, equations, and what a message sends.
 */
#ifndef GF_SELECTIONS_SELECTION_H
#define GF_SELECTIONS_SELECTION_H

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"
#include "base/text.h"
#include "json/keys.h"
#include "documents/profile.h"

struct gf_message;

/*
 * The pure half of selections: which gradients of a message go out in a step, in what form, and
 * what a plan says about it (gf-methods(7)). Each selection is one file with one
 * entry, gf_select_plan_NAME; all other code asks the entry. The half that runs is in
 * another library.
 *
 * Traits say what a selection can do. A combination that no trait allows is refused.
 */
enum {
	/* all gradients go out in their own step, and nothing is kept back: the sums of each of the
	 * plan's messages are complete once it has come */
	GF_SELECT_LOSSLESS = 1 << 0,
	/* what goes out is numbers whose sum is wanted: a message's algorithm, factors and codec
	 * serve as they serve dense gradients */
	GF_SELECT_ADDS = 1 << 1,
	/* what goes out is one set per rank, of a fixed number of bytes */
	GF_SELECT_SETS = 1 << 2,
	/* a message may be split into halves */
	GF_SELECT_HALVES = 1 << 3,
	/* a parameter server can serve it */
	GF_SELECT_SERVERS = 1 << 4,
	/* messages are cut anew in every step, by the plan's threshold */
	GF_SELECT_RECUTS = 1 << 5,
	/* gradients may be multiplied by a loss scale */
	GF_SELECT_SCALES = 1 << 6,
	/* only what went out is updated */
	GF_SELECT_PIECES = 1 << 7,
	/* what goes out has momentum in it, and the update adds none */
	GF_SELECT_MOMENTUM = 1 << 8,
	/* ... and it serves optimisers without momentum, too */
	GF_SELECT_BARE = 1 << 10,
	/* it works on the shapes of tensors: flat ones go whole */
	GF_SELECT_SHAPES = 1 << 9,
	/* most elements get nothing in most steps, however large they are: the mean of their
	 * squares says little */
	GF_SELECT_SELDOM = 1 << 11,
};

/* How something travels. */
enum gf_wire_kind {
	GF_WIRE_REDUCE, /* numbers are summed, as the plan's message says */
	GF_WIRE_GATHER, /* every rank gets the sets of all */
	GF_WIRE_MERGE,  /* sets are merged along a tree into one of equal size */
};

/* The algorithm that moves sets in such a way (collectives/algorithms/gather.c, gtopk.c); NULL: the
 * message's own. */
const char *gf_wire_algorithm(enum gf_wire_kind kind);

/* One collective of a message, in the steady state. */
struct gf_wire {
	enum gf_wire_kind kind;
	double count_elems; /* that a rank contributes */
	double size_bytes;  /* of these elements, before any codec */
	double share;       /* of the elements that goes out, spread evenly; 1 but with
			     * GF_SELECT_RECUTS */
	size_t among;       /* a set of values with indices below this, which a codec may encode
			     * (collectives/codecs/codec.h); 0: none */
};

/* Bytes of a set under a message's codec, which must be known. */
double gf_wire_set_bytes(const struct gf_wire *w, const char *codec);

/* The sets, or messages of numbers, that a rank makes and takes in, one after the other: all ranks'
 * where sets are gathered; along a tree two for each that is made of them, and the result. */
struct gf_wire_handled {
	int made, taken;
};
struct gf_wire_handled gf_wire_handled(enum gf_wire_kind kind, int ranks);
/* The bytes of all of these, before any codec. */
double gf_wire_handled_bytes(const struct gf_wire *w, int ranks);

/* The most collectives of a message; each waits for the one before it. */
#define GF_WIRES_MOST 2

/* Tensors that go as one message. */
struct gf_wired {
	const struct gf_tensor *tensors;
	size_t ntensors;
	double count_elems, size_bytes; /* of all of them */
	size_t model_elems;             /* of the model; 0: not known */
};

struct gf_select_plan {
	GF_ENTRY; /* the record's struct is the params of a gf_selection */
	/* Why training does better with less momentum than dense gradients want
	 * (documents/optimizer_bounds.h), in words that follow "because"; NULL: it does not. */
	const char *less_momentum;
	/* Then: the most momentum, and the share of a suitable rate / (1 - momentum), (0, 1]; 0:
	 * the whole. */
	double most_momentum, rate_share;
	/* The latter where gradients are clipped at a norm, and have a rate that they would not
	 * bear otherwise, <= rate_share; 0: that. */
	double clipped_share;
	/* Why no codec goes on top, after the selection's name; NULL: one may. It encodes sums
	 * where GF_SELECT_ADDS, else sets (collectives/codecs/codec.h). */
	const char *encoding;
	/* Fills wires with what a message sends in a step; returns how many. */
	size_t (*wire)(const void *params, const struct gf_wired *message,
		       struct gf_wire wires[GF_WIRES_MOST]);
	/* What choosing costs by the selection's own keys, per byte of gradients; 0: a profile says
	 * it. (optional) */
	double (*select_s_per_byte)(const void *params);
	/* What tables call it (optional: its name). */
	const char *(*title)(const void *params);
	/* -EINVAL: not for a model of so many elements. (optional) */
	int (*suits)(const void *params, size_t model_elems, struct gf_error *err);
	/* How many numbers of its own that many ranks sum in a step, after all messages, for a
	 * model of so many elements (optional: none). They go as gf_select_own_message. */
	size_t (*own_elems)(const void *params, size_t count_elems, int ranks);
	/* Its warm-up (optional: none): in `then`, a copy of params, what makes its wires say what
	 * goes out in a step (from 0), in epochs of so many (0: not known). Returns for how many
	 * steps from there on; 0: the warm-up is over. */
	size_t (*warm)(const void *params, size_t step, size_t epoch_steps, void *then);
	/* Adapts gf-plan's choice to the model. asked(ctx, key): did the user set it? Adds lines
	 * to notes. -EINVAL: what the user asked for does not fit. (optional) */
	int (*fit)(void *params, const struct gf_model_profile *model,
		   bool (*asked)(const void *ctx, const char *key), const void *ctx,
		   struct gf_text *notes, struct gf_error *err);
};

/* By an algorithm that gives all ranks the same bits, whatever the plan's messages go by. */
extern const struct gf_message gf_select_own_message;

/* All gradients of a message, as they are: no keys. */
extern const struct gf_select_plan gf_select_plan_dense;

/* Someone's own, described by its keys; it is no entry of gf_select_plans. */
extern const struct gf_select_plan gf_described_selection;

/* In the order of gf_select_plans_names; NULL-terminated. */
extern const struct gf_select_plan *const gf_select_plans[];
extern const char *const gf_select_plans_names[];
/* NULL: there is none of that name. */
const struct gf_select_plan *gf_select_plan_find(const char *name);

/* A plan's selection. A zeroed one is dense. */
struct gf_selection {
	const struct gf_select_plan *plan; /* NULL: dense */
	void *params;                      /* owned; of plan->record; NULL only where dense */
};

/* The entry, never NULL. */
const struct gf_select_plan *gf_selection_plan(const struct gf_selection *s);
const char *gf_selection_name(const struct gf_selection *s);
/* What tables call it. */
const char *gf_selection_title(const struct gf_selection *s);
/* What choosing costs by its own keys, per byte of gradients; 0: a profile says it. */
double gf_selection_s_per_byte(const struct gf_selection *s);
/* Whether it has every one of these traits. */
bool gf_selection_has(const struct gf_selection *s, unsigned traits);
/* Each step needs the state that the step before leaves, so its messages wait for all of that one's
 * (start_rule.h). */
static inline bool gf_selection_is_serial(const struct gf_selection *s)
{
	return !gf_selection_has(s, GF_SELECT_LOSSLESS);
}
/* Fills in the wires of tensors that go as one message; returns how many. model_elems 0: not known,
 * and a share is not one of whole chunks. */
size_t gf_selection_wire(const struct gf_selection *s, const struct gf_tensor *tensors,
			 size_t ntensors, size_t model_elems, struct gf_wire wires[GF_WIRES_MOST]);
/* The numbers of its own that all ranks sum after a step's messages. */
size_t gf_selection_own_elems(const struct gf_selection *s, size_t count_elems, int ranks);
/* The steps in which it sends more than in the steady state. */
size_t gf_selection_warmup(const struct gf_selection *s, size_t epoch_steps);
/* gf_select_plan.warm; then: a copy of s. */
size_t gf_selection_warm(const struct gf_selection *s, size_t step, size_t epoch_steps,
			 struct gf_selection *then);
/* A selection with copies of these params. */
struct gf_selection gf_selection_new(const struct gf_select_plan *plan, const void *params);
struct gf_selection gf_selection_copy(const struct gf_selection *s);
void gf_selection_release(struct gf_selection *s);

#endif
