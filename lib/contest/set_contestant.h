/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef GF_CONTEST_SET_CONTESTANT_H
#define GF_CONTEST_SET_CONTESTANT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "comm/comm.h"
#include "contest/exact.h"
#include "comm/watch.h"
#include "engine/burst.h"

/*
 * A sparse all-reduce as a contestant. Every rank takes the largest values out
 * of its message (a share `density` of them, select/sets.h). The sets travel by
 * topk or gtopk. The result is the sum of the sets, and zero where no set had a
 * value. All three parts are in the time, as they are in a step of training.
 */
struct gf_contest_sparse_config {
	struct gf_comm *comm;         /* borrowed */
	struct gf_watch *watch;       /* borrowed */
	struct gf_way way;            /* a sparse algorithm, with a density */
	const struct gf_codec *codec; /* of the sets' values; NULL: none */
	size_t count_elems;
	bool checks; /* it sends nothing, but knows what is right */
};

struct gf_contest_sparse;

/* Collective. */
int gf_contest_sparse_new(const struct gf_contest_sparse_config *config,
			  struct gf_contest_sparse **s, struct gf_error *err);
void gf_contest_sparse_free(struct gf_contest_sparse *s);

/* data: this rank's contribution becomes the sum of all ranks' sets. */
int gf_contest_sparse_send(struct gf_contest_sparse *s, float *data,
			   struct gf_error *err);
/* The sets' own; borrowed. */
struct gf_burst *gf_contest_sparse_burst(const struct gf_contest_sparse *s);

/* Elements of a result that are not what the same selections and merges, done
 * here for all ranks by other means, make of the exact inputs. */
size_t gf_contest_sparse_wrong(const struct gf_contest_sparse *s,
			       const struct gf_exact *x, const float *data);

#endif
