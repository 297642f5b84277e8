/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A plan that another program can run, and what it gains there. The program reduces by its own
 * all-reduce, one message at a time, in one codec; so the plan is made for that. Its time stands
 * beside that of the program as it is, and of the best that one cap of all buckets does.
 */
#include "settings/emit.h"

#include <math.h>
#include <string.h>

#include "base/registry.h"
#include "base/array.h"
#include "base/heap.h"
#include "cli/human.h"
#include "collectives/codecs/codec.h"
#include "planner/policies/policy.h"
#include "simulator/predict.h"
#include "simulator/sum_error.h"
#include "simulator/uncertainty.h"

/* A plan has a period where the target takes one, and nowhere else: -ENOTSUP. given: as
 * gf_request_emit's. */
static int check_period(const struct gf_request *r, const struct gf_plan *given,
			const struct gf_emitter *e, struct gf_error *err)
{
	const int asked = r->axes && r->axes->period > 0 ? r->axes->period : 0;
	const struct gf_period_plan *got =
		given ? gf_period_plan(&given->period) : gf_period_plans[asked];
	const bool period = !(got->traits & GF_PERIOD_EVERY);

	if (period == ((e->takes & GF_EMIT_PERIOD) != 0))
		return 0;
	if (period)
		return gf_error_set(err, -ENOTSUP,
				    "--emit %s: want a plan in which all ranks exchange in every "
				    "step, got period %s",
				    e->name, got->name);
	return gf_error_set(err, -ENOTSUP,
			    "--emit %s: want a plan with a period (--period diloco), got %s",
			    e->name, got->name);
}

/* --- what a step takes without the plan, and with it -----------------------
 */

/* The algorithm of a target: the backend's own. */
static const char backends_own[] = "library";

/* Caps of all buckets that are tried, in MiB; then steps of a tenth. */
static const double caps_mib[] = {
	0.0625, 0.125, 0.25, 0.5, 1, 2, 3, 4, 5, 6, 8, 10, 12, 15, 18, 20, 25, 30, 35, 40, 45, 50,
};
#define MIB       1048576.0
#define CAPS_MOST 128

static double next_cap(size_t i, double cap_bytes)
{
	return i < GF_ARRAY_LENGTH(caps_mib) ? caps_mib[i] * MIB
					     : ceil(cap_bytes * 1.1 / MIB) * MIB;
}

static double task_s(const struct gf_task *t, const struct gf_policy *policy)
{
	struct gf_error err = {""};
	GF_RELEASED(gf_plan_release) struct gf_plan p = {0};

	return gf_task_plan(t, policy, &p, &err) < 0 ? 0 : p.predicted->iteration_s;
}

struct capped {
	double bytes, s, most_s;
};

/* All of a task that asks for the policy; how many. */
static size_t try_caps(struct gf_task *t, const struct gf_policy *policy,
		       struct capped tried[CAPS_MOST])
{
	double all = (double)gf_model_profile_bytes(t->problem.model);
	size_t n = 0, i;
	double cap = 0;

	for (i = 0; i < CAPS_MOST && cap < all; i++) {
		struct capped *c = &tried[n];

		cap = next_cap(i, cap);
		t->problem.threshold_bytes = (size_t)cap;
		c->bytes = cap;
		c->s = task_s(t, policy);
		c->most_s = fmax(c->s, task_s(t, &gf_policy_ddp_capped));
		n += c->s > 0;
	}
	return n;
}

/* The largest cap that is as good as any, with the plan's codec and selection.
 */
static void find_cap(const struct gf_request *r, const struct gf_emitter *e,
		     const struct gf_plan *p, struct gf_emit_times *out)
{
	const char *codecs[] = {p->messages[0].codec, NULL};
	struct gf_request asked = *r;
	struct capped tried[CAPS_MOST];
	GF_RELEASED(gf_text_release) struct gf_text notes = {0};
	struct gf_error err = {""};
	double best_s = INFINITY;
	GF_RELEASED(gf_axes_release) struct gf_axes axes;
	GF_RELEASED(gf_task_release) struct gf_task t = {0};
	size_t n = 0, i;

	gf_axes_init(&axes);
	gf_axes_follow(&axes, p);
	asked.axes = &axes;
	asked.codecs = codecs;
	if (gf_request_pose(&asked, &t, &notes, &err) == 0)
		n = try_caps(&t, e->as_it_is, tried);
	for (i = 0; i < n; i++)
		best_s = fmin(best_s, tried[i].most_s);
	/* and no worse than the default for it, if the best is not */
	if (best_s <= out->default_s)
		best_s = fmin(best_s * (1 + GF_TOLERANCE), out->default_s);
	for (i = 0; i < n; i++) {
		if (tried[i].most_s > best_s)
			continue;
		out->cap_bytes = tried[i].bytes;
		out->cap_s = tried[i].s;
		out->cap_most_s = tried[i].most_s;
	}
}

/* The plan as the target runs it; 0: what its messages cost is not known. */
static double run_s(const struct gf_plan *p, const char *algorithm, int lanes)
{
	struct gf_sim_result result = {0};
	struct gf_fabric fabric;
	struct gf_error err = {""};
	GF_RELEASED(gf_plan_release) struct gf_plan run = {0};
	int rc;

	gf_plan_copy(&run, p);
	run.lanes = lanes;
	for (size_t i = 0; i < run.nmessages; i++) {
		struct gf_message *m = &run.messages[i];

		m->mode = GF_MODE_NORMAL;
		m->release = GF_RELEASE_READY;
		if (!algorithm)
			continue;
		free(m->algorithm);
		m->algorithm = gf_xstrdup(algorithm);
		for (size_t k = 0; k < m->nstages; k++)
			free(m->stages[k].algorithm);
		m->nstages = 0;
	}
	fabric = gf_plan_fabric(&run);
	rc = gf_predict_plan(&run, &fabric, &result, &err);
	return rc < 0 || gf_plan_is_derived(&run) != gf_plan_is_derived(p) ? 0 : result.iteration_s;
}

/* What the target does by itself. Returns the request for its own all-reduce, or, where nothing
 * says what that costs, for the cheapest algorithm. */
static struct gf_request by_itself(const struct gf_request *r, const struct gf_emitter *e,
				   struct gf_emit_times *out)
{
	struct gf_request plain = {
		.algorithm = r->algorithm ? r->algorithm : backends_own,
		.policy = e->as_it_is->name,
		.lanes = 1,
	};

	out->default_s = gf_request_plain_s(r, &plain);
	if (out->default_s > 0)
		return plain;
	plain.algorithm = NULL;
	out->default_s = gf_request_plain_s(r, &plain);
	return plain;
}

static void note_times(const struct gf_emitter *e, const struct gf_plan *p,
		       const struct gf_emit_times *t, struct gf_text *notes)
{
	const bool period = e->takes & GF_EMIT_PERIOD;

	gf_text_addf(notes, "%s as it is%s: %s a step; ", e->program,
		     period ? ", an exchange in each step" : "",
		     t->default_s > 0 ? gf_human_time(t->default_s).text : "unknown");
	if (period)
		gf_text_addf(notes, "as planned: %s\n", gf_human_time(t->plan_s).text);
	else if (gf_emit_plan_pays(t))
		gf_text_addf(notes, "%zu message%s: %s\n", p->nmessages,
			     p->nmessages == 1 ? "" : "s", gf_human_time(t->plan_s).text);
	else
		gf_text_addf(notes, "buckets of %g MiB: %s\n", t->cap_bytes / MIB,
			     gf_human_time(t->cap_s).text);
}

/* 1: neither the plan nor a cap gains enough over the target's default. */
static int check_times(const struct gf_emitter *e, const struct gf_emit_times *t,
		       struct gf_error *err)
{
	if (gf_emit_plan_pays(t) || gf_emit_cap_pays(t))
		return 0;
	return gf_emit_nothing(e, e->program, t,
			       t->cap_s > 0 ? fmin(t->plan_s, t->cap_s) : t->plan_s, err);
}

/* --- a plan for a target --------------------------------------------------
 */

static bool sends_sets(const struct gf_request *r)
{
	return r->axes && r->axes->selection >= 0 &&
	       gf_select_plans[r->axes->selection]->traits & GF_SELECT_SETS;
}

/* As gf_request_plan; with the cheapest of all algorithms where nothing says what the backend's own
 * costs. */
static int plan_library(const struct gf_request *r, struct gf_plan *p, struct gf_text *notes,
			struct gf_error *err)
{
	struct gf_request own = *r;
	GF_RELEASED(gf_text_release) struct gf_text own_notes = {0};
	int rc;

	if (r->algorithm || r->system || sends_sets(r))
		return gf_request_plan(r, p, notes, err);
	own.algorithm = backends_own;
	rc = gf_request_plan(&own, p, &own_notes, err);
	if (rc == 0 && own_notes.length)
		gf_text_add(notes, own_notes.data, own_notes.length);
	if (rc != -ENOTSUP)
		return rc;
	gf_text_addf(notes, "nothing says what the all-reduce of the target costs: the cheapest "
			    "algorithm stands for it\n");
	return gf_request_plan(r, p, notes, err);
}

/* One codec for all messages: the best of those that may be used. */
static int plan_for(const struct gf_request *r, const struct gf_emitter *e, struct gf_plan *p,
		    struct gf_text *notes, struct gf_error *err)
{
	struct gf_request one = *r;
	const char *codecs[2] = {NULL, NULL};
	size_t found = 0, i;
	int rc = 0;

	if (!one.lanes && !one.system)
		one.lanes = 1;
	for (i = 0; r->codecs && r->codecs[0] && r->codecs[i]; i++) {
		GF_RELEASED(gf_text_release) struct gf_text again = {0};
		struct gf_plan next;

		if (!gf_codec_find(r->codecs[i]) || (r->codecs[1] && !e->takes_codec(r->codecs[i])))
			continue;
		codecs[0] = r->codecs[i];
		one.codecs = codecs;
		rc = plan_library(&one, &next, found ? &again : notes, err);
		if (rc < 0)
			break;
		if (found++ && next.predicted &&
		    p->predicted->iteration_s <= next.predicted->iteration_s) {
			gf_plan_release(&next);
			continue;
		}
		if (found > 1)
			gf_plan_release(p);
		*p = next;
	}
	if (rc < 0 && found)
		gf_plan_release(p);
	return rc < 0 || found ? rc : plan_library(&one, p, notes, err);
}

static const struct gf_emitter *find(const char *target, struct gf_error *err)
{
	const struct gf_emitter *e = gf_named_find(gf_emitters, 0, target);

	if (!e)
		gf_registry_refuse(&(struct gf_registry){gf_emitters, 0, NULL}, "--emit", NULL,
				   target, err);
	return e;
}

/* As the tolerance allows, unless the target is faster by itself. */
static int plan_timed(const struct gf_request *r, const struct gf_emitter *e, const char *algorithm,
		      struct gf_emit_times *times, struct gf_plan *p, struct gf_text *notes,
		      struct gf_error *err)
{
	struct gf_request exact = *r;
	GF_RELEASED(gf_text_release) struct gf_text again = {0};
	int rc = plan_for(r, e, p, notes, err);

	if (rc < 0 || p->rule)
		return rc;
	times->plan_s = run_s(p, algorithm, 1);
	if (r->tolerance_asked || r->policy || r->system || !(times->plan_s > times->default_s))
		return 0;
	exact.tolerance_asked = true;
	gf_plan_release(p);
	rc = plan_for(&exact, e, p, &again, err);
	if (rc == 0)
		times->plan_s = run_s(p, algorithm, 1);
	return rc;
}

/* For a program that reduces by itself. */
static int plan_program(const struct gf_request *r, const struct gf_plan *given,
			const struct gf_emitter *e, struct gf_plan *p, struct gf_text *notes,
			struct gf_emit_times *times, struct gf_error *err)
{
	struct gf_emit_times none = {0};
	struct gf_request plain = {0};
	GF_RELEASED(gf_text_release) struct gf_text text = {0};
	int rc = 0;

	if (r->model && r->fabric.ranks && !r->rule && !(given && given->rule))
		plain = by_itself(r, e, times);
	if (given)
		gf_plan_copy(p, given);
	else
		rc = plan_timed(r, e, plain.algorithm, times, p, notes, err);
	if (rc < 0)
		return rc;
	/* what cannot be emitted is refused before it is compared */
	rc = e->emit(p, &none, &text, err);
	if (rc < 0) {
		gf_plan_release(p);
		return rc;
	}
	if (p->rule)
		return 0;
	if (!r->algorithm && gf_plan_is_derived(p))
		times->default_s = 0;
	if (given)
		times->plan_s = run_s(p, plain.algorithm, 1);
	if (e->takes & GF_EMIT_CAP)
		find_cap(&plain, e, p, times);
	return 0;
}

/* The codecs of the request that keep its bound as the target adds. The caller frees. The plan
 * keeps it for a target that adds by the plan's algorithms. */
static int bound_codecs(struct gf_request *r, const struct gf_emitter *e, const char ***kept,
			struct gf_error *err)
{
	static const char *const plain[] = {"f32", NULL};
	const char *const *codecs = r->codecs && r->codecs[0] ? r->codecs : plain;
	const bool scattered = e->takes & GF_EMIT_SHARDS;
	double error, least = INFINITY;
	size_t n = 0, i;

	*kept = NULL;
	if (!(r->max_error > 0) || !r->fabric.ranks ||
	    !(e->takes & (GF_EMIT_CODECS | GF_EMIT_SHARDS)) || (r->system && codecs == plain))
		return 0;
	for (i = 0; codecs[i];)
		i++;
	*kept = gf_xcalloc(i + 1, sizeof(**kept));
	for (i = 0; codecs[i]; i++) {
		const bool is_plain = gf_codec_is_plain(codecs[i]);

		error = gf_sim_library_error(codecs[i], r->fabric.ranks, scattered, r->model);
		if (error <= r->max_error || (isnan(error) && is_plain))
			(*kept)[n++] = codecs[i];
		else if (!(error >= least))
			gf_error_set(err, 1,
				     "--emit %s: --max-error: want at most %g, got %.1e of %s on "
				     "%d ranks%s",
				     e->name, r->max_error, least = error, codecs[i],
				     r->fabric.ranks,
				     is_plain ? "" : ": allow f32, too (--codecs)");
	}
	r->codecs = *kept;
	r->max_error = 0;
	return n ? 0 : 1;
}

/* --- a request ------------------------------------------------------------
 */

static int request_emit(const struct gf_request *r, const struct gf_plan *given,
			const struct gf_emitter *e, struct gf_plan *p, struct gf_text *out,
			struct gf_text *notes, struct gf_error *err)
{
	struct gf_emit_times times = {0};
	struct gf_request there = *r;
	int rc;

	/* several messages at once take a job of several communicators, which is asked for */
	if (e->takes & GF_EMIT_ALGORITHM && !there.lanes && !there.system)
		there.lanes = 1;
	rc = check_period(&there, given, e, err);
	if (rc < 0)
		return rc;
	if (e->takes & GF_EMIT_SIZES)
		return gf_emit_by_size(&there, given, e, out, notes, err);
	if (e->takes & GF_EMIT_SHARDS)
		return gf_emit_by_shards(&there,
					 given && gf_shard_is_used(&given->shard) ? given : NULL, e,
					 p, out, notes, err);
	if (e->emit_cap)
		return gf_emit_by_cap(&there, e, p, out, notes, err);
	if (e->as_it_is && !(e->takes & GF_EMIT_PERIOD))
		rc = plan_program(&there, given, e, p, notes, &times, err);
	else if (given)
		gf_plan_copy(p, given);
	else
		rc = gf_request_plan(&there, p, notes, err);
	if (rc < 0)
		return rc;
	if (e->takes & GF_EMIT_ALGORITHM && p->model && !p->rule) {
		/* the same messages, by the choice of the target */
		times.default_s = run_s(p, backends_own, p->lanes);
		times.plan_s = run_s(p, NULL, p->lanes);
	} else if (e->takes & GF_EMIT_PERIOD && p->predicted) {
		by_itself(&there, e, &times);
		times.plan_s = p->predicted->iteration_s;
	}
	times.doubt = gf_emit_doubt(p);
	rc = e->emit(p, &times, out, err);
	rc = rc ?: check_times(e, &times, err);
	if (rc)
		gf_plan_release(p);
	else if (times.plan_s > 0)
		note_times(e, p, &times, notes);
	return rc;
}

int gf_request_emit(const struct gf_request *r, const struct gf_plan *given, const char *target,
		    struct gf_plan *p, struct gf_text *out, struct gf_text *notes,
		    struct gf_error *err)
{
	const struct gf_emitter *e = find(target, err);
	struct gf_request there = *r;
	GF_FREED const char **codecs = NULL;
	int rc;

	if (!e)
		return -EINVAL;
	memset(p, 0, sizeof(*p));
	there.elsewhere = true;
	rc = bound_codecs(&there, e, &codecs, err);
	return rc ?: request_emit(&there, given, e, p, out, notes, err);
}
