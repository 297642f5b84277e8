/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef GF_COMPRESSORS_CSC_H
#define GF_COMPRESSORS_CSC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "documents/plan.h"
#include "base/steps.h"
#include "documents/selections/selection.h"
#include "runtime/work.h"
#include "trainer/optim/optimizer.h"
#include "compressors/select_parts.h"

/*
 * csc: coarse-grained sparse communication (GradientFlow, Sun et al. 2019, section IV). All
 * gradients together are cut into chunks; the chunks of the largest norms go out, packed into
 * messages by the plan's threshold.
 */
struct gf_csc_params {
	size_t chunk_elems;
	double keep;         /* the share of chunks that goes out, (0, 1] */
	size_t warmup_steps; /* over which the share falls from 1 to keep */
	struct gf_steps_part warmup_part;
	double decay; /* of what waits; NAN: the optimiser's momentum */
	char *extra;  /* x- keys */
};

/* Numbers by which a rank says, beside the norms, where a gradient of its own is that is not
 * finite. */
#define GF_CSC_BAD_PARTS 3

/* How many chunks of n go out in step t (from 0): a ramp from all of them to keep*n, rounded up, in
 * warmup_steps steps. */
size_t gf_csc_kept(const struct gf_csc_params *p, size_t n, size_t t);

/*
 * The gradient
 * pool is cut into chunks of equal size, the last one short; a chunk may cross tensors. In a step
 * only the important chunks go out, packed; the gradients of the others wait in a history, which is
 * added to those of the next step. At the end of a step all ranks choose, by the L1 norms over all
 * ranks, the chunks of the next.
 *
 * gf_csc is what lasts from step to step. gf_csc_step is one of the steps that may be under way,
 * with the chunks chosen for it.
 */
struct gf_csc {
	const struct gf_pool *layout;       /* borrowed */
	const struct gf_csc_params *params; /* the plan's; borrowed */
	size_t chunk_elems, nchunks;
	/* Chunks of each packed message; the last of a step may have fewer. The gap after a message
	 * in `packed` lets the next one begin at a line of the GPU's memory. */
	size_t pack_chunks, gap_elems;
	float decay; /* of what enters the history */
	int ranks;
	bool means;     /* what comes are means over ranks, not sums */
	float *history; /* as the pool; unimportant gradients not applied */
	bool *empty;    /* per chunk: its history is known to be zero */
	/* per chunk, 1 or 0: is it important in the step begun next? Words, as they are part of a
	 * checkpoint. */
	uint64_t *important;
	size_t depth;
	struct gf_csc_step *steps;     /* per slot */
	struct gf_optim_piece *pieces; /* room for the sums of a step */
	/* As of a checkpoint, nchunks words for each step that has come and is not applied, oldest
	 * first: the chunks that the step sent, and those that it chose. */
	uint64_t *flight_sent, *flight_next;
	struct gf_work *sizes; /* of gf_csc_expect */
	size_t nsizes, sizes_capacity;
	struct gf_csc_gpu *gpu; /* csc_gpu.c's; NULL: all on the host */
};

struct gf_csc_step {
	struct gf_csc *csc;
	size_t number; /* from 0 over the whole run */
	/* This step's gradients, as the pool, and the chosen chunks, at gf_csc_place: borrowed, or
	 * `packed` own whole pages. Either may be on a GPU: then what follows is for the host, and
	 * these two are addresses. */
	float *data, *packed;
	bool own_packed;
	bool dense;       /* every chunk is important: nothing is packed */
	uint32_t *chosen; /* the important chunks, ascending */
	size_t nchosen;
	uint32_t *waiting;      /* the other ones */
	size_t nwaiting, taken; /* so many have taken their history up */
	struct gf_work *work;
	size_t *first_chosen; /* per message: into chosen; one more at the end */
	size_t nwork;         /* packed messages */
	struct gf_work *list; /* the engine's: messages, then the norms */
	size_t nlist;
	bool bad;                 /* a gradient is not finite */
	double *norms;            /* per chunk, this rank's */
	float *shared;            /* what ranks add up: gf_csc_shared_elems */
	uint64_t *next;           /* important in the step after it */
	uint32_t *pick, *scratch; /* of the choice */
};

static inline struct gf_csc *gf_csc_of(const struct gf_selector *s)
{
	return s->priv;
}
static inline struct gf_csc_step *gf_csc_step_of(const struct gf_selector *s, size_t slot)
{
	return &gf_csc_of(s)->steps[slot];
}

/* Of gradients on a GPU. */
extern const struct gf_select_ops gf_select_csc_gpu;

/* The state and the steps of slots, whose gradients are the pools', without `packed`. -ENOMEM. */
int gf_csc_init(struct gf_csc *c, const struct gf_select_env *env, struct gf_error *err);
void gf_csc_release(struct gf_csc *c);

/* `begin` of struct gf_select_ops. Takes over what is important; unless that is everything, cuts
 * the packed messages: one closes when more than the plan's threshold waits, and goes by the plan's
 * message of its last tensor. */
void gf_csc_begin(struct gf_selector *s, size_t slot, size_t step, const struct gf_work **list,
		  size_t *n);
const struct gf_work *gf_csc_expect(struct gf_selector *s, size_t *n);
/* Is that the message of norms? */
static inline bool gf_csc_is_norms(const struct gf_csc_step *s, size_t message)
{
	return message + 1 == s->nlist;
}
/* The place of chosen chunk i in `packed`. */
size_t gf_csc_place(const struct gf_csc *c, size_t i);

/*
 * Norms as ranks share them: after the chunks' there are places for each rank to say where its
 * first gradient is that is not finite.
 */
size_t gf_csc_shared_elems(const struct gf_csc *c);

/* The important elements of the pool, as ranges from the first on, with their sums: the csc's
 * `pieces`. Returns how many there are. */
size_t gf_csc_pieces(const struct gf_csc_step *s);

/* Operations of struct gf_select_ops. */
void gf_csc_sums(struct gf_selector *s, size_t slot, struct gf_select_sums *sums);
void gf_csc_adopt(struct gf_selector *s, size_t slot);
void gf_csc_state(struct gf_selector *s, struct gf_state *list);
/* Of `keep` and `restore` all but the sums: the chunks sent and chosen become the age-th of the
 * state, and come from there. */
void gf_csc_note(const struct gf_csc_step *s, size_t age, bool bad);
void gf_csc_recall(struct gf_csc_step *s, size_t age);

/* The place of a chunk in the pool, and its number of elements. */
size_t gf_csc_chunk_first(const struct gf_csc *c, size_t chunk);
size_t gf_csc_chunk_count(const struct gf_csc *c, size_t chunk);
/* The tensor with which it is ready. */
size_t gf_csc_chunk_last_tensor(const struct gf_csc *c, size_t chunk);

#endif
