/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef GF_RT_DEVICE_PARTS_H
#define GF_RT_DEVICE_PARTS_H

#include <stdbool.h>
#include <stdint.h>

#include "engine/engine_parts.h"
#include "lane/lane.h"
#include "rt/device_engine.h"
#include "select/topk_nccl.h"

/*
 * The device engine's inside: device_engine.c is what the compute thread calls,
 * device_new.c prepares, device_watch.c is the thread that watches.
 */
/*
 * A step under way is in a slot: of pools (step % npools), which it has until
 * it is joined and applied, and of events (step % depth), which last a step
 * longer, as the host may be that much ahead of the device.
 */
struct gf_device_events {
	struct gf_gpu_event *ready, *start, *end;
};

struct gf_device_message {
	/* set once */
	const struct gf_device_program *program; /* own, or of sparse */
	struct gf_device_program own;
	struct gf_sparse_nccl *sparse; /* NULL: all values go */
	size_t first_elem, count_elems, ntensors, lane;
	bool simultaneous, at_end;
	bool closes_lane; /* the step's last one on it */
	size_t like;      /* csc: the first message that goes as this one */
	struct gf_device_events *events; /* per slot */
	/* under lock */
	size_t left; /* tensors that are not ready */
};

/* A packed message that goes as message `like`. */
struct gf_device_pack {
	size_t like, count_elems;
	struct gf_device_program program;
};

struct gf_device_engine {
	/* Its thread watches: the lock is held while anything is enqueued on
	 * lanes or asked of NCCL. */
	struct gf_engine base;
	/* set once */
	struct gf_device_engine_config k;
	struct gf_device_lane *lanes;
	size_t nlanes;
	struct gf_device_message *messages;
	size_t nmessages;   /* the plan's; of csc one more, the norms */
	size_t *message_of; /* per tensor */
	double density;     /* of a selection; the compute thread's */
	size_t npools, depth;
	struct gf_device_pack *packs; /* csc */
	size_t npacks, packs_capacity;
	struct gf_gpu_event *taken;
	struct gf_gpu_event **begun, **ended; /* per slot; ended: has `end` */
	double *begun_s;      /* likewise, by the host's clock */
	uint64_t *step_bytes; /* likewise: that its messages sent */

	/* under lock */
	bool *tensor_ready;
	bool backward_ended;
	size_t next; /* the first message that has not been issued */
	/* Messages issued, and seen to end, counted over all steps. */
	uint64_t issued, seen;

	/* watching thread */
	double stuck_s;
	uint64_t stuck_at; /* e->seen */

	/* compute thread */
	uint64_t *last_on_lane; /* 1 + message issued last, as in `issued` */
	uint64_t done;          /* steps that had their `end` */
	bool opened;
	uint64_t sent_bytes; /* csc: in this step */
	struct gf_message_times *times;
};

/* How message i goes whole with that codec, NULL: f32; and how so many elements
 * that go as it does. */
int gf_device_program_for(const struct gf_device_engine *e, size_t i,
			  const struct gf_codec *codec,
			  struct gf_device_program *p, struct gf_error *err);
int gf_device_program_of_count(const struct gf_device_engine *e, size_t i,
			       size_t count_elems, const struct gf_codec *codec,
			       struct gf_device_program *p,
			       struct gf_error *err);
/* device_bytes.c: message i counts among the dense bytes. */
void gf_device_weigh(struct gf_device_engine *e, size_t i);
uint64_t gf_device_program_weight(const struct gf_device_engine *e,
				  const struct gf_device_program *p);
/* device_csc.c: after the plan's messages; per lane; what a message takes, on
 * the stream of that, and sends. */
int gf_device_make_csc(struct gf_device_engine *e, struct gf_error *err);
int gf_device_prepare_csc(struct gf_device_engine *e, size_t lane,
			  struct gf_error *err);
void gf_device_release_csc(struct gf_device_engine *e);
int gf_device_take_csc(struct gf_device_engine *e, size_t message,
		       struct gf_error *err);
int gf_device_run_csc(struct gf_device_engine *e, struct gf_device_message *m,
		      struct gf_error *err);
/* device_sparse.c: makes message i one of sets. */
int gf_device_make_sparse(struct gf_device_engine *e, size_t i,
			  struct gf_error *err);
/* Enqueues a message of the step begun last on its lane. */
int gf_device_run(struct gf_device_engine *e, struct gf_device_message *m,
		  struct gf_error *err);

extern const struct gf_engine_ops gf_engine_streams;
void gf_device_close(struct gf_engine *engine);
/* What this rank has sent in the step begun last, once all of its messages are
 * issued; `library`, which tells nobody, counts as a ring. */
uint64_t gf_device_engine_sent_bytes(const struct gf_device_engine *e);

void *gf_device_watch(void *engine);
/* "step 3, message 2 (...) on lane 1" in front of why; number: as in `seen`. */
void gf_device_name(const struct gf_device_engine *e, uint64_t number,
		    struct gf_error *err);
/* The events of the number-th message. */
const struct gf_device_events *
gf_device_events_of(const struct gf_device_engine *e, uint64_t number);
/* Moves `seen` on; under lock. 0 or a negative errno. */
int gf_device_see(struct gf_device_engine *e, struct gf_error *err);
/* Keeps a failure, aborts the lanes, wakes everybody; under lock. */
void gf_device_fail(struct gf_device_engine *e, int rc,
		    const struct gf_error *why);

#endif
