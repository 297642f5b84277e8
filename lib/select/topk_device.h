/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef GF_SELECT_TOPK_DEVICE_H
#define GF_SELECT_TOPK_DEVICE_H

#include <stddef.h>

#include "base/error.h"
#include "gpu/gpu.h"
#include "select/sets.h"

/*
 * The half of a top-k selection (select/sets.h) that is done where gradients
 * lie on a GPU: the residual is kept and added there, the k largest are taken
 * out there, and sums come to be there. Between the two, sets of k alone are on
 * the host, where ranks exchange them. All bits are those of a selection on the
 * host.
 *
 *	gf_sparse_device_take(d, slot, i, s, &err)	// gradients are made
 *	gf_sparse_selected(...)			// what is on s has ended
 *	... sets are exchanged; gf_sparse_conclude ...
 *	gf_sparse_device_commit(d, s, &err)		// the residual is new
 *	gf_sparse_device_apply(d, slot, &err)	// grads hold sums
 *
 * Of several steps under way each has a slot's messages. They are taken one
 * behind the other: a residual is that of the step before, whose commit comes
 * first; a step that is not committed leaves it as it was. Sums may come later,
 * in between other steps' gradients. One thread, but for the messages, which
 * another one has between take's end and commit.
 */
struct gf_sparse_device;

struct gf_sparse_device_slot {
	/* With `returns`, whose memory is the device's half's then; sets all
	 * within [sets, sets + sets_bytes), which gets pinned. */
	struct gf_sparse_message *messages;
	void *sets;
};

struct gf_sparse_device_config {
	struct gf_gpu *gpu; /* all borrowed */
	struct gf_gpu_stream *compute;
	float *grads; /* the device's, of all messages */
	size_t count_elems;
	const struct gf_sparse_device_slot *slots; /* depth; copied */
	size_t depth;                              /* steps under way at once */
	const size_t *firsts; /* where a message begins in grads; copied */
	size_t nmessages;
	size_t sets_bytes; /* of a slot */
	double density;    /* the greatest */
	int rank;
};

int gf_sparse_device_new(const struct gf_sparse_device_config *config,
			 struct gf_sparse_device **d, struct gf_error *err);
/* NULL is allowed. What is enqueued ends first. */
void gf_sparse_device_free(struct gf_sparse_device *d);

/* Enqueues the selection of message i's k largest, and their way to their place
 * among the message's sets. */
int gf_sparse_device_take(struct gf_sparse_device *d, size_t slot, size_t i,
			  struct gf_gpu_stream *s, struct gf_error *err);
/* Enqueues: the residual becomes what was not sent in the step taken last, with
 * what returned. On the stream of the next step's takes, or on the compute
 * stream behind the last take's end. */
int gf_sparse_device_commit(struct gf_sparse_device *d, struct gf_gpu_stream *s,
			    struct gf_error *err);
/* Enqueues on the compute stream: grads become the sum over ranks, zero in most
 * places. What they were is lost: with a depth of 1 the commit comes first. */
int gf_sparse_device_apply(struct gf_sparse_device *d, size_t slot,
			   struct gf_error *err);

/* Wait for the device: its residual, count_elems, to the host and back. */
int gf_sparse_device_fetch(struct gf_sparse_device *d, float *residual,
			   struct gf_error *err);
int gf_sparse_device_send(struct gf_sparse_device *d, const float *residual,
			  struct gf_error *err);

#endif
