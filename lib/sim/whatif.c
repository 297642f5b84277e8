/* SPDX-License-Identifier: BSD-3-Clause */
#include "sim/whatif.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/heap.h"
#include "sim/jitter.h"
#include "sim/pipeline.h"
#include "sim/slow_link.h"
#include "sim/variant.h"

/* More steps in flight than a picture of two steps can show. */
#define DRAWN_STALENESS 8

double gf_what_if_slowest(const struct gf_what_if *w, int ranks)
{
	double most = (size_t)ranks > w->nslow ? 1 : 0;
	size_t i;

	for (i = 0; i < w->nslow; i++)
		most = fmax(most, w->slow[i].factor);
	return most;
}

/* Prices the variant's messages on its fabric. */
static int price(struct gf_variant *v, const struct gf_what_if *w,
		 struct gf_error *err)
{
	int rc = gf_traffic_init(&v->traffic, &v->plan, &v->fabric, err);

	if (rc < 0 || w->nslow_links == 0)
		return rc;
	return gf_slow_links_charge(&v->traffic, &v->plan, w, err);
}

static const double *no_factors(void *ctx)
{
	return ctx;
}

static void draw_step(struct gf_variant *v, double factor, struct gf_gantt *t)
{
	struct gf_sim_input in = {v->plan.model, v->traffic.messages,
				  v->traffic.nmessages, v->plan.lanes};
	struct gf_sim_result r = {0};
	struct gf_sim_gather *gathers =
		gf_xcalloc(in.nmessages + 1, sizeof(*gathers));
	size_t n;

	r.messages = gf_xcalloc(in.nmessages + 1, sizeof(*r.messages));
	gf_variant_scale(v, factor);
	gf_sim_step(&in, &r);
	n = gf_sim_gathers(&in, gathers);
	gf_gantt_step(t, &in, &r, gathers, n);
	free(r.messages);
	free(gathers);
}

static void draw_pipeline(struct gf_variant *v, const struct gf_what_if *w,
			  struct gf_gantt *t)
{
	struct gf_sim_input in = {v->plan.model, v->traffic.messages,
				  v->traffic.nmessages, v->plan.lanes};
	int staleness = (int)fmin(v->plan.staleness, DRAWN_STALENESS);
	double alike = 1;
	struct gf_pipeline p;
	struct gf_factors f;

	gf_variant_scale(
		v, w->jitter > 0 ? 1 : gf_what_if_slowest(w, v->plan.ranks));
	gf_pipeline_init(&p, &in, staleness, w->jitter > 0 ? v->plan.ranks : 1);
	gf_factors_init(&f, w, v->plan.ranks);
	if (w->jitter > 0)
		gf_gantt_pipeline(t, &p, gf_factors_next, &f);
	else
		gf_gantt_pipeline(t, &p, no_factors, &alike);
	gf_factors_release(&f);
	gf_pipeline_release(&p);
}

static void draw_timeline(struct gf_variant *v, const struct gf_what_if *w,
			  double factor, struct gf_outcome *o)
{
	o->timeline = gf_xcalloc(1, sizeof(*o->timeline));
	if (v->plan.staleness > 1)
		draw_pipeline(v, w, o->timeline);
	else
		draw_step(v, factor, o->timeline);
}

static int check(const struct gf_plan *p, const struct gf_what_if *w,
		 struct gf_error *err)
{
	int ranks = w->ranks ? w->ranks : p->ranks;
	size_t i, k;

	for (i = 0; i < w->nslow; i++)
		if (w->slow[i].rank < 0 || w->slow[i].rank >= ranks)
			return gf_error_set(
				err, -EINVAL,
				"want a slow rank from 0 to %d, got "
				"%d",
				ranks - 1, w->slow[i].rank);
	for (i = 0; i < w->nslow_links; i++)
		if (w->slow_links[i].rank < 0 ||
		    w->slow_links[i].rank >= ranks + p->servers)
			return gf_error_set(
				err, -EINVAL,
				"want a slow link of a rank from 0 to %d, got "
				"%d",
				ranks + p->servers - 1, w->slow_links[i].rank);
	for (i = 0; i < w->nslow; i++)
		for (k = 0; k < i; k++)
			if (w->slow[i].rank == w->slow[k].rank)
				return gf_error_set(err, -EINVAL,
						    "want a slow rank once, "
						    "got %d twice",
						    w->slow[i].rank);
	return 0;
}

/* Derives the other figures from the iteration and the messages. */
static void derive(struct gf_outcome *o, const struct gf_plan *p,
		   const struct gf_sim_result *r)
{
	double first = INFINITY, last = 0;
	size_t i;

	for (i = 0; i < p->nmessages; i++) {
		first = fmin(first, o->messages[i].start_s);
		last = fmax(last, o->messages[i].end_s);
	}
	o->communication_s = fmax(last - first, 0);
	o->compute_s =
		p->model->forward_s + p->model->backward_s + p->model->update_s;
	o->exposed_comm_s = r->iteration_s - o->compute_s;
	o->forward_end_s = r->forward_end_s;
	o->backward_end_s = r->backward_end_s;
	o->efficiency = o->iteration_s > 0 ? o->compute_s / o->iteration_s : 1;
	o->speedup = o->efficiency * o->ranks;
	o->samples_per_s = (double)p->model->batch_per_rank *
			   (double)gf_model_micro_batches(p->model) * o->ranks /
			   o->iteration_s;
}

void gf_outcome_finish(struct gf_outcome *o, const struct gf_plan *p,
		       const struct gf_sim_result *r)
{
	o->iteration_s = o->least_s = o->p50_s = o->p90_s = o->p99_s =
		o->most_s = o->mean_s = r->iteration_s;
	derive(o, p, r);
}

/* Times a pipeline's beginning and end; leaves the variant as it was. */
static int run_edges(struct gf_variant *v, const struct gf_what_if *w,
		     struct gf_outcome *o, struct gf_error *err)
{
	struct gf_sim_result r = {0};
	int staleness = v->plan.staleness, rc;

	v->plan.staleness = 1;
	rc = gf_variant_run(v, gf_what_if_slowest(w, o->ranks), &r, err);
	v->plan.staleness = staleness;
	o->synchronous_s = r.iteration_s;
	o->slowest_s = v->plan.model->forward_s + v->plan.model->backward_s +
		       v->plan.model->update_s;
	return rc;
}

int gf_what_if(const struct gf_plan *p, const struct gf_what_if *w,
	       struct gf_outcome *out, struct gf_error *err)
{
	struct gf_outcome o = {.ranks = w->ranks ? w->ranks : p->ranks,
			       .bandwidth_bytes_per_s =
				       w->bandwidth_bytes_per_s};
	struct gf_sim_result r = {0};
	struct gf_variant v;
	double median = 1;
	int rc = check(p, w, err);

	if (rc < 0)
		return rc;
	o.messages = r.messages =
		gf_xcalloc(p->nmessages + 1, sizeof(*o.messages));
	rc = gf_variant_init(&v, p, w, err);
	if (rc == 0)
		rc = price(&v, w, err);
	if (rc == 0)
		rc = gf_variant_run(&v, gf_what_if_slowest(w, o.ranks), &r,
				    err);
	if (rc == 0)
		rc = run_edges(&v, w, &o, err);
	if (rc == 0)
		rc = gf_jitter_run(&v, w, &o, &median, err);
	if (rc == 0 && w->timeline)
		draw_timeline(&v, w, median, &o);
	gf_variant_release(&v);
	if (rc < 0) {
		free(o.messages);
		return rc;
	}
	o.iteration_s = !(w->jitter > 0)   ? r.iteration_s
			: p->staleness > 1 ? o.mean_s
					   : o.p50_s;
	derive(&o, p, &r);
	*out = o;
	return 0;
}

void gf_outcome_release(struct gf_outcome *out)
{
	free(out->messages);
	gf_gantt_free(out->timeline);
	memset(out, 0, sizeof(*out));
}

double gf_outcome_total_s(const struct gf_plan *p, const struct gf_outcome *out,
			  double iterations)
{
	double warmup = fmin(iterations, (double)p->pipeline_warmup_steps);
	double stale = iterations - warmup;
	double total = warmup * out->synchronous_s;

	if (p->staleness <= 1)
		return iterations * out->iteration_s;
	if (stale > 0)
		total += out->synchronous_s + (stale - 1) * out->iteration_s;
	return total;
}
