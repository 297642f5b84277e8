/* SPDX-License-Identifier: BSD-3-Clause */
#include "planner/refine.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/heap.h"
#include "cost/fit.h"
#include "sim/predict.h"

#define FIT_SIZES 3

/* --- compute ------------------------------------------------------------- */

/* How long any message was active between backward's start and t_s. Messages
 * start in the plan's order. */
static double busy_s(const struct gf_plan *p, const struct gf_measured *m,
		     double t_s)
{
	double until = m->forward_end_s, busy = 0;
	size_t i;

	for (i = 0; i < p->nmessages; i++) {
		double from = fmax(m->messages[i].start_s, until);
		double to = fmin(m->messages[i].end_s, t_s);

		if (to > from) {
			busy += to - from;
			until = to;
		}
	}
	return busy;
}

/* Backward work done by t_s: a second beside a message is worth less. */
static double work_s(const struct gf_plan *p, const struct gf_measured *m,
		     double t_s)
{
	double slowdown = fmax(p->model->overlap_slowdown, 1);

	return fmax(t_s - m->forward_end_s -
			    (1 - 1 / slowdown) * busy_s(p, m, t_s),
		    0);
}

static struct gf_model_profile *refine_model(const struct gf_plan *p,
					     const struct gf_measured *m)
{
	struct gf_model_profile *model = gf_model_profile_copy(p->model);
	double ready = 0;
	size_t i;

	model->forward_s = m->forward_s;
	model->update_s = m->update_s;
	for (i = 0; i < model->ntensors; i++) {
		ready = fmax(ready, work_s(p, m, m->ready_s[i]));
		model->tensors[i].ready_s = ready;
	}
	model->backward_s = fmax(work_s(p, m, m->backward_end_s), ready);
	return model;
}

/* --- network ------------------------------------------------------------- */

static double duration_s(const struct gf_predicted_message *m)
{
	return m->end_s - m->start_s;
}

static bool alone(const struct gf_plan *p, const struct gf_measured *m,
		  size_t index)
{
	size_t i;

	for (i = 0; i < p->nmessages; i++)
		if (i != index &&
		    m->messages[i].start_s < m->messages[index].end_s &&
		    m->messages[i].end_s > m->messages[index].start_s)
			return false;
	return true;
}

static bool uses(const struct gf_plan *p, size_t i, const char *algorithm)
{
	return strcmp(p->messages[i].algorithm, algorithm) == 0 &&
	       strcmp(p->messages[i].codec, "f32") == 0;
}

static void drop_lines(struct gf_allreduce_cost *c)
{
	gf_list_free(&gf_cost_line_record, c->larger, c->nlarger);
	c->larger = NULL;
	c->nlarger = 0;
}

/* Startup and slope of messages that ran by themselves; false where there are
 * too few sizes or the line makes no sense. */
static bool fit_alone(const struct gf_plan *p, const struct gf_measured *m,
		      struct gf_allreduce_cost *c)
{
	double *bytes = gf_xcalloc(p->nmessages, sizeof(*bytes));
	double *times = gf_xcalloc(p->nmessages, sizeof(*times));
	struct gf_linear_fit fit = {0};
	size_t n = 0, sizes = 0, i, k;
	bool good;

	for (i = 0; i < p->nmessages; i++) {
		if (!uses(p, i, c->algorithm) || !alone(p, m, i) ||
		    !(duration_s(&m->messages[i]) > 0))
			continue;
		bytes[n] = (double)gf_plan_message_bytes(p, i);
		times[n] = duration_s(&m->messages[i]);
		for (k = 0; k < n && bytes[k] != bytes[n];)
			k++;
		sizes += k == n;
		n++;
	}
	good = sizes >= FIT_SIZES &&
	       gf_fit_linear(bytes, times, n, &fit, NULL) == 0 &&
	       !fit.clamped_startup && !fit.clamped_slope;
	if (good) {
		drop_lines(c);
		c->startup_s = fit.startup_s;
		c->per_byte_s = fit.per_byte_s;
	}
	free(bytes);
	free(times);
	return good;
}

static int ascending(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

/* The median of measured over predicted duration. */
static double ratio(const struct gf_plan *p, const struct gf_measured *m,
		    const struct gf_predicted_message *predicted,
		    const char *algorithm)
{
	double *ratios = gf_xcalloc(p->nmessages + 1, sizeof(*ratios)), middle;
	size_t n = 0, i;

	for (i = 0; i < p->nmessages; i++)
		if (strcmp(p->messages[i].algorithm, algorithm) == 0 &&
		    duration_s(&predicted[i]) > 0)
			ratios[n++] = duration_s(&m->messages[i]) /
				      duration_s(&predicted[i]);
	qsort(ratios, n, sizeof(*ratios), ascending);
	middle = n ? ratios[n / 2] : 1;
	free(ratios);
	return middle;
}

/* The lines by which that message is priced. */
static int take_lines(const struct gf_fabric *f, const struct gf_message *m,
		      struct gf_allreduce_cost *c, struct gf_error *err)
{
	struct gf_priced priced = {m->algorithm, m->stages, m->nstages, 0};
	struct gf_cost_line first;
	struct gf_price price;
	int rc = gf_price_message(f, &priced, &price, err);

	if (rc < 0)
		return rc;
	drop_lines(c);
	c->startup_s = price.startup_s;
	c->per_byte_s = price.per_byte_s;
	first = (struct gf_cost_line){0, c->startup_s, c->per_byte_s, NULL};
	while (price.below_bytes < GF_MAX_SIZE) {
		priced.bytes = ceil(price.below_bytes);
		rc = gf_price_message(f, &priced, &price, err);
		if (rc < 0)
			return rc;
		gf_cost_line_add(&first, &c->larger, &c->nlarger,
				 (struct gf_cost_line){(size_t)priced.bytes,
						       price.startup_s,
						       price.per_byte_s, NULL});
	}
	return 0;
}

/* An entry for every algorithm that the plan uses: those measured before, and
 * those whose closed forms the plan was made of. */
static int used_network(const struct gf_plan *p, struct gf_network **out,
			struct gf_error *err)
{
	struct gf_network *n = p->network ? gf_network_copy(p->network)
					  : gf_xcalloc(1, sizeof(*n));
	struct gf_fabric f = gf_plan_fabric(p);
	size_t i, k;
	int rc = 0;

	n->ranks = p->ranks + p->servers;
	for (i = 0; i < p->nmessages && rc == 0; i++) {
		const struct gf_message *m = &p->messages[i];

		for (k = 0; k < n->nallreduce; k++)
			if (strcmp(n->allreduce[k].algorithm, m->algorithm) ==
			    0)
				break;
		if (k == n->nallreduce) {
			n->allreduce = gf_xreallocarray(n->allreduce, k + 1,
							sizeof(*n->allreduce));
			memset(&n->allreduce[k], 0, sizeof(*n->allreduce));
			n->allreduce[k].algorithm = gf_xstrdup(m->algorithm);
			n->nallreduce++;
		}
		rc = take_lines(&f, m, &n->allreduce[k], err);
	}
	if (rc < 0)
		gf_network_free(n);
	else
		*out = n;
	return rc;
}

static void scale_lines(struct gf_allreduce_cost *c, double by)
{
	size_t i;

	c->startup_s *= by;
	c->per_byte_s *= by;
	for (i = 0; i < c->nlarger; i++) {
		c->larger[i].startup_s *= by;
		c->larger[i].per_byte_s *= by;
	}
}

static void refine_entry(const struct gf_plan *p, const struct gf_measured *m,
			 const struct gf_predicted_message *predicted,
			 struct gf_allreduce_cost *c, struct gf_text *notes)
{
	double startup = c->startup_s, per_byte = c->per_byte_s;
	size_t used = 0, i;

	for (i = 0; i < p->nmessages; i++)
		used += strcmp(p->messages[i].algorithm, c->algorithm) == 0;
	if (used == 0)
		return;
	if (!fit_alone(p, m, c))
		scale_lines(c, ratio(p, m, predicted, c->algorithm));
	gf_text_addf(notes,
		     "%s: startup %.4g s -> %.4g s, per byte %.4g s -> %.4g "
		     "s\n",
		     c->algorithm, startup, c->startup_s, per_byte,
		     c->per_byte_s);
}

/* The old fits' points say nothing about the new lines. */
static void release_fits(struct gf_network *n)
{
	size_t i;

	for (i = 0; i < n->nallreduce; i++) {
		free(n->allreduce[i].fit.size_bytes);
		free(n->allreduce[i].fit.time_s);
		free(n->allreduce[i].fit.spread_s);
		free(n->allreduce[i].fit.extra);
		memset(&n->allreduce[i].fit, 0, sizeof(n->allreduce[i].fit));
	}
}

/* The model and the network of out->measured. */
static int refine(const struct gf_plan *p, struct gf_refined *out,
		  struct gf_text *notes, struct gf_error *err)
{
	const struct gf_measured *m = &out->measured;
	struct gf_sim_result predicted = {0};
	struct gf_fabric f = gf_plan_fabric(p);
	struct gf_plan now = *p; /* borrows all but the model */
	size_t i;
	int rc;

	out->model = refine_model(p, m);
	out->network = NULL;
	now.model = out->model;
	predicted.messages =
		gf_xcalloc(p->nmessages + 1, sizeof(*predicted.messages));
	rc = gf_predict_plan(&now, &f, &predicted, err);
	if (rc == 0)
		rc = used_network(p, &out->network, err);
	if (rc == 0) {
		gf_text_addf(notes,
			     "compute: forward %.4g s -> %.4g s, backward "
			     "%.4g s -> %.4g s (medians of %zu steps)\n",
			     p->model->forward_s, out->model->forward_s,
			     p->model->backward_s, out->model->backward_s,
			     m->nsteps);
		release_fits(out->network);
		for (i = 0; i < out->network->nallreduce; i++)
			refine_entry(p, m, predicted.messages,
				     &out->network->allreduce[i], notes);
	}
	free(predicted.messages);
	if (rc < 0)
		gf_model_profile_free(out->model);
	return rc;
}

int gf_refine_trace(const struct gf_plan *p, const char *path,
		    struct gf_refined *out, struct gf_text *notes,
		    struct gf_error *err)
{
	char *text = NULL;
	size_t size = 0;
	int rc;

	if (!p || p->rule)
		return gf_error_set(err, -EINVAL,
				    "want the plan that was run, with its "
				    "messages, beside the trace, found %s",
				    p ? "a rule" : "none");
	rc = gf_file_read(path, &text, &size, err);
	if (rc < 0)
		return rc;
	memset(out, 0, sizeof(*out));
	rc = gf_measured_read(text, size, path, p, &out->measured, err);
	if (rc == 0)
		rc = refine(p, out, notes, err);
	free(text);
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
	memset(r, 0, sizeof(*r));
}

const char *const *gf_plan_codecs(const struct gf_plan *p,
				  const char *codecs[GF_CODECS + 1])
{
	size_t n = 0, i, k;

	for (i = 0; i < p->nmessages; i++) {
		for (k = 0; k < n; k++)
			if (strcmp(codecs[k], p->messages[i].codec) == 0)
				break;
		if (k == n && n < GF_CODECS)
			codecs[n++] = p->messages[i].codec;
	}
	codecs[n] = NULL;
	return codecs;
}

void gf_refine_compare(const struct gf_plan *before,
		       const struct gf_measured *m, const struct gf_plan *after,
		       struct gf_text *notes)
{
	struct gf_sim_result old = {0};
	struct gf_fabric f = gf_plan_fabric(after);
	struct gf_plan then = *before; /* the old messages, the new costs */
	size_t kept = 0, i, k;

	then.model = after->model;
	gf_text_addf(notes, "iteration: measured %.4g s", m->iteration_s);
	if (before->predicted)
		gf_text_addf(notes, ", was predicted %.4g s",
			     before->predicted->iteration_s);
	if (gf_predict_plan(&then, &f, &old, NULL) == 0)
		gf_text_addf(notes,
			     "; by what was measured the old plan takes "
			     "%.4g s, the new one %.4g s",
			     old.iteration_s, after->predicted->iteration_s);
	for (i = 0, k = 0; i < after->nmessages; i++) {
		while (k < before->nmessages &&
		       before->messages[k].last < after->messages[i].last)
			k++;
		kept += k < before->nmessages &&
			before->messages[k].last == after->messages[i].last;
	}
	gf_text_addf(notes,
		     "\nmessages: %zu -> %zu, %zu end with the same tensor as "
		     "before; policy %s -> %s, lanes %d -> %d\n",
		     before->nmessages, after->nmessages, kept, before->policy,
		     after->policy, before->lanes, after->lanes);
}
