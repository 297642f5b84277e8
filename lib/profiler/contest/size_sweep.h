/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef GF_CONTEST_SIZE_SWEEP_H
#define GF_CONTEST_SIZE_SWEEP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "base/text.h"
#include "profiler/contest/allreduce.h"
#include "profiler/autotune/ways.h"
#include "documents/plan.h"

/*
 * The sizes and the algorithms that gf-allreduce goes through.
 */
/* A table longer than that is a slip of the keyboard. */
#define GF_SWEEP_SIZES  10000
#define GF_SWEEP_UNSAID SIZE_MAX /* of a size: the default */

struct gf_contest_sweep {
	size_t min_bytes, max_bytes;
	size_t step_bytes;  /* 0: by factor */
	size_t step_factor; /* >= 2; 0: unsaid */
	bool sized;         /* some of these were said */
	/* NULL-terminated: names, "auto", or "all", which is all that can */
	const char *const *algorithms;
	/* "4x2", innermost first, for those that take factors; NULL: by host */
	const char *factors;
	double density;     /* for the sparse algorithms; 0: none of these */
	/* Of the elements: enum gf_dtype, enum gf_op; a codec or NULL. */
	int dtype, op;
	const char *codec;
	bool ruled;   /* a rule shall be made of it */
	bool planned; /* a plan says how */
};

/* Fills in what is unsaid, and config->element. -EINVAL: what is wrong on any number of ranks, and
 * what nothing in the sweep would heed. */
int gf_contest_sweep_finish(struct gf_contest_sweep *s, struct gf_contest_allreduce_config *config,
			    struct gf_error *err);
/* Does it tell a library how to go? */
bool gf_contest_sweep_tells(const struct gf_contest_sweep *s);

/* The factors and stages that were said, as a way without an algorithm. */
int gf_contest_sweep_decomposition(const struct gf_contest_sweep *s, struct gf_way *way,
				   struct gf_error *err);

/* Elements per message, ascending; the last is of max_bytes at most. A half is cut into so many
 * equal parts of whole 16 bytes, as nccl-tests does; 0: it is none. The caller frees. s has passed
 * gf_contest_sweep_finish. */
#define GF_SWEEP_PART_BYTES 16
size_t *gf_contest_sweep_counts(const struct gf_contest_sweep *s, size_t elem_bytes, int parts,
				size_t *ncounts);

/* The ways to go on these ranks, auto without an algorithm; the caller frees the list. Collective.
 * remarks: a line for each that "all" leaves out, and why. -EINVAL, -ENOTSUP: one that was asked
 * for by name cannot run. */
struct gf_contest_ways {
	struct gf_way *list;
	size_t count;
};
int gf_contest_sweep_ways(const struct gf_contest_sweep *s,
			  const struct gf_contest_allreduce_config *config, size_t count_elems,
			  struct gf_contest_ways *ways, struct gf_text *remarks,
			  struct gf_error *err);

/* Ranks that would run different things find out before they wait for each other: -EINVAL with both
 * values. plan: the file's name, which rank 0 reads for all; or NULL. Collective. */
int gf_contest_sweep_same(const struct gf_contest_sweep *s,
			  const struct gf_contest_allreduce_config *config, const char *plan,
			  struct gf_error *err);

/* Everything measured: the rows of a sweep, or of a whole plan's messages. */
struct gf_contest_rows {
	struct gf_contest_row *list; /* the caller frees */
	size_t count;
	size_t left_out; /* tried variants at sizes: the search below */
};

struct gf_contest_progress {
	void (*tell)(void *ctx, double fraction, size_t size_bytes);
	void *ctx;
};

/* Collective. remarks as gf_contest_sweep_ways'. progress may be NULL. */
int gf_contest_sweep_run(const struct gf_contest_sweep *s,
			 const struct gf_contest_allreduce_config *config,
			 const struct gf_contest_progress *progress, struct gf_contest_rows *rows,
			 struct gf_text *remarks, struct gf_error *err);
/* Collective. -EINVAL: it does not fit the ranks; -ENOTSUP: nothing here runs such a plan. */
int gf_contest_plan_run(const struct gf_plan *plan,
			const struct gf_contest_allreduce_config *config,
			struct gf_contest_rows *rows, struct gf_error *err);

/*
 * Contestants that are a library's own all-reduce, told how to go: variants of
 * documents/library_tuning.h. "library:ring" is one of them, "library:all" all that the library can
 * be told.
 */

/* Is it "all", the algorithms or what the library can be told? */
bool gf_contest_is_all(const char *name);
/* Is that such a name? */
bool gf_contest_told_is(const char *name);
/* -EINVAL: no library can be told that, or not NCCL, between GPUs. */
int gf_contest_told_check(const char *name, bool gpus, struct gf_error *err);
/* Is the way asked for by its own name, not with all? */
bool gf_contest_told_named(const char *const *names, const struct gf_way *way);

/*
 * A search over sizes and ways that does not try everything. The ends of the sizes are measured
 * with all ways, then the size in the middle, then those in the middle of the halves, and so on.
 * The times of a way at the nearest sizes that it was measured at, below and above, are joined by a
 * line; a way that is searched is left out of a size where its line lies GF_SEARCH_FAR times as
 * high as the lowest, or higher.
 */
#define GF_SEARCH_FAR 1.5

/* The order of n sizes; order has room for them. */
void gf_search_order(size_t n, size_t *order);

struct gf_search_way {
	bool searched;  /* else it is always tried */
	double *time_s; /* by size; NAN: not measured */
};

/* tried[i]: is way i to be tried at size `at`? Returns how many. */
size_t gf_search_try(const struct gf_search_way *ways, size_t nways, const size_t *sizes,
		     size_t nsizes, size_t at, bool *tried);

#endif
