/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/file.h"
#include "base/heap.h"
#include "base/text.h"
#include "base/units.h"
#include "cli/command.h"
#include "cli/list.h"
#include "cli/progress.h"
#include "cli/input.h"
#include "cli/share.h"
#include "doc/stream.h"
#include "planner/stragglers.h"
#include "sim/picture.h"
#include "sim/plots.h"
#include "sim/prove.h"
#include "sim/rows.h"
#include "sim/steps.h"
#include "sim/uneven.h"
#include "sim/whatif.h"

static const char help[] =
	"Run a plan in simulation: on other ranks, another topology or "
	"network, with slow ranks and jitter. Reads the plan from a file or "
	"standard input; prints one row of JSON per combination.\v"
	"Examples:\n"
	"  gf-sim plan.json\n"
	"  gf-sim plan.json --ranks 8,16,32,64 --csv\n"
	"  gf-sim plan.json --slow 3:1.5 --jitter 0.05 --runs 1000";

struct arguments {
	struct gf_cli cli;
	struct gf_what_if what;
	int *ranks;
	double *bandwidths;
	struct gf_uneven uneven;
	size_t nranks, nbandwidths;
	size_t ranks_capacity, bandwidths_capacity;
	const char *topology, *profile, *pairs, *run, *trace, *plot;
	int plot_columns;
	size_t iterations, accumulate;
	bool csv, table, steps, verify;
};

static int add_ranks(void *ctx, const char *text, struct gf_error *err)
{
	struct arguments *a = ctx;
	long long value;
	int rc = gf_units_int(text, 1, 1 << 24, &value, err);

	if (rc == 0)
		*gf_array_push(&a->ranks, &a->nranks, &a->ranks_capacity) =
			(int)value;
	return rc;
}

static int store_ranks(const char *arg, void *to, struct gf_error *err)
{
	return gf_cli_list_once(arg, add_ranks, to, err);
}

static int add_bandwidth(void *ctx, const char *text, struct gf_error *err)
{
	struct arguments *a = ctx;
	double value;
	int rc = gf_units_rate(text, &value, err);

	if (rc == 0)
		*gf_array_push(&a->bandwidths, &a->nbandwidths,
			       &a->bandwidths_capacity) = value;
	return rc;
}

static int store_bandwidths(const char *arg, void *to, struct gf_error *err)
{
	return gf_cli_list_once(arg, add_bandwidth, to, err);
}

static int store_slow(const char *arg, void *to, struct gf_error *err)
{
	struct arguments *a = to;

	return gf_uneven_add_slow(&a->uneven, arg, err);
}

static int add_link(void *ctx, const char *text, struct gf_error *err)
{
	struct arguments *a = ctx;

	return gf_uneven_add_link(&a->uneven, text, err);
}

static int store_links(const char *arg, void *to, struct gf_error *err)
{
	return gf_cli_list(arg, add_link, to, err);
}

#define AT(field) offsetof(struct arguments, field)
#define WHOLE     0 /* the argument itself, for lists */

#pragma GCC diagnostic ignored "-Wmissing-field-initializers" /* clang */
static const struct gf_setting settings[] = {
	{"ranks", "LIST", 1, GF_SETTING_OWN, WHOLE,
	 "simulate these numbers of ranks, e.g. 8,16,32", .store = store_ranks},
	{"topology", "FILE", 1, GF_SETTING_TEXT, AT(topology),
	 "take costs from this topology (a path or a shipped name)",
	 .share = "topologies"},
	{"profile", "FILE", 1, GF_SETTING_TEXT, AT(profile),
	 "take costs from this profile's measured network"},
	{"bandwidth", "LIST", 1, GF_SETTING_OWN, WHOLE,
	 "simulate these bandwidths of the outermost level, e.g. "
	 "1Gb/s,10Gb/s",
	 .store = store_bandwidths},
	{"accumulate", "N", 1, GF_SETTING_WHOLE, AT(accumulate),
	 "let a step have N micro-batches, whose sum is exchanged", 1, 1e9},
	{"slow", "RANK:FACTOR", 2, GF_SETTING_OWN, WHOLE,
	 "let this rank compute FACTOR times as long; may be repeated",
	 .store = store_slow, .repeats = true},
	{"slow-link", "LIST", 2, GF_SETTING_OWN, WHOLE,
	 "let links have 1/FACTOR of their bandwidth: RANK:FACTOR for the "
	 "narrowest on that rank's way to others, RANK:FACTOR@LEVEL for "
	 "another",
	 .store = store_links, .repeats = true},
	{"pairs", "FILE", 2, GF_SETTING_TEXT, AT(pairs),
	 "rows of gf-profile --pairs: the links of slow hosts are slow"},
	{"jitter", "SHARE", 2, GF_SETTING_REAL, AT(what.jitter),
	 "standard deviation of every rank's compute time, e.g. 0.05", 0, 10},
	{"runs", "N", 2, GF_SETTING_WHOLE, AT(what.runs),
	 "draw N iterations with --jitter (1000)", 1, 1e7},
	{"seed", "N", 2, GF_SETTING_WHOLE, AT(what.seed),
	 "seed of the jitter (1)", 0, 9e18},
	{"iterations", "N", 2, GF_SETTING_WHOLE, AT(iterations),
	 "also print the time of N iterations, with a pipeline's start and "
	 "end",
	 1, 1e15},
	{"steps", NULL, 3, GF_SETTING_FLAG, AT(steps),
	 "replay the schedules step by step on the topology"},
	{"verify", NULL, 3, GF_SETTING_FLAG, AT(verify),
	 "prove that the schedules of all ranks add every contribution once, "
	 "without races and deadlocks"},
	{"without-stragglers", "TRACE", 3, GF_SETTING_TEXT, AT(run),
	 "what the plan's run, of which this is the trace, would take without "
	 "its slow ranks, and which of them costs most"},
	{"csv", NULL, 3, GF_SETTING_FLAG, AT(csv),
	 "print comma-separated values with a heading"},
	{"table", NULL, 3, GF_SETTING_FLAG, AT(table),
	 "print a table for people"},
	{"trace", "FILE", 3, GF_SETTING_TEXT, AT(trace),
	 "write the first iteration as a Chrome trace"},
	{"plot", "FILE", 3, GF_SETTING_OWN, AT(plot),
	 "draw the iteration, or curves of a sweep, to FILE.svg, .pdf or .png; "
	 "FILE.csv: the numbers",
	 .store = gf_plot_store},
	{"plot-columns", "N", 3, GF_SETTING_INT, AT(plot_columns),
	 "width of the picture in columns of a paper", 1, 2},
};

static const struct gf_setting_rule rules[] = {
	{"runs seed", "jitter", NULL},
	{"csv", NULL, "table"},
	{"plot-columns", "plot", NULL},
	{"steps", NULL, "jitter iterations"},
	{"without-stragglers", NULL,
	 "accumulate steps verify ranks topology profile bandwidth slow "
	 "slow-link pairs "
	 "jitter iterations csv trace plot"},
	{"verify", NULL,
	 "steps slow slow-link pairs jitter iterations csv table trace plot"},
};

static int check(void *arguments, struct gf_error *err)
{
	const struct arguments *a = arguments;

	if ((a->steps || a->verify) && (a->nranks > 1 || a->nbandwidths > 1))
		return gf_error_set(err, -EINVAL,
				    "--%s: want one number of ranks and one "
				    "bandwidth, got a list",
				    a->steps ? "steps" : "verify");
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
	.arguments = "[PLAN] [FILE...]",
	.help = help,
	.settings = settings,
	.nsettings = GF_ARRAY_LENGTH(settings),
	.groups = groups,
	.rules = rules,
	.nrules = GF_ARRAY_LENGTH(rules),
	.check = check,
};

/* Adds what was measured to what was asked for. */
static int read_pairs(struct arguments *a, struct gf_error *err)
{
	struct gf_uneven *u = &a->uneven;
	size_t size = 0, i = u->nlinks;
	char *text = NULL;
	int rc = gf_file_read(a->pairs, &text, &size, err);

	if (rc == 0)
		rc = gf_uneven_read_pairs(u, text, size, a->pairs, err);
	for (; rc == 0 && i < u->nlinks; i++)
		gf_cli_note(&a->cli, 0,
			    "slow: the link of rank %d has 1/%.3g of the "
			    "median bandwidth out, 1/%.3g in",
			    u->links[i].rank, u->links[i].out, u->links[i].in);
	free(text);
	return rc;
}

static int read_documents(const struct arguments *a, struct gf_documents *d,
			  struct gf_error *err)
{
	static const char *const kinds[] = {"topologies", "profiles", NULL};
	char *path;
	int rc = gf_cli_documents(&a->cli, kinds, true, gf_documents_take, d,
				  err);

	if (rc == 0 && a->profile)
		rc = gf_documents_add_of(d, a->profile, "gf-profile", err);
	if (rc == 0 && a->profile && !d->profile->network)
		rc = gf_error_set(err, -EINVAL,
				  "%s: want a network, found none", a->profile);
	if (rc == 0 && a->topology) {
		rc = gf_cli_share("topologies", a->topology, &path, err);
		if (rc == 0) {
			rc = gf_documents_add_of(d, path, "gf-topology", err);
			free(path);
		}
	}
	if (rc < 0)
		return rc;
	if (!d->plan)
		return gf_error_set(err, -EINVAL, "want a plan, found none");
	if (d->plan->rule)
		return gf_error_set(err, -EINVAL,
				    "want a plan with messages, got a rule "
				    "(plan a model and its ranks first)");
	if (a->accumulate)
		gf_model_accumulate(d->plan->model, a->accumulate);
	return 0;
}

/* What the plan was made for gives way to what else was read. */
static void use(const struct arguments *a, const struct gf_documents *d,
		struct gf_what_if *w)
{
	const struct gf_network *n = d->profile ? d->profile->network : NULL;

	w->timeline = a->plot != NULL;
	w->slow = a->uneven.slow;
	w->nslow = a->uneven.nslow;
	w->slow_links = a->uneven.links;
	w->nslow_links = a->uneven.nlinks;
	if (d->topology) {
		w->levels = d->topology->levels;
		w->nlevels = d->topology->nlevels;
		if (!a->nranks && d->topology->ranks)
			w->ranks = d->topology->ranks;
		if (d->plan->network && !n)
			gf_cli_note(&a->cli, 0,
				    "costs on the topology replace the plan's "
				    "measured network");
	}
	if (n) {
		w->network = n;
		if (!a->nranks && n->ranks)
			w->ranks = n->ranks;
		if (d->topology)
			gf_cli_note(
				&a->cli, 0,
				"costs come from the profile's network, and "
				"from the topology where it has none");
	}
	if (w->ranks && w->ranks != d->plan->ranks)
		gf_cli_note(&a->cli, 0,
			    "the plan is for %d ranks, simulated on %d",
			    d->plan->ranks, w->ranks);
}

/* Trace, which is given away, and picture, where they are asked for. */
static int draw(const struct arguments *a, const struct gf_plan *p, char *trace,
		const struct gf_what_if *w, const struct gf_outcome *outcomes,
		size_t n, struct gf_error *err)
{
	struct gf_plot picture = {0};
	int rc = trace ? gf_file_write(a->trace, trace, strlen(trace), err) : 0;

	free(trace);
	if (rc < 0 || !a->plot)
		return rc;
	gf_outcomes_plot(p, w, outcomes, n, &picture);
	return gf_plot_finish(&picture, a->plot, a->plot_columns, err);
}

/* Trace, plot, rows: what can fail without a trace of it comes last. */
static int report(const struct arguments *a, const struct gf_plan *p,
		  const struct gf_what_if *w, const struct gf_outcome *outcomes,
		  size_t n, struct gf_error *err)
{
	struct gf_row_choice choice = {
		.bandwidth = a->nbandwidths > 0,
		.percentiles = a->what.jitter > 0,
		.samples = p->model->batch_per_rank > 0,
		.iterations = (double)a->iterations,
	};
	struct gf_text out = {0};
	char *trace = a->trace ? gf_outcome_trace_text(p, outcomes) : NULL;
	int rc = draw(a, p, trace, w, outcomes, n, err);

	if (a->table)
		gf_outcomes_table(outcomes, n, &out);
	else if (a->csv)
		gf_outcomes_csv(p, outcomes, n, &choice, &out);
	else
		gf_outcomes_json(p, outcomes, n, &choice, &out);
	if (rc == 0)
		rc = gf_cli_emit(&a->cli, out.data, err);
	gf_text_release(&out);
	return rc;
}

static int sweep(const struct arguments *a, const struct gf_documents *d,
		 struct gf_error *err)
{
	struct gf_what_if w = a->what;
	struct gf_progress progress = {0};
	size_t nb = a->nbandwidths ? a->nbandwidths : 1;
	size_t n = (a->nranks ? a->nranks : 1) * nb, rows = 0, i;
	struct gf_outcome *outcomes = gf_xcalloc(n, sizeof(*outcomes));
	int rc = 0;

	use(a, d, &w);
	gf_progress_start(&progress, &a->cli, "simulating");
	for (i = 0; i < n && rc == 0; i++) {
		if (a->nranks)
			w.ranks = a->ranks[i / nb];
		if (a->nbandwidths)
			w.bandwidth_bytes_per_s = a->bandwidths[i % nb];
		rc = gf_what_if(d->plan, &w, &outcomes[rows], err);
		rows += rc == 0;
		/* what fits is printed; if nothing does, the last reason is
		 * the answer */
		if ((rc == -EINVAL || rc == -ENOTSUP) && (rows || i + 1 < n)) {
			gf_cli_note(&a->cli, 0, "%d ranks are left out: %s",
				    w.ranks ? w.ranks : d->plan->ranks,
				    err->text);
			rc = 0;
		}
		gf_progress_at(&progress, (double)(i + 1) / (double)n, NULL);
	}
	gf_progress_end(&progress);
	if (rc == 0)
		rc = report(a, d->plan, &w, outcomes, rows, err);
	if (rc == 0 && rows < n)
		rc = gf_error_set(err, 1, "%zu of %zu rows are left out",
				  n - rows, n);
	for (i = 0; i < rows; i++)
		gf_outcome_release(&outcomes[i]);
	free(outcomes);
	return rc;
}

/* Everything that is drawn or printed of a replay. */
static int report_steps(const struct arguments *a, const struct gf_plan *p,
			const struct gf_what_if *w, const struct gf_replayed *r,
			struct gf_error *err)
{
	struct gf_text out = {0};
	char *trace = a->trace ? gf_steps_trace_text(p, r) : NULL;
	int rc = draw(a, p, trace, w, &r->outcome, 1, err);

	if (a->table)
		gf_steps_table(p, r, &out);
	else if (a->csv)
		gf_steps_csv(r, &out);
	else
		gf_steps_json(p, r, &out);
	if (rc == 0)
		rc = gf_cli_emit(&a->cli, out.data, err);
	gf_text_release(&out);
	return rc;
}

/* One set of circumstances. */
static struct gf_what_if single(const struct arguments *a,
				const struct gf_documents *d)
{
	struct gf_what_if w = a->what;

	use(a, d, &w);
	if (a->nranks)
		w.ranks = a->ranks[0];
	if (a->nbandwidths)
		w.bandwidth_bytes_per_s = a->bandwidths[0];
	return w;
}

static int verify(const struct arguments *a, const struct gf_documents *d,
		  struct gf_error *err)
{
	struct gf_what_if w = single(a, d);
	struct gf_text out = {0};
	int rc = gf_prove_plan(d->plan, &w, &out, err);

	if (rc == 0)
		rc = gf_cli_emit(&a->cli, out.data, err);
	gf_text_release(&out);
	return rc;
}

static int without_stragglers(const struct arguments *a,
			      const struct gf_plan *p, struct gf_error *err)
{
	struct gf_stragglers found;
	struct gf_text out = {0};
	int rc = gf_stragglers_find(p, a->run, &found, err);

	if (rc < 0)
		return rc;
	(a->table ? gf_stragglers_table : gf_stragglers_json)(&found, &out);
	rc = gf_cli_emit(&a->cli, out.data, err);
	gf_stragglers_release(&found);
	gf_text_release(&out);
	return rc;
}

static int replay(const struct arguments *a, const struct gf_documents *d,
		  struct gf_error *err)
{
	struct gf_what_if w = single(a, d);
	struct gf_replayed r;
	struct gf_text notes = {0};
	int rc;

	rc = gf_replay_plan(d->plan, &w, &r, &notes, err);
	gf_cli_warn_lines(&a->cli, notes.data);
	gf_text_release(&notes);
	if (rc == -E2BIG) {
		gf_cli_note(
			&a->cli, 0,
			"more than %g steps are not replayed: these are the "
			"closed forms' times",
			GF_REPLAY_STEPS_MOST);
		rc = report(a, d->plan, &w, &r.model, 1, err);
	} else if (rc == 0) {
		rc = report_steps(a, d->plan, &w, &r, err);
	} else {
		return rc;
	}
	gf_replayed_release(&r);
	return rc;
}

int main(int argc, char **argv)
{
	struct arguments a = {.what = {.runs = 1000, .seed = 1}};
	struct gf_documents documents = {0};
	struct gf_error err = {""};
	int rc;

	gf_cli_parse(&command, argc, argv, &a);
	rc = a.pairs ? read_pairs(&a, &err) : 0;
	rc = rc ? rc : read_documents(&a, &documents, &err);
	if (rc == 0)
		rc = a.verify  ? verify(&a, &documents, &err)
		     : a.run   ? without_stragglers(&a, documents.plan, &err)
		     : a.steps ? replay(&a, &documents, &err)
			       : sweep(&a, &documents, &err);
	gf_documents_release(&documents);
	free(a.ranks);
	free(a.bandwidths);
	gf_uneven_release(&a.uneven);
	return gf_cli_exit_rank(&a.cli, rc, false, &err);
}
