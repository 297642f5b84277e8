/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef GF_EXEC_EXEC_PARTS_H
#define GF_EXEC_EXEC_PARTS_H

#include "runtime/exec/exec.h"
#include "runtime/exec/pace.h"
#include "transport/backoff.h"

/*
 * State that the executor's files share. exec.c has the public functions, exec_run.c prepares and
 * abandons runs, and finds the copies that can be saved, exec_steps.c walks the steps of runs.
 */
struct gf_exec {
	struct gf_comm *comm;
	size_t staging_bytes;
	struct gf_exec_run *running; /* started and not ended */
	double coding_s;
	bool busy;                 /* the last pass moved something without a pace */
	uint32_t quiet;            /* calls in vain since a run began or moved */
	struct gf_backoff backoff; /* gf_exec_wait's */
};

/* How a step is taken. */
enum gf_exec_way {
	GF_EXEC_NOW,   /* on the spot, once its dependencies are done */
	GF_EXEC_PLAIN, /* a transfer from or to where the range lies */
	GF_EXEC_LAND,  /* into a slot first; from there when all is done */
	GF_EXEC_CODED, /* encoded into a slot and sent from there */
	GF_EXEC_CALL,  /* a collective of the transport's */
};

/* Sums that go back to where a part of them came from: exec_run.c. */
enum gf_exec_loan {
	GF_EXEC_NO_LOAN,
	GF_EXEC_LENT, /* a send: the receiver may put the sum there */
	GF_EXEC_BACK, /* a receive that reduces, and the send of that sum */
};

struct gf_exec_state {
	struct gf_comm_request *request; /* while a transfer is under way */
	uint32_t waits_for;              /* dependencies not done */
	uint32_t slot;                   /* LAND, CODED: once posted */
	bool arrived;                    /* LAND: the slot is full */
	bool listed;                     /* in the run's `ready` */
};

/* Staging memory for the steps of one way, given out in program order. */
struct gf_exec_slots {
	uint32_t *steps, nsteps;
	uint32_t given; /* so many of the steps have had one */
	uint32_t *free, nfree, count;
	char *memory;
	size_t slot_bytes;
};

struct gf_exec_run {
	struct gf_exec *exec;
	const struct gf_schedule *schedule; /* NULL: the transport's own */
	size_t count_elems;
	struct gf_element element;
	/* the same for a transport that reduces: merging is counted there */
	struct gf_element received;
	enum gf_coll_half half;
	uint32_t channel;
	char *data, *scratch;
	unsigned char *ways;          /* per step: enum gf_exec_way */
	unsigned char *loans;         /* per step: enum gf_exec_loan */
	struct gf_comm_team **teams;  /* of calls, as the schedule's */
	struct gf_exec_state *states; /* per step */
	uint32_t *users, *first_user; /* steps that depend on it */
	uint32_t *ready, nready;      /* to be taken up: a heap */
	uint32_t *active, nactive;    /* steps with a request */
	/* per peer and direction: twice the pass in which one was not over, plus one if it was
	 * being copied */
	uint64_t *fronts, pass;
	uint32_t turn; /* the next that is asked out of order */
	uint32_t idle; /* passes without movement */
	struct gf_exec_slots landing, outgoing;
	struct gf_comm_request *library; /* without a schedule: under way */
	struct gf_element wire;          /* without: as what it is reduced */
	size_t left;                     /* steps not done */
	struct gf_pace pace;             /* zero without a schedule */
	uint32_t arrived;                /* in this pass, of those that the pace counts */
	bool *counts;                    /* per peer: the pace counts its messages */
	bool started, done, failed;
	uint64_t moves, wire_bytes;
	struct gf_exec_times *times;      /* per step, or NULL: nobody asked */
	struct gf_exec_run *next, **link; /* in exec->running */
};

static inline char *gf_exec_slot(const struct gf_exec_slots *slots, uint32_t slot)
{
	return slots->memory + slot * slots->slot_bytes;
}

static inline char *gf_exec_at(const struct gf_exec_run *run, struct gf_range range)
{
	return (range.buffer == GF_BUFFER_DATA ? run->data : run->scratch) +
	       range.first * run->element.size_bytes;
}

/* Around what gf_exec_coding_s counts: *began_s is 0 where it does not. */
double gf_exec_coding_begin(const struct gf_exec_run *run);
void gf_exec_coding_end(struct gf_exec_run *run, double began_s);
/* Takes the run off the list of running ones, and cancels its transfers. */
void gf_exec_stop(struct gf_exec_run *run);

/* exec_steps.c. They set run->left to 0 at the end. */
int gf_exec_steps_start(struct gf_exec_run *run, struct gf_error *err);
int gf_exec_steps_progress(struct gf_exec_run *run, struct gf_error *err);

#endif
