/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef GF_DOCUMENTS_TRACED_H
#define GF_DOCUMENTS_TRACED_H

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"
#include "documents/plan.h"

/*
 * The steps of all ranks as the Chrome trace of gf-train, gradflow.Record or gf-sim has them. Times
 * are the trace's. NAN: the trace does not say.
 */
struct gf_traced_message {
	double start_s, end_s;
	size_t number;      /* in the step */
	size_t size_bytes;  /* 0: the trace does not say */
	size_t first, last; /* its tensors; SIZE_MAX: the trace does not say */
	bool sets;          /* a selection's, by an algorithm of its own */
};

struct gf_traced_step {
	double start_s, forward_end_s; /* of forward */
	double late_s;                 /* of it: waiting for the step before */
	double backward_end_s;
	double update_start_s, update_end_s;
	double end_s; /* of the last slice */
	/* Of the plan's tensors up to the last that the step has, or in the trace's order. */
	double *ready_s;
	struct gf_traced_message *messages; /* the same */
	size_t nready, nmessages, ready_capacity, message_capacity;
};

struct gf_traced_rank {
	int pid;
	struct gf_traced_step *steps;
	size_t nsteps;  /* at least one */
	double alone_s; /* forward and backward without exchange; 0: unknown */
};

struct gf_traced {
	struct gf_traced_rank *ranks; /* by pid */
	size_t nranks;
};

/* As many instants and messages are kept of a trace of so many bytes, which takes 50 or more to
 * name one. */
#define GF_TRACED_PLACES(size) (((size_t)1 << 20) + (size) / 16)

/* p: the plan that was run: its tensors by name, and its messages alone; NULL: it is not known.
 * -EINVAL: no trace, or of another plan. */
int gf_traced_read(const char *text, size_t size, const char *file, const struct gf_plan *p,
		   struct gf_traced *t, struct gf_error *err);
void gf_traced_release(struct gf_traced *t);

#endif
