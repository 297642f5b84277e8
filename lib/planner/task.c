/* SPDX-License-Identifier: BSD-3-Clause */
#include <math.h>
#include <stdbool.h>
#include <string.h>

#include "base/heap.h"
#include "base/registry.h"
#include "collectives/codecs/codec.h"
#include "documents/algorithm_traits.h"
#include "documents/optimizer_bounds.h"
#include "documents/plan_brief.h"
#include "documents/plan_parts.h"
#include "planner/make.h"
#include "planner/menu.h"
#include "planner/policies/policy.h"
#include "planner/workbench.h"
#include "simulator/period_time.h"
#include "simulator/uncertainty.h"

/* How many levels stand below the one of that name; -1: there is none. */
static int levels_below(const struct gf_fabric *f, const char *name, const char *want,
			struct gf_error *err)
{
	GF_RELEASED(gf_text_release) struct gf_text names = {0};
	size_t i;

	for (i = 0; i < f->nlevels && strcmp(f->levels[i].name, name) != 0; i++)
		gf_text_addf(&names, "%s%s", i ? ", " : "", f->levels[i].name);
	if (i == f->nlevels)
		gf_error_set(err, -EINVAL, "%s of the topology (%s), got %s", want,
			     i ? names.data : "there is none", name);
	return i < f->nlevels ? (int)i : -1;
}

int gf_axes_group(const struct gf_axes *a, const struct gf_fabric *f, int *group,
		  struct gf_error *err)
{
	const struct gf_period *kept = a->followed_period;
	int below = (int)f->nlevels - 1;

	if (a->period_level && !kept)
		below = levels_below(f, a->period_level, "--period: level: want one", err);
	else
		while (below > 0 && f->levels[below].size == 1)
			below--;
	if (a->period_level && !kept && below < 0)
		return -EINVAL;
	*group = kept ? kept->group_ranks : gf_levels_ranks(f->levels, below > 0 ? below : 0);
	if (*group < f->ranks && f->ranks % *group == 0)
		return 0;
	return gf_error_set(err, -EINVAL,
			    "--period: want ranks that make two or more whole groups of %d "
			    "(key level), got %d",
			    *group, f->ranks);
}

/* Axes that the groups or the outer exchange cannot serve. */
static int check(const struct gf_task *t, struct gf_error *err)
{
	const struct gf_model_profile *m = t->problem.model;
	const char *name = gf_period_name(&t->period);

	if (t->system.servers && !gf_period_has(&t->period, GF_PERIOD_SERVERS))
		return gf_error_set(
			err, -EINVAL,
			"--servers: want 0 with period %s, whose groups have no server, got %d",
			name, t->system.servers);
	if (t->period.group_ranks == 1 && t->system.staleness > 1)
		return gf_error_set(err, -EINVAL,
				    "--staleness: want 1 with groups of one rank, which exchange "
				    "nothing in a step (key level), got %d",
				    t->system.staleness);
	if (t->period.group_ranks == 1 && !gf_selection_has(&t->selection, GF_SELECT_LOSSLESS))
		return gf_error_set(err, -EINVAL,
				    "--selection: want dense with groups of one rank, which "
				    "exchange nothing in a step (key level), got %s",
				    gf_selection_name(&t->selection));
	for (size_t i = 1; i < m->ntensors; i++)
		if (m->tensors[i].dtype != m->tensors[0].dtype)
			return gf_error_set(
				err, -EINVAL,
				"--period: want tensors of one type, got others from %s on",
				m->tensors[i].name);
	return 0;
}

/* The period that the request asks for: the problem becomes that of a group. -EINVAL: it
 * contradicts the rest. */
static int pose_period(struct gf_task *t, const struct gf_request *r, struct gf_error *err)
{
	const struct gf_axes *a = r->axes;
	const struct gf_period *followed = a ? a->followed_period : NULL;
	const struct gf_period_plan *plan;
	struct gf_problem *p = &t->problem;
	int rc;

	if (!a)
		return 0;
	t->axes = a;
	plan = followed ? followed->plan : gf_period_plans[a->period > 0 ? a->period : 0];
	t->period = followed ? *followed : *(const struct gf_period *)plan->defaults;
	t->period.plan = plan;
	rc = gf_axes_set_period(a, plan, &t->period, err);
	if (rc < 0)
		return rc;
	if (plan->traits & GF_PERIOD_EVERY) {
		t->period = (struct gf_period){0};
		if (a->hide > 0 || a->period_level || r->outer_codecs)
			return gf_error_set(err, -EINVAL,
					    "--period: want one in which not all ranks exchange "
					    "in every step with %s, got %s",
					    a->hide > 0       ? "hide"
					    : a->period_level ? "level"
							      : "codecs",
					    plan->name);
		return 0;
	}
	rc = gf_axes_group(a, &p->fabric, &t->period.group_ranks, err);
	rc = rc ?: check(t, err);
	if (rc < 0)
		return rc;
	t->outer = (struct gf_problem){
		.model = p->model,
		.fabric = p->fabric,
		.lanes = 1,
		.reproducible = p->reproducible,
		.codecs = r->outer_codecs,
		.codecs_option = "--period: codecs",
		.max_error = r->max_error,
	};
	rc = gf_menu_check_codecs(&t->outer, err);
	if (rc < 0)
		return rc;
	t->outer.fabric.derived = &t->outer_derived;
	p->fabric = gf_sim_group_fabric(&p->fabric, t->period.group_ranks, &t->lines);
	return 0;
}

/* Axes that shards contradict. */
static int check_shards(const struct gf_task *t, const struct gf_request *r, struct gf_error *err)
{
	const char *name = gf_shard_plans[t->shard.method]->name;
	const char *option = t->policy                     ? "--policy"
			     : gf_request_has_threshold(r) ? "--threshold"
			     : r->max_messages             ? "--max-messages"
			     : t->system.servers           ? "--servers"
			     : r->tolerance_asked          ? "--tolerance"
							   : NULL;

	if (option)
		return gf_error_set(err, -EINVAL,
				    "%s: want none with --shard %s, whose units say how tensors "
				    "are cut (key units), got some",
				    option, name);
	if (!gf_selection_has(&t->selection, GF_SELECT_LOSSLESS))
		return gf_error_set(err, -EINVAL, "--selection: want dense with --shard %s, got %s",
				    name, gf_selection_name(&t->selection));
	if (t->system.release != GF_RELEASE_READY)
		return gf_error_set(err, -EINVAL, "--release: want ready with --shard %s, got %s",
				    name, gf_release_names[t->system.release]);
	if (t->system.staleness > 1)
		return gf_error_set(err, -EINVAL, "--staleness: want 1 with --shard %s, got %d",
				    name, t->system.staleness);
	if (!gf_period_has(&t->period, GF_PERIOD_EVERY))
		return gf_error_set(err, -EINVAL, "--period: want every with --shard %s, got %s",
				    name, gf_period_name(&t->period));
	if (t->shard.group_ranks < 2)
		return gf_error_set(err, -EINVAL,
				    "--shard: want two ranks or more that share a copy, got %d",
				    t->shard.group_ranks);
	return 0;
}

/* The ranks that share a copy: those below the level that was named, or all. */
static int find_copy(const struct gf_axes *a, const struct gf_fabric *f, int *ranks,
		     struct gf_error *err)
{
	int below;

	*ranks = a->shard_ranks ? a->shard_ranks : f->ranks;
	if (f->ranks % *ranks != 0)
		return gf_error_set(
			err, -EINVAL,
			"--shard: want ranks that make whole copies of %d (key across), "
			"got %d",
			*ranks, f->ranks);
	if (!a->shard_level)
		return 0;
	below = levels_below(f, a->shard_level, "--shard: across: want a level", err);
	if (below < 0)
		return -EINVAL;
	*ranks = gf_levels_ranks(f->levels, below + 1);
	return 0;
}

static int pose_shards(struct gf_task *t, const struct gf_request *r, struct gf_text *notes,
		       struct gf_error *err)
{
	const struct gf_axes *a = r->axes;
	const char *optimizer, *key;
	int rc = 0;

	if (!a)
		return 0;
	t->memory = a->memory;
	t->shard.method = a->shard > 0 ? a->shard : 0;
	if (a->shard < 0 && t->memory.limit_bytes && !t->policy && gf_task_is_plain(t) &&
	    t->system.release == GF_RELEASE_READY && gf_period_has(&t->period, GF_PERIOD_EVERY))
		t->shard.method = gf_names_index(gf_shard_plans_names, "auto");
	key = gf_axes_shard_lacks(a, t->shard.method);
	if (key)
		return gf_error_set(err, -EINVAL, "--shard: want %s with %s, got %s",
				    t->shard.method ? "zero3 or auto" : "a method", key,
				    gf_shard_plans[t->shard.method]->name);
	optimizer = a->memory_optimizer ? a->memory_optimizer : "adamw";
	if (a->memory_state_bytes >= 0) {
		t->memory.state_bytes = a->memory_state_bytes;
		if (a->memory_optimizer)
			return gf_error_set(err, -EINVAL,
					    "--memory: want optimizer or state, got both");
	} else if (!(t->memory.state_bytes > 0) &&
		   (gf_task_is_held(t) || a->shard >= 0 || a->memory_optimizer)) {
		rc = gf_optimizer_state_bytes(optimizer, &t->memory.state_bytes, err);
		if (rc < 0) {
			gf_error_prefix(err, "--memory: optimizer");
			return rc;
		}
		if (!a->memory_optimizer)
			gf_text_addf(notes,
				     "the optimiser is taken for %s, which keeps %g bytes per "
				     "parameter (--memory optimizer=NAME)\n",
				     optimizer, t->memory.state_bytes);
	}
	if (!t->shard.method)
		return 0;
	rc = find_copy(a, &t->problem.fabric, &t->shard.group_ranks, err);
	return rc ?: check_shards(t, r, err);
}

static int check_names(const struct gf_request *r, struct gf_error *err)
{
	static const struct gf_registry policies = {gf_policies, 0, NULL};
	static const struct gf_registry systems = {gf_systems, sizeof(*gf_systems), NULL};

	if (r->policy && strcmp(r->policy, "auto") != 0 && !gf_policy_find(r->policy))
		return gf_registry_refuse(&policies, "--policy", "auto", r->policy, err);
	if (r->system && !gf_system_find(r->system))
		return gf_registry_refuse(&systems, "--system", NULL, r->system, err);
	return 0;
}

static void collect(const struct gf_request *r, struct gf_problem *p)
{
	*p = (struct gf_problem){
		.model = r->model,
		.fabric = r->fabric,
		.lanes = r->lanes,
		.threshold_bytes = r->threshold_bytes,
		.threshold_zero = r->threshold_zero,
		.algorithm = r->algorithm,
		.max_messages = r->max_messages,
		.reproducible = r->reproducible,
		.max_error = r->max_error,
		.codecs = r->codecs,
	};
}

/* Ranks beyond the topology's are taken for more groups of its outermost level. A host by itself
 * has no more: -EINVAL. */
static int grow(const struct gf_request *r, const struct gf_problem *p, struct gf_text *notes,
		struct gf_error *err)
{
	int ranks = p->fabric.ranks, here = gf_levels_ranks(p->fabric.levels, p->fabric.nlevels),
	    inner;
	const struct gf_level *top;

	if (!p->fabric.levels || ranks <= here ||
	    (p->fabric.network && p->fabric.network->nallreduce > 0))
		return 0;
	if (r->one_host)
		return gf_error_set(
			err, -EINVAL,
			"--ranks: want at most %d, those of the one host that the topology "
			"describes, got %d (gf-topo --synthetic describes a network)",
			here, ranks);
	top = &p->fabric.levels[p->fabric.nlevels - 1];
	inner = here / (int)top->size;
	gf_text_addf(notes,
		     "%d ranks are more than the topology's %d: its level %s is taken for %d wide "
		     "in place of %zu\n",
		     ranks, here, top->name, (ranks + inner - 1) / inner, top->size);
	return 0;
}

/* What is no sum is not priced by the menu: of the codecs that are allowed, messages begin with
 * f32. */
static bool plain_only(const struct gf_selection *s, const struct gf_problem *p)
{
	if (gf_selection_has(s, GF_SELECT_ADDS))
		return false;
	for (size_t i = 0; p->codecs && p->codecs[i]; i++)
		if (gf_codec_is_plain(p->codecs[i]))
			return true;
	return false;
}

/* Factors as large as the levels, unless the user gave some. Fewer ranks than the levels have fill
 * the inner ones first, and more widen the outermost. Ranks that do not fill a level leave the
 * choice open, with a note. */
static void factor_by_levels(struct gf_task *t, struct gf_text *notes)
{
	struct gf_problem *p = &t->problem;
	const struct gf_fabric *f = &p->fabric;
	size_t n = 0, i;
	int left = f->ranks;

	if (!t->system.by_levels || p->nfactors || !f->nlevels ||
	    (p->algorithm && !gf_algorithm_has(p->algorithm, GF_ALGORITHM_LEVELS)))
		return;
	t->by_levels = gf_xcalloc(f->nlevels, sizeof(*t->by_levels));
	for (i = 0; i < f->nlevels && left > 1; i++) {
		int size = (int)f->levels[i].size;

		if (i + 1 == f->nlevels || left < size)
			size = left;
		if (left % size) {
			gf_text_addf(notes,
				     "%d ranks do not fill level %s, %d wide: the factors are "
				     "chosen by their times\n",
				     f->ranks, f->levels[i].name, size);
			return;
		}
		if (size > 1)
			t->by_levels[n++].factor = size;
		left /= size;
	}
	p->factors = n ? t->by_levels : NULL;
	p->nfactors = n;
}

/* Sets what the user left open as the system does it. */
static int apply_system(struct gf_task *t, struct gf_text *notes, struct gf_error *err)
{
	const struct gf_system *s = &t->system;
	struct gf_problem *p = &t->problem;
	GF_RELEASED(gf_menu_release) struct gf_menu menu = {0};
	int rc;

	if (!p->lanes)
		p->lanes = s->lanes;
	if (!p->codecs && s->codecs[0])
		p->codecs = s->codecs;
	if (gf_selection_has(&t->selection, GF_SELECT_SETS) &&
	    !gf_selection_plan(&t->selection)->encoding)
		t->set_codecs = p->codecs;
	if (plain_only(&t->selection, p))
		p->codecs = NULL;
	/* what sets go by is theirs */
	if (p->algorithm || !s->algorithm || gf_selection_has(&t->selection, GF_SELECT_SETS))
		return 0;
	p->algorithm = s->algorithm;
	rc = gf_menu_init(&menu, p, err);
	if (rc != -ENOTSUP || s->by_levels)
		return rc;
	p->algorithm = NULL;
	gf_text_addf(notes,
		     "%s exchanges by %s, whose cost is not known here: the cheapest algorithm is "
		     "used\n",
		     s->name, s->algorithm);
	return 0;
}

/* The threshold of lazy all-reduce for this problem, given or searched, and a time that no plan of
 * it beats. */
static int find_packs(const struct gf_problem *in, size_t *threshold_bytes, double *bound_s,
		      struct gf_error *err)
{
	GF_RELEASED(gf_draft_release) struct gf_draft d = {0};
	GF_RELEASED(gf_workbench_release) struct gf_workbench w = {0};
	int rc = gf_workbench_init(&w, in, err);

	if (rc < 0)
		return rc;
	gf_draft_make(&d, &w, &gf_policy_threshold, 1);
	*threshold_bytes = d.threshold_bytes;
	*bound_s = gf_workbench_bound_s(&w, in->lanes ? in->lanes : GF_LANES_MOST);
	return 0;
}

/*
 * A selection that cuts messages anew sends packs of kept bytes in all but the first steps. The
 * packs choose the threshold and give the bound.
 */
static int pack(struct gf_task *t, struct gf_error *err)
{
	struct gf_problem kept = t->problem;
	struct gf_wire wires[GF_WIRES_MOST];

	gf_selection_wire(&t->selection, kept.model->tensors, kept.model->ntensors,
			  gf_model_profile_elems(kept.model), wires);
	kept.keep = wires[0].share;
	if (t->policy == &gf_policy_single && !kept.threshold_bytes && !kept.threshold_zero)
		kept.threshold_bytes = gf_model_profile_bytes(kept.model);
	return find_packs(&kept, &t->problem.threshold_bytes, &t->bound_s, err);
}

static bool measured_with(const struct gf_network *n, const char *codec)
{
	for (size_t i = 0; n && i < n->nallreduce; i++)
		if (strcmp(gf_allreduce_codec(&n->allreduce[i]), codec) == 0)
			return true;
	return false;
}

/* Adds a name to the list of those that cost nothing, or of those whose costs were not measured
 * here. */
static void judge(const struct gf_processing_entry *e, const char *name, struct gf_text *free,
		  struct gf_text *assumed)
{
	struct gf_text *list = !e ? free : e->assumed ? assumed : NULL;

	if (list)
		gf_text_addf(list, "%s%.*s", list->length ? ", " : "", gf_codec_title_length(name),
			     name);
}

/* Of the problem's codecs, but for those that have been judged. */
static void judge_codecs(const struct gf_problem *p, const char *const *judged,
			 struct gf_text *free, struct gf_text *assumed)
{
	const struct gf_fabric f = {.processing = p->fabric.processing, .device = p->model->device};

	for (size_t i = 0; p->codecs && p->codecs[i]; i++) {
		const char *codec = p->codecs[i];

		if (gf_codec_find(codec) && !gf_codec_is_plain(codec) &&
		    !(judged && gf_names_index(judged, codec) >= 0) &&
		    !measured_with(p->fabric.network, codec))
			judge((const void *)gf_fabric_codec(&f, codec), codec, free, assumed);
	}
}

/* Of the codecs and the selection that the task may use. */
static void judge_task(const struct gf_task *t, struct gf_text *free, struct gf_text *assumed)
{
	const struct gf_problem *p = &t->problem;
	const struct gf_fabric f = {.processing = p->fabric.processing, .device = p->model->device};
	const char *name = gf_selection_name(&t->selection);
	const char *title = gf_selection_title(&t->selection);

	judge_codecs(p, NULL, free, assumed);
	if (!gf_period_has(&t->period, GF_PERIOD_EVERY))
		judge_codecs(&t->outer, p->codecs, free, assumed);
	if (!gf_selection_has(&t->selection, GF_SELECT_LOSSLESS) &&
	    !gf_selection_s_per_byte(&t->selection))
		judge((const void *)gf_fabric_selection(&f, name), title, free, assumed);
}

/* Notes which codecs and selections that may be used are taken for free, and whose costs are
 * assumed. */
static void note_processing(const struct gf_task *t, struct gf_text *notes)
{
	GF_RELEASED(gf_text_release) struct gf_text free = {0}, assumed = {0};

	judge_task(t, &free, &assumed);
	if (free.length)
		gf_text_addf(notes,
			     "no profile says what this costs the processor, and it is taken for "
			     "free: %s\n",
			     free.data);
	if (assumed.length)
		gf_text_addf(notes, "what this costs the processor is assumed: %s\n", assumed.data);
}

unsigned gf_task_unsure(const struct gf_task *t, const struct gf_plan *p)
{
	const struct gf_plan outer = gf_period_outer_view(p);
	const char *codecs[GF_CODECS_MOST + 1], *outer_codecs[GF_CODECS_MOST + 1];
	GF_RELEASED(gf_text_release) struct gf_text free = {0}, assumed = {0};
	struct gf_task used = *t;
	unsigned unsure = 0;

	used.problem.codecs = gf_plan_codecs(p, codecs);
	used.outer.codecs = gf_plan_codecs(&outer, outer_codecs);
	judge_task(&used, &free, &assumed);
	if (free.length)
		unsure |= GF_UNSURE_FREE;
	if (assumed.length && strcmp(t->problem.model->device, GF_DEVICE_ESTIMATE) != 0)
		unsure |= GF_UNSURE_ASSUMED;
	return unsure;
}

/* Plans that differ by less than the doubt of the measurements count as equal. There is a limit:
 * most of the doubt is the same for both. */
static double default_tolerance(const struct gf_network *net)
{
	return fmin(fmax(GF_TOLERANCE, gf_uncertainty_least(net)), GF_TOLERANCE_MOST);
}

static int pose_whole(const struct gf_request *r, struct gf_task *t, struct gf_text *notes,
		      struct gf_error *err)
{
	const struct gf_select_plan *selection = gf_selection_plan(&t->selection);
	struct gf_problem *p = &t->problem;
	const char *policy = r->policy ? r->policy : t->system.policy;
	int rc;

	if (policy && strcmp(policy, "auto") != 0)
		t->policy = gf_policy_find(policy);
	p->release = t->system.release;
	p->tolerance = r->tolerance_asked ? r->tolerance
		       : t->policy        ? 0
					  : default_tolerance(r->fabric.network);
	p->fabric.servers = t->system.servers;
	/* documents count every rank, --ranks those that compute */
	if (r->ranks_asked)
		p->fabric.ranks += p->fabric.servers;
	if (p->fabric.ranks - p->fabric.servers < 1)
		return gf_error_set(err, -EINVAL,
				    "--servers: want a rank beside the server, got %d ranks in all",
				    r->fabric.ranks);
	if (r->algorithm && gf_selection_has(&t->selection, GF_SELECT_SETS))
		return gf_error_set(err, -EINVAL,
				    "--algorithms: want none with selection %s, which has an "
				    "exchange of its own, got %s",
				    gf_selection_name(&t->selection), r->algorithm);
	rc = grow(r, p, notes, err);
	rc = rc ?: pose_period(t, r, err);
	rc = rc ?: pose_shards(t, r, notes, err);
	if (rc < 0)
		return rc;
	if (r->axes) {
		rc = gf_axes_algorithm(r->axes, p->fabric.ranks - p->fabric.servers, &p->algorithm,
				       err);
		if (rc < 0)
			return rc;
		p->factors = r->axes->factors;
		p->nfactors = r->axes->nfactors;
	}
	factor_by_levels(t, notes);
	rc = apply_system(t, notes, err);
	if (rc == 0 && selection->fit)
		rc = selection->fit(t->selection.params, p->model, gf_axes_asked, r->axes, notes,
				    err);
	if (rc == 0 && selection->traits & GF_SELECT_RECUTS)
		rc = pack(t, err);
	if (rc == 0)
		note_processing(t, notes);
	return rc;
}

int gf_request_pose(const struct gf_request *r, struct gf_task *t, struct gf_text *notes,
		    struct gf_error *err)
{
	int rc = check_names(r, err);

	if (rc < 0)
		return rc;
	memset(t, 0, sizeof(*t));
	t->system = *gf_system_find(r->system ? r->system : "auto");
	if (!t->system.staleness)
		t->system.staleness = 1;
	rc = gf_axes_apply(r->axes, &t->system, &t->selection, err);
	if (rc < 0)
		return rc;
	collect(r, &t->problem);
	t->derived.replays = t->outer_derived.replays = r->fabric.replays;
	t->problem.fabric.derived = &t->derived;
	if (!r->fabric.network && !r->fabric.nlevels)
		rc = gf_error_set(err, -EINVAL,
				  "want a topology or a profile with a network, found neither");
	else if (r->model && r->fabric.ranks)
		rc = pose_whole(r, t, notes, err);
	else if (r->axes && r->axes->period > 0)
		rc = gf_error_set(err, -EINVAL,
				  "--period: want a model and a number of ranks (--model, "
				  "--ranks), found no %s",
				  r->model ? "ranks" : "model");
	if (rc < 0)
		gf_task_release(t);
	return rc;
}

static void note_derived(const struct gf_problem *p, struct gf_text *notes)
{
	static const char slower[] = "n messages at once are taken for n times slower";
	const int ranks = p->fabric.ranks;
	const struct gf_derived *d = p->fabric.derived;
	bool crowded = p->lanes != 1 && d->unknown;

	if (d->unpriced)
		gf_text_addf(notes,
			     "%s on %d ranks has too many steps to replay: its cost is a closed "
			     "form's%s%s\n",
			     d->unpriced, ranks, crowded ? ", and " : "", crowded ? slower : "");
	else if (crowded)
		gf_text_addf(notes, "%s on %d ranks has too many steps to replay: %s\n", d->unknown,
			     ranks, slower);
}

void gf_task_note(const struct gf_task *t, struct gf_text *notes)
{
	note_derived(&t->problem, notes);
}

void gf_task_note_outer(const struct gf_task *t, struct gf_text *notes)
{
	if (!gf_period_has(&t->period, GF_PERIOD_EVERY))
		note_derived(&t->outer, notes);
}

void gf_task_release(struct gf_task *t)
{
	gf_selection_release(&t->selection);
	gf_derived_release(&t->derived);
	gf_derived_release(&t->outer_derived);
	free(t->by_levels);
	memset(t, 0, sizeof(*t));
}
