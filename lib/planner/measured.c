/* SPDX-License-Identifier: BSD-3-Clause */
#include "planner/measured.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/heap.h"
#include "cost/stat.h"
#include "doc/traced.h"

/* One step; each entry is the maximum over ranks. */
struct step {
	double forward_s, forward_end_s, backward_end_s, update_s, iteration_s;
	double *ready_s;
	struct gf_predicted_message *messages;
};

struct reading {
	const struct gf_plan *plan;
	const char *file;
	struct step *steps;
	size_t nsteps;
};

/* fmax takes the number where the other is NAN. */
static void later(double *a, double b)
{
	*a = fmax(*a, b);
}

static void init_step(struct step *s, const struct gf_plan *p)
{
	size_t n = p->model->ntensors, i;

	s->ready_s = gf_xcalloc(n, sizeof(*s->ready_s));
	for (i = 0; i < n; i++)
		s->ready_s[i] = NAN;
	s->messages = gf_xcalloc(p->nmessages, sizeof(*s->messages));
	for (i = 0; i < p->nmessages; i++)
		s->messages[i].end_s = NAN;
}

/* Times count from the start of the rank's forward. */
static void take_rank(struct step *s, const struct gf_traced_step *of)
{
	double whole_s = of->forward_end_s - of->start_s;
	size_t i;

	later(&s->forward_s, fmax(whole_s - of->late_s, 0));
	later(&s->forward_end_s, whole_s);
	later(&s->backward_end_s, of->backward_end_s - of->start_s);
	later(&s->update_s, of->update_end_s - of->update_start_s);
	later(&s->iteration_s, of->end_s - of->start_s);
	for (i = 0; i < of->nready; i++)
		later(&s->ready_s[i], of->ready_s[i] - of->start_s);
	for (i = 0; i < of->nmessages; i++) {
		later(&s->messages[i].start_s,
		      of->messages[i].start_s - of->start_s);
		later(&s->messages[i].end_s,
		      of->messages[i].end_s - of->start_s);
	}
}

/* Each step has all tensors and messages, or is refused later. */
static int take_all(struct reading *r, const struct gf_traced *t, size_t size,
		    struct gf_error *err)
{
	size_t rank, i, most = 0;

	for (rank = 0; rank < t->nranks; rank++)
		if (t->ranks[rank].nsteps > most)
			most = t->ranks[rank].nsteps;
	if (most * (r->plan->model->ntensors + r->plan->nmessages) >
	    GF_TRACED_PLACES(size))
		return gf_error_set(err, -EINVAL,
				    "%s: want each tensor and message of the "
				    "plan in each of %zu steps, got a trace of "
				    "%zu bytes: is it a trace of this plan?",
				    r->file, most, size);
	r->nsteps = most;
	r->steps = gf_xcalloc(r->nsteps, sizeof(*r->steps));
	for (i = 0; i < r->nsteps; i++)
		init_step(&r->steps[i], r->plan);
	for (rank = 0; rank < t->nranks; rank++)
		for (i = 0; i < t->ranks[rank].nsteps; i++)
			take_rank(&r->steps[i], &t->ranks[rank].steps[i]);
	return 0;
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
	return gf_stat_median(values, n);
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
	for (i = 0; i < r.nsteps; i++) {
		free(r.steps[i].ready_s);
		free(r.steps[i].messages);
	}
	free(r.steps);
	return rc;
}

void gf_measured_release(struct gf_measured *m)
{
	free(m->ready_s);
	free(m->messages);
	memset(m, 0, sizeof(*m));
}
