/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef GF_PLANNER_AXES_H
#define GF_PLANNER_AXES_H

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"
#include "base/registry.h"
#include "base/text.h"
#include "documents/axis_entry.h"
#include "documents/plan.h"
#include "json/record.h"
#include "planner/systems.h"

/*
 * Options that set keys of an axis's entry in a plan: a selection's, a period's. The tables of
 * doc/select_*.c and doc/period_*.c say which there are; an option of several entries sets the key
 * of the one that is chosen.
 */
#define GF_AXIS_OPTIONS_MOST 48

struct gf_axis {
	const char *option;         /* that chooses the entry */
	struct gf_registry entries; /* each begins as struct gf_entry does */
};
extern const struct gf_axis gf_axis_selection, gf_axis_period;

struct gf_axis_option {
	const struct gf_axis *axis;
	const struct gf_entry *entry; /* the first that has it */
	const struct gf_field *field; /* there */
	const char *text;             /* what the user typed, borrowed; NULL: open */
};

/* The record's field with that option, those of included tables among them; NULL: it has none. */
const struct gf_field *gf_axis_find(const struct gf_record *r, const char *option);
/* Appends every option of an axis once, all of them open, after n; returns how many there are
 * then. */
size_t gf_axis_options(const struct gf_axis *axis,
		       struct gf_axis_option options[GF_AXIS_OPTIONS_MOST], size_t n);
/* "topk, gtopk: the share of elements that is sent (0.001)" */
void gf_axis_option_help(const struct gf_axis_option *option, struct gf_text *out);
/* For the command line: checks the text, then option->text is it. */
int gf_axis_option_store(const char *text, void *option, struct gf_error *err);

/* Stores what the user typed for this axis in the entry's struct. -EINVAL: the entry has no such
 * key. */
int gf_axis_options_apply(const struct gf_axis_option *options, size_t noptions,
			  const struct gf_axis *axis, const struct gf_entry *entry, void *item,
			  struct gf_error *err);

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
