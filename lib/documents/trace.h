/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef GF_DOCUMENTS_TRACE_H
#define GF_DOCUMENTS_TRACE_H

#include <stddef.h>

#include "base/text.h"

/*
 * Chrome trace event JSON (object form), as Perfetto opens it: pid = rank, tid 0 compute, tid 1..
 * lanes. Times in seconds here, microseconds in the file. Slices of one tid must nest or follow
 * each other.
 *
 * A rank collects its events as text, which can be sent to rank 0 as it is; gf_trace_finish wraps
 * the concatenation of all ranks' events.
 */
struct gf_trace {
	struct gf_text events; /* comma-separated JSON objects */
};

void gf_trace_process(struct gf_trace *t, int pid, const char *name);
void gf_trace_thread(struct gf_trace *t, int pid, int tid, const char *name);
/* args_json: an object's text, or NULL. */
void gf_trace_slice(struct gf_trace *t, int pid, int tid, const char *category, const char *name,
		    double start_s, double duration_s, const char *args_json);
/* A moment. */
void gf_trace_instant(struct gf_trace *t, int pid, int tid, const char *category, const char *name,
		      double at_s);
/* An arrow from (pid, tid_from, at_from) to (pid, tid_to, at_to). */
void gf_trace_flow(struct gf_trace *t, int pid, int tid_from, double from_s, int tid_to,
		   double to_s, size_t id);
void gf_trace_append(struct gf_trace *t, const char *events, size_t length);
/* The whole file's text; the caller frees. meta_json: otherData, or NULL. */
char *gf_trace_finish(const struct gf_trace *t, const char *meta_json);
void gf_trace_release(struct gf_trace *t);

#endif
