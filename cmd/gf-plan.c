/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/heap.h"
#include "base/text.h"
#include "base/units.h"
#include "cli/cli.h"
#include "cli/list.h"
#include "doc/stream.h"
#include "planner/compare.h"
#include "planner/emit.h"
#include "planner/explain.h"
#include "planner/make.h"
#include "planner/plots.h"
#include "planner/refine.h"

static const char doc[] =
	"Decide how a model's gradients are exchanged on a cluster: which "
	"tensors form a message, when it may start, by which algorithm and "
	"codec it is reduced. Reads topologies and profiles from files or, "
	"without any, from standard input; prints a plan.\v"
	"Examples:\n"
	"  gf-topo | gf-plan\n"
	"  gf-topo | gf-profile --model resnet20 | gf-plan > plan.json\n"
	"  gf-plan --compare topo.json prof.json\n"
	"  gf-plan --policy optimal --lanes 2 prof.json";

enum {
	KEY_POLICY = 256,
	KEY_SYSTEM,
	KEY_LANES,
	KEY_THRESHOLD,
	KEY_RANKS,
	KEY_ALGORITHM,
	KEY_CODECS,
	KEY_COMPARE,
	KEY_JSON,
	KEY_EXPLAIN,
	KEY_EMIT,
	KEY_MODEL,
	KEY_FLOPS,
	KEY_BATCH,
	KEY_REFINE,
	KEY_PLOT,
	KEY_LIST,
};

static const struct argp_option options[] = {
	{"policy", KEY_POLICY, "NAME", 0,
	 "cut tensors into messages by this policy (auto: the best of all)", 1},
	{"system", KEY_SYSTEM, "NAME", 0,
	 "set every axis as a published system does", 1},
	{"lanes", KEY_LANES, "K", 0, "at most K messages in flight", 2},
	{"threshold", KEY_THRESHOLD, "BYTES", 0,
	 "theta of lazy all-reduce, e.g. 4M (else the best is searched)", 2},
	{"ranks", KEY_RANKS, "P", 0,
	 "plan for P ranks (else those of the profile or topology)", 2},
	{"algorithm", KEY_ALGORITHM, "NAME", 0,
	 "reduce every message by this algorithm (else the cheapest)", 2},
	{"codecs", KEY_CODECS, "LIST", 0,
	 "codecs that a message may use, e.g. f32,f16 (else f32)", 2},
	{"compare", KEY_COMPARE, NULL, 0,
	 "a table of all policies, best first, instead of a plan", 3},
	{"json", KEY_JSON, NULL, 0, "--compare as JSON Lines", 3},
	{"explain", KEY_EXPLAIN, NULL, 0,
	 "a chart of the iteration and why each tensor has its type", 3},
	{"emit", KEY_EMIT, "TARGET", 0,
	 "the plan for ddp, horovod or nccl-env instead of JSON", 3},
	{"model", KEY_MODEL, "NAME", 0,
	 "estimate times of this model (a path or a shipped name)", 2},
	{"flops", KEY_FLOPS, "RATE", 0,
	 "of the estimate, per second and rank (1e12)", 2},
	{"batch", KEY_BATCH, "N", 0, "of the estimate, samples per rank (32)",
	 2},
	{"refine", KEY_REFINE, "TRACE", 0,
	 "plan again from what a run of the plan measured", 2},
	{"plot", KEY_PLOT, "FILE", 0,
	 "also draw the iteration, or the comparison, as SVG", 3},
	{"list", KEY_LIST, NULL, 0, "list policies and systems", 3},
	{0},
};

struct arguments {
	struct gf_cli cli;
	struct gf_request request;
	const char **codecs;
	const char *const *files;
	size_t nfiles;
	const char *emit, *refine, *plot, *model;
	struct gf_estimate estimate;
	bool compare, json, explain, list;
};

/* What one call reads and finds out. */
struct session {
	struct gf_documents documents;
	struct gf_request request; /* borrows from documents and refined */
	struct gf_refined refined;
	struct gf_model_profile *estimated;
	struct gf_text notes;
};

static int parse_count(const char *arg, struct argp_state *state,
		       const char *option)
{
	struct gf_error err;
	long long value;

	if (gf_units_int(arg, 1, 1 << 20, &value, &err) < 0)
		gf_cli_usage_error(state, option, &err);
	return (int)value;
}

static void parse_threshold(struct arguments *a, const char *arg,
			    struct argp_state *state)
{
	struct gf_error err;
	size_t bytes;
	int rc = gf_units_size(arg, &bytes, &err);

	if (rc == 0 && bytes == 0)
		rc = gf_error_set(&err, -EINVAL,
				  "want a size > 0 (policy wfbp sends every "
				  "tensor by itself), got %s",
				  arg);
	if (rc < 0)
		gf_cli_usage_error(state, "--threshold", &err);
	a->request.threshold_bytes = bytes;
}

static int parse_opt(int key, char *arg, struct argp_state *state)
{
	struct arguments *a = state->input;
	struct gf_error err;

	switch (key) {
	case ARGP_KEY_INIT:
		state->child_inputs[0] = &a->cli;
		a->estimate.batch = 32;
		a->estimate.flops_per_s = 1e12;
		return 0;
	case KEY_POLICY:
		a->request.policy = arg;
		return 0;
	case KEY_SYSTEM:
		a->request.system = arg;
		return 0;
	case KEY_LANES:
		a->request.lanes = parse_count(arg, state, "--lanes");
		return 0;
	case KEY_THRESHOLD:
		parse_threshold(a, arg, state);
		return 0;
	case KEY_RANKS:
		a->request.ranks = parse_count(arg, state, "--ranks");
		return 0;
	case KEY_ALGORITHM:
		a->request.algorithm = arg;
		return 0;
	case KEY_CODECS:
		free(a->codecs);
		a->request.codecs = a->codecs = gf_cli_split(arg);
		return 0;
	case KEY_COMPARE:
		a->compare = true;
		return 0;
	case KEY_JSON:
		a->json = true;
		return 0;
	case KEY_EXPLAIN:
		a->explain = true;
		return 0;
	case KEY_EMIT:
		a->emit = arg;
		return 0;
	case KEY_MODEL:
		a->model = arg;
		return 0;
	case KEY_FLOPS:
		if (gf_units_real(arg, 1, 1e30, &a->estimate.flops_per_s,
				  &err) < 0)
			gf_cli_usage_error(state, "--flops", &err);
		return 0;
	case KEY_BATCH:
		a->estimate.batch = (size_t)parse_count(arg, state, "--batch");
		return 0;
	case KEY_REFINE:
		a->refine = arg;
		return 0;
	case KEY_PLOT:
		a->plot = arg;
		return 0;
	case KEY_LIST:
		a->list = true;
		return 0;
	case ARGP_KEY_ARGS:
		a->files = (const char *const *)&state->argv[state->next];
		a->nfiles = (size_t)(state->argc - state->next);
		return 0;
	case ARGP_KEY_END:
		if (a->json && !a->compare)
			argp_error(state, "--json goes with --compare");
		if (a->compare + a->explain + (a->emit != NULL) > 1)
			argp_error(state, "want one of --compare, --explain "
					  "and --emit");
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

static int read_documents(const struct arguments *a, struct gf_documents *d,
			  struct gf_error *err)
{
	size_t i;
	int rc = 0;

	if (a->nfiles == 0)
		return gf_documents_add(d, "-", err);
	for (i = 0; i < a->nfiles && rc == 0; i++)
		rc = gf_documents_add(d, a->files[i], err);
	return rc;
}

/* A model without measured times gets estimated ones. */
static int estimate(const struct arguments *a, struct session *s,
		    struct gf_error *err)
{
	char *path;
	int rc = 0;

	if (a->model)
		rc = gf_cli_share("models", a->model, &path, err);
	if (rc == 0 && a->model) {
		rc = gf_documents_add(&s->documents, path, err);
		free(path);
	}
	if (rc < 0 || !s->documents.model)
		return rc;
	return gf_request_estimate(&s->request, s->documents.model,
				   &a->estimate, &s->estimated, &s->notes, err);
}

static int print_list(const struct arguments *a, struct gf_error *err)
{
	struct gf_text out = {0};
	int rc;

	gf_plan_list(&out);
	rc = gf_cli_emit(&a->cli, out.data, err);
	gf_text_release(&out);
	return rc;
}

/* rc and svg: what the drawing returned. */
static int write_plot(const struct arguments *a, int rc, char *svg,
		      struct gf_error *err)
{
	if (rc == 0)
		rc = gf_file_write(a->plot, svg, strlen(svg), err);
	free(svg);
	return rc;
}

static int compare(const struct arguments *a, struct session *s,
		   struct gf_error *err)
{
	struct gf_compared *rows = NULL;
	struct gf_text out = {0};
	char *svg = NULL;
	size_t n = 0, i;
	int rc = gf_request_compare(&s->request, &rows, &n, &s->notes, err);

	if (rc < 0)
		return rc;
	for (i = 0; a->json && i < n; i++)
		gf_compared_json(&rows[i], &out);
	if (!a->json)
		gf_compared_table(rows, n, &out);
	if (a->plot) {
		rc = gf_compared_svg(rows, n, &svg, err);
		rc = write_plot(a, rc, svg, err);
	}
	if (rc == 0)
		rc = gf_cli_emit(&a->cli, out.data, err);
	gf_text_release(&out);
	free(rows);
	return rc;
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
	s->request.profile_digest = NULL;
	return 0;
}

/* A plan that was given and is not to be changed is used as it is. */
static bool given(const struct arguments *a, const struct gf_documents *d)
{
	const struct gf_request *r = &a->request;

	return d->plan && !d->profile && !d->topology && !d->model &&
	       !a->refine && !r->policy && !r->system && !r->lanes &&
	       !r->threshold_bytes && !r->ranks && !r->algorithm && !r->codecs;
}

static int plan(const struct arguments *a, struct session *s,
		struct gf_error *err)
{
	struct gf_text out = {0};
	struct gf_plan p;
	char *text, *svg = NULL;
	int rc = 0;

	if (given(a, &s->documents))
		gf_plan_copy(&p, s->documents.plan);
	else
		rc = gf_request_plan(&s->request, &p, &s->notes, err);
	if (rc < 0)
		return rc;
	if (a->refine)
		gf_refine_compare(s->documents.plan, &s->refined.measured, &p,
				  &s->notes);
	free(p.producer);
	p.producer = gf_xstrdup("gf-plan " GF_VERSION);
	if (a->plot) {
		rc = gf_plan_svg(&p, &svg, err);
		rc = write_plot(a, rc, svg, err);
	}
	if (rc == 0 && a->emit)
		rc = gf_plan_emit(&p, a->emit, &out, err);
	else if (rc == 0 && a->explain)
		rc = gf_plan_explain(&s->request, &p, &out, err);
	text = a->emit || a->explain ? gf_text_take(&out) : gf_plan_write(&p);
	if (rc == 0)
		rc = gf_cli_emit(&a->cli, text, err);
	free(text);
	gf_plan_release(&p);
	return rc;
}

static int run(const struct arguments *a, struct gf_error *err)
{
	struct session s = {.request = a->request};
	int rc;

	if (a->list)
		return print_list(a, err);
	rc = read_documents(a, &s.documents, err);
	if (rc == 0)
		gf_request_documents(&s.request, &s.documents);
	if (rc == 0)
		rc = estimate(a, &s, err);
	if (rc == 0 && a->refine)
		rc = refine(a, &s, err);
	if (rc == 0)
		rc = a->compare ? compare(a, &s, err) : plan(a, &s, err);
	gf_cli_warn_lines(&a->cli, s.notes.data);
	gf_text_release(&s.notes);
	gf_refined_release(&s.refined);
	gf_model_profile_free(s.estimated);
	gf_documents_release(&s.documents);
	return rc;
}

int main(int argc, char **argv)
{
	static const struct argp argp = {options, parse_opt,       "[FILE...]",
					 doc,     gf_cli_children, NULL,
					 NULL};
	struct arguments a = {0};
	struct gf_error err = {""};
	int rc;

	gf_cli_parse(&a.cli, "gf-plan", &argp, argc, argv, &a);
	rc = run(&a, &err);
	free(a.codecs);
	return gf_cli_exit(&a.cli, rc, &err);
}
