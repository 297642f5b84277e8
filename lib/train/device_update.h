/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef GF_TRAIN_DEVICE_UPDATE_H
#define GF_TRAIN_DEVICE_UPDATE_H

#include "base/error.h"
#include "gpu/gpu.h"
#include "optim/optimizer.h"

/*
 * An optimiser's step on a GPU: the update rule and exclusions of one on the
 * host (optim/optimizer.h), whose arrays of state are the copy that checkpoints
 * are made of. SGD and AdamW come to the same bits; LARS, and clipping, add
 * their norms up in another order, the same on every GPU.
 */
struct gf_train_update {
	struct gf_gpu *gpu; /* borrowed, like the next two */
	struct gf_gpu_stream *stream;
	struct gf_optimizer *host;
	void *slots[GF_OPTIM_SLOTS]; /* the device's */
	uint64_t *steps; /* the device's count, if the optimiser counts */
	/* of the rule: lars has all of them */
	struct gf_gpu_tensors tensors;
	void *table, *work;
	/* of a norm to clip at: what the gradient is scaled by; else NULL */
	void *clip_work, *factor;
};

/* -ENOTSUP: there is no such update on GPUs; or none of some of a gradient. */
int gf_train_update_check(const struct gf_optim_config *config,
			  struct gf_error *err);
int gf_train_update_check_pieces(const struct gf_optim_config *config,
				 struct gf_error *err);
int gf_train_update_open(struct gf_train_update *u, struct gf_error *err);
void gf_train_update_close(struct gf_train_update *u);

/* Enqueues an update. Nothing changes if *skip, a word on the device, is not 0.
 */
void gf_train_update_step(struct gf_train_update *u, double lr, float scale,
			  const uint32_t *skip, const float *grads,
			  float *params);

/* As gf_optimizer_step_pieces; the pieces' gradients lie one after the other,
 * on the device, with zeros between them if with anything. Clipping adds its
 * norm up over all of them. skip: as above, or NULL. */
void gf_train_update_pieces(struct gf_train_update *u, double lr, float scale,
			    const uint32_t *skip,
			    const struct gf_optim_piece *pieces, size_t npieces,
			    float *params);

/* Wait for the device: its state to the host's copy, and back. */
int gf_train_update_fetch(struct gf_train_update *u, struct gf_error *err);
int gf_train_update_send(struct gf_train_update *u, struct gf_error *err);

#endif
