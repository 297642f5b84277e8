/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef GF_PLANNER_AXES_H
#define GF_PLANNER_AXES_H

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"
#include "documents/plan.h"
#include "planner/systems.h"

/*
 * The user's settings of the axes that a system sets, each by itself. A system chooses every axis
 * that is open; after gf_axes_init all are.
 */
struct gf_axes {
	int selection; /* of gf_select_plans; open: -1 */
	/* Its keys as the user typed them (json/keys.h), and others that count more; borrowed. */
	const char *selection_keys, *more_keys;
	/* In its place: one's own, "mine:density=0.004,select=2GB/s"; borrowed; or NULL. */
	const char *own_selection;
	const struct gf_selection *followed; /* what keys change; borrowed; NULL: its defaults */
	int release;                         /* enum gf_release; open: -1 */
	int staleness;                       /* open: 0 */
	size_t pipeline_warmup_steps;        /* open: SIZE_MAX */
	struct gf_steps_part pipeline_warmup_part;
	int servers; /* open: 0 */
	int period;  /* of gf_period_plans; open: -1 */
	const char *period_keys;
	/* Keys that a selection, or a period, lacks are those of others that it is compared
	 * with. */
	bool all_selections, all_periods;
	/* In its place, with its groups and without messages: that of a plan that is followed;
	 * borrowed; or NULL. */
	const struct gf_period *followed_period;
	/* The level from which groups exchange; NULL: the outermost. */
	char *period_level; /* owned */
	double hide;        /* of a period, the share that is exposed; 0: any */
	char *outer_codecs; /* of its messages, with commas between; owned; NULL: f32 */
	int shard;          /* of gf_shard_plans; open: -1 */
	/* The outermost level across which shards lie; NULL: all ranks. How units are cut
	 * (planner/shards.h); NULL: as is best. Both owned. */
	char *shard_level, *shard_units;
	int shard_ranks; /* without a level: that share a copy in a plan that is followed; 0: all */
	size_t shard_ahead;           /* open: SIZE_MAX */
	int shard_keep;               /* of gf_shard_keeps; open: 0 */
	struct gf_memory_plan memory; /* zeros: nothing is asked of it */
	char *memory_optimizer;       /* whose state it is; owned; or NULL */
	double memory_state_bytes;    /* in its place; open: NAN */
	/* blueconnect, hierarchical; algorithm NULL: the cheapest */
	struct gf_stage *factors; /* owned, names static */
	size_t nfactors;
	bool factored; /* though all of them may have been 1; open: false */
};

void gf_axes_init(struct gf_axes *axes);
void gf_axes_release(struct gf_axes *axes);

/* Sets open axes as in the plan: selection, staleness, servers and shards. Borrows from the
 * plan. */
void gf_axes_follow(struct gf_axes *axes, const struct gf_plan *p);

/* Wishes of these axes, which are no keys of a plan, as keys of --staleness and --period; of a
 * struct gf_axes. */
extern const struct gf_record gf_axes_staleness_keys, gf_axes_period_keys, gf_axes_shard_keys,
	gf_axes_memory_keys;
/* Stores the keys of the period in *period, which is of that plan. -EINVAL: it has no such key. */
int gf_axes_set_period(const struct gf_axes *axes, const struct gf_period_plan *plan,
		       struct gf_period *period, struct gf_error *err);

/* The key of --shard that was asked for though this method lacks it; NULL: there is none. */
const char *gf_axes_shard_lacks(const struct gf_axes *axes, int method);
/* Of axes that borrow: this method, and of the keys those that it has. */
void gf_axes_take_shard(struct gf_axes *axes, int method);

/* All factors as people type them, innermost first, "4,16:ring" or "4x16" (a factor of 1 changes
 * nothing and is dropped). 0 or -EINVAL. */
int gf_axes_read_factors(const char *text, void *axes, struct gf_error *err);

/* The axes' choices in the place of the system's, and the selection that follows from both, which
 * the caller releases. axes NULL: all open; *s borrows from it. -EINVAL: they contradict each
 * other. */
int gf_axes_apply(const struct gf_axes *axes, struct gf_system *s, struct gf_selection *selection,
		  struct gf_error *err);
/* Did the user set that key of the selection? For gf_select_plan.fit, whose ctx is the axes;
 * NULL: all open. A plan that is followed has set all. */
bool gf_axes_asked(const void *axes, const char *key);

/* The algorithm that the axes leave possible where `algorithm` was asked for (NULL: open). -EINVAL:
 * another one is needed; factors that do not make up the ranks. */
int gf_axes_algorithm(const struct gf_axes *axes, int ranks, const char **algorithm,
		      struct gf_error *err);

#endif
