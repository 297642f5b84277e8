/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef GF_PROFILER_OVERLAP_H
#define GF_PROFILER_OVERLAP_H

#include <stdbool.h>

#include "base/error.h"
#include "documents/profile.h"
#include "profiler/model_times.h"
#include "profiler/contest/device.h"
#include "profiler/curve.h"

/*
 * What backward and messages do to each other.
 *
 * overlap_slowdown: how much longer backward takes while messages are in flight, if nothing else is
 * known.
 *
 * In the time model a message that takes d alone takes d during backward, too, and in that time
 * backward advances by d / slowdown. So what counts is the work that backward loses per second of
 * communication as measured alone: with backward longer by `lost` for messages that alone take
 * `busy`, slowdown = 1 / (1 - lost / busy). Where communication itself slows as well (ranks with
 * fewer cores than threads), this charges its delay to backward: the sum is right, the split is the
 * model's.
 *
 * Between hosts the split is measured, too: `compute` is how much longer backward takes in the time
 * in which messages are in flight, and `message` how much longer these take than alone. Messages
 * are in flight before backward begins, so that what a link lets pass after a pause does not count.
 *
 * On a GPU backward is timed by events. If messages go by NCCL, they are enqueued on a lane after
 * forward and run beside backward. Backward then loses the blocks and the memory rate that NCCL
 * uses. Otherwise the host exchanges the messages, and backward loses the time that its launches
 * wait for the host.
 */
struct gf_measure_overlap {
	struct gf_comm *comm;
	/* Messages go by NCCL, if it has that. */
	const struct gf_contest_device *device;
	const struct gf_allreduce_cost *cost; /* the algorithm to load with */
	int lanes;                            /* messages in flight at once; 0: one */
	size_t bytes;                         /* of a message; 0: the gradient's, at most 4 MiB */
	int threads;                          /* that compute, per rank */
	bool callers_memory;                  /* profiler/chain.h */
	double backward_s;                    /* alone, about */
	int repeats;
	double timeout_s;
};

/* All >= 1; compute and message are 0 where they are not known. */
struct gf_measure_mutual {
	double overlap_slowdown, compute, message;
};

/* Collective; all ranks get the same. */
int gf_measure_overlap(const struct gf_measure_overlap *config, struct gf_measure_step *step,
		       struct gf_measure_mutual *mutual, struct gf_error *err);

/* What small messages tell, each sent when backward has made a gradient. */
struct gf_measure_issued {
	/* What a message costs backward, beside the time in which it is in flight: the time that
	 * they take from it, shared among them. */
	double issue_s;
	/* How much longer one takes, on the rank that is ready last, than when nothing computes. */
	double extra_s;
};

/* Collective; all ranks get the same. Between hosts. */
int gf_measure_issue(const struct gf_measure_overlap *config, struct gf_measure_step *step,
		     struct gf_measure_issued *issued, struct gf_error *err);

/* The formula, limited to what a measurement can tell: [1, 100]. */
double gf_measure_slowdown(double lost_s, double busy_s);

/*
 * The tools of overlap.c (private to it and its loads). Passes of a step are timed by the host's
 * clock or by events on the device. Messages keep the network busy meanwhile, through whatever
 * carries them in training.
 */
struct gf_measure_pass {
	struct gf_measure_step *step;
	float *grads;                              /* the host's */
	void (*on_grad)(void *ctx, size_t tensor); /* (optional) */
	void *on_grad_ctx;
	struct gf_gpu_event *begun, *ended; /* NULL: the host's clock */
	struct gf_gpu_hold *hold;           /* or NULL */
	double start_s;
	/* The first failure. The others wait for messages, so the load goes on without the passes
	 * until all ranks can hear of it. */
	int rc;
	struct gf_error reason;
};

int gf_measure_pass_open(struct gf_measure_pass *p, struct gf_measure_step *step,
			 struct gf_error *err);
/* Closes it. Collective: all ranks fail if one did, here or in the pass. */
int gf_measure_pass_conclude(struct gf_measure_pass *p, struct gf_comm *comm, int rc,
			     struct gf_error *err);
/* On a device: what is enqueued from now on waits until backward is called. */
void gf_measure_pass_hold(struct gf_measure_pass *p);
void gf_measure_pass_forward(struct gf_measure_pass *p);
/* Backward begins here; on a device, when what is enqueued has ended. */
void gf_measure_pass_begin(struct gf_measure_pass *p);
/* Backward, until it has ended: seconds since begin. */
double gf_measure_pass_backward(struct gf_measure_pass *p);

/* The part of all messages that had been transferred at a point of time. */
double gf_measure_share_done(const struct gf_message_times *times, size_t count, double at_s);

/* Backward takes without_s, and with_s from begin_s on, beside the rest of messages that take
 * alone_s in all. NAN: so little was left of them that the pass tells nothing. */
struct gf_measure_mutual gf_measure_weigh(const struct gf_message_times *times, size_t count,
					  double begin_s, double without_s, double with_s,
					  double alone_s);

/* All functions but close are collective. */
struct gf_measure_traffic {
	/* The messages take so many times as long as backward. */
	double backwards;
	int (*open)(const struct gf_measure_overlap *config,
		    const struct gf_measure_sitting *messages, void **load, struct gf_error *err);
	/* Adds the times of all messages, with nothing beside them. */
	int (*alone)(void *load, const struct gf_measure_budget *budget,
		     struct gf_measure_samples *samples, struct gf_error *err);
	/* Backward without and with all messages, which take alone_s. */
	int (*once)(void *load, struct gf_measure_pass *pass, double alone_s,
		    struct gf_measure_mutual *mutual, struct gf_error *err);
	int (*gather)(void *load, const void *mine, size_t bytes, void *all, struct gf_error *err);
	void (*close)(void *load);
};

extern const struct gf_measure_traffic gf_measure_traffic_device;

/*
 * What it gains to send messages beside backward where ranks share processors.
 *
 * There a rank's messages take time from the compute of all ranks of the processor, and wait for
 * it. The ranks do not pass backward together, so what one rank sees of its own backward and its
 * own messages (profiler/overlap.h) is not what a step gains. So steps are measured whole, as
 * training does them: the gradient as one message after backward, in turns with the gradient in
 * parts that go as backward makes them. The step model is asked at which compute_slowdown it would
 * predict the measured ratio of the two.
 *
 * In a second beside each other, backward does 1 / compute_slowdown of its work and the messages do
 * 1 / message_slowdown of theirs. The sum of both is what the processors can do, whatever the
 * algorithm, so the other algorithms get the compute_slowdown that gives the same sum.
 */

/* Into how many messages the gradient is cut, at most. */
enum { GF_MEASURE_PARTS = 3 };

/* The gradient in equal messages. */
struct gf_measure_parts {
	size_t count;
	size_t elems;                  /* of each */
	size_t last[GF_MEASURE_PARTS]; /* tensor with which each is ready */
};

/* What both do together in a second if a step in parts takes so many times as long as one with the
 * whole gradient: 1 / compute_slowdown + 1 / message_slowdown of cost's algorithm. NAN: the ratio
 * does not tell. */
double gf_measure_joint_rate(const struct gf_model_profile *model,
			     const struct gf_allreduce_cost *cost,
			     const struct gf_measure_parts *whole,
			     const struct gf_measure_parts *parts, double ratio);

#endif
