/* SPDX-License-Identifier: BSD-3-Clause */
/* What a comparison may vary. To add an axis: its values, how a request asks for one, and a row in
 * axes_of. */
#include "planner/compare.h"

#include <stdio.h>
#include <string.h>

#include "base/heap.h"
#include "base/units.h"
#include "collectives/algorithm.h"
#include "collectives/codecs/codec.h"
#include "planner/shards.h"

static void ask_policy(struct gf_compare_variant *v, const char *name)
{
	v->request.policy = name;
}

static void ask_system(struct gf_compare_variant *v, const char *name)
{
	v->request.system = name;
}

/* A codec that is compared is that of outer messages, too, unless the user has chosen theirs. It
 * and the period are asked for in any order. */
static void encode_outer(struct gf_compare_variant *v)
{
	if (v->codecs[0] && v->axes.period > 0 && !v->request.outer_codecs)
		v->request.outer_codecs = v->codecs;
}

static void ask_codec(struct gf_compare_variant *v, const char *name)
{
	v->codecs[0] = name;
	v->request.codecs = v->codecs;
	encode_outer(v);
}

static void ask_selection(struct gf_compare_variant *v, const char *name)
{
	v->axes.selection = gf_names_index(gf_select_plans_names, name);
	v->axes.own_selection = NULL;
	v->axes.all_selections = true;
}

static void ask_algorithm(struct gf_compare_variant *v, const char *name)
{
	v->request.algorithm = name;
}

/* Numbers by name, as the registries have their entries. */
static const struct gf_named lanes[] = {
	{"1", NULL}, {"2", NULL}, {"3", NULL}, {"4", NULL}, {NULL, NULL}};
static const struct gf_named stalenesses[] = {{"1", NULL}, {"2", NULL}, {"3", NULL}, {NULL, NULL}};

static void ask_lanes(struct gf_compare_variant *v, const char *name)
{
	v->request.lanes = atoi(name);
}

static void ask_staleness(struct gf_compare_variant *v, const char *name)
{
	v->axes.staleness = atoi(name);
}

const char *const gf_compare_names[] = {
	"policies",  "systems", "codecs",    "selections", "algorithms", "lanes", "staleness",
	"threshold", "periods", "densities", "shards",     "units",      NULL};

static const struct gf_named thresholds[] = {{"0", NULL},   {"256K", NULL}, {"1M", NULL},
					     {"4M", NULL},  {"16M", NULL},  {"25M", NULL},
					     {"64M", NULL}, {"256M", NULL}, {NULL, NULL}};

/* Of the policy whose threshold it is, unless another is asked for. */
static void ask_threshold(struct gf_compare_variant *v, const char *name)
{
	gf_request_threshold(name, &v->request, NULL);
	if (!v->request.policy && !v->request.system)
		v->request.policy = "threshold";
}

static void ask_period(struct gf_compare_variant *v, const char *name)
{
	v->axes.period = gf_names_index(gf_period_plans_names, name);
	v->axes.all_periods = true;
	encode_outer(v);
	if (!(gf_period_plans[v->axes.period]->traits & GF_PERIOD_EVERY))
		return;
	v->axes.hide = 0;
	v->axes.period_level = NULL;
	v->request.outer_codecs = NULL;
}

/* Of the selection that is compared, or of the first one that has a density. */
static const struct gf_named densities[] = {{"0.0001", NULL}, {"0.001", NULL}, {"0.005", NULL},
					    {"0.01", NULL},   {"0.05", NULL},  {"0.1", NULL},
					    {NULL, NULL}};

static void ask_density(struct gf_compare_variant *v, const char *name)
{
	const struct gf_system *s = v->request.system ? gf_system_find(v->request.system) : NULL;

	snprintf(v->keys, sizeof(v->keys), "density=%s", name);
	v->axes.more_keys = v->keys;
	for (int k = 0; v->axes.selection < 0 && !(s && s->selection); k++)
		if (gf_keys_find(gf_select_plans[k]->record, "density"))
			v->axes.selection = k;
}

/* Of shards that have units, or of those that are asked for. */
static void ask_units(struct gf_compare_variant *v, const char *name)
{
	int k = v->axes.shard > 0 ? v->axes.shard : 0;

	while (!gf_shard_method_may_gather(k))
		k++;
	v->axes.shard = k;
	v->axes.shard_units = (char *)name; /* the row's */
}

static void ask_shard(struct gf_compare_variant *v, const char *name)
{
	gf_axes_take_shard(&v->axes, gf_names_index(gf_shard_plans_names, name));
}

static bool is_settled(const void *entry)
{
	return !(((const struct gf_shard_plan *)entry)->traits & GF_SHARD_OPEN);
}

static int check_count(const char *text, struct gf_error *err)
{
	long long n;

	return gf_units_int(text, 1, GF_COMPARE_COUNT_MOST, &n, err);
}

static int check_bytes(const char *text, struct gf_error *err)
{
	size_t bytes;

	return gf_units_size(text, &bytes, err);
}

static int check_share(const char *text, struct gf_error *err)
{
	double share;

	return gf_units_real(text, GF_MIN_SHARE, 1, &share, err);
}

/* What is compared by default, or of what the user may choose some; check: others are values, too,
 * that it takes. */
static const struct axis {
	const char *option;
	struct gf_registry of;
	void (*ask)(struct gf_compare_variant *v, const char *name);
	int (*check)(const char *text, struct gf_error *err);
} axes_of[GF_COMPARE_AXES] = {
	{"policy", {gf_policies, 0, NULL}, ask_policy, NULL},
	{"system", {gf_systems, sizeof(*gf_systems), NULL}, ask_system, NULL},
	{"codecs", {gf_codecs, sizeof(*gf_codecs), NULL}, ask_codec, NULL},
	{"selection", {gf_select_plans, 0, NULL}, ask_selection, NULL},
	{"algorithm", {gf_algorithms, 0, NULL}, ask_algorithm, NULL},
	{"lanes", {lanes, sizeof(*lanes), NULL}, ask_lanes, check_count},
	{"staleness", {stalenesses, sizeof(*stalenesses), NULL}, ask_staleness, check_count},
	{"threshold", {thresholds, sizeof(*thresholds), NULL}, ask_threshold, check_bytes},
	{"period", {gf_period_plans, 0, NULL}, ask_period, NULL},
	{"density", {densities, sizeof(*densities), NULL}, ask_density, check_share},
	{"shard", {gf_shard_plans, 0, is_settled}, ask_shard, NULL},
	{"shard units", {gf_shard_rules, sizeof(*gf_shard_rules), NULL}, ask_units, check_bytes},
};

const char *gf_compare_value(const struct gf_compare_over *over, enum gf_compare_axis axis,
			     size_t i)
{
	const char *const *values = over->values[axis];
	const struct gf_named *e;
	size_t n = 0;

	while (values ? values[n] != NULL : gf_registry_at(&axes_of[axis].of, n) != NULL)
		n++;
	if (i >= n)
		e = axis == GF_COMPARE_CODECS ? (const void *)gf_codec_described(i - n) : NULL;
	else if (values)
		return values[i];
	else
		e = gf_registry_at(&axes_of[axis].of, i);
	return e ? e->name : NULL;
}

const char *gf_compare_option(enum gf_compare_axis axis)
{
	return axes_of[axis].option;
}

/* The value in the registry's or the user's spelling; NULL: it is none of that axis. */
static const char *value_of(enum gf_compare_axis axis, const char *text, struct gf_error *err)
{
	const struct gf_named *e;

	for (size_t i = 0; (e = gf_registry_at(&axes_of[axis].of, i)); i++)
		if (strcmp(e->name, text) == 0)
			return e->name;
	if (axes_of[axis].check)
		return axes_of[axis].check(text, err) == 0 ? text : NULL;
	gf_registry_refuse(&axes_of[axis].of, NULL, NULL, text, err);
	return NULL;
}

static int add_value(struct gf_compare_over *over, enum gf_compare_axis axis, const char *text,
		     struct gf_error *err)
{
	const char ***values = &over->values[axis];
	const char *value = value_of(axis, text, err);
	size_t n = 0;

	if (!value) {
		gf_error_prefix(err, "%s", gf_compare_names[axis]);
		return -EINVAL;
	}
	while (*values && (*values)[n])
		n++;
	*values = gf_xreallocarray(*values, n + 2, sizeof(**values));
	(*values)[n] = value;
	(*values)[n + 1] = NULL;
	return 0;
}

/* "lanes", "lanes=2"; and after that, "4". *axis: of the part before it, or -1. */
static int add_part(struct gf_compare_over *over, char *part, int *axis, struct gf_error *err)
{
	char *value = strchr(part, '=');
	int rc;

	if (!value && *axis >= 0 && over->values[*axis] &&
	    gf_names_index(gf_compare_names, part) < 0)
		return add_value(over, (enum gf_compare_axis) * axis, part, err);
	if (value)
		*value++ = '\0';
	rc = gf_names_find(gf_compare_names, part, axis, err);
	if (rc == 0)
		over->axes |= 1U << *axis;
	return rc == 0 && value ? add_value(over, (enum gf_compare_axis) * axis, value, err) : rc;
}

int gf_compare_store(const char *arg, void *to, struct gf_error *err)
{
	struct gf_compare_over *store = to;
	struct gf_compare_over over = {.grid = strchr(arg, ':') != NULL, .pays = store->pays};
	int rc = 0, axis = -1, found[2] = {-1, -1};
	char *rest, *part;
	size_t n = 0;

	gf_compare_over_release(store);
	over.text = gf_xstrdup(arg);
	for (rest = over.text; rc == 0 && (part = strsep(&rest, ",:"));) {
		const unsigned before = over.axes;

		/* in a grid, a value of the other axis begins with its name */
		rc = add_part(&over, part, &axis, err);
		if (rc == 0 && over.axes != before)
			found[n++ % 2] = axis;
	}
	over.down = (enum gf_compare_axis)found[0];
	over.across = (enum gf_compare_axis)found[1];
	if (rc == 0 && over.grid && n != 2)
		rc = gf_error_set(err, -EINVAL,
				  "want two different axes in a grid (lanes:codecs), got %s", arg);
	*store = over;
	return rc;
}

void gf_compare_over_release(struct gf_compare_over *over)
{
	for (size_t axis = 0; axis < GF_COMPARE_AXES; axis++)
		free(over->values[axis]);
	free(over->text);
	memset(over->values, 0, sizeof(over->values));
	over->text = NULL;
}

void gf_compare_ask(struct gf_compare_variant *v, enum gf_compare_axis axis, const char *value)
{
	axes_of[axis].ask(v, value);
}
