/* SPDX-License-Identifier: BSD-3-Clause */
#include "planner/compare.h"

#include <errno.h>
#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/heap.h"
#include "codec/codec.h"
#include "coll/algorithm.h"

/* The request with one entry of the axis in it. */
struct variant {
	struct gf_request request;
	struct gf_axes axes;
	const char *codecs[2];
};

/* --- the axes ------------------------------------------------------------ */

static void ask_policy(struct variant *v, size_t i)
{
	v->request.policy = gf_policies[i]->name;
}

static void ask_system(struct variant *v, size_t i)
{
	v->request.system = gf_systems[i].name;
}

static void ask_codec(struct variant *v, size_t i)
{
	v->codecs[0] = gf_codecs[i].name;
	v->request.codecs = v->codecs;
}

static void ask_selection(struct variant *v, size_t i)
{
	v->axes.selection = (int)i;
}

static void ask_algorithm(struct variant *v, size_t i)
{
	v->request.algorithm = gf_algorithms[i]->name;
}

/* Numbers by name, as the registries have their entries. */
static const struct gf_named lanes[] = {
	{"1", NULL}, {"2", NULL}, {"3", NULL}, {"4", NULL}, {NULL, NULL}};
static const struct gf_named stalenesses[] = {
	{"1", NULL}, {"2", NULL}, {"3", NULL}, {NULL, NULL}};

static void ask_lanes(struct variant *v, size_t i)
{
	v->request.lanes = (int)i + 1;
}

static void ask_staleness(struct variant *v, size_t i)
{
	v->axes.staleness = (int)i + 1;
}

const char *const gf_compare_names[] = {"policies",   "systems",    "codecs",
					"selections", "algorithms", "lanes",
					"staleness",  NULL};

static const struct axis {
	const char *option;
	struct gf_registry of;
	void (*ask)(struct variant *v, size_t i);
} axes_of[GF_COMPARE_AXES] = {
	{"policy", {gf_policies, 0, NULL}, ask_policy},
	{"system", {gf_systems, sizeof(*gf_systems), NULL}, ask_system},
	{"codecs", {gf_codecs, sizeof(*gf_codecs), NULL}, ask_codec},
	{"selection", {gf_select_plans, 0, NULL}, ask_selection},
	{"algorithm", {gf_algorithms, 0, NULL}, ask_algorithm},
	{"lanes", {lanes, sizeof(*lanes), NULL}, ask_lanes},
	{"staleness", {stalenesses, sizeof(*stalenesses), NULL}, ask_staleness},
};

const char *gf_compare_option(enum gf_compare_axis axis)
{
	return axes_of[axis].option;
}

int gf_compare_store(const char *arg, void *to, struct gf_error *err)
{
	char *copy = gf_xstrdup(arg), *rest = copy, *part;
	unsigned axes = 0;
	int rc = 0, axis;

	while (rc == 0 && (part = strsep(&rest, ","))) {
		rc = gf_names_find(gf_compare_names, part, &axis, err);
		if (rc == 0)
			axes |= 1U << axis;
	}
	free(copy);
	if (rc == 0)
		*(unsigned *)to = axes;
	return rc;
}

/* --- rows ---------------------------------------------------------------- */

/* A bound that no plan of any policy beats: that over the most lanes that one
 * of them may use. Policies that split messages keep their own. */
static void share_bound(struct gf_compared *rows, size_t n)
{
	double bound = INFINITY;
	size_t i;

	for (i = 0; i < n; i++)
		if (rows[i].automatic)
			bound = fmin(bound, rows[i].lower_bound_s);
	for (i = 0; i < n; i++)
		if (rows[i].automatic)
			rows[i].lower_bound_s = bound;
}

/* Times that differ by less than this share are the same time. */
static const double same_share = 1e-6;

/* Is a better than b? If their times are the same, fewer messages are. */
static bool better(const struct gf_compared *a, const struct gf_compared *b,
		   double unit_s)
{
	double x = nearbyint(a->iteration_s / unit_s);
	double y = nearbyint(b->iteration_s / unit_s);

	return x < y || (x == y && a->plan.nmessages < b->plan.nmessages);
}

/* Best first; equals stay in the registry's order. */
static void sort(struct gf_compared *rows, size_t n)
{
	double least_s = INFINITY, unit_s;
	size_t i, k;

	for (i = 0; i < n; i++)
		least_s = fmin(least_s, rows[i].iteration_s);
	unit_s = fmax(same_share * least_s, DBL_MIN);
	for (i = 1; i < n; i++) {
		struct gf_compared row = rows[i];

		for (k = i; k > 0 && better(&row, &rows[k - 1], unit_s); k--)
			rows[k] = rows[k - 1];
		rows[k] = row;
	}
}

/* A line that begins as one of the notes does, up to its list of names, makes
 * that list longer by `line`'s. */
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
	end = at + strcspn(at, "\n");
	text = gf_xmemdup(at, (size_t)(end - at) + 1);
	text[end - at] = '\0';
	if (names && !strstr(text + head, line + head)) {
		gf_text_addf(&longer, "%.*s, %s%s", (int)(end - notes->data),
			     notes->data, line + head, end);
		gf_text_release(notes);
		*notes = longer;
	}
	free(text);
}

static void add_lines(struct gf_text *notes, const struct gf_text *more)
{
	char *copy = gf_xstrdup(more->data ? more->data : ""), *rest = copy,
	     *line;

	while ((line = strsep(&rest, "\n")))
		if (*line)
			add_line(notes, line);
	free(copy);
}

static bool is_there(const struct gf_comparison *c,
		     const struct gf_compared *row)
{
	size_t i;

	for (i = 0; i < c->nrows; i++)
		if (c->rows[i].iteration_s == row->iteration_s &&
		    gf_plan_brief_equal(&c->rows[i].plan, &row->plan))
			return true;
	return false;
}

/* The task's policy, or auto where it asks for none. -EINVAL, -ENOTSUP: what
 * varies does not fit. */
static int make_row(const struct gf_task *t, const char *name,
		    struct gf_comparison *c, struct gf_error *err)
{
	struct gf_compared row = {
		.name = name,
		.automatic = !t->policy || t->policy->automatic,
	};
	struct gf_plan p;
	int rc = gf_task_plan(t, t->policy, &p, err);

	if (rc < 0)
		return rc;
	row.plan = gf_plan_brief(&p);
	row.iteration_s = p.predicted->iteration_s;
	row.compute_s = p.predicted->compute_s;
	row.exposed_comm_s = p.predicted->exposed_comm_s;
	row.lower_bound_s = p.predicted->lower_bound_s;
	row.iteration_low_s = p.predicted->iteration_low_s;
	row.iteration_high_s = p.predicted->iteration_high_s;
	gf_plan_release(&p);
	if (is_there(c, &row))
		gf_plan_brief_release(&row.plan);
	else
		c->rows[c->nrows++] = row;
	return 0;
}

static int pose_row(const struct gf_request *r, const char *name,
		    struct gf_comparison *c, struct gf_text *notes,
		    struct gf_error *err)
{
	struct gf_text here = {0};
	struct gf_task t;
	int rc = gf_request_pose(r, &t, &here, err);

	if (rc == 0) {
		/* every plan at its best, unless the user asks for less */
		if (!r->tolerance_asked)
			t.problem.tolerance = 0;
		rc = make_row(&t, name, c, err);
		if (rc == 0)
			gf_task_note(&t, &here);
		gf_task_release(&t);
	}
	if (rc == 0)
		add_lines(notes, &here);
	gf_text_release(&here);
	return rc;
}

static void note_left_out(struct gf_comparison *c, const char *name,
			  const struct gf_error *why, struct gf_text *notes)
{
	c->left_out++;
	gf_text_addf(notes, "%s is left out: %s\n", name, why->text);
}

/* Policies of one task: it is posed once, and keeps what it replays. */
static int over_policies(const struct gf_request *r, struct gf_comparison *c,
			 struct gf_text *notes, struct gf_error *err)
{
	struct gf_task t;
	size_t first = c->nrows, i;
	int rc = gf_request_pose(r, &t, notes, err);

	if (rc < 0)
		return rc;
	if (!r->tolerance_asked)
		t.problem.tolerance = 0;
	for (i = 0; gf_policies[i] && rc == 0; i++) {
		t.policy = gf_policies[i];
		rc = make_row(&t, t.policy->name, c, err);
		if ((rc == -EINVAL || rc == -ENOTSUP) && !t.policy->automatic) {
			note_left_out(c, t.policy->name, err, notes);
			rc = 0;
		}
	}
	if (rc == 0)
		gf_task_note(&t, notes);
	gf_task_release(&t);
	share_bound(c->rows + first, c->nrows - first);
	return rc;
}

static int over(const struct gf_request *r, const struct axis *a,
		struct gf_comparison *c, struct gf_text *notes,
		struct gf_error *err)
{
	const struct gf_named *e;
	size_t i;
	int rc = 0;

	for (i = 0; rc == 0 && (e = gf_registry_at(&a->of, i)); i++) {
		struct variant v = {.request = *r};

		if (r->axes)
			v.axes = *r->axes;
		else
			gf_axes_init(&v.axes);
		v.request.axes = &v.axes;
		a->ask(&v, i);
		rc = pose_row(&v.request, e->name, c, notes, err);
		if (rc == -EINVAL || rc == -ENOTSUP) {
			note_left_out(c, e->name, err, notes);
			rc = 0;
		}
	}
	return rc;
}

static int make_rows(const struct gf_request *r, unsigned axes,
		     struct gf_comparison *c, struct gf_text *notes,
		     struct gf_error *err)
{
	unsigned axis;
	int rc = 0;

	for (axis = 0; axis < GF_COMPARE_AXES && rc == 0; axis++)
		if (axis == GF_COMPARE_POLICIES && axes & 1)
			rc = over_policies(r, c, notes, err);
		else if (axes >> axis & 1)
			rc = over(r, &axes_of[axis], c, notes, err);
	if (rc == 0 && !c->nrows)
		rc = gf_error_set(err, -ENOTSUP,
				  "--compare: want a plan that fits, found "
				  "none");
	return rc;
}

int gf_request_compare(const struct gf_request *r, unsigned axes,
		       struct gf_comparison *c, struct gf_text *notes,
		       struct gf_error *err)
{
	size_t most = 0, axis, i;
	int rc;

	if (r->rule)
		return gf_error_set(err, -EINVAL,
				    "want no rule where plans are compared, "
				    "got one, which says the plan");
	if (!r->model || !r->fabric.ranks)
		return gf_error_set(
			err, -EINVAL, "--compare: want %s, found none",
			r->model ? "a number of ranks (--ranks)"
				 : "the tensors of a model (--model)");
	for (axis = 0; axis < GF_COMPARE_AXES; axis++)
		for (i = 0; gf_registry_at(&axes_of[axis].of, i); i++)
			most++;
	*c = (struct gf_comparison){
		.rows = gf_xcalloc(most, sizeof(*c->rows)),
		.axes = axes,
	};
	rc = make_rows(r, axes, c, notes, err);
	if (rc < 0) {
		gf_comparison_release(c);
		return rc;
	}
	sort(c->rows, c->nrows);
	if (!c->rows[0].automatic && !r->halves)
		gf_text_addf(notes,
			     "%s is the fastest, but makes the next forward "
			     "pass wait: auto leaves it out (--halves lets it "
			     "in)\n",
			     c->rows[0].name);
	return 0;
}

void gf_comparison_release(struct gf_comparison *c)
{
	size_t i;

	for (i = 0; i < c->nrows; i++)
		gf_plan_brief_release(&c->rows[i].plan);
	free(c->rows);
	memset(c, 0, sizeof(*c));
}
