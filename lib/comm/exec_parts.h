/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef GF_COMM_EXEC_PARTS_H
#define GF_COMM_EXEC_PARTS_H

#include "comm/exec.h"

/* What the executor's two files share: exec_run.c prepares and abandons runs,
 * exec.c walks them. */
struct gf_exec {
	struct gf_comm *comm;
	size_t staging_bytes;
	struct gf_exec_run *running; /* started and not ended */
};

struct gf_exec_state {
	struct gf_request *request; /* while a transfer is under way */
	uint32_t waits_for;         /* dependencies not done */
	uint32_t slot;              /* RECV_REDUCE, once posted */
	bool arrived;               /* RECV_REDUCE: the slot is full */
	bool direct;                /* RECV_REDUCE without a slot */
};

struct gf_exec_run {
	struct gf_exec *exec;
	const struct gf_schedule *schedule;
	uint32_t channel;
	float *data, *scratch, *staging;
	struct gf_exec_state *states; /* per step */
	uint32_t *users, *first_user; /* who depends on a step */
	uint32_t *ready, nready;      /* to be taken up */
	uint32_t *active, nactive;    /* steps with a request */
	uint32_t *reduces, nreduces;  /* those with a slot, in order */
	uint32_t posted;              /* so many of them have a slot */
	uint32_t *slots, nslots, free_slots;
	size_t slot_elems;
	size_t left; /* steps not done */
	bool started, done, failed;
	uint64_t moves;
	struct gf_exec_run *next, **link; /* in exec->running */
};

/* Out of the list of running ones; what is under way is called back. */
void gf_exec_stop(struct gf_exec_run *run);
/* A receive that reduces and that the transport adds up by itself. */
bool gf_exec_is_direct(const struct gf_exec_run *run,
		       const struct gf_step *step);

#endif
