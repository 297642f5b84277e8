/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef GF_RUN_RESHARD_H
#define GF_RUN_RESHARD_H

#include <stddef.h>

#include "base/error.h"
#include "checkpoints/run/team.h"
#include "checkpoints/safetensors.h"
#include "checkpoints/state.h"

/*
 * A checkpoint of P ranks becomes the state of P' ranks.
 *
 * Residuals, histories and sums in flight are divided by the number of ranks when they are applied.
 * So they are multiplied by P'/P: sum/P is conserved, and the applied mean is the same. State that
 * each rank has of its own goes from rank r to the rank that is r's heir, else to rank r mod P',
 * and is added there. A rank that is no heir, and gets nothing so, begins with zeros. Running
 * statistics become their mean over the old ranks. Ranks are those that compute; servers own
 * nothing that counts.
 */
struct gf_reshard {
	int from, to; /* ranks before, and now */
	int rank;     /* this one, now */
	/* Per rank before: what it is now, -1: it is no more. Borrowed; NULL: the first ranks keep
	 * their numbers. */
	const int *heirs;
	/* Grows by the squares of what this rank takes over from ranks that are no more.
	 * (optional) */
	double *carried;
};

/* The own arrays, before the first part. */
void gf_reshard_begin(const struct gf_state *s);
/* Adds what this rank takes over from old rank `part`, whose file that is. */
int gf_reshard_take(const struct gf_reshard *r, int part, const struct gf_safetensors *file,
		    const struct gf_state *s, struct gf_error *err);
/* When the shared arrays are there too and all parts are taken. */
void gf_reshard_end(const struct gf_reshard *r, const struct gf_state *s);

/*
 * A run has done `steps` steps of `from_samples`, with `samples` in an epoch. The result is the
 * number of steps of `to_samples` from which it goes on: in the same epoch, at the first whole step
 * after the samples that were seen, or at the epoch's end. An epoch is one order of all samples for
 * any number of ranks, so none is seen twice.
 */
size_t gf_reshard_steps(size_t steps, size_t samples, size_t from_samples, size_t to_samples);

/*
 * Which rank goes on from what a rank of an earlier run has left. Collective; every rank returns
 * the same. former: 1 + what this rank was, of `before` ranks; 0: it is new. *heirs has `before`
 * entries, -1 for a rank that is no more, and is the caller's to free. It is NULL if all ranks are
 * new: nobody knows. -EINVAL: there was no such rank, or two ranks were the same.
 */
int gf_heirs_find(struct gf_team *team, size_t former, int before, int **heirs,
		  struct gf_error *err);

#endif
