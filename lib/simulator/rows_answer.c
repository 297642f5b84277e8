/* SPDX-License-Identifier: BSD-3-Clause */
#include <string.h>

#include "cli/human.h"
#include "simulator/rows.h"

/* A step of which compute is at least this share keeps ranks busy. */
static const double busy = 0.9;
/* Plans whose steps differ by less than this factor are as fast. */
static const double alike = 1.01;

static bool same_place(const struct gf_outcome *a, const struct gf_outcome *b)
{
	return a->ranks == b->ranks && a->bandwidth_bytes_per_s == b->bandwidth_bytes_per_s &&
	       a->period_steps == b->period_steps;
}

/* "32 ranks at 10 Gb/s", or "10 Gb/s" */
static void add_place(const struct gf_outcome *o, bool ranks, struct gf_text *out)
{
	if (ranks)
		gf_text_addf(out, "%d ranks", o->ranks);
	if (o->bandwidth_bytes_per_s > 0)
		gf_text_addf(out, "%s%s", ranks ? " at " : "",
			     gf_human_link(o->bandwidth_bytes_per_s).text);
	if (o->period_steps > 1)
		gf_text_addf(out, ", %.0f steps a period", o->period_steps);
}

/* The first row where row i is; and the fastest there. */
static size_t first_there(const struct gf_row *rows, size_t i)
{
	size_t k = 0;

	while (rows[k].left_out || !same_place(&rows[k].outcome, &rows[i].outcome))
		k++;
	return k;
}

static size_t fastest_there(const struct gf_row *rows, size_t n, size_t i)
{
	size_t best = i, k;

	for (k = 0; k < n; k++)
		if (!rows[k].left_out && same_place(&rows[k].outcome, &rows[i].outcome) &&
		    rows[k].outcome.iteration_s < rows[best].outcome.iteration_s)
			best = k;
	return best;
}

static bool ranks_vary(const struct gf_row *rows, size_t n)
{
	for (size_t i = 1; i < n; i++)
		if (rows[i].outcome.ranks != rows->outcome.ranks)
			return true;
	return false;
}

static bool rates_vary(const struct gf_row *rows, size_t n)
{
	for (size_t i = 1; i < n; i++)
		if (rows[i].outcome.bandwidth_bytes_per_s != rows->outcome.bandwidth_bytes_per_s)
			return true;
	return false;
}

/* Is the plan of that name as fast as any where row `best` is the fastest? */
static bool stays(const struct gf_row *rows, size_t n, const char *name, size_t best)
{
	for (size_t k = 0; name && k < n; k++)
		if (!rows[k].left_out && strcmp(rows[k].name, name) == 0 &&
		    same_place(&rows[k].outcome, &rows[best].outcome))
			return rows[k].outcome.iteration_s < alike * rows[best].outcome.iteration_s;
	return false;
}

/* Plans by name: who is fastest where, as long as one stays it; of a grid on each number of ranks
 * by itself. */
static void add_fastest(const struct gf_row *rows, size_t n, struct gf_text *out)
{
	const bool rates = rates_vary(rows, n), grid = rates && ranks_vary(rows, n);
	const char *name = NULL;
	size_t i, best;
	int ranks = 0;

	gf_text_addf(out, "fastest: ");
	for (i = 0; i < n; i++) {
		if (rows[i].left_out || first_there(rows, i) != i)
			continue;
		best = fastest_there(rows, n, i);
		if (grid && rows[i].outcome.ranks != ranks) {
			gf_text_addf(out, "%son %d ranks ", ranks ? "; " : "",
				     rows[i].outcome.ranks);
			ranks = rows[i].outcome.ranks;
			name = NULL;
		}
		if (stays(rows, n, name, best))
			continue;
		gf_text_addf(out, "%s%s", name ? ", " : "", rows[best].name);
		if (name) {
			gf_text_addf(out, " from ");
			add_place(&rows[best].outcome, !rates, out);
			gf_text_addf(out, " on");
		}
		name = rows[best].name;
	}
	gf_text_addf(out, "\n");
}

/* One plan in one place. */
static void add_step(const struct gf_outcome *o, struct gf_text *out)
{
	const double share = o->exposed_comm_s / o->iteration_s;

	gf_text_addf(out, "%s a step on ", gf_human_time(o->iteration_s).text);
	add_place(o, true, out);
	gf_text_addf(out, ": %.0f %% of it waits for messages, so %s bounds it\n", 100 * share,
		     share > 0.5 ? "the network" : "compute");
}

/* On more ranks, or on as many by a slower network or with shorter periods? */
static bool harder(const struct gf_outcome *a, const struct gf_outcome *b)
{
	if (a->ranks != b->ranks)
		return a->ranks > b->ranks;
	if (a->bandwidth_bytes_per_s != b->bandwidth_bytes_per_s)
		return a->bandwidth_bytes_per_s < b->bandwidth_bytes_per_s;
	return a->period_steps < b->period_steps;
}

/* Are ranks busy there, and in all places that are easier in each respect? */
static bool keeps_busy(const struct gf_row *rows, size_t n, const struct gf_outcome *o)
{
	for (const struct gf_row *r = rows; r < rows + n; r++)
		if (!r->left_out && r->outcome.efficiency < busy && r->outcome.ranks <= o->ranks &&
		    r->outcome.bandwidth_bytes_per_s >= o->bandwidth_bytes_per_s &&
		    r->outcome.period_steps >= o->period_steps)
			return false;
	return true;
}

/* One plan in several places: the hardest that keeps ranks busy, and the worst. */
static void add_scaling(const struct gf_row *rows, size_t n, struct gf_text *out)
{
	const struct gf_row *good = NULL, *worst = NULL, *r;

	for (r = rows; r < rows + n; r++) {
		if (r->left_out)
			continue;
		if (keeps_busy(rows, n, &r->outcome) &&
		    (!good || harder(&r->outcome, &good->outcome)))
			good = r;
		if (!worst || r->outcome.efficiency < worst->outcome.efficiency)
			worst = r;
	}
	if (good) {
		gf_text_addf(out, "at least %.0f %% efficient %s ", 100 * busy,
			     ranks_vary(rows, n) ? "up to" : "from");
		add_place(&good->outcome, true, out);
		gf_text_addf(out, "%s", ranks_vary(rows, n) ? "" : " on");
	} else {
		gf_text_addf(out, "nowhere %.0f %% efficient", 100 * busy);
	}
	if (worst != good) {
		gf_text_addf(out, "; on ");
		add_place(&worst->outcome, true, out);
		gf_text_addf(out, " %.0f %%, where %.0f %% of a step waits for messages",
			     100 * worst->outcome.efficiency,
			     100 * worst->outcome.exposed_comm_s / worst->outcome.iteration_s);
		if (worst->outcome.ranks != worst->plan->ranks)
			gf_text_addf(out, ", by a plan for %d ranks (--replan)",
				     worst->plan->ranks);
	}
	gf_text_addf(out, "\n");
}

void gf_rows_answer(const struct gf_row *rows, size_t n, struct gf_text *out)
{
	const struct gf_row *only = NULL;
	size_t timed = 0, i;

	for (i = 0; i < n; i++)
		if (!rows[i].left_out) {
			only = &rows[i];
			timed++;
		}
	if (timed == 1)
		add_step(&only->outcome, out);
	else if (rows->name)
		add_fastest(rows, n, out);
	else
		add_scaling(rows, n, out);
}
