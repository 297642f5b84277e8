/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef GF_RUN_TEAM_H
#define GF_RUN_TEAM_H

#include <stddef.h>

#include "base/error.h"
#include "checkpoints/state.h"
#include "exchange/exchange.h"
#include "transport/comm.h"

/*
 * Work that all ranks do together outside a step. While an exchange lives every use of the
 * communicator goes through it; before and after, directly. All ranks make the same calls in the
 * same order.
 */
struct gf_team {
	struct gf_comm *comm;
	struct gf_exchange *exchange; /* NULL: none lives */
	int workers;                  /* the first so many ranks compute; 0: all */
};

/* 0 if rc is 0 everywhere, else the failing rank's rc and reason. */
int gf_team_agree(struct gf_team *t, int rc, struct gf_error *err);
/* As gf_comm_same_text. */
int gf_team_same_text(struct gf_team *t, const char *what, const char *text, struct gf_error *err);
/* Rank 0's bytes to all. */
int gf_team_bcast(struct gf_team *t, void *data, size_t size_bytes, struct gf_error *err);
/* recv holds ranks * size_bytes, in rank order. */
int gf_team_allgather(struct gf_team *t, const void *send, size_t size_bytes, void *recv,
		      struct gf_error *err);
/* mean[i] = the mean over workers of value[i], summed in rank order, so that all ranks get the same
 * bits. May be in place. */
int gf_team_mean(struct gf_team *t, const float *value, float *mean, size_t count,
		 struct gf_error *err);

/* Are the shared arrays the same, bit for bit, on all ranks? 1 if not, with the first rank and
 * array that differ from rank 0's in err. */
int gf_team_compare(struct gf_team *team, size_t step, const struct gf_state *state,
		    struct gf_error *err);

#endif
