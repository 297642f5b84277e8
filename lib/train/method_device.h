/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef GF_TRAIN_METHOD_DEVICE_H
#define GF_TRAIN_METHOD_DEVICE_H

#include "train/device_flags.h"
#include "train/device_marks.h"
#include "train/device_update.h"
#include "train/method.h"

/*
 * The method of gradients that stay on GPUs in parts: method_device.c is its
 * step, method_device_open.c what it stands on and what of it a checkpoint
 * holds.
 */
struct gf_method_device {
	struct gf_device_update update;
	size_t *offsets, count_elems; /* of the plan's tensors */
	struct gf_device_flags flags; /* which gradients are bad */
	double scale[GF_FLAGS];
	size_t enqueued, learnt; /* steps of this process */
	size_t step;             /* the last one, over the whole run */
	struct gf_device_marks marks;
	struct gf_device_durations durations;
	bool has_durations;
	double begun_s[2]; /* the step before, and this one: the host */
	/* topk, gtopk: what was not sent; on the device, and as it was last
	 * fetched. NULL: all gradients go */
	void *residual;
	float *host_residual;
	uint64_t sent_bytes, told_bytes; /* so far, and that were told of */
	int rc; /* of what gives nothing back: the first failure */
	struct gf_error reason;
};

/* Of struct gf_method_ops. */
int gf_method_device_open(struct gf_method *m, struct gf_error *err);
void gf_method_device_close(struct gf_method *m);
void gf_method_device_state(struct gf_method *m, struct gf_state *s);
int gf_method_device_settle(struct gf_method *m, struct gf_error *err);
int gf_method_device_restore(struct gf_method *m, struct gf_error *err);

/* What became of the step before, which the device is done with. */
void gf_method_device_learn(struct gf_method *m);

#endif
