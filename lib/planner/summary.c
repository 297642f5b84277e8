/* SPDX-License-Identifier: BSD-3-Clause */
#include "planner/summary.h"

#include <math.h>

#include "base/array.h"
#include "base/heap.h"
#include "cli/human.h"
#include "cli/table.h"
#include "collectives/codecs/codec.h"
#include "documents/plan_brief.h"
#include "simulator/memory.h"
#include "simulator/period_time.h"
#include "simulator/uncertainty.h"

static const char *plural(size_t n)
{
	return n == 1 ? "" : "s";
}

static void add_times(const struct gf_prediction *pr, struct gf_text *out)
{
	gf_text_addf(out, "%s a step, %s of it exposed", gf_human_time(pr->iteration_s).text,
		     gf_human_time(pr->exposed_comm_s).text);
	/* the bound and the plan are sums in another order */
	if (isfinite(pr->iteration_s / pr->lower_bound_s))
		gf_text_addf(out, ", %.1f %% above the bound",
			     100 * fmax(pr->iteration_s / pr->lower_bound_s - 1, 0));
	if (pr->iteration_high_s > 0)
		gf_text_addf(out, " (%s to %s by the doubt of the fits)",
			     gf_human_time(pr->iteration_low_s).text,
			     gf_human_time(pr->iteration_high_s).text);
}

static void add_axes(const struct gf_plan *p, struct gf_text *out)
{
	GF_RELEASED(gf_plan_brief_release) struct gf_plan_brief b = gf_plan_brief(p);

	gf_text_addf(out, "%zu message%s on %d lane%s by %s", b.nmessages, plural(b.nmessages),
		     b.lanes, plural((size_t)b.lanes), b.algorithms);
	if (b.policy[0])
		gf_text_addf(out, ", policy %s", b.policy);
	if (!gf_codec_is_plain(b.codecs))
		gf_text_addf(out, ", codec %s", b.codecs);
	if (!gf_selection_has(&p->selection, GF_SELECT_LOSSLESS))
		gf_text_addf(out, ", selection %s", b.selection);
	if (b.shard[0])
		gf_text_addf(out, ", shards %s", b.shard);
	if (b.staleness > 1)
		gf_text_addf(out, ", gradients %d step%s old", b.staleness - 1,
			     plural((size_t)b.staleness - 1));
}

static void add_rule(const struct gf_rule *r, struct gf_text *out)
{
	gf_text_addf(out, "messages of up to %s on %d lane%s, ",
		     gf_human_size((double)r->threshold_bytes).text, r->lanes,
		     plural((size_t)r->lanes));
	for (size_t i = 0; i < r->nalgorithms; i++) {
		const struct gf_rule_algorithm *a = &r->algorithms[i];

		gf_text_addf(out, "%s", i ? ", " : "by ");
		gf_stages_text_of(out, a->algorithm, a->stages, a->nstages);
		if (a->min_bytes)
			gf_text_addf(out, " from %s", gf_human_size((double)a->min_bytes).text);
	}
}

/* A line on the plan's period; nothing if all ranks exchange in every step. */
static void add_period(const struct gf_plan *p, struct gf_text *out)
{
	const struct gf_period *o = &p->period;
	struct gf_border border;

	if (!o->plan)
		return;
	gf_sim_border(p, &border);
	gf_text_addf(out, "period %s: groups of %d rank%s exchange every %zu step%s",
		     gf_period_name(o), o->group_ranks, plural((size_t)o->group_ranks), o->steps,
		     plural(o->steps));
	if (o->fragments > 1)
		gf_text_addf(out, ", %zu fragments in turn", o->fragments);
	if (o->delay)
		gf_text_addf(out, ", beside the next %zu step%s", o->delay, plural(o->delay));
	if (o->begin_steps)
		gf_text_addf(out, ", the first %zu step%s in each", o->begin_steps,
			     plural(o->begin_steps));
	if (o->period_s > 0)
		gf_text_addf(out, "; a period takes %s, %s of it exposed",
			     gf_human_time(o->period_s).text, gf_human_time(o->exposed_s).text);
	gf_text_addf(out,
		     "; %s a step leave a group, 1/%.0f of what all gradients take; %s more memory "
		     "a rank; results differ from synchronous SGD\n",
		     gf_human_size(border.group_bytes / (double)o->steps).text,
		     border.plain_group_bytes * (double)o->steps / border.group_bytes,
		     gf_human_size(gf_sim_period_bytes(p)).text);
}

/* What a fragment does in steps first to last; the first of "[-]" that is so.
 */
static char fragment_in(const struct gf_period *o, size_t fragment, size_t first, size_t last)
{
	const size_t between = o->steps / o->fragments;
	const size_t begins = (fragment + 1) * between, ends = begins + o->delay;

	if (begins >= first && begins <= last)
		return o->delay ? '[' : '|';
	if (ends >= first && ends <= last)
		return ']';
	return begins < first && ends > last ? '-' : '.';
}

void gf_plan_period_chart(const struct gf_plan *p, size_t window, struct gf_text *out)
{
	const struct gf_period *o = &p->period;
	const size_t all = o->steps + o->delay;
	const size_t columns = (window > 40 ? window : 80) - 16;
	const size_t per = (all + columns - 1) / columns;

	add_period(p, out);
	for (size_t f = 0; f < o->fragments; f++) {
		gf_text_addf(out, "fragment %-4zu ", f);
		for (size_t step = 1; step <= all; step += per)
			gf_text_addf(out, "%c", fragment_in(o, f, step, step + per - 1));
		gf_text_addf(out, "\n");
	}
	gf_text_addf(out, "%zu steps", all);
	if (per > 1)
		gf_text_addf(out, ", %zu to a mark", per);
	gf_text_addf(out,
		     "; | or [: its exchange begins after the step, -: is beside it, ]: ends\n");
	if (o->begin_steps)
		gf_text_addf(out, "the first %zu step%s of all: an exchange after each\n",
			     o->begin_steps, plural(o->begin_steps));
}

/* "fits into 80 GiB: 61 GiB, of it activations 38 GiB"; the largest part, where none is known. */
static void add_memory(const struct gf_plan *p, struct gf_text *out)
{
	const struct gf_memory_use *m = &p->predicted->memory;
	const struct {
		const char *name;
		double bytes;
	} parts[] = {
		{"parameters", m->parameters_bytes}, {"gradients", m->gradients_bytes},
		{"optimiser state", m->state_bytes}, {"gathered parameters", m->gathered_bytes},
		{"buffers", m->buffers_bytes},       {"activations", m->activations_bytes},
	};
	bool first = true;

	if (!(m->peak_bytes > 0))
		return;
	if (p->memory.limit_bytes)
		gf_text_addf(out,
			     "fits into %s: ", gf_human_size((double)p->memory.limit_bytes).text);
	gf_text_addf(out, "a rank holds %s at the most", gf_human_size(m->peak_bytes).text);
	for (size_t i = 0; i < GF_ARRAY_LENGTH(parts); i++)
		if (parts[i].bytes > 0) {
			gf_text_addf(out, "%s%s %s", first ? ": " : ", ", parts[i].name,
				     gf_human_size(parts[i].bytes).text);
			first = false;
		}
	gf_text_addf(out, "%s\n",
		     m->activations_bytes > 0
			     ? ""
			     : "; activations are not known (a model with layers has them)");
}

void gf_plan_summary(const struct gf_plan *p, const char *open, struct gf_text *out)
{
	if (p->rule) {
		gf_text_addf(out, "a rule for any model and ranks: ");
		add_rule(p->rule, out);
	} else {
		gf_text_addf(out, "%s on %d rank%s: ", p->model->name, p->ranks,
			     plural((size_t)p->ranks));
		if (p->predicted) {
			add_times(p->predicted, out);
			gf_text_addf(out, "; ");
		}
		add_axes(p, out);
	}
	if (open && *open)
		gf_text_addf(out, "; by default: %s", open);
	gf_text_addf(out, "\n");
	add_period(p, out);
	if (p->predicted)
		add_memory(p, out);
}

/* What a rank would hold that kept all of it. */
static double whole_bytes(const struct gf_plan *p)
{
	const struct gf_shard none = {0};
	const struct gf_sim_input nothing = {.model = p->model};
	struct gf_memory_use use;

	gf_sim_memory(&(struct gf_memory_setting){p->model, &none, &p->memory, false, p->staleness},
		      &nothing, NULL, &use);
	return use.peak_bytes;
}

/* Of a plan whose memory counts: beside what keeps `whole` bytes. by: NULL: the line ends there. */
static void gain_memory(const struct gf_plan *p, double whole, double now_s, const char *by,
			struct gf_text *out)
{
	const bool fits = !p->memory.limit_bytes || whole <= (double)p->memory.limit_bytes;

	gf_text_addf(
		out, "DDP's default takes %s a step, %s times this, and holds %s a rank%s%s%s\n",
		gf_human_time(now_s).text, gf_human_ratio(now_s / p->predicted->iteration_s).text,
		gf_human_size(whole).text, fits ? "" : ", which does not fit", by ? ": " : "",
		by ? by : "");
}

void gf_gain_text(double now_s, bool given, const struct gf_plan *p, const char *by,
		  struct gf_text *out)
{
	const char *now = given ? "the plan that was given" : "DDP's default";
	const struct gf_prediction *here = p->predicted;
	const double gain = now_s / here->iteration_s;
	const double whole = !given && p->memory.limit_bytes ? whole_bytes(p) : 0;

	if (whole > (double)p->memory.limit_bytes) {
		gain_memory(p, whole, now_s, by, out);
		return;
	}
	if (fabs(gain - 1) < 0.0005)
		gf_text_addf(out, "%s is as fast as this", now);
	else if (fabs(gain - 1) < GF_GAIN_LEAST - 1)
		gf_text_addf(out, "%s is within %.1f %% of this", now, 100 * fabs(gain - 1));
	else
		gf_text_addf(out, "%s x %s", gf_human_ratio(gain).text, now);
	gf_text_addf(out, " (%s, %s", gf_human_time(now_s).text,
		     gf_human_time(here->iteration_s).text);
	if (here->iteration_high_s > 0)
		gf_text_addf(out, "; %s to %s by the doubt",
			     gf_human_time(here->iteration_low_s).text,
			     gf_human_time(here->iteration_high_s).text);
	gf_text_addf(out, fabs(gain - 1) < GF_GAIN_LEAST - 1 ? "): change nothing\n" : "): %s\n",
		     by);
}

void gf_plan_gain(const struct gf_request *r, const struct gf_plan *now, const struct gf_plan *p,
		  struct gf_text *out)
{
	const double now_s = p->rule ? 0 : gf_request_now_s(r, now);
	GF_RELEASED(gf_text_release) struct gf_text by = {0};
	GF_FREED char *codecs = NULL;

	if (!(now_s > 0) || gf_plan_is_derived(p))
		return;
	if (!now && p->predicted->memory.peak_bytes > 0) {
		gain_memory(p, whole_bytes(p), now_s, NULL, out);
		return;
	}
	codecs = gf_plan_codecs_text(p);
	gf_text_addf(&by, "%zu message%s, %s", p->nmessages, plural(p->nmessages), codecs);
	if (!gf_selection_has(&p->selection, GF_SELECT_LOSSLESS))
		gf_text_addf(&by, ", %s", gf_selection_title(&p->selection));
	gf_gain_text(now_s, now != NULL, p, by.data, out);
}

static void rule_table(const struct gf_rule *r, size_t window, struct gf_text *out)
{
	GF_RELEASED(gf_table_release) struct gf_table t = {0};

	gf_table_cells(&t, "from\talgorithm\tcodec");
	for (size_t i = 0; i < r->nalgorithms; i++) {
		const struct gf_rule_algorithm *a = &r->algorithms[i];
		GF_RELEASED(gf_text_release) struct gf_text way = {0};

		gf_stages_text_of(&way, a->algorithm, a->stages, a->nstages);
		gf_table_cells(&t, "%s\t%s\t%s", gf_human_size((double)a->min_bytes).text, way.data,
			       a->codec ? a->codec : gf_codecs[GF_CODEC_F32].name);
	}
	gf_table_print_in(&t, window, out);
}

static void message_row(struct gf_table *t, const struct gf_plan *p, size_t i)
{
	const struct gf_message *m = &p->messages[i];
	const struct gf_predicted_message *times = p->predicted ? &p->predicted->messages[i] : NULL;
	GF_FREED char *way = gf_plan_runs_text(p, m->first, m->last, m);

	gf_table_cells(t, "%zu\t%zu-%zu\t%s\t%s\t%s\t%s", i, m->first, m->last,
		       gf_human_size((double)gf_plan_message_bytes(p, i)).text, way, m->codec,
		       gf_mode_names[m->mode]);
	if (gf_shard_has(&p->shard, GF_SHARD_PARAMETERS))
		gf_table_cell(t, "%s", gf_shard_regathers(&p->shard, p->messages, i) ? "" : "kept");
	if (times)
		gf_table_cells(t, "%s\t%s\t%s", gf_human_time(times->ready_s).text,
			       gf_human_time(times->start_s).text,
			       gf_human_time(times->end_s).text);
}

void gf_plan_table(const struct gf_plan *p, size_t window, struct gf_text *out)
{
	const bool keeps = gf_shard_has(&p->shard, GF_SHARD_PARAMETERS);
	GF_RELEASED(gf_plan_release) struct gf_plan outer = {0};
	GF_RELEASED(gf_table_release) struct gf_table t = {0};

	if (p->rule) {
		rule_table(p->rule, window, out);
		return;
	}
	gf_table_cells(&t, "message\ttensors\tsize\talgorithm\tcodec\tmode%s%s",
		       keeps ? "\tkept" : "", p->predicted ? "\tready\tstart\tend" : "");
	for (size_t i = 0; i < p->nmessages; i++)
		message_row(&t, p, i);
	gf_table_print_in(&t, window, out);
	if (gf_period_has(&p->period, GF_PERIOD_EVERY))
		return;
	gf_period_outer(p, &outer);
	gf_table_note(window, out, "\nbetween groups, every %zu steps:", p->period.steps);
	gf_plan_table(&outer, window, out);
}
