/* SPDX-License-Identifier: BSD-3-Clause */
/* lib/embed: libgradflow: the exchange under the C ABI of
 * include/gradflow.h. */
#ifndef GF_EMBED_EMBEDDED_H
#define GF_EMBED_EMBEDDED_H

#include <errno.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "base/heap.h"
#include "base/locale.h"
#include "ckpt/state.h"
#include "comm/comm.h"
#include "doc/model.h"
#include "doc/plan.h"
#include "comm/watch.h"
#include "exchange/exchange.h"
#include "gradflow.h"
#include "run/snapshot.h"

/*
 * What gf-train does around its exchange, without a model, data and an
 * optimiser: ranks, a plan that is bound to tensors, an exchange, and sets of
 * its state. struct gradflow_exchange begins with a job.
 */
struct gf_job {
	struct gf_left left; /* gf_job_stay; the handle begins here */
	struct gf_comm *comm;
	struct gf_watch watch;   /* of waits that no engine watches */
	struct gf_plan plan;     /* bound to the tensors */
	struct gf_shape *shapes; /* ntensors, in the plan's order */
	size_t ntensors;
	size_t *order;  /* per tensor of the caller: its number in the plan */
	size_t *offset; /* per tensor of the plan, and the end */
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
	double timeout_s;
	size_t former; /* run/reshard.h */
	uint64_t steps;
	int failed; /* what ended the job, and why */
	struct gf_error why;
	const char *_Atomic calling; /* the call that a thread is in, */
	locale_t locale;             /* and that thread's own */
	unsigned long generation;    /* of the process that opened it */
};

/* The rest of it is zero. Where no engine runs, ranks are waited for so long
 * (0: GF_TIMEOUT_S). */
void gf_job_init(struct gf_job *job, struct gf_comm *comm, size_t ntensors,
		 double wait_s);
/* false: NULL, or a copy in a forked child. */
bool gf_job_is_here(const struct gf_job *job);
/* Begin and end a call of that name. -EINVAL: there is no job, or not in this
 * process; -EBUSY: another thread is in a call. `leave` returns rc. */
int gf_job_reach(struct gf_job *job, const char *call, struct gf_error *err);
int gf_job_leave(struct gf_job *job, int rc);
/* There is no memory for the call that the thread is in: it ends here, and so
 * does the job, on all ranks. Within its limits: memory and files of the call
 * are lost, and gf_job_is_lost from then on, when it is left alone. Returns
 * -ENOMEM. */
int gf_job_no_memory(struct gf_job *job, const struct gf_heap_guard *guard);
static inline bool gf_job_is_lost(const struct gf_job *job)
{
	return job->failed == -ENOMEM;
}

/* This thread's place for a reason, which gradflow_error returns. */
struct gf_error *gf_embed_error(void);

/* What the caller gives, of this version or a later one, as this one has it.
 * The tensors are the caller's to free; those of *to's strings are borrowed. */
int gf_embed_take_exchange(const struct gradflow_exchange_options *from,
			   struct gradflow_exchange_options *to,
			   struct gf_error *err);
int gf_embed_check_exchange(const struct gradflow_exchange_options *o,
			    struct gf_error *err);
int gf_embed_take_tensors(const struct gradflow_tensor *from, size_t ntensors,
			  size_t size, struct gradflow_tensor **to,
			  struct gf_error *err);

/* The caller's tensors, checked on this rank alone: -EINVAL names the first
 * that is none. */
int gf_embed_check(const struct gradflow_tensor *tensors, size_t ntensors,
		   struct gf_error *err);

/* Collective: the plan that the job has, from the named file, or the default
 * becomes one that runs these tensors, whose order and places are filled in.
 * `settle` (optional) has the last word on a plan that fits. */
struct gf_job_plan {
	const char *file, *ways; /* or NULL */
	bool given;              /* job->plan is there */
	int (*settle)(struct gf_job *job, void *ctx, struct gf_error *err);
	void *ctx;
};
int gf_job_bind(struct gf_job *job, const struct gradflow_tensor *tensors,
		const struct gf_job_plan *plan, struct gf_error *err);
/* Collective: do all ranks say the same, and run the same version? */
struct gf_said {
	const char *what, *text; /* NULL: none */
};
int gf_job_same(struct gf_comm *comm, const struct gf_said *said, size_t n,
		struct gf_error *err);
/* Of handle.c. Collective: exchange and state, by the plan as it is now; and
 * what takes both away. Collective, between steps: before the state is looked
 * at, and after it was read. */
int gf_embed_start(struct gf_job *job, struct gf_error *err);
void gf_embed_stop(struct gf_job *job);
int gf_embed_settle(struct gf_job *job, struct gf_error *err);
int gf_embed_restore(struct gf_job *job, struct gf_error *err);

/* Collective: starts it. */
int gf_job_start(struct gf_job *job, struct gf_error *err);
/* All of it, and its communicator; accepts one that was never started. */
void gf_job_close(struct gf_job *job);
/* Or its communicator alone, which is broken: the handle around the job stays,
 * for messages that may yet touch its memory. */
void gf_job_stay(struct gf_job *job);

/* What failed once fails for good, for the same reason: keeps it, and tells. */
int gf_job_keep(struct gf_job *job, int rc, const struct gf_error *err);
int gf_job_failed(const struct gf_job *job, struct gf_error *err);

/* Collective, between steps. A set may be of another number of ranks: *carried
 * becomes the norm of what went from ranks that are gone to others. */
int gf_job_save(struct gf_job *job, const char *folder, struct gf_error *err);
int gf_job_load(struct gf_job *job, const char *folder, double *carried,
		struct gf_error *err);

#endif
