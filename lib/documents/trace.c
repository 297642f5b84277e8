/* SPDX-License-Identifier: BSD-3-Clause */
#include "documents/trace.h"

#include <math.h>

#include "json/json.h"

/* Microseconds, to the nanosecond: a longer tail would be noise. */
static void add_us(struct gf_text *t, const char *key, double nanoseconds)
{
	gf_text_addf(t, ", \"%s\": %.3f", key, nanoseconds / 1e3);
}

static void open_event(struct gf_trace *t, const char *phase, int pid, int tid)
{
	gf_text_addf(&t->events, "%s{\"ph\": \"%s\", \"pid\": %d, \"tid\": %d",
		     t->events.length ? ",\n" : "", phase, pid, tid);
}

static void add_string(struct gf_text *t, const char *key, const char *value)
{
	gf_text_addf(t, ", \"%s\": ", key);
	gf_json_quote(t, value);
}

static void add_metadata(struct gf_trace *t, int pid, int tid, const char *what, const char *name)
{
	open_event(t, "M", pid, tid);
	add_string(&t->events, "name", what);
	gf_text_addf(&t->events, ", \"args\": {\"name\": ");
	gf_json_quote(&t->events, name);
	gf_text_addf(&t->events, "}}");
}

/* Viewers sort by name unless told otherwise: rank 10 before rank 2. */
static void add_sort_index(struct gf_trace *t, int pid, int tid, const char *what, int index)
{
	open_event(t, "M", pid, tid);
	add_string(&t->events, "name", what);
	gf_text_addf(&t->events, ", \"args\": {\"sort_index\": %d}}", index);
}

void gf_trace_process(struct gf_trace *t, int pid, const char *name)
{
	add_metadata(t, pid, 0, "process_name", name);
	add_sort_index(t, pid, 0, "process_sort_index", pid);
}

void gf_trace_thread(struct gf_trace *t, int pid, int tid, const char *name)
{
	add_metadata(t, pid, tid, "thread_name", name);
	add_sort_index(t, pid, tid, "thread_sort_index", tid);
}

void gf_trace_slice(struct gf_trace *t, int pid, int tid, const char *category, const char *name,
		    double start_s, double duration_s, const char *args_json)
{
	/* both ends are rounded, not start and length: slices that touch must not overlap in the
	 * file */
	double from = round(start_s * 1e9);
	double to = round((start_s + duration_s) * 1e9);

	open_event(t, "X", pid, tid);
	add_string(&t->events, "cat", category);
	add_string(&t->events, "name", name);
	add_us(&t->events, "ts", from);
	add_us(&t->events, "dur", to - from);
	if (args_json)
		gf_text_addf(&t->events, ", \"args\": %s", args_json);
	gf_text_addf(&t->events, "}");
}

void gf_trace_instant(struct gf_trace *t, int pid, int tid, const char *category, const char *name,
		      double at_s)
{
	open_event(t, "i", pid, tid);
	add_string(&t->events, "cat", category);
	add_string(&t->events, "name", name);
	add_us(&t->events, "ts", round(at_s * 1e9));
	gf_text_addf(&t->events, ", \"s\": \"t\"}");
}

static void add_flow_end(struct gf_trace *t, const char *phase, int pid, int tid, double at_s,
			 size_t id)
{
	open_event(t, phase, pid, tid);
	add_string(&t->events, "cat", "flow");
	add_string(&t->events, "name", "ready");
	add_us(&t->events, "ts", round(at_s * 1e9));
	gf_text_addf(&t->events, ", \"id\": %zu", id);
	if (*phase == 'f')
		add_string(&t->events, "bp", "e"); /* the slice around it */
	gf_text_addf(&t->events, "}");
}

void gf_trace_flow(struct gf_trace *t, int pid, int tid_from, double from_s, int tid_to,
		   double to_s, size_t id)
{
	add_flow_end(t, "s", pid, tid_from, from_s, id);
	add_flow_end(t, "f", pid, tid_to, to_s, id);
}

void gf_trace_append(struct gf_trace *t, const char *events, size_t length)
{
	if (!length)
		return;
	if (t->events.length)
		gf_text_add(&t->events, ",\n", 2);
	gf_text_add(&t->events, events, length);
}

char *gf_trace_finish(const struct gf_trace *t, const char *meta_json)
{
	struct gf_text out = {0};

	gf_text_addf(&out, "{\"displayTimeUnit\": \"ms\",\n");
	if (meta_json)
		gf_text_addf(&out, "\"otherData\": %s,\n", meta_json);
	gf_text_addf(&out, "\"traceEvents\": [\n");
	if (t->events.length)
		gf_text_add(&out, t->events.data, t->events.length);
	gf_text_addf(&out, "\n]}\n");
	return gf_text_take(&out);
}

void gf_trace_release(struct gf_trace *t)
{
	gf_text_release(&t->events);
}
