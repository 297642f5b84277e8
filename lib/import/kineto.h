/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef GF_IMPORT_KINETO_H
#define GF_IMPORT_KINETO_H

#include <stddef.h>

#include "base/error.h"

/*
 * The events of a PyTorch profiler trace (Chrome trace JSON as torch.profiler
 * exports it) that tell when gradients are ready. Times in seconds on the
 * trace's own clock; each list is sorted by start.
 */
struct gf_kineto_span {
	double start_s, end_s;
	double thread;      /* tid, pid left out: one process per trace */
	double correlation; /* of launches and kernels; NAN */
	size_t elems;       /* of what a gradient is added to; 0 unknown */
};

struct gf_kineto_list {
	struct gf_kineto_span *spans;
	size_t count, capacity;
};

struct gf_kineto {
	struct gf_kineto_list steps;     /* ProfilerStep#N */
	struct gf_kineto_list backward;  /* every node of the graph */
	struct gf_kineto_list gradients; /* AccumulateGrad among them */
	struct gf_kineto_list updates;   /* Optimizer.step */
	struct gf_kineto_list launches;  /* of kernels, on the host */
	struct gf_kineto_list kernels;
};

/* -EINVAL names the event that is not as it should be. */
int gf_kineto_read(const char *text, size_t size, const char *file,
		   struct gf_kineto *trace, struct gf_error *err);
void gf_kineto_release(struct gf_kineto *trace);

#endif
