/* SPDX-License-Identifier: BSD-3-Clause */
#include "simulator/uncertainty.h"

#include <math.h>

#include "base/array.h"
#include "base/heap.h"
#include "cli/human.h"
#include "cost/stat.h"

/* Of its repeats, against their median. */
static double scatter(const struct gf_fit *fit)
{
	GF_FREED double *shares = NULL;
	size_t i, n = 0;

	if (!fit->npoints || !fit->spread_s)
		return 0;
	shares = gf_xcalloc(fit->npoints, sizeof(*shares));
	for (i = 0; i < fit->npoints; i++)
		if (fit->time_s[i] > 0)
			shares[n++] = fit->spread_s[i] / (2 * fit->time_s[i]);
	return n ? gf_stat_median(shares, n) : 0;
}

/* The share d of a fit by so many lines; 0 without points. Lines of two points each leave no
 * residual: then it is GF_UNCERTAINTY_TIMES at least. */
static double doubt_of_fit(const struct gf_fit *fit, size_t nlines)
{
	double d;

	if (!fit->npoints)
		return 0;
	d = fmin(hypot(fit->residual_rms, scatter(fit)), GF_UNCERTAINTY_MOST);
	return fit->npoints > 2 * nlines ? d : fmax(d, GF_UNCERTAINTY_TIMES);
}

struct end {
	const struct gf_fit *fit;
	const struct gf_cost_lines *lines;
	bool high;
	double d;
	size_t last; /* point */
	struct gf_cost_line *parts;
	size_t nparts, capacity;
};

static double bytes_at(const struct end *e, size_t point)
{
	return (double)e->fit->size_bytes[point];
}

static double cost_s(const struct gf_cost_line *l, double bytes)
{
	return l->startup_s + l->per_byte_s * bytes;
}

/* By a rounding, the startup of a line through the origin may be negative: it is 0. */
static void add(struct end *e, double from, double startup_s, double per_byte_s)
{
	*gf_array_push(&e->parts, &e->nparts, &e->capacity) =
		(struct gf_cost_line){(size_t)from, fmax(startup_s, 0), per_byte_s, NULL};
}

/* The factor of the lines from one point to another. */
static double factor_between(const struct end *e, size_t first, size_t last)
{
	double factor = e->high ? 1 + e->d : 1 / (1 + e->d);

	for (; first <= last; first++) {
		double missed =
			e->fit->time_s[first] / gf_cost_lines_s(e->lines, bytes_at(e, first));

		if (missed > 0)
			factor = e->high ? fmax(factor, missed) : fmin(factor, missed);
	}
	return factor;
}

/* How much too large the slope of a line between two sizes may be, where times are off by a
 * share. */
static double slope_error(const struct end *e, double time_s, double from, double to)
{
	const double off = 2 * sqrt(2) * fmax(e->d, GF_UNCERTAINTY_TIMES);

	return to > from ? off * time_s / (to - from) : INFINITY;
}

static void add_smaller(struct end *e, double factor)
{
	const struct gf_cost_lines *l = e->lines;
	const double first = bytes_at(e, 0), last = bytes_at(e, e->last);
	const double time_s = factor * gf_cost_lines_s(l, first);
	const double to = l->nlarger ? (double)l->larger->from_bytes : last;
	double least_s =
		fmin(fmax(l->first.startup_s - to * slope_error(e, time_s, first, to), 0), time_s);

	if (e->high)
		least_s = time_s;
	if (first > 0)
		add(e, 0, least_s, (time_s - least_s) / first);
}

static void add_larger(struct end *e, double factor)
{
	const double last = fmax(bytes_at(e, e->last), 1);
	struct gf_cost_line l = gf_cost_line_at(e->lines, last, 1, NULL);
	const double from = fmax(bytes_at(e, 0), (double)l.from_bytes);
	const double time_s = factor * cost_s(&l, last);
	double slope =
		fmin(fmax(l.per_byte_s - slope_error(e, time_s, from, last), 0), time_s / last);

	if (e->high)
		slope = time_s / last;
	add(e, last, time_s - slope * last, slope);
}

/* Does a line begin at that size, below the end of the one before? */
static bool falls_at(const struct end *e, double bytes)
{
	return gf_cost_lines_s(e->lines, bytes) < gf_cost_lines_s(e->lines, bytes - 1);
}

/* Where the lines do not fall, their ends do not: where a part begins below the end of the one
 * before it, it is raised at the high end, and that one is lowered at the low end. */
static void level(struct end *e)
{
	double bound_s = e->high ? 0 : INFINITY;

	for (size_t k = 0; k < e->nparts; k++) {
		size_t i = e->high ? k : e->nparts - 1 - k;
		struct gf_cost_line *p = &e->parts[i];
		double from = (double)p->from_bytes,
		       to = i + 1 < e->nparts ? (double)p[1].from_bytes : 2 * from,
		       from_s = cost_s(p, from), to_s = cost_s(p, to);
		bool fine;

		if (falls_at(e, e->high ? from : to))
			bound_s = e->high ? 0 : INFINITY;
		fine = e->high ? from_s >= bound_s : to_s <= bound_s;

		from_s = e->high ? fmax(from_s, bound_s) : fmin(from_s, bound_s);
		to_s = e->high ? fmax(to_s, bound_s) : fmin(to_s, bound_s);
		bound_s = e->high ? to_s : from_s;
		if (fine)
			continue;
		p->per_byte_s = (to_s - from_s) / (to - from);
		p->startup_s = fmax(from_s - p->per_byte_s * from, 0);
	}
}

static void scale_lines(struct gf_cost_line *lines, size_t n, double factor)
{
	for (size_t i = 0; i < n; i++) {
		lines[i].startup_s *= factor;
		lines[i].per_byte_s *= factor;
	}
}

void gf_uncertainty_lines(const struct gf_fit *fit, struct gf_cost_line *first,
			  struct gf_cost_line **larger, size_t *nlarger,
			  const struct gf_uncertainty_most *most, bool high)
{
	const struct gf_cost_lines lines = {*first, *larger, *nlarger};
	const size_t last = fit->npoints - 1;
	struct end e = {.fit = fit, .lines = &lines, .high = high, .last = last};
	/* a smaller message has a line, a larger one, and each part one more where a line begins */
	const size_t own = *nlarger + 2;
	size_t step, i, k;
	double factor, from, next;

	if (!fit->npoints)
		return;
	e.d = doubt_of_fit(fit, 1 + *nlarger);
	if (own >= most->lines) {
		factor = factor_between(&e, 0, last);
		scale_lines(first, 1, factor);
		scale_lines(*larger, *nlarger, factor);
		return;
	}
	step = 1 + last / (most->lines - own < most->parts ? most->lines - own : most->parts);
	for (i = 0; i == 0 || i < last; i = k) {
		k = last - i > step ? i + step : last;
		factor = factor_between(&e, i, k);
		if (i == 0)
			add_smaller(&e, factor);
		for (from = bytes_at(&e, i); from < bytes_at(&e, k); from = next) {
			struct gf_cost_line l = gf_cost_line_at(&lines, from, 1, &next);

			add(&e, from, l.startup_s * factor, l.per_byte_s * factor);
		}
		if (k == last) {
			add_larger(&e, factor);
			break;
		}
	}
	level(&e);
	gf_list_free(&gf_cost_line_record, *larger, *nlarger);
	for (i = k = 0; i < e.nparts; i++)
		if (e.parts[i].startup_s != e.parts[k].startup_s ||
		    e.parts[i].per_byte_s != e.parts[k].per_byte_s)
			e.parts[++k] = e.parts[i];
	*first = e.parts[0];
	*nlarger = k;
	*larger = gf_xmemdup(e.parts + 1, k * sizeof(*e.parts));
	free(e.parts);
}

static double doubt_of_model(const struct gf_model_profile *m)
{
	double all_s = m->forward_s + m->backward_s + m->update_s;

	return all_s > 0 ? fmin(m->spread_s / (2 * all_s), GF_UNCERTAINTY_MOST) : 0;
}

/* Every doubling of the ranks, or halving, counts once. */
static double carried(const struct gf_network *net, int ranks)
{
	if (!net->ranks || !net->nallreduce || ranks == net->ranks)
		return 1;
	return pow(1 + GF_UNCERTAINTY_CARRIED, fabs(log2((double)ranks / net->ranks)));
}

double gf_uncertainty_least(const struct gf_network *net)
{
	double least = INFINITY;

	for (size_t i = 0; net && i < net->nallreduce; i++)
		if (net->allreduce[i].collective == GF_COLL_WHOLE)
			least = fmin(least, doubt_of_fit(&net->allreduce[i].fit,
							 1 + net->allreduce[i].nlarger));
	for (size_t i = 0; net && net->nallreduce == 0 && i < net->nlevels; i++)
		least = fmin(least, doubt_of_fit(&net->levels[i].fit, 1 + net->levels[i].nlarger));
	return isfinite(least) ? least : 0;
}

bool gf_uncertainty_recorded(const struct gf_model_profile *m, const struct gf_network *net,
			     int ranks)
{
	for (size_t i = 0; net && i < net->nallreduce; i++)
		if (net->allreduce[i].fit.npoints)
			return true;
	for (size_t i = 0; net && i < net->nlevels; i++)
		if (net->levels[i].fit.npoints)
			return true;
	return (net && carried(net, ranks) > 1) || doubt_of_model(m) > 0;
}

/* Less is not worth a word. */
static const double least_doubt = 1e-3;
/* Closed forms look at every line of a level for every round. */
static const struct gf_uncertainty_most of_entry = {32, GF_COST_LINES_MOST},
					of_level = {4, GF_LEVEL_LINES_MOST};

/* --- costs at one end ------------------------------------------------------
 */

static void scale_gamma(struct gf_contention *c, double factor)
{
	for (size_t i = 0; i < c->nentries; i++)
		for (size_t k = 0; k < c->entries[i].ngamma; k++)
			c->entries[i].gamma[k] = 1 + factor * (c->entries[i].gamma[k] - 1);
}

/* 1 + d, or one by it. */
static double factor_of(double doubt, bool high)
{
	return high ? 1 + doubt : 1 / (1 + doubt);
}

static void scale_network(struct gf_network *net, int ranks, bool high)
{
	double carry = net ? factor_of(carried(net, ranks) - 1, high) : 1;

	for (size_t i = 0; net && i < net->nallreduce; i++) {
		struct gf_allreduce_cost *c = &net->allreduce[i];
		struct gf_cost_line first = gf_allreduce_lines(c).first;
		double d = doubt_of_fit(&c->fit, 1 + c->nlarger);

		scale_gamma(&c->contention, factor_of(d, high));
		gf_uncertainty_lines(&c->fit, &first, &c->larger, &c->nlarger, &of_entry, high);
		c->startup_s = first.startup_s * carry;
		c->per_byte_s = first.per_byte_s * carry;
		scale_lines(c->larger, c->nlarger, carry);
	}
	for (size_t i = 0; net && i < net->nlevels; i++) {
		struct gf_level_cost *c = &net->levels[i];
		double d = doubt_of_fit(&c->fit, 1 + c->nlarger);
		double factor = factor_of(d, high);
		struct gf_cost_line first = gf_level_lines(c).first;

		scale_gamma(&c->contention, factor);
		c->reduce_s_per_byte *= factor;
		gf_uncertainty_lines(&c->fit, &first, &c->larger, &c->nlarger, &of_level, high);
		c->alpha_s = first.startup_s;
		c->beta_s_per_byte = first.per_byte_s;
	}
}

void gf_uncertainty_move(struct gf_model_profile *m, struct gf_network *net, int ranks, bool high)
{
	const double factor = factor_of(doubt_of_model(m), high);

	scale_network(net, ranks, high);
	gf_model_slow(m, factor);
	m->update_s *= factor;
}

static double message_s(const struct gf_sim_message *m)
{
	return m->startup_s + m->per_byte_s * m->bytes;
}

static int predict_end(const struct gf_plan *p, struct gf_derived *derived, bool high,
		       double *iteration_s, struct gf_error *err)
{
	struct gf_plan end = *p;
	struct gf_sim_result result = {0};
	struct gf_fabric fabric;
	int rc;

	end.network = gf_network_copy(p->network);
	end.model = gf_model_profile_copy(p->model);
	fabric = gf_plan_fabric(&end);
	fabric.derived = derived;
	gf_uncertainty_move(end.model, end.network, fabric.ranks, high);
	rc = gf_predict_plan(&end, &fabric, &result, err);
	if (rc == 0)
		*iteration_s = result.iteration_s;
	gf_network_free(end.network);
	gf_model_profile_free(end.model);
	return rc;
}

/* The share r by which runs differ. */
static double runs_differ(const struct gf_plan *p, double compute_s, double iteration_s)
{
	double share = iteration_s > 0 ? fmin(compute_s / iteration_s, 1) : 1;
	double network = p->network ? p->network->drift : 0;

	return fmax(GF_UNCERTAINTY_RUNS, share * p->model->drift + (1 - share) * network);
}

void gf_uncertainty_widen(const struct gf_plan *p, double compute_s, double iteration_s,
			  double *low_s, double *high_s)
{
	double runs = runs_differ(p, compute_s, iteration_s);

	*low_s = iteration_s / (1 + hypot(fmax(iteration_s / *low_s - 1, 0), runs));
	*high_s = iteration_s + hypot(fmax(*high_s - iteration_s, 0), runs * iteration_s);
}

int gf_uncertainty_predict(struct gf_plan *p, struct gf_derived *derived, struct gf_error *err)
{
	struct gf_prediction *pr = p->predicted;
	double low, high;
	int rc;

	pr->iteration_low_s = pr->iteration_high_s = 0;
	if (!gf_uncertainty_recorded(p->model, p->network, p->ranks + p->servers))
		return 0;
	rc = predict_end(p, derived, false, &low, err);
	rc = rc ?: predict_end(p, derived, true, &high, err);
	if (rc < 0)
		return rc;
	gf_uncertainty_widen(p, pr->compute_s, pr->iteration_s, &low, &high);
	pr->iteration_low_s = low;
	pr->iteration_high_s = high;
	return 0;
}

void gf_beyond_add(struct gf_beyond *b, const struct gf_plan *p, const struct gf_fabric *f,
		   const struct gf_traffic *t)
{
	const bool sets = gf_selection_has(&p->selection, GF_SELECT_SETS);
	/* a group's messages are not those that were measured */
	const bool mixed = gf_period_has(&p->period, GF_PERIOD_EVERY) && gf_fabric_is_mixed(f);
	struct gf_price price;
	size_t i, k;

	b->derived |= sets && mixed;
	for (i = 0; !sets && i < t->nmessages; i++) {
		const struct gf_message *as = gf_traffic_like(p, t->plan_message[i]);
		const double bytes = t->messages[i].bytes;
		const struct gf_priced m = gf_traffic_priced(p, as, &t->messages[i]);
		double least = INFINITY, most = 0;

		if (gf_price_message(f, &m, &price, NULL) < 0)
			continue;
		b->derived |= mixed && !price.entry;
		if (!price.entry)
			continue;
		b->halved |= price.halved;
		if (price.origin == GF_PRICE_RESCALED) {
			b->measured_ranks = f->network->ranks;
			b->ranks = f->ranks > b->ranks ? f->ranks : b->ranks;
		}
		for (k = 0; k < price.entry->fit.npoints; k++) {
			double size = price.scale * (double)price.entry->fit.size_bytes[k];

			least = fmin(least, size);
			most = fmax(most, size);
		}
		if (!k || (bytes >= least && bytes <= most))
			continue;
		if (!b->most_bytes) {
			b->from_bytes = least;
			b->to_bytes = most;
			b->least_bytes = bytes;
		}
		b->least_bytes = fmin(b->least_bytes, bytes);
		b->most_bytes = fmax(b->most_bytes, bytes);
	}
}

void gf_beyond_add_plan(struct gf_beyond *b, const struct gf_plan *p)
{
	struct gf_fabric f = gf_plan_fabric(p);
	GF_RELEASED(gf_traffic_release) struct gf_traffic t = {0};

	if (p->network && gf_traffic_init(&t, p, &f, NULL) == 0)
		gf_beyond_add(b, p, &f, &t);
}

bool gf_plan_is_derived(const struct gf_plan *p)
{
	struct gf_beyond b = {0};

	gf_beyond_add_plan(&b, p);
	return b.derived;
}

void gf_beyond_text(const struct gf_beyond *b, struct gf_text *out)
{
	const bool several = b->most_bytes > b->least_bytes;

	if (b->ranks)
		gf_text_addf(out,
			     "the network was measured on %d ranks; its costs are carried over to "
			     "%d by closed forms\n",
			     b->measured_ranks, b->ranks);
	if (b->most_bytes > 0)
		gf_text_addf(out,
			     "messages of %s%s%s lie beyond the sizes that were measured, %s to "
			     "%s: their times are in more doubt\n",
			     gf_human_size(b->least_bytes).text, several ? " to " : "",
			     several ? gf_human_size(b->most_bytes).text : "",
			     gf_human_size(b->from_bytes).text, gf_human_size(b->to_bytes).text);
	if (b->halved)
		gf_text_addf(out, "what each half of a message takes is assumed: half of the "
				  "all-reduce (gf-profile --collectives measures it)\n");
	if (b->derived)
		gf_text_addf(out, "what was not measured goes by the topology's rates: such times "
				  "are not compared with measured ones\n");
}

/* By what share the network's times are longer at their high ends, at most. */
static double doubt_of_network(const struct gf_plan *p)
{
	struct gf_fabric now = gf_plan_fabric(p), high = now;
	struct gf_network *network = gf_network_copy(p->network);
	GF_RELEASED(gf_traffic_release) struct gf_traffic t = {0}, then = {0};
	double most = 1;

	scale_network(network, now.ranks, true);
	high.network = network;
	if (gf_traffic_init(&t, p, &now, NULL) == 0 && gf_traffic_init(&then, p, &high, NULL) == 0)
		for (size_t i = 0; i < t.nmessages; i++)
			most = fmax(most, message_s(&then.messages[i]) / message_s(&t.messages[i]));
	gf_network_free(network);
	return most - 1;
}

void gf_uncertainty_text(const struct gf_plan *p, struct gf_text *out)
{
	const struct gf_prediction *pr = p->predicted;
	struct gf_beyond beyond = {0};
	double network, compute;

	if (!pr)
		return;
	gf_beyond_add_plan(&beyond, p);
	if (!(pr->iteration_high_s > 0))
		beyond = (struct gf_beyond){.halved = beyond.halved, .derived = beyond.derived};
	gf_beyond_text(&beyond, out);
	if (!(pr->iteration_high_s > 0))
		return;
	network = p->network ? doubt_of_network(p) : 0;
	compute = doubt_of_model(p->model);
	if (network < least_doubt && compute < least_doubt)
		return;
	gf_text_addf(out,
		     "\tpredicted %s, between %s and %s by the doubt of what was measured: %.3g %% "
		     "of the network's times, %.3g %% of compute's, and %.3g %% from run to run\n",
		     gf_human_time(pr->iteration_s).text, gf_human_time(pr->iteration_low_s).text,
		     gf_human_time(pr->iteration_high_s).text, 100 * network, 100 * compute,
		     100 * runs_differ(p, pr->compute_s, pr->iteration_s));
}
