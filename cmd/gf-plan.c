/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdbool.h>

#include "base/array.h"
#include "base/heap.h"
#include "base/text.h"
#include "cli/command.h"
#include "collectives/codecs/codec.h"
#include "collectives/algorithm.h"
#include "cost/preset.h"
#include "documents/stream.h"
#include "planner/compare.h"
#include "settings/emit.h"
#include "planner/make.h"
#include "planner/policies/policy.h"
#include "planner/planning.h"
#include "planner/summary.h"
#include "planner/systems.h"
#include "simulator/sweep_plots.h"

static const char help[] =
	"Decide how a model's gradients are exchanged on a cluster: which tensors form a message, "
	"when the message may start, and which algorithm and codec reduce it. Reads topologies and "
	"profiles from files or, without any, from standard input; prints a plan.\vExamples:\n"
	"  gf-topo | gf-plan\n"
	"  gf-topo | gf-profile --model resnet20 | gf-plan > plan.json\n"
	"  gf-plan --compare topo.json prof.json\n"
	"  gf-plan --policy optimal --lanes 2 prof.json";

static const char *const kinds[] = {"topologies", "models", "profiles", NULL};

struct arguments {
	struct gf_cli cli;
	struct gf_request request;
	struct gf_axes axes;
	const char **codecs, **outer_codecs;
	const char *emit, *refine, *plot, *model;
	size_t batch, accumulate;
	struct gf_rates rates;
	struct gf_compare_over over; /* the axes of the comparison */
	bool compare, explain, list;
};

#define AT(field)  offsetof(struct arguments, field)
#define COUNT_MOST (1 << 20)

static const char *const automatic[] = {"auto", NULL};
static const char *const servers[] = {"0", "1", NULL};

#pragma GCC diagnostic ignored "-Wmissing-field-initializers" /* clang */
static const struct gf_setting settings[] = {
	{"model", "NAME", 1, GF_SETTING_TEXT, AT(model),
	 "estimate times of this model (a path or a shipped name)", .share = "models",
	 .often = true},
	{"gpu", "NAME", 1, GF_SETTING_TEXT, AT(rates.gpu),
	 "estimate by this GPU's data sheet (the topology's GPU)",
	 .from = {{gf_presets, sizeof(*gf_presets)}}, .often = true},
	{"precision", "NAME", 1, GF_SETTING_CHOICE, AT(rates.precision),
	 "the arithmetic of that GPU (tf32, else f32)", .names = gf_precision_names},
	{"flops", "RATE", 1, GF_SETTING_FLOPS, AT(rates.flops_per_s),
	 "operations per second and rank for the estimate (1e12)", 1, 1e30},
	{"batch", "N", 1, GF_SETTING_WHOLE, AT(batch), "samples per rank for the estimate (32)", 1,
	 COUNT_MOST},
	{"ranks", "P", 1, GF_SETTING_INT, AT(request.fabric.ranks),
	 "plan for P ranks (else those of the profile or topology)", 1, COUNT_MOST, .often = true},
	{"accumulate", "N", 1, GF_SETTING_WHOLE, AT(accumulate),
	 "plan for steps of N micro-batches, whose sum is exchanged", 1, COUNT_MOST},
	{"refine", "FILE", 1, GF_SETTING_TEXT, AT(refine),
	 "plan again from the trace of a run of the plan"},
	{"compare", NULL, 2, GF_SETTING_FLAG, AT(compare),
	 "print a table of all policies, best first", .often = true},
	{"over", "LIST", 2, GF_SETTING_OWN, AT(over),
	 "compare policies, systems, codecs, selections, algorithms, lanes, staleness, threshold, "
	 "periods, densities, shards, units, or several of them; A:B: each of A with each of B",
	 .names = gf_compare_names, .store = gf_compare_store, .often = true},
	{"break-even", NULL, 2, GF_SETTING_FLAG, AT(over.pays),
	 "also say below which bandwidth, and from how many ranks on, a row is faster than dense "
	 "f32 gradients"},
	GF_SETTING_TABLE(2),
	{"explain", NULL, 2, GF_SETTING_FLAG, AT(explain),
	 "print a chart of a step, and the reason of each tensor's type"},
	{"emit", "TARGET", 2, GF_SETTING_TEXT, AT(emit),
	 "print settings for another program; --list says for which", .from = {{gf_emitters}},
	 .often = true},
	{"plot", "FILE", 2, GF_SETTING_OWN, AT(plot),
	 "also draw a step, or the comparison, to FILE.svg, .pdf or .png; FILE.csv: the "
	 "numbers",
	 .store = gf_plot_store, .written = true},
	{"list", NULL, 2, GF_SETTING_FLAG, AT(list),
	 "list models, topologies, policies and all else that has a name; with arguments, the "
	 "lists of these names"},
	{"policy", "NAME", 3, GF_SETTING_TEXT, AT(request.policy),
	 "cut tensors into messages by this policy (auto: the best of all)", .names = automatic,
	 .from = {{gf_policies}}, .often = true},
	{"system", "NAME", 3, GF_SETTING_TEXT, AT(request.system),
	 "set every axis as a published system does", .from = {{gf_systems, sizeof(*gf_systems)}}},
	{"lanes", "K", 4, GF_SETTING_INT, AT(request.lanes), "keep at most K messages in flight", 1,
	 COUNT_MOST},
	{"tolerance", "SHARE", 4, GF_SETTING_OWN, AT(request),
	 "take a plan with fewer lanes or messages if it is slower by at most this share, e.g. 1% "
	 "(0.5%, or the doubt of the fits)",
	 .store = gf_request_tolerance},
	{"threshold", "BYTES", 4, GF_SETTING_OWN, AT(request),
	 "theta of lazy all-reduce, e.g. 4M (else the best is searched)",
	 .store = gf_request_threshold},
	{"max-messages", "N", 4, GF_SETTING_WHOLE, AT(request.max_messages),
	 "make at most N messages (else as many as are best)", 1, COUNT_MOST},
	{"algorithms", "NAME", 4, GF_SETTING_TEXT, AT(request.algorithm),
	 "reduce every message by this algorithm (else the cheapest)", .from = {{gf_algorithms}}},
	{"factors", "LIST", 4, GF_SETTING_OWN, AT(axes),
	 "decompose the ranks, innermost first, e.g. 4,16,3 or 4:shm,16:ring",
	 .store = gf_axes_read_factors},
	{"codecs", "LIST", 4, GF_SETTING_OWN, AT(codecs),
	 "codecs that a message may use, e.g. f32,f16 (else f32); or your own: "
	 "mine:bits=1.5,encode=3GB/s,decode=6GB/s",
	 .store = gf_cli_split_store, .from = {{gf_codecs, sizeof(*gf_codecs)}}, .often = true},
	{"servers", "N", 4, GF_SETTING_INT, AT(axes.servers),
	 "add N ranks that only serve parameters (0 or 1)", 0, 1, .names = servers},
	{"release", "WHEN", 4, GF_SETTING_CHOICE, AT(axes.release),
	 "send messages when their tensors are ready, or at backward_end",
	 .names = gf_release_names},
	{"max-error", "E", 4, GF_SETTING_REAL, AT(request.max_error),
	 "take algorithms and codecs whose rounding changes mean gradients by at most this share "
	 "of "
	 "them (rms), e.g. 1e-3",
	 1e-9, 1},
	{"reproducible", NULL, 4, GF_SETTING_FLAG, AT(request.reproducible),
	 "add gradients in one order, whatever messages they are in"},
	{"staleness", "K[:KEYS]", 5, GF_SETTING_ENTRY,
	 .help = "apply the gradients of K - 1 steps before (1: synchronous)",
	 .keys = &gf_axes_staleness_keys, .offset2 = AT(axes)},
	{"selection", "NAME[:KEYS]", 5, GF_SETTING_ENTRY, AT(axes.selection),
	 "gradients that are sent (gf-plan --list); or your own: mine:density=0.004,select=2GB/s",
	 .from = {{gf_select_plans}}, .keys_offset = AT(axes.selection_keys),
	 .own_offset = AT(axes.own_selection), .often = true},
	{"period", "NAME[:KEYS]", 6, GF_SETTING_ENTRY, AT(axes.period),
	 "how often groups of ranks exchange (gf-plan --list)", .from = {{gf_period_plans}},
	 .keys_offset = AT(axes.period_keys), .keys = &gf_axes_period_keys, .offset2 = AT(axes)},
	{"shard", "NAME[:KEYS]", 7, GF_SETTING_ENTRY, AT(axes.shard),
	 "what a rank keeps of parameters, gradients and optimiser state (gf-plan --list)",
	 .from = {{gf_shard_plans}}, .keys = &gf_axes_shard_keys, .offset2 = AT(axes),
	 .often = true},
	{"memory", "SIZE[:KEYS]", 7, GF_SETTING_ENTRY,
	 .help = "find a plan for ranks that have so much memory, e.g. 80GB",
	 .keys = &gf_axes_memory_keys, .offset2 = AT(axes)},
};

/* From this group on, options choose what a plan decides. */
#define DECIDES 3

/* In the order of use, as the options are. */
static const char *const groups[] = {
	"What is planned for:",
	"What is printed:",
	"The method:",
	"The schedule and the wire:",
	"Which gradients are sent, and when they are applied:",
	"How often groups exchange:",
	"What a rank keeps:",
};

static const struct gf_setting_rule rules[] = {
	{"list", NULL, "*"},
	{"over break-even", "compare", NULL},
	{"compare", NULL, "explain emit max-messages"},
	{"max-messages", NULL, "emit"},
	{"explain table", NULL, "explain emit table"},
	{"gpu precision", NULL, "flops"},
};

/* Described codecs stand beside the others where codecs are compared. */
static bool all_described(const char *const *codecs)
{
	const struct gf_codec *c;

	for (; *codecs; codecs++)
		if (!(c = gf_codec_find(*codecs)) || !gf_codec_is_described(c))
			return false;
	return true;
}

/* Did the user choose on that axis? Keys alone are for all entries that have them. */
static bool chosen(const struct arguments *a, unsigned axis)
{
	switch (axis) {
	case GF_COMPARE_SELECTIONS:
		return a->axes.selection >= 0;
	case GF_COMPARE_PERIODS:
		return a->axes.period >= 0;
	case GF_COMPARE_SHARDS:
		return a->axes.shard >= 0;
	case GF_COMPARE_UNITS:
		return a->axes.shard_units != NULL;
	case GF_COMPARE_STALENESS:
		return a->axes.staleness > 0;
	case GF_COMPARE_CODECS:
		return a->codecs && !all_described(a->codecs);
	case GF_COMPARE_ALGORITHMS:
		return a->request.algorithm;
	case GF_COMPARE_DENSITIES:
		return gf_axes_asked(&a->axes, gf_compare_option(axis));
	default:
		return gf_cli_given(&a->cli, gf_compare_option(axis));
	}
}

/* An axis that is compared leaves nothing to choose. */
static int check(void *arguments, struct gf_error *err)
{
	const struct arguments *a = arguments;

	for (unsigned axis = 0; a->compare && axis < GF_COMPARE_AXES; axis++)
		if (a->over.axes >> axis & 1 && chosen(a, axis))
			return gf_error_set(err, -EINVAL,
					    "--compare goes without --%s%s where %s are compared%s",
					    axis == GF_COMPARE_DENSITIES ? "selection " : "",
					    gf_compare_option(axis), gf_compare_names[axis],
					    axis == GF_COMPARE_CODECS
						    ? ", but for codecs of your own; --over "
						      "codecs=f32,f16 chooses of the others"
						    : "");
	return 0;
}

/* What the job has now, as the caller says it; NULL: DDP's default. */
static const struct gf_plan *given_plan(const struct gf_planning *s)
{
	const struct gf_plan *p = s->documents.plan;

	return p && !p->rule ? p : NULL;
}

static int compare(const struct arguments *a, struct gf_planning *s, struct gf_error *err)
{
	GF_RELEASED(gf_comparison_release) struct gf_comparison c = {0};
	GF_RELEASED(gf_text_release) struct gf_text out = {0};
	struct gf_plot picture = {0};
	struct gf_progress progress = {0};
	struct gf_compare_over over = a->over;
	const enum gf_cli_form form = gf_cli_form(&a->cli, GF_FORM_TEXT);
	int rc;

	over.progress = gf_progress_report;
	over.progress_ctx = &progress;
	gf_progress_start(&progress, &a->cli, "comparing");
	gf_request_assume_ranks(&s->request, &s->open);
	if (s->open.length)
		gf_text_addf(&s->notes, "by default: %s\n", s->open.data);
	rc = gf_request_compare(&s->request, &over, given_plan(s), &c, &s->notes, err);
	gf_progress_end(&progress);
	if (rc < 0)
		return rc;
	gf_comparison_text(&c, !gf_cli_form_is_table(form), gf_cli_window(&a->cli, form), &out);
	if (!a->cli.quiet)
		gf_comparison_answer(&c, &s->notes);
	if (a->plot) {
		gf_comparison_plot(&s->request, &c, &picture);
		rc = gf_plot_finish(&picture, a->plot, err);
	}
	return rc ?: gf_cli_emit_lines(&a->cli, form, out.data, err);
}

/* A plan that was read and is not to be changed is used as it is. */
static bool as_it_is(const struct arguments *a, const struct gf_documents *d)
{
	return d->plan && !d->profile && !d->topology && !d->model && !a->refine &&
	       !a->accumulate && !a->request.fabric.ranks && !a->request.wishes;
}

static int plan(const struct arguments *a, struct gf_planning *s, struct gf_error *err)
{
	GF_RELEASED(gf_text_release) struct gf_text out = {0};
	GF_RELEASED(gf_plan_release) struct gf_plan p = {0};
	struct gf_plot picture = {0};
	const enum gf_cli_form form = gf_cli_form(&a->cli, GF_FORM_JSON);
	const struct gf_plan *given = as_it_is(a, &s->documents) ? s->documents.plan : NULL;
	GF_FREED char *text = NULL;
	int rc = 0;

	if (a->emit)
		rc = gf_request_emit(&s->request, given, a->emit, &p, &out, &s->notes, err);
	else if (given) {
		/* what --explain tries is of its kind */
		gf_request_follow(&s->request, &s->axes, given, s->codecs);
		gf_plan_copy(&p, given);
	} else
		rc = gf_request_plan(&s->request, &p, &s->notes, err);
	if (rc)
		return rc;
	if (a->refine)
		gf_refine_compare(s->documents.plan, &s->refined.measured, &p, &s->notes);
	free(p.producer);
	p.producer = gf_xstrdup("gf-plan " GF_VERSION);
	if (a->plot && !p.rule && !p.nmessages)
		rc = gf_error_set(err, -EINVAL, "--plot: want a plan, got settings by size");
	else if (a->plot) {
		rc = gf_plan_plot(&p, &picture, err);
		rc = rc ?: gf_plot_finish(&picture, a->plot, err);
	}
	if (rc == 0 && a->explain)
		rc = gf_plan_explain(&s->request, &p, gf_cli_width(&a->cli), &out, err);
	if (!out.length && form != GF_FORM_JSON)
		gf_plan_table(&p, gf_cli_window(&a->cli, form), &out);
	if (!a->cli.quiet && (p.rule || p.nmessages))
		gf_plan_summary(&p, s->open.data, &s->notes);
	if (!a->cli.quiet && !given && !a->emit && !a->refine)
		gf_plan_gain(&s->request, given_plan(s), &p, &s->notes);
	text = out.length ? gf_text_take(&out) : gf_plan_write(&p);
	return rc ?: gf_cli_emit(&a->cli, text, err);
}

static int read_all(const struct arguments *a, struct gf_planning *s, struct gf_error *err)
{
	const struct gf_profile *profile;
	int rc = gf_cli_documents(&a->cli, kinds, true, gf_documents_take, &s->documents, err);

	rc = rc ?: gf_cli_document("models", a->model, gf_documents_take_model, &s->documents, err);
	profile = s->documents.profile;
	if (rc == 0 && profile && profile->passes && !s->documents.model)
		rc = gf_cli_named("models", profile->passes->model, gf_documents_take_model,
				  &s->documents, err);
	if (rc)
		return rc;
	return gf_planning_begin(
		s, &(struct gf_planning_times){&a->rates, a->batch, a->refine, a->accumulate}, err);
}

static int run(const struct arguments *a, struct gf_error *err)
{
	GF_RELEASED(gf_planning_release)
	struct gf_planning s = {.request = a->request, .axes = a->axes};
	int rc;

	s.request.codecs = a->codecs;
	s.request.outer_codecs = a->outer_codecs;
	if (a->list)
		return gf_cli_print_lists(&a->cli, gf_plan_lists, err);
	rc = gf_cli_try_outputs(&a->cli, err);
	rc = rc ?: read_all(a, &s, err);
	rc = rc ?: (a->compare ? compare(a, &s, err) : plan(a, &s, err));
	if (rc >= 0)
		gf_cli_warn_lines(&a->cli, s.notes.data);
	return rc;
}

/* The names of the settings that were given from DECIDES on, with blanks between. */
static void add_given(const struct gf_cli *cli, struct gf_text *names)
{
	const struct gf_command *c = cli->command;

	for (size_t i = 0; i < c->nsettings; i++)
		if (cli->given[i] && c->settings[i].group >= DECIDES)
			gf_text_addf(names, "%s%s", names->length ? " " : "", c->settings[i].name);
}

int main(int argc, char **argv)
{
	static const struct gf_command command = {
		.name = "gf-plan",
		.kinds = kinds,
		.arguments = "[FILE...]",
		GF_COMMAND_TABLES,
		.check = check,
	};
	struct arguments a = {
		.over = {.axes = 1U << GF_COMPARE_POLICIES},
		.rates = {.precision = -1},
	};
	GF_RELEASED(gf_text_release) struct gf_text wishes = {0};
	struct gf_error err = {""};
	int rc = 0;

	gf_axes_init(&a.axes);
	gf_cli_parse(&command, argc, argv, &a);
	add_given(&a.cli, &wishes);
	a.request.wishes = wishes.data;
	if (a.axes.outer_codecs)
		rc = gf_cli_split_once(a.axes.outer_codecs, &a.outer_codecs, &err);
	rc = rc ?: run(&a, &err);
	free(a.codecs);
	free(a.outer_codecs);
	gf_axes_release(&a.axes);
	gf_compare_over_release(&a.over);
	return gf_cli_exit(&a.cli, rc, false, &err);
}
