/* SPDX-License-Identifier: BSD-3-Clause */

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/heap.h"
#include "cli/human.h"
#include "planner/summary.h"
#include "planner/workbench.h"
#include "simulator/period_time.h"
#include "simulator/predict.h"
#include "simulator/sum_error.h"
#include "simulator/whatif/whatif.h"

static const char *const origins[] = {
	[GF_PRICE_MEASURED] = "measured",
	[GF_PRICE_RESCALED] = "measured on other ranks, carried over",
	[GF_PRICE_DERIVED] = "derived from the levels",
};

/* Sets, and what of the startup is choosing, and encoding and decoding. */
static void add_sets(const struct gf_plan *p, const struct gf_fabric *f,
		     const struct gf_message *as, const struct gf_sim_message *m,
		     struct gf_text *out)
{
	const char *name = gf_selection_title(&p->selection);
	const double choosing_s = gf_selecting_s(f, p, m->first, m->last);
	struct gf_wire wires[GF_WIRES_MOST];
	double codings_s;

	gf_text_addf(out, "sets of %s on the links' figures", name);
	if (choosing_s > 0)
		gf_text_addf(out, " (of it %s: %s)", name, gf_human_time(choosing_s).text);
	gf_plan_wires(p, m->first, m->last, wires);
	codings_s = gf_price_codings_s(f, &wires[0], as->codec);
	if (codings_s > 0)
		gf_text_addf(out, " (of it %s: %s)", as->codec, gf_human_time(codings_s).text);
}

/* What the message would take alone: the line that was found, and its parts. */
static void add_line(const struct gf_plan *p, const struct gf_fabric *f,
		     const struct gf_message *as, const struct gf_sim_message *m,
		     struct gf_text *out)
{
	const struct gf_priced priced = gf_traffic_priced(p, as, m);
	const bool reduces = gf_selection_has(&p->selection, GF_SELECT_ADDS);
	struct gf_price price = {0};

	gf_text_addf(out, "%s startup + %s x %.3g ns/B = %s, ", gf_human_time(m->startup_s).text,
		     gf_human_size(m->bytes).text, m->per_byte_s * 1e9,
		     gf_human_time(m->startup_s + m->per_byte_s * m->bytes).text);
	if (!reduces || gf_price_message(f, &priced, &price, NULL) < 0) {
		add_sets(p, f, as, m, out);
		return;
	}
	if (priced.split)
		gf_text_addf(out, "of it the all-gather %s + %.3g ns/B%s, ",
			     gf_human_time(m->gather_startup_s).text, m->gather_per_byte_s * 1e9,
			     price.halved ? " (assumed: half of the all-reduce)" : "");
	gf_text_addf(out, "%s", origins[price.origin]);
	if (price.origin == GF_PRICE_DERIVED && gf_stages_call(as->stages, as->nstages))
		gf_text_addf(out, ", a library's call as a ring");
	if (price.codec_s_per_byte > 0)
		gf_text_addf(out, " (of it %s: %.3g ns/B on each of %.3g hops)", as->codec,
			     price.codec_s_per_byte * 1e9, price.hops);
}

/* What became of it in the step: gamma, backward, the wait for a lane. */
static void add_times(const struct gf_predicted_message *t, double alone_s, struct gf_text *out)
{
	double took_s = t->end_s - t->start_s, wait_s = t->start_s - t->ready_s;

	if (alone_s > 0 && took_s > alone_s * 1.005)
		gf_text_addf(out,
			     "; took %s, %.2f times as long, beside other messages or backward",
			     gf_human_time(took_s).text, took_s / alone_s);
	if (wait_s > 1e-9)
		gf_text_addf(out, "; waited %s for a lane", gf_human_time(wait_s).text);
}

/* The lines of the messages, on that fabric; of those that go as one, a single line. */
static int explain_prices(const struct gf_plan *p, const struct gf_fabric *f, struct gf_text *out,
			  struct gf_error *err)
{
	GF_RELEASED(gf_traffic_release) struct gf_traffic traffic = {0};
	size_t i, first;
	int rc = gf_traffic_init(&traffic, p, f, err);

	for (i = first = 0; rc == 0 && i < p->nmessages; first = ++i) {
		size_t carrier = traffic.carrier[i];
		const struct gf_sim_message *m = &traffic.messages[carrier];
		const struct gf_message *as = gf_traffic_like(p, traffic.plan_message[carrier]);

		while (i + 1 < p->nmessages && traffic.carrier[i + 1] == carrier)
			i++;
		gf_text_addf(out, "message%s %zu", i > first ? "s" : "", first);
		if (i > first)
			gf_text_addf(out, " to %zu", i);
		if (carrier != i)
			gf_text_addf(out, ", packed as %zu in the chart", carrier);
		if (as->nstages) {
			gf_text_addf(out, " by ");
			gf_stages_text(out, " ", as->stages, as->nstages);
		}
		gf_text_addf(out, ": ");
		add_line(p, f, as, m, out);
		add_times(&p->predicted->messages[i],
			  m->startup_s - m->gather_startup_s +
				  (m->per_byte_s - m->gather_per_byte_s) * m->bytes,
			  out);
		gf_text_addf(out, "\n");
	}
	return rc;
}

/*
 * One iteration as text:
 *
 *	compute  fffbbbbbbbbbbbbbb..............
 *	lane 1      [0======][2==============]
 *	lane 2         [1==========][3=======]
 *	         0                          43 s
 *
 * f forward, b backward, u update, . waiting; a bar begins with its message's number where there is
 * room. All-gathers are drawn with '-'.
 */

/* Columns of a bar: where no window is given, and at the least and the most. LABEL stands left of
 * them. */
enum { USUAL = 64, LEAST = 16, MOST = 200, LABEL = 9 };

/* The scale of a chart. */
struct scale {
	double end_s;
	size_t columns;
};

static const char marks[] = {
	[GF_BAR_FORWARD] = 'f',        [GF_BAR_BACKWARD] = 'b',   [GF_BAR_WAITING] = '.',
	[GF_BAR_UPDATE] = 'u',         [GF_BAR_MESSAGE] = '=',    [GF_BAR_SIMULTANEOUS] = '=',
	[GF_BAR_REDUCE_SCATTER] = '=', [GF_BAR_ALL_GATHER] = '-',
};

static size_t column(const struct scale *s, double at_s)
{
	double most = (double)s->columns;
	double x = s->end_s > 0 ? at_s / s->end_s * most : 0;

	return x < 0 ? 0 : x > most ? s->columns : (size_t)(x + 0.5);
}

static void draw(const struct gf_bar *bar, const struct scale *s, char *row)
{
	size_t from = column(s, bar->start_s);
	size_t to = column(s, bar->end_s), n;
	char label[32];

	if (bar->row == 0) {
		memset(row + from, marks[bar->kind], to - from);
		return;
	}
	if (from == s->columns)
		from--;
	if (to <= from)
		to = from + 1;
	memset(row + from, marks[bar->kind], to - from);
	row[to - 1] = ']';
	row[from] = to - from > 1 ? '[' : '|';
	n = (size_t)snprintf(label, sizeof(label), "%zu", bar->message);
	if (n + 2 <= to - from)
		memcpy(row + from + 1, label, n);
}

static void print(const struct gf_gantt *t, const struct scale *s, size_t at, struct gf_text *out)
{
	char row[MOST + 1];
	size_t n = s->columns, i;

	memset(row, ' ', n);
	for (i = 0; i < t->nbars; i++)
		if (t->bars[i].row == at)
			draw(&t->bars[i], s, row);
	while (n > 0 && row[n - 1] == ' ')
		n--;
	row[n] = '\0';
	if (at == 0)
		gf_text_addf(out, "compute  %s\n", row);
	else
		gf_text_addf(out, "lane %-3zu %s\n", at, row);
}

/* The chart: compute and lanes over the time of an iteration. */
static int add_chart(const struct gf_plan *p, size_t window, struct gf_text *out,
		     struct gf_error *err)
{
	struct gf_what_if as_it_is = {.timeline = true};
	GF_RELEASED(gf_outcome_release) struct gf_outcome o = {0};
	const struct gf_gantt *t;
	struct scale s = {.columns = USUAL};
	int rc = gf_what_if(p, &as_it_is, &o, err);

	if (rc < 0)
		return rc;
	t = o.timeline;
	s.end_s = t->step_end_s[t->steps - 1];
	if (window)
		s.columns = window < LABEL + LEAST  ? LEAST
			    : window > LABEL + MOST ? MOST
						    : window - LABEL;
	for (size_t i = 0; i <= t->nlanes; i++)
		print(t, &s, i, out);
	gf_text_addf(out, "         0%*s\n", (int)s.columns - 1, gf_human_time(s.end_s).text);
	return 0;
}

struct why {
	const struct gf_workbench *w;
	const struct gf_plan *plan;
	struct gf_fabric fabric;
	struct gf_plan trial; /* the plan with messages of its own */
	double now_s;
	struct gf_text *lines; /* per tensor */
	size_t step;           /* of very many tensors, every so manyth is tried */
};

/* Tensors looked at in all trials, each of which looks at all. */
#define LOOKS_MOST 5e6

/* NAN: nothing says what that plan would take. */
static double trial_s(const struct why *y, const struct gf_plan *p)
{
	struct gf_sim_result result = {0};

	return gf_predict_plan(p, &y->fabric, &result, NULL) < 0 ? NAN : result.iteration_s;
}

static void reset(struct why *y)
{
	y->trial.nmessages = y->plan->nmessages;
	memcpy(y->trial.messages, y->plan->messages,
	       y->plan->nmessages * sizeof(*y->trial.messages));
}

/* Message i goes as is cheapest for its size; what says how is borrowed. */
static void choose(struct why *y, size_t i)
{
	struct gf_message *m = &y->trial.messages[i];
	const struct gf_option *o = &y->w->menu.options[gf_menu_pick(
		&y->w->menu, gf_workbench_bytes(y->w, m->first, m->last))];

	m->algorithm = (char *)o->algorithm;
	m->codec = (char *)o->codec;
	m->stages = o->stages;
	m->nstages = o->nstages;
}

/* A cut after tensor t inside message i. */
static double cut_s(struct why *y, size_t i, size_t t)
{
	struct gf_message *m = y->trial.messages;

	reset(y);
	memmove(&m[i + 2], &m[i + 1], (y->trial.nmessages - i - 1) * sizeof(*m));
	y->trial.nmessages++;
	m[i + 1] = m[i];
	m[i].last = t;
	m[i + 1].first = t + 1;
	choose(y, i);
	choose(y, i + 1);
	return trial_s(y, &y->trial);
}

/* Message i together with the next one. */
static double merge_s(struct why *y, size_t i)
{
	struct gf_message *m = y->trial.messages;

	reset(y);
	m[i + 1].first = m[i].first;
	memmove(&m[i], &m[i + 1], (y->trial.nmessages - i - 1) * sizeof(*m));
	y->trial.nmessages--;
	choose(y, i);
	return trial_s(y, &y->trial);
}

static double flip_s(struct why *y, size_t i)
{
	struct gf_message *m = &y->trial.messages[i];

	reset(y);
	m->mode = m->mode == GF_MODE_NORMAL ? GF_MODE_SIMULTANEOUS : GF_MODE_NORMAL;
	return trial_s(y, &y->trial);
}

/* Iterations that differ by no more than this share are sums rounded otherwise.
 */
static const double rounding = 1e-9;

static void compare(struct why *y, size_t tensor, const char *what, double other_s)
{
	struct gf_text *line = &y->lines[tensor];
	double more_s = other_s - y->now_s;

	if (isnan(other_s))
		return;
	gf_text_addf(line, "%s", line->length ? "; " : "");
	if (fabs(more_s) <= rounding * y->now_s)
		gf_text_addf(line, "as fast %s", what);
	else
		gf_text_addf(line, "%s %s %s", gf_human_time(fabs(more_s)).text,
			     more_s > 0 ? "slower" : "faster", what);
}

/* What the nearest other choices would cost. */
static void by_alternatives(struct why *y)
{
	const struct gf_plan *p = y->plan;
	double n = (double)y->w->ntensors;

	y->step = 1 + (size_t)(n * n / LOOKS_MOST);
	for (size_t i = 0; i < p->nmessages; i++) {
		const struct gf_message *m = &p->messages[i];

		for (size_t t = m->first; t < m->last; t++)
			if (t % y->step == 0)
				compare(y, t, "if cut here", cut_s(y, i, t));
		if (m->last % y->step)
			continue;
		if (i > 0 && p->lanes > 1)
			compare(y, m->last,
				m->mode == GF_MODE_NORMAL ? "if simultaneous" : "if normal",
				flip_s(y, i));
		if (i + 1 < p->nmessages && y->w->run_last[m->first] >= p->messages[i + 1].last)
			compare(y, m->last, "if merged with the next", merge_s(y, i));
		if (y->lines[m->last].length == 0)
			gf_text_addf(&y->lines[m->last], "nothing to merge with");
	}
}

/* Does the policy, asked again, cut as the plan does? A plan that was read may have been changed by
 * hand. */
static bool same_cuts(const struct gf_draft *d, const struct gf_plan *p)
{
	if (d->nsends != p->nmessages)
		return false;
	for (size_t i = 0; i < d->nsends; i++)
		if (d->sends[i].last != p->messages[i].last ||
		    d->sends[i].mode != p->messages[i].mode)
			return false;
	return true;
}

static bool by_rule(struct why *y)
{
	const struct gf_policy *policy = gf_policy_find(y->plan->policy);
	GF_RELEASED(gf_draft_release) struct gf_draft d = {0};
	bool same;

	if (!policy || !policy->explain)
		return false;
	gf_draft_make(&d, y->w, policy, y->w->in->lanes);
	same = same_cuts(&d, y->plan);
	if (same)
		policy->explain(y->w, &d, y->lines);
	return same;
}

static const char *reason_of(const struct why *y, size_t i)
{
	return y->lines[i].data         ? y->lines[i].data
	       : y->step && i % y->step ? "not tried"
					: "no choice";
}

/* A line for each tensor, or for those of a message that follow each other for one reason. */
static void print_tensors(const struct why *y, bool ruled, struct gf_text *out)
{
	const struct gf_plan *p = y->plan;
	const struct gf_model_profile *model = p->model;
	size_t message = 0, i, last;

	if (ruled && (y->w->slowdown > 1 || p->staleness > 1 ||
		      !gf_selection_has(&p->selection, GF_SELECT_LOSSLESS)))
		gf_text_addf(out,
			     "%s decides by times of its own, of dense synchronous messages that "
			     "do not slow backward down; the times above are predicted\n",
			     p->policy);
	for (i = 0; i < model->ntensors; i = last + 1) {
		while (p->messages[message].last < i)
			message++;
		last = i;
		while (last < p->messages[message].last && p->types[last + 1] == p->types[i] &&
		       strcmp(reason_of(y, last + 1), reason_of(y, i)) == 0)
			last++;
		if (last > i)
			gf_text_addf(out, "%zu to %zu, %s to %s", i, last, model->tensors[i].name,
				     model->tensors[last].name);
		else
			gf_text_addf(out, "%zu %s", i, model->tensors[i].name);
		gf_text_addf(out, ": message %zu, %s: %s\n", message, gf_mode_names[p->types[i]],
			     reason_of(y, i));
	}
}

/* Starts from what is posed anew of the request: the menu of the messages that a trial makes. */
static int begin(struct why *y, struct gf_workbench *w, const struct gf_request *r,
		 struct gf_task *task, struct gf_error *err)
{
	const struct gf_plan *p = y->plan;
	GF_RELEASED(gf_text_release) struct gf_text notes = {0};
	int rc = gf_request_pose(r, task, &notes, err);

	if (rc < 0)
		return rc;
	task->problem.halves = p->messages[0].half == GF_HALF_SPLIT;
	rc = gf_workbench_init(w, &task->problem, err);
	if (rc < 0)
		return rc;
	y->fabric = gf_plan_fabric(p);
	y->fabric.derived = task->problem.fabric.derived;
	y->trial = *p;
	y->trial.messages = gf_xcalloc(w->ntensors + 1, sizeof(*y->trial.messages));
	y->lines = gf_xcalloc(w->ntensors, sizeof(*y->lines));
	y->now_s = trial_s(y, p);
	return 0;
}

/* The plan was taken for its simplicity. */
static void print_simpler(const struct gf_plan *p, struct gf_text *out)
{
	double fastest_s = p->predicted->fastest_s;

	if (fastest_s > 0)
		gf_text_addf(out,
			     "taken for fewer lanes or messages: %zu on %d lane%s, %.2f %% slower "
			     "than the fastest plan found (%s)\n\n",
			     p->nmessages, p->lanes, p->lanes == 1 ? "" : "s",
			     100 * (p->predicted->iteration_s / fastest_s - 1),
			     gf_human_time(fastest_s).text);
}

/* Which message rounds the most. */
static void print_rounding(const struct gf_plan *p, struct gf_text *out)
{
	const struct gf_predicted_message *of = p->predicted->messages;
	struct gf_sum_error_of most;
	double times = 0;
	size_t i, at = 0;

	for (i = 1; i < p->nmessages; i++)
		if (of[i].error > of[at].error)
			at = i;
	most = gf_sum_error_of(p, at);
	if (of[at].error < GF_ERROR_OF_NOTE || isnan(gf_sim_sum_error(&most, NULL, &times)))
		return;
	gf_text_addf(out,
		     "rounding changes the mean gradients by %.1e of them (rms), those of message "
		     "%zu by %.1e: %s with %s encodes a gradient %.2g times on its way\n\n",
		     p->predicted->error, at, of[at].error, p->messages[at].algorithm,
		     p->messages[at].codec, times);
}

static int explain(const struct gf_request *r, const struct gf_plan *p, size_t window,
		   struct gf_text *out, struct gf_error *err)
{
	GF_RELEASED(gf_task_release) struct gf_task task = {0};
	GF_RELEASED(gf_workbench_release) struct gf_workbench w = {0};
	struct why y = {.w = &w, .plan = p};
	bool ruled;
	int rc;

	if (p->rule || !p->predicted)
		return gf_error_set(
			err, -EINVAL,
			"--explain: want a plan with messages and their prediction, got %s",
			p->rule ? "a rule" : "one without");
	rc = begin(&y, &w, r, &task, err);
	if (rc < 0)
		return rc;
	ruled = by_rule(&y);
	if (!ruled)
		by_alternatives(&y);
	rc = add_chart(p, window, out, err);
	gf_text_addf(out, "\n");
	print_simpler(p, out);
	print_rounding(p, out);
	gf_plan_table(p, 0, out);
	gf_text_addf(out, "\n");
	rc = rc ?: explain_prices(p, &y.fabric, out, err);
	gf_text_addf(out, "\n");
	print_tensors(&y, ruled, out);
	for (size_t i = 0; i < w.ntensors; i++)
		gf_text_release(&y.lines[i]);
	free(y.lines);
	free(y.trial.messages);
	return rc;
}

/* The request for what a group exchanges. */
static struct gf_request group_request(const struct gf_request *r, const struct gf_plan *group,
				       struct gf_axes *axes)
{
	struct gf_request out = *r;

	gf_axes_init(axes);
	if (r->axes)
		*axes = *r->axes;
	axes->period = -1;
	axes->period_level = NULL;
	axes->hide = 0;
	axes->period_keys = NULL;
	out.axes = axes;
	out.outer_codecs = NULL;
	out.fabric = gf_plan_fabric(group);
	return out;
}

/* Why a plan is as it is, for people: the iteration as a Gantt chart in text, a table of the
 * messages with their predicted times, and for each tensor the comparison that decided its type,
 * with its numbers. A policy with a rule of its own (its `explain`) is quoted; of others, the
 * prediction of the plan is compared with the predictions of its nearest alternatives. A line per
 * message says how its price arose: where the line of costs comes from, startup, bytes and slope,
 * the codec's share, how much longer it took beside others, and how long it waited for a lane. */
int gf_plan_explain(const struct gf_request *r, const struct gf_plan *p, size_t window,
		    struct gf_text *out, struct gf_error *err)
{
	struct gf_request of_group;
	GF_RELEASED(gf_plan_release) struct gf_plan group = {0};
	struct gf_axes axes;
	int rc;

	if (gf_period_has(&p->period, GF_PERIOD_EVERY))
		return explain(r, p, window, out, err);
	rc = gf_sim_group_plan(p, &group, err);
	if (rc < 0)
		return rc;
	gf_sim_predict_error(&group);
	of_group = group_request(r, &group, &axes);
	gf_plan_period_chart(p, window, out);
	gf_text_addf(out, "\na step of a group:\n");
	return explain(&of_group, &group, window, out, err);
}
