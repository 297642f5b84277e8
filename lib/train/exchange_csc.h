/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef GF_TRAIN_EXCHANGE_CSC_H
#define GF_TRAIN_EXCHANGE_CSC_H

#include "rt/csc.h"
#include "rt/csc_device.h"
#include "train/exchange.h"

/*
 * Between exchange_csc.c, which exchanges chunks and their norms, and
 * exchange_csc_device.c, where gradients and histories lie on a GPU.
 */
struct gf_csc_slot {
	struct gf_csc_step step;
	struct gf_work *list; /* of the engine: messages, then the norms */
	size_t nlist;
	bool bad;
};

struct gf_csc_exchange {
	struct gf_csc csc;
	struct gf_csc_slot *slots;
	struct gf_optim_piece *pieces; /* nchunks */
	/* Of steps that have come and are not applied, oldest first, depth - 1
	 * times nchunks words: the chunks that they sent, and those that they
	 * chose. Only as of a checkpoint. */
	uint64_t *flight_sent, *flight_next;
	struct gf_csc_device *device; /* NULL: all on the host */
};

/* What checkpoints hold of chunks, wherever their messages go: the history,
 * what goes next, and so many words of what steps in flight sent and chose. */
void gf_csc_add_state(struct gf_state *s, const struct gf_csc *csc,
		      uint64_t *flight_sent, uint64_t *flight_next,
		      size_t words);

int gf_csc_exchange_open_device(struct gf_exchange *x, struct gf_error *err);
/* The sums of a step, enqueued to lie on the device as in `packed`. */
const float *gf_csc_exchange_sums(struct gf_exchange *x, size_t slot);
/* Of struct gf_exchange_ops. */
int gf_csc_exchange_take(struct gf_exchange *x, struct gf_gpu_stream *s,
			 size_t tensor, struct gf_error *err);
int gf_csc_exchange_commit(struct gf_exchange *x, struct gf_gpu_stream *s,
			   size_t slot, struct gf_error *err);
int gf_csc_exchange_fetch(struct gf_exchange *x, struct gf_error *err);
int gf_csc_exchange_send(struct gf_exchange *x, struct gf_error *err);

#endif
