/* SPDX-License-Identifier: BSD-3-Clause */
#include <math.h>

#include "base/array.h"
#include "base/heap.h"
#include "simulator/gantt.h"
#include "simulator/step_listing.h"
#include "simulator/sweep_plots.h"

/* More cannot be told apart. */
enum { RANKS_MOST = 32, STEPS_MOST = 4000 };

struct drawing {
	const struct gf_plan *plan;
	const struct gf_replayed *r;
	const struct gf_level *levels;
	size_t nlevels;
	int every, of_every; /* the first ranks of so many are drawn */
	size_t nmessages;    /* that are drawn */
	double blink_s;      /* what moves together for no longer has one lane */
	struct gf_text *csv;
};

static bool is_drawn(const struct drawing *d, int rank)
{
	return rank % d->every < d->of_every;
}

/* Groups grow by whole levels until there are few enough of them. */
static void choose_ranks(struct drawing *d)
{
	int groups;

	d->every = 1;
	for (size_t i = 0; i < d->nlevels && (d->r->ranks - 1) / d->every >= RANKS_MOST; i++)
		d->every *= (int)d->levels[i].size;
	groups = (d->r->ranks - 1) / d->every + 1;
	if (groups > RANKS_MOST)
		groups = 1, d->every = d->r->ranks;
	d->of_every = d->every == 1 ? 1 : RANKS_MOST / groups;
}

static void choose_messages(struct drawing *d)
{
	double end_s = 0;
	size_t steps = 0;

	while (d->nmessages < d->r->nmessages && steps <= STEPS_MOST) {
		for (int rank = 0; rank < d->r->ranks; rank++)
			if (is_drawn(d, rank))
				steps += d->r->messages[d->nmessages].ranks[rank].nsteps;
		end_s = fmax(end_s, d->r->times.message_end_s[d->nmessages++]);
	}
	d->blink_s = d->nmessages ? 0.004 * (end_s - d->r->times.message_start_s[0]) : 0;
}

/* The level where the two meet; NULL: there are none. */
static const struct gf_level *level_of(const struct drawing *d, int a, int b)
{
	int unit = 1;

	for (size_t i = 0; i < d->nlevels; i++) {
		unit *= (int)d->levels[i].size;
		if (a / unit == b / unit || i + 1 == d->nlevels)
			return &d->levels[i];
	}
	return NULL;
}

enum way { SEND, RECEIVE, LOCAL };
static const char *const way_names[] = {"send", "receive", "local"};

static enum way way_of(enum gf_step_op op)
{
	return op == GF_STEP_SEND                                ? SEND
	       : op == GF_STEP_RECV || op == GF_STEP_RECV_REDUCE ? RECEIVE
								 : LOCAL;
}

GF_ORDER(by_move, struct gf_listed_step,
	 GF_BY(x->at.moves_s, y->at.moves_s) ?: GF_BY(x->message, y->message)
	 ?: GF_BY(x->step, y->step))

static void add_step(const struct drawing *d, const struct gf_listed_step *s, size_t lane,
		     size_t lanes)
{
	const enum way way = way_of(s->is->op);
	const struct gf_level *level = way == LOCAL ? NULL : level_of(d, s->rank, s->is->peer);
	GF_RELEASED(gf_text_release) struct gf_text by = {0};

	gf_text_addf(&by, "%s%s%s", level ? level->name : "", level ? ": " : "",
		     way == LOCAL ? "local" : s->by);
	gf_text_addf(d->csv, "%d,%s,", s->rank, way_names[way]);
	if (way != LOCAL)
		gf_text_addf(d->csv, "%d", s->is->peer);
	gf_text_addf(d->csv, ",");
	gf_plot_label(d->csv, by.data);
	gf_text_addf(d->csv, ",%td,%zu,%zu", level ? level - d->levels : 0, lane + 1, lanes);
	gf_plot_cell(d->csv, s->bytes);
	gf_plot_cell(d->csv, s->at.start_s);
	gf_plot_cell(d->csv, s->at.moves_s);
	gf_plot_cell(d->csv, s->at.end_s);
	gf_text_addf(d->csv, "\n");
}

/* A rank's sends, or what it receives and does itself; what moves at the same time in lanes. */
static void add_steps(const struct drawing *d, int rank, bool sends)
{
	struct gf_listed_step step;
	GF_FREED struct gf_listed_step *steps = NULL;
	GF_FREED struct gf_predicted_message *moves = NULL;
	size_t n = 0, capacity = 0, m, i, lanes;
	GF_FREED size_t *lane = NULL;

	for (m = 0; m < d->nmessages; m++)
		for (i = 0; i < d->r->messages[m].ranks[rank].nsteps; i++) {
			step = gf_listed_step(d->plan, d->r, m, rank, i);
			if ((way_of(step.is->op) == SEND) == sends &&
			    step.at.end_s > step.at.start_s)
				*gf_array_push(&steps, &n, &capacity) = step;
		}
	if (n)
		qsort(steps, n, sizeof(*steps), by_move);
	moves = gf_xcalloc(n + 1, sizeof(*moves));
	lane = gf_xcalloc(n + 1, sizeof(*lane));
	for (i = 0; i < n; i++)
		moves[i] = (struct gf_predicted_message){.start_s = steps[i].at.moves_s,
							 .end_s = steps[i].at.end_s - d->blink_s};
	lanes = gf_lanes_assign(moves, n, lane);
	for (i = 0; i < n; i++)
		add_step(d, &steps[i], lane[i], lanes);
}

void gf_steps_plot(const struct gf_plan *p, const struct gf_what_if *w, const struct gf_replayed *r,
		   struct gf_plot *plot)
{
	struct drawing d = {
		.plan = p,
		.r = r,
		.levels = w->levels ? w->levels : p->levels,
		.nlevels = w->levels ? w->nlevels : p->nlevels,
		.csv = &plot->csv,
	};
	GF_RELEASED(gf_text_release) struct gf_text end = {0};

	choose_ranks(&d);
	choose_messages(&d);
	plot->script = "exchange";
	gf_text_addf(&end, "replayed");
	if (d.of_every < d.every)
		gf_text_addf(&end, "; of each %d ranks the first %d", d.every, d.of_every);
	if (d.nmessages < r->nmessages)
		gf_text_addf(&end, "; the first %zu of %zu messages", d.nmessages, r->nmessages);
	gf_iteration_titles(p, w, r->outcome.ranks, end.data, plot);
	gf_text_addf(d.csv, "rank,way,peer,by,level,lane,lanes,bytes,start_s,moves_s,end_s\n");
	for (int rank = 0; rank < r->ranks; rank++)
		if (is_drawn(&d, rank)) {
			add_steps(&d, rank, true);
			add_steps(&d, rank, false);
		}
}
