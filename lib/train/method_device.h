/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef GF_TRAIN_METHOD_DEVICE_H
#define GF_TRAIN_METHOD_DEVICE_H

#include "engine/pool.h"
#include "select/csc_nccl.h"
#include "select/topk_nccl.h"
#include "train/device_flags.h"
#include "train/device_marks.h"
#include "train/device_update.h"
#include "train/method_parts.h"

/*
 * The method of gradients that stay on GPUs in parts: method_device.c is its
 * step, method_device_open.c what it stands on and what of it a checkpoint
 * holds.
 */
struct gf_device_slot {
	double scale; /* of a gradient's loss */
};

struct gf_method_csc {
	struct gf_pool layout; /* the plan's tensors; of no memory */
	struct gf_csc csc;     /* on the host what is told of it */
	struct gf_csc_nccl *nccl;
	size_t number; /* from 0, of the step begun last */
};

struct gf_method_device {
	struct gf_device_update update;
	size_t *offsets, count_elems; /* of the plan's tensors */
	struct gf_device_flags flags; /* which gradients are bad */
	struct gf_device_slot *slots; /* K: gradients under way */
	size_t learnt;                /* of m->applied */
	/* Of the gradient that was applied last, whose slot may be taken. */
	size_t step;
	double scale;
	struct gf_device_marks marks;
	struct gf_device_durations durations;
	bool has_durations;
	bool due, was_due; /* this step applies one; the one before did */
	/* topk, gtopk: what was not sent; on the device, and as it was last
	 * fetched. NULL: all gradients go */
	void *residual;
	float *host_residual;
	struct gf_method_csc *csc;      /* NULL: another selection */
	struct gf_sparse_nccl **sparse; /* per message; NULL: likewise */
	double density;                 /* of the step begun last */
	struct gf_pool *pools;          /* per slot; on the device */
	struct gf_work *lists;          /* per slot; of csc unused */
	size_t listed;                  /* as m->begun, of the last list */
	uint64_t ended;                 /* steps; their `end` is enqueued */
	int rc; /* of what gives nothing back: the first failure */
	struct gf_error reason;
};

/* Of struct gf_method_ops. */
int gf_method_device_open(struct gf_method *m, struct gf_error *err);
void gf_method_device_close(struct gf_method *m);
void gf_method_device_state(struct gf_method *m, struct gf_state *s);
int gf_method_device_settle(struct gf_method *m, struct gf_error *err);
int gf_method_device_restore(struct gf_method *m, struct gf_error *err);

/* What became of the gradient applied last, which the device is done with. */
void gf_method_device_learn(struct gf_method *m);
/* method_device_csc.c: of chunks. begin: before a step's first message. */
int gf_method_csc_open(struct gf_method *m, struct gf_error *err);
void gf_method_csc_close(struct gf_method *m);
void gf_method_csc_begin(struct gf_method *m, size_t slot);
/* Sizes of messages: of the ramp, or of the chunks that are chosen. */
int gf_method_csc_expect(struct gf_method *m, const uint64_t *chosen,
			 struct gf_error *err);
void gf_method_csc_apply(struct gf_method *m, double lr);
void gf_method_csc_state(struct gf_method *m, struct gf_state *s);
/* What lasts from step to step, to the device. */
int gf_method_csc_send(struct gf_method *m, struct gf_error *err);
int gf_method_csc_keep(struct gf_method *m, size_t age, float *values,
		       struct gf_error *err);
int gf_method_csc_restore(struct gf_method *m, size_t age,
			  struct gf_error *err);
/* method_device_list.c: after the residual and the csc. */
int gf_method_device_open_lists(struct gf_method *m, struct gf_error *err);
void gf_method_device_close_lists(struct gf_method *m);
struct gf_engine_hooks gf_method_device_hooks(struct gf_method *m);
/* The messages that the engine shall be ready for. */
int gf_method_device_expect(struct gf_method *m, struct gf_error *err);
/* Gives the engine the list of the step begun last, once. */
void gf_method_device_list(struct gf_method *m);
/* The index-th gradient; and which step of the engine made it, if it was not
 * there to begin with. */
static inline struct gf_device_slot *
gf_method_device_slot(const struct gf_method *m, size_t index)
{
	const struct gf_method_device *d = m->priv;

	return &d->slots[gf_method_slot(m, index)];
}
static inline float *gf_method_device_grads(const struct gf_method *m,
					    size_t index)
{
	return m->env.device_grads +
	       gf_method_slot(m, index) * m->env.device_stride;
}
static inline uint64_t gf_method_device_step(const struct gf_method *m,
					     size_t index)
{
	return index - m->restored;
}

#endif
