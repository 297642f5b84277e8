/* SPDX-License-Identifier: BSD-3-Clause */
#include "simulator/gantt.h"

#include <math.h>

#include "base/array.h"
#include "base/heap.h"

const char *const gf_bar_names[] = {
	[GF_BAR_FORWARD] = "forward",
	[GF_BAR_BACKWARD] = "backward",
	[GF_BAR_WAITING] = "waiting",
	[GF_BAR_UPDATE] = "update",
	[GF_BAR_MESSAGE] = "message",
	[GF_BAR_SIMULTANEOUS] = "simultaneous",
	[GF_BAR_REDUCE_SCATTER] = "reduce-scatter",
	[GF_BAR_ALL_GATHER] = "all-gather",
	[GF_BAR_STEPS] = "step",
	[GF_BAR_EXCHANGE] = "exchange",
	NULL,
};

size_t gf_lanes_assign(const struct gf_predicted_message *m, size_t count, size_t *lane)
{
	GF_FREED double *free_at = gf_xcalloc(count + 1, sizeof(*free_at));
	size_t i, k, lanes = 0;

	for (i = 0; i < count; i++) {
		/* ends and starts that meet differ by rounding */
		double start = m[i].start_s * (1 + 1e-12);

		for (k = 0; k < lanes && free_at[k] > start; k++)
			;
		lanes += k == lanes;
		lane[i] = k;
		free_at[k] = m[i].end_s;
	}
	return lanes;
}

static struct gf_bar *add(struct gf_gantt *t, enum gf_bar_kind kind, int step, double start_s,
			  double end_s)
{
	struct gf_bar *bar;

	if (!(end_s > start_s))
		return NULL;
	bar = gf_array_push(&t->bars, &t->nbars, &t->capacity);
	*bar = (struct gf_bar){
		.kind = kind,
		.step = step,
		.start_s = start_s,
		.end_s = end_s,
	};
	return bar;
}

static void add_message(struct gf_gantt *t, const struct gf_sim_input *in, size_t i,
			enum gf_bar_kind kind, struct gf_bar at)
{
	struct gf_bar *bar = add(t, kind, at.step, at.start_s, at.end_s);

	if (!bar)
		return;
	bar->row = at.row;
	bar->message = i;
	bar->first = in->messages[i].first;
	bar->last = in->messages[i].last;
	/* beside the tensors of the messages before it */
	bar->own = i > 0 && bar->first <= in->messages[i - 1].last;
	bar->bytes = in->messages[i].bytes;
}

static enum gf_bar_kind kind_of(const struct gf_sim_message *m)
{
	return m->half == GF_HALF_SPLIT          ? GF_BAR_REDUCE_SCATTER
	       : m->mode == GF_MODE_SIMULTANEOUS ? GF_BAR_SIMULTANEOUS
						 : GF_BAR_MESSAGE;
}

/* Forward stops before what it needs and has not got. */
static void add_forward(struct gf_gantt *t, double end_s, const struct gf_sim_gather *gathers,
			size_t n)
{
	double from_s = 0;

	for (size_t i = 0; i < n; i++) {
		if (gathers[i].end_s <= gathers[i].wait_s)
			continue;
		add(t, GF_BAR_FORWARD, 1, from_s, gathers[i].wait_s);
		add(t, GF_BAR_WAITING, 1, gathers[i].wait_s, gathers[i].end_s);
		from_s = gathers[i].end_s;
	}
	add(t, GF_BAR_FORWARD, 1, from_s, end_s);
}

/* Each stage by itself, and between two of them what it waited for. */
static void add_stages(struct gf_gantt *t, const struct gf_sim_input *in,
		       const struct gf_sim_shard_times *at)
{
	const size_t n = in->nmessages;
	double from_s = 0;

	for (size_t i = 0; i < 2 * n; i++) {
		add(t, GF_BAR_WAITING, 1, from_s, at->begin_s[i]);
		add(t, i < n ? GF_BAR_FORWARD : GF_BAR_BACKWARD, 1, at->begin_s[i], at->done_s[i]);
		from_s = at->done_s[i];
	}
}

static void add_works(struct gf_gantt *t, const struct gf_sim_input *in,
		      const struct gf_sim_shard_times *at)
{
	GF_FREED struct gf_predicted_message *all = gf_xcalloc(in->nworks + 1, sizeof(*all));
	GF_FREED size_t *lane = gf_xcalloc(in->nworks + 1, sizeof(*lane));

	for (size_t i = 0; i < in->nworks; i++) {
		all[i].start_s = at->start_s[i];
		all[i].end_s = at->end_s[i];
	}
	t->nlanes = gf_lanes_assign(all, in->nworks, lane);
	for (size_t i = 0; i < in->nworks; i++)
		add_message(t, in, in->works[i].message,
			    in->works[i].gather ? GF_BAR_ALL_GATHER : GF_BAR_REDUCE_SCATTER,
			    (struct gf_bar){.row = 1 + lane[i],
					    .step = 1,
					    .start_s = all[i].start_s,
					    .end_s = all[i].end_s});
}

void gf_gantt_step(struct gf_gantt *t, const struct gf_sim_input *in, const struct gf_sim_result *r,
		   const struct gf_sim_gather *gathers, size_t ngathers)
{
	size_t n = ngathers + in->nmessages, i;
	GF_FREED size_t *lane = gf_xcalloc(n + 1, sizeof(*lane));
	GF_FREED struct gf_predicted_message *all = gf_xcalloc(n + 1, sizeof(*all));
	double update_s = fmax(r->iteration_s - in->update_s, r->backward_end_s);

	t->steps = 1;
	t->backward_end_s = r->backward_end_s;
	t->step_end_s[0] = r->iteration_s;
	if (in->works) {
		add_stages(t, in, r->shards);
	} else {
		add_forward(t, r->forward_end_s, gathers, ngathers);
		add(t, GF_BAR_BACKWARD, 1, r->forward_end_s, r->backward_end_s);
	}
	add(t, GF_BAR_WAITING, 1, r->backward_end_s, update_s);
	add(t, GF_BAR_UPDATE, 1, update_s, r->iteration_s);
	if (in->works) {
		add_works(t, in, r->shards);
		return;
	}
	for (i = 0; i < ngathers; i++) {
		all[i].start_s = gathers[i].start_s;
		all[i].end_s = gathers[i].end_s;
	}
	for (i = ngathers; i < n; i++)
		all[i] = r->messages[i - ngathers];
	t->nlanes = gf_lanes_assign(all, n, lane);
	for (i = 0; i < n; i++) {
		bool gather = i < ngathers;
		size_t m = gather ? gathers[i].message : i - ngathers;

		add_message(t, in, m, gather ? GF_BAR_ALL_GATHER : kind_of(&in->messages[m]),
			    (struct gf_bar){.row = 1 + lane[i],
					    .step = !gather,
					    .start_s = all[i].start_s,
					    .end_s = all[i].end_s});
	}
}

/* --- stale gradients -------------------------------------------------------
 */

/* Steps before those that are drawn. */
#define FILL_STEPS 64

/* Rank 0 in one of the steps that are drawn. */
static void add_stale_compute(struct gf_gantt *t, const struct gf_pipeline *p, double begun_s)
{
	int step = t->steps;

	add(t, GF_BAR_UPDATE, step, begun_s, p->update_end_s);
	add(t, GF_BAR_FORWARD, step, p->update_end_s, p->forward_end_s);
	add(t, GF_BAR_BACKWARD, step, p->forward_end_s, p->ended_s[0]);
	if (step == 1)
		t->backward_end_s = p->ended_s[0];
}

/* A step's messages, all of which have ended. */
static void collect(const struct gf_pipeline *p, size_t step, struct gf_predicted_message *to)
{
	size_t slot = gf_pipeline_slot(p, step), i;

	for (i = 0; i < p->in->nmessages; i++)
		to[i] = (struct gf_predicted_message){
			.start_s = p->state.start_s[slot + i],
			.end_s = p->state.end_s[slot + i],
		};
}

/* messages: of as many steps, the first of which is called `step`. */
static void add_stale_messages(struct gf_gantt *t, const struct gf_sim_input *in,
			       const struct gf_predicted_message *messages, size_t steps, int step)
{
	size_t n = in->nmessages, i;
	GF_FREED size_t *lane = gf_xcalloc(steps * n + 1, sizeof(*lane));

	gf_lanes_assign(messages, steps * n, lane);
	for (i = 0; i < steps * n; i++) {
		add_message(t, in, i % n, kind_of(&in->messages[i % n]),
			    (struct gf_bar){.row = 1 + lane[i],
					    .step = step + (int)(i / n),
					    .start_s = messages[i].start_s,
					    .end_s = messages[i].end_s});
	}
}

/* Time begins at from_s; nothing is drawn before it or after the last step. */
static void cut(struct gf_gantt *t, double from_s)
{
	double end_s = t->step_end_s[1] - from_s;
	size_t i, n = 0;

	for (i = 0; i < t->nbars; i++) {
		struct gf_bar bar = t->bars[i];

		bar.start_s = fmax(bar.start_s - from_s, 0);
		bar.end_s = fmin(bar.end_s - from_s, end_s);
		if (!(bar.end_s > bar.start_s))
			continue;
		t->bars[n++] = bar;
		if (bar.row > t->nlanes)
			t->nlanes = bar.row;
	}
	t->nbars = n;
	t->backward_end_s -= from_s;
	t->step_end_s[0] -= from_s;
	t->step_end_s[1] = end_s;
}

void gf_gantt_pipeline(struct gf_gantt *t, struct gf_pipeline *p,
		       const double *(*factor)(void *ctx), void *ctx)
{
	/* messages of `late` steps before the drawn ones may still run */
	size_t late = (size_t)p->staleness, n = p->in->nmessages;
	size_t first = FILL_STEPS + late, i;
	struct gf_predicted_message *messages = gf_xcalloc((late + 2) * n + 1, sizeof(*messages));
	double from_s = 0, ended_s = 0;

	for (i = 0; i < first + 2 + late; i++) {
		double begun_s;

		gf_pipeline_step(p, factor(ctx));
		begun_s = fmax(ended_s, p->waited_s);
		if (i == first)
			from_s = begun_s;
		if (i == first + 1 || i == first + 2) {
			add(t, GF_BAR_WAITING, t->steps, ended_s, begun_s);
			t->step_end_s[i - first - 1] = begun_s;
		}
		if (i == first || i == first + 1) {
			t->steps++;
			add_stale_compute(t, p, begun_s);
		}
		ended_s = p->ended_s[0];
		if (i >= first)
			collect(p, i - late, messages + (i - first) * n);
	}
	add_stale_messages(t, p->in, messages, late + 2, 1 - (int)late);
	free(messages);
	cut(t, from_s);
}

/* --- a period ------------------------------------------------------------- */

/* Steps drawn before an exchange and after its end; bars that have room for numbers as in "1000 to
 * 1070". */
#define LEAD_STEPS 2
#define WIDE_BARS  4

static size_t least(size_t a, size_t b)
{
	return a < b ? a : b;
}

static void add_exchange(struct gf_gantt *t, const struct gf_period *p,
			 const struct gf_model_profile *m, const struct gf_bar *at)
{
	struct gf_bar *bar = add(t, GF_BAR_EXCHANGE, 1, at->start_s, at->end_s);
	size_t first, n, i;

	if (!bar)
		return;
	gf_period_messages(p, at->message, &first, &n);
	bar->row = t->nlanes = 1;
	bar->message = at->message;
	bar->first = p->messages[first].first;
	bar->last = p->messages[first + n - 1].last;
	for (i = bar->first; i <= bar->last; i++)
		bar->bytes += (double)gf_tensor_bytes(&m->tensors[i]);
}

/* When steps of work_s have been done that begin at now_s, of which those beside the exchange take
 * `factor` times as long. */
static double stepped_s(double now_s, double work_s, const struct gf_bar *exchange, double factor)
{
	const double beside_s = fmax(0, exchange->end_s - now_s);

	return now_s + (work_s * factor <= beside_s ? work_s * factor
						    : work_s + beside_s - beside_s / factor);
}

static void choose_steps(struct gf_gantt *t, const struct gf_period *p,
			 const struct gf_outer_time *fragments)
{
	const size_t between = p->steps / p->fragments,
		     lead = least(LEAD_STEPS, between - p->delay);
	size_t longest = 0, i;

	for (i = 1; i < p->fragments; i++)
		if (fragments[i].exchange_s > fragments[longest].exchange_s)
			longest = i;
	t->first_step = 1;
	t->last_step = p->steps;
	if (p->steps <= GF_GANTT_STEPS)
		return;
	t->first_step = (longest + 1) * between - lead + 1;
	t->last_step = (longest + 1) * between + p->delay + lead;
}

void gf_gantt_period(struct gf_gantt *t, const struct gf_period *p,
		     const struct gf_model_profile *m, const struct gf_sim_result *inner,
		     const struct gf_outer_time *fragments)
{
	const size_t between = p->steps / p->fragments;
	struct gf_bar exchange = {.message = p->fragments - 1};
	double now_s = 0;
	size_t step, n, per;

	choose_steps(t, p, fragments);
	t->steps = 1;
	n = t->last_step - t->first_step + 1;
	per = n > GF_GANTT_STEPS ? n / WIDE_BARS + 1 : 1;
	if (t->first_step == 1 && p->delay) { /* of the period before */
		exchange.end_s = fragments[exchange.message].exchange_s;
		add_exchange(t, p, m, &exchange);
	}
	for (step = t->first_step; step <= t->last_step; step += n) {
		/* steps since the last exchange began, and to where one is applied or begins */
		const size_t since = (step - 1) % between;
		const size_t until = since < p->delay ? p->delay : between;
		const struct gf_outer_time *o;
		double from_s = now_s;
		struct gf_bar *bar;

		n = least(per, least(until - since, t->last_step - step + 1));
		now_s = stepped_s(
			now_s, (double)n * inner->iteration_s, &exchange,
			gf_sim_beside_factor(m, inner, fragments[exchange.message].slowdown));
		bar = add(t, GF_BAR_STEPS, 1, from_s, now_s);
		if (bar) {
			bar->first = step;
			bar->last = step + n - 1;
		}
		if (since + n == between && (step + n <= t->last_step || !p->delay)) {
			exchange.message = ((step + n - 1) / between - 1) % p->fragments;
			o = &fragments[exchange.message];
			exchange.start_s = now_s;
			exchange.end_s = now_s + o->exchange_s;
			add_exchange(t, p, m, &exchange);
		}
		if (since + n != (p->delay ? p->delay : between))
			continue;
		o = &fragments[exchange.message];
		t->applied_s = from_s = fmax(now_s, exchange.end_s);
		add(t, GF_BAR_WAITING, 1, now_s, from_s);
		now_s = from_s + o->work_s;
		add(t, GF_BAR_UPDATE, 1, from_s, now_s);
	}
	t->step_end_s[0] = now_s;
}

void gf_gantt_free(struct gf_gantt *t)
{
	if (t)
		free(t->bars);
	free(t);
}
