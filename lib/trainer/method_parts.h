/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef GF_TRAINER_METHOD_PARTS_H
#define GF_TRAINER_METHOD_PARTS_H

#include "trainer/method.h"
#include "trainer/update.h"

/* A method in parts: method.c applies whole steps, and late_gather.c applies messages one by
 * one. */

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
	/* of this step's forward: waiting, and what of it was not data that moved */
	double waited_s, handling_s;
	struct gf_step_wait *waits; /* per message */
};

/* The host is a step ahead of a GPU that updates by itself (method.c). */
struct gf_method_ahead;

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

#endif
