/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The lower bounds under the time model of gf-time(7).
 *
 * The message that carries tensor i starts at ready_i or later, and so do all after it, because
 * messages keep the tensors' order and a later tensor is ready later. From then on, all messages
 * with bytes of tensors i..L-1 need
 *
 *  - the network: a message of m bytes that takes b*m alone moves its bytes at 1/(gamma_n*b) while
 *    n drain. With share(m) = min over n of gamma_n(m)/n, the messages' share(m)*b*m together take
 *    no less than their sum, after one startup at least;
 *  - the lanes: a message holds one for a + b*m or longer, and k lanes hold k.
 *
 * Any mix of the two bounds bounds: for lambda from 0 to 1 the rest takes
 *
 *	lambda*a + sum over tensors j >= i of m_j * F(m_j),
 *	F(s) = min over options and m >= s of
 *		lambda*share(m)*b + (1 - lambda)*(a/m + b)/k
 *
 * as no message is smaller than its largest tensor. Sizes are looked at in narrow steps, with the
 * least of each term over a step.
 *
 * On k lanes the rest also takes a k-th of the menu's floor, the least cost of all its bytes one
 * after the other.
 *
 * While messages are in flight, backward does 1/slowdown of its work, with the least slowdown of
 * any option. Messages that do not slow it come after it, so the iteration is longer than compute
 * by (1 - 1/slowdown) of the exchange, too.
 */
#include <float.h>
#include <math.h>
#include <stdint.h>
#include <string.h>

#include "base/heap.h"
#include "planner/workbench.h"

#define STEP_BITS   5 /* of a size's mantissa */
#define MIXES       21
#define LANES_SHARE 16 /* messages at once, beyond which a share is kept */

/* Sizes in steps of 2 to 3 %: the leading bits of a double. */
static uint64_t leading_bits(double size)
{
	uint64_t bits;

	memcpy(&bits, &size, sizeof(bits));
	return bits >> (DBL_MANT_DIG - 1 - STEP_BITS);
}

static double low_end(uint64_t bits)
{
	double size;

	bits <<= DBL_MANT_DIG - 1 - STEP_BITS;
	memcpy(&size, &bits, sizeof(size));
	return size;
}

/* The step of a size, which is no smaller than the smallest tensor. */
static size_t step_of(const struct gf_rest *r, double bytes)
{
	return leading_bits(fmax(bytes, 1)) - r->first_step;
}

static double share_at(const struct gf_contention *c, double size, int n)
{
	size = fmin(fmax(size, 0), 0x1p62);
	return gf_contention_gamma(c, (size_t)size, n) / n;
}

/* The least gamma_n/n of messages from `low` to `high` bytes: between the sizes of the table gamma
 * is linear in their logarithm. */
static double least_share(const struct gf_option *o, int lanes, double low, double high)
{
	const struct gf_contention *c = o->contention;
	double least = 1;

	low *= o->wire_ratio;
	high *= o->wire_ratio;
	for (int n = 2; c && n <= lanes && n <= LANES_SHARE; n++) {
		least = fmin(least, fmin(share_at(c, low - 1, n), share_at(c, high, n)));
		for (size_t e = 0; e < c->nentries; e++) {
			double size = (double)c->entries[e].size_bytes;

			if (size >= low - 1 && size <= high)
				least = fmin(least, share_at(c, size, n));
		}
	}
	return least;
}

static void find_shares(struct gf_rest *r)
{
	const struct gf_workbench *w = r->w;
	double total = gf_workbench_bytes(w, 0, w->ntensors - 1), least = INFINITY;
	size_t noptions = w->menu.noptions, i, k;

	for (i = 0; i < w->ntensors; i++)
		least = fmin(least, gf_workbench_bytes(w, i, i));
	r->first_step = leading_bits(fmax(least, 1));
	r->nsteps = step_of(r, total) + 1;
	r->shares = gf_xcalloc(r->nsteps * noptions, sizeof(double));
	for (i = 0; i < r->nsteps; i++)
		for (k = 0; k < noptions; k++)
			r->shares[i * noptions + k] = least_share(&w->menu.options[k], r->lanes,
								  low_end(r->first_step + i),
								  low_end(r->first_step + i + 1));
}

static double lambda_of(const struct gf_rest *r, size_t mix)
{
	return (double)mix / (double)(r->nmixes - 1);
}

/* What an option asks for a byte of a step's sizes. */
struct rate {
	double share, per_byte_s, alone_s;
};

/* Does one of them ask no more than this one, in any mix? */
static bool is_beaten(const struct rate *by, size_t n, const struct rate *one)
{
	for (size_t i = 0; i < n; i++)
		if (by[i].share <= one->share && by[i].per_byte_s <= one->per_byte_s &&
		    by[i].alone_s <= one->alone_s)
			return true;
	return false;
}

/* F of the comment above, per step, for every mix: rates[step * nmixes + mix]. */
static void find_rates(const struct gf_rest *r, double *rates)
{
	const struct gf_menu *m = &r->w->menu;
	GF_FREED struct rate *counted = gf_xcalloc(m->noptions, sizeof(*counted));
	size_t i, k, mix, ncounted;

	for (i = r->nsteps; i-- > 0;) {
		double low = low_end(r->first_step + i);
		double high = low_end(r->first_step + i + 1);
		double *least = &rates[i * r->nmixes];

		for (mix = 0; mix < r->nmixes; mix++)
			least[mix] = i + 1 < r->nsteps ? least[r->nmixes + mix] : INFINITY;
		for (ncounted = 0, k = 0; k < m->noptions; k++) {
			const struct gf_line *line = &m->options[k].line;
			const struct rate one = {r->shares[i * m->noptions + k], line->per_byte_s,
						 line->startup_s / high + line->per_byte_s};

			if (line->from_bytes >= high || line->below_bytes <= low ||
			    is_beaten(counted, ncounted, &one))
				continue;
			counted[ncounted++] = one;
			for (mix = 0; mix < r->nmixes; mix++) {
				double lambda = lambda_of(r, mix);
				double rate = lambda * one.share * one.per_byte_s +
					      (1 - lambda) * one.alone_s / r->lanes;

				least[mix] = rate < least[mix] ? rate : least[mix];
			}
		}
	}
}

static double least_startup_s(const struct gf_workbench *w)
{
	double least = INFINITY;

	for (size_t k = 0; k < w->menu.noptions; k++)
		least = fmin(least, w->menu.options[k].line.startup_s);
	return least;
}

/* All messages with bytes of tensors i.. take so long together; by which lambda, if that is
 * wanted. */
static double rest_s(const struct gf_rest *r, size_t i, double startup_s, double *by)
{
	const struct gf_workbench *w = r->w;
	double rest =
		gf_menu_floor_s(&w->menu, gf_workbench_bytes(w, i, w->ntensors - 1)) / r->lanes;

	for (size_t mix = 0; mix < r->nmixes; mix++) {
		double lambda = lambda_of(r, mix);
		double mixed_s = lambda * startup_s + r->busy_s[i * r->nmixes + mix];

		if (mixed_s < rest)
			continue;
		rest = mixed_s;
		if (by)
			*by = lambda;
	}
	return rest;
}

void gf_rest_init(struct gf_rest *r, const struct gf_workbench *w, int lanes, size_t nmixes)
{
	size_t n = w->ntensors, i, mix, *steps = gf_xcalloc(n, sizeof(*steps));
	double startup_s = least_startup_s(w), *rates;

	*r = (struct gf_rest){
		.w = w,
		.lanes = lanes,
		.nmixes = nmixes,
		.busy_s = gf_xcalloc((n + 1) * nmixes, sizeof(double)),
		.latest_s = gf_xcalloc(n + 1, sizeof(double)),
	};
	find_shares(r);
	rates = gf_xcalloc(r->nsteps * nmixes, sizeof(*rates));
	find_rates(r, rates);
	for (i = 0; i < n; i++)
		steps[i] = step_of(r, gf_workbench_bytes(w, i, i));
	for (mix = 0; mix < nmixes; mix++) {
		for (i = n; i-- > 0;)
			r->busy_s[i * nmixes + mix] =
				r->busy_s[(i + 1) * nmixes + mix] +
				gf_workbench_bytes(w, i, i) * rates[steps[i] * nmixes + mix];
	}
	for (i = n; i-- > 0;) {
		double lambda = 0;
		double latest_s = w->ready_s[i] + rest_s(r, i, startup_s, &lambda);

		r->latest_s[i] = r->latest_s[i + 1];
		if (latest_s > r->latest_s[i]) {
			r->latest_s[i] = latest_s;
			r->lambda = lambda;
		}
	}
	free(rates);
	free(steps);
}

void gf_rest_release(struct gf_rest *r)
{
	free(r->busy_s);
	free(r->latest_s);
	free(r->shares);
	*r = (struct gf_rest){0};
}

bool gf_rest_send(const struct gf_rest *r, struct gf_sim_state *s, const struct gf_send *send)
{
	const struct gf_workbench *w = r->w;
	bool beside = gf_workbench_send(w, s, send);
	size_t step = step_of(r, gf_workbench_bytes(w, send->first, send->last));

	s->flights[s->nflights - 1].message = step * w->menu.noptions + send->option;
	return beside;
}

/* The time that messages in flight still need of the network, and of the lanes. */
static void in_flight(const struct gf_rest *r, const struct gf_sim_state *s, double *drain_s,
		      double *lanes_s)
{
	*drain_s = *lanes_s = 0;
	for (int f = 0; f < s->nflights; f++) {
		const struct gf_sim_flight *flight = &s->flights[f];

		*drain_s += r->shares[flight->message] * flight->left_s;
		*lanes_s += flight->left_s;
		*lanes_s += gf_sim_startup_left_s(flight, s->now_s);
	}
	*lanes_s /= r->lanes;
}

double gf_rest_price_s(const struct gf_rest *r, size_t option, double bytes)
{
	const struct gf_option *o = &r->w->menu.options[option];
	double drain_s = o->line.per_byte_s * bytes;
	double share = r->shares[step_of(r, bytes) * r->w->menu.noptions + option];

	return r->lambda * share * drain_s +
	       (1 - r->lambda) * (o->line.startup_s + drain_s) / r->lanes;
}

double gf_rest_bound_s(const struct gf_rest *r, const struct gf_sim_state *s, size_t next,
		       double *priced_s)
{
	const struct gf_workbench *w = r->w;
	const double *busy_s = &r->busy_s[next * r->nmixes];
	double drain_s, lanes_s, busy = 0, end_s, backward_s;

	in_flight(r, s, &drain_s, &lanes_s);
	if (priced_s)
		*priced_s = s->now_s + r->lambda * drain_s + (1 - r->lambda) * lanes_s;
	for (size_t mix = 0; mix < r->nmixes; mix++) {
		double lambda = lambda_of(r, mix);
		double by = lambda * drain_s + (1 - lambda) * lanes_s + busy_s[mix];

		busy = by > busy ? by : busy;
	}
	end_s = s->now_s + busy;
	if (r->latest_s[next] + s->lag_s > end_s)
		end_s = r->latest_s[next] + s->lag_s;
	backward_s = w->backward_end_s + s->lag_s + (1 - 1 / w->least_slowdown) * busy;
	return (end_s > backward_s ? end_s : backward_s) + gf_problem_update_s(w->in);
}

double gf_workbench_exchange_bound_s(const struct gf_workbench *w, int lanes)
{
	GF_RELEASED(gf_rest_release) struct gf_rest r = {0};
	double bound;

	gf_rest_init(&r, w, lanes, MIXES);
	bound = rest_s(&r, 0, least_startup_s(w), NULL);
	return bound;
}

double gf_workbench_bound_s(const struct gf_workbench *w, int lanes)
{
	size_t last = w->ntensors - 1;
	double exchange_s, bound;
	GF_RELEASED(gf_rest_release) struct gf_rest r = {0};

	gf_rest_init(&r, w, lanes, MIXES);
	exchange_s = rest_s(&r, 0, least_startup_s(w), NULL);
	bound = fmax(r.latest_s[0], w->backward_end_s + (1 - 1 / w->least_slowdown) * exchange_s);
	/* the last message alone, and whatever is in it besides */
	bound = fmax(bound, w->ready_s[last] +
				    gf_menu_least_s(&w->menu, gf_workbench_bytes(w, last, last)));
	return bound + gf_problem_update_s(w->in);
}

/*
 * All-gathers fall before forward's end: they run one after the other, those of shards on all
 * lanes, and the last of them is needed no later than forward ends. Reduce-scatters obey the bound
 * above, shifted by forward's delay. Where ways trade one half for the other, the sum of the halves
 * binds, too: messages with bytes of tensors i.. cost no less than what the menu asks for both
 * halves, their reduce-scatters begin when tensor i is ready, and their all-gathers delay forward
 * by what is longer than it.
 */
double gf_workbench_split_bound_s(const struct gf_workbench *w, int lanes)
{
	const size_t last = w->ntensors - 1;
	const double forward_s = w->in->model->forward_s, bytes = gf_workbench_bytes(w, 0, last);
	struct gf_workbench half = *w, other = *w; /* they share the arrays */
	double startup_s, delay_s, bound;
	GF_RELEASED(gf_rest_release) struct gf_rest r = {0};

	gf_menu_half(&w->menu, GF_COLL_ALL_GATHER, &other.menu);
	gf_menu_half(&w->menu, GF_COLL_REDUCE_SCATTER, &half.menu);
	delay_s = w->in->copies && lanes > 1 ? gf_workbench_exchange_bound_s(&other, lanes)
					     : gf_menu_floor_s(&other.menu, bytes);
	delay_s = fmax(delay_s - forward_s, 0);
	startup_s = least_startup_s(&half);
	gf_rest_init(&r, &half, lanes, MIXES);
	bound = w->backward_end_s + (1 - 1 / w->least_slowdown) * rest_s(&r, 0, startup_s, NULL);
	for (size_t i = 0; i <= last; i++)
		bound = fmax(bound, w->ready_s[i] + rest_s(&r, i, startup_s, NULL));
	gf_menu_part_release(&half.menu);
	gf_menu_part_release(&other.menu);
	bound += delay_s;
	for (size_t i = 0; lanes == 1 && gf_menu_unlike(&w->menu) && i <= last; i++)
		bound = fmax(bound,
			     w->ready_s[i] - forward_s +
				     gf_menu_floor_s(&w->menu, gf_workbench_bytes(w, i, last)));
	return bound + gf_problem_update_s(w->in);
}
