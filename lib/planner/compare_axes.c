/* SPDX-License-Identifier: BSD-3-Clause */
/* What a comparison may vary. To add an axis: its values, how a request asks for one, and a row in
 * axes_of. */
#include "planner/compare.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/heap.h"
#include "collectives/algorithm.h"
#include "collectives/codecs/codec.h"

static void ask_policy(struct gf_compare_variant *v, size_t i)
{
	v->request.policy = gf_policies[i]->name;
}

static void ask_system(struct gf_compare_variant *v, size_t i)
{
	v->request.system = gf_systems[i].name;
}

/* A codec that is compared is that of outer messages, too, unless the user has chosen theirs. It
 * and the period are asked for in any order. */
static void encode_outer(struct gf_compare_variant *v)
{
	if (v->codecs[0] && v->axes.period > 0 && !v->request.outer_codecs)
		v->request.outer_codecs = v->codecs;
}

static void ask_codec(struct gf_compare_variant *v, size_t i)
{
	v->codecs[0] = gf_compare_value(GF_COMPARE_CODECS, i);
	v->request.codecs = v->codecs;
	encode_outer(v);
}

static void ask_selection(struct gf_compare_variant *v, size_t i)
{
	v->axes.selection = (int)i;
	v->axes.own_selection = NULL;
	v->axes.all_selections = true;
}

static void ask_algorithm(struct gf_compare_variant *v, size_t i)
{
	v->request.algorithm = gf_algorithms[i]->name;
}

/* Numbers by name, as the registries have their entries. */
static const struct gf_named lanes[] = {
	{"1", NULL}, {"2", NULL}, {"3", NULL}, {"4", NULL}, {NULL, NULL}};
static const struct gf_named stalenesses[] = {{"1", NULL}, {"2", NULL}, {"3", NULL}, {NULL, NULL}};

static void ask_lanes(struct gf_compare_variant *v, size_t i)
{
	v->request.lanes = (int)i + 1;
}

static void ask_staleness(struct gf_compare_variant *v, size_t i)
{
	v->axes.staleness = (int)i + 1;
}

const char *const gf_compare_names[] = {"policies",   "systems",   "codecs",    "selections",
					"algorithms", "lanes",     "staleness", "threshold",
					"periods",    "densities", NULL};

static const struct gf_named thresholds[] = {{"0", NULL},    {"256K", NULL}, {"1M", NULL},
					     {"4M", NULL},   {"16M", NULL},  {"64M", NULL},
					     {"256M", NULL}, {NULL, NULL}};

/* Of the policy whose threshold it is, unless another is asked for. */
static void ask_threshold(struct gf_compare_variant *v, size_t i)
{
	gf_request_threshold(thresholds[i].name, &v->request, NULL);
	if (!v->request.policy && !v->request.system)
		v->request.policy = "threshold";
}

static void ask_period(struct gf_compare_variant *v, size_t i)
{
	v->axes.period = (int)i;
	v->axes.all_periods = true;
	encode_outer(v);
	if (!(gf_period_plans[i]->traits & GF_PERIOD_EVERY))
		return;
	v->axes.hide = 0;
	v->axes.period_level = NULL;
	v->request.outer_codecs = NULL;
}

/* Of the selection that is compared, or of the first one that has a density: values, and keys. */
static const struct gf_named densities[] = {
	{"0.0001", "density=0.0001"},
	{"0.001", "density=0.001"},
	{"0.005", "density=0.005"},
	{"0.01", "density=0.01"},
	{"0.05", "density=0.05"},
	{"0.1", "density=0.1"},
	{NULL, NULL},
};

static void ask_density(struct gf_compare_variant *v, size_t i)
{
	const struct gf_system *s = v->request.system ? gf_system_find(v->request.system) : NULL;
	int k;

	v->axes.more_keys = densities[i].description;
	for (k = 0; v->axes.selection < 0 && !(s && s->selection); k++)
		if (gf_keys_find(gf_select_plans[k]->record, "density"))
			v->axes.selection = k;
}

static const struct axis {
	const char *option;
	struct gf_registry of;
	void (*ask)(struct gf_compare_variant *v, size_t i);
} axes_of[GF_COMPARE_AXES] = {
	{"policy", {gf_policies, 0, NULL}, ask_policy},
	{"system", {gf_systems, sizeof(*gf_systems), NULL}, ask_system},
	{"codecs", {gf_codecs, sizeof(*gf_codecs), NULL}, ask_codec},
	{"selection", {gf_select_plans, 0, NULL}, ask_selection},
	{"algorithm", {gf_algorithms, 0, NULL}, ask_algorithm},
	{"lanes", {lanes, sizeof(*lanes), NULL}, ask_lanes},
	{"staleness", {stalenesses, sizeof(*stalenesses), NULL}, ask_staleness},
	{"threshold", {thresholds, sizeof(*thresholds), NULL}, ask_threshold},
	{"period", {gf_period_plans, 0, NULL}, ask_period},
	{"density", {densities, sizeof(*densities), NULL}, ask_density},
};

const char *gf_compare_value(enum gf_compare_axis axis, size_t i)
{
	const struct gf_named *e;

	if (axis == GF_COMPARE_CODECS && i >= GF_CODECS)
		e = (const struct gf_named *)gf_codec_described(i - GF_CODECS);
	else
		e = gf_registry_at(&axes_of[axis].of, i);
	return e ? e->name : NULL;
}

const char *gf_compare_option(enum gf_compare_axis axis)
{
	return axes_of[axis].option;
}

int gf_compare_store(const char *arg, void *to, struct gf_error *err)
{
	struct gf_compare_over over = {.grid = strchr(arg, ':') != NULL};
	char *copy = gf_xstrdup(arg), *rest = copy, *part;
	int rc = 0, axis, found[2] = {0};
	size_t n = 0;

	while (rc == 0 && (part = strsep(&rest, over.grid ? ":" : ","))) {
		rc = gf_names_find(gf_compare_names, part, &axis, err);
		if (rc == 0) {
			over.axes |= 1U << axis;
			found[n++ % 2] = axis;
		}
	}
	free(copy);
	over.down = (enum gf_compare_axis)found[0];
	over.across = (enum gf_compare_axis)found[1];
	if (rc == 0 && over.grid && (n != 2 || found[0] == found[1]))
		rc = gf_error_set(err, -EINVAL,
				  "want two different axes in a grid (lanes:codecs), got %s", arg);
	if (rc == 0) {
		over.pays = ((struct gf_compare_over *)to)->pays;
		*(struct gf_compare_over *)to = over;
	}
	return rc;
}

void gf_compare_ask(struct gf_compare_variant *v, enum gf_compare_axis axis, size_t i)
{
	axes_of[axis].ask(v, i);
}
