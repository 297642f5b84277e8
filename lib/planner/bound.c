/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The lower bound under the time model of gf(7).
 *
 * Why it holds: the message that carries tensor i starts at ready_i or later,
 * and so do all after it, because messages keep the tensors' order and a later
 * tensor is ready later. So no byte of the tensors i..L-1 drains before
 * ready_i + a. While n messages drain, they move n/(gamma_n*b) bytes a second
 * together; the best n over the lanes gives the rate of the bound, and the
 * cheapest a, b and gamma of all options and sizes only lower it.
 *
 * On one lane messages run one after the other, and the menu's floor is the
 * least cost of the whole rest (menu.c). On k lanes a message
 * that takes t alone holds a lane for t or longer, so the rest takes at least a
 * k-th of that floor.
 */
#include <math.h>

#include "planner/work.h"

/* min over n <= lanes of gamma_n/n, over every table of one option. Beyond its
 * last entry a table keeps gamma_n/n, and interpolation stays between. */
static double best_share(const struct gf_option *o, int lanes)
{
	double best = 1;
	size_t e, k;

	for (e = 0; o->contention && e < o->contention->nentries; e++) {
		const struct gf_contention_entry *t =
			&o->contention->entries[e];

		for (k = 0; k < t->ngamma && k < (size_t)lanes; k++)
			best = fmin(best, t->gamma[k] / (double)(k + 1));
	}
	return best;
}

struct gf_floor gf_work_floor(const struct gf_work *w, int lanes)
{
	struct gf_floor f = {1, INFINITY, INFINITY};
	size_t i;

	for (i = 0; i < w->menu.noptions; i++) {
		const struct gf_option *o = &w->menu.options[i];

		double share = best_share(o, lanes);

		f.share = fmin(f.share, share);
		f.startup_s = fmin(f.startup_s, o->startup_s);
		f.drain_s_per_byte =
			fmin(f.drain_s_per_byte, o->per_byte_s * share);
	}
	return f;
}

static double rest_s(const struct gf_work *w, int lanes, double bytes,
		     const struct gf_floor *f)
{
	double one_by_one = gf_menu_floor_s(&w->menu, bytes);

	if (lanes <= 1)
		return one_by_one;
	return fmax(f->startup_s + f->drain_s_per_byte * bytes,
		    one_by_one / lanes);
}

double gf_work_bound_s(const struct gf_work *w, int lanes)
{
	struct gf_floor f = gf_work_floor(w, lanes);
	size_t last = w->ntensors - 1, i;
	double bound = fmax(
		w->backward_end_s,
		w->ready_s[last] +
			gf_menu_cost_s(&w->menu, gf_work_bytes(w, last, last)));

	for (i = 0; i <= last; i++)
		bound = fmax(bound,
			     w->ready_s[i] + rest_s(w, lanes,
						    gf_work_bytes(w, i, last),
						    &f));
	return bound + w->in->model->update_s;
}

double gf_work_exchange_bound_s(const struct gf_work *w, int lanes)
{
	struct gf_floor f = gf_work_floor(w, lanes);

	return rest_s(w, lanes, gf_work_bytes(w, 0, w->ntensors - 1), &f);
}

/*
 * Half of every cost falls before forward's end: all-gathers run one after the
 * other, and the last of them is needed no later than forward ends. The other
 * half obeys the bound above, shifted by forward's delay.
 */
double gf_work_split_bound_s(const struct gf_work *w, int lanes)
{
	struct gf_floor f = gf_work_floor(w, lanes);
	size_t last = w->ntensors - 1, i;
	double forward_s = w->in->model->forward_s;
	double gathers_s =
		gf_menu_floor_s(&w->menu, gf_work_bytes(w, 0, last)) / 2;
	double delay_s = fmax(gathers_s - forward_s, 0);
	double bound = w->backward_end_s;

	for (i = 0; i <= last; i++)
		bound = fmax(bound,
			     w->ready_s[i] + rest_s(w, lanes,
						    gf_work_bytes(w, i, last),
						    &f) /
						     2);
	return delay_s + bound + w->in->model->update_s;
}
