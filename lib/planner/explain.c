/* SPDX-License-Identifier: BSD-3-Clause */
#include "planner/explain.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/heap.h"
#include "planner/work.h"

struct why {
	const struct gf_work *w;
	struct gf_draft draft, trial;
	struct gf_text *lines; /* per tensor */
};

/* The option a message of the document was made of; the first on the menu if
 * the document is not ours. */
static size_t option_of(const struct gf_menu *menu, const struct gf_message *m)
{
	size_t i;

	for (i = 0; i < menu->noptions; i++) {
		const struct gf_option *o = &menu->options[i];

		if (strcmp(o->algorithm, m->algorithm) == 0 &&
		    strcmp(o->codec, m->codec) == 0 &&
		    gf_stages_same(o->stages, o->nstages, m->stages,
				   m->nstages))
			return i;
	}
	return 0;
}

static void draft_of(const struct gf_work *w, const struct gf_plan *p,
		     struct gf_draft *d)
{
	size_t i;

	memset(d, 0, sizeof(*d));
	d->sends = gf_xcalloc(w->ntensors + 1, sizeof(*d->sends));
	d->nsends = p->nmessages;
	d->capacity = w->ntensors + 1;
	d->lanes = p->lanes;
	d->threshold_bytes = p->threshold_bytes;
	for (i = 0; i < p->nmessages; i++)
		d->sends[i] = (struct gf_send){
			.first = p->messages[i].first,
			.last = p->messages[i].last,
			.mode = p->messages[i].mode,
			.release = p->messages[i].release,
			.half = p->messages[i].half,
			.option = option_of(&w->menu, &p->messages[i]),
		};
}

static double trial_s(struct why *y)
{
	struct gf_sim_result result = {0};

	gf_work_predict(y->w, &y->trial, &result);
	return result.iteration_s;
}

static void reset(struct why *y)
{
	y->trial.nsends = y->draft.nsends;
	y->trial.lanes = y->draft.lanes;
	memcpy(y->trial.sends, y->draft.sends,
	       y->draft.nsends * sizeof(*y->trial.sends));
}

static void price(struct why *y, size_t i)
{
	struct gf_send *s = &y->trial.sends[i];

	s->option = gf_menu_pick(&y->w->menu,
				 gf_work_bytes(y->w, s->first, s->last));
}

/* A cut after tensor t inside message i. */
static double cut_s(struct why *y, size_t i, size_t t)
{
	struct gf_send *s = y->trial.sends;

	reset(y);
	memmove(&s[i + 2], &s[i + 1], (y->trial.nsends - i - 1) * sizeof(*s));
	y->trial.nsends++;
	s[i + 1] = s[i];
	s[i].last = t;
	s[i + 1].first = t + 1;
	price(y, i);
	price(y, i + 1);
	return trial_s(y);
}

/* Message i together with the next one. */
static double merge_s(struct why *y, size_t i)
{
	struct gf_send *s = y->trial.sends;

	reset(y);
	s[i + 1].first = s[i].first;
	memmove(&s[i], &s[i + 1], (y->trial.nsends - i - 1) * sizeof(*s));
	y->trial.nsends--;
	price(y, i);
	return trial_s(y);
}

static double flip_s(struct why *y, size_t i)
{
	reset(y);
	y->trial.sends[i].mode = y->trial.sends[i].mode == GF_MODE_NORMAL
					 ? GF_MODE_SIMULTANEOUS
					 : GF_MODE_NORMAL;
	return trial_s(y);
}

static void compare(struct gf_text *line, const char *what, double other_s,
		    double now_s)
{
	const char *sign = now_s < other_s ? "<" : now_s > other_s ? ">" : "=";

	gf_text_addf(line, "%s%.6g s %s %.6g s %s", line->length ? "; " : "",
		     now_s, sign, other_s, what);
}

/* The costs of the nearest other choices. */
static void by_alternatives(struct why *y)
{
	double now_s = y->draft.iteration_s;
	size_t i, t;

	for (i = 0; i < y->draft.nsends; i++) {
		struct gf_send s = y->draft.sends[i];
		struct gf_text *line = &y->lines[s.last];

		for (t = s.first; t < s.last; t++)
			compare(&y->lines[t], "if cut here", cut_s(y, i, t),
				now_s);
		if (i > 0 && y->draft.lanes > 1)
			compare(line,
				s.mode == GF_MODE_NORMAL ? "if simultaneous"
							 : "if normal",
				flip_s(y, i), now_s);
		if (i + 1 < y->draft.nsends &&
		    y->w->run_last[s.first] >= y->draft.sends[i + 1].last)
			compare(line, "if merged with the next", merge_s(y, i),
				now_s);
		if (line->length == 0)
			gf_text_addf(line, "nothing to merge with");
	}
}

static void print(const struct why *y, const struct gf_plan *p,
		  struct gf_text *out)
{
	const struct gf_model_profile *model = p->model;
	size_t message = 0, i;

	for (i = 0; i < model->ntensors; i++) {
		while (p->messages[message].last < i)
			message++;
		gf_text_addf(out, "%zu %s: message %zu, %s: %s\n", i,
			     model->tensors[i].name, message,
			     gf_mode_names[p->types[i]],
			     y->lines[i].data ? y->lines[i].data : "no choice");
	}
}

int gf_plan_explain(const struct gf_request *r, const struct gf_plan *p,
		    struct gf_text *out, struct gf_error *err)
{
	const struct gf_policy *policy = gf_policy_find(p->policy);
	struct gf_sim_result result = {0};
	struct gf_task task;
	struct gf_text notes = {0};
	struct gf_work w;
	struct why y = {.w = &w};
	size_t i;
	int rc;

	if (p->rule)
		return gf_error_set(err, -EINVAL,
				    "--explain: want a plan with messages, got "
				    "a rule");
	rc = gf_request_pose(r, &task, &notes, err);
	gf_text_release(&notes);
	if (rc < 0)
		return rc;
	rc = gf_work_init(&w, &task.problem, err);
	gf_task_release(&task);
	if (rc < 0)
		return rc;
	draft_of(&w, p, &y.draft);
	y.trial.sends = gf_xcalloc(w.ntensors + 1, sizeof(*y.trial.sends));
	y.lines = gf_xcalloc(w.ntensors, sizeof(*y.lines));
	gf_work_predict(&w, &y.draft, &result);
	if (policy && policy->explain)
		policy->explain(&w, &y.draft, y.lines);
	else
		by_alternatives(&y);
	gf_plan_chart(p, out);
	gf_text_addf(out, "\n");
	print(&y, p, out);
	for (i = 0; i < w.ntensors; i++)
		gf_text_release(&y.lines[i]);
	free(y.lines);
	gf_draft_release(&y.draft);
	gf_draft_release(&y.trial);
	gf_work_release(&w);
	return 0;
}
