/* SPDX-License-Identifier: BSD-3-Clause */
#include "planner/plan_sweep.h"

#include <string.h>

#include "base/heap.h"
#include "base/text.h"
#include "documents/plan_brief.h"
#include "planner/refine.h"
#include "simulator/whatif/plan_variant.h"

/* --- plans --------------------------------------------------------------- */

/* "dir/name.json" is "name". */
static char *stem(const char *file)
{
	const char *slash = strrchr(file, '/'), *from = slash ? slash + 1 : file;
	const char *end = strrchr(from, '.');
	size_t n = end && end > from ? (size_t)(end - from) : strlen(from);
	char *name = gf_xmemdup(from, n + 1);

	name[n] = '\0';
	return name;
}

/* Do several of the plans come from that file? */
static bool shared(const struct gf_documents *d, const char *file)
{
	size_t n = strcmp(d->plan_file, file) == 0, i;

	for (i = 0; i < d->nother_plans; i++)
		n += strcmp(d->other_plans[i].file, file) == 0;
	return n > 1;
}

static char *name_of(const struct gf_documents *d, const struct gf_plan *p, const char *file)
{
	bool published = p->system && strcmp(p->system, "auto") != 0;

	if (!shared(d, file))
		return stem(file);
	return gf_xstrdup(published ? p->system : p->policy ? p->policy : "plan");
}

/* A name that is there already gets a number. */
static void number(struct gf_sweep *s, size_t at)
{
	size_t same = 1, i;

	for (i = 0; i < at; i++) {
		size_t n = strlen(s->names[at]);

		same += strncmp(s->names[i], s->names[at], n) == 0 &&
			(!s->names[i][n] || s->names[i][n] == ' ');
	}
	if (same > 1) {
		char *longer = gf_xasprintf("%s %zu", s->names[at], same);

		free(s->names[at]);
		s->names[at] = longer;
	}
}

int gf_sweep_plans(struct gf_sweep *s, const struct gf_documents *d, struct gf_error *err)
{
	int rc = gf_documents_require(d, "gf-plan", err);

	if (rc)
		return rc;
	s->nplans = 1 + d->nother_plans;
	s->plans = gf_xcalloc(s->nplans, sizeof(*s->plans));
	s->names = gf_xcalloc(s->nplans, sizeof(*s->names));
	for (size_t i = 0; i < s->nplans; i++) {
		const char *file = i ? d->other_plans[i - 1].file : d->plan_file;

		s->plans[i] = i ? d->other_plans[i - 1].plan : d->plan;
		if (s->plans[i]->rule)
			return gf_error_set(err, -EINVAL,
					    "want a plan with messages, got a rule (plan a model "
					    "and its ranks first)");
		s->names[i] = name_of(d, s->plans[i], file);
		number(s, i);
	}
	return 0;
}

/* Do its warm-ups take steps that follow from an epoch's? */
static bool wants_epochs(const struct gf_plan *p)
{
	struct gf_plan there = *p;
	bool wants;

	there.selection = gf_selection_copy(&p->selection);
	wants = !gf_plan_settle(&there, 0, 1) || gf_selection_warmup(&there.selection, 1) !=
							 gf_selection_warmup(&there.selection, 0);
	gf_selection_release(&there.selection);
	return wants;
}

/* Does a warm-up last epochs whose number of steps is not known? */
static bool lacks_epochs(const struct gf_sweep *s, const struct gf_what_if *w)
{
	for (size_t i = 0; w->iterations > 0 && !w->epoch_steps && i < s->nplans; i++)
		if (wants_epochs(s->plans[i]))
			return true;
	return false;
}

void gf_sweep_documents(const struct gf_sweep *s, const struct gf_documents *d,
			struct gf_what_if *w, struct gf_text *notes)
{
	const bool ranks = s->nranks == 0;
	const struct gf_network *n = d->profile ? d->profile->network : NULL;
	const struct gf_topology *t = d->topology;
	const int servers = d->plan->servers; /* documents count them */

	if (lacks_epochs(s, w))
		gf_text_addf(notes, "total_s leaves out the epochs of a warm-up: say how many "
				    "steps one has (--iterations N:epoch_steps=M)\n");
	if (t) {
		w->levels = t->levels;
		w->nlevels = t->nlevels;
	}
	if (t && d->plan->network && !n)
		gf_text_addf(notes, "costs on the topology replace the plan's measured network\n");
	if (n)
		w->network = n;
	if (n && t)
		gf_text_addf(notes, "costs come from the profile's network, and from the topology "
				    "where it has none\n");
	if (ranks && t && t->ranks)
		w->ranks = t->ranks - servers;
	if (ranks && n && n->ranks)
		w->ranks = n->ranks - servers;
	if (w->ranks && !d->nother_plans && w->ranks != d->plan->ranks)
		gf_text_addf(notes, "the plan is for %d ranks, simulated on %d\n", d->plan->ranks,
			     w->ranks);
}

void gf_sweep_release(struct gf_sweep *s)
{
	for (size_t i = 0; s->names && i < s->nplans; i++)
		free(s->names[i]);
	free(s->names);
	free(s->plans);
	memset(s, 0, sizeof(*s));
}

/* --- planning anew ------------------------------------------------------- */

/* The plan that its system makes in these circumstances: on other ranks, levels, network, bandwidth
 * or steps of a period. Selection, staleness, codecs and the other keys of a period stay. */
static int replan(const struct gf_plan *p, const struct gf_what_if *w, struct gf_plan *out,
		  struct gf_error *err)
{
	struct gf_plan bare = *p; /* its fabric, whatever its messages are */
	struct gf_request r = {
		.model = p->model,
		.ranks_asked = true,
	};
	struct gf_period period = p->period;
	const struct gf_plan outer = {.messages = period.messages, .nmessages = period.nmessages};
	const char *codecs[GF_CODECS_MOST + 1], *outer_codecs[GF_CODECS_MOST + 1];
	struct gf_axes axes;
	GF_RELEASED(gf_variant_release) struct gf_variant v = {0};
	int rc;

	bare.nmessages = 0;
	bare.predicted = NULL;
	rc = gf_variant_init(&v, &bare, w, err);
	if (rc == 0) {
		gf_axes_init(&axes);
		r.axes = &axes;
		if (!gf_period_has(&period, GF_PERIOD_EVERY)) {
			axes.followed_period = &period;
			r.outer_codecs = gf_plan_codecs(&outer, outer_codecs);
		}
		if (w->period_steps)
			period.steps = w->period_steps;
		period.messages = NULL;
		period.nmessages = 0;
		period.extra = NULL;
		r.fabric = v.fabric;
		r.fabric.processing = &p->processing;
		r.fabric.ranks = w->ranks ? w->ranks : p->ranks;
		gf_request_follow(&r, &axes, p, codecs);
		rc = gf_request_plan(&r, out, NULL, err);
	}
	return rc;
}

/* --- rows ---------------------------------------------------------------- */

/* A sweep on its way. */
struct way {
	const struct gf_sweep *sweep;
	struct gf_swept *out;
	struct gf_what_if what; /* the circumstances it is at */
	struct gf_error *err;
	size_t done, all;
};

/* What does not fit costs its times, and no more: if the last one does not fit either, its reason
 * is the error. */
static int leave_out(struct way *w, struct gf_row *row, int rc)
{
	w->out->left_out++;
	if ((rc != -EINVAL && rc != -ENOTSUP) || w->out->left_out == w->all)
		return rc;
	row->outcome = (struct gf_outcome){
		.ranks = w->what.ranks ? w->what.ranks : row->plan->ranks,
		.bandwidth_bytes_per_s = w->what.bandwidth_bytes_per_s,
		.period_steps = (double)(w->what.period_steps ? w->what.period_steps
							      : row->plan->period.steps),
	};
	row->left_out = gf_xstrdup(w->err->text);
	return 0;
}

/* p where the way is, or anew; name is given away. */
static int add_row(struct way *w, const struct gf_plan *p, char *name, bool anew)
{
	struct gf_row *row = &w->out->rows[w->out->nrows++];
	struct gf_plan *made;
	int rc = 0;

	*row = (struct gf_row){.plan = p, .name = name};
	if (anew) {
		made = gf_xcalloc(1, sizeof(*made));
		rc = replan(p, &w->what, made, w->err);
		if (rc == 0)
			row->plan = w->out->made[w->out->nmade++] = made;
		else
			free(made);
	}
	rc = rc ?: gf_what_if(row->plan, &w->what, &row->outcome, w->err);
	w->done++;
	return rc < 0 ? leave_out(w, row, rc) : 0;
}

static int add_rows(struct way *w)
{
	const struct gf_sweep *s = w->sweep;
	bool named = s->nplans > 1 || s->replan;
	int rc = 0;

	for (size_t i = 0; i < s->nplans && rc == 0; i++) {
		rc = add_row(w, s->plans[i], named ? gf_xstrdup(s->names[i]) : NULL, false);
		if (rc == 0 && s->replan)
			rc = add_row(w, s->plans[i], gf_xasprintf("%s replanned", s->names[i]),
				     true);
		if (s->progress)
			s->progress(s->progress_ctx, (double)w->done / (double)w->all, NULL);
	}
	return rc;
}

int gf_sweep_run(const struct gf_sweep *s, struct gf_swept *out, struct gf_error *err)
{
	size_t nr = s->nranks ? s->nranks : 1;
	size_t nb = s->nbandwidths ? s->nbandwidths : 1;
	size_t nh = s->nperiod_steps ? s->nperiod_steps : 1, i;
	struct way w = {
		.sweep = s,
		.out = out,
		.what = s->what,
		.err = err,
		.all = nr * nb * nh * s->nplans * (s->replan ? 2 : 1),
	};
	int rc = 0;

	*out = (struct gf_swept){
		.rows = gf_xcalloc(w.all, sizeof(*out->rows)),
		.made = gf_xcalloc(w.all, sizeof(struct gf_plan *)),
	};
	for (i = 0; i < nr * nb * nh && rc == 0; i++) {
		if (s->nranks)
			w.what.ranks = s->ranks[i / nh / nb];
		if (s->nbandwidths)
			w.what.bandwidth_bytes_per_s = s->bandwidths[i / nh % nb];
		if (s->nperiod_steps)
			w.what.period_steps = (size_t)s->period_steps[i % nh];
		rc = add_rows(&w);
	}
	if (rc < 0)
		gf_swept_release(out);
	return rc;
}

void gf_swept_release(struct gf_swept *s)
{
	for (size_t i = 0; i < s->nrows; i++) {
		gf_outcome_release(&s->rows[i].outcome);
		free(s->rows[i].name);
		free(s->rows[i].left_out);
	}
	for (size_t i = 0; i < s->nmade; i++) {
		gf_plan_release(s->made[i]);
		free(s->made[i]);
	}
	free(s->rows);
	free(s->made);
	memset(s, 0, sizeof(*s));
}
