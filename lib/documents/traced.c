/* SPDX-License-Identifier: BSD-3-Clause */
#include "documents/traced.h"

#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "base/array.h"
#include "base/heap.h"
#include "documents/algorithm_traits.h"
#include "json/json.h"

#define US 1e-6

enum { PROCESSES_MOST = 1 << 13 };

/* One process of the trace while it is read. */
struct process {
	bool predicted; /* not measured: the prediction drawn beside it */
	size_t next_ready;
	size_t nalone; /* passes without exchange, and what they took */
	double alone_s;
	size_t capacity; /* of the rank's steps */
	struct gf_traced_rank rank;
};

struct reading {
	const struct gf_plan *plan;
	const char *file;
	struct process *processes;
	size_t nprocesses, processes_capacity;
	size_t places; /* for instants and messages, in all steps */
};

struct event {
	char *ph, *cat, *name;
	int pid;
	double ts_s, end_s;
	size_t message; /* SIZE_MAX: not one */
	struct gf_traced_message of;
};

static struct process *process_of(struct reading *r, int pid)
{
	struct process *p;

	for (size_t i = 0; i < r->nprocesses; i++)
		if (r->processes[i].rank.pid == pid)
			return &r->processes[i];
	p = gf_array_push(&r->processes, &r->nprocesses, &r->processes_capacity);
	p->rank.pid = pid;
	return p;
}

static struct gf_traced_step *last_step(const struct process *p)
{
	return p->rank.nsteps ? &p->rank.steps[p->rank.nsteps - 1] : NULL;
}

/* Room for so many tensors and messages, of which nothing is known yet. */
static void grow_step(struct reading *r, struct gf_traced_step *s, size_t nready, size_t nmessages)
{
	static const struct gf_traced_message none = {NAN, NAN, SIZE_MAX, 0, SIZE_MAX, SIZE_MAX};

	for (; s->nready < nready; r->places++)
		*gf_array_push(&s->ready_s, &s->nready, &s->ready_capacity) = NAN;
	for (; s->nmessages < nmessages; r->places++)
		*gf_array_push(&s->messages, &s->nmessages, &s->message_capacity) = none;
}

static void begin_step(struct process *p, const struct event *e)
{
	struct gf_traced_step *s = gf_array_push(&p->rank.steps, &p->rank.nsteps, &p->capacity);

	s->start_s = e->ts_s;
	s->forward_end_s = s->backward_end_s = s->end_s = e->end_s;
	s->update_start_s = s->update_end_s = NAN;
	p->next_ready = 0;
}

/* Instants come in generation order; of a plan, a name that is out of turn is sought. */
static size_t tensor_of(const struct reading *r, struct process *p, const char *name)
{
	const struct gf_model_profile *m = r->plan ? r->plan->model : NULL;

	if (!m)
		return p->next_ready++;
	for (size_t i = 0; i < m->ntensors; i++) {
		size_t at = (p->next_ready + i) % m->ntensors;

		if (strcmp(m->tensors[at].name, name) == 0) {
			p->next_ready = at + 1;
			return at;
		}
	}
	return SIZE_MAX;
}

/* Of a plan, each has its place; else they are in the trace's order. */
static void take_message(struct reading *r, struct gf_traced_step *s, const struct event *e)
{
	size_t at = r->plan ? e->message : s->nmessages;

	if (r->plan && at >= r->plan->nmessages)
		return;
	grow_step(r, s, 0, at + 1);
	s->messages[at] = e->of;
	s->messages[at].start_s = e->ts_s;
	s->messages[at].end_s = e->end_s;
}

static void take_slice(struct reading *r, struct process *p, const struct event *e)
{
	struct gf_traced_step *s;

	if (strcmp(e->cat, "alone") == 0) {
		p->alone_s += e->end_s - e->ts_s;
		p->rank.alone_s = p->alone_s / (double)++p->nalone;
		return;
	}
	if (strcmp(e->cat, "forward") == 0)
		begin_step(p, e);
	s = last_step(p);
	/* a step's own slice and its loading come before its forward */
	if (!s || strcmp(e->cat, "step") == 0 || strcmp(e->cat, "load") == 0)
		return;
	if (strcmp(e->cat, "late") == 0) {
		s->late_s += e->end_s - e->ts_s;
	} else if (strcmp(e->cat, "backward") == 0) {
		s->backward_end_s = fmax(s->backward_end_s, e->end_s);
	} else if (strcmp(e->cat, "update") == 0) {
		s->update_start_s = e->ts_s;
		s->update_end_s = e->end_s;
	} else if (strcmp(e->cat, "message") == 0 && e->message != SIZE_MAX) {
		take_message(r, s, e);
	}
	s->end_s = fmax(s->end_s, e->end_s);
}

static void take(struct reading *r, const struct event *e)
{
	struct process *p = process_of(r, e->pid);
	struct gf_traced_step *s = last_step(p);
	size_t tensor;

	if (p->predicted || !e->ph || !e->name || !e->cat)
		return;
	if (strcmp(e->ph, "X") == 0) {
		take_slice(r, p, e);
	} else if (strcmp(e->ph, "i") == 0 && s && strcmp(e->cat, "ready") == 0) {
		tensor = tensor_of(r, p, e->name);
		if (tensor == SIZE_MAX)
			return;
		grow_step(r, s, tensor + 1, 0);
		s->ready_s[tensor] = e->ts_s;
	}
}

/* --- the file ------------------------------------------------------------ */

/* The trace of another plan has other messages. Those that are cut anew in every step prove
 * nothing. */
static int check_message(const struct gf_plan *p, struct gf_json_at *args, size_t message,
			 const struct gf_traced_message *of, struct gf_error *err)
{
	const struct gf_message *m;

	if (!p || gf_selection_has(&p->selection, GF_SELECT_RECUTS) || of->first == SIZE_MAX)
		return 0;
	if (message >= p->nmessages)
		return gf_json_refuse(args, "message", err,
				      "want one of the plan's %zu messages, got %zu", p->nmessages,
				      message);
	m = &p->messages[message];
	if (of->first != m->first || of->last != m->last)
		return gf_json_refuse(
			args, NULL, err,
			"want tensors %zu to %zu in message %zu of the plan, got %zu to %zu",
			m->first, m->last, message, of->first, of->last);
	return 0;
}

static int read_message(struct reading *r, struct gf_json_at *args, struct event *e,
			struct gf_error *err)
{
	struct gf_traced_message *m = &e->of;
	GF_FREED char *algorithm = NULL;
	int rc = gf_json_size(args, "message", 0, SIZE_MAX / 2, &e->message, err);

	m->number = e->message;
	if (rc == 0 && gf_json_has(args, "first") && gf_json_has(args, "last")) {
		rc = gf_json_size(args, "first", 0, SIZE_MAX / 2, &m->first, err);
		rc = rc ?: gf_json_size(args, "last", 0, SIZE_MAX / 2, &m->last, err);
	}
	if (rc == 0 && gf_json_has(args, "bytes"))
		rc = gf_json_size(args, "bytes", 0, SIZE_MAX / 2, &m->size_bytes, err);
	if (rc == 0 && gf_json_has(args, "algorithm")) {
		rc = gf_json_string(args, "algorithm", &algorithm, err);
		m->sets = !rc && gf_algorithm_has(algorithm, GF_ALGORITHM_SETS);
	}
	return rc ?: check_message(r->plan, args, e->message, m, err);
}

static int read_args(struct reading *r, struct gf_json_at *at, struct event *e,
		     struct gf_error *err)
{
	struct gf_json_at args = {0};
	GF_FREED char *name = NULL;
	int rc = gf_json_object(at, "args", &args, err);

	if (rc == 0 && strcmp(e->ph, "M") == 0 && strcmp(e->name, "process_name") == 0) {
		rc = gf_json_string(&args, "name", &name, err);
		if (rc == 0)
			process_of(r, e->pid)->predicted = strcmp(name, "predicted") == 0;
	} else if (rc == 0 && e->cat && strcmp(e->cat, "message") == 0) {
		rc = read_message(r, &args, e, err);
	}
	gf_json_leave(&args);
	return rc;
}

static int read_event(struct reading *r, struct gf_json_at *at, struct gf_error *err)
{
	struct event e = {.message = SIZE_MAX, .of = {NAN, NAN, SIZE_MAX, 0, SIZE_MAX, SIZE_MAX}};
	double ts = 0, duration = 0;
	int rc = gf_json_string(at, "ph", &e.ph, err);

	rc = rc ?: gf_json_string(at, "name", &e.name, err);
	rc = rc ?: gf_json_int(at, "pid", 0, 1 << 30, &e.pid, err);
	if (rc == 0 && gf_json_has(at, "cat"))
		rc = gf_json_string(at, "cat", &e.cat, err);
	if (rc == 0 && gf_json_has(at, "ts"))
		rc = gf_json_real(at, "ts", -1e18, 1e18, &ts, err);
	if (rc == 0 && gf_json_has(at, "dur"))
		rc = gf_json_real(at, "dur", 0, 1e18, &duration, err);
	if (rc == 0 && gf_json_has(at, "args"))
		rc = read_args(r, at, &e, err);
	e.ts_s = ts * US;
	e.end_s = (ts + duration) * US;
	if (rc == 0)
		take(r, &e);
	free(e.ph);
	free(e.cat);
	free(e.name);
	return rc;
}

static int read_events(struct reading *r, const struct gf_json *root, size_t size,
		       struct gf_error *err)
{
	struct gf_json_at at, events, event;
	size_t count = 0, i;
	int rc = gf_json_root(root, r->file, &at, err);

	if (rc < 0)
		return rc;
	if (!gf_json_has(&at, "traceEvents"))
		rc = gf_error_set(err, -EINVAL,
				  "%s: want a trace of gf-train --trace, found no traceEvents",
				  r->file);
	rc = rc ?: gf_json_array(&at, "traceEvents", &events, &count, err);
	for (i = 0; i < count && rc == 0; i++) {
		rc = gf_json_object(gf_json_item(&events, i), NULL, &event, err);
		if (rc < 0)
			break;
		rc = read_event(r, &event, err);
		if (rc == 0 &&
		    (r->places > GF_TRACED_PLACES(size) || r->nprocesses > PROCESSES_MOST))
			rc = gf_json_refuse(
				&event, NULL, err,
				"want at most %d processes, and an instant or a message for every "
				"16 bytes of the trace, got more: is it a trace of this plan?",
				PROCESSES_MOST);
		gf_json_leave(&event);
	}
	gf_json_leave(&at);
	return rc;
}

GF_ORDER(by_pid, struct gf_traced_rank, GF_BY(x->pid, y->pid))

static void release_rank(struct gf_traced_rank *r)
{
	for (size_t i = 0; i < r->nsteps; i++) {
		free(r->steps[i].ready_s);
		free(r->steps[i].messages);
	}
	free(r->steps);
}

int gf_traced_read(const char *text, size_t size, const char *file, const struct gf_plan *p,
		   struct gf_traced *t, struct gf_error *err)
{
	struct reading r = {.plan = p, .file = file};
	GF_RELEASED(gf_json_free_at) struct gf_json *root = NULL;
	int rc = gf_json_parse(text, size, file, &root, err);

	memset(t, 0, sizeof(*t));
	rc = rc ?: read_events(&r, root, size, err);
	t->ranks = gf_xcalloc(r.nprocesses + 1, sizeof(*t->ranks));
	for (size_t i = 0; i < r.nprocesses; i++)
		if (r.processes[i].rank.nsteps)
			t->ranks[t->nranks++] = r.processes[i].rank;
	qsort(t->ranks, t->nranks, sizeof(*t->ranks), by_pid);
	if (rc == 0 && t->nranks == 0)
		rc = gf_error_set(err, -EINVAL,
				  "%s: want steps with a slice of category forward, found none",
				  file);
	if (rc < 0)
		gf_traced_release(t);
	free(r.processes);
	return rc;
}

void gf_traced_release(struct gf_traced *t)
{
	for (size_t i = 0; i < t->nranks; i++)
		release_rank(&t->ranks[i]);
	free(t->ranks);
	memset(t, 0, sizeof(*t));
}
