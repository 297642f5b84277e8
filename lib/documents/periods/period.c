/* SPDX-License-Identifier: BSD-3-Clause */
#include "documents/periods/period.h"

#include <stdlib.h>

#include "documents/plan.h"
#include "documents/plan_parts.h"
#include "json/keys.h"

extern const struct gf_period_plan gf_period_plan_every;

const struct gf_period_plan *gf_period_plan(const struct gf_period *p)
{
	return p->plan ? p->plan : &gf_period_plan_every;
}

const char *gf_period_name(const struct gf_period *p)
{
	return gf_period_plan(p)->name;
}

bool gf_period_has(const struct gf_period *p, unsigned traits)
{
	return (gf_period_plan(p)->traits & traits) == traits;
}

/* --- which step does what ------------------------------------------------- */

bool gf_period_begins(const struct gf_period *p, size_t step, size_t *fragment)
{
	const size_t every = p->fragments ? p->steps / p->fragments : 0;

	*fragment = 0;
	if (step <= p->begin_steps && step > 0)
		return true;
	if (!every || !step || step % every)
		return false;
	*fragment = (step / every - 1) % p->fragments;
	return true;
}

bool gf_period_ends(const struct gf_period *p, size_t step, size_t *fragment)
{
	return step > p->delay && gf_period_begins(p, step - p->delay, fragment);
}

int gf_period_check_steps(const struct gf_period *p, struct gf_error *err)
{
	if (p->steps % p->fragments == 0 && (!p->delay || p->delay < p->steps / p->fragments))
		return 0;
	return gf_error_set(err, -EINVAL,
			    "want steps of a period that its %zu fragments divide, with more than "
			    "the delay of %zu between them, got %zu",
			    p->fragments, p->delay, p->steps);
}

void gf_period_messages(const struct gf_period *p, size_t fragment, size_t *first, size_t *count)
{
	*first = fragment * p->nmessages / p->fragments;
	*count = (fragment + 1) * p->nmessages / p->fragments - *first;
}

/* --- the two exchanges as plans ------------------------------------------- */

int gf_plan_group_ranks(const struct gf_plan *p)
{
	return p->period.plan ? p->period.group_ranks : p->ranks;
}

struct gf_plan gf_period_inner_view(const struct gf_plan *p)
{
	struct gf_plan view = *p;

	view.ranks = gf_plan_group_ranks(p);
	view.period = (struct gf_period){0};
	view.predicted = NULL;
	return view;
}

struct gf_plan gf_period_outer_view(const struct gf_plan *p)
{
	struct gf_plan view = *p;

	view.messages = p->period.messages;
	view.nmessages = p->period.nmessages;
	view.lanes = p->period.lanes;
	view.period = (struct gf_period){0};
	view.selection = (struct gf_selection){0};
	view.threshold_bytes = 0;
	view.staleness = 1;
	view.pipeline_warmup_steps = 0;
	view.pipeline_warmup_part = (struct gf_steps_part){0};
	view.predicted = NULL;
	view.types = NULL;
	return view;
}

void gf_period_inner(const struct gf_plan *p, struct gf_plan *inner)
{
	const struct gf_plan view = gf_period_inner_view(p);

	gf_plan_copy(inner, &view);
}

void gf_period_outer(const struct gf_plan *p, struct gf_plan *outer)
{
	const struct gf_plan view = gf_period_outer_view(p);

	gf_plan_copy(outer, &view);
	gf_plan_set_types(outer);
}

void gf_period_keep_outer(struct gf_plan *p)
{
	struct gf_plan outer;

	if (!p->period.plan)
		return;
	gf_period_outer(p, &outer);
	gf_plan_release(p);
	*p = outer;
}

/* --- in words ------------------------------------------------------------- */

static void add_keys(const struct gf_record *r, const struct gf_period *p, struct gf_text *out)
{
	const struct gf_field *f;

	for (f = r->fields; f->key || f->type == GF_FIELD_INCLUDE; f++) {
		if (f->type == GF_FIELD_INCLUDE)
			add_keys(f->record, p, out);
		else if (f->type != GF_FIELD_LIST && f->presence == GF_REQUIRED) {
			gf_text_addf(out, " %s ", f->key);
			gf_field_print(f, p, out);
		}
	}
}

char *gf_period_text(const struct gf_period *p)
{
	struct gf_text out = {0};

	gf_text_addf(&out, "%s", gf_period_name(p));
	add_keys(gf_period_plan(p)->record, p, &out);
	for (size_t i = 0; i < p->nmessages; i++)
		gf_text_addf(&out, " %zu-%zu %s", p->messages[i].first, p->messages[i].last,
			     p->messages[i].codec);
	return gf_text_take(&out);
}

/* --- in documents --------------------------------------------------------- */

/* What follows where an entry has no key for it. */
static void settle(struct gf_period *p)
{
	const struct gf_period *d = p->plan->defaults;

	if (!p->fragments)
		p->fragments = d->fragments;
	if (!(p->outer_rate > 0))
		p->outer_rate = d->outer_rate;
}

static int read_period(struct gf_json_at *at, const char *key, void *place, struct gf_error *err)
{
	struct gf_period *p = place;
	struct gf_json_at inner;
	int method = 0;
	int rc = gf_entry_open(at, key, gf_period_plans_names, &inner, &method, err);

	rc = rc ?: gf_record_read(&inner, gf_period_plans[method]->record, p, err);
	if (rc)
		return rc;
	p->plan = gf_period_plans[method];
	if (gf_period_has(p, GF_PERIOD_EVERY))
		gf_record_release(p->plan->record, p);
	else
		settle(p);
	return 0;
}

static void write_period(struct gf_json_writer *w, const char *key, const void *place)
{
	const struct gf_period *p = place;

	gf_json_open_object(w, key);
	gf_json_put_string(w, "method", gf_period_name(p));
	gf_record_write(w, p->plan->record, p);
	gf_json_close_object(w);
}

static bool is_every(const void *place)
{
	return !((const struct gf_period *)place)->plan;
}

static void release_period(void *place)
{
	struct gf_period *p = place;

	if (p->plan)
		gf_record_release(p->plan->record, p);
}

static void own_period(void *place)
{
	struct gf_period *p = place;
	const struct gf_period from = *p;

	if (!p->plan)
		return;
	gf_record_copy(p->plan->record, p, &from);
}

static void add_schema(struct gf_text *out)
{
	gf_entry_schema(gf_period_plans, out);
}

const struct gf_field_own gf_period_own = {
	.read = read_period,
	.write = write_period,
	.absent = is_every,
	.release = release_period,
	.copy = own_period,
	.schema = add_schema,
};
