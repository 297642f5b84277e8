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
/* -EINVAL: no library can be told that, or not NCCL, between GPUs. */
int gf_contest_told_check(const char *name, bool gpus, struct gf_error *err);
/* Its ways, in the order of the dialect; the caller frees the list. -ENOTSUP:
 * nothing that reduces messages here can be told; -EINVAL: it has no such
 * variant. What it cannot do here only a try shows
 * (gf_contest_allreduce_try). */
int gf_contest_told_ways(const char *name,
			 const struct gf_contest_allreduce_config *config,
			 struct gf_contest_ways *ways, struct gf_error *err);

/* A line on rank 0 about settings in the environment that hold for the default
 * alone. */
void gf_contest_told_remark(const struct gf_contest_allreduce_config *config,
			    struct gf_text *out);
/* Is the way asked for by its own name, not with all? */
bool gf_contest_told_named(const char *const *names, const struct gf_way *way);

/* MPI's; between GPUs contest/device_send.h tells NCCL. Collective. The caller
 * frees it. */
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
