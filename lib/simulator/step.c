/* SPDX-License-Identifier: BSD-3-Clause */
#include "simulator/step.h"

#include <math.h>

#include "base/heap.h"

/* Backward work after which message m may start. */
static double release_work_s(const struct gf_model_profile *model, const struct gf_sim_message *m)
{
	if (m->release == GF_RELEASE_BACKWARD_END)
		return model->backward_s;
	return model->tensors[m->last].ready_s;
}

double gf_sim_issue_s(const struct gf_model_profile *model, const struct gf_sim_message *m)
{
	if (m->release == GF_RELEASE_BACKWARD_END)
		return 0;
	return model->issue_s + (m->last + 1 < model->ntensors ? m->holds_s : 0);
}

double gf_sim_issues_s(const struct gf_sim_input *in)
{
	double sum = 0;

	for (size_t i = 0; i < in->nmessages; i++)
		sum += gf_sim_issue_s(in->model, &in->messages[i]);
	return sum;
}

double gf_sim_held_late_s(const struct gf_sim_input *in)
{
	double sum = 0;

	for (size_t i = 0; i < in->nmessages; i++) {
		const struct gf_sim_message *m = &in->messages[i];

		if (m->release == GF_RELEASE_BACKWARD_END || m->last + 1 == in->model->ntensors)
			sum += m->holds_s;
	}
	return sum;
}

double gf_sim_ready_work_s(const struct gf_model_profile *model, const struct gf_sim_message *m,
			   double issued_s, double issues_s)
{
	return release_work_s(model, m) +
	       (m->release == GF_RELEASE_BACKWARD_END ? issues_s : issued_s);
}

struct gf_sim_start gf_sim_start_of(const struct gf_model_profile *model,
				    const struct gf_sim_message *m)
{
	const double line_startup_s = m->startup_s - m->gather_startup_s;
	const double line_drain_s = (m->per_byte_s - m->gather_per_byte_s) * m->bytes;
	const double load_s = fmin(m->load_per_byte_s * m->bytes, line_startup_s + line_drain_s);
	const double carried_s = fmax(load_s - line_drain_s, 0); /* in the startup */

	return (struct gf_sim_start){
		.mode = m->mode,
		.work_s = release_work_s(model, m),
		.startup_s = line_startup_s - carried_s,
		.drain_s = line_drain_s + carried_s,
		.size_bytes = (size_t)fmin(m->bytes, 0x1p62),
		.contention = m->contention,
		.mutual = m->mutual,
		.issue_s = gf_sim_issue_s(model, m),
	};
}

double gf_sim_need_of_s(const struct gf_model_profile *model, size_t tensor)
{
	const struct gf_tensor *t = &model->tensors[tensor];

	if (!isnan(t->need_s))
		return t->need_s;
	if (model->backward_s <= 0)
		return 0;
	return gf_model_forward_s(model) * (1 - t->ready_s / model->backward_s);
}

double gf_sim_need_s(const struct gf_model_profile *model, const struct gf_sim_message *m)
{
	double need = INFINITY;

	for (size_t i = m->first; i <= m->last; i++)
		need = fmin(need, gf_sim_need_of_s(model, i));
	return need;
}

size_t gf_sim_gathers(const struct gf_sim_input *in, struct gf_sim_gather *out)
{
	size_t n = 0, i;

	for (i = in->nmessages; i-- > 0;) {
		const struct gf_sim_message *m = &in->messages[i];

		if (m->half != GF_HALF_SPLIT)
			continue;
		out[n++] = (struct gf_sim_gather){
			.message = i,
			.need_s = gf_sim_need_s(in->model, m),
			.startup_s = m->gather_startup_s,
			.drain_s = m->gather_per_byte_s * m->bytes,
		};
	}
	return n;
}

double gf_sim_forward_end_s(const struct gf_sim_input *in, double factor,
			    struct gf_sim_gather *gathers, size_t n)
{
	double now_s = 0, late_s = 0, need_s = INFINITY;

	/* where forward stops that lacks this one and those after it */
	for (size_t i = n; i-- > 0;)
		gathers[i].wait_s = need_s = fmin(need_s, gathers[i].need_s);
	for (size_t i = 0; i < n; i++) {
		struct gf_sim_gather *g = &gathers[i];
		const struct gf_beside_backward *mutual = in->messages[g->message].mutual;
		double slow = gf_sim_slowdown(mutual, fmax(in->model->overlap_slowdown, 1), 1);
		double stops_s = factor * g->wait_s;
		/* forward has done now_s - late_s of its work */
		double left_s = fmax(stops_s + late_s - now_s, 0) * slow;
		double takes_s = gf_sim_beside_s(mutual, g->startup_s, g->drain_s, left_s);

		g->start_s = now_s;
		g->end_s = now_s + takes_s;
		g->wait_s = now_s + fmin(left_s, takes_s);
		now_s = g->end_s;
		late_s = left_s < takes_s ? fmax(late_s, now_s - stops_s)
					  : late_s + (1 - 1 / slow) * takes_s;
	}
	return factor * in->model->forward_s + late_s;
}

static double forward_end_s(const struct gf_sim_input *in)
{
	GF_FREED struct gf_sim_gather *gathers = gf_xcalloc(in->nmessages + 1, sizeof(*gathers));
	size_t n = gf_sim_gathers(in, gathers);

	return gf_sim_forward_end_s(in, 1, gathers, n);
}

/*
 * The clock of backward against the intervals in which messages were active. Starts do not decrease
 * along the plan, so one walk answers non-decreasing questions.
 */
struct work_clock {
	const struct gf_sim_input *in;
	const struct gf_predicted_message *messages;
	size_t next;             /* not yet started at now_s */
	size_t *active, nactive; /* at now_s */
	double now_s, done_s, otherwise;
};

/* The next moment at which a message starts or ends. */
static double next_change_s(const struct work_clock *c)
{
	double at_s = c->next < c->in->nmessages ? c->messages[c->next].start_s : INFINITY;

	for (size_t i = 0; i < c->nactive; i++)
		at_s = fmin(at_s, c->messages[c->active[i]].end_s);
	return fmax(at_s, c->now_s);
}

static void change(struct work_clock *c)
{
	size_t i, n = 0;

	for (i = 0; i < c->nactive; i++)
		if (c->messages[c->active[i]].end_s > c->now_s)
			c->active[n++] = c->active[i];
	c->nactive = n;
	for (; c->next < c->in->nmessages; c->next++) {
		if (c->messages[c->next].start_s > c->now_s)
			break;
		if (c->messages[c->next].end_s > c->now_s)
			c->active[c->nactive++] = c->next;
	}
}

static double slowdown(const struct work_clock *c)
{
	double most = 1;

	for (size_t i = 0; i < c->nactive; i++)
		most = fmax(most, gf_sim_slowdown(c->in->messages[c->active[i]].mutual,
						  c->otherwise, (int)c->nactive));
	return most;
}

/* When backward has done `work_s` of its work. */
static double work_done_at(struct work_clock *c, double work_s)
{
	for (;;) {
		double slow, at_s;

		change(c);
		slow = slowdown(c);
		at_s = next_change_s(c);
		if (isinf(at_s) || work_s <= c->done_s + (at_s - c->now_s) / slow)
			return c->now_s + fmax(work_s - c->done_s, 0) * slow;
		c->done_s += (at_s - c->now_s) / slow;
		c->now_s = at_s;
	}
}

/* Its `active` is to be freed. */
static struct work_clock begin_clock(const struct gf_sim_input *in,
				     const struct gf_predicted_message *messages, double now_s)
{
	return (struct work_clock){
		.in = in,
		.messages = messages,
		.active = gf_xcalloc(in->nmessages + 1, sizeof(size_t)),
		.now_s = now_s,
		.otherwise = fmax(in->model->overlap_slowdown, 1),
	};
}

void gf_sim_work_done(const struct gf_sim_input *in, const struct gf_predicted_message *messages,
		      double start_s, const double *at_s, size_t n, double *work_s)
{
	struct work_clock c = begin_clock(in, messages, start_s);

	for (size_t i = 0; i < n; i++) {
		while (c.now_s < at_s[i]) {
			double to_s, slow;

			change(&c);
			slow = slowdown(&c);
			to_s = fmin(next_change_s(&c), at_s[i]);
			c.done_s += (to_s - c.now_s) / slow;
			c.now_s = to_s;
		}
		work_s[i] = c.done_s;
	}
	free(c.active);
}

bool gf_sim_slows(const struct gf_sim_input *in)
{
	bool slow = in->model->overlap_slowdown > 1;

	for (size_t i = 0; i < in->nmessages; i++)
		slow |= in->messages[i].mutual != NULL;
	return slow;
}

/* Fills ready_s and the end of backward from the starts and ends. */
static void find_ready_times(const struct gf_sim_input *in, double factor,
			     struct gf_sim_result *out)
{
	const struct gf_model_profile *model = in->model;
	struct work_clock clock = begin_clock(in, out->messages, out->forward_end_s);
	double backward_s = factor * model->backward_s, issued_s = 0;
	bool slow = gf_sim_slows(in);

	for (size_t i = 0; i < in->nmessages; i++) {
		const struct gf_sim_message *m = &in->messages[i];
		double work = factor * release_work_s(model, m) + issued_s;

		issued_s += factor * gf_sim_issue_s(model, m);
		if (m->release == GF_RELEASE_BACKWARD_END)
			continue;
		/* without slowdown this is exact, the walk is not */
		out->messages[i].ready_s =
			slow ? work_done_at(&clock, work) : out->forward_end_s + work;
	}
	backward_s += issued_s;
	out->backward_end_s =
		slow ? work_done_at(&clock, backward_s) : out->forward_end_s + backward_s;
	for (size_t i = 0; i < in->nmessages; i++)
		if (in->messages[i].release == GF_RELEASE_BACKWARD_END)
			out->messages[i].ready_s = out->backward_end_s;
	free(clock.active);
}

void gf_sim_gradients(const struct gf_sim_input *in, const struct gf_sim_result *out,
		      double *gradient_s)
{
	const struct gf_model_profile *model = in->model;
	struct work_clock clock = begin_clock(in, out->messages, out->forward_end_s);
	double issued_s = 0;
	size_t i, m = 0;

	for (i = 0; i < model->ntensors; i++) {
		for (; m < in->nmessages && in->messages[m].last < i; m++)
			issued_s += gf_sim_issue_s(model, &in->messages[m]);
		gradient_s[i] = work_done_at(&clock, model->tensors[i].ready_s + issued_s);
	}
	free(clock.active);
}

void gf_sim_conclude(const struct gf_sim_input *in, double factor, struct gf_sim_result *out)
{
	const struct gf_model_profile *model = in->model;
	double last_s = 0;

	for (size_t i = 0; i < in->nmessages; i++)
		last_s = fmax(last_s, out->messages[i].end_s);
	find_ready_times(in, factor, out);
	out->iteration_s = fmax(last_s, out->backward_end_s) + in->update_s;
	out->compute_s = model->forward_s + model->backward_s + in->update_s;
	out->exposed_comm_s = out->iteration_s - out->compute_s;
}

void gf_sim_step(const struct gf_sim_input *in, struct gf_sim_result *out)
{
	const struct gf_model_profile *model = in->model;
	size_t lanes = in->lanes < 1 ? 1 : (size_t)in->lanes;
	struct gf_sim_state state = {0};
	GF_FREED double *end_s = gf_xcalloc(in->nmessages + 1, sizeof(*end_s));

	if (in->works) {
		gf_sim_shard_step(in, out);
		return;
	}
	if (lanes > in->nmessages)
		lanes = in->nmessages;
	out->forward_end_s = forward_end_s(in);
	state.now_s = state.backward_start_s = out->forward_end_s;
	state.backward_s = model->backward_s;
	state.unissued_s = gf_sim_issues_s(in);
	state.slowdown = fmax(model->overlap_slowdown, 1);
	state.lanes = (int)lanes;
	state.flights = gf_xcalloc(lanes + 1, sizeof(*state.flights));
	state.end_s = end_s;
	for (size_t i = 0; i < in->nmessages; i++) {
		struct gf_sim_start start = gf_sim_start_of(model, &in->messages[i]);

		start.message = i;
		/* the state's lag has what was issued so far */
		start.work_s = gf_sim_ready_work_s(model, &in->messages[i], 0, state.unissued_s);
		gf_sim_start(&state, &start);
		out->messages[i].start_s = state.now_s;
	}
	gf_sim_finish(&state);
	for (size_t i = 0; i < in->nmessages; i++)
		out->messages[i].end_s = end_s[i];
	gf_sim_conclude(in, 1, out);
	free(state.flights);
}
