/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef GF_MEASURE_OVERLAP_PARTS_H
#define GF_MEASURE_OVERLAP_PARTS_H

#include "measure/curve.h"
#include "measure/overlap.h"

/*
 * The tools of overlap.c (private to it and its loads). Passes of a step are
 * timed by the host's clock or by events on the device. Messages keep the
 * network busy meanwhile, through whatever carries them in training.
 */
struct gf_measure_pass {
	struct gf_measure_step *step;
	float *grads;                              /* the host's */
	void (*on_grad)(void *ctx, size_t tensor); /* (optional) */
	void *on_grad_ctx;
	struct gf_gpu_event *begun, *ended; /* NULL: the host's clock */
	struct gf_gpu_hold *hold;           /* or NULL */
	double start_s;
	/* The first failure. The others wait for messages, so the load goes on
	 * without the passes until all ranks can hear of it. */
	int rc;
	struct gf_error reason;
};

int gf_measure_pass_open(struct gf_measure_pass *p,
			 struct gf_measure_step *step, struct gf_error *err);
/* Closes it. Collective: all ranks fail if one did, here or in the pass. */
int gf_measure_pass_conclude(struct gf_measure_pass *p, struct gf_comm *comm,
			     int rc, struct gf_error *err);
/* On a device: what is enqueued from now on waits until backward is called. */
void gf_measure_pass_hold(struct gf_measure_pass *p);
void gf_measure_pass_forward(struct gf_measure_pass *p);
/* The device has done it, so that its clock and the host's start together. */
void gf_measure_pass_settle(struct gf_measure_pass *p);
/* Backward begins here; on a device, when what is enqueued has ended. */
void gf_measure_pass_begin(struct gf_measure_pass *p);
/* Backward, until it has ended: seconds since begin. */
double gf_measure_pass_backward(struct gf_measure_pass *p);

/* The part of all messages that had been transferred at a point of time. */
double gf_measure_share_done(const struct gf_message_times *times, size_t count,
			     double at_s);

/* All functions but close are collective. */
struct gf_measure_traffic {
	/* The messages take so many times as long as backward. */
	double backwards;
	int (*open)(const struct gf_measure_overlap *config,
		    const struct gf_measure_sitting *messages, void **load,
		    struct gf_error *err);
	/* Adds the times of all messages, with nothing beside them. */
	int (*alone)(void *load, const struct gf_measure_budget *budget,
		     struct gf_measure_samples *samples, struct gf_error *err);
	/* Backward without and with all messages, which take alone_s. */
	int (*once)(void *load, struct gf_measure_pass *pass, double alone_s,
		    struct gf_measure_mutual *mutual, struct gf_error *err);
	int (*gather)(void *load, const void *mine, size_t bytes, void *all,
		      struct gf_error *err);
	void (*close)(void *load);
};

/* Backward without messages and with one for each gradient, as far as there are
 * messages: what it loses, and what each message takes (of `messages`), NAN if
 * it ends after backward. For a load between hosts. */
int gf_measure_traffic_issue(void *load, struct gf_measure_pass *pass,
			     double *lost_s, double *takes_s,
			     struct gf_error *err);

extern const struct gf_measure_traffic gf_measure_traffic_host,
	gf_measure_traffic_device;

#endif
