/* SPDX-License-Identifier: BSD-3-Clause */
/* lib/libgradflow: the exchange as a C library for other programs, under the ABI of
 * include/gradflow.h. */
#ifndef GF_LIBGRADFLOW_HANDLE_H
#define GF_LIBGRADFLOW_HANDLE_H

#include <errno.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "base/heap.h"
#include "base/locale.h"
#include "checkpoints/run/snapshot.h"
#include "checkpoints/state.h"
#include "documents/models/model.h"
#include "documents/plan.h"
#include "exchange/exchange.h"
#include "gradflow.h"
#include "transport/comm.h"
#include "transport/watch.h"

struct gf_embed_device {
	struct gf_gpu *gpu;
	const struct gf_nccl_ops *nccl;
};

/* Linux has names of 64 characters at most. */
struct gf_embed_host {
	char name[65];
};

/*
 * The exchange of gradflow.h, and what gf-train does around its own without a model, data and an
 * optimiser: ranks, a plan that is bound to tensors, and sets of its state. handle.c opens it,
 * handle_plan.c takes the caller's plan, handle_step.c has the steps and says which calls are
 * allowed when, handle_halves.c has halves, and handle_state.c has what it holds back, and its
 * sets.
 */
struct gradflow_exchange {
	/* of a broken communicator, which messages may yet use; it is first */
	struct gf_left left;
	struct gf_comm *comm;
	struct gf_watch watch;   /* of waits that no engine watches */
	struct gf_plan plan;     /* bound to the tensors */
	struct gf_shape *shapes; /* ntensors, in the plan's order */
	size_t ntensors;
	size_t *order;                /* per tensor of the caller: its number in the plan */
	size_t *offset;               /* per tensor of the plan, and the end */
	struct gf_exchange *exchange; /* of gf_embed_start; or NULL */
	struct gf_state state;
	char *asked;         /* ways, as the plan leaves them */
	char *codecs, *ways; /* for checkpoints */
	/* with this run's sets, and the name of the owned one */
	struct gf_folder *folders;
	size_t nfolders, folders_capacity;
	const char *owned;
	size_t epoch_steps;
	bool on_device; /* gradients stay on GPUs, and go by NCCL */
	bool halves;    /* in place of steps */
	double timeout_s;
	size_t former; /* checkpoints/run/snapshot.h */
	uint64_t steps;
	int failed; /* what ended the exchange, and why */
	struct gf_error why;
	const char *_Atomic calling; /* the call that a thread is in, */
	locale_t locale;             /* and that thread's own */
	unsigned long generation;    /* of the process that opened it */
	/* On a GPU; the pool is what messages are packed into. */
	bool owns_gpu;
	struct gf_embed_device device;
	struct gf_gpu_stream *stream;
	void *pool;
	enum gf_dtype *dtypes; /* per tensor of the plan */
	size_t *caller;        /* per tensor of the plan: the caller's number */
	double momentum, carried;
	/* The step under way, or NULL: posts so far, and the first tensor of the plan that has not
	 * been posted. */
	struct gf_exchange_step *step;
	bool flushed;
	size_t nposted, front;
	bool *posted;  /* per tensor of the plan */
	size_t *batch; /* of one call: tensors of the plan */
	void (*on_done)(void *ctx, size_t tensor, int status);
	void *on_done_ctx;
	struct gf_embed_host *hosts; /* per rank */
};

/* As gradflow_exchange_open, on ranks that are there; takes comm, also if it fails. options: of
 * this version. device: in place of the one that the options name, borrowed; or NULL. */
int gf_embed_exchange_open(struct gf_comm *comm, const struct gradflow_tensor *tensors,
			   size_t ntensors, const struct gradflow_exchange_options *options,
			   const struct gf_embed_device *device, struct gradflow_exchange **x,
			   struct gf_error *err);
/* Collective: exchange and state, by the plan as it is now; and what takes both away. */
int gf_embed_start(struct gradflow_exchange *x, struct gf_error *err);
void gf_embed_stop(struct gradflow_exchange *x);

/* A plan from a document's text. */
int gf_embed_plan_text(struct gf_plan *plan, const char *text, struct gf_error *err);
/* Collective: the plan that the exchange has from a text, from the options' file, or the default
 * becomes one that runs these tensors, whose order and places are filled in. -ENOTSUP: it is not
 * run here. */
int gf_embed_bind(struct gradflow_exchange *x, const struct gradflow_tensor *tensors,
		  const struct gradflow_exchange_options *o, struct gf_error *err);
/* The type that the caller calls so; NULL: none. */
const enum gf_dtype *gf_embed_dtype(unsigned given);

/* The rest of it is zero. Where no engine runs, ranks are waited for so long (0: GF_TIMEOUT_S). */
void gf_embed_init(struct gradflow_exchange *x, struct gf_comm *comm, size_t ntensors,
		   double wait_s);
/* false: NULL, or a copy in a forked child. */
bool gf_embed_is_here(const struct gradflow_exchange *x);
/* This thread's place for a reason, which gradflow_error returns. */
struct gf_error *gf_embed_error(void);
/* What failed once fails for good, for the same reason: keeps it, and tells. */
int gf_embed_keep(struct gradflow_exchange *x, int rc, const struct gf_error *err);

/* Begins and ends a call of that name. -EINVAL: there is no exchange, or not in this process;
 * -EBUSY: another thread is in a call, or this one in a callback. `enter` also fails after a
 * failure, and `between` within a step, and where there are halves in place of steps. `leave`
 * returns rc. */
int gf_embed_reach(struct gradflow_exchange *x, const char *call, struct gf_error *err);
int gf_embed_enter(struct gradflow_exchange *x, const char *call, struct gf_error *err);
int gf_embed_between(struct gradflow_exchange *x, const char *call, struct gf_error *err);
int gf_embed_leave(struct gradflow_exchange *x, int rc);
/* There is no memory for the call that the thread is in: it ends here, and so does the exchange, on
 * all ranks. Within its limits: memory and files of the call are lost, and gf_embed_is_lost from
 * then on, when it is left alone. Returns -ENOMEM. */
int gf_embed_no_memory(struct gradflow_exchange *x, const struct gf_heap_guard *guard);
static inline bool gf_embed_is_lost(const struct gradflow_exchange *x)
{
	return x->failed == -ENOMEM;
}
/* After `reach` or `between`, in the function that the program calls: where it returns from if
 * there is no memory. */
#define GF_EMBED_GUARD(x)                                                                          \
	struct gf_heap_guard guard GF_HEAP_GUARD;                                                  \
	if (GF_HEAP_FAILS(guard))                                                                  \
	return gf_embed_no_memory(x, &guard)
/* What waits for the step: it ends, and means come. */
int gf_embed_flush(struct gradflow_exchange *x, struct gf_error *err);
/* Calls back, and notes that this thread does. */
void gf_embed_done(void *exchange, size_t tensor, int status);

#endif
