/* SPDX-License-Identifier: BSD-3-Clause */
/* lib/documents: the documents that the commands exchange (plans, profiles, topologies, models,
 * trainings, traces): their structs, readers, writers and checks. */
#ifndef GF_DOCUMENTS_PLAN_H
#define GF_DOCUMENTS_PLAN_H

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"
#include "base/steps.h"
#include "json/json.h"
#include "documents/periods/period.h"
#include "documents/profile.h"
#include "documents/selections/selection.h"
#include "documents/shard.h"
#include "documents/topology.h"

/*
 * gf-plan: one point on the eight axes, what it was computed from, and the prediction it was chosen
 * for (gf-plan(5)). A rule plan has no tensors and no messages; it binds to a model and a number of
 * ranks at run time.
 *
 * Structs made by code: zero them first (gf_xcalloc), so that what is not set counts as absent.
 */
enum gf_mode { GF_MODE_NORMAL, GF_MODE_MERGED, GF_MODE_SIMULTANEOUS };
enum gf_release { GF_RELEASE_READY, GF_RELEASE_BACKWARD_END };
enum gf_half { GF_HALF_ALL, GF_HALF_SPLIT };
extern const char *const gf_mode_names[];    /* normal merged simultaneous */
extern const char *const gf_release_names[]; /* ready backward_end */
extern const char *const gf_half_names[];    /* all split */

/* The contiguous tensors first..last, reduced together. */
struct gf_message {
	size_t first, last;
	enum gf_mode mode; /* normal or simultaneous */
	enum gf_release release;
	enum gf_half half;
	char *algorithm;         /* a name of lib/collectives's registry, or "library" */
	struct gf_stage *stages; /* product = the ranks that exchange; none:
				  * not decomposed */
	size_t nstages;
	bool unsaid; /* what carries the stages out is left to the runtime; in no document */
	char *codec; /* collectives/codecs/codec.h */
	bool keep;   /* of a unit (documents/shard.h): gathered once for both passes */
	char *extra;
};

struct gf_predicted_message {
	double ready_s, start_s, end_s; /* from the start of forward */
	double error;                   /* of its mean gradients, as the prediction's */
	char *extra;
};

/* What a rank's memory is planned for. Zeros: nothing is said. */
struct gf_memory_plan {
	size_t limit_bytes;
	double state_bytes; /* of the optimiser, per element */
	bool recompute;     /* activations are made again in backward, by segments */
	char *extra;
};

/* What a rank holds where a step holds the most, bytes. All zeros: unknown. */
struct gf_memory_use {
	double parameters_bytes, gradients_bytes, state_bytes;
	double gathered_bytes;    /* units of others' parameters */
	double buffers_bytes;     /* of messages */
	double activations_bytes; /* 0: unknown */
	double peak_bytes;        /* of all of these together, at one moment */
	char *extra;
};

struct gf_prediction {
	double iteration_s, compute_s, exposed_comm_s, lower_bound_s;
	/* of the fastest plan that was found, where a simpler one was taken; 0: this one is */
	double fastest_s;
	/* by the doubt of the measurements (simulator/uncertainty.h); both 0: unknown */
	double iteration_low_s, iteration_high_s;
	/* of the mean gradients by rounding, relative (simulator/sum_error.h); 0: unknown */
	double error;
	struct gf_memory_use memory;
	struct gf_predicted_message *messages;
	size_t nmessages; /* the plan's */
	char *extra;
};

/* From min_bytes (up to the next entry's) use this algorithm. */
struct gf_rule_algorithm {
	size_t min_bytes;
	char *algorithm;
	struct gf_stage *stages; /* on as many ranks as they make; or none */
	size_t nstages;
	bool unsaid; /* as a message's */
	char *codec; /* NULL: f32 */
	char *extra;
};
struct gf_rule {
	size_t threshold_bytes;
	int lanes;
	size_t segment_bytes;                 /* 0: a good size */
	struct gf_rule_algorithm *algorithms; /* ascending, first at 0 */
	size_t nalgorithms;
	char *extra;
};

/* A rule's entry for a message of that size; borrowed. */
const struct gf_rule_algorithm *gf_rule_for(const struct gf_rule *r, size_t size_bytes);

struct gf_plan {
	char *producer;
	char *topology_digest, *profile_digest; /* "sha256:...", or NULL */
	char *system;                           /* auto, or a paper's name */
	char *policy;
	int ranks;   /* 0 in a rule plan */
	int servers; /* 0, or 1: PS-Sync's extra rank */
	int lanes;   /* >= 1; in a rule plan the rule's */
	/* transfers are cut at; 0: a good size; in a rule plan the rule's */
	size_t segment_bytes;
	struct gf_model_profile *model;  /* its tensors are the plan's; or NULL */
	struct gf_network *network;      /* or NULL */
	struct gf_processing processing; /* the profile's, as far as used */
	struct gf_level *levels;
	size_t nlevels;
	struct gf_message *messages;
	size_t nmessages;
	enum gf_mode *types;    /* per tensor; follows from messages */
	size_t threshold_bytes; /* fusion; 0: none */
	struct gf_selection selection;
	int staleness; /* K >= 1 */
	/* The plan's messages go between the ranks of a group, the period's between all. */
	struct gf_period period;
	struct gf_shard shard;
	struct gf_memory_plan memory;
	/* Sums do not depend on how gradients are cut into messages: gf_algorithm_reproduces holds
	 * of all of them. */
	bool reproducible;
	size_t pipeline_warmup_steps;
	struct gf_steps_part pipeline_warmup_part;
	struct gf_prediction *predicted; /* or NULL */
	struct gf_rule *rule;            /* or NULL */
	/* x- keys of the plan, and of the objects whose members lie above */
	char *extra, *inputs_extra, *fusion_extra, *pipeline_extra;
};

int gf_plan_check(const struct gf_plan *p, struct gf_error *err);
char *gf_plan_write(const struct gf_plan *p);
void gf_plan_release(struct gf_plan *p);
void gf_plan_copy(struct gf_plan *copy, const struct gf_plan *p);
/* Settles the steps of warm-ups by these lengths (base/steps.h), 0 where not known. False: one of
 * them stays open. */
bool gf_plan_settle(struct gf_plan *p, double epoch_steps, double run_steps);
/* -EINVAL: a warm-up is open, and nobody knows the lengths. */
int gf_plan_check_settled(const struct gf_plan *p, struct gf_error *err);
/* Fills types from messages (allocates). */
void gf_plan_set_types(struct gf_plan *p);
/* Bytes of message i's tensors before any codec. */
size_t gf_plan_message_bytes(const struct gf_plan *p, size_t i);
size_t gf_plan_message_elems(const struct gf_plan *p, size_t i);
/* How many messages go in two halves. */
size_t gf_plan_splits(const struct gf_plan *p);
/* The algorithm by which tensors first..last go as one message: that of the selection's sets, else
 * that of `like`. */
const char *gf_plan_runs(const struct gf_plan *p, size_t first, size_t last,
			 const struct gf_message *like);
/* The same with its stages: "blueconnect 2:shm 4:mpi". The caller frees. */
char *gf_plan_runs_text(const struct gf_plan *p, size_t first, size_t last,
			const struct gf_message *like);
/* Copies of what shards cut: one but where groups of ranks share them. */
static inline int gf_plan_copies(const struct gf_plan *p)
{
	return gf_shard_is_used(&p->shard) ? p->ranks / p->shard.group_ranks : 1;
}
/* Does its prediction say what a rank holds? */
static inline bool gf_plan_tells_memory(const struct gf_plan *p)
{
	const struct gf_memory_plan *m = &p->memory;

	return gf_shard_is_used(&p->shard) || m->limit_bytes > 0 || m->state_bytes > 0 ||
	       m->recompute;
}
/* Is its algorithm left to those who run it? */
bool gf_message_is_open(const struct gf_message *m);
/* Does a message of the plan travel in a codec that rounds? */
bool gf_plan_is_coded(const struct gf_plan *p);
/* Do both go alike: by one algorithm, in the same stages, as one codec? NULL goes as NULL alone. */
bool gf_message_goes_as(const struct gf_message *a, const struct gf_message *b);

#endif
