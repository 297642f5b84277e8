/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef GF_IMPORTS_KINETO_H
#define GF_IMPORTS_KINETO_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/dtype.h"
#include "base/error.h"
#include "imports/collectives.h"
#include "json/json.h"

/*
 * The events of a PyTorch profiler trace (Chrome trace JSON as torch.profiler exports it) that tell
 * when gradients are ready. Times in seconds from the trace's first event on; each list is sorted
 * by start.
 */
struct gf_kineto_span {
	double start_s, end_s;
	double thread;      /* of the host; of a device's work: its stream */
	double correlation; /* of a launch and its work; else NAN */
	double launch_s;    /* of work */
	double less_s;      /* of exchanges: the time of those before */
	size_t elems;       /* of a gradient; 0: the trace does not say. Of an all-reduce: bytes */
	enum gf_dtype dtype;
	int computes; /* work: 1 a kernel, 0 a copy, -1 communication */
	/* Of collectives: */
	enum gf_collective_kind collective;
	double host;     /* the thread that launched it */
	uint64_t group;  /* gf_collectives_group; 0: all ranks */
	int ranks;       /* of the group; 0: all ranks */
	size_t sequence; /* 0: the trace does not say; gf_kineto_number */
	bool alone;      /* no other ran at the same time */
};

struct gf_kineto_list {
	struct gf_kineto_span *spans;
	size_t count, capacity;
};

struct gf_kineto {
	struct gf_kineto_list steps;     /* ProfilerStep#N */
	struct gf_kineto_list nodes;     /* of backward's graph */
	struct gf_kineto_list gradients; /* AccumulateGrad */
	struct gf_kineto_list updates;   /* Optimizer.step */
	struct gf_kineto_list operators; /* outside nodes: forward's */
	struct gf_kineto_list exchanges; /* c10d::, on the host, disjoint */
	/* What the host launched on the device's streams that compute, but communication: by
	 * launch_s, and by thread, then launch_s. `thread` is the one that launched it. */
	struct gf_kineto_list work, by_thread;
	struct gf_kineto_list reduces;     /* all-reduces, as the device or gloo has run them */
	struct gf_kineto_list collectives; /* of every kind. launch_s: NAN: not known; of gloo's,
					    * without waits for the messages before */
	int ranks;      /* of the job; 0: it has more groups, or the trace does not say */
	int rank;       /* -1: the trace does not say */
	size_t unsized; /* collectives of no known kind or size */
	size_t other_collectives;
	size_t launched;  /* kernels, by the host's events */
	size_t kernels;   /* that compute */
	size_t undefined; /* AccumulateGrad without a gradient */
	size_t mended;    /* gf_kineto_parse */
	char place[32];
	bool typed; /* the trace holds the gradients' types */
};

/* -EINVAL names the event that is not as it should be. */
int gf_kineto_read(const char *text, size_t size, const char *file, struct gf_kineto *trace,
		   struct gf_error *err);
void gf_kineto_release(struct gf_kineto *trace);

/*
 * JSON as PyTorch has written it: integers of any size, keys twice, strings with backslashes,
 * controls and bytes that are no UTF-8, inf and nan. What JSON does not allow is counted; `place`
 * is "LINE:COLUMN" of the first.
 */
int gf_kineto_parse(const char *text, size_t size, const char *file, struct gf_json **root,
		    size_t *mended, char place[32], struct gf_error *err);

/* c10's scalar types, as NCCL's kernels have them, and ATen's names for them, as operators' inputs
 * have them. parts: elements of that type in one; 0: not a gradient's. NULL: neither knows it. */
struct gf_kineto_type {
	const char *scalar, *aten;
	size_t bytes;
	enum gf_dtype dtype;
	size_t parts;
};
const struct gf_kineto_type *gf_kineto_type(const char *name);

/* What the readers share. The first shape's product, 0 if there is none. */
void gf_kineto_add(struct gf_kineto_list *list, const struct gf_kineto_span *span);
size_t gf_kineto_first_shape(struct gf_json_at *args);
/* A kernel of communication, and what gloo did; takes all-reduces and counts what else there is. */
void gf_kineto_read_kernel(struct gf_kineto *k, struct gf_json_at *args,
			   struct gf_kineto_span *span);
void gf_kineto_read_gloo(struct gf_kineto *k, struct gf_json_at *args, const char *name,
			 struct gf_kineto_span *span);
/* Sorts collectives by group and start, and counts those without a sequence within their group,
 * above all numbers of a trace. */
void gf_kineto_number(struct gf_kineto_list *collectives);
void gf_kineto_read_world(struct gf_kineto *k, struct gf_json_at *root);

/* The first span that starts at this time or later. */
size_t gf_kineto_at(const struct gf_kineto_list *list, double at_s);

/*
 * When an event would come that the host recorded at this time on the stream that computes: then,
 * or when what this thread (NAN: any) launched last before has ended. A trace without such work is
 * on the host's clock, less the time of exchanges. begin: if what is launched next waited for
 * something that the trace does not show, it comes when that starts.
 */
double gf_kineto_begin(const struct gf_kineto *trace, double at_s);
double gf_kineto_end(const struct gf_kineto *trace, double thread, double at_s);

/* An iteration: gradients [first, first + count) of its last backward pass, on the host's clock. */
struct gf_kineto_step {
	size_t first, count, passes;
	double from_s; /* NAN: forward's start is not known */
	double begin_s, end_s;
	double update_s; /* NAN: the trace holds no Optimizer.step */
};

/* By ProfilerStep, or else by Optimizer.step, or else a step for each pass of backward; the caller
 * frees. `outside`: passes that belong to none. */
struct gf_kineto_step *gf_kineto_steps(const struct gf_kineto *trace, size_t *count,
				       size_t *outside);

#endif
