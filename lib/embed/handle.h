/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef GF_EMBED_HANDLE_H
#define GF_EMBED_HANDLE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

#include "embed/embedded.h"

/*
 * The exchange of gradflow.h: handle.c opens it, handle_plan.c takes
 * the caller's plan, handle_step.c has the steps and says which calls are
 * allowed when, and handle_state.c has what it holds back.
 */
struct gf_embed_device {
	struct gf_gpu *gpu;
	const struct gf_nccl_ops *nccl;
};

/* Linux has names of 64 characters at most. */
struct gf_embed_host {
	char name[65];
};

struct gradflow_exchange {
	struct gf_job job;
	/* On a GPU; the pool is what messages are packed into. */
	bool owns_gpu;
	struct gf_embed_device device;
	struct gf_gpu_stream *stream;
	void *pool;
	enum gf_dtype *dtypes; /* per tensor of the plan */
	size_t *caller;        /* per tensor of the plan: the caller's number */
	double momentum, carried;
	/* The step under way, if begun: posts so far, and the first tensor of
	 * the plan that has not been posted. */
	bool begun, flushed;
	size_t nposted, front;
	bool *posted;  /* per tensor of the plan */
	size_t *batch; /* of one call: tensors of the plan */
	void (*on_done)(void *ctx, size_t tensor, int status);
	void *on_done_ctx;
	struct gf_embed_host *hosts; /* per rank */
};

/* As gradflow_exchange_open, on ranks that are there; takes comm, also if it
 * fails. options: of this version. device: in place of the one that the options
 * name, borrowed; or NULL. */
int gf_embed_exchange_open(struct gf_comm *comm,
			   const struct gradflow_tensor *tensors,
			   size_t ntensors,
			   const struct gradflow_exchange_options *options,
			   const struct gf_embed_device *device,
			   struct gradflow_exchange **x, struct gf_error *err);

/* A plan from a document's text. */
int gf_embed_plan_text(struct gf_plan *plan, const char *text,
		       struct gf_error *err);
/* -ENOTSUP: no such plan is run here. */
int gf_embed_plan_check(const struct gf_plan *plan, bool on_device,
			struct gf_error *err);
/* The caller's own messages, in the way of the plan's first. */
int gf_embed_plan_cut(struct gf_plan *plan,
		      const struct gradflow_exchange_options *o,
		      struct gf_error *err);
/* The type that the caller calls so; NULL: none. */
const enum gf_dtype *gf_embed_dtype(unsigned given);
/* The tensors' types and numbers by the plan's order. given: NULL: all f32. */
int gf_embed_take_dtypes(struct gradflow_exchange *x,
			 const enum gradflow_dtype *given,
			 struct gf_error *err);

/* Begins and ends every call of that name; -EBUSY, -EINVAL: it is not allowed.
 * `enter` also fails after a failure. `leave` returns rc. */
int gf_embed_reach(struct gradflow_exchange *x, const char *call,
		   struct gf_error *err);
int gf_embed_enter(struct gradflow_exchange *x, const char *call,
		   struct gf_error *err);
int gf_embed_leave(struct gradflow_exchange *x, int rc);
/* After them, in the function that the program calls: where it returns from if
 * there is no memory. */
#define GF_EMBED_GUARD(x)                                                      \
	struct gf_heap_guard guard GF_HEAP_GUARD;                              \
	if (GF_HEAP_FAILS(guard))                                              \
	return gf_job_no_memory(&(x)->job, &guard)
/* -EINVAL: a step is under way. */
int gf_embed_between(const struct gradflow_exchange *x, const char *call,
		     struct gf_error *err);
/* What waits for the step: it ends, and means come. */
int gf_embed_flush(struct gradflow_exchange *x, struct gf_error *err);
/* Calls back, and notes that this thread does. */
void gf_embed_done(void *exchange, size_t tensor, int status);

#endif
