/* SPDX-License-Identifier: BSD-3-Clause */
/* lib/runtime/traces: what the steps of schedules did, of all ranks on one time axis. */
#ifndef GF_TRACES_RANK_TRACES_H
#define GF_TRACES_RANK_TRACES_H

#include <stddef.h>

#include "base/error.h"
#include "transport/comm.h"
#include "runtime/exec/exec.h"
#include "documents/trace.h"

/*
 * How far this rank's gf_clock_s is ahead of rank 0's, so that a trace can show all ranks on one
 * time axis: the exchange of questions and answers with the shortest round trip, halved (Cristian
 * 1989).
 */
struct gf_clock_offset {
	double offset_s;      /* own clock - rank 0's, at the same moment */
	double uncertainty_s; /* half the round trip */
	double origin_s;      /* rank 0's clock at the call, on rank 0's clock */
};

/* Collective, without an engine. An offset below its own uncertainty is set to 0: ranks of one host
 * share one clock. */
int gf_trace_compare_clocks(struct gf_comm *comm, struct gf_clock_offset *offset,
			    struct gf_error *err);

/*
 * Traces (documents/trace.h) of all ranks on one time axis: process r is rank r, times are rank 0's
 * clock from offset->origin_s.
 */

/* The shift between clocks: this rank's gf_clock_s less the shift is the time on the axis. */
double gf_trace_shift_s(const struct gf_clock_offset *offset);

/* Collective. *text is the file of all ranks' events on rank 0 (the caller frees), NULL elsewhere;
 * its otherData name the producer, a command, and how far the clocks are apart. */
int gf_trace_gather(const struct gf_trace *own, struct gf_comm *comm,
		    const struct gf_clock_offset *offset, const char *producer, char **text,
		    struct gf_error *err);

/*
 * The steps of a rank's all-reduces in rows, one per peer and direction, and one for what is added,
 * copied or decoded here. Between two ranks many transfers are under way at once and end one after
 * the other, so a slice is drawn from where the one before it ended: a gap in a row is time in
 * which nothing was on its way there. When it was posted is among its arguments.
 */
enum gf_trace_row {
	GF_TRACE_MESSAGES, /* for the caller: whole all-reduces */
	GF_TRACE_WORK,
	GF_TRACE_CALLS, /* collectives of a library, for a stage */
	GF_TRACE_PEERS, /* from here on two per rank: from it and to it */
};
void gf_trace_name_rows(struct gf_trace *t, int rank, int ranks);

/* A run that was recorded (gf_exec_record). */
struct gf_trace_run {
	const struct gf_schedule *schedule;
	const struct gf_exec_times *times;
	const struct gf_element *element;
	size_t message; /* its number, for the arguments */
};
/* All that were under way in the same while. */
void gf_trace_steps(struct gf_trace *t, const struct gf_trace_run *runs, size_t nruns,
		    double shift_s);

#endif
