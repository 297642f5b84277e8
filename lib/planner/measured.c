/* SPDX-License-Identifier: BSD-3-Clause */
#include "planner/measured.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/heap.h"
#include "cost/stat.h"
#include "doc/traced.h"

/* Of a step, in columns: these, when each tensor is ready, and when each message starts and ends.
 * Each is the maximum over ranks. */
enum { FORWARD, FORWARD_END, BACKWARD_END, UPDATE, ITERATION, TENSORS };

struct reading {
	const struct gf_plan *plan;
	const char *file;
	double *steps;
	size_t nsteps, columns, messages; /* from that column on */
};

/* fmax takes the number where the other is NAN. */
static void later(double *a, double b)
{
	*a = fmax(*a, b);
}

/* No tensor is ready, and no message has ended. */
static void clear(const struct reading *r, double *s)
{
	size_t i;

	for (i = TENSORS; i < r->messages; i++)
		s[i] = NAN;
	for (i++; i < r->columns; i += 2)
		s[i] = NAN;
}

/* Times count from the start of the rank's forward. */
static void take_rank(const struct reading *r, double *s, const struct gf_traced_step *of)
{
	double whole_s = of->forward_end_s - of->start_s;
	size_t i;

	later(&s[FORWARD], fmax(whole_s - of->late_s, 0));
	later(&s[FORWARD_END], whole_s);
	later(&s[BACKWARD_END], of->backward_end_s - of->start_s);
	later(&s[UPDATE], of->update_end_s - of->update_start_s);
	later(&s[ITERATION], of->end_s - of->start_s);
	for (i = 0; i < of->nready; i++)
		later(&s[TENSORS + i], of->ready_s[i] - of->start_s);
	for (i = 0, s += r->messages; i < of->nmessages; i++, s += 2) {
		later(&s[0], of->messages[i].start_s - of->start_s);
		later(&s[1], of->messages[i].end_s - of->start_s);
	}
}

/* Each step has all tensors and messages, or is refused later. */
static int take_all(struct reading *r, const struct gf_traced *t, size_t size, struct gf_error *err)
{
	size_t rank, i, most = 0;

	for (rank = 0; rank < t->nranks; rank++)
		if (t->ranks[rank].nsteps > most)
			most = t->ranks[rank].nsteps;
	if (most * (r->plan->model->ntensors + r->plan->nmessages) > GF_TRACED_PLACES(size))
		return gf_error_set(err, -EINVAL,
				    "%s: want each tensor and message of the plan in each of %zu "
				    "steps, got a trace of %zu bytes: is it a trace of this plan?",
				    r->file, most, size);
	r->nsteps = most;
	r->messages = TENSORS + r->plan->model->ntensors;
	r->columns = r->messages + 2 * r->plan->nmessages;
	r->steps = gf_xcalloc(r->nsteps * r->columns, sizeof(*r->steps));
	for (i = 0; i < r->nsteps; i++)
		clear(r, &r->steps[i * r->columns]);
	for (rank = 0; rank < t->nranks; rank++)
		for (i = 0; i < t->ranks[rank].nsteps; i++)
			take_rank(r, &r->steps[i * r->columns], &t->ranks[rank].steps[i]);
	return 0;
}

/* The median of a column over every step from `first` on; NAN if a step lacks it. */
static double median(const struct reading *r, size_t first, double *values, size_t column)
{
	size_t n = r->nsteps - first, i;

	for (i = 0; i < n; i++) {
		values[i] = r->steps[(first + i) * r->columns + column];
		if (isnan(values[i]))
			return NAN;
	}
	return gf_stat_median(values, n);
}

static int summarise(const struct reading *r, struct gf_measured *m, struct gf_error *err)
{
	const struct gf_plan *p = r->plan;
	size_t first = r->nsteps > 1, i;
	double *values;

	values = gf_xcalloc(r->nsteps, sizeof(*values));
	m->nsteps = r->nsteps - first;
	m->forward_s = median(r, first, values, FORWARD);
	m->backward_end_s = median(r, first, values, BACKWARD_END);
	m->update_s = median(r, first, values, UPDATE);
	m->iteration_s = median(r, first, values, ITERATION);
	m->forward_end_s = median(r, first, values, FORWARD_END);
	m->ready_s = gf_xcalloc(p->model->ntensors, sizeof(*m->ready_s));
	m->messages = gf_xcalloc(p->nmessages, sizeof(*m->messages));
	for (i = 0; i < p->model->ntensors; i++)
		m->ready_s[i] = median(r, first, values, TENSORS + i);
	for (i = 0; i < p->nmessages; i++) {
		m->messages[i].start_s = median(r, first, values, r->messages + 2 * i);
		m->messages[i].end_s = median(r, first, values, r->messages + 2 * i + 1);
		/* cut anew, it went with the message before it */
		if (i && isnan(m->messages[i].end_s) &&
		    gf_selection_has(&p->selection, GF_SELECT_RECUTS))
			m->messages[i] = m->messages[i - 1];
		m->messages[i].ready_s = m->ready_s[p->messages[i].last];
	}
	free(values);
	for (i = 0; i < p->model->ntensors; i++)
		if (isnan(m->ready_s[i]))
			return gf_error_set(err, -EINVAL,
					    "%s: want an instant in every step at which tensor %s "
					    "is ready, found none: is it a trace of this plan?",
					    r->file, p->model->tensors[i].name);
	for (i = 0; i < p->nmessages; i++)
		if (isnan(m->messages[i].end_s))
			return gf_error_set(err, -EINVAL,
					    "%s: want message %zu in every step, found none: is it "
					    "a trace of this plan?",
					    r->file, i);
	return 0;
}

int gf_measured_read(const char *text, size_t size, const char *file, const struct gf_plan *p,
		     struct gf_measured *m, struct gf_error *err)
{
	struct reading r = {.plan = p, .file = file};
	struct gf_traced traced;
	size_t i;
	int rc = gf_traced_read(text, size, file, p, &traced, err);

	memset(m, 0, sizeof(*m));
	if (rc < 0)
		return rc;
	rc = take_all(&r, &traced, size, err);
	for (i = 0; i < traced.nranks; i++)
		later(&m->alone_s, traced.ranks[i].alone_s);
	gf_traced_release(&traced);
	rc = rc ? rc : summarise(&r, m, err);
	if (rc < 0)
		gf_measured_release(m);
	free(r.steps);
	return rc;
}

void gf_measured_release(struct gf_measured *m)
{
	free(m->ready_s);
	free(m->messages);
	memset(m, 0, sizeof(*m));
}
