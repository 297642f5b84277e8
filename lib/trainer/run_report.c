/* SPDX-License-Identifier: BSD-3-Clause */
#include "trainer/run_report.h"

#include <math.h>
#include <string.h>

#include "base/heap.h"
#include "base/text.h"
#include "cli/human.h"
#include "cli/table.h"
#include "cost/stat.h"
#include "data/dataset.h"
#include "documents/models/model.h"
#include "trainer/run_memory.h"
#include "transport/processors.h"

/* --- what was measured ------------------------------------------------------- */

/* Of all settled steps: one in many has an outer exchange. */
static double mean_iteration(const struct gf_timeline *t)
{
	const size_t first = gf_timeline_settled(t);
	const size_t count = gf_timeline_count(t);
	double sum_s = 0;

	for (size_t i = first; i < count; i++)
		sum_s += gf_timeline_at(t, i)->end_s - gf_timeline_at(t, i)->start_s;
	return count > first ? sum_s / (double)(count - first) : 0;
}

/* Of a step, and from READY on of one of its messages. */
enum time { ITERATION, FORWARD, BACKWARD, WAIT, UPDATE, LOAD, HANDLING, READY, START, END };

static double time_of(const struct gf_step_times *s, enum time which, size_t message)
{
	const double whole[] = {
		[ITERATION] = s->end_s - s->start_s,
		[FORWARD] = s->forward_s - s->start_s - s->late_s,
		[BACKWARD] = s->backward_s - s->forward_s - s->later_s,
		[WAIT] = s->exchanged_s - s->backward_s + s->late_s + s->later_s,
		[UPDATE] = s->end_s - s->exchanged_s - s->outer_s,
		[LOAD] = s->load_s,
		[HANDLING] = s->handling_s,
	};

	if (which < READY)
		return whole[which];
	return (which == READY   ? s->messages[message].ready_s
		: which == START ? s->messages[message].start_s
				 : s->messages[message].end_s) -
	       s->applied_start_s;
}

/* The median over the settled steps. */
static double over_steps(const struct gf_timeline *t, enum time which, size_t message)
{
	size_t first = gf_timeline_settled(t), count = gf_timeline_count(t), i, n = 0;
	GF_FREED double *values = gf_xcalloc(count + 1, sizeof(*values));

	/* a step that waited for no message has no times of any */
	for (i = first; i < count; i++) {
		values[n] = time_of(gf_timeline_at(t, i), which, message);
		n += !isnan(values[n]);
	}
	return n ? gf_stat_median(values, n) : 0;
}

void gf_report_make(const struct gf_plan *plan, const struct gf_prediction *prediction,
		    const struct gf_timeline *timeline, struct gf_report *r)
{
	memset(r, 0, sizeof(*r));
	r->nsteps = gf_timeline_count(timeline) - gf_timeline_settled(timeline);
	r->is_mean = !gf_period_has(&plan->period, GF_PERIOD_EVERY);
	r->iteration_s = r->is_mean ? mean_iteration(timeline) : over_steps(timeline, ITERATION, 0);
	r->forward_s = over_steps(timeline, FORWARD, 0);
	r->backward_s = over_steps(timeline, BACKWARD, 0);
	r->wait_s = over_steps(timeline, WAIT, 0);
	r->load_s = over_steps(timeline, LOAD, 0);
	r->handling_s = over_steps(timeline, HANDLING, 0);
	r->update_s = over_steps(timeline, UPDATE, 0);
	r->nmessages = plan->nmessages;
	r->messages = gf_xcalloc(plan->nmessages + 1, sizeof(*r->messages));
	for (size_t i = 0; i < plan->nmessages; i++)
		r->messages[i].measured = (struct gf_predicted_message){
			.ready_s = over_steps(timeline, READY, i),
			.start_s = over_steps(timeline, START, i),
			.end_s = over_steps(timeline, END, i),
		};
	if (!prediction)
		return;
	r->has_prediction = true;
	r->predicted_iteration_s = prediction->iteration_s;
	r->predicted_low_s = prediction->iteration_low_s;
	r->predicted_high_s = prediction->iteration_high_s;
	for (size_t i = 0; i < plan->nmessages; i++)
		r->messages[i].predicted = prediction->messages[i];
}

void gf_report_release(struct gf_report *r)
{
	free(r->messages);
	memset(r, 0, sizeof(*r));
}

/* A plan of one message per tensor would fill screens. */
#define SHOWN_MESSAGES 64

static double percent(const struct gf_train_row *row)
{
	return 100 * (double)row->correct / (double)row->samples;
}

static void add_times(struct gf_table *t, const char *label, const struct gf_predicted_message *m)
{
	gf_table_cells(t, "%s\t%s\t%s\t%s\t%s", label, gf_human_time(m->ready_s).text,
		       gf_human_time(m->start_s).text, gf_human_time(m->end_s).text,
		       gf_human_time(m->end_s - m->start_s).text);
}

/* A row of predicted times, and below it a row of measured ones. */
static void add_message(struct gf_table *t, const struct gf_plan *plan, const struct gf_report *r,
			size_t i)
{
	const struct gf_message *m = &plan->messages[i];

	gf_table_cells(t, "%zu\t%zu-%zu\t%s\t%s", i, m->first, m->last,
		       gf_human_size((double)gf_plan_message_bytes(plan, i)).text,
		       gf_plan_runs(plan, m->first, m->last, m));
	if (r->has_prediction) {
		add_times(t, "predicted", &r->messages[i].predicted);
		gf_table_cells(t, "\t\t\t");
	}
	add_times(t, "measured", &r->messages[i].measured);
}

static void add_times_table(struct gf_text *out, const struct gf_plan *plan,
			    const struct gf_report *r)
{
	GF_RELEASED(gf_table_release) struct gf_table t = {0};

	gf_table_cells(&t, "message\ttensors\tsize\talgorithm\ttimes\tready\tstart\tend\tduration");
	for (size_t i = 0; i < r->nmessages && i < SHOWN_MESSAGES; i++)
		add_message(&t, plan, r, i);
	gf_table_print_in(&t, 0, out);
	if (r->nmessages > SHOWN_MESSAGES)
		gf_text_addf(out, "and %zu messages more\n", r->nmessages - SHOWN_MESSAGES);
}

/* Less of an iteration is not worth a line. */
#define LOAD_SHARE 0.01

static void add_iteration(struct gf_text *out, const struct gf_report *r)
{
	gf_text_addf(out,
		     "step %s%s: forward %s, backward %s, waiting %s, update %s (medians of "
		     "%zu steps)\n",
		     gf_human_time(r->iteration_s).text, r->is_mean ? " (mean)" : "",
		     gf_human_time(r->forward_s).text, gf_human_time(r->backward_s).text,
		     gf_human_time(r->wait_s).text, gf_human_time(r->update_s).text, r->nsteps);
	if (r->load_s > LOAD_SHARE * r->iteration_s)
		gf_text_addf(out, "between steps the loader takes %s\n",
			     gf_human_time(r->load_s).text);
	if (r->handling_s > 0)
		gf_text_addf(out, "of waiting, %s are selection and codecs, %s communication\n",
			     gf_human_time(r->handling_s).text,
			     gf_human_time(r->wait_s - r->handling_s).text);
	if (r->has_prediction)
		gf_text_addf(out, "step predicted %s, measured %s, measured/predicted %.3f\n",
			     gf_human_time(r->predicted_iteration_s).text,
			     gf_human_time(r->iteration_s).text,
			     r->iteration_s / r->predicted_iteration_s);
	if (r->has_prediction && r->predicted_high_s > 0)
		gf_text_addf(out,
			     "the prediction's interval is %s to %s: the measured step is %s it\n",
			     gf_human_time(r->predicted_low_s).text,
			     gf_human_time(r->predicted_high_s).text,
			     r->iteration_s < r->predicted_low_s    ? "below"
			     : r->iteration_s > r->predicted_high_s ? "above"
								    : "inside");
}

/* A pace that differs by more is not the machine's own. */
static const double busy = 2;

/* "12.3 % slower", "3.8 x slower" */
static void add_slower(struct gf_text *out, double factor)
{
	const double apart = fmax(factor, 1 / factor);

	if (apart > busy)
		gf_text_addf(out, "%.1f x %s", apart, factor < 1 ? "faster" : "slower");
	else
		gf_text_addf(out, "%.1f %% %s", 100 * fabs(factor - 1),
			     factor < 1 ? "faster" : "slower");
}

/* What the machine has to do with a difference, and what the exchange. */
static void add_speed(struct gf_text *out, const struct gf_speed *m, const struct gf_report *r)
{
	double exchange = gf_speed_exchange(m, r->iteration_s);

	if (!r->has_prediction || !(m->factor > 0))
		return;
	gf_text_addf(out, "without exchange, the slowest rank is ");
	add_slower(out, m->factor);
	gf_text_addf(out, " than in the profile (at the start ");
	add_slower(out, m->at_start);
	gf_text_addf(out, ", at the end ");
	add_slower(out, m->at_end);
	if (fmax(m->factor, 1 / m->factor) > busy) {
		gf_text_addf(out, "): this run or the profile was measured on a busy machine, and "
				  "the comparison means nothing\n");
		return;
	}
	gf_text_addf(out, "): by that a step is predicted %s, measured/predicted %.3f\n",
		     gf_human_time(m->iteration_s).text, r->iteration_s / m->iteration_s);
	if (exchange > 0)
		gf_text_addf(out,
			     "the exchange took %s x as long as predicted, as far as compute does "
			     "not hide it\n",
			     gf_human_ratio(exchange).text);
}

/* The second exchange of a plan with a period. */
static void add_outer(struct gf_text *out, const struct gf_plan *plan,
		      const struct gf_train_result *result)
{
	const struct gf_outer_totals *o = &result->outer;
	const struct gf_period *p = &plan->period;

	if (!p->plan || !(o->exchanges > 0))
		return;
	gf_text_addf(out, "%s: groups of %d exchange every %zu steps, %.3g times so far\n",
		     gf_period_name(p), p->group_ranks, p->steps, o->exchanges);
	gf_text_addf(out, "outer exchange: measured %s, steps are %s longer by it",
		     gf_human_time(o->exchange_s).text,
		     gf_human_time(o->exposed_s / o->exchanges).text);
	if (p->exchange_s > 0)
		gf_text_addf(out, "; predicted %s, measured/predicted %.3f",
			     gf_human_time(p->exchange_s).text, o->exchange_s / p->exchange_s);
	gf_text_addf(out, " (means)\n");
}

/* How many of the steps that the report counts are among the first ones. */
static size_t steps_until(const struct gf_timeline *timeline, size_t step)
{
	size_t i, n = 0;

	for (i = gf_timeline_settled(timeline); i < gf_timeline_count(timeline); i++)
		n += gf_timeline_at(timeline, i)->step <= step;
	return n;
}

/* Steps that are not as the prediction has them. */
static void add_warmup(struct gf_text *out, const struct gf_plan *plan,
		       const struct gf_train_result *result, const struct gf_report *r)
{
	size_t sends = steps_until(&result->timeline, result->warmup_steps);
	size_t waits = steps_until(&result->timeline, plan->pipeline_warmup_steps);

	if (sends && r->has_prediction)
		gf_text_addf(out,
			     "%zu of the %zu steps are in the selection's warm-up and send more "
			     "than the prediction counts\n",
			     sends, r->nsteps);
	if (waits)
		gf_text_addf(out,
			     "%zu of the %zu steps are in the pipeline's warm-up and wait for "
			     "their own gradients\n",
			     waits, r->nsteps);
	if (plan->staleness > 1 && waits < r->nsteps)
		gf_text_addf(out, "gradients are applied %d step%s late\n", plan->staleness - 1,
			     plan->staleness > 2 ? "s" : "");
}

static void add_skipped(struct gf_text *out, const struct gf_train_result *result)
{
	if (!result->skipped)
		return;
	gf_text_addf(out,
		     "%zu of %zu steps were skipped, since a gradient was infinite or not a number",
		     result->skipped, result->last_step - result->first_step + 1);
	if (result->scale > 1)
		gf_text_addf(out, "; the loss scale is %.0f now", result->scale);
	gf_text_addf(out, "\n");
}

/* The bytes sent, beside the bytes without selection and codec. */
static void add_bytes(struct gf_text *out, const struct gf_plan *plan,
		      const struct gf_train_result *result)
{
	double steps = (double)(result->last_step - result->first_step + 1);
	double parts = steps * (plan->ranks + plan->servers);

	if (!result->dense_bytes || result->last_step < result->first_step)
		return;
	gf_text_addf(out, "sent %s per rank and step, %.3g %% of dense f32's %s\n",
		     gf_human_size((double)result->sent_bytes / parts).text,
		     100 * (double)result->sent_bytes / (double)result->dense_bytes,
		     gf_human_size((double)result->dense_bytes / parts).text);
	if (result->outer.exchanges > 0)
		gf_text_addf(out,
			     "of that, rank 0 sent %s in a step between all ranks, the rest in its "
			     "group\n",
			     gf_human_size((double)result->outer.sent_bytes / steps).text);
	if (result->times.select_s + result->times.codec_s > 0)
		gf_text_addf(out,
			     "per step: packing, selection and scaling %s, codecs and merging %s\n",
			     gf_human_time(result->times.select_s / steps).text,
			     gf_human_time(result->times.codec_s / steps).text);
}

char *gf_report_text(const struct gf_plan *plan, const struct gf_prediction *prediction,
		     const struct gf_train_result *result)
{
	const struct gf_train_row *test = &result->test;
	struct gf_text out = {0};
	GF_RELEASED(gf_report_release) struct gf_report r = {0};

	gf_report_make(plan, prediction, &result->timeline, &r);
	if (r.nsteps) {
		add_times_table(&out, plan, &r);
		add_iteration(&out, &r);
		add_outer(&out, plan, result);
		add_speed(&out, &result->speed, &r);
		add_warmup(&out, plan, result, &r);
	}
	add_skipped(&out, result);
	add_bytes(&out, plan, result);
	if (result->memory.parameters_bytes)
		gf_train_memory_line(&result->memory,
				     prediction ? prediction->memory.peak_bytes : 0, &out);
	if (result->device)
		gf_text_addf(&out, "computed on %s, gradients by %s\n", result->device,
			     result->transport);
	if (test->part && test->perplexity > 0)
		gf_text_addf(&out, "test perplexity %.2f\n", test->perplexity);
	if (test->part)
		gf_text_addf(&out, "test accuracy %.2f %% (%zu of %zu)\n", percent(test),
			     test->correct, test->samples);
	return gf_text_take(&out);
}

static void add_training(struct gf_text *out, const struct gf_train_config *c)
{
	const struct gf_training *k = &c->training;
	size_t samples = c->data->count[GF_PART_TRAIN];
	const struct gf_plan *p = c->plan;

	gf_text_addf(out, "%s (%zu parameters) on %zu samples, ", c->model->name,
		     gf_model_param_count(c->model), samples);
	if (c->data->masked)
		gf_text_addf(out, "%zu of %zu numbers masked in each, ", c->data->masked,
			     c->data->positions);
	if (c->steps)
		gf_text_addf(out, "up to step %zu", c->steps);
	else
		gf_text_addf(out, "%zu epoch%s of %zu steps", k->epochs, k->epochs == 1 ? "" : "s",
			     samples / gf_train_global_batch(c));
	gf_text_addf(out, "; %d rank%s, batch %zu each, %s; ", c->comm->ranks,
		     c->comm->ranks == 1 ? "" : "s", k->batch, k->optimizer);
	gf_text_addf(out, "%zu message%s a step, policy %s\n", p->nmessages,
		     p->nmessages == 1 ? "" : "s", p->policy ? p->policy : "of the plan");
}

/* An outer velocity remembers 1 / (1 - m) exchanges, and overshoots in a run of not many more. */
#define OUTER_MEMORIES 5

static void add_period(struct gf_text *out, const struct gf_train_config *c)
{
	const struct gf_period *p = &c->plan->period;
	const size_t samples = c->data->count[GF_PART_TRAIN];
	size_t steps = samples / gf_train_global_batch(c) * c->training.epochs;
	double exchanges;

	if (!p->plan)
		return;
	if (c->steps && c->steps < steps)
		steps = c->steps;
	exchanges = (double)steps / (double)p->steps;
	gf_text_addf(out,
		     "period %s: groups of %d ranks, which exchange every %zu steps: results "
		     "differ from synchronous SGD\n",
		     gf_period_name(p), p->group_ranks, p->steps);
	if (exchanges * (1 - p->outer_momentum) < OUTER_MEMORIES && p->outer_momentum > 0)
		gf_text_addf(out,
			     "the run has %.3g outer exchanges, and an outer momentum of %g wants "
			     "%.0f at least: a smaller one, or a shorter period, does better\n",
			     exchanges, p->outer_momentum,
			     OUTER_MEMORIES / (1 - p->outer_momentum));
}

char *gf_report_start(const struct gf_train_config *c, bool replay)
{
	struct gf_text out = {0};

	if (c->remark && c->remark[0] && !replay)
		gf_text_addf(&out, "%s\n", c->remark);
	if (!replay) {
		add_training(&out, c);
		add_period(&out, c);
	}
	if (c->choose_s > 1)
		gf_text_addf(&out, "choosing algorithms took %.1f s\n", c->choose_s);
	if (c->threads && c->comm->ranks > 1 && c->comm->processors > 0)
		gf_text_addf(&out,
			     "\tcompute threads of a rank: %d, on %.4g processors; the "
			     "communication thread %s\n",
			     c->threads, c->comm->processors,
			     gf_priority_crowded(c->comm, c->threads) ? "shares them and goes first"
								      : "has one of its own");
	return gf_text_take(&out);
}

char *gf_report_epoch(const struct gf_train_row *train, const struct gf_train_row *test,
		      size_t epochs)
{
	struct gf_text out = {0};

	gf_text_addf(&out, "epoch %zu/%zu: loss %.4f, ", train->epoch, epochs, train->loss);
	if (train->perplexity > 0)
		gf_text_addf(&out, "perplexity %.2f, test %.2f, ", train->perplexity,
			     test->perplexity);
	gf_text_addf(&out, "train %.2f %%, test %.2f %%, %.0f %s/s", percent(train), percent(test),
		     train->samples_per_s, train->perplexity > 0 ? "symbols" : "samples");
	if (test->steps_behind)
		gf_text_addf(&out,
			     "; tested are the parameters of step %zu, the last outer exchange",
			     test->step - test->steps_behind);
	return gf_text_take(&out);
}
