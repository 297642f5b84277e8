/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef GF_CONTEST_TOLD_H
#define GF_CONTEST_TOLD_H

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"
#include "contest/contest.h"
#include "contest/size_sweep.h"

/*
 * Contestants that are a library's own all-reduce, told how to go: variants of
 * doc/dialect.h. "library:ring" is one of them, "library:all" all that the
 * library can be told.
 */

/* Is that such a name? */
bool gf_contest_told_is(const char *name);
/* -EINVAL: no library can be told that. Needs no ranks. */
int gf_contest_told_check(const char *name, struct gf_error *err);
/* Its ways on these ranks, in the order of the dialect; the caller frees the
 * list. Collective. -ENOTSUP: the library here cannot be told that. */
int gf_contest_told_ways(const char *name,
			 const struct gf_contest_allreduce_config *config,
			 struct gf_contest_ways *ways, struct gf_error *err);

/* Collective. The caller frees it. */
int gf_contest_told_new(const struct gf_contest_allreduce_config *config,
			const struct gf_way *way, struct gf_comm_told **told,
			struct gf_error *err);
/* One message, in `work`. */
int gf_contest_told_send(const struct gf_contest_allreduce *b,
			 struct gf_comm_told *told, size_t count_elems,
			 struct gf_error *err);
/* The deadline of such a call begins, or ends. */
void gf_contest_hold(const struct gf_contest_allreduce_config *config,
		     bool begins);

#endif
