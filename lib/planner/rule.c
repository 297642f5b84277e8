/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A rule plan, for an unknown model or an unknown number of ranks: the bytes from which a message
 * is worth its startup, and the algorithm for each size.
 *
 * With a model, the threshold is the one that plans it best on the ranks assumed; without, a
 * message at the threshold spends a tenth of its time in its startup: 9 a/b, as a power of two
 * within bounds that suit any machine.
 */
#include <math.h>
#include <string.h>

#include "base/array.h"
#include "base/heap.h"
#include "planner/make.h"
#include "planner/menu.h"
#include "simulator/predict.h"

#define RANKS_ASSUMED 4
#define STARTUP_SHARE 0.1
#define LEAST_BYTES   65536.0
#define MOST_BYTES    67108864.0
/* No message is as large: 1 TB. */
#define NO_MESSAGE_BYTES 1e12

static int assumed_ranks(const struct gf_problem *problem)
{
	int ranks = gf_levels_ranks(problem->fabric.levels, problem->fabric.nlevels);

	return ranks > 1 ? ranks : RANKS_ASSUMED;
}

static double by_startup(const struct gf_menu *menu)
{
	double bytes = LEAST_BYTES;

	for (; bytes < MOST_BYTES; bytes *= 2) {
		const struct gf_option *o = &menu->options[gf_menu_pick(menu, bytes)];

		if (o->line.startup_s <= STARTUP_SHARE * gf_line_s(&o->line, bytes))
			break;
	}
	return bytes;
}

static int by_model(const struct gf_problem *problem, double *bytes, struct gf_error *err)
{
	const struct gf_policy *threshold = gf_policy_find("threshold");
	GF_RELEASED(gf_plan_release) struct gf_plan p = {0};
	int rc = gf_policy_run(threshold, problem, &p, err);

	if (rc == 0)
		*bytes = (double)p.threshold_bytes;
	return rc;
}

/* The envelope, neighbours of one way as one. Stages that were measured are part of a way; others
 * are found anew where the rule is bound. */
static void set_algorithms(const struct gf_menu *menu, struct gf_rule *rule)
{
	size_t capacity = 0, i;

	for (i = 0; i < menu->nenvelope; i++) {
		const struct gf_option *o = &menu->options[menu->envelope[i]];
		size_t n = o->origin == GF_PRICE_MEASURED ? o->nstages : 0;
		struct gf_rule_algorithm *a;
		size_t from;

		/* lines that only rounding tells apart meet out there */
		if (menu->from_bytes[i] >= NO_MESSAGE_BYTES)
			break;
		from = (size_t)ceil(menu->from_bytes[i]);
		a = rule->nalgorithms ? &rule->algorithms[rule->nalgorithms - 1] : NULL;
		if (a &&
		    (from <= a->min_bytes || (strcmp(a->algorithm, o->algorithm) == 0 &&
					      gf_stages_same(a->stages, a->nstages, o->stages, n))))
			continue;
		a = gf_array_push(&rule->algorithms, &rule->nalgorithms, &capacity);
		a->min_bytes = from;
		a->algorithm = gf_xstrdup(o->algorithm);
		a->stages = gf_stages_copy(o->stages, n);
		a->nstages = n;
	}
}

static bool is(const char *option, size_t length, const char *name)
{
	return strlen(name) == length && memcmp(option, name, length) == 0;
}

/* Does a rule say what that option chooses? */
static bool serves(const struct gf_request *r, const char *option, size_t length)
{
	if (is(option, length, "system"))
		return strcmp(r->system, "auto") == 0;
	if (is(option, length, "policy"))
		return strcmp(r->policy, "auto") == 0 || strcmp(r->policy, "threshold") == 0;
	return is(option, length, "lanes") || is(option, length, "threshold") ||
	       is(option, length, "algorithms");
}

static int refuse_wishes(const struct gf_request *r, const char *lacking, struct gf_error *err)
{
	const char *at = r->wishes ? r->wishes : "";
	size_t length;

	for (; *at; at += length + (at[length] == ' ')) {
		length = strcspn(at, " ");
		if (!serves(r, at, length))
			return gf_error_set(err, -EINVAL, "want %s to plan --%.*s, found none",
					    lacking, (int)length, at);
	}
	return 0;
}

int gf_request_rule(const struct gf_request *r, struct gf_problem *problem, struct gf_plan *p,
		    struct gf_text *notes, struct gf_error *err)
{
	struct gf_rule *rule;
	GF_RELEASED(gf_menu_release) struct gf_menu menu = {0};
	double bytes;
	bool known = problem->fabric.ranks > 0;
	int rc = refuse_wishes(
		r, known ? "the tensors of a model (--model)" : "a number of ranks (--ranks)", err);

	if (rc < 0)
		return rc;
	if (!known)
		problem->fabric.ranks = assumed_ranks(problem);
	rc = gf_menu_init(&menu, problem, err);
	if (rc < 0)
		return rc;
	bytes = by_startup(&menu);
	if (problem->model)
		rc = by_model(problem, &bytes, err);
	if (gf_request_has_threshold(r))
		bytes = (double)r->threshold_bytes;
	if (rc == 0) {
		memset(p, 0, sizeof(*p));
		rule = gf_xcalloc(1, sizeof(*rule));
		rule->threshold_bytes = r->threshold_zero ? 0 : (size_t)fmax(bytes, 1);
		rule->lanes = r->lanes ? r->lanes : 1;
		set_algorithms(&menu, rule);
		p->rule = rule;
		p->lanes = rule->lanes;
		p->system = gf_xstrdup("auto");
		p->policy = gf_xstrdup("threshold");
		/* of any ranks, and of what no codec costs here */
		problem->fabric.ranks = problem->fabric.servers = 0;
		problem->fabric.processing = NULL;
		gf_plan_take_fabric(p, &problem->fabric);
		p->staleness = 1;
		gf_text_addf(notes, "%s: the plan is a rule that binds to %s\n",
			     known ? "no model is known (--model)"
				   : "the number of ranks is not known (--ranks)",
			     known ? "any model" : "any model and ranks");
	}
	return rc;
}
