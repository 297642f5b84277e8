/* SPDX-License-Identifier: BSD-3-Clause */
#include "planner/axes.h"

#include <assert.h>
#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/heap.h"
#include "base/units.h"
#include "documents/algorithm_traits.h"
#include "documents/periods/period.h"
#include "documents/selections/selection.h"
#include "json/record_text.h"

const struct gf_axis gf_axis_selection = {"selection", {gf_select_plans, 0, NULL}};
const struct gf_axis gf_axis_period = {"period", {gf_period_plans, 0, NULL}};

static const struct gf_entry *entry_at(const struct gf_axis *axis, size_t i)
{
	return (const void *)gf_registry_at(&axis->entries, i);
}

/* Counts *k down. */
static const struct gf_field *field_at(const struct gf_record *r, size_t *k)
{
	const struct gf_field *f, *found;

	for (f = r->fields; f->key || f->type == GF_FIELD_INCLUDE; f++) {
		if (f->type == GF_FIELD_INCLUDE) {
			found = field_at(f->record, k);
			if (found)
				return found;
		} else if (f->option && (*k)-- == 0) {
			return f;
		}
	}
	return NULL;
}

/* The k-th field with an option; NULL: there is none. */
static const struct gf_field *axis_field(const struct gf_record *r, size_t k)
{
	return field_at(r, &k);
}

const struct gf_field *gf_axis_find(const struct gf_record *r, const char *option)
{
	const struct gf_field *f;
	size_t k;

	for (k = 0; (f = axis_field(r, k)); k++)
		if (strcmp(f->option, option) == 0)
			return f;
	return NULL;
}

size_t gf_axis_options(const struct gf_axis *axis,
		       struct gf_axis_option options[GF_AXIS_OPTIONS_MOST], size_t n)
{
	const struct gf_entry *entry;
	const struct gf_field *f;
	size_t i, k, j;

	for (i = 0; (entry = entry_at(axis, i)); i++)
		for (k = 0; (f = axis_field(entry->record, k)); k++) {
			for (j = 0; j < n; j++)
				if (strcmp(options[j].field->option, f->option) == 0)
					break;
			if (j < n)
				continue;
			assert(n < GF_AXIS_OPTIONS_MOST);
			options[n++] =
				(struct gf_axis_option){.axis = axis, .entry = entry, .field = f};
		}
	return n;
}

/* "topk, gtopk", with `last` before the last of them. */
static void add_owners(const struct gf_axis_option *o, const char *last, struct gf_text *out)
{
	const struct gf_entry *entry;
	const char *owners[64];
	size_t count = 0, i;

	for (i = 0; (entry = entry_at(o->axis, i)); i++) {
		assert(count < 64);
		if (gf_axis_find(entry->record, o->field->option))
			owners[count++] = entry->name;
	}
	for (i = 0; i < count; i++)
		gf_text_addf(out, "%s%s", !i ? "" : i + 1 < count ? ", " : last, owners[i]);
}

/* The first owner's default, then others where they differ: "0.001; randomk: 0.01". */
static void add_defaults(const struct gf_axis_option *o, struct gf_text *out)
{
	const struct gf_entry *p;
	struct gf_text first = {0};
	size_t i;

	gf_field_print(o->field, o->entry->defaults, &first);
	gf_text_addf(out, "%s", first.data);
	for (i = 0; (p = entry_at(o->axis, i)); i++) {
		const struct gf_field *f = gf_axis_find(p->record, o->field->option);
		struct gf_text text = {0};

		if (!f)
			continue;
		gf_field_print(f, p->defaults, &text);
		if (strcmp(text.data, first.data) != 0)
			gf_text_addf(out, "; %s: %s", p->name, text.data);
		gf_text_release(&text);
	}
	gf_text_release(&first);
}

void gf_axis_option_help(const struct gf_axis_option *o, struct gf_text *out)
{
	add_owners(o, ", ", out);
	gf_text_addf(out, ": %s (", o->field->help);
	add_defaults(o, out);
	gf_text_addf(out, ")");
}

int gf_axis_option_store(const char *text, void *option, struct gf_error *err)
{
	struct gf_axis_option *o = option;
	const struct gf_record *record = o->entry->record;
	void *scratch = gf_xcalloc(1, record->bytes);
	int rc = gf_field_parse(o->field, text, scratch, err);

	if (rc == 0)
		o->text = text;
	gf_record_release(record, scratch);
	free(scratch);
	return rc;
}

static int refuse(const struct gf_axis_option *o, const struct gf_entry *entry,
		  struct gf_error *err)
{
	struct gf_text owners = {0};
	int rc;

	add_owners(o, " or ", &owners);
	rc = gf_error_set(err, -EINVAL, "--%s: want --%s %s, got %s", o->field->option,
			  o->axis->option, owners.data, entry->name);
	gf_text_release(&owners);
	return rc;
}

int gf_axis_options_apply(const struct gf_axis_option *options, size_t n,
			  const struct gf_axis *axis, const struct gf_entry *entry, void *item,
			  struct gf_error *err)
{
	const struct gf_field *field;
	size_t i;
	int rc = 0;

	for (i = 0; i < n && rc == 0; i++) {
		if (!options[i].text || options[i].axis != axis)
			continue;
		field = gf_axis_find(entry->record, options[i].field->option);
		rc = field ? gf_field_parse(field, options[i].text, item, err)
			   : refuse(&options[i], entry, err);
	}
	return rc;
}

void gf_axes_init(struct gf_axes *a)
{
	*a = (struct gf_axes){
		.selection = -1,
		.release = -1,
		.period = -1,
		.pipeline_warmup_steps = SIZE_MAX,
	};
	a->noptions = gf_axis_options(&gf_axis_selection, a->options, 0);
	a->noptions = gf_axis_options(&gf_axis_period, a->options, a->noptions);
}

bool gf_axes_asked(const void *axes, const char *option)
{
	const struct gf_axes *a = axes;
	size_t i;

	if (a && a->followed)
		return true;
	for (i = 0; a && i < a->noptions; i++)
		if (a->options[i].text && strcmp(a->options[i].field->option, option) == 0)
			return true;
	return false;
}

/* The selection before the user's keys: of the axes, of the plan that is followed, or of the
 * system. */
static struct gf_selection base_selection(const struct gf_axes *a, const struct gf_system *s)
{
	const struct gf_select_plan *plan = s->selection;

	if (a && a->followed)
		return gf_selection_copy(a->followed);
	if (a && a->selection >= 0)
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
	int rc = gf_axis_options_apply(axes->options, axes->noptions, &gf_axis_selection,
				       (const void *)gf_selection_plan(selection),
				       selection->params, err);

	if (rc == 0)
		rc = check_reduces(axes, selection, err);
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
		rc = gf_error_set(err, -EINVAL, "--pipeline-warmup: want a staleness > 1, got %d",
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

	if (!axes)
		return 0;
	if (axes->servers && axes->factored)
		return gf_error_set(err, -EINVAL, "want --factors or --servers, got both");
	if (axes->servers) {
		if (asked && !gf_algorithm_has(asked, GF_ALGORITHM_SERVERS))
			return gf_error_set(err, -EINVAL,
					    "--algorithm: want ps with --servers, got %s", asked);
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
			"--algorithm: want blueconnect or hierarchical with --factors, got %s",
			asked);
	return check_factors(axes, ranks, *algorithm, err);
}

/* Axes as people type them. */

/* The algorithm after a factor's colon. */
static int read_algorithm(const char *name, struct gf_stage *stage, struct gf_error *err)
{
	stage->algorithm = (char *)gf_stage_algorithm(name);
	return gf_stage_check(name, stage->factor, err);
}

static int add_factor(struct gf_axes *a, char *text, struct gf_error *err)
{
	struct gf_stage stage = {0};
	char *name = strchr(text, ':');
	long long factor = 0;
	int rc;

	if (name)
		*name++ = '\0';
	rc = gf_units_int(text, 1, GF_RANKS_MAX, &factor, err);
	stage.factor = (int)factor;
	if (rc == 0 && name)
		rc = read_algorithm(name, &stage, err);
	if (rc < 0 || factor == 1)
		return rc;
	a->factors = gf_xreallocarray(a->factors, a->nfactors + 1, sizeof(*a->factors));
	a->factors[a->nfactors++] = stage;
	return 0;
}

int gf_axes_read_factors(const char *text, void *axes, struct gf_error *err)
{
	struct gf_axes *a = axes;
	char *copy = gf_xstrdup(text), *rest = copy, *part;
	int rc = 0;

	a->nfactors = 0;
	a->factored = true;
	while (rc == 0 && (part = strsep(&rest, "x,")))
		rc = add_factor(a, part, err);
	free(copy);
	return rc;
}

int gf_axes_read_hide(const char *text, void *share, struct gf_error *err)
{
	double got = 0;
	int rc = gf_units_real(text, 0, 1, &got, err);

	if (rc == 0 && !(got > 0 && got < 1))
		rc = gf_error_set(err, -EINVAL,
				  "want a share between 0 and 1, e.g. 5%%, got \"%s\"", text);
	if (rc == 0)
		*(double *)share = got;
	return rc;
}

void gf_axes_release(struct gf_axes *a)
{
	free(a->factors);
	gf_axes_init(a);
}

int gf_axes_read_warmup(const char *text, void *axes, struct gf_error *err)
{
	struct gf_axes *a = axes;

	return gf_steps_parse(text, &a->pipeline_warmup_steps, &a->pipeline_warmup_part, err);
}
