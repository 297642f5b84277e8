/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef GF_IMPORTS_JOB_H
#define GF_IMPORTS_JOB_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "base/text.h"
#include "documents/imported.h"
#include "documents/plan.h"
#include "imports/collectives.h"

/*
 * What the ranks of a job did, as their traces show it, whatever program wrote them. Times are
 * seconds on the clock of the rank that they belong to. Clocks of two ranks are never compared:
 * their messages are matched by group and sequence, and the rank whose part of a message is the
 * shortest came last, since the others' parts hold the wait for it.
 */
struct gf_import_job_message {
	uint64_t group;  /* gf_collectives_group: of its ranks */
	int ranks;       /* of the group; 0: not known */
	size_t sequence; /* in the group: the same on each of its ranks */
	enum gf_collective_kind kind;
	size_t size_bytes; /* 0: the trace does not say */
	double ready_s;    /* its gradients, on this rank; NAN: not known */
	/* Of a record that says only how long: 0 and how long. */
	double start_s, end_s;
};

struct gf_import_job_step {
	double start_s, end_s; /* the end is the next step's start */
	/* NAN: the trace does not say. */
	double forward_end_s, backward_end_s;
	/* In it: while the rank computes; while a message is under way; and of this, while the rank
	 * does not compute. */
	double compute_s, communication_s, exposed_s;
	size_t first, count; /* of the rank's messages: those that start in it */
};

enum gf_import_job_span_kind {
	GF_IMPORT_COMPUTES,
	GF_IMPORT_WAITS, /* whatever computes meanwhile does not */
	GF_IMPORT_SENDS
};

struct gf_import_job_rank {
	int rank;
	struct gf_import_job_step *steps;
	struct gf_import_job_message *messages; /* by start */
	size_t nsteps, nmessages;
	size_t steps_capacity, messages_capacity;
	/* What steps are made from. */
	struct gf_import_job_span {
		double start_s, end_s;
		enum gf_import_job_span_kind kind;
	} * spans;
	size_t nspans, spans_capacity;
};

struct gf_import_job {
	struct gf_import_job_rank *ranks; /* by rank */
	size_t nranks, capacity;
	bool timed; /* messages say when, not only how long */
	struct gf_imported imported;
};

/*
 * From files, or folders with a file for each rank; a zeroed job. p: the plan that was run, or
 * NULL. -EINVAL names the file and the place; the caller releases the job in any case.
 */
int gf_import_job_read(struct gf_import_job *job, const char *const *paths, size_t npaths,
		       const struct gf_plan *p, struct gf_error *err);
void gf_import_job_release(struct gf_import_job *job);

/* The steps that each rank has. The last so many of a rank's are compared with those of the
 * others. */
size_t gf_import_job_steps(const struct gf_import_job *job);

/* For the readers. The rank's record, new if there is none. */
struct gf_import_job_rank *gf_import_job_rank(struct gf_import_job *job, int rank);
/* NULL and -EINVAL in err: an earlier file was this rank's. */
struct gf_import_job_rank *gf_import_job_new_rank(struct gf_import_job *job, int rank,
						  const char *file, struct gf_error *err);
struct gf_import_job_step *gf_import_job_add_step(struct gf_import_job_rank *r, double start_s,
						  double end_s);
/* Times of day make a span of it, too. */
void gf_import_job_add_message(struct gf_import_job_rank *r, const struct gf_import_job_message *m);
void gf_import_job_add_span(struct gf_import_job_rank *r, enum gf_import_job_span_kind kind,
			    double start_s, double end_s);

#endif
