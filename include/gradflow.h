/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef GRADFLOW_H
#define GRADFLOW_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/*
 * A plan in a training loop of your own: the runtime of gf-train as a library
 * (libgradflow). It exchanges and applies gradients as a gf-plan(5) says, with
 * every selection (dense, csc, topk, gtopk), staleness, codec, algorithm and
 * lane; computing them is the caller's.
 *
 * Every process of an MPI job makes the same calls in the same order:
 *
 *	gradflow_open(tensors, n, &options, &g)
 *	... fill gradflow_parameters(g) ...
 *	gradflow_start(g)
 *	for each step:
 *		grads = gradflow_begin(g)
 *		... backward writes tensor i to grads + gradflow_place(g, i),
 *		    then calls gradflow_ready(g, i), in any order ...
 *		gradflow_step(g, rate)
 *	gradflow_close(g)
 *
 * Parameters and gradients are f32, flat, in the plan's order: gradients that
 * travel together lie together. One thread at a time makes calls. An own thread
 * communicates; it is the only one that calls MPI between open and close. The
 * library begins MPI and ends it, so a process opens once. Where the program
 * has initialised MPI, with MPI_THREAD_MULTIPLE, it also ends it; then other
 * threads may call it, and a process may open again, also beside.
 *
 * Functions return 0 or a negative errno; gradflow_error then says why, on one
 * line. What fails in gradflow_step fails for good, on all ranks: end the
 * process with a status other than 0, and the launcher ends the job. A call
 * out of order is refused with -EINVAL and changes nothing.
 *
 * This header's binary interface is that of libgradflow.so.0.
 */
struct gradflow;

#define GRADFLOW_DIMENSIONS 8

struct gradflow_tensor {
	const char *name;  /* the plan's, where that names tensors; UTF-8, and
			    * no other's, nor a set's own */
	size_t dimensions; /* 1 to GRADFLOW_DIMENSIONS */
	size_t shape[GRADFLOW_DIMENSIONS];
};

/*
 * Both structs may grow: zero in what is new means what it meant before, so
 * that programs and libraries of different versions go together. What a library
 * does not know must be zero. Begin with zeros, and fill in both sizes.
 */
struct gradflow_options {
	size_t size;      /* of this struct */
	const char *plan; /* a file, which rank 0 reads; NULL: threshold fusion,
			   * one lane, ring */
	/* The text of a gf-training(5) document, of which `optimizer` and
	 * `loss_scale` count; NULL: SGD without momentum. */
	const char *training;
	size_t epoch_steps; /* steps of an epoch, for the warm-up of topk and
			     * gtopk; 0: no warm-up */
	double timeout_s;   /* without progress, once open; 0: never */
	size_t tensor_size; /* of struct gradflow_tensor; 0: as it was when this
			     * was not there */
	/* What gradflow_ways gave for such tensors and ranks: algorithms that
	 * the plan leaves open are those, and are not measured; or NULL. */
	const char *ways;
};

/* Of the last call in this thread that failed; "" before. */
const char *gradflow_error(void);
const char *gradflow_version(void);

/*
 * Tensors in the order in which backward makes their gradients, last layer
 * first; a plan that names tensors may have them in another order. Initialises
 * MPI; -EBUSY: it was, with less, or has ended. -EINVAL: plan, ranks and
 * tensors do not fit, or ranks differ (both sides are named); -ENOTSUP: what no
 * runtime here does; else what reading gives. *g is NULL then.
 */
int gradflow_open(const struct gradflow_tensor *tensors, size_t ntensors,
		  const struct gradflow_options *options, struct gradflow **g);
/* NULL is allowed. On all ranks, also within a step, which is then abandoned.
 * Finalises MPI if it began here, unless ranks were lost; parameters and
 * gradients are gone. */
void gradflow_close(struct gradflow *g);

int gradflow_rank(const struct gradflow *g);
int gradflow_ranks(const struct gradflow *g);
/* Among the ranks of this host. */
int gradflow_local_rank(const struct gradflow *g);
/* How each message goes, as "ring;blueconnect 2:shm 4:ring"; borrowed until a
 * set is loaded or g is closed. */
const char *gradflow_ways(const struct gradflow *g);

/* Where that tensor begins, in elements; SIZE_MAX: there is no such tensor. */
size_t gradflow_place(const struct gradflow *g, size_t tensor);
/* All of them; they stay where they are. */
float *gradflow_parameters(struct gradflow *g);
size_t gradflow_count(const struct gradflow *g);

/* Rank 0's parameters to all. */
int gradflow_start(struct gradflow *g);

/* Begins a step: where its gradients go. What lies there is undefined. NULL: a
 * step is under way, or one has failed. */
float *gradflow_begin(struct gradflow *g);
/* From here until gradflow_step returns that gradient is not to be touched. */
int gradflow_ready(struct gradflow *g, size_t tensor);
/* Backward has ended; tensors without gradflow_ready count as they lie there.
 * Exchanges, and updates parameters by the mean over ranks, with the same rate
 * on all. -EDOM: a gradient is infinite or not a number, unless a smaller loss
 * scale will do: then the step is skipped. */
int gradflow_step(struct gradflow *g, double rate);

/* Steps that were done, skipped ones too, and bytes that this rank has sent in
 * messages. */
uint64_t gradflow_steps(const struct gradflow *g);
uint64_t gradflow_sent_bytes(struct gradflow *g);

/* Parameters, the optimiser's state and the selection's (residuals, histories),
 * between steps, as a set under that folder (safetensors), in which no other
 * run's may be; and before the first step the newest whole set back, bit for
 * bit, with the algorithms that its run had where the plan leaves them open.
 * -ENOENT: there is none, and nothing has changed. After another failure to
 * load, parameters are undefined. */
int gradflow_save(struct gradflow *g, const char *folder);
int gradflow_load(struct gradflow *g, const char *folder);

#ifdef __cplusplus
}
#endif

#endif
