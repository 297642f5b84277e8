/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef GF_TRAIN_EXCHANGE_SPARSE_H
#define GF_TRAIN_EXCHANGE_SPARSE_H

#include "rt/sparse.h"
#include "rt/sparse_device.h"
#include "train/exchange.h"

/*
 * Between exchange_sparse.c, which selects and exchanges, and
 * exchange_sparse_device.c, where gradients and residuals lie on a GPU.
 */
struct gf_sparse_slot {
	struct gf_sparse_message *messages; /* the plan's nmessages */
	struct gf_work *list;
	void *sets; /* of all messages */
	struct gf_exchange_bad bad;
	bool restored; /* on a device: its sums are in the pool, not in sets */
};

struct gf_sparse_exchange {
	float *residual;
	uint32_t *scratch; /* of the thread that moves messages */
	struct gf_sparse_slot *slots;
	struct gf_sparse_device *device; /* NULL: all on the host */
	/* then, per tensor: which message it is in; per message: tensors of
	 * this step whose gradients are not taken yet */
	size_t *message_of, *missing;
};

/* The greatest of the plan's. */
double gf_sparse_exchange_density(const struct gf_exchange *x);

/* sets_bytes: of a slot. */
int gf_sparse_exchange_open_device(struct gf_exchange *x, size_t sets_bytes,
				   struct gf_error *err);
void gf_sparse_exchange_close_device(struct gf_sparse_exchange *p);
void gf_sparse_exchange_begin_device(struct gf_exchange *x);
/* The sums of a step, enqueued; on the device. */
const float *gf_sparse_exchange_sums(struct gf_exchange *x, size_t slot);
/* Of struct gf_exchange_ops. */
void gf_sparse_exchange_keep(struct gf_exchange *x, size_t slot, size_t age,
			     float *values);
void gf_sparse_exchange_restore(struct gf_exchange *x, size_t slot, size_t age);
int gf_sparse_exchange_take(struct gf_exchange *x, struct gf_gpu_stream *s,
			    size_t tensor, struct gf_error *err);
int gf_sparse_exchange_commit(struct gf_exchange *x, struct gf_gpu_stream *s,
			      size_t slot, struct gf_error *err);
int gf_sparse_exchange_fetch(struct gf_exchange *x, struct gf_error *err);
int gf_sparse_exchange_send(struct gf_exchange *x, struct gf_error *err);

#endif
