/* SPDX-License-Identifier: BSD-3-Clause */
#include "planner/measured.h"

#include <errno.h>
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/heap.h"
#include "json/json.h"

#define US 1e-6

/* One process (rank) of the trace while it is read. */
struct process {
	int pid;
	bool predicted;   /* not measured: the prediction drawn beside it */
	size_t nsteps;    /* forward slices so far */
	double forward_s; /* start of the latest */
	double forward_end_s, late_s; /* its end, and what it has waited */
	size_t next_ready;
};

/* One step; each entry is the maximum over ranks. */
struct step {
	double forward_s, forward_end_s, backward_end_s, update_s, iteration_s;
	double *ready_s;
	struct gf_predicted_message *messages;
};

struct reading {
	const struct gf_plan *plan;
	const char *file;
	struct process *processes;
	size_t nprocesses, processes_capacity;
	struct step *steps;
	size_t nsteps, steps_capacity;
};

struct event {
	char *ph, *cat, *name;
	int pid;
	double ts_s, end_s;
	size_t message; /* SIZE_MAX: not one */
};

static struct process *process_of(struct reading *r, int pid)
{
	struct process *p;
	size_t i;

	for (i = 0; i < r->nprocesses; i++)
		if (r->processes[i].pid == pid)
			return &r->processes[i];
	p = gf_array_push(&r->processes, &r->nprocesses,
			  &r->processes_capacity);
	p->pid = pid;
	return p;
}

static struct step *step_of(struct reading *r, size_t index)
{
	while (r->nsteps <= index) {
		struct step *s = gf_array_push(&r->steps, &r->nsteps,
					       &r->steps_capacity);
		size_t n = r->plan->model->ntensors, i;

		s->ready_s = gf_xcalloc(n, sizeof(*s->ready_s));
		for (i = 0; i < n; i++)
			s->ready_s[i] = NAN;
		s->messages =
			gf_xcalloc(r->plan->nmessages, sizeof(*s->messages));
		for (i = 0; i < r->plan->nmessages; i++)
			s->messages[i].end_s = NAN;
	}
	return &r->steps[index];
}

/* fmax takes the number where the other is NAN. */
static void later(double *a, double b)
{
	*a = fmax(*a, b);
}

/* Instants come in generation order; a name that is out of turn is sought. */
static size_t tensor_of(const struct reading *r, struct process *p,
			const char *name)
{
	const struct gf_model_profile *m = r->plan->model;
	size_t i;

	for (i = 0; i < m->ntensors; i++) {
		size_t at = (p->next_ready + i) % m->ntensors;

		if (strcmp(m->tensors[at].name, name) == 0) {
			p->next_ready = at + 1;
			return at;
		}
	}
	return SIZE_MAX;
}

/* All slices of a process's forward pass have been read. */
static void end_forward(struct reading *r, const struct process *p)
{
	double whole_s = p->forward_end_s - p->forward_s;

	if (p->nsteps > 0)
		later(&step_of(r, p->nsteps - 1)->forward_s,
		      fmax(whole_s - p->late_s, 0));
}

static void begin_step(struct reading *r, struct process *p,
		       const struct event *e)
{
	end_forward(r, p);
	p->nsteps++;
	p->forward_s = e->ts_s;
	p->forward_end_s = e->end_s;
	p->late_s = 0;
	p->next_ready = 0;
}

static void take_slice(struct reading *r, struct process *p,
		       const struct event *e)
{
	struct step *s;

	if (strcmp(e->cat, "forward") == 0)
		begin_step(r, p, e);
	if (p->nsteps == 0)
		return;
	s = step_of(r, p->nsteps - 1);
	if (strcmp(e->cat, "forward") == 0)
		later(&s->forward_end_s, e->end_s - e->ts_s);
	else if (strcmp(e->cat, "late") == 0)
		p->late_s += e->end_s - e->ts_s;
	else if (strcmp(e->cat, "backward") == 0)
		later(&s->backward_end_s, e->end_s - p->forward_s);
	else if (strcmp(e->cat, "update") == 0)
		later(&s->update_s, e->end_s - e->ts_s);
	else if (strcmp(e->cat, "message") == 0 &&
		 e->message < r->plan->nmessages) {
		struct gf_predicted_message *m = &s->messages[e->message];

		later(&m->start_s, e->ts_s - p->forward_s);
		later(&m->end_s, e->end_s - p->forward_s);
	}
	if (strcmp(e->cat, "step") != 0)
		later(&s->iteration_s, e->end_s - p->forward_s);
}

static void take(struct reading *r, const struct event *e)
{
	struct process *p = process_of(r, e->pid);
	size_t tensor;

	if (p->predicted || !e->ph || !e->name)
		return;
	if (strcmp(e->ph, "X") == 0 && e->cat) {
		take_slice(r, p, e);
	} else if (strcmp(e->ph, "i") == 0 && e->cat && p->nsteps > 0 &&
		   strcmp(e->cat, "ready") == 0) {
		tensor = tensor_of(r, p, e->name);
		if (tensor != SIZE_MAX)
			later(&step_of(r, p->nsteps - 1)->ready_s[tensor],
			      e->ts_s - p->forward_s);
	}
}

/* --- the file ------------------------------------------------------------ */

/* The trace of another plan has other messages. Those that are cut anew in
 * every step prove nothing. */
static int check_message(const struct gf_plan *p, struct gf_json_at *args,
			 size_t message, struct gf_error *err)
{
	const struct gf_message *m;
	size_t first, last;
	int rc = 0;

	if (gf_selection_has(&p->selection, GF_SELECT_RECUTS) ||
	    !gf_json_has(args, "first") || !gf_json_has(args, "last"))
		return 0;
	if (message >= p->nmessages)
		return gf_json_refuse(args, "message", err,
				      "want one of the plan's %zu messages, "
				      "got %zu",
				      p->nmessages, message);
	m = &p->messages[message];
	rc = gf_json_size(args, "first", 0, SIZE_MAX / 2, &first, err);
	if (rc == 0)
		rc = gf_json_size(args, "last", 0, SIZE_MAX / 2, &last, err);
	if (rc == 0 && (first != m->first || last != m->last))
		rc = gf_json_refuse(args, NULL, err,
				    "want tensors %zu to %zu in message %zu of "
				    "the plan, got %zu to %zu",
				    m->first, m->last, message, first, last);
	return rc;
}

static int read_args(struct reading *r, struct gf_json_at *at, struct event *e,
		     struct gf_error *err)
{
	struct gf_json_at args = {0};
	char *name = NULL;
	int rc = gf_json_object(at, "args", &args, err);

	if (rc == 0 && strcmp(e->ph, "M") == 0 &&
	    strcmp(e->name, "process_name") == 0) {
		rc = gf_json_string(&args, "name", &name, err);
		if (rc == 0)
			process_of(r, e->pid)->predicted =
				strcmp(name, "predicted") == 0;
		free(name);
	} else if (rc == 0 && e->cat && strcmp(e->cat, "message") == 0) {
		rc = gf_json_size(&args, "message", 0, SIZE_MAX / 2,
				  &e->message, err);
		if (rc == 0)
			rc = check_message(r->plan, &args, e->message, err);
	}
	gf_json_leave(&args);
	return rc;
}

static int read_event(struct reading *r, struct gf_json_at *at,
		      struct gf_error *err)
{
	struct event e = {.message = SIZE_MAX};
	double ts = 0, duration = 0;
	int rc = gf_json_string(at, "ph", &e.ph, err);

	if (rc == 0)
		rc = gf_json_string(at, "name", &e.name, err);
	if (rc == 0)
		rc = gf_json_int(at, "pid", 0, 1 << 30, &e.pid, err);
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

static int read_events(struct reading *r, const struct gf_json *root,
		       struct gf_error *err)
{
	struct gf_json_at at, events, event;
	size_t count = 0, i;
	int rc = gf_json_root(root, r->file, &at, err);

	if (rc < 0)
		return rc;
	rc = gf_json_array(&at, "traceEvents", &events, &count, err);
	for (i = 0; i < count && rc == 0; i++) {
		rc = gf_json_item_object(&events, i, &event, err);
		if (rc < 0)
			break;
		rc = read_event(r, &event, err);
		gf_json_leave(&event);
	}
	gf_json_leave(&at);
	return rc;
}

/* --- medians ------------------------------------------------------------- */

static int ascending(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

/* The median of one member over every step from `first` on; NAN if a step lacks
 * it. */
static double median(const struct reading *r, size_t first, double *values,
		     const double *(*member)(const struct step *s, size_t i),
		     size_t index)
{
	size_t n = r->nsteps - first, i;

	for (i = 0; i < n; i++) {
		values[i] = *member(&r->steps[first + i], index);
		if (isnan(values[i]))
			return NAN;
	}
	qsort(values, n, sizeof(*values), ascending);
	return n % 2 ? values[n / 2] : (values[n / 2 - 1] + values[n / 2]) / 2;
}

static const double *whole(const struct step *s, size_t i)
{
	const double *members[] = {&s->forward_s, &s->backward_end_s,
				   &s->update_s, &s->iteration_s,
				   &s->forward_end_s};

	return members[i];
}

static const double *ready(const struct step *s, size_t i)
{
	return &s->ready_s[i];
}

static const double *start(const struct step *s, size_t i)
{
	return &s->messages[i].start_s;
}

static const double *end(const struct step *s, size_t i)
{
	return &s->messages[i].end_s;
}

static int summarise(const struct reading *r, struct gf_measured *m,
		     struct gf_error *err)
{
	const struct gf_plan *p = r->plan;
	size_t first = r->nsteps > 1, i;
	double *values;

	if (r->nsteps == 0)
		return gf_error_set(err, -EINVAL,
				    "%s: want steps with a slice of category "
				    "forward, found none",
				    r->file);
	values = gf_xcalloc(r->nsteps, sizeof(*values));
	m->nsteps = r->nsteps - first;
	m->forward_s = median(r, first, values, whole, 0);
	m->backward_end_s = median(r, first, values, whole, 1);
	m->update_s = median(r, first, values, whole, 2);
	m->iteration_s = median(r, first, values, whole, 3);
	m->forward_end_s = median(r, first, values, whole, 4);
	m->ready_s = gf_xcalloc(p->model->ntensors, sizeof(*m->ready_s));
	m->messages = gf_xcalloc(p->nmessages, sizeof(*m->messages));
	for (i = 0; i < p->model->ntensors; i++)
		m->ready_s[i] = median(r, first, values, ready, i);
	for (i = 0; i < p->nmessages; i++) {
		m->messages[i].start_s = median(r, first, values, start, i);
		m->messages[i].end_s = median(r, first, values, end, i);
		m->messages[i].ready_s = m->ready_s[p->messages[i].last];
	}
	free(values);
	for (i = 0; i < p->model->ntensors; i++)
		if (isnan(m->ready_s[i]))
			return gf_error_set(err, -EINVAL,
					    "%s: want an instant in every step "
					    "at which tensor %s is ready, "
					    "found none: is it a trace of this "
					    "plan?",
					    r->file, p->model->tensors[i].name);
	for (i = 0; i < p->nmessages; i++)
		if (isnan(m->messages[i].end_s))
			return gf_error_set(err, -EINVAL,
					    "%s: want message %zu in every "
					    "step, found none: is it a trace "
					    "of this plan?",
					    r->file, i);
	return 0;
}

int gf_measured_read(const char *text, size_t size, const char *file,
		     const struct gf_plan *p, struct gf_measured *m,
		     struct gf_error *err)
{
	struct reading r = {.plan = p, .file = file};
	struct gf_json *root = NULL;
	size_t i;
	int rc = gf_json_parse(text, size, file, &root, err);

	memset(m, 0, sizeof(*m));
	if (rc == 0)
		rc = read_events(&r, root, err);
	for (i = 0; i < r.nprocesses && rc == 0; i++)
		end_forward(&r, &r.processes[i]);
	if (rc == 0)
		rc = summarise(&r, m, err);
	if (rc < 0)
		gf_measured_release(m);
	for (i = 0; i < r.nsteps; i++) {
		free(r.steps[i].ready_s);
		free(r.steps[i].messages);
	}
	free(r.steps);
	free(r.processes);
	gf_json_free(root);
	return rc;
}

void gf_measured_release(struct gf_measured *m)
{
	free(m->ready_s);
	free(m->messages);
	memset(m, 0, sizeof(*m));
}
