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
#include "cli/cli.h"
#include "cli/human.h"
#include "cli/list.h"
#include "cli/progress.h"
#include "cli/table.h"
#include "doc/stream.h"
#include "sim/picture.h"
#include "sim/plots.h"
#include "sim/rows.h"
#include "sim/whatif.h"

static const char doc[] =
	"Run a plan in simulation: on other ranks, another topology or "
	"network, "
	"with slow ranks and jitter. Reads the plan from a file or standard "
	"input; prints one row of JSON per combination.\v"
	"Examples:\n"
	"  gf-sim plan.json\n"
	"  gf-sim plan.json --ranks 8,16,32,64 --csv\n"
	"  gf-sim plan.json --slow 3:1.5 --jitter 0.05 --runs 1000";

enum {
	KEY_RANKS = 256,
	KEY_TOPOLOGY,
	KEY_PROFILE,
	KEY_BANDWIDTH,
	KEY_SLOW,
	KEY_JITTER,
	KEY_RUNS,
	KEY_SEED,
	KEY_ITERATIONS,
	KEY_TRACE,
	KEY_PLOT,
	KEY_CSV,
	KEY_TABLE,
};

static const struct argp_option options[] = {
	{"ranks", KEY_RANKS, "LIST", 0, "other numbers of ranks, e.g. 8,16,32",
	 1},
	{"topology", KEY_TOPOLOGY, "FILE", 0,
	 "costs by closed forms on this topology (a path or a shipped name)",
	 1},
	{"profile", KEY_PROFILE, "FILE", 0,
	 "costs from this profile's measured network", 1},
	{"bandwidth", KEY_BANDWIDTH, "LIST", 0,
	 "bandwidths of the outermost level, e.g. 1Gb/s,10Gb/s", 1},
	{"slow", KEY_SLOW, "RANK:FACTOR", 0,
	 "this rank computes FACTOR times as long; may be repeated", 2},
	{"jitter", KEY_JITTER, "SHARE", 0,
	 "standard deviation of every rank's compute time, e.g. 0.05", 2},
	{"runs", KEY_RUNS, "N", 0, "iterations drawn under --jitter (1000)", 2},
	{"seed", KEY_SEED, "N", 0, "of the jitter (1)", 2},
	{"iterations", KEY_ITERATIONS, "N", 0,
	 "also the time of N iterations, pipelines filled and drained", 2},
	{"csv", KEY_CSV, NULL, 0, "comma-separated values with a heading", 3},
	{"table", KEY_TABLE, NULL, 0, "a table for people", 3},
	{"trace", KEY_TRACE, "FILE", 0,
	 "write the first iteration as a Chrome trace", 3},
	{"plot", KEY_PLOT, "FILE", 0,
	 "draw the iteration, or curves of a sweep, as SVG", 3},
	{0},
};

struct arguments {
	struct gf_cli cli;
	struct gf_what_if what;
	int *ranks;
	double *bandwidths;
	struct gf_slow_rank *slow;
	size_t nranks, nbandwidths, nslow;
	size_t ranks_capacity, bandwidths_capacity, slow_capacity;
	const char *topology, *profile, *trace, *plot;
	double iterations;
	const char *const *files;
	size_t nfiles;
	bool csv, table;
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

static void parse_slow(struct arguments *a, const char *arg,
		       struct argp_state *state)
{
	char *copy = gf_xstrdup(arg), *colon = strchr(copy, ':');
	struct gf_slow_rank *s;
	struct gf_error err;
	long long rank = 0;
	double factor = 1;
	int rc;

	if (colon)
		*colon++ = '\0';
	rc = colon ? gf_units_int(copy, 0, 1 << 24, &rank, &err)
		   : gf_error_set(&err, -EINVAL, "want RANK:FACTOR, got %s",
				  arg);
	if (rc == 0)
		rc = gf_units_real(colon, 1e-3, 1e6, &factor, &err);
	if (rc < 0)
		gf_cli_usage_error(state, "--slow", &err);
	s = gf_array_push(&a->slow, &a->nslow, &a->slow_capacity);
	*s = (struct gf_slow_rank){(int)rank, factor};
	free(copy);
}

static long long parse_whole(const char *arg, const char *option, long long low,
			     long long high, struct argp_state *state)
{
	struct gf_error err;
	long long value;

	if (gf_units_int(arg, low, high, &value, &err) < 0)
		gf_cli_usage_error(state, option, &err);
	return value;
}

static int parse_opt(int key, char *arg, struct argp_state *state)
{
	struct arguments *a = state->input;
	struct gf_error err;

	switch (key) {
	case ARGP_KEY_INIT:
		state->child_inputs[0] = &a->cli;
		a->what.runs = 1000;
		a->what.seed = 1;
		return 0;
	case KEY_RANKS:
		if (gf_cli_list(arg, add_ranks, a, &err) < 0)
			gf_cli_usage_error(state, "--ranks", &err);
		return 0;
	case KEY_TOPOLOGY:
		a->topology = arg;
		return 0;
	case KEY_PROFILE:
		a->profile = arg;
		return 0;
	case KEY_BANDWIDTH:
		if (gf_cli_list(arg, add_bandwidth, a, &err) < 0)
			gf_cli_usage_error(state, "--bandwidth", &err);
		return 0;
	case KEY_SLOW:
		parse_slow(a, arg, state);
		return 0;
	case KEY_JITTER:
		if (gf_units_real(arg, 0, 10, &a->what.jitter, &err) < 0)
			gf_cli_usage_error(state, "--jitter", &err);
		return 0;
	case KEY_RUNS:
		a->what.runs =
			(size_t)parse_whole(arg, "--runs", 1, 10000000, state);
		return 0;
	case KEY_SEED:
		a->what.seed = (uint64_t)parse_whole(arg, "--seed", 0,
						     INT64_MAX, state);
		return 0;
	case KEY_ITERATIONS:
		a->iterations = (double)parse_whole(arg, "--iterations", 1,
						    1LL << 52, state);
		return 0;
	case KEY_TRACE:
		a->trace = arg;
		return 0;
	case KEY_PLOT:
		a->plot = arg;
		return 0;
	case KEY_CSV:
		a->csv = true;
		return 0;
	case KEY_TABLE:
		a->table = true;
		return 0;
	case ARGP_KEY_ARGS:
		a->files = (const char *const *)&state->argv[state->next];
		a->nfiles = (size_t)(state->argc - state->next);
		return 0;
	case ARGP_KEY_END:
		if (a->csv && a->table)
			argp_error(state, "want one of --csv and --table");
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

static int read_documents(const struct arguments *a, struct gf_documents *d,
			  struct gf_error *err)
{
	char *path;
	size_t i;
	int rc = a->nfiles ? 0 : gf_documents_add(d, "-", err);

	for (i = 0; i < a->nfiles && rc == 0; i++)
		rc = gf_documents_add(d, a->files[i], err);
	if (rc == 0 && a->profile)
		rc = gf_documents_add(d, a->profile, err);
	if (rc == 0 && a->topology) {
		rc = gf_cli_share("topologies", a->topology, &path, err);
		if (rc == 0) {
			rc = gf_documents_add(d, path, err);
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
	return 0;
}

/* What the plan was made for gives way to what else was read. */
static void override(const struct arguments *a, const struct gf_documents *d,
		     struct gf_what_if *w)
{
	const struct gf_network *n = d->profile ? d->profile->network : NULL;

	if (d->topology) {
		w->levels = d->topology->levels;
		w->nlevels = d->topology->nlevels;
		if (!a->nranks && d->topology->ranks)
			w->ranks = d->topology->ranks;
		if (d->plan->network && !n && !a->cli.quiet)
			gf_cli_warn(&a->cli, "the topology's closed forms "
					     "replace the plan's measured "
					     "network");
	}
	if (n) {
		w->network = n;
		if (!a->nranks && n->ranks)
			w->ranks = n->ranks;
	}
	if (w->ranks && w->ranks != d->plan->ranks && !a->cli.quiet)
		gf_cli_warn(&a->cli,
			    "the plan is for %d ranks, simulated on %d",
			    d->plan->ranks, w->ranks);
}

static void print_table(const struct gf_outcome *outcomes, size_t n,
			struct gf_text *out)
{
	struct gf_table t = {0};
	struct gf_human h;
	size_t i;

	gf_table_row(&t, 6,
		     (const char *[]){"ranks", "bandwidth", "iteration",
				      "exposed", "speed-up", "efficiency"});
	for (i = 0; i < n; i++) {
		const struct gf_outcome *o = &outcomes[i];
		double rate = o->bandwidth_bytes_per_s;

		gf_table_begin(&t, 6);
		gf_table_cell(&t, "%d", o->ranks);
		gf_table_cell(&t, "%s",
			      rate > 0 ? gf_human_rate(rate, &h) : "-");
		gf_table_cell(&t, "%s", gf_human_time(o->iteration_s, &h));
		gf_table_cell(&t, "%s", gf_human_time(o->exposed_comm_s, &h));
		gf_table_cell(&t, "%.4g", o->speedup);
		gf_table_cell(&t, "%.1f %%", 100 * o->efficiency);
	}
	gf_table_print(&t, out);
	gf_table_release(&t);
}

/* Trace, plot, rows: what can fail without a trace of it comes last. */
static int report(const struct arguments *a, const struct gf_plan *p,
		  const struct gf_outcome *outcomes, size_t n,
		  struct gf_error *err)
{
	struct gf_row_choice choice = {
		.bandwidth = a->nbandwidths > 0,
		.percentiles = a->what.jitter > 0,
		.samples = p->model->batch_per_rank > 0,
		.iterations = a->iterations,
	};
	struct gf_text out = {0};
	char *text;
	int rc = 0;

	if (a->trace) {
		text = gf_outcome_trace_text(p, &outcomes[0]);
		rc = gf_file_write(a->trace, text, strlen(text), err);
		free(text);
	}
	if (rc == 0 && a->plot) {
		rc = gf_outcomes_svg(p, outcomes, n, &text, err);
		if (rc == 0) {
			rc = gf_file_write(a->plot, text, strlen(text), err);
			free(text);
		}
	}
	if (a->table)
		print_table(outcomes, n, &out);
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
	size_t n = (a->nranks ? a->nranks : 1) * nb, i;
	struct gf_outcome *outcomes = gf_xcalloc(n, sizeof(*outcomes));
	int rc = 0;

	w.slow = a->slow;
	w.nslow = a->nslow;
	override(a, d, &w);
	gf_progress_start(&progress, &a->cli, "simulating");
	for (i = 0; i < n && rc == 0; i++) {
		if (a->nranks)
			w.ranks = a->ranks[i / nb];
		if (a->nbandwidths)
			w.bandwidth_bytes_per_s = a->bandwidths[i % nb];
		rc = gf_what_if(d->plan, &w, &outcomes[i], err);
		gf_progress_at(&progress, (double)(i + 1) / (double)n, NULL);
	}
	gf_progress_end(&progress);
	if (rc == 0)
		rc = report(a, d->plan, outcomes, n, err);
	for (i = 0; i < n; i++)
		gf_outcome_release(&outcomes[i]);
	free(outcomes);
	return rc;
}

int main(int argc, char **argv)
{
	static const struct argp argp = {
		options, parse_opt, "[PLAN] [FILE...]", doc, gf_cli_children,
		NULL,    NULL};
	struct arguments a = {0};
	struct gf_documents documents = {0};
	struct gf_error err = {""};
	int rc;

	gf_cli_parse(&a.cli, "gf-sim", &argp, argc, argv, &a);
	rc = read_documents(&a, &documents, &err);
	if (rc == 0)
		rc = sweep(&a, &documents, &err);
	gf_documents_release(&documents);
	free(a.ranks);
	free(a.bandwidths);
	free(a.slow);
	return gf_cli_exit(&a.cli, rc, &err);
}
