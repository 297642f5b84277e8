/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef GF_TRACE_CLOCKS_H
#define GF_TRACE_CLOCKS_H

#include "base/error.h"
#include "comm/comm.h"

/*
 * How far this rank's gf_clock_s is ahead of rank 0's, so that a trace can show
 * all ranks on one time axis: the exchange of questions and answers with the
 * shortest round trip, halved (Cristian 1989).
 */
struct gf_clock_offset {
	double offset_s;      /* own clock - rank 0's, at the same moment */
	double uncertainty_s; /* half the round trip */
	double origin_s; /* rank 0's clock at the call, on rank 0's clock */
};

/* Collective, without an engine. An offset below its own uncertainty is set
 * to 0: ranks of one host share one clock. */
int gf_trace_compare_clocks(struct gf_comm *comm,
			    struct gf_clock_offset *offset,
			    struct gf_error *err);

#endif
