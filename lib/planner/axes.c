/* SPDX-License-Identifier: BSD-3-Clause */
#include "planner/axes.h"

#include <math.h>
#include <stdint.h>
#include <string.h>

#include "base/heap.h"
#include "base/units.h"
#include "documents/algorithm_traits.h"
#include "documents/periods/period.h"
#include "documents/selections/selection.h"

#define AT(member) offsetof(struct gf_axes, member)
static const struct gf_field staleness_fields[] = {
	{GF_MEMBER(staleness, GF_FIELD_INT, GF_REQUIRED), .low = 1, .high = 1024},
	{"warmup_steps", GF_FIELD_STEPS, .offset = AT(pipeline_warmup_steps),
	 .count_offset = AT(pipeline_warmup_part), .high = GF_MAX_SIZE, .unit = "STEPS",
	 .help = "synchronous steps before stale ones: a number, 4epochs, or 5% of the run (0)"},
	{NULL},
};
static const struct gf_field period_fields[] = {
	{"level", GF_FIELD_STRING, .offset = AT(period_level), .unit = "NAME",
	 .help = "the level whose links are used once in a period (the outermost)"},
	{GF_MEMBER(hide, GF_FIELD_REAL, GF_REQUIRED), .low = GF_MIN_SHARE, .high = 1,
	 .unit = "SHARE",
	 .help = "take the shortest period of which at most this share is exposed, e.g. 5%"},
	{"codecs", GF_FIELD_STRING, .offset = AT(outer_codecs), .unit = "LIST",
	 .help = "that messages between groups may use, e.g. f32,q8 (f32)"},
	{NULL},
};
static const char *const keeps[] = {"auto", "no", "yes", NULL};
static const struct gf_field shard_fields[] = {
	{"across", GF_FIELD_STRING, .offset = AT(shard_level), .unit = "NAME",
	 .help = "the outermost level across whose ranks a copy is cut (all of them)"},
	{"units", GF_FIELD_STRING, .offset = AT(shard_units), .unit = "RULE",
	 .help = "how layers are cut into units: auto, layer, block, model, fsdp2, deepspeed, "
		 "megatron, or bytes, e.g. 64M (auto)"},
	{"ahead", GF_FIELD_SIZE, .offset = AT(shard_ahead), .high = GF_MAX_COUNT, .unit = "N",
	 .help = "units that are gathered ahead of the one that computes (the best)"},
	{"keep", GF_FIELD_CHOICE, .offset = AT(shard_keep), .names = keeps, .unit = "WHICH",
	 .help = "keep units from forward to backward: auto, no or yes (auto)"},
	{NULL},
};
static const struct gf_field memory_fields[] = {
	{"limit", GF_FIELD_SIZE, .offset = AT(memory.limit_bytes), .low = 1, .high = GF_MAX_SIZE,
	 .unit = "SIZE"},
	{"optimizer", GF_FIELD_STRING, .offset = AT(memory_optimizer), .unit = "NAME",
	 .help = "whose state a rank keeps, of those of gf-train (adamw)"},
	{"state", GF_FIELD_REAL, .offset = AT(memory_state_bytes), .high = 1e6, .unit = "BYTES",
	 .help = "what an optimiser keeps for a parameter, where none is named"},
	{"recompute", GF_FIELD_BOOL, .offset = AT(memory.recompute), .unit = "YES",
	 .help = "backward makes activations again, by segments of the model (no)"},
	{NULL},
};
const struct gf_record gf_axes_shard_keys = {.bytes = sizeof(struct gf_axes),
					     .fields = shard_fields};
const struct gf_record gf_axes_memory_keys = {.bytes = sizeof(struct gf_axes),
					      .fields = memory_fields};
const struct gf_record gf_axes_staleness_keys = {.bytes = sizeof(struct gf_axes),
						 .fields = staleness_fields};
const struct gf_record gf_axes_period_keys = {.bytes = sizeof(struct gf_axes),
					      .fields = period_fields};

int gf_axes_set_period(const struct gf_axes *a, const struct gf_period_plan *plan,
		       struct gf_period *period, struct gf_error *err)
{
	const struct gf_keyed of[] = {{plan->record, period}, {&gf_axes_period_keys, NULL}};
	int rc = gf_keys_set(a->period_keys, of, 2, a->all_periods, err);

	if (rc)
		gf_error_prefix(err, "--period: %s", plan->name);
	return rc;
}

/* "mine:density=0.004": the name is a key, too. */
static int set_own(const char *text, struct gf_selection *s, struct gf_error *err)
{
	const struct gf_keyed of = {gf_selection_plan(s)->record, s->params};
	const size_t n = strcspn(text, ":");
	GF_FREED char *name = gf_xasprintf("name=%.*s", (int)n, text);
	int rc = gf_keys_set(text + n + 1, &of, 1, false, err);

	rc = rc ?: gf_keys_set(name, &of, 1, false, err);
	if (rc)
		gf_error_prefix(err, "--selection: %.*s", (int)n, text);
	return rc;
}

static int set_selection(const struct gf_axes *a, struct gf_selection *s, struct gf_error *err)
{
	const struct gf_keyed of = {gf_selection_plan(s)->record, s->params};
	int rc;

	if (a->own_selection)
		return set_own(a->own_selection, s, err);
	rc = gf_keys_set(a->selection_keys, &of, 1, a->all_selections, err);
	rc = rc ?: gf_keys_set(a->more_keys, &of, 1, false, err);
	if (rc)
		gf_error_prefix(err, "--selection: %s", gf_selection_name(s));
	return rc;
}

void gf_axes_init(struct gf_axes *a)
{
	*a = (struct gf_axes){
		.selection = -1,
		.release = -1,
		.period = -1,
		.pipeline_warmup_steps = SIZE_MAX,
		.shard = -1,
		.shard_ahead = SIZE_MAX,
		.memory_state_bytes = NAN,
	};
}

bool gf_axes_asked(const void *axes, const char *key)
{
	const struct gf_axes *a = axes;

	return a && (a->followed || gf_keys_have(a->selection_keys, key) ||
		     gf_keys_have(a->more_keys, key));
}

/* The selection before the user's keys: of the axes, of the plan that is followed, or of the
 * system. */
static struct gf_selection base_selection(const struct gf_axes *a, const struct gf_system *s)
{
	const struct gf_select_plan *plan = s->selection;

	if (a && a->followed)
		return gf_selection_copy(a->followed);
	if (a && a->own_selection)
		plan = &gf_described_selection;
	else if (a && a->selection >= 0)
		plan = gf_select_plans[a->selection];
	return gf_selection_new(plan, plan ? plan->defaults : NULL);
}

/* Servers and factors are of all-reduces that not every selection makes. */
static int check_reduces(const struct gf_axes *a, const struct gf_selection *s,
			 struct gf_error *err)
{
	bool adds = gf_selection_has(s, GF_SELECT_ADDS);

	if ((!a->servers || gf_selection_has(s, GF_SELECT_SERVERS)) && (!a->factored || adds))
		return 0;
	return gf_error_set(err, -EINVAL, "--%s: want none with selection %s, which %s, got some",
			    a->servers ? "servers" : "factors", gf_selection_name(s),
			    adds ? "no server can add up" : "has an exchange of its own");
}

static int apply(const struct gf_axes *axes, struct gf_system *s, struct gf_selection *selection,
		 struct gf_error *err)
{
	int rc = set_selection(axes, selection, err);

	rc = rc ?: check_reduces(axes, selection, err);
	if (axes->release >= 0)
		s->release = (enum gf_release)axes->release;
	if (axes->staleness)
		s->staleness = axes->staleness;
	if (axes->pipeline_warmup_steps != SIZE_MAX) {
		s->pipeline_warmup_steps = axes->pipeline_warmup_steps;
		s->pipeline_warmup_part = axes->pipeline_warmup_part;
	}
	if (rc == 0 && s->staleness <= 1 &&
	    (s->pipeline_warmup_steps || s->pipeline_warmup_part.of))
		rc = gf_error_set(err, -EINVAL,
				  "--staleness: want more than 1 with a warmup, got %d",
				  s->staleness);
	s->servers = axes->servers;
	return rc;
}

int gf_axes_apply(const struct gf_axes *axes, struct gf_system *s, struct gf_selection *selection,
		  struct gf_error *err)
{
	int rc;

	*selection = base_selection(axes, s);
	rc = axes ? apply(axes, s, selection, err) : 0;
	if (rc < 0)
		gf_selection_release(selection);
	return rc;
}

void gf_axes_follow(struct gf_axes *a, const struct gf_plan *p)
{
	if (a->selection < 0 || gf_select_plans[a->selection] == gf_selection_plan(&p->selection))
		a->followed = &p->selection;
	if (!a->staleness)
		a->staleness = p->staleness;
	if (a->pipeline_warmup_steps == SIZE_MAX && a->staleness > 1) {
		a->pipeline_warmup_steps = p->pipeline_warmup_steps;
		a->pipeline_warmup_part = p->pipeline_warmup_part;
	}
	if (!a->servers)
		a->servers = p->servers;
	if (a->shard < 0 && gf_shard_is_used(&p->shard)) {
		a->shard = p->shard.method;
		a->shard_ranks = p->shard.group_ranks < p->ranks ? p->shard.group_ranks : 0;
		a->memory = p->memory;
	}
}

const char *gf_axes_shard_lacks(const struct gf_axes *a, int method)
{
	const bool gathers = gf_shard_method_may_gather(method);

	return !method && a->shard_level                ? "across"
	       : !method && a->shard_units              ? "units"
	       : !gathers && a->shard_ahead != SIZE_MAX ? "ahead"
	       : !gathers && a->shard_keep              ? "keep"
							: NULL;
}

void gf_axes_take_shard(struct gf_axes *a, int method)
{
	a->shard = method;
	if (!method)
		a->shard_level = a->shard_units = NULL;
	if (!gf_shard_method_may_gather(method)) {
		a->shard_ahead = SIZE_MAX;
		a->shard_keep = 0;
	}
}

static int check_factors(const struct gf_axes *a, int ranks, const char *algorithm,
			 struct gf_error *err)
{
	const double product = gf_stages_ranks(a->factors, a->nfactors);

	if (product != ranks)
		return gf_error_set(err, -EINVAL,
				    "--factors: want a product of the %d ranks, got %.0f", ranks,
				    product);
	if (gf_algorithm_has(algorithm, GF_ALGORITHM_TWO_LEVELS) && a->nfactors != 2)
		return gf_error_set(err, -EINVAL, "--factors: want two for %s, got %zu", algorithm,
				    a->nfactors);
	return 0;
}

int gf_axes_algorithm(const struct gf_axes *axes, int ranks, const char **algorithm,
		      struct gf_error *err)
{
	const char *asked = *algorithm;

	if (axes->servers && axes->factored)
		return gf_error_set(err, -EINVAL, "want --factors or --servers, got both");
	if (axes->servers) {
		if (asked && !gf_algorithm_has(asked, GF_ALGORITHM_SERVERS))
			return gf_error_set(err, -EINVAL,
					    "--algorithms: want ps with --servers, got %s", asked);
		if (!asked)
			*algorithm = "ps";
	}
	/* one rank has no other factors than 1 */
	if (!axes->factored || (ranks == 1 && !axes->nfactors))
		return 0;
	if (!asked)
		*algorithm = "blueconnect";
	else if (!gf_algorithm_has(asked, GF_ALGORITHM_LEVELS))
		return gf_error_set(
			err, -EINVAL,
			"--algorithms: want blueconnect or hierarchical with --factors, got %s",
			asked);
	return check_factors(axes, ranks, *algorithm, err);
}

/* Axes as people type them. */

int gf_axes_read_factors(const char *text, void *axes, struct gf_error *err)
{
	struct gf_axes *a = axes;

	free(a->factors);
	a->factored = true;
	return gf_stages_parse(text, &a->factors, &a->nfactors, err);
}

void gf_axes_release(struct gf_axes *a)
{
	free(a->factors);
	free(a->period_level);
	free(a->outer_codecs);
	free(a->shard_level);
	free(a->shard_units);
	free(a->memory_optimizer);
	gf_axes_init(a);
}
