/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef GF_PLANNER_AXES_H
#define GF_PLANNER_AXES_H

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"
#include "doc/plan.h"
#include "planner/systems.h"

/*
 * What the user says about the axes that a system sets, each by itself. What
 * is open is the system's choice; in gf_axes_open everything is.
 */
struct gf_axes {
	int selection; /* enum gf_select; open: -1 */
	/* csc */
	double keep;             /* open: 0 */
	size_t chunk_elems;      /* open: 0 */
	size_t csc_warmup_steps; /* open: SIZE_MAX */
	double decay;            /* NAN: "momentum"; open: -1 */
	/* topk, gtopk */
	double density;               /* open: 0 */
	double *warmup_densities;     /* owned */
	size_t nwarmup;               /* 0: none; open: SIZE_MAX */
	int putback;                  /* enum gf_putback; open: -1 */
	int release;                  /* enum gf_release; open: -1 */
	int staleness;                /* open: 0 */
	size_t pipeline_warmup_steps; /* open: SIZE_MAX */
	int servers;                  /* open: 0 */
	/* blueconnect, hierarchical; algorithm NULL: the cheapest */
	struct gf_stage *factors; /* owned, names static */
	size_t nfactors;
	bool factored; /* though all of them may have been 1; open: false */
};

extern const struct gf_axes gf_axes_open;
/* Nothing is asked for. axes may be NULL. */
bool gf_axes_are_open(const struct gf_axes *axes);
void gf_axes_release(struct gf_axes *axes);

/* What is open becomes as that plan has it: selection, staleness, servers.
 * Borrows from the plan. */
void gf_axes_follow(struct gf_axes *axes, const struct gf_plan *p);

/* As people type them: "0.5" or "momentum"; a density (nwarmup begins at 0);
 * all factors, innermost first, "4,16:ring" or "4x16" (a factor of 1 changes
 * nothing and is dropped). 0 or -EINVAL. */
int gf_axes_read_decay(const char *text, void *decay, struct gf_error *err);
int gf_axes_add_density(void *axes, const char *text, struct gf_error *err);
int gf_axes_read_factors(const char *text, void *axes, struct gf_error *err);

/* The axes' choices in the place of the system's. axes NULL: all open; *s
 * borrows from it. -EINVAL: they contradict each other. */
int gf_axes_apply(const struct gf_axes *axes, struct gf_system *s,
		  struct gf_error *err);

/* The algorithm that the axes leave possible where `algorithm` was asked for
 * (NULL: open). -EINVAL: another one is needed; factors that do not make up
 * the ranks. */
int gf_axes_algorithm(const struct gf_axes *axes, int ranks,
		      const char **algorithm, struct gf_error *err);

#endif
