/* SPDX-License-Identifier: BSD-3-Clause */
#include "planner/compare.h"

#include <float.h>
#include <math.h>
#include <string.h>

#include "base/heap.h"
#include "collectives/codecs/codec.h"
#include "simulator/period_time.h"
#include "simulator/sum_error.h"

/* May the two carry the same messages? */
static bool comparable(const struct gf_compared *a, const struct gf_compared *b)
{
	return a->plan.staleness == b->plan.staleness &&
	       a->plan.period_steps == b->plan.period_steps &&
	       strcmp(a->plan.codecs, b->plan.codecs) == 0 &&
	       strcmp(a->plan.shard, b->plan.shard) == 0 &&
	       strcmp(a->plan.selection, b->plan.selection) == 0;
}

/* Rows that are comparable have one bound: that of the freest of them. */
static void share_bounds(struct gf_compared *rows, size_t n)
{
	for (size_t i = 0; i < n; i++)
		for (size_t k = 0; k < n; k++)
			if (comparable(&rows[i], &rows[k]))
				rows[i].times.lower_bound_s = fmin(rows[i].times.lower_bound_s,
								   rows[k].times.lower_bound_s);
}

/* Times that differ by less than this share are the same time. */
static const double same_share = 1e-6;

/* The order of rows: measured; carried on from what was measured; without a cost that nobody has
 * measured; by a data sheet where other rows are measured. */
static int doubt_of(const struct gf_compared *r)
{
	return r->unsure & GF_UNSURE_DERIVED  ? 3
	       : r->unsure & GF_UNSURE_COST   ? 2
	       : r->unsure & GF_UNSURE_BEYOND ? 1
					      : 0;
}

/* Does a stand before b? What is known does, then what is faster; if their times are the same, what
 * has fewer messages. */
static bool better(const struct gf_compared *a, const struct gf_compared *b, double unit_s)
{
	double x = nearbyint(a->times.iteration_s / unit_s);
	double y = nearbyint(b->times.iteration_s / unit_s);

	if (doubt_of(a) != doubt_of(b))
		return doubt_of(a) < doubt_of(b);
	return x < y || (x == y && a->plan.nmessages < b->plan.nmessages);
}

/* Best first; equals stay in the registry's order. */
static void sort(struct gf_compared *rows, size_t n)
{
	double least_s = INFINITY, unit_s;
	size_t i, k;

	for (i = 0; i < n; i++)
		least_s = fmin(least_s, rows[i].times.iteration_s);
	unit_s = fmax(same_share * least_s, DBL_MIN);
	for (i = 1; i < n; i++) {
		struct gf_compared row = rows[i];

		for (k = i; k > 0 && better(&row, &rows[k - 1], unit_s); k--)
			rows[k] = rows[k - 1];
		rows[k] = row;
	}
}

/* Of "a, b, c", what the other list has not. */
static void add_names(const char *list, const char *names, struct gf_text *longer)
{
	GF_FREED char *copy = gf_xasprintf(", %s,", list);
	size_t n;

	for (; *names; names += n + 2 * (names[n] != '\0')) {
		const char *comma = strstr(names, ", ");
		GF_FREED char *name = NULL;

		n = comma ? (size_t)(comma - names) : strlen(names);
		name = gf_xasprintf(", %.*s,", (int)n, names);
		if (!strstr(copy, name))
			gf_text_addf(longer, ", %.*s", (int)n, names);
	}
}

/* A line that begins as one of the notes does, up to its list of names, makes that list longer by
 * `line`'s. */
static void add_line(struct gf_text *notes, const char *line)
{
	const char *names = strstr(line, ": "), *at, *end;
	size_t head = names ? (size_t)(names - line) + 2 : strlen(line);
	struct gf_text longer = {0};
	char *text = gf_xmemdup(line, head + 1);

	text[head] = '\0';
	at = notes->data ? strstr(notes->data, text) : NULL;
	free(text);
	if (!at) {
		gf_text_addf(notes, "%s\n", line);
		return;
	}
	if (!names)
		return;
	end = at + strcspn(at, "\n");
	text = gf_xmemdup(at + head, (size_t)(end - at) - head + 1);
	text[end - at - (ptrdiff_t)head] = '\0';
	gf_text_addf(&longer, "%.*s", (int)(end - notes->data), notes->data);
	add_names(text, line + head, &longer);
	gf_text_addf(&longer, "%s", end);
	free(text);
	gf_text_release(notes);
	*notes = longer;
}

static void add_lines(struct gf_text *notes, const struct gf_text *more)
{
	char *copy = gf_xstrdup(more->data ? more->data : ""), *rest = copy, *line;

	while ((line = strsep(&rest, "\n")))
		if (*line)
			add_line(notes, line);
	free(copy);
}

static bool same_brief(const struct gf_plan_brief *a, const struct gf_plan_brief *b)
{
	return strcmp(a->system, b->system) == 0 && strcmp(a->policy, b->policy) == 0 &&
	       strcmp(a->selection, b->selection) == 0 && strcmp(a->period, b->period) == 0 &&
	       strcmp(a->shard, b->shard) == 0 && a->period_steps == b->period_steps &&
	       strcmp(a->codecs, b->codecs) == 0 && strcmp(a->algorithms, b->algorithms) == 0 &&
	       strcmp(a->outer_codecs, b->outer_codecs) == 0 &&
	       strcmp(a->outer_algorithms, b->outer_algorithms) == 0 &&
	       a->nmessages == b->nmessages && a->lanes == b->lanes && a->staleness == b->staleness;
}

/* A grid has all of its rows. */
static bool is_there(const struct gf_comparison *c, const struct gf_compared *row)
{
	for (size_t i = 0; i < c->nrows && !c->over.grid && !c->over.twice; i++)
		if (c->rows[i].times.iteration_s == row->times.iteration_s &&
		    same_brief(&c->rows[i].plan, &row->plan))
			return true;
	return false;
}

/* What leaves a group in a step of the plan; 0: there are no groups, or what a selection sends
 * depends on gradients. */
static double border_bytes(const struct gf_task *t, const struct gf_plan *p)
{
	struct gf_plan view = *p;
	struct gf_border border;
	struct gf_error err;

	if (gf_period_has(&p->period, GF_PERIOD_EVERY)) {
		if (!gf_selection_has(&p->selection, GF_SELECT_LOSSLESS) || t->system.servers ||
		    !t->axes)
			return 0;
		view.period = (struct gf_period){
			.steps = 1,
			.fragments = 1,
			.messages = p->messages,
			.nmessages = p->nmessages,
		};
		if (gf_axes_group(t->axes, &t->problem.fabric, &view.period.group_ranks, &err) < 0)
			return 0;
	}
	gf_sim_border(&view, &border);
	return border.group_bytes / (double)view.period.steps;
}

static void release_row(struct gf_compared *row)
{
	gf_plan_brief_release(&row->plan);
	gf_plan_release(row->whole);
	free(row->whole);
}

static int plan_as_posed(const struct gf_task *t, struct gf_plan *p, struct gf_error *err)
{
	return gf_task_plan(t, t->policy, p, err);
}

/* The task's policy, or auto where it asks for none. -EINVAL, -ENOTSUP: what varies does not
 * fit. */
static int make_row(const struct gf_task *t, struct gf_compared row, struct gf_comparison *c,
		    struct gf_error *err)
{
	struct gf_beyond beyond = {0};
	struct gf_plan p;
	int rc = gf_task_plan_within(t, plan_as_posed, &p, err);

	if (rc < 0)
		return rc;
	rc = gf_task_add_period(t, &p, err);
	if (rc < 0) {
		gf_plan_release(&p);
		return rc;
	}
	if (c->over.axes >> GF_COMPARE_PERIODS & 1)
		row.border_bytes = border_bytes(t, &p);
	gf_sim_predict_error(&p);
	row.times = *p.predicted;
	row.automatic = !t->policy || t->policy->automatic;
	row.plan = gf_plan_brief(&p);
	row.unsure = gf_task_unsure(t, &p);
	gf_beyond_add_plan(&beyond, &p);
	if (beyond.most_bytes > 0 || beyond.ranks) {
		row.unsure |= GF_UNSURE_BEYOND;
		gf_beyond_add_plan(&c->beyond, &p);
	}
	if (beyond.halved)
		row.unsure |= GF_UNSURE_HALVED;
	if (beyond.derived)
		row.unsure |= GF_UNSURE_DERIVED;
	c->tried++;
	if (c->over.progress)
		c->over.progress(c->over.progress_ctx, (double)c->tried / (double)c->most,
				 row.name);
	row.whole = gf_xmemdup(&p, sizeof(p));
	if (is_there(c, &row))
		release_row(&row);
	else
		c->rows[c->nrows++] = row;
	return 0;
}

static void note_task(const struct gf_task *t, struct gf_text *notes)
{
	gf_task_note(t, notes);
	gf_task_note_outer(t, notes);
}

static int pose_row(const struct gf_request *r, struct gf_compared row, struct gf_comparison *c,
		    struct gf_text *notes, struct gf_error *err)
{
	GF_RELEASED(gf_text_release) struct gf_text here = {0};
	GF_RELEASED(gf_task_release) struct gf_task t = {0};
	int rc = gf_request_pose(r, &t, &here, err);

	/* every plan at its best, unless the user asks for less */
	if (!r->tolerance_asked)
		t.problem.tolerance = 0;
	rc = rc ?: make_row(&t, row, c, err);
	if (rc == 0) {
		note_task(&t, &here);
		add_lines(notes, &here);
	}
	return rc;
}

/* Rows with one reason that follow each other are one line. */
static void note_left_out(struct gf_comparison *c, const struct gf_compared *row,
			  const struct gf_error *why, struct gf_text *notes)
{
	GF_FREED char *tail = gf_xasprintf(": %s\n", why->text);
	size_t n = strlen(tail), before = notes->length;

	c->left_out++;
	if (before > n && strcmp(notes->data + before - n, tail) == 0)
		notes->length -= n;
	gf_text_addf(notes, "%s%.*s",
		     notes->length < before ? ", " : "left out: ", gf_codec_title_length(row->name),
		     row->name);
	if (row->across)
		gf_text_addf(notes, " with %.*s", gf_codec_title_length(row->across), row->across);
	gf_text_addf(notes, "%s", tail);
}

/* DDP's default, where no policy's row is the same: its algorithm is the library's. */
static int add_default(const struct gf_request *r, struct gf_comparison *c, struct gf_text *notes,
		       struct gf_error *err)
{
	const struct gf_compared row = {.name = "DDP's default"};
	struct gf_request wish = {.system = "ddp"};
	int rc;

	for (size_t i = 0; i < c->nrows; i++)
		if (strcmp(c->rows[i].name, wish.system) == 0 &&
		    c->rows[i].times.iteration_s == c->now_s)
			return 0;
	if (c->given || !(c->now_s > 0) || (c->nrows && c->rows[0].unsure & GF_UNSURE_DERIVED))
		return 0;
	gf_request_plain(r, &wish);
	rc = pose_row(&wish, row, c, notes, err);
	return rc == -EINVAL || rc == -ENOTSUP ? 0 : rc;
}

/* Policies of one task: it is posed once, and keeps what it replays. */
static int over_policies(const struct gf_request *r, struct gf_comparison *c, struct gf_text *notes,
			 struct gf_error *err)
{
	GF_RELEASED(gf_task_release) struct gf_task t = {0};
	struct gf_request own = *r;
	int rc = gf_request_pose(r, &t, notes, err);

	if (rc < 0)
		return rc;
	if (gf_task_is_held(&t))
		return gf_error_set(err, -EINVAL,
				    "--over: want shards with --memory, or units with --shard, "
				    "whose plans no policy cuts, got policies");
	if (!r->tolerance_asked)
		t.problem.tolerance = 0;
	for (size_t i = 0; rc == 0; i++) {
		const struct gf_compared row = {
			.name = gf_compare_value(&c->over, GF_COMPARE_POLICIES, i)};

		if (!row.name)
			break;
		t.policy = gf_policy_find(row.name);
		if (gf_selection_has(&t.selection, GF_SELECT_RECUTS)) {
			/* how it cuts follows the policy */
			own.policy = row.name;
			rc = pose_row(&own, row, c, notes, err);
		} else {
			rc = make_row(&t, row, c, err);
		}
		if ((rc == -EINVAL || rc == -ENOTSUP) && !t.policy->automatic) {
			note_left_out(c, &row, err, notes);
			rc = 0;
		}
	}
	if (rc == 0)
		note_task(&t, notes);
	return rc ?: add_default(r, c, notes, err);
}

/* One value, and of a grid one of the other axis, in the request's place. */
static int over_value(const struct gf_request *r, const struct gf_compared *row,
		      struct gf_comparison *c, struct gf_text *notes, struct gf_error *err)
{
	struct gf_compare_variant v = {.request = *r};
	int rc;

	if (r->axes)
		v.axes = *r->axes;
	else
		gf_axes_init(&v.axes);
	v.request.axes = &v.axes;
	/* what is described is a row of its own */
	if (c->over.axes >> GF_COMPARE_CODECS & 1)
		v.request.codecs = NULL;
	if (c->over.axes >> GF_COMPARE_SELECTIONS & 1 && row->name != v.axes.own_selection)
		v.axes.own_selection = NULL;
	if (row->name != v.axes.own_selection)
		gf_compare_ask(&v, row->axis, row->name);
	if (row->across)
		gf_compare_ask(&v, c->over.across, row->across);
	rc = pose_row(&v.request, *row, c, notes, err);
	if (rc != -EINVAL && rc != -ENOTSUP)
		return rc;
	note_left_out(c, row, err, notes);
	return 0;
}

static int over(const struct gf_request *r, enum gf_compare_axis axis, struct gf_comparison *c,
		struct gf_text *notes, struct gf_error *err)
{
	struct gf_compared row = {.axis = axis};
	int rc = 0;

	for (size_t i = 0; rc == 0 && (row.name = gf_compare_value(&c->over, axis, i)); i++) {
		if (!c->over.grid)
			rc = over_value(r, &row, c, notes, err);
		for (size_t k = 0; rc == 0 && c->over.grid &&
				   (row.across = gf_compare_value(&c->over, c->over.across, k));
		     k++)
			rc = over_value(r, &row, c, notes, err);
	}
	/* one's own stands beside the others */
	if (rc == 0 && axis == GF_COMPARE_SELECTIONS && !c->over.grid && r->axes &&
	    r->axes->own_selection) {
		row.name = r->axes->own_selection;
		rc = over_value(r, &row, c, notes, err);
	}
	return rc;
}

static int make_rows(const struct gf_request *r, struct gf_comparison *c, struct gf_text *notes,
		     struct gf_error *err)
{
	unsigned axes = c->over.grid ? 1U << c->over.down : c->over.axes;
	enum gf_compare_axis axis;
	int rc = 0;

	for (axis = 0; axis < GF_COMPARE_AXES && rc == 0; axis++)
		if (axis == GF_COMPARE_POLICIES && axes & 1 && !c->over.grid)
			rc = over_policies(r, c, notes, err);
		else if (axes >> axis & 1)
			rc = over(r, axis, c, notes, err);
	if (rc == 0 && !c->nrows)
		rc = gf_error_set(err, -ENOTSUP, "--compare: want a plan that fits, found none");
	return rc;
}

/* More rows than there can be. */
static size_t most_rows(const struct gf_compare_over *over)
{
	size_t most = 0, counts[GF_COMPARE_AXES], i;

	for (unsigned axis = 0; axis < GF_COMPARE_AXES; axis++) {
		for (i = 0; gf_compare_value(over, axis, i); i++)
			;
		counts[axis] = i;
		most += i;
	}
	return over->grid ? counts[over->down] * counts[over->across] : most + 2;
}

int gf_request_compare(const struct gf_request *r, const struct gf_compare_over *axes,
		       const struct gf_plan *now, struct gf_comparison *c, struct gf_text *notes,
		       struct gf_error *err)
{
	int rc;

	if (r->rule)
		return gf_error_set(
			err, -EINVAL,
			"want no rule where plans are compared, got one, which says the plan");
	if (!r->model || !r->fabric.ranks)
		return gf_error_set(err, -EINVAL, "--compare: want %s, found none",
				    r->model ? "a number of ranks (--ranks)"
					     : "the tensors of a model (--model)");
	*c = (struct gf_comparison){
		.rows = gf_xcalloc(most_rows(axes), sizeof(*c->rows)),
		.most = most_rows(axes),
		.over = *axes,
	};
	c->given = now != NULL;
	c->now_s = gf_request_now_s(r, now);
	rc = make_rows(r, c, notes, err);
	if (rc < 0) {
		gf_comparison_release(c);
		return rc;
	}
	c->beyond.halved = c->beyond.derived = false; /* the rows say it */
	gf_beyond_text(&c->beyond, notes);
	share_bounds(c->rows, c->nrows);
	sort(c->rows, c->nrows);
	if (axes->pays)
		gf_comparison_find_pays(r, c);
	if (axes->axes >> GF_COMPARE_PERIODS & 1)
		gf_text_addf(notes, "with a period other than every, results differ from those of "
				    "synchronous SGD\n");
	return 0;
}

void gf_comparison_release(struct gf_comparison *c)
{
	for (size_t i = 0; i < c->nrows; i++)
		release_row(&c->rows[i]);
	free(c->rows);
	memset(c, 0, sizeof(*c));
}
