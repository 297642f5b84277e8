/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Broken profiles, topologies and plans through what gf-plan and gf-sim do with them: read, pose,
 * plan by every policy and system with axes drawn at random, write, read again, predict, replay. A
 * refusal is one line; what is planned is a document that reads back to the same bytes, predicts
 * what it says, and is never slower than a policy that could have been asked for.
 */
#include <errno.h>
#include <math.h>

#include "documents/stream.h"
#include "harness.h"
#include "planner/make.h"
#include "planner/policies/policy.h"
#include "simulator/replay/replay_plan.h"

/* The largest models and the most ranks that are planned; the rest is only read. */
#define TENSORS_MOST 24
#define RANKS_MOST   64

/* --- what is asked for ---------------------------------------------------- */

static const char *pick(struct gf_rng *rng, const char *const *names, size_t n)
{
	return names[gf_rng_below(rng, n)];
}

static void draw_axes(struct gf_axes *a, struct gf_rng *rng)
{
	/* what a key does not take is refused */
	static const char *const texts[] = {"1e-12", "0.001", "0.5", "1", "4", "100000", "0.2,0.1"};
	static char keys[64];
	const struct gf_field *f;
	size_t nselections = 0;

	gf_axes_init(a);
	if (gf_rng_below(rng, 2))
		return;
	while (gf_select_plans[nselections])
		nselections++;
	a->selection = (int)gf_rng_below(rng, nselections + 1) - 1;
	f = a->selection < 0
		    ? NULL
		    : gf_keys_at(gf_select_plans[a->selection]->record, gf_rng_below(rng, 4));
	if (f && gf_rng_below(rng, 2)) {
		snprintf(keys, sizeof(keys), "%s=%s", f->key,
			 pick(rng, texts, GF_ARRAY_LENGTH(texts)));
		a->selection_keys = keys;
	}
	if (gf_rng_below(rng, 3) == 0)
		a->period = (int)gf_rng_below(rng, 5);
	if (a->period > 0 && gf_rng_below(rng, 2))
		a->hide = 0.05;
	if (gf_rng_below(rng, 3) == 0)
		a->staleness = 1 + (int)gf_rng_below(rng, 3);
	if (gf_rng_below(rng, 3) == 0)
		a->release = (int)gf_rng_below(rng, 2);
	if (gf_rng_below(rng, 6) == 0)
		a->servers = 1;
	if (gf_rng_below(rng, 6) == 0)
		gf_axes_read_factors("2,2:ring", a, NULL);
}

static void draw_request(struct gf_request *r, struct gf_rng *rng)
{
	static const char *const policies[] = {NULL,      "auto",      "sequential", "single",
					       "wfbp",    "threshold", "mg-wfbp",    "asc-wfbp",
					       "optimal", "dear"};
	static const char *const systems[] = {NULL,    NULL,       "auto",        "gradientflow",
					      "gtopk", "asc-wfbp", "blueconnect", "pipe-sgd"};
	static const char *const some[] = {"f32", "f16", NULL};
	static const char *const lossy[] = {"q8", NULL};

	memset(r, 0, sizeof(*r));
	r->policy = pick(rng, policies, GF_ARRAY_LENGTH(policies));
	r->system = pick(rng, systems, GF_ARRAY_LENGTH(systems));
	r->lanes = (int)gf_rng_below(rng, 4);
	r->tolerance_asked = !r->policy && gf_rng_below(rng, 2);
	if (gf_rng_below(rng, 4) == 0)
		r->threshold_bytes = (size_t)1 << gf_rng_below(rng, 63);
	if (gf_rng_below(rng, 4) == 0)
		r->fabric.ranks = 1 + (int)gf_rng_below(rng, 40);
	if (gf_rng_below(rng, 4) == 0)
		r->codecs = gf_rng_below(rng, 2) ? some : lossy;
}

/* --- what must hold ------------------------------------------------------- */

/* -EINVAL where times are so large that a sum of them is none. */
static void expect_same_prediction(const struct gf_plan *p)
{
	struct gf_fabric f = gf_plan_fabric(p);
	struct gf_sim_result result = {0};
	double want = p->predicted->iteration_s;

	if (gf_predict_plan(p, &f, &result, NULL) == 0 &&
	    !(fabs(result.iteration_s - want) <= 1e-12 * want))
		harness_fail("a plan predicts something else", p->policy);
	if (!(p->predicted->lower_bound_s <= want * (1 + 1e-9)))
		harness_fail("faster than its bound", p->policy);
}

static void expect_readable(const struct gf_plan *p)
{
	char *text = gf_plan_write(p), *again;
	struct gf_documents d = {0};
	struct gf_error err = {""};

	if (gf_documents_add_text(&d, text, strlen(text), "w", &err))
		harness_fail("a plan that was written is refused", err.text);
	again = gf_plan_write(d.plan);
	if (strcmp(text, again) != 0)
		harness_fail("a plan reads back to something else", text);
	if (!p->rule)
		expect_same_prediction(d.plan);
	free(text);
	free(again);
	gf_documents_release(&d);
}

static void replay(const struct gf_plan *p, struct gf_rng *rng)
{
	struct gf_what_if what = {.ranks = 1 + (int)gf_rng_below(rng, 12)};
	struct gf_replayed r;
	struct gf_text notes = {0};
	struct gf_error err = {""};
	int rc;

	if (gf_rng_below(rng, 2))
		what.ranks = 0;
	if (p->ranks > 16 && !what.ranks)
		return;
	rc = gf_replay_plan(p, &what, &r, &notes, &err);
	if (rc == 0 || rc == -E2BIG)
		gf_replayed_release(&r);
	else
		harness_expect_line(&err, NULL);
	gf_text_release(&notes);
}

/* No policy by name is faster than what auto chose, beyond the tolerance. */
static void expect_best(const struct gf_request *r, const struct gf_plan *best)
{
	double tolerance = r->tolerance_asked ? 1e-9 : GF_TOLERANCE_MOST;
	struct gf_request asked = *r;
	size_t i;

	asked.tolerance_asked = false;

	for (i = 0; gf_policies[i]; i++) {
		struct gf_text notes = {0};
		struct gf_plan p;

		if (!gf_policies[i]->automatic)
			continue;
		asked.policy = gf_policies[i]->name;
		if (gf_request_plan(&asked, &p, &notes, NULL) == 0) {
			if (p.predicted && best->predicted &&
			    best->predicted->iteration_s >
				    p.predicted->iteration_s * (1 + tolerance)) {
				char *text = gf_plan_write(best);

				printf("%s: %.17g s, by %s: %.17g s\n", best->policy,
				       best->predicted->iteration_s, gf_policies[i]->name,
				       p.predicted->iteration_s);
				harness_fail("slower than a policy by name", text);
			}
			gf_plan_release(&p);
		}
		gf_text_release(&notes);
	}
}

static int use(const struct gf_documents *d, struct gf_rng *rng)
{
	struct gf_text notes = {0};
	struct gf_error err = {""};
	struct gf_axes axes;
	struct gf_request r;
	struct gf_plan p;
	int rc;

	draw_request(&r, rng);
	draw_axes(&axes, rng);
	r.axes = &axes;
	gf_request_documents(&r, d);
	if ((r.model && r.model->ntensors > TENSORS_MOST) || r.fabric.ranks > RANKS_MOST) {
		gf_axes_release(&axes);
		return 0;
	}
	rc = gf_request_plan(&r, &p, &notes, &err);
	if (rc < 0) {
		harness_expect_line(&err, NULL);
	} else {
		expect_readable(&p);
		if (!r.policy && !r.system && gf_rng_below(rng, 4) == 0)
			expect_best(&r, &p);
		if (!p.rule)
			replay(&p, rng);
		gf_plan_release(&p);
	}
	gf_text_release(&notes);
	gf_axes_release(&axes);
	return rc == 0;
}

static bool try_plan(const char *data, size_t size, struct gf_rng *rng)
{
	struct gf_documents d = {0};
	struct gf_error err = {""};
	int rc = gf_documents_add_text(&d, data, size, "f", &err);
	bool planned = !rc && use(&d, rng);

	gf_documents_release(&d);
	return planned;
}

static const char *const seeds[] = {
	"tests/data/valid/*.json",
	"share/profiles/*.json",
	"share/topologies/*.json",
	NULL,
};

const struct harness harness = {.seeds = seeds, .try = try_plan};
