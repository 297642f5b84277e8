/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef GF_PLANNER_AXES_H
#define GF_PLANNER_AXES_H

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"
#include "doc/plan.h"
#include "planner/axis_option.h"
#include "planner/systems.h"

/*
 * The user's settings of the axes that a system sets, each by itself. A system chooses every axis
 * that is open; after gf_axes_init all are.
 */
struct gf_axes {
	int selection; /* of gf_select_plans; open: -1 */
	/* keys of the selection and of the period */
	struct gf_axis_option options[GF_AXIS_OPTIONS_MOST];
	size_t noptions;
	const struct gf_selection *followed; /* what options change; borrowed; NULL: its defaults */
	int release;                         /* enum gf_release; open: -1 */
	int staleness;                       /* open: 0 */
	size_t pipeline_warmup_steps;        /* open: SIZE_MAX */
	struct gf_steps_part pipeline_warmup_part;
	int servers; /* open: 0 */
	int period;  /* of gf_period_plans; open: -1 */
	/* In its place, with its groups and without messages: that of a plan that is followed;
	 * borrowed; or NULL. */
	const struct gf_period *followed_period;
	/* The level from which groups exchange; NULL: the outermost. */
	const char *period_level;
	double hide; /* of a period, the share that is exposed; 0: any */
	/* blueconnect, hierarchical; algorithm NULL: the cheapest */
	struct gf_stage *factors; /* owned, names static */
	size_t nfactors;
	bool factored; /* though all of them may have been 1; open: false */
};

void gf_axes_init(struct gf_axes *axes);
void gf_axes_release(struct gf_axes *axes);

/* Sets open axes as in the plan: selection, staleness, servers. Borrows from the plan. */
void gf_axes_follow(struct gf_axes *axes, const struct gf_plan *p);

/* --hide; share: of a struct gf_axes. */
int gf_axes_read_hide(const char *text, void *share, struct gf_error *err);

/* --pipeline-warmup; axes: struct gf_axes. */
int gf_axes_read_warmup(const char *text, void *axes, struct gf_error *err);

/* All factors as people type them, innermost first, "4,16:ring" or "4x16" (a factor of 1 changes
 * nothing and is dropped). 0 or -EINVAL. */
int gf_axes_read_factors(const char *text, void *axes, struct gf_error *err);

/* The axes' choices in the place of the system's, and the selection that follows from both, which
 * the caller releases. axes NULL: all open; *s borrows from it. -EINVAL: they contradict each
 * other. */
int gf_axes_apply(const struct gf_axes *axes, struct gf_system *s, struct gf_selection *selection,
		  struct gf_error *err);
/* Did the user set that option of the selection? For gf_select_plan.fit, whose ctx is the axes;
 * NULL: all open. A plan that is followed has set all. */
bool gf_axes_asked(const void *axes, const char *option);

/* The algorithm that the axes leave possible where `algorithm` was asked for (NULL: open). -EINVAL:
 * another one is needed; factors that do not make up the ranks. */
int gf_axes_algorithm(const struct gf_axes *axes, int ranks, const char **algorithm,
		      struct gf_error *err);

#endif
