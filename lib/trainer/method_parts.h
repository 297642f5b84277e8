/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef GF_TRAINER_METHOD_PARTS_H
#define GF_TRAINER_METHOD_PARTS_H

#include "trainer/method.h"
#include "compressors/sums.h"

/* A method in parts: method.c applies whole steps, late_gather.c applies messages one by one,
 * own_parts.c updates a rank's own parts, and update.c has the rule. */

/*
 * An optimiser's step on a GPU: the update rule and exclusions of one on the host
 * (trainer/optim/optimizer.h), whose arrays of state are the copy that checkpoints are made of. SGD
 * and AdamW come to the same bits; LARS, and clipping, add their norms up in another order, the
 * same on every GPU.
 */
struct gf_train_part {
	size_t first, count_elems;
	size_t state; /* its first element in each slot */
	bool excluded;
};

struct gf_train_update {
	struct gf_gpu *gpu; /* borrowed, like the next two */
	struct gf_gpu_stream *stream;
	struct gf_optimizer *host;
	void *slots[GF_OPTIM_SLOTS]; /* the device's, of the parts alone */
	struct gf_train_part *parts; /* that this rank updates, ascending: with shards its own */
	size_t nparts;
	uint64_t *steps; /* the device's count, if the optimiser counts */
	/* of the rule: lars has all of them */
	struct gf_gpu_tensors tensors;
	void *table, *work;
	/* of a norm to clip at: what the gradient is scaled by; else NULL */
	void *clip_work, *factor;
};

/* -ENOTSUP: there is no such update on GPUs; with `pieces` none of some of a gradient. */
int gf_train_update_check(const struct gf_optim_config *config, bool pieces, struct gf_error *err);

/*
 * The update rule: what a gradient does to the parameters, and what the optimiser remembers. How
 * gradients come together is the selection's business; the exchange calls one of the functions
 * below, once it has the sum over ranks. `scale` turns what it has into the mean.
 */
struct gf_update {
	float *params;                  /* borrowed, flat; NULL: a replay, no updates */
	struct gf_optimizer optimizer;  /* own; of nothing in a replay */
	const size_t *offsets;          /* of the tensors, ntensors + 1; borrowed */
	const struct gf_plan *plan;     /* for names; borrowed */
	const struct gf_shape *shapes;  /* of the tensors; borrowed */
	struct gf_optim_watch watch;    /* of params */
	const struct gf_shards *shards; /* a device has state of own parts alone; NULL; borrowed */
	/* The update that gf_update_sums enqueues if gradients lie on a GPU. Then params and the
	 * optimizer's state are copies. Else zeros. */
	struct gf_train_update device;
	float *device_params; /* borrowed */
};

/* Opens an update with all but the optimizer filled in. With nccl it runs on the place's stream. */
int gf_update_open(struct gf_update *u, const struct gf_optim_config *config,
		   const struct gf_place *place, struct gf_error *err);
void gf_update_close(struct gf_update *u);
/* Wait for the device, if there is one: params and state to the host's copies; state to the
 * device. */
int gf_update_fetch(struct gf_update *u, struct gf_error *err);
int gf_update_send(struct gf_update *u, struct gf_error *err);
/* Params alone, likewise, either way. */
int gf_update_copy(struct gf_update *u, enum gf_gpu_copy kind, struct gf_error *err);
void gf_update_state(struct gf_update *u, struct gf_state *s);

/* Updates by the sums of a step. With `pieces` it updates only their elements
 * (gf_optimizer_step_pieces): the others keep their velocity, GradientFlow's momentum correction.
 * On a device nothing changes if *skip, a word on the device, is not 0. NULL: the step is never
 * skipped. */
void gf_update_sums(struct gf_update *u, double lr, const struct gf_select_sums *sums, bool pieces,
		    const uint32_t *skip);

/* Messages that are applied late (late_gather.c). */
struct gf_method_late {
	bool used;
	bool pending; /* a step's messages are */
	bool updated; /* a step was, at this rate */
	double lr;
	size_t *message; /* per tensor: which one it is in */
	bool *applied;   /* per message */
	int rc;          /* the first failure since forward began */
	struct gf_error err;
	/* of this step's forward, and with shards its backward: waiting, and what of it was not
	 * data that moved */
	double waited_s, handling_s;
	struct gf_step_wait *waits; /* per message; with shards again, for backward */
};

/* The host is a step ahead of a GPU that updates by itself (method.c). */
struct gf_method_ahead;
/* Shards (own_parts.c). */
struct gf_method_shards;

struct gf_method {
	struct gf_method_env env;
	struct gf_exchange *exchange;
	struct gf_update updater;
	struct gf_method_ahead *ahead;    /* NULL: gradients go by the host */
	size_t step;                      /* begun last */
	struct gf_exchange_step *made;    /* the step that is computed */
	struct gf_exchange_step *applied; /* by its update; NULL: none is */
	bool skip;                        /* but not that one, which is bad */
	size_t timed;                     /* the times of messages are this step's; 0: none */
	int rc;                           /* of what gives nothing back: the first failure */
	struct gf_error reason;
	struct gf_loss_scale scale;
	double handled_s;    /* as backward ended */
	uint64_t skipped;    /* steps so far */
	uint64_t told_bytes; /* sent, and told of */
	struct gf_method_late late;
	struct gf_method_shards *shards; /* NULL: the plan has none */
};

/* 1, and which gradient is bad. */
int gf_method_refuse(const struct gf_method *m, size_t step, struct gf_select_bad bad,
		     struct gf_error *err);

/* late_gather.c. Is it used with this plan? After the exchange is open. */
void gf_method_late_open(struct gf_method *m);
void gf_method_late_close(struct gf_method *m);
/* Parts of a step: before forward, after it, gf_method_exchange and gf_method_update. */
void gf_method_late_begin(struct gf_method *m);
int gf_method_take_rest(struct gf_method *m, struct gf_error *err);
int gf_method_late_exchange(struct gf_method *m, struct gf_error *err);
void gf_method_late_update(struct gf_method *m, double lr);
/* Waits for a message, with the clock running, unto late.waits[which] and late.rc. */
typedef int gf_method_wait_fn(struct gf_exchange_step *step, size_t message, struct gf_error *err);
void gf_method_wait(struct gf_method *m, size_t which, size_t message, gf_method_wait_fn *wait);

/* own_parts.c. Before the exchange is opened, which then has the list (NULL: no shards), and once
 * the update is open. */
int gf_method_shards_open(struct gf_method *m, struct gf_error *err);
struct gf_shards *gf_method_shards_list(struct gf_method *m);
void gf_method_shards_begin(struct gf_method *m);
void gf_method_shards_close(struct gf_method *m);
/* Parts of a step: it begins, a layer asks for a tensor, a forward has ended, a gradient was made,
 * backward has ended; was one of them bad; own parts are updated. */
void gf_method_shards_step(struct gf_method *m);
void gf_method_shards_need(struct gf_method *m, size_t tensor);
void gf_method_shards_turn(struct gf_method *m);
void gf_method_shards_made(struct gf_method *m, size_t tensor);
void gf_method_shards_end(struct gf_method *m);
int gf_method_shards_inspect(struct gf_method *m, struct gf_select_bad *bad, struct gf_error *err);
/* Of memory that counts whole arrays, what is here no more: at the step's peak. */
struct gf_train_memory;
void gf_method_shards_memory(const struct gf_method *m, struct gf_train_memory *memory);
void gf_method_shards_update(struct gf_method *m, double lr, const struct gf_select_sums *sums);

#endif
