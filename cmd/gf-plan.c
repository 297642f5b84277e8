/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/heap.h"
#include "base/text.h"
#include "cli/command.h"
#include "cli/input.h"
#include "cli/list.h"
#include "cli/share.h"
#include "codec/codec.h"
#include "coll/algorithm.h"
#include "cost/preset.h"
#include "doc/stream.h"
#include "json/record_text.h"
#include "planner/compare.h"
#include "planner/emit.h"
#include "planner/explain.h"
#include "planner/make.h"
#include "planner/plots.h"
#include "planner/policy.h"
#include "planner/refine.h"
#include "planner/systems.h"

static const char help[] =
	"Decide how a model's gradients are exchanged on a cluster: which "
	"tensors form a message, when the message may start, and which "
	"algorithm and codec reduce it. Reads topologies and profiles from "
	"files or, without any, from standard input; prints a plan.\v"
	"Examples:\n"
	"  gf-topo | gf-plan\n"
	"  gf-topo | gf-profile --model resnet20 | gf-plan > plan.json\n"
	"  gf-plan --compare topo.json prof.json\n"
	"  gf-plan --policy optimal --lanes 2 prof.json";

struct arguments {
	struct gf_cli cli;
	struct gf_request request;
	struct gf_axes axes;
	const char **codecs;
	const char *emit, *refine, *plot, *model;
	int plot_columns;
	size_t batch, accumulate;
	struct gf_rates rates;
	bool compare, json, explain, list;
};

static int store_codecs(const char *arg, void *to, struct gf_error *err)
{
	free(*(void **)to);
	*(void **)to = NULL;
	return gf_cli_split_once(arg, to, err);
}

#define AT(field)  offsetof(struct arguments, field)
#define COUNT_MOST (1 << 20)

static const char *const automatic[] = {"auto", NULL};
static const char *const servers[] = {"0", "1", NULL};

#pragma GCC diagnostic ignored "-Wmissing-field-initializers" /* clang */
static const struct gf_setting own_settings[] = {
	{"policy", "NAME", 1, GF_SETTING_TEXT, AT(request.policy),
	 "cut tensors into messages by this policy (auto: the best of all)",
	 .names = automatic, .from = {{gf_policies}}},
	{"system", "NAME", 1, GF_SETTING_TEXT, AT(request.system),
	 "set every axis as a published system does", .names = automatic,
	 .from = {{gf_systems, sizeof(*gf_systems)}}},
	{"lanes", "K", 2, GF_SETTING_INT, AT(request.lanes),
	 "keep at most K messages in flight", 1, COUNT_MOST},
	{"tolerance", "SHARE", 2, GF_SETTING_OWN, AT(request),
	 "take a plan with fewer lanes or messages if it is slower by at "
	 "most this share, e.g. 1% (0.5%, or the doubt of the fits)",
	 .store = gf_request_tolerance},
	{"threshold", "BYTES", 2, GF_SETTING_OWN, AT(request),
	 "theta of lazy all-reduce, e.g. 4M (else the best is searched)",
	 .store = gf_request_threshold},
	{"ranks", "P", 2, GF_SETTING_INT, AT(request.ranks),
	 "plan for P ranks (else those of the profile or topology)", 1,
	 COUNT_MOST},
	{"algorithm", "NAME", 2, GF_SETTING_TEXT, AT(request.algorithm),
	 "reduce every message by this algorithm (else the cheapest)",
	 .from = {{gf_algorithms}}},
	{"factors", "LIST", 2, GF_SETTING_OWN, AT(axes),
	 "decompose the ranks, innermost first, e.g. 4,16,3 or 4:shm,16:ring",
	 .store = gf_axes_read_factors},
	{"codecs", "LIST", 2, GF_SETTING_OWN, AT(codecs),
	 "codecs that a message may use, e.g. f32,f16 (else f32)",
	 .store = store_codecs, .from = {{gf_codecs, sizeof(*gf_codecs)}}},
	{"servers", "N", 2, GF_SETTING_INT, AT(axes.servers),
	 "add N ranks that only serve parameters (0 or 1)", 0, 1,
	 .names = servers},
	{"release", "WHEN", 2, GF_SETTING_CHOICE, AT(axes.release),
	 "send messages when their tensors are ready, or at backward_end",
	 .names = gf_release_names},
	{"halves", NULL, 2, GF_SETTING_FLAG, AT(request.halves),
	 "let auto split messages in halves, too (policy dear)"},
	{"staleness", "K", 3, GF_SETTING_INT, AT(axes.staleness),
	 "apply the gradients of K - 1 steps before (1: synchronous)", 1, 1024},
	{"pipeline-warmup", "STEPS", 3, GF_SETTING_WHOLE,
	 AT(axes.pipeline_warmup_steps),
	 "number of synchronous steps before stale ones", 0, 1e15},
	{"selection", "METHOD", 3, GF_SETTING_CHOICE, AT(axes.selection),
	 "gradients that are sent (gf-plan --list)", .names = gf_select_names,
	 .from = {{gf_select_plans}}},
	{"model", "NAME", 4, GF_SETTING_TEXT, AT(model),
	 "estimate times of this model (a path or a shipped name)",
	 .share = "models"},
	{"gpu", "NAME", 4, GF_SETTING_TEXT, AT(rates.gpu),
	 "estimate by this GPU's data sheet (the topology's GPU)",
	 .from = {{gf_presets, sizeof(*gf_presets)}}},
	{"precision", "NAME", 4, GF_SETTING_CHOICE, AT(rates.precision),
	 "the arithmetic of that GPU (tf32, else f32)",
	 .names = gf_precision_names},
	{"flops", "RATE", 4, GF_SETTING_FLOPS, AT(rates.flops_per_s),
	 "operations per second and rank for the estimate (1e12)", 1, 1e30},
	{"batch", "N", 4, GF_SETTING_WHOLE, AT(batch),
	 "samples per rank for the estimate (32)", 1, COUNT_MOST},
	{"accumulate", "N", 4, GF_SETTING_WHOLE, AT(accumulate),
	 "plan for steps of N micro-batches, whose sum is exchanged", 1,
	 COUNT_MOST},
	{"refine", "FILE", 4, GF_SETTING_TEXT, AT(refine),
	 "plan again from the trace of a run of the plan"},
	{"compare", NULL, 5, GF_SETTING_FLAG, AT(compare),
	 "print a table of all policies, best first"},
	{"json", NULL, 5, GF_SETTING_FLAG, AT(json),
	 "print the comparison as JSON Lines"},
	{"explain", NULL, 5, GF_SETTING_FLAG, AT(explain),
	 "print a chart of the iteration, and the reason of each tensor's "
	 "type"},
	{"emit", "TARGET", 5, GF_SETTING_TEXT, AT(emit),
	 "print the plan for ddp, horovod or nccl-env",
	 .from = {{gf_emitters}}},
	{"plot", "FILE", 5, GF_SETTING_OWN, AT(plot),
	 "also draw the iteration, or the comparison, to FILE.svg, .pdf or "
	 ".png; FILE.csv: the numbers",
	 .store = gf_plot_store},
	{"plot-columns", "N", 5, GF_SETTING_INT, AT(plot_columns),
	 "width of the picture in columns of a paper", 1, 2},
	{"list", NULL, 5, GF_SETTING_FLAG, AT(list),
	 "list models, topologies, policies and all else that has a name; "
	 "with arguments, the lists of these names"},
};

#define NOWN GF_ARRAY_LENGTH(own_settings)

/* In the order of use, as the options are. */
static const char *const groups[] = {
	"The method:",
	"The schedule and the wire:",
	"Which gradients are sent, and when they are applied:",
	"The model, and a run of it:",
	"What is printed:",
	"Details of a selection:",
};

/* Those, and the options of selections, whose texts helps holds. */
static size_t all_settings(const struct gf_axes *axes,
			   struct gf_setting *settings, struct gf_text *helps)
{
	size_t i;

	memcpy(settings, own_settings, sizeof(own_settings));
	for (i = 0; i < axes->noptions; i++) {
		const struct gf_field *f = axes->options[i].field;

		gf_select_option_help(&axes->options[i], &helps[i]);
		settings[NOWN + i] = (struct gf_setting){
			.name = f->option,
			.arg = f->unit,
			.group = 6,
			.kind = GF_SETTING_OWN,
			.offset =
				AT(axes.options) + i * sizeof(axes->options[i]),
			.help = helps[i].data,
			.names = gf_field_words(f),
			.store = gf_select_option_store,
		};
	}
	return NOWN + axes->noptions;
}

static const struct gf_setting_rule rules[] = {
	{"list", NULL, "*"},
	{"json", "compare", NULL},
	{"compare", NULL, "explain emit policy"},
	{"explain", NULL, "emit"},
	{"gpu precision", NULL, "flops"},
	{"plot-columns", "plot", NULL},
};

/* What one call reads and finds out. */
struct session {
	struct gf_documents documents;
	struct gf_request request; /* borrows from the others */
	struct gf_axes axes;
	const char *codecs[GF_CODECS + 1];
	struct gf_refined refined;
	struct gf_model_profile *estimated, *accumulated;
	struct gf_text notes, open; /* open: what was taken by default */
};

static int read_documents(const struct arguments *a, struct gf_documents *d,
			  struct gf_error *err)
{
	static const char *const kinds[] = {"topologies", "models", "profiles",
					    NULL};

	return gf_cli_documents(&a->cli, kinds, true, gf_documents_take, d,
				err);
}

/* The model of --model joins the documents. */
static int read_model(const struct arguments *a, struct session *s,
		      struct gf_error *err)
{
	static const char *const options[] = {"gpu", "precision", "flops",
					      "batch", NULL};
	char *path;
	size_t i;
	int rc = 0;

	if (a->model)
		rc = gf_cli_share("models", a->model, &path, err);
	if (rc == 0 && a->model) {
		rc = gf_documents_add(&s->documents, path, err);
		free(path);
	}
	for (i = 0; rc == 0 && !s->documents.model && options[i]; i++)
		if (gf_cli_given(&a->cli, options[i]))
			rc = gf_error_set(err, -EINVAL,
					  "--%s: want a model to estimate, "
					  "found none",
					  options[i]);
	return rc;
}

/* A model without measured times gets estimated ones. */
static int estimate(const struct arguments *a, struct session *s,
		    struct gf_error *err)
{
	struct gf_estimate in = {.batch = a->batch};
	struct gf_text rate = {0};
	int rc = read_model(a, s, err);

	if (rc < 0 || !s->documents.model)
		return rc;
	rc = gf_rates_take(&a->rates, s->documents.topology, &in, &rate,
			   &s->open, err);
	if (rc == 0 && !gf_cli_given(&a->cli, "batch"))
		gf_text_addf(&s->open, "%s%zu samples per rank (--batch)",
			     s->open.length ? ", " : "", a->batch);
	if (rc == 0)
		rc = gf_request_estimate(&s->request, s->documents.model, &in,
					 rate.data, &s->estimated, &s->notes,
					 err);
	gf_text_release(&rate);
	return rc;
}

static int accumulate(const struct arguments *a, struct session *s,
		      struct gf_error *err)
{
	if (!s->request.model)
		return gf_error_set(err, -EINVAL,
				    "--accumulate: want a model with its "
				    "times, found none");
	s->accumulated = gf_model_profile_copy(s->request.model);
	gf_model_accumulate(s->accumulated, a->accumulate);
	s->request.model = s->accumulated;
	return 0;
}

static int print_list(const struct arguments *a, struct gf_error *err)
{
	static const char *const everything[] = {NULL};
	struct gf_list lists[GF_PLAN_LISTS + 3];
	struct gf_text out = {0};
	int rc;

	lists[0] = gf_cli_share_list("models", "--model, or an argument");
	lists[1] = gf_cli_share_list("topologies", "as an argument");
	memcpy(lists + 2, gf_plan_lists, sizeof(gf_plan_lists));
	rc = gf_cli_print_lists(
		lists, a->cli.nfiles ? a->cli.files : everything, &out, err);
	if (!rc)
		rc = gf_cli_emit(&a->cli, out.data, err);
	gf_cli_share_list_free(&lists[0]);
	gf_cli_share_list_free(&lists[1]);
	gf_text_release(&out);
	return rc;
}

static int compare(const struct arguments *a, struct session *s,
		   struct gf_error *err)
{
	struct gf_compared *rows = NULL;
	struct gf_text out = {0};
	struct gf_plot picture = {0};
	size_t n = 0, i;
	int rc = gf_request_compare(&s->request, &rows, &n, &s->notes, err);

	if (rc < 0)
		return rc;
	for (i = 0; a->json && i < n; i++)
		gf_compared_json(&rows[i], &out);
	if (!a->json)
		gf_compared_table(rows, n, &out);
	if (a->plot) {
		gf_compared_plot(&s->request, rows, n, &picture);
		rc = gf_plot_finish(&picture, a->plot, a->plot_columns, err);
	}
	if (rc == 0)
		rc = gf_cli_emit(&a->cli, out.data, err);
	gf_text_release(&out);
	free(rows);
	return rc;
}

/* The plan that was run goes on where the user does not change it. */
static void follow(struct session *s)
{
	const struct gf_plan *p = s->documents.plan;
	struct gf_request *r = &s->request;

	if (!r->system && p->system && gf_system_find(p->system))
		r->system = p->system;
	gf_axes_follow(&s->axes, p);
	if (!r->codecs)
		r->codecs = gf_plan_codecs(p, s->codecs);
}

/* What a trace of the given plan shows takes the place of its profile. */
static int refine(const struct arguments *a, struct session *s,
		  struct gf_error *err)
{
	int rc = gf_refine_trace(s->documents.plan, a->refine, &s->refined,
				 &s->notes, err);

	if (rc < 0)
		return rc;
	s->request.model = s->refined.model;
	s->request.network = s->refined.network;
	s->request.processing = &s->refined.processing;
	s->request.profile_digest = NULL;
	follow(s);
	return 0;
}

/* A plan that was read and is not to be changed is used as it is. */
static bool as_it_is(const struct arguments *a, const struct gf_documents *d)
{
	const struct gf_request *r = &a->request;

	return d->plan && !d->profile && !d->topology && !d->model &&
	       !a->refine && !a->accumulate && !r->policy && !r->system &&
	       !r->lanes && !gf_request_has_threshold(r) && !r->ranks &&
	       !r->algorithm && !r->codecs && !r->halves &&
	       !r->tolerance_asked && gf_axes_are_open(&a->axes);
}

static int plan(const struct arguments *a, struct session *s,
		struct gf_error *err)
{
	struct gf_text out = {0};
	struct gf_plan p;
	struct gf_plot picture = {0};
	const struct gf_plan *given =
		as_it_is(a, &s->documents) ? s->documents.plan : NULL;
	char *text;
	int rc = 0;

	if (a->emit)
		rc = gf_request_emit(&s->request, given, a->emit, &p, &out,
				     &s->notes, err);
	else if (given)
		gf_plan_copy(&p, given);
	else
		rc = gf_request_plan(&s->request, &p, &s->notes, err);
	if (rc < 0) {
		gf_text_release(&out);
		return rc;
	}
	if (a->refine)
		gf_refine_compare(s->documents.plan, &s->refined.measured, &p,
				  &s->notes);
	free(p.producer);
	p.producer = gf_xstrdup("gf-plan " GF_VERSION);
	if (a->plot) {
		rc = gf_plan_plot(&p, &picture, err);
		if (rc == 0)
			rc = gf_plot_finish(&picture, a->plot, a->plot_columns,
					    err);
	}
	if (rc == 0 && a->explain)
		rc = gf_plan_explain(&s->request, &p, &out, err);
	text = a->emit || a->explain ? gf_text_take(&out) : gf_plan_write(&p);
	if (rc == 0)
		rc = gf_cli_emit(&a->cli, text, err);
	free(text);
	gf_plan_release(&p);
	return rc;
}

static void note_quality(struct session *s)
{
	struct gf_text line = {0};

	if (s->documents.profile)
		gf_profile_quality(s->documents.profile, &line);
	if (line.length)
		gf_text_addf(&s->notes, "the profile: %s", line.data);
	gf_text_release(&line);
}

static int run(const struct arguments *a, struct gf_error *err)
{
	struct session s = {.request = a->request, .axes = a->axes};
	int rc;

	s.request.axes = &s.axes;
	s.request.codecs = a->codecs;
	if (a->list)
		return print_list(a, err);
	rc = read_documents(a, &s.documents, err);
	if (rc == 0)
		gf_request_documents(&s.request, &s.documents);
	if (rc == 0)
		note_quality(&s);
	if (rc == 0)
		rc = estimate(a, &s, err);
	if (rc == 0 && a->refine)
		rc = refine(a, &s, err);
	if (rc == 0 && a->accumulate)
		rc = accumulate(a, &s, err);
	if (rc == 0 && a->compare)
		gf_request_assume_ranks(&s.request, &s.open);
	if (rc == 0 && s.open.length)
		gf_text_addf(&s.notes, "by default: %s\n", s.open.data);
	if (rc == 0)
		rc = a->compare ? compare(a, &s, err) : plan(a, &s, err);
	if (rc == 0)
		gf_cli_warn_lines(&a->cli, s.notes.data);
	gf_text_release(&s.notes);
	gf_text_release(&s.open);
	gf_refined_release(&s.refined);
	gf_model_profile_free(s.estimated);
	gf_model_profile_free(s.accumulated);
	gf_documents_release(&s.documents);
	return rc;
}

int main(int argc, char **argv)
{
	struct gf_setting settings[NOWN + GF_SELECT_OPTIONS_MOST];
	struct gf_command command = {
		.name = "gf-plan",
		.arguments = "[FILE...]",
		.help = help,
		.settings = settings,
		.groups = groups,
		.rules = rules,
		.nrules = GF_ARRAY_LENGTH(rules),
	};
	struct arguments a = {
		.batch = 32,
		.rates = {.precision = -1},
	};
	struct gf_text helps[GF_SELECT_OPTIONS_MOST] = {{0}};
	struct gf_error err = {""};
	size_t i;
	int rc;

	gf_axes_init(&a.axes);
	command.nsettings = all_settings(&a.axes, settings, helps);
	gf_cli_parse(&command, argc, argv, &a);
	rc = run(&a, &err);
	free(a.codecs);
	gf_axes_release(&a.axes);
	for (i = 0; i < GF_SELECT_OPTIONS_MOST; i++)
		gf_text_release(&helps[i]);
	return gf_cli_exit(&a.cli, rc, &err);
}
