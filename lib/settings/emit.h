/* SPDX-License-Identifier: BSD-3-Clause */
/* lib/settings: plans in other programs' words: settings of PyTorch, Horovod, NCCL, Open MPI and
 * others. */
#ifndef GF_SETTINGS_EMIT_H
#define GF_SETTINGS_EMIT_H

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"
#include "base/registry.h"
#include "base/text.h"
#include "documents/library_tuning.h"
#include "documents/plan.h"
#include "documents/profile.h"
#include "planner/make.h"
#include "planner/policies/policy.h"

/*
 * What a library is to be told for each size of message: of its variants that a profile has
 * (gf-profile(5)), the fastest at the sizes that were measured. A variant takes the default's place
 * only where it is faster by more than GF_PICK_GAIN and by more than the hypotenuse of both halves
 * of their interquartile ranges; and another pick's, from one size to the next, only where it is
 * faster by GF_PICK_GAIN. A range ends halfway, in the logarithm, between two sizes that were
 * measured.
 */
#define GF_PICK_GAIN 0.03

struct gf_pick {
	size_t from_bytes; /* up to the next pick's; the last one's: and more */
	struct gf_tuning tuning;
	const struct gf_allreduce_cost *cost; /* of the profile */
};

/* A size that was measured. */
struct gf_pick_size {
	size_t bytes;
	const struct gf_pick *pick; /* borrowed */
	double time_s, default_s;
};

struct gf_picks {
	const struct gf_network *network; /* borrowed */
	const struct gf_dialect *dialect;
	struct gf_pick *list; /* the first is the default, from 0 bytes */
	size_t count;
	struct gf_pick_size *sizes;
	size_t nsizes;
};

/* -ENOTSUP: the profile has no variants of such a library, or not the default among them; 1: the
 * default is the best at every size. always: the default is no choice, and the first pick holds
 * from 0 bytes on; 1: some size has nothing as good. named: a variant must name its channels. */
struct gf_picks_wish {
	const char *library; /* as gf_dialect_of reads it */
	bool always, named;
};
int gf_picks_make(const struct gf_network *network, const struct gf_picks_wish *wish,
		  struct gf_picks *picks, struct gf_error *err);
void gf_picks_release(struct gf_picks *picks);

/* Comments: each measured size with its time by default and as told. */
void gf_picks_table(const struct gf_picks *picks, struct gf_text *out);

/*
 * Settings for jobs that already run, from a plan or a profile. A comment of the output states the
 * parts of a plan that the target cannot express; what would change the gradients and cannot be
 * expressed is refused. What a step takes by the target's default stands beside what it takes with
 * the settings. Settings that gain less than GF_EMIT_GAIN, or less than the prediction's doubt, are
 * left out or refused.
 *
 * To add a target: emit_NAME.c with an entry, its declaration below, a row in emit.c, a MANUAL
 * comment for gf-emit(7).
 */

/* The least gain, as a share of a step, that is worth a change; and that of a list of buckets over
 * one cap of all. */
#define GF_EMIT_GAIN 0.01

/* Predicted times of a step; 0: not known. */
struct gf_emit_times {
	double default_s;  /* of the target as it is */
	double cap_s;      /* of the best cap for all buckets */
	double cap_most_s; /* in the slower one of two ways to take a cap */
	double cap_bytes;
	double plan_s;                    /* of the plan as the target runs it */
	double default_bytes, plan_bytes; /* of shards: what a rank holds at the most */
	double doubt; /* of predictions: the share by which a step may take longer */
};

/* What a target can be told. */
enum gf_emit_takes {
	GF_EMIT_BUCKETS = 1 << 0, /* which gradients go together */
	GF_EMIT_CAP = 1 << 1,     /* one cap of all buckets */
	GF_EMIT_SIZES = 1 << 2,   /* an algorithm per size of message */
	GF_EMIT_CODECS = 1 << 3,
	GF_EMIT_ALGORITHM = 1 << 4, /* one for all messages */
	GF_EMIT_PERIOD = 1 << 5,    /* how often groups exchange */
	GF_EMIT_SHARDS = 1 << 6,    /* what a rank keeps */
	GF_EMIT_KEEPS = 1 << 7,     /* and which units stay until backward */
	GF_EMIT_COPIES = 1 << 8,    /* and how many ranks share a copy */
};

struct gf_emitter {
	const char *name;
	const char *description;
	unsigned place;      /* in listings, ascending (lib/list.sh) */
	const char *version; /* of the target, from which this was read */
	unsigned takes;      /* enum gf_emit_takes */
	const char *program; /* the name of the target for people */
	/* What the target does by itself. Its all-reduce is the library's, one at a time, and has
	 * one codec. NULL: the target changes no message; with GF_EMIT_ALGORITHM its default is the
	 * library's for each. */
	const struct gf_policy *as_it_is;
	/* With GF_EMIT_CAP alone: as_it_is keeps a cap in bytes, by default this one. */
	size_t default_cap;
	void (*emit_cap)(size_t cap, struct gf_text *out);
	/* With GF_EMIT_SHARDS: what it has at the least (of lib/documents/shard.h). How it cuts
	 * layers into units, as a rule of planner/shards.h (NULL: as it is told); and the rule that
	 * is all of its default, with these shards: with fewer that is one bucket. Are all
	 * parameters gathered before forward where there are no units? settle: takes out of a plan
	 * with units what it cannot be told. Without units, bucket_elems: the size of a bucket that
	 * the target takes for a plan; closes: does a bucket of so many elements end before the
	 * next tensor? */
	unsigned shards;
	const char *shard_units;
	unsigned overlaps;
	bool gathers_before;
	void (*settle)(struct gf_plan *p);
	double (*bucket_elems)(const struct gf_plan *p);
	bool (*closes)(double elems, double next, double told);
	/* May all messages have this codec? (with as_it_is) */
	bool (*takes_codec)(const char *codec);
	/* Of a plan. -ENOTSUP: it needs what the target does not have. */
	int (*emit)(const struct gf_plan *p, const struct gf_emit_times *t, struct gf_text *out,
		    struct gf_error *err);
	/* Of picks, with GF_EMIT_SIZES in place of the above. */
	struct gf_picks_wish wish;
	int (*emit_picks)(const struct gf_picks *picks, struct gf_text *out, struct gf_error *err);
};

extern const struct gf_emitter *const gf_emitters[]; /* NULL-terminated */

/* All that gf-plan takes by name, but for files; ended by a list without one. */
enum { GF_PLAN_LISTS = 10 };
extern const struct gf_list gf_plan_lists[GF_PLAN_LISTS + 1];

/* The first line of every output of a plan. */
void gf_emit_head(const struct gf_plan *p, const char *what, struct gf_text *out);

/* -ENOTSUP: the target does not send all gradients (or, by_rank, those that PowerSGD leaves) as the
 * plan does. */
int gf_emit_check_sent(const struct gf_plan *p, const struct gf_emitter *e, bool by_rank,
		       struct gf_error *err);

/* The share by which a step may take longer than predicted. */
double gf_emit_doubt(const struct gf_plan *p);
/* Does that time of a step gain enough over the target's default, as far as known? */
bool gf_emit_pays(const struct gf_emit_times *t, double s);
/* Does the best cap, in either way to take it? */
bool gf_emit_cap_pays(const struct gf_emit_times *t);
/* Do the plan's buckets, also over the best cap? */
bool gf_emit_plan_pays(const struct gf_emit_times *t);
/* 1, with the reason: the target as it is, by that name, is as good as the best that it can be
 * told, which takes so long. */
int gf_emit_nothing(const struct gf_emitter *e, const char *name, const struct gf_emit_times *t,
		    double best_s, struct gf_error *err);

/* A target that takes one cap (emit_caps.c); p: the plan of the best cap. Errors as
 * gf_request_emit's. */
int gf_emit_by_cap(const struct gf_request *r, const struct gf_emitter *e, struct gf_plan *p,
		   struct gf_text *out, struct gf_text *notes, struct gf_error *err);

/* The largest cap of all buckets that is as good as any, into out, by the time of a step with a
 * cap. -ENOTSUP: no cap has one. */
int gf_emit_find_cap(const struct gf_model_profile *m,
		     int (*time_cap)(void *ctx, double cap_bytes, double *s, struct gf_error *err),
		     void *ctx, struct gf_emit_times *out, struct gf_error *err);

/* A target that takes shards (emit_shards.c). given: as gf_request_emit's, with shards; or NULL.
 * Errors as gf_request_emit's. */
int gf_emit_by_shards(const struct gf_request *r, const struct gf_plan *given,
		      const struct gf_emitter *e, struct gf_plan *p, struct gf_text *out,
		      struct gf_text *notes, struct gf_error *err);

/* A target that takes an algorithm for each size (tuning_ranges.c). Errors as gf_request_emit's. */
int gf_emit_by_size(const struct gf_request *r, const struct gf_plan *given,
		    const struct gf_emitter *e, struct gf_text *out, struct gf_text *notes,
		    struct gf_error *err);

/*
 * A plan that the target can run, and its text. given: this plan, as it is, of whose documents r is
 * made; or NULL. notes says what a step takes without the settings, and with them. Settings by size
 * need no plan: *p then has no messages.
 * -EINVAL: no such target; 1: the default is as good; else as gf_request_plan, and as gf_emitter's.
 */
int gf_request_emit(const struct gf_request *r, const struct gf_plan *given, const char *target,
		    struct gf_plan *p, struct gf_text *out, struct gf_text *notes,
		    struct gf_error *err);

#endif
