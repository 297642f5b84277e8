/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef GRADFLOW_H
#define GRADFLOW_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* This header's version: 10000 * major + 100 * minor + patch. */
#define GRADFLOW_VERSION      400
#define GRADFLOW_VERSION_TEXT "0.4.0"

/*
 * A plan in a program of your own: the runtime of gf-train as a library (libgradflow) for a program
 * that has parameters and an optimiser. An exchange hands back the means of gradients over ranks,
 * as a gf-plan(5) says: with every selection, codec, algorithm and lane. gradflow(3) tells it at
 * length.
 *
 *	gradflow_exchange_options_init(&options, sizeof(options))
 *	gradflow_exchange_open(tensors, n, &options, &x)
 *	for each step:
 *		... backward makes tensor i, then
 *		    g = (struct gradflow_gradient){i, data, count, dtype};
 *		    gradflow_exchange_post(x, &g, 1) ...
 *		gradflow_exchange_wait(x, GRADFLOW_ALL)
 *		... the optimiser uses the means ...
 *	gradflow_exchange_close(x)
 *
 * NAMES. What a call does to or asks of an exchange is gradflow_exchange_VERB.
 *
 * MEMORY. All that a call points to is read within the call, and need not outlive it. Two things
 * must: a posted gradient's data, until the tensor is done; and a stream, and what a callback
 * of gradflow_exchange_on_done uses, until the exchange is closed. What the library returns
 * belongs to it, and stays as long as is said there.
 *
 * A tensor's gradient may lie anywhere in the program's memory, as f32, f16, bf16 or f64. Its mean
 * comes back in the same place and type. A message whose tensors are f32 and lie one after the
 * other, in the plan's order, is not copied; those of others are packed on the library's thread,
 * and gradflow_exchange_copied_bytes counts it. Beside ranks on the same host all are packed, into
 * memory that these ranks read in place. A message with an f64 tensor is summed in f64. Selections,
 * and codecs that round, take f64 tensors as f32. Between GPUs there is no f64.
 *
 * ORDER. Every rank makes the same calls in the same order, but for the order of posts within a
 * step. A step begins with its first post and ends with the wait for all. Selections (topk, csc,
 * powersgd and so on) keep what they hold back inside. A mean by such a plan has zeros for what was
 * not chosen. If a gradient of the step is infinite or not a number, their state stays as it was,
 * and all of the step comes back as NaN, the same on all ranks.
 *
 * THREADS. Any number of exchanges may be open in a process, each on its own ranks. One thread at a
 * time calls the functions of one exchange; any thread may call gradflow_exchange_test, and the
 * queries, at any time but beside gradflow_exchange_load. The options' allgather is called on the
 * thread that opens, and a callback of gradflow_exchange_on_done on the library's. -EBUSY: another
 * thread is in a call (both calls are named), or such a callback calls what it must not. -EINVAL
 * after fork: the child has no exchange, and leaves it alone; only the totals are told, as they
 * were.
 *
 * FAILURE. Functions return 0 or a negative errno; gradflow_error then says why, on one line. A
 * call out of order is refused with -EINVAL and changes nothing. A failure of a rank is every
 * rank's: all later calls return it. Memory that was posted then stays in use until the process
 * ends: a late rank's message may yet come to it.
 *
 * MPI. Where ranks are those of an MPI job, the library begins MPI and ends it, so a process opens
 * once. Between open and close one thread at a time calls MPI: the library's, or the program's in a
 * call of this library. A program that initialises MPI, with MPI_THREAD_MULTIPLE, ends it as well:
 * its other threads may call MPI then, and a process may open several exchanges.
 *
 * SHARDS. An exchange that is opened with `halves` moves what a program of shards (ZeRO, FSDP) moves:
 * gradients to the rank that owns them, and parameters from there to all ranks. It has no steps. Its
 * tensors are the program's units, flat; a unit travels by the algorithm, codec and lane of its
 * message in the plan.
 *
 *	h = (struct gradflow_half){unit, data, count, dtype};
 *	gradflow_all_gather(x, &h, &number)		... or gradflow_reduce_scatter
 *	gradflow_exchange_wait_half(x, number)
 *
 * This header's binary interface is that of libgradflow.so.0.
 */
struct gradflow_exchange;

#define GRADFLOW_DIMENSIONS 8

struct gradflow_tensor {
	const char *name;  /* the plan's, where that names tensors; UTF-8, and no other's, nor a
			    * set's own */
	size_t dimensions; /* 1 to GRADFLOW_DIMENSIONS */
	size_t shape[GRADFLOW_DIMENSIONS];
};

/* Of the last call in this thread that failed; "" before. Until the next one fails. */
const char *gradflow_error(void);
/* The library's version, as GRADFLOW_VERSION_TEXT and GRADFLOW_VERSION are the header's. */
const char *gradflow_version(void);
int gradflow_version_number(void);

enum gradflow_dtype { GRADFLOW_F32, GRADFLOW_F16, GRADFLOW_BF16, GRADFLOW_F64 };

/* Every tensor of the step. */
#define GRADFLOW_ALL SIZE_MAX

/* How the ranks of an exchange find each other. */
enum gradflow_meet {
	/* By MPI, as the launcher (mpirun, srun) that has started this process says. -EINVAL: none
	 * has. */
	GRADFLOW_MEET_LAUNCHED,
	/* By MPI, with or without a launcher: a process without one is the only rank. */
	GRADFLOW_MEET_MPI,
	GRADFLOW_MEET_PLACE,    /* at `place`, with `rank` and `ranks` */
	GRADFLOW_MEET_ALLGATHER /* by `allgather`, with `rank` and `ranks` */
};

/* gradflow_exchange_options_init fills it in; then the program sets what it wants otherwise. */
struct gradflow_exchange_options {
	size_t size;                       /* of this struct, which says the header's version */
	const enum gradflow_dtype *dtypes; /* per tensor; NULL: all f32 */
	/* One of these at most. None: threshold fusion, one lane, ring. */
	const char *plan;       /* a file, which rank 0 reads */
	const char *plan_text;  /* the text of such a document */
	const size_t *messages; /* how many tensors go in each message, */
	size_t nmessages;       /* in the order of the tensors */
	/* What gradflow_exchange_ways gave for such tensors and ranks: algorithms that the plan
	 * leaves open are those, and are not measured; or NULL. */
	const char *ways;
	size_t epoch_steps; /* steps of an epoch, for the warm-up of selections by a density, and
			     * one that the plan has in epochs; 0: unknown, and the former is left
			     * out */
	double timeout_s;   /* without progress, once open; 0: never */
	double join_s;      /* for how long opening waits for all ranks: 60; 0: 60, too */
	double momentum;    /* the optimiser's, for selections that have momentum */
	enum gradflow_meet meet;
	int rank, ranks; /* of GRADFLOW_MEET_PLACE and _ALLGATHER */
	/* For gradflow_exchange_load: this process' rank in the run that wrote the set; -1: it is
	 * new. -1 on all ranks: ranks are as they were. */
	int former;
	/* Not 0: tensors are flat pieces of others, as FSDP's shards are. A selection that works on
	 * shapes (powersgd) is -ENOTSUP. */
	int flat;
	/* Not 0: SHARDS. The plan's gradients are dense; -ENOTSUP on a GPU. */
	int halves;
	const char *place;     /* a folder that all ranks see, or host:port of rank 0 */
	const char *transport; /* "mpi", "ucx"; NULL: what fits */
	/* Every rank gives size_bytes; recv holds ranks * size_bytes, in rank order. Returns 0 or a
	 * negative errno. It is called within open only, on the thread that opens, and must end by
	 * itself if a rank does not come. */
	int (*allgather)(void *ctx, const void *send, size_t size_bytes, void *recv);
	void *allgather_ctx;
	/* Not 0: tensors are in the memory of the GPU `device`, and messages go by NCCL. A post
	 * counts as of what is enqueued on `stream`, a cudaStream_t, by then.
	 * gradflow_exchange_wait lets that stream wait for the means, not the host. Selections:
	 * csc, topk and gtopk; others are -ENOTSUP. With csc a step's first post waits until the
	 * device has ended the step before, which decides what goes in this one. */
	int on_device, device;
	void *stream;
};

/* Defaults: `join_s` is 60, `former` -1, all else 0 or NULL. size: sizeof(*options). -EINVAL: a
 * size that this library does not know, since the program's header is of another version; *options
 * stays as it is. */
int gradflow_exchange_options_init(struct gradflow_exchange_options *options, size_t size);

/* Can an exchange run the plan of that text (NULL: none), whose gradients are in GPUs' memory if
 * on_device is not 0? Before anything is opened, on each rank alone. 0: yes, if it fits the tensors
 * and ranks. -ENOTSUP: no; -EINVAL: it is no plan. */
int gradflow_exchange_check(const char *plan_text, int on_device);
/* What that plan wants of the caller's optimiser, whose momentum is `momentum` (Nesterov's, if
 * nesterov is not 0), in words: less momentum, or a lower rate than dense gradients. "": nothing,
 * or it is no plan. Until this thread's next call. */
const char *gradflow_exchange_wants(const char *plan_text, double momentum, int nesterov);
/*
 * Tensors in the order in which backward makes their gradients, last layer first; a plan that names
 * tensors may have them in another order. By MPI: -EBUSY: it was initialised with less, or has
 * ended. -EINVAL: plan, ranks and tensors do not fit, or ranks differ (both sides are named);
 * -ENOTSUP: what no runtime here does; else what reading gives. *x is NULL then.
 */
int gradflow_exchange_open(const struct gradflow_tensor *tensors, size_t ntensors,
			   const struct gradflow_exchange_options *options,
			   struct gradflow_exchange **x);
/* After a failure: how many ranks are missing. The first `most` of them, in order, go to `ranks`,
 * which may be NULL if most is 0. Asks all ranks, and waits for 2 s at most. A rank that is there
 * answers, whatever its program does, until it closes the exchange. 0: all answer, or nothing has
 * failed. -ENODATA: that failure tells nothing. */
int gradflow_exchange_missing(struct gradflow_exchange *x, int *ranks, size_t most);
/* The name of that rank's host; borrowed; NULL: there is no such rank. */
const char *gradflow_exchange_host(const struct gradflow_exchange *x, int rank);
/* NULL is allowed. On all ranks, also within a step: what was not posted counts as zeros. After a
 * failure it waits for no other rank, and those that are left may open another exchange, unless
 * they were joined by MPI; memory as large as the gradients is lost then. Without a failure it
 * waits until the others close, too, but for 5 s at most, or where MPI has joined the ranks as long
 * as MPI_Finalize does. A forked child keeps its copy. */
void gradflow_exchange_close(struct gradflow_exchange *x);

/* A tensor's gradient: count elements of that type, at data. */
struct gradflow_gradient {
	size_t tensor; /* its number in gradflow_exchange_open */
	void *data;
	size_t count;
	enum gradflow_dtype dtype;
};

/* These n gradients are there, or will be by what is enqueued on the stream. From here until a
 * tensor is done its memory is the library's. Begins a step if none is under way. If one of them is
 * refused, none is posted. -EINVAL: a gradient's count or type is not the tensor's, as it was
 * opened; a tensor is posted twice in a step, or after gradflow_exchange_flush; or the step before
 * has not been waited for. */
int gradflow_exchange_post(struct gradflow_exchange *x, const struct gradflow_gradient *gradients,
			   size_t n);
/* No more will come in this step: tensors that were not posted count as zeros, and get no mean
 * here. Without a post before, a step of zeros. */
int gradflow_exchange_flush(struct gradflow_exchange *x);
/* 1: the tensor's mean, or GRADFLOW_ALL's, has come; 0: not yet. -ENOTSUP on a GPU, as is a wait
 * for one tensor, and gradflow_exchange_on_done: record an event on the stream after the wait for
 * all. */
int gradflow_exchange_test(struct gradflow_exchange *x, size_t tensor);
/* Until that tensor's mean has come; of GRADFLOW_ALL: until the step has ended, and the next may
 * begin. -EINVAL: the wait would never end, since a tensor that goes before that one, or with it,
 * has not been posted. */
int gradflow_exchange_wait(struct gradflow_exchange *x, size_t tensor);
/* Calls fn for each tensor that was posted: with status 0 as soon as its mean has come, or with a
 * negative errno after a failure. On the library's thread, or on the program's own in a post or a
 * wait where a rank is alone or shares its processor. The thread waits: fn must be short, and calls
 * nothing of an exchange but gradflow_exchange_test. Between steps; fn NULL: no more. */
int gradflow_exchange_on_done(struct gradflow_exchange *x,
			      void (*fn)(void *ctx, size_t tensor, int status), void *ctx);

/* SHARDS. Elements of a unit that one rank owns. */
struct gradflow_piece {
	int rank;
	size_t first, count;
};
/* Elements of a unit, whole on each rank, and each rank's part of them. */
struct gradflow_half {
	size_t tensor; /* the unit's number in gradflow_exchange_open */
	void *data;
	size_t count; /* the unit's, or what the program moves of it this time */
	enum gradflow_dtype dtype;
	/* They make up the elements, each once, in any order. NULL: equal parts in the order of
	 * ranks, of which the first count % ranks have an element more. */
	const struct gradflow_piece *owners;
	size_t nowners;
	/* Of a reduce-scatter: what sums are divided by; 0: the ranks, for means. */
	double divisor;
};

/* Begins to move the unit: every rank's part at `data` becomes the sum over ranks, divided, and the
 * elements of other ranks are undefined; or the parts of other ranks come to `data`. A codec that
 * rounds does so once for all ranks, the owner's part too. The memory is the library's until the
 * half is done. Halves begin in the order of these calls, which is the same on all ranks; so is all
 * that they give but `data`. Eight may be under way: the next call waits for the oldest. *number is
 * 1 for the first, and then counts on. -EINVAL: no halves were asked for, or it is none of such
 * elements; f64 has none. */
int gradflow_reduce_scatter(struct gradflow_exchange *x, const struct gradflow_half *half,
			    uint64_t *number);
int gradflow_all_gather(struct gradflow_exchange *x, const struct gradflow_half *half,
			uint64_t *number);
/* Until the half of that number, and all before it, are done. */
int gradflow_exchange_wait_half(struct gradflow_exchange *x, uint64_t number);

/* What the plan's selection holds back on this rank, between steps: forgotten; or times factor, as
 * when a loss scale has changed. */
int gradflow_exchange_drop(struct gradflow_exchange *x);
int gradflow_exchange_rescale(struct gradflow_exchange *x, double factor);

/* The selection's state (residuals, histories), between steps, as a set under that folder
 * (safetensors), in which no other run's may be; and before the first step the newest whole set
 * back, bit for bit, with the algorithms that its run had where the plan leaves them open. -ENOENT:
 * there is none, and nothing has changed; -EINVAL: none is whole. A set may be of another number of
 * ranks. The ranks then take over the remains of those that are gone, so that the mean over all
 * ranks is as it was; gradflow_exchange_carried is the norm of these remains. Such a set may also
 * have other epoch_steps: as many epochs have then been done, and gradflow_exchange_steps counts on
 * from there. */
int gradflow_exchange_save(struct gradflow_exchange *x, const char *folder);
int gradflow_exchange_load(struct gradflow_exchange *x, const char *folder);
double gradflow_exchange_carried(const struct gradflow_exchange *x);
/* Or in a checkpoint of the caller's: the index-th array, as long as the exchange is open, current
 * between steps after this call, as are the other ones; -ENOENT: there is no such array. Shared
 * ones are the same on all ranks. After all have been filled in, on all ranks: it goes on after so
 * many steps.
 */
struct gradflow_array {
	const char *name;
	void *data;
	size_t size_bytes;
	int shared;
};
int gradflow_exchange_state(struct gradflow_exchange *x, size_t index,
			    struct gradflow_array *array);
int gradflow_exchange_restored(struct gradflow_exchange *x, uint64_t steps);

int gradflow_exchange_rank(const struct gradflow_exchange *x);
int gradflow_exchange_ranks(const struct gradflow_exchange *x);
/* Among the ranks of this host. */
int gradflow_exchange_local_rank(const struct gradflow_exchange *x);
/* How each message goes, as "ring;blueconnect 2:shm 4:ring"; borrowed until a set is loaded or x is
 * closed. */
const char *gradflow_exchange_ways(const struct gradflow_exchange *x);
/* Messages of the plan; and which of them a tensor goes in, SIZE_MAX: none. */
size_t gradflow_exchange_messages(const struct gradflow_exchange *x);
size_t gradflow_exchange_message(const struct gradflow_exchange *x, size_t tensor);
/* Totals: steps that have ended; bytes that this rank has sent in messages of these; bytes packed
 * and unpacked. */
uint64_t gradflow_exchange_steps(const struct gradflow_exchange *x);
uint64_t gradflow_exchange_sent_bytes(const struct gradflow_exchange *x);
uint64_t gradflow_exchange_copied_bytes(const struct gradflow_exchange *x);

#ifdef __cplusplus
}
#endif

#endif
