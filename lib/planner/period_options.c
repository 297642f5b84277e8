/* SPDX-License-Identifier: BSD-3-Clause */
/* From options to a period. */
#include <errno.h>
#include <string.h>

#include "planner/make.h"
#include "planner/menu.h"
#include "simulator/period_time.h"

int gf_axes_group(const struct gf_axes *a, const struct gf_fabric *f, int *group,
		  struct gf_error *err)
{
	const struct gf_period *kept = a->followed_period;
	struct gf_text names = {0};
	size_t i;
	int inner = 1;

	*group = kept ? kept->group_ranks : !a->period_level;
	for (i = 0; i < f->nlevels && !kept; i++) {
		if (a->period_level ? strcmp(f->levels[i].name, a->period_level) == 0
				    : f->levels[i].size > 1)
			*group = inner;
		inner *= (int)f->levels[i].size;
		gf_text_addf(&names, "%s%s", i ? ", " : "", f->levels[i].name);
	}
	if (!*group)
		gf_error_set(err, -EINVAL,
			     "--period-level: want a level of the topology (%s), got %s",
			     i ? names.data : "there is none", a->period_level);
	else if (*group >= f->ranks || f->ranks % *group)
		gf_error_set(err, -EINVAL,
			     "--period: want ranks that make two or more whole groups of %d "
			     "(--period-level), got %d",
			     *group, f->ranks);
	gf_text_release(&names);
	return *group && *group < f->ranks && f->ranks % *group == 0 ? 0 : -EINVAL;
}

/* Axes that the groups or the outer exchange cannot serve. */
static int check(const struct gf_task *t, struct gf_error *err)
{
	const struct gf_model_profile *m = t->problem.model;
	const char *name = gf_period_name(&t->period);
	size_t i;

	if (t->system.servers && !gf_period_has(&t->period, GF_PERIOD_SERVERS))
		return gf_error_set(
			err, -EINVAL,
			"--servers: want 0 with period %s, whose groups have no server, got %d",
			name, t->system.servers);
	if (t->period.group_ranks == 1 && t->system.staleness > 1)
		return gf_error_set(err, -EINVAL,
				    "--staleness: want 1 with groups of one rank, which exchange "
				    "nothing in a step (--period-level), got %d",
				    t->system.staleness);
	if (t->period.group_ranks == 1 && !gf_selection_has(&t->selection, GF_SELECT_LOSSLESS))
		return gf_error_set(err, -EINVAL,
				    "--selection: want dense with groups of one rank, which "
				    "exchange nothing in a step (--period-level), got %s",
				    gf_selection_name(&t->selection));
	for (i = 1; i < m->ntensors; i++)
		if (m->tensors[i].dtype != m->tensors[0].dtype)
			return gf_error_set(
				err, -EINVAL,
				"--period: want tensors of one type, got others from %s on",
				m->tensors[i].name);
	return 0;
}

int gf_task_pose_period(struct gf_task *t, const struct gf_request *r, struct gf_error *err)
{
	const struct gf_axes *a = r->axes;
	const struct gf_period *followed = a ? a->followed_period : NULL;
	const struct gf_period_plan *plan;
	struct gf_problem *p = &t->problem;
	int rc;

	if (!a)
		return 0;
	plan = followed ? followed->plan : gf_period_plans[a->period > 0 ? a->period : 0];
	t->axes = a;
	t->period = followed ? *followed : *(const struct gf_period *)plan->defaults;
	t->period.plan = plan;
	rc = gf_axis_options_apply(a->options, a->noptions, &gf_axis_period, (const void *)plan,
				   &t->period, err);
	if (rc < 0)
		return rc;
	if (plan->traits & GF_PERIOD_EVERY) {
		t->period = (struct gf_period){0};
		if (a->hide > 0 || a->period_level || r->outer_codecs)
			return gf_error_set(err, -EINVAL,
					    "--%s: want a --period in which not all ranks exchange "
					    "in every step, got %s",
					    a->hide > 0       ? "hide"
					    : a->period_level ? "period-level"
							      : "outer-codecs",
					    plan->name);
		return 0;
	}
	rc = gf_axes_group(a, &p->fabric, &t->period.group_ranks, err);
	rc = rc ? rc : check(t, err);
	if (rc < 0)
		return rc;
	t->outer = (struct gf_problem){
		.model = p->model,
		.fabric = p->fabric,
		.lanes = 1,
		.reproducible = p->reproducible,
		.codecs = r->outer_codecs,
		.codecs_option = "--outer-codecs",
	};
	rc = gf_menu_check_codecs(&t->outer, err);
	if (rc < 0)
		return rc;
	t->outer.fabric.derived = &t->outer_derived;
	p->fabric = gf_sim_group_fabric(&p->fabric, t->period.group_ranks, &t->lines);
	return 0;
}
