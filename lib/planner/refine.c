/* SPDX-License-Identifier: BSD-3-Clause */
#include "planner/refine.h"

#include <math.h>
#include <string.h>

#include "base/file.h"
#include "base/heap.h"
#include "cli/human.h"
#include "cost/stat.h"
#include "documents/plan_brief.h"
#include "documents/traced.h"
#include "simulator/predict.h"

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
	GF_FREED double *values = gf_xcalloc(r->nsteps, sizeof(*values));

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
	GF_RELEASED(gf_traced_release) struct gf_traced traced = {0};
	int rc = gf_traced_read(text, size, file, p, &traced, err);

	memset(m, 0, sizeof(*m));
	if (rc < 0)
		return rc;
	rc = take_all(&r, &traced, size, err);
	for (size_t i = 0; i < traced.nranks; i++)
		later(&m->alone_s, traced.ranks[i].alone_s);
	rc = rc ?: summarise(&r, m, err);
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

/* --- compute ------------------------------------------------------------- */

/* What carried the plan's messages, with its prices, and when each went (owned): without the
 * numbers of a selection's own, which come last. */
static struct gf_sim_input carriers_of(const struct gf_plan *p, const struct gf_traffic *t,
				       const struct gf_measured *m,
				       struct gf_predicted_message **times)
{
	struct gf_sim_input in = gf_plan_input(p, t);

	*times = gf_xcalloc(in.nmessages + 1, sizeof(**times));
	for (size_t i = 0; i < p->nmessages; i++)
		(*times)[t->carrier[i]] = m->messages[i];
	if (in.nmessages && t->plan_message[in.nmessages - 1] == p->nmessages)
		in.nmessages--;
	return in;
}

/* Forward and backward of one. */
static double batch_s(const struct gf_model_profile *m)
{
	return gf_model_forward_s(m) + m->backward_s;
}

static struct gf_model_profile *refine_model(const struct gf_plan *p, const struct gf_traffic *t,
					     const struct gf_measured *m)
{
	struct gf_model_profile *model = gf_model_profile_copy(p->model);
	GF_FREED struct gf_predicted_message *times = NULL;
	struct gf_sim_input in = carriers_of(p, t, m, &times);
	size_t n = model->ntensors, next = 0, i;
	GF_FREED double *at_s = gf_xcalloc(n + 1, sizeof(*at_s));
	GF_FREED double *work_s = gf_xcalloc(n + 1, sizeof(*work_s));
	double ready = 0, issued = 0; /* seconds */
	double forward_s = gf_model_forward_s(model), longer = 0;

	model->forward_s = m->forward_s;
	model->update_s = m->update_s / gf_plan_update_share(p);
	memcpy(at_s, m->ready_s, n * sizeof(*at_s));
	at_s[n] = m->backward_end_s;
	gf_sim_work_done(&in, times, m->forward_end_s, at_s, n + 1, work_s);
	for (i = 0; i < n; i++) {
		while (next < in.nmessages && in.messages[next].last < i)
			issued += gf_sim_issue_s(in.model, &in.messages[next++]);
		ready = fmax(ready, work_s[i] - issued);
		model->tensors[i].ready_s = ready;
	}
	model->backward_s = fmax(work_s[n] - gf_sim_issues_s(&in), ready);
	if (forward_s > 0)
		longer = gf_model_forward_s(model) / forward_s;
	for (i = 0; i < n; i++)
		model->tensors[i].need_s *= longer;
	if (m->alone_s > 0 && batch_s(model) > 0)
		gf_model_slow(model, m->alone_s / batch_s(model));
	return model;
}

/* The model, the network and the selections of out->measured. */
static int refine(const struct gf_plan *p, struct gf_refined *out, struct gf_text *notes,
		  struct gf_error *err)
{
	const struct gf_measured *m = &out->measured;
	struct gf_fabric f = gf_plan_fabric(p);
	struct gf_refining r = {.plan = p, .measured = m, .fabric = &f};
	int rc = gf_traffic_init(&r.traffic, p, &f, err);

	if (rc < 0)
		return rc;
	out->model = refine_model(p, &r.traffic, m);
	gf_text_addf(notes, "compute: forward %s -> %s, backward %s -> %s (medians of %zu steps)\n",
		     gf_human_time(p->model->forward_s).text,
		     gf_human_time(out->model->forward_s).text,
		     gf_human_time(p->model->backward_s).text,
		     gf_human_time(out->model->backward_s).text, m->nsteps);
	if (m->alone_s > 0 && batch_s(p->model) > 0)
		gf_text_addf(notes,
			     "without exchange they take %s a batch, %.3f times as long as in the "
			     "profile\n",
			     gf_human_time(m->alone_s).text, m->alone_s / batch_s(p->model));
	r.model = out->model;
	rc = gf_refine_costs(&r, &out->network, &out->processing, notes, err);
	if (rc < 0)
		gf_model_profile_free(out->model);
	gf_traffic_release(&r.traffic);
	return rc;
}

int gf_refine_trace(const struct gf_plan *p, const char *path, struct gf_refined *out,
		    struct gf_text *notes, struct gf_error *err)
{
	GF_FREED char *text = NULL;
	size_t size = 0;
	int rc;

	if (!p || p->rule)
		return gf_error_set(
			err, -EINVAL,
			"want the plan that was run, with its messages, beside the trace, found %s",
			p ? "a rule" : "none");
	rc = gf_file_read(path, &text, &size, err);
	if (rc < 0)
		return rc;
	memset(out, 0, sizeof(*out));
	rc = gf_measured_read(text, size, path, p, &out->measured, err);
	rc = rc ?: refine(p, out, notes, err);
	if (rc < 0) {
		gf_measured_release(&out->measured);
		memset(out, 0, sizeof(*out));
	}
	return rc;
}

void gf_refined_release(struct gf_refined *r)
{
	gf_measured_release(&r->measured);
	gf_model_profile_free(r->model);
	gf_network_free(r->network);
	gf_processing_release(&r->processing);
	memset(r, 0, sizeof(*r));
}

void gf_request_follow(struct gf_request *r, struct gf_axes *axes, const struct gf_plan *p,
		       const char *codecs[GF_CODECS_MOST + 1])
{
	if (!r->system && p->system && gf_system_find(p->system))
		r->system = p->system;
	gf_axes_follow(axes, p);
	r->reproducible |= p->reproducible;
	if (!r->codecs)
		r->codecs = gf_plan_codecs(p, codecs);
}

/* A model that leaves out more of a step than this says little about plans. */
static const double much_unexplained = 0.2;

void gf_refine_compare(const struct gf_plan *before, const struct gf_measured *m,
		       const struct gf_plan *after, struct gf_text *notes)
{
	struct gf_sim_result old = {0};
	struct gf_fabric f = gf_plan_fabric(after);
	struct gf_plan then = *before; /* the old messages, the new costs */
	size_t kept = 0, i, k;

	then.model = after->model;
	gf_text_addf(notes, "step: measured %s", gf_human_time(m->iteration_s).text);
	if (before->predicted)
		gf_text_addf(notes, ", was predicted %s",
			     gf_human_time(before->predicted->iteration_s).text);
	if (gf_predict_plan(&then, &f, &old, NULL) == 0)
		gf_text_addf(notes, "; by what was measured the old plan takes %s, the new one %s",
			     gf_human_time(old.iteration_s).text,
			     gf_human_time(after->predicted->iteration_s).text);
	if (old.iteration_s > 0 && old.iteration_s < (1 - much_unexplained) * m->iteration_s)
		gf_text_addf(notes,
			     "\nthe model explains only %.0f %% of the measured step: what it "
			     "leaves out (other programs, more ranks than processors, reading "
			     "data) no plan makes shorter",
			     100 * old.iteration_s / m->iteration_s);
	for (i = 0, k = 0; i < after->nmessages; i++) {
		while (k < before->nmessages && before->messages[k].last < after->messages[i].last)
			k++;
		kept += k < before->nmessages &&
			before->messages[k].last == after->messages[i].last;
	}
	gf_text_addf(notes,
		     "\nmessages: %zu -> %zu, %zu end with the same tensor as before; policy %s -> "
		     "%s, lanes %d -> %d\n",
		     before->nmessages, after->nmessages, kept, before->policy, after->policy,
		     before->lanes, after->lanes);
}
