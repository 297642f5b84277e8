/* SPDX-License-Identifier: BSD-3-Clause */
#include "planner/workbench.h"

#include <assert.h>
#include <math.h>
#include <string.h>

#include "base/array.h"
#include "base/heap.h"

static void find_slowdown(struct gf_workbench *w)
{
	w->least_slowdown = INFINITY;
	w->mutual = w->in->model->issue_s > 0 || w->slowdown > 1;
	for (size_t i = 0; i < w->menu.noptions; i++) {
		const struct gf_beside_backward *b = w->menu.options[i].mutual;
		double least = w->slowdown;

		for (size_t k = 0; b && k < b->ncompute_slowdown; k++)
			least = fmin(k ? least : INFINITY, b->compute_slowdown[k]);
		w->least_slowdown = fmin(w->least_slowdown, least);
		w->mutual |= b != NULL;
	}
}

int gf_workbench_init(struct gf_workbench *w, const struct gf_problem *in, struct gf_error *err)
{
	const struct gf_model_profile *model = in->model;
	double keep = in->keep > 0 ? in->keep : 1;
	size_t n = model->ntensors, i;
	int rc;

	memset(w, 0, sizeof(*w));
	if (n == 0)
		return gf_error_set(err, -EINVAL, "want at least one tensor, found none");
	rc = gf_menu_init(&w->menu, in, err);
	if (rc < 0)
		return rc;
	w->in = in;
	w->ntensors = n;
	w->ready_s = gf_xcalloc(n, sizeof(*w->ready_s));
	w->prefix_bytes = gf_xcalloc(n + 1, sizeof(*w->prefix_bytes));
	w->run_last = gf_xcalloc(n, sizeof(*w->run_last));
	for (i = 0; i < n; i++) {
		w->ready_s[i] = model->forward_s + (in->release == GF_RELEASE_BACKWARD_END
							    ? model->backward_s
							    : model->tensors[i].ready_s);
		w->prefix_bytes[i + 1] =
			w->prefix_bytes[i] + keep * (double)gf_tensor_bytes(&model->tensors[i]);
	}
	for (i = n; i-- > 0;)
		w->run_last[i] = i + 1 < n && model->tensors[i].dtype == model->tensors[i + 1].dtype
					 ? w->run_last[i + 1]
					 : i;
	w->backward_end_s = model->forward_s + model->backward_s;
	w->slowdown = fmax(model->overlap_slowdown, 1);
	find_slowdown(w);
	return 0;
}

void gf_workbench_release(struct gf_workbench *w)
{
	gf_menu_release(&w->menu);
	free(w->ready_s);
	free(w->prefix_bytes);
	free(w->run_last);
	memset(w, 0, sizeof(*w));
}

size_t *gf_workbench_part(const struct gf_workbench *w, uint32_t ways, struct gf_workbench *part)
{
	size_t *whole;

	*part = *w; /* shares the arrays */
	whole = gf_menu_part(&w->menu, ways, &part->menu);
	find_slowdown(part);
	return whole;
}

size_t gf_workbench_lazy_cut(const struct gf_workbench *w, size_t first, double theta)
{
	const size_t most = w->run_last[first];
	size_t low = first, high = first, stride = 1;

	/* of thousands, a message has a few */
	while (high < most && gf_workbench_bytes(w, first, high) <= theta) {
		low = high + 1;
		high = most - high > stride ? high + stride : most;
		stride *= 2;
	}
	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (gf_workbench_bytes(w, first, middle) > theta)
			high = middle;
		else
			low = middle + 1;
	}
	return low;
}

static double wire_bytes(const struct gf_option *o, double bytes)
{
	return o->wire_ratio * bytes;
}

double gf_workbench_gamma(const struct gf_workbench *w, size_t option, double bytes, int n)
{
	const struct gf_option *o = &w->menu.options[option];

	if (n <= 1)
		return 1;
	if (!o->contention)
		return n;
	return gf_contention_gamma(o->contention, (size_t)fmin(wire_bytes(o, bytes), 0x1p62), n);
}

struct gf_workbench_at gf_workbench_after(const struct gf_workbench *w,
					  const struct gf_workbench_next *m,
					  struct gf_workbench_at at)
{
	const struct gf_option *o = &w->menu.options[m->option];
	const struct gf_line line = gf_option_scatter(o);
	double slowdown = gf_sim_slowdown(o->mutual, w->slowdown, 1);
	double takes_s, left_s;

	at.end_s = fmax(at.end_s, m->ready_s + at.lag_s);
	if (w->in->release != GF_RELEASE_BACKWARD_END)
		at.lag_s += w->in->model->issue_s;
	/* backward runs on beside the message for that long, at the most */
	left_s = fmax(w->backward_end_s + at.lag_s - at.end_s, 0) * slowdown;
	takes_s = gf_sim_beside_s(o->mutual, line.startup_s, line.per_byte_s * m->bytes, left_s);
	at.end_s += takes_s;
	at.lag_s += (1 - 1 / slowdown) * takes_s;
	return at;
}

void gf_draft_release(struct gf_draft *d)
{
	free(d->sends);
	memset(d, 0, sizeof(*d));
}

struct gf_send *gf_draft_send(struct gf_draft *d, const struct gf_workbench *w, size_t first,
			      size_t last)
{
	struct gf_send *s = gf_array_push(&d->sends, &d->nsends, &d->capacity);

	s->first = first;
	s->last = last;
	s->mode = GF_MODE_NORMAL;
	s->release = w->in->release;
	s->option = gf_menu_pick(&w->menu, gf_workbench_bytes(w, first, last));
	return s;
}

void gf_draft_cut(struct gf_draft *d, const struct gf_workbench *w, double theta)
{
	size_t first = 0, last;

	for (; first < w->ntensors; first = last + 1) {
		last = gf_workbench_lazy_cut(w, first, theta);
		gf_draft_send(d, w, first, last);
	}
}

void gf_draft_reverse(struct gf_draft *d)
{
	for (size_t i = 0; i < d->nsends / 2; i++) {
		struct gf_send s = d->sends[i];

		d->sends[i] = d->sends[d->nsends - 1 - i];
		d->sends[d->nsends - 1 - i] = s;
	}
}

/* More lanes than contention was measured for are a guess. */
static int lanes_measured(const struct gf_workbench *w)
{
	size_t i, e, most = 2;

	for (i = 0; i < w->menu.noptions; i++) {
		const struct gf_contention *c = w->menu.options[i].contention;

		for (e = 0; c && e < c->nentries; e++)
			if (c->entries[e].ngamma > most)
				most = c->entries[e].ngamma;
	}
	return most < GF_LANES_MOST ? (int)most : GF_LANES_MOST;
}

void gf_draft_make(struct gf_draft *d, const struct gf_workbench *w, const struct gf_policy *policy,
		   int lanes)
{
	struct gf_workbench bounded = *w; /* shares the arrays */

	bounded.lanes = lanes > 0 ? lanes : policy->lanes > 0 ? policy->lanes : lanes_measured(w);
	if ((size_t)bounded.lanes > w->ntensors)
		bounded.lanes = (int)w->ntensors; /* more have no use */
	memset(d, 0, sizeof(*d));
	d->lanes = 1;
	policy->draft(&bounded, d);
	if (!d->policy)
		d->policy = policy;
	d->lanes_allowed = bounded.lanes;
	gf_workbench_predict(w, d);
}

struct gf_sim_message gf_workbench_message(const struct gf_workbench *w, const struct gf_send *s)
{
	const struct gf_option *o = &w->menu.options[s->option];
	double bytes = gf_workbench_bytes(w, s->first, s->last);

	assert((s->half == GF_HALF_SPLIT) == w->in->halves);
	return (struct gf_sim_message){
		.first = s->first,
		.last = s->last,
		.mode = s->mode,
		.release = s->release,
		.half = s->half,
		.startup_s = o->line.startup_s,
		.per_byte_s = o->line.per_byte_s / o->wire_ratio,
		.gather_startup_s = o->gather.startup_s,
		.gather_per_byte_s = o->gather.per_byte_s / o->wire_ratio,
		.load_per_byte_s = o->load_per_byte_s / o->wire_ratio,
		.bytes = wire_bytes(o, bytes),
		.contention = o->contention,
		.mutual = o->mutual,
	};
}

double gf_workbench_predict(const struct gf_workbench *w, struct gf_draft *d)
{
	GF_FREED struct gf_predicted_message *own = gf_xcalloc(d->nsends + 1, sizeof(*own));
	struct gf_sim_result result = {.messages = own};
	GF_FREED struct gf_sim_message *messages = gf_xcalloc(d->nsends + 1, sizeof(*messages));
	struct gf_sim_input in = {w->in->model, messages, d->nsends, d->lanes,
				  gf_problem_update_s(w->in)};

	for (size_t i = 0; i < d->nsends; i++)
		messages[i] = gf_workbench_message(w, &d->sends[i]);
	gf_sim_step(&in, &result);
	d->iteration_s = result.iteration_s;
	return result.backward_end_s;
}

/* --- message by message -------------------------------------------------- */

struct gf_sim_state gf_workbench_begin(const struct gf_workbench *w, int lanes,
				       struct gf_sim_flight *flights)
{
	return (struct gf_sim_state){
		.now_s = w->in->model->forward_s,
		.backward_start_s = w->in->model->forward_s,
		.backward_s = w->in->model->backward_s,
		.slowdown = w->slowdown,
		.lanes = lanes,
		.flights = flights,
	};
}

void gf_workbench_copy(struct gf_sim_state *to, const struct gf_sim_state *from,
		       struct gf_sim_flight *flights)
{
	*to = *from;
	to->flights = flights;
	memcpy(flights, from->flights, (size_t)from->nflights * sizeof(*flights));
}

bool gf_workbench_send(const struct gf_workbench *w, struct gf_sim_state *s,
		       const struct gf_send *send)
{
	struct gf_sim_message m = gf_workbench_message(w, send);
	struct gf_sim_start start = gf_sim_start_of(w->in->model, &m);

	gf_sim_start(s, &start);
	return s->nflights > 1;
}

double gf_workbench_end_s(const struct gf_workbench *w, struct gf_sim_state *s)
{
	gf_sim_finish(s);
	return fmax(s->now_s, w->backward_end_s + s->lag_s) + gf_problem_update_s(w->in);
}
