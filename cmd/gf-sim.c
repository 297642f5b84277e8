/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdbool.h>
#include <string.h>

#include "base/array.h"
#include "base/file.h"
#include "base/heap.h"
#include "base/text.h"
#include "cli/command.h"
#include "planner/plan_sweep.h"
#include "simulator/uncertainty.h"
#include "simulator/period_time.h"
#include "simulator/sweep_plots.h"
#include "simulator/replay/replay_plan.h"
#include "simulator/step_listing.h"
#include "simulator/whatif/uneven_ranks.h"

static const char help[] = "Run a plan in simulation: on other ranks, another topology or network, "
			   "with slow ranks and jitter. Reads plans from files or standard input; "
			   "prints one row per combination.\vExamples:\n"
			   "  gf-sim plan.json\n"
			   "  gf-sim plan.json --ranks 8,16,32,64 --table=csv\n"
			   "  gf-sim plan.json --slow 3:1.5 --jitter 0.05";

static const char *const kinds[] = {"topologies", "profiles", NULL};

struct arguments {
	struct gf_cli cli;
	struct gf_sweep sweep;
	struct gf_uneven uneven;
	const char *costs, *pairs, *trace, *plot;
	size_t iterations, accumulate;
	bool steps, verify;
};

#define AT(field) offsetof(struct arguments, field)

static const struct gf_field jitter_fields[] = {
	{"jitter", GF_FIELD_REAL, .offset = AT(sweep.what.jitter), .high = 1},
	{"network", GF_FIELD_REAL, .offset = AT(sweep.what.network_jitter_s), .unit = "TIME",
	 .help = "mean of the time by which a message starts up later, e.g. 5ms"},
	{"runs", GF_FIELD_SIZE, .offset = AT(sweep.what.runs), .low = 1, .high = 1e7, .unit = "N",
	 .help = "steps that are drawn"},
	{"seed", GF_FIELD_SIZE, .offset = AT(sweep.what.seed), .high = 9e18, .unit = "N",
	 .help = "seed of the jitter"},
	{NULL},
};
static const struct gf_record jitter_keys = {.fields = jitter_fields};

static const struct gf_field iterations_fields[] = {
	{"iterations", GF_FIELD_SIZE, .offset = AT(iterations), .low = 1, .high = 1e15},
	{"epoch_steps", GF_FIELD_SIZE, .offset = AT(sweep.what.epoch_steps), .low = 1, .high = 1e15,
	 .unit = "N", .help = "steps of an epoch, for warm-ups that last epochs"},
	{NULL},
};
static const struct gf_record iterations_keys = {.fields = iterations_fields};

#pragma GCC diagnostic ignored "-Wmissing-field-initializers" /* clang */
static const struct gf_setting settings[] = {
	{"ranks", "LIST", 1, GF_SETTING_INTS, AT(sweep.ranks),
	 "simulate these numbers of ranks, e.g. 8,16,32", 1, 1 << 24, .offset2 = AT(sweep.nranks),
	 .often = true},
	{"costs", "FILE", 1, GF_SETTING_TEXT, AT(costs),
	 "take costs from this topology (a path or a shipped name), or from this profile's "
	 "measured network",
	 .share = "topologies", .often = true},
	{"bandwidth", "LIST", 1, GF_SETTING_RATES, AT(sweep.bandwidths),
	 "simulate these bandwidths of the outermost level, e.g. 10Gb/s,8x100Gb/s",
	 .offset2 = AT(sweep.nbandwidths), .often = true},
	{"period-steps", "LIST", 1, GF_SETTING_INTS, AT(sweep.period_steps),
	 "simulate periods of so many steps, e.g. 10,50,200", 1, 1e9,
	 .offset2 = AT(sweep.nperiod_steps)},
	{"accumulate", "N", 1, GF_SETTING_WHOLE, AT(accumulate),
	 "let a step have N micro-batches, whose sum is exchanged", 1, 1e9},
	{"replan", NULL, 1, GF_SETTING_FLAG, AT(sweep.replan),
	 "also simulate the plan that would be made anew there", .often = true},
	{"slow", "RANK:FACTOR", 2, GF_SETTING_OWN, AT(uneven),
	 "let this rank compute FACTOR times as long; may be repeated", .store = gf_uneven_add_slow,
	 .repeats = true, .often = true},
	{"slow-link", "LIST", 2, GF_SETTING_OWN, AT(uneven),
	 "let links have 1/FACTOR of their bandwidth: RANK:FACTOR for the narrowest on that rank's "
	 "way to others, RANK:FACTOR@LEVEL for another",
	 .store = gf_uneven_add_links, .repeats = true, .often = true},
	{"pairs", "FILE", 2, GF_SETTING_TEXT, AT(pairs),
	 "rows of gf-profile --pairs: the links of slow hosts are slow"},
	{"jitter", "SHARE[:KEYS]", 2, GF_SETTING_ENTRY,
	 .help = "draw steps whose compute times have this standard deviation, e.g. 5%",
	 .keys = &jitter_keys, .often = true},
	{"iterations", "N[:KEYS]", 2, GF_SETTING_ENTRY,
	 .help = "also print the time of N steps, with a pipeline's start and end",
	 .keys = &iterations_keys},
	{"steps", NULL, 3, GF_SETTING_FLAG, AT(steps),
	 "replay the schedules step by step on the topology"},
	{"verify", NULL, 3, GF_SETTING_FLAG, AT(verify),
	 "prove that the schedules of all ranks add every contribution once, without races and "
	 "deadlocks"},
	GF_SETTING_TABLE(3),
	{"trace", "FILE", 3, GF_SETTING_TEXT, AT(trace), "write the first step as a Chrome trace",
	 .written = true, .often = true},
	{"plot", "FILE", 3, GF_SETTING_OWN, AT(plot),
	 "draw a step, or curves of a sweep, or who sends to whom in --steps, to "
	 "FILE.svg, .pdf or .png; FILE.csv: the numbers",
	 .store = gf_plot_store, .written = true, .often = true},
};

static const struct gf_setting_rule rules[] = {
	{"replan", NULL, "steps verify"},
	{"period-steps", NULL, "steps verify"},
	{"steps", NULL, "jitter iterations"},
	{"verify", NULL, "steps slow slow-link pairs jitter iterations table trace plot"},
};

/* The option that looks at one plan in one set of circumstances; or NULL. */
static const char *alone(const struct arguments *a)
{
	return a->steps ? "steps" : a->verify ? "verify" : NULL;
}

static int check(void *arguments, struct gf_error *err)
{
	const struct arguments *a = arguments;

	if (alone(a) && (a->sweep.nranks > 1 || a->sweep.nbandwidths > 1))
		return gf_error_set(err, -EINVAL,
				    "--%s: want one number of ranks and one bandwidth, got a list",
				    alone(a));
	return 0;
}

/* In the order of use, as the options are. */
static const char *const groups[] = {
	"Where the plan runs:",
	"What is uneven:",
	"What is printed:",
};

static const struct gf_command command = {
	.name = "gf-sim",
	.kinds = kinds,
	.arguments = "[PLAN...] [FILE...]",
	GF_COMMAND_TABLES,
	.check = check,
};

/* Groups that vary make up for each other, which is not simulated. */
static int check_period(const struct arguments *a, size_t plan, struct gf_error *err)
{
	const struct gf_period *p = &a->sweep.plans[plan]->period;

	if (!gf_what_if_varies(&a->sweep.what) || gf_period_has(p, GF_PERIOD_EVERY))
		return 0;
	return gf_error_set(
		err, -EINVAL,
		"--jitter: want plans without a period, got %s of %zu steps in %s: leave "
		"--jitter out, or plan without --period",
		gf_period_name(p), p->steps, a->sweep.names[plan]);
}

/* Checks the plans, and changes what the options change of them. */
static int take_plans(struct arguments *a, struct gf_documents *d, struct gf_error *err)
{
	struct gf_sweep *s = &a->sweep;
	int rc = gf_sweep_plans(s, d, err);

	if (rc == 0 && alone(a) && s->nplans > 1)
		rc = gf_error_set(err, -EINVAL, "--%s: want one plan, got %zu", alone(a),
				  s->nplans);
	for (size_t i = 0; rc == 0 && i < s->nplans; i++)
		rc = check_period(a, i, err);
	for (size_t i = 0; rc == 0 && a->accumulate && i < s->nplans; i++) {
		rc = gf_shard_check_batches(&s->plans[i]->shard, a->accumulate, err);
		gf_model_accumulate(s->plans[i]->model, a->accumulate);
	}
	return rc;
}

static int read_documents(struct arguments *a, struct gf_documents *d, struct gf_error *err)
{
	GF_RELEASED(gf_text_release) struct gf_text notes = {0};
	int rc = 0;

	if (a->pairs)
		rc = gf_uneven_read_pairs(&a->uneven, a->pairs, &notes, err);
	gf_cli_warn_lines(&a->cli, notes.data);
	rc = rc ?: gf_cli_documents(&a->cli, kinds, true, gf_documents_take, d, err);
	rc = rc ?: gf_cli_document("topologies", a->costs, gf_documents_take_costs, d, err);
	if (rc == 0 && a->pairs && !a->costs && d->plan && d->plan->network)
		gf_cli_note(&a->cli, 0,
			    "the plan's costs were measured: if over these links, their slowness "
			    "counts twice (--costs takes others)");
	return rc ?: take_plans(a, d, err);
}

/* The first circumstances of a sweep: options and documents replace those that the plan was made
 * for. */
static struct gf_what_if first(const struct arguments *a, const struct gf_documents *d)
{
	struct gf_what_if w = a->sweep.what;
	GF_RELEASED(gf_text_release) struct gf_text notes = {0};

	w.timeline = a->plot != NULL;
	w.iterations = (double)a->iterations;
	w.slow = a->uneven.slow;
	w.nslow = a->uneven.nslow;
	w.slow_links = a->uneven.links;
	w.nslow_links = a->uneven.nlinks;
	gf_sweep_documents(&a->sweep, d, &w, &notes);
	gf_cli_warn_lines(&a->cli, notes.data);
	if (a->sweep.nranks)
		w.ranks = a->sweep.ranks[0];
	if (a->sweep.nbandwidths)
		w.bandwidth_bytes_per_s = a->sweep.bandwidths[0];
	return w;
}

/* All that is written of rows, of which r is the only one's replay; or NULL. Standard output comes
 * last: a failure leaves nothing there. */
static int report(const struct arguments *a, const struct gf_row *rows, size_t n,
		  const struct gf_replayed *r, const struct gf_what_if *w, struct gf_error *err)
{
	const struct gf_row *first = rows;
	struct gf_plot picture = {0};
	const enum gf_cli_form form = gf_cli_form(&a->cli, GF_FORM_JSON);
	GF_RELEASED(gf_text_release) struct gf_text out = {0};
	GF_FREED char *trace = NULL;
	bool table;
	int rc = 0;

	while (first->left_out)
		first++;
	trace = a->trace ? gf_outcome_trace_text(first->plan, &first->outcome, r) : NULL;
	if (trace)
		rc = gf_file_write(a->trace, trace, strlen(trace), err);
	if (rc == 0 && a->plot) {
		if (r)
			gf_steps_plot(first->plan, w, r, &picture);
		else
			gf_rows_plot(rows, n, w, &picture);
		rc = gf_plot_finish(&picture, a->plot, err);
	}
	if (rc < 0)
		return rc;
	table = gf_cli_form_is_table(form);
	if (r && table)
		gf_steps_table(first->plan, r, gf_cli_window(&a->cli, form), &out);
	else if (table)
		gf_rows_table(rows, n, gf_cli_window(&a->cli, form), &out);
	else
		gf_rows_json(rows, n, GF_SERIES_NONE, &out);
	rc = gf_cli_emit_lines(&a->cli, form, out.data, err);
	gf_text_release(&out);
	gf_rows_answer(rows, n, &out);
	if (rc == 0)
		gf_cli_warn_lines(&a->cli, out.data);
	return rc;
}

static int sweep(const struct arguments *a, const struct gf_documents *d, struct gf_error *err)
{
	struct gf_sweep s = a->sweep;
	struct gf_progress progress = {0};
	GF_RELEASED(gf_swept_release) struct gf_swept found = {0};
	struct gf_beyond beyond = {0};
	GF_RELEASED(gf_text_release) struct gf_text notes = {0};
	int rc;

	s.what = first(a, d);
	s.what.beyond = &beyond;
	gf_progress_start(&progress, &a->cli, "simulating");
	s.progress = gf_progress_report;
	s.progress_ctx = &progress;
	rc = gf_sweep_run(&s, &found, err);
	gf_progress_end(&progress);
	gf_beyond_text(&beyond, &notes);
	gf_cli_warn_lines(&a->cli, notes.data);
	return rc ?: report(a, found.rows, found.nrows, NULL, &s.what, err);
}

static int verify(const struct arguments *a, const struct gf_documents *d, struct gf_error *err)
{
	struct gf_what_if w = first(a, d);
	GF_RELEASED(gf_text_release) struct gf_text out = {0};
	return gf_prove_plan(d->plan, &w, &out, err) ?: gf_cli_emit(&a->cli, out.data, err);
}

/* Of a plan with a period, the outer exchange. */
static int replay(const struct arguments *a, const struct gf_documents *d, struct gf_error *err)
{
	struct gf_what_if w = first(a, d);
	struct gf_row row = {.plan = d->plan};
	GF_RELEASED(gf_text_release) struct gf_text notes = {0};
	GF_RELEASED(gf_replayed_release) struct gf_replayed r = {0};
	int rc;

	if (!gf_period_has(&d->plan->period, GF_PERIOD_EVERY))
		gf_cli_note(&a->cli, 0, "the steps are those of the outer exchange");
	gf_sim_keep_outer(d->plan);
	rc = gf_replay_plan(d->plan, &w, &r, &notes, err);
	gf_cli_warn_lines(&a->cli, notes.data);
	if (rc < 0 && rc != -E2BIG)
		return rc;
	row.outcome = rc ? r.model : r.outcome;
	if (rc == 0) /* the interval is the model's */
		row.outcome.low_s = row.outcome.high_s = 0;
	return report(a, &row, 1, rc ? NULL : &r, &w, err);
}

int main(int argc, char **argv)
{
	struct arguments a = {.sweep.what = {.runs = 1000, .seed = 1}};
	GF_RELEASED(gf_documents_release) struct gf_documents documents = {.several_plans = true};
	struct gf_error err = {""};
	int rc;

	gf_cli_parse(&command, argc, argv, &a);
	rc = gf_cli_try_outputs(&a.cli, &err);
	rc = rc ?: read_documents(&a, &documents, &err);
	if (rc == 0)
		rc = a.verify  ? verify(&a, &documents, &err)
		     : a.steps ? replay(&a, &documents, &err)
			       : sweep(&a, &documents, &err);
	free((void *)a.sweep.ranks);
	free((void *)a.sweep.bandwidths);
	free((void *)a.sweep.period_steps);
	gf_sweep_release(&a.sweep);
	gf_uneven_release(&a.uneven);
	return gf_cli_exit(&a.cli, rc, false, &err);
}
