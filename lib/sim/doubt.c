/* SPDX-License-Identifier: BSD-3-Clause */
#include "sim/doubt.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/heap.h"
#include "cli/human.h"
#include "cost/stat.h"
#include "sim/predict.h"

/* Of its repeats, against their median. */
static double scatter(const struct gf_fit *fit)
{
	double *shares, median;
	size_t i, n = 0;

	if (!fit->npoints || !fit->spread_s)
		return 0;
	shares = gf_xcalloc(fit->npoints, sizeof(*shares));
	for (i = 0; i < fit->npoints; i++)
		if (fit->time_s[i] > 0)
			shares[n++] = fit->spread_s[i] / (2 * fit->time_s[i]);
	median = n ? gf_stat_median(shares, n) : 0;
	free(shares);
	return median;
}

static double doubt_of_fit(const struct gf_fit *fit)
{
	if (!fit->npoints)
		return 0;
	return fmin(hypot(fit->residual_rms, scatter(fit)), GF_DOUBT_MOST);
}

static double doubt_of_model(const struct gf_model_profile *m)
{
	double all_s = m->forward_s + m->backward_s + m->update_s;

	return all_s > 0 ? fmin(m->spread_s / (2 * all_s), GF_DOUBT_MOST) : 0;
}

/* Does one of the plan's messages go by it? */
static bool serves(const struct gf_plan *p, const struct gf_allreduce_cost *c)
{
	size_t i;

	for (i = 0; i < p->nmessages; i++)
		if (strcmp(p->messages[i].algorithm, c->algorithm) == 0 &&
		    (c->nstages == 0 ||
		     gf_stages_same(p->messages[i].stages,
				    p->messages[i].nstages, c->stages,
				    c->nstages)))
			return true;
	return false;
}

struct gf_doubt gf_doubt_of(const struct gf_plan *p)
{
	const struct gf_network *net = p->network;
	struct gf_doubt d = {.compute = doubt_of_model(p->model)};
	bool measured = false;
	size_t i;

	for (i = 0; net && i < net->nallreduce; i++) {
		if (!serves(p, &net->allreduce[i]))
			continue;
		measured = true;
		d.network =
			fmax(d.network, doubt_of_fit(&net->allreduce[i].fit));
	}
	/* closed forms stand on the levels */
	for (i = 0; net && !measured && i < net->nlevels; i++)
		d.network = fmax(d.network, doubt_of_fit(&net->levels[i].fit));
	return d;
}

double gf_doubt_least(const struct gf_network *net)
{
	double least = INFINITY;
	size_t i;

	for (i = 0; net && i < net->nallreduce; i++)
		least = fmin(least, doubt_of_fit(&net->allreduce[i].fit));
	for (i = 0; net && net->nallreduce == 0 && i < net->nlevels; i++)
		least = fmin(least, doubt_of_fit(&net->levels[i].fit));
	return isfinite(least) ? least : 0;
}

bool gf_doubt_recorded(const struct gf_model_profile *m,
		       const struct gf_network *net)
{
	size_t i;

	for (i = 0; net && i < net->nallreduce; i++)
		if (doubt_of_fit(&net->allreduce[i].fit) > 0)
			return true;
	for (i = 0; net && i < net->nlevels; i++)
		if (doubt_of_fit(&net->levels[i].fit) > 0)
			return true;
	return doubt_of_model(m) > 0;
}

/* Less is not worth a word. */
static const double least_doubt = 1e-3;

/* --- costs at one end ------------------------------------------------------
 */

static void scale_gamma(struct gf_contention *c, double factor)
{
	size_t i, k;

	for (i = 0; i < c->nentries; i++)
		for (k = 0; k < c->entries[i].ngamma; k++)
			c->entries[i].gamma[k] =
				1 + factor * (c->entries[i].gamma[k] - 1);
}

static void scale_lines(struct gf_cost_line *lines, size_t n, double factor)
{
	size_t i;

	for (i = 0; i < n; i++) {
		lines[i].startup_s *= factor;
		lines[i].per_byte_s *= factor;
	}
}

/* 1 + d, or one by it. */
static double factor_of(double doubt, bool high)
{
	return high ? 1 + doubt : 1 / (1 + doubt);
}

static void scale_network(struct gf_network *net, bool high)
{
	size_t i;

	for (i = 0; net && i < net->nallreduce; i++) {
		struct gf_allreduce_cost *c = &net->allreduce[i];
		double factor = factor_of(doubt_of_fit(&c->fit), high);

		c->startup_s *= factor;
		c->per_byte_s *= factor;
		scale_lines(c->larger, c->nlarger, factor);
		scale_gamma(&c->contention, factor);
	}
	for (i = 0; net && i < net->nlevels; i++) {
		struct gf_level_cost *c = &net->levels[i];
		double factor = factor_of(doubt_of_fit(&c->fit), high);

		c->alpha_s *= factor;
		c->beta_s_per_byte *= factor;
		c->reduce_s_per_byte *= factor;
		scale_lines(c->larger, c->nlarger, factor);
		scale_gamma(&c->contention, factor);
	}
}

static void scale_model(struct gf_model_profile *m, bool high)
{
	double factor = factor_of(doubt_of_model(m), high);
	size_t i;

	m->forward_s *= factor;
	m->backward_s *= factor;
	m->update_s *= factor;
	for (i = 0; i < m->ntensors; i++) {
		m->tensors[i].ready_s *= factor;
		m->tensors[i].need_s *= factor;
	}
}

void gf_doubt_move(struct gf_model_profile *m, struct gf_network *net,
		   bool high)
{
	scale_network(net, high);
	scale_model(m, high);
}

static int predict_end(const struct gf_plan *p, bool high, double *iteration_s,
		       struct gf_error *err)
{
	struct gf_plan end = *p;
	struct gf_sim_result result = {0};
	struct gf_fabric fabric;
	int rc;

	end.network = gf_network_copy(p->network);
	end.model = gf_model_profile_copy(p->model);
	gf_doubt_move(end.model, end.network, high);
	fabric = gf_plan_fabric(&end);
	rc = gf_predict_plan(&end, &fabric, &result, err);
	if (rc == 0)
		*iteration_s = result.iteration_s;
	gf_network_free(end.network);
	gf_model_profile_free(end.model);
	return rc;
}

/* The share r by which runs differ. */
static double runs_differ(const struct gf_plan *p, double compute_s,
			  double iteration_s)
{
	double share = iteration_s > 0 ? fmin(compute_s / iteration_s, 1) : 1;
	double network = p->network ? p->network->drift : 0;

	return fmax(GF_DOUBT_RUNS,
		    share * p->model->drift + (1 - share) * network);
}

void gf_doubt_widen(const struct gf_plan *p, double compute_s,
		    double iteration_s, double *low_s, double *high_s)
{
	double runs = runs_differ(p, compute_s, iteration_s);

	*low_s = fmin(*low_s, iteration_s) / (1 + runs);
	*high_s = fmax(*high_s, iteration_s) * (1 + runs);
}

int gf_doubt_predict(struct gf_plan *p, struct gf_error *err)
{
	struct gf_prediction *pr = p->predicted;
	struct gf_doubt d = gf_doubt_of(p);
	double low, high;
	int rc;

	pr->iteration_low_s = pr->iteration_high_s = 0;
	if (d.network == 0 && d.compute == 0)
		return 0;
	rc = predict_end(p, false, &low, err);
	if (rc == 0)
		rc = predict_end(p, true, &high, err);
	if (rc)
		return rc;
	gf_doubt_widen(p, pr->compute_s, pr->iteration_s, &low, &high);
	pr->iteration_low_s = low;
	pr->iteration_high_s = high;
	return 0;
}

void gf_doubt_text(const struct gf_plan *p, struct gf_text *out)
{
	const struct gf_prediction *pr = p->predicted;
	struct gf_human h[3];
	struct gf_doubt d;

	if (!pr || !(pr->iteration_high_s > 0))
		return;
	d = gf_doubt_of(p);
	if (d.network < least_doubt && d.compute < least_doubt)
		return;
	gf_text_addf(
		out,
		"\tpredicted %s, between %s and %s by the doubt of what was "
		"measured: %.3g %% of the network's times, %.3g %% of "
		"compute's, and %.3g %% from run to run\n",
		gf_human_time(pr->iteration_s, &h[0]),
		gf_human_time(pr->iteration_low_s, &h[1]),
		gf_human_time(pr->iteration_high_s, &h[2]), 100 * d.network,
		100 * d.compute,
		100 * runs_differ(p, pr->compute_s, pr->iteration_s));
}
