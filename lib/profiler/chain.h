/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef GF_PROFILER_CHAIN_H
#define GF_PROFILER_CHAIN_H

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"
#include "documents/plan.h"
#include "documents/profile.h"
#include "exchange/exchange.h"
#include "runtime/engine/engine.h"
#include "transport/comm.h"

/*
 * Messages through the very engine that training uses: its thread, its back-off, its executor. An
 * exchange is a number of equal messages, each a tensor of its own, that are all ready at once;
 * with one lane they follow each other, with k lanes k of them are on the network together.
 *
 * Gradients lie in the engine's pool, as in gf-train, or in a caller's memory
 * (exchange/callers_memory.h), as in PyTorch: then the copies count that this needs where ranks of
 * a host are neighbours, and the means that are made of sums.
 *
 * Compute works on its own memory before each step and writes the gradients last, so long messages
 * are not in the caches when they go. With others_bytes each repeat begins like that.
 *
 * Messages may be one half of an all-reduce, each by itself. They lie in the pool, and bypass the
 * exchange, whose plans have both halves.
 */
struct gf_measure_exchange_config {
	struct gf_comm *comm;
	const struct gf_allreduce_cost *by; /* the algorithm and its stages; until it is open */
	enum gf_coll_half half;
	const char *codec;   /* NULL: f32 */
	size_t count_elems;  /* of each message, f32 */
	int messages;        /* >= 1 */
	int lanes;           /* >= 1 */
	int compute_threads; /* beside them, per rank */
	bool callers_memory;
	size_t others_bytes; /* weights, momentum; 0: repeats follow each other */
	double timeout_s;    /* without progress; 0: none */
};

/* Of a gradient of that many bytes. Caches hold no more than a part of it. */
size_t gf_measure_others_bytes(size_t gradient_bytes);

struct gf_measure_exchange {
	struct gf_measure_exchange_config config;
	struct gf_plan plan;
	struct gf_exchange *exchange;  /* NULL: of halves */
	struct gf_exchange_step *step; /* begun last */
	struct gf_pool pool;           /* of halves, as `work` */
	struct gf_work *work;
	float *grads;             /* the pool's */
	struct gf_engine *engine; /* the exchange's, or of halves */
	float *memory;            /* the caller's; NULL: in the pool */
	float *others;            /* NULL: none */
};

/* Collective. The communicator belongs to the exchange until it is closed. */
int gf_measure_exchange_open(struct gf_measure_exchange *x,
			     const struct gf_measure_exchange_config *config, struct gf_error *err);
void gf_measure_exchange_close(struct gf_measure_exchange *x);

/* A step: begin; each message is ready; gf_engine_backward_end; wait. */
void gf_measure_exchange_begin(struct gf_measure_exchange *x);
void gf_measure_exchange_ready(struct gf_measure_exchange *x, size_t message);
int gf_measure_exchange_wait(struct gf_measure_exchange *x, struct gf_error *err);
/* All messages go, on all ranks; until the last has come. */
int gf_measure_exchange_go(struct gf_measure_exchange *x, struct gf_error *err);

/* Times of repeats, to be measured in several sittings. Zero-initialise. */
struct gf_measure_samples {
	double *values;
	size_t count, capacity;
};
void gf_measure_samples_add(struct gf_measure_samples *s, double value);
void gf_measure_samples_release(struct gf_measure_samples *s);

struct gf_measure_budget {
	double budget_s;
	int low, high; /* repeats, at least and at most */
};

/* How many repeats of that length come first and do not count. */
int gf_measure_uncounted(double repeat_s);

/* What is repeated: writes the times of so many repeats. */
typedef int gf_measure_run(void *ctx, double *times, int repeats, struct gf_error *err);

/*
 * Collective: repeats it for about the budget after one or two repeats that do not count, and adds
 * their times; a repeat's is the slowest rank's. All ranks get the same. comm NULL: `run` writes
 * the slowest rank's times itself.
 */
int gf_measure_repeat(struct gf_comm *comm, gf_measure_run *run, void *ctx,
		      const struct gf_measure_budget *budget, struct gf_measure_samples *samples,
		      struct gf_error *err);
/* Collective: gf_measure_repeat of an exchange. */
int gf_measure_exchange_measure(struct gf_measure_exchange *x,
				const struct gf_measure_budget *budget,
				struct gf_measure_samples *samples, struct gf_error *err);

/* Collective: of each value the largest of all ranks'. */
int gf_measure_slowest(struct gf_comm *comm, double *values, size_t count, struct gf_error *err);

/* open, measure, close. */
int gf_measure_exchange_sitting(const struct gf_measure_exchange_config *config,
				const struct gf_measure_budget *budget,
				struct gf_measure_samples *samples, struct gf_error *err);

#endif
