/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef GF_SIM_PICTURE_H
#define GF_SIM_PICTURE_H

#include "doc/trace.h"
#include "sim/whatif.h"

/* One simulated iteration as a Chrome trace, drawn as gf-train draws measured
 * ones: compute is on thread 0. Message slices with {message, first, last,
 * bytes} are on the lanes' threads. An instant marks when each tensor is ready.
 */
void gf_outcome_trace(const struct gf_plan *p, const struct gf_outcome *o,
		      int pid, const char *name, struct gf_trace *trace);
/* A whole file of it; the caller frees. */
char *gf_outcome_trace_text(const struct gf_plan *p,
			    const struct gf_outcome *o);

#endif
