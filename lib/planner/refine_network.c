/* SPDX-License-Identifier: BSD-3-Clause */
/* What messages cost, by a run's trace: lines of algorithms and of the selection. */
#include <math.h>
#include <string.h>

#include "base/heap.h"
#include "cli/human.h"
#include "cost/fit.h"
#include "cost/stat.h"
#include "planner/refine.h"

#define FIT_SIZES 3

/* --- durations ----------------------------------------------------------- */

/* How long the message would have taken without backward beside it. */
static double alone_s(const struct gf_refining *r, size_t i)
{
	const struct gf_predicted_message *m = &r->measured->messages[i];
	const struct gf_sim_message *sent = &r->traffic.messages[i];
	const struct gf_beside_backward *mutual = sent->mutual;
	double takes = m->end_s - m->start_s, slow, startup;
	double beside = fmax(0, fmin(m->end_s, r->measured->backward_end_s) - m->start_s);
	const double alone = sent->startup_s - sent->gather_startup_s;

	if (!mutual || beside <= 0)
		return takes;
	slow = fmax(1, mutual->message_slowdown);
	startup = gf_sim_startup_beside_s(mutual, alone);
	if (beside < startup) /* backward ends within it */
		return takes - beside * (1 - alone / startup);
	return takes - mutual->startup_extra_s -
	       (beside - mutual->startup_extra_s) * (1 - 1 / slow);
}

/* No other message was under way. */
static bool was_alone(const struct gf_refining *r, size_t index)
{
	const struct gf_predicted_message *m = r->measured->messages;

	for (size_t i = 0; i < r->plan->nmessages; i++)
		if (i != index && m[i].start_s < m[index].end_s && m[i].end_s > m[index].start_s)
			return false;
	return true;
}

/* Sizes and times of some messages. */
struct points {
	double *bytes, *times;
	size_t n, sizes; /* different ones */
};

static void points_init(struct points *p, size_t room)
{
	*p = (struct points){gf_xcalloc(room + 1, sizeof(*p->bytes)),
			     gf_xcalloc(room + 1, sizeof(*p->times)), 0, 0};
}

static void points_release(struct points *p)
{
	free(p->bytes);
	free(p->times);
}

static void points_add(struct points *p, double bytes, double time_s)
{
	size_t k = 0;

	while (k < p->n && p->bytes[k] != bytes)
		k++;
	p->sizes += k == p->n;
	p->bytes[p->n] = bytes;
	p->times[p->n++] = time_s;
}

/* false: too few sizes, or the line makes no sense. */
static bool points_fit(const struct points *p, struct gf_linear_fit *fit)
{
	return p->sizes >= FIT_SIZES && gf_fit_linear(p->bytes, p->times, p->n, fit, NULL) == 0 &&
	       !fit->clamped_startup && !fit->clamped_slope;
}

/* --- network ------------------------------------------------------------- */

/* The entry may price the message, or its halves. */
static bool goes_by(const struct gf_message *m, const struct gf_allreduce_cost *c)
{
	return (c->collective == GF_COLL_WHOLE || m->half == GF_HALF_SPLIT) &&
	       strcmp(m->algorithm, c->algorithm) == 0 &&
	       strcmp(m->codec, gf_allreduce_codec(c)) == 0 &&
	       (c->nstages == 0 || gf_stages_same(m->stages, m->nstages, c->stages, c->nstages));
}

static void drop_lines(struct gf_allreduce_cost *c)
{
	gf_list_free(&gf_cost_line_record, c->larger, c->nlarger);
	c->larger = NULL;
	c->nlarger = 0;
}

/* Startup and slope of messages that ran by themselves. A trace has only one half of a split
 * message. */
static bool fit_alone(const struct gf_refining *r, struct gf_allreduce_cost *c)
{
	struct gf_linear_fit fit;
	GF_RELEASED(points_release) struct points p = {0};

	points_init(&p, r->plan->nmessages);
	for (size_t i = 0; i < r->plan->nmessages; i++) {
		const struct gf_message *m = &r->plan->messages[i];

		if (goes_by(m, c) && m->half == GF_HALF_ALL && was_alone(r, i) && alone_s(r, i) > 0)
			points_add(&p, r->traffic.messages[i].bytes, alone_s(r, i));
	}
	if (!points_fit(&p, &fit))
		return false;
	drop_lines(c);
	c->startup_s = fit.startup_s;
	c->per_byte_s = fit.per_byte_s;
	return true;
}

/* The median of measured over predicted duration. */
static double ratio(const struct gf_refining *r, const struct gf_predicted_message *predicted,
		    const struct gf_allreduce_cost *c)
{
	size_t count = r->plan->nmessages, n = 0, i;
	GF_FREED double *ratios = gf_xcalloc(count + 1, sizeof(*ratios));

	for (i = 0; i < count; i++) {
		const struct gf_predicted_message *m = &r->measured->messages[i];
		double s = predicted[i].end_s - predicted[i].start_s;

		if (goes_by(&r->plan->messages[i], c) && s > 0)
			ratios[n++] = (m->end_s - m->start_s) / s;
	}
	return n ? gf_stat_median(ratios, n) : 1;
}

/* The lines by which that message, or the half of it that the entry is of, is priced. */
static int take_lines(const struct gf_fabric *f, const struct gf_message *m,
		      struct gf_allreduce_cost *c, struct gf_error *err)
{
	struct gf_priced priced = {m->algorithm, m->stages, m->nstages, 0, m->codec};
	struct gf_price price;
	int rc;

	priced.half = c->collective;
	rc = gf_price_message(f, &priced, &price, err);
	if (rc < 0)
		return rc;
	drop_lines(c);
	c->startup_s = price.line.startup_s;
	c->per_byte_s = price.line.per_byte_s;
	while (price.line.below_bytes < GF_MAX_SIZE) {
		priced.bytes = ceil(price.line.below_bytes);
		rc = gf_price_message(f, &priced, &price, err);
		if (rc < 0)
			return rc;
		gf_cost_line_add(&c->larger, &c->nlarger,
				 (struct gf_cost_line){(size_t)priced.bytes, price.line.startup_s,
						       price.line.per_byte_s, NULL});
	}
	return 0;
}

static void copy_beside(struct gf_allreduce_cost *to, const struct gf_beside_backward *from)
{
	if (!from)
		return;
	to->beside = *from;
	to->beside.extra = NULL;
	to->beside.compute_slowdown = gf_xmemdup(
		from->compute_slowdown, from->ncompute_slowdown * sizeof(*from->compute_slowdown));
}

/* The entry for that collective of a message, new if there is none. */
static struct gf_allreduce_cost *entry_for(struct gf_network *n, const struct gf_message *m,
					   enum gf_coll_half half,
					   const struct gf_beside_backward *by)
{
	struct gf_allreduce_cost *c;
	size_t k;

	for (k = 0; k < n->nallreduce; k++)
		if (n->allreduce[k].collective == half && goes_by(m, &n->allreduce[k]))
			return &n->allreduce[k];
	n->allreduce = gf_xreallocarray(n->allreduce, k + 1, sizeof(*n->allreduce));
	c = &n->allreduce[n->nallreduce++];
	memset(c, 0, sizeof(*c));
	c->algorithm = gf_xstrdup(m->algorithm);
	c->collective = half;
	if (strcmp(m->codec, gf_allreduce_codec(c)) != 0)
		c->codec = gf_xstrdup(m->codec);
	copy_beside(c, by);
	return c;
}

/* Entries for what prices the message: an all-reduce, or both halves. */
static int take_entries(const struct gf_refining *r, size_t i, struct gf_network *n,
			struct gf_error *err)
{
	const struct gf_message *m = &r->plan->messages[i];
	struct gf_priced priced = {m->algorithm, m->stages, m->nstages, 0, m->codec};
	enum gf_coll_half half;
	struct gf_price price;
	int rc;

	priced.split = m->half == GF_HALF_SPLIT;
	rc = gf_price_message(r->fabric, &priced, &price, err);
	for (half = GF_COLL_WHOLE; half <= GF_COLL_ALL_GATHER && rc == 0; half++)
		if ((half == GF_COLL_WHOLE) == (!priced.split || price.halved))
			rc = take_lines(r->fabric, m,
					entry_for(n, m, half, r->traffic.messages[i].mutual), err);
	return rc;
}

static bool selects(const struct gf_plan *p)
{
	return !gf_selection_has(&p->selection, GF_SELECT_LOSSLESS);
}

/* An entry for every algorithm and codec that the plan uses: those measured before, and those whose
 * closed forms the plan was made of. Messages of a selection show what the selection takes, and no
 * all-reduce: NULL if none was measured before. */
static int used_network(const struct gf_refining *r, struct gf_network **out, struct gf_error *err)
{
	const struct gf_plan *p = r->plan;
	struct gf_network *n;
	int rc = 0;

	*out = p->network ? gf_network_copy(p->network) : NULL;
	if (selects(p))
		return 0;
	if (!*out)
		*out = gf_xcalloc(1, sizeof(**out));
	n = *out;
	n->ranks = p->ranks + p->servers;
	for (size_t i = 0; i < p->nmessages && rc == 0; i++)
		rc = take_entries(r, i, n, err);
	if (rc < 0) {
		gf_network_free(n);
		*out = NULL;
	}
	return rc;
}

static void scale_lines(struct gf_allreduce_cost *c, double by)
{
	c->startup_s *= by;
	c->per_byte_s *= by;
	for (size_t i = 0; i < c->nlarger; i++) {
		c->larger[i].startup_s *= by;
		c->larger[i].per_byte_s *= by;
	}
}

static bool used(const struct gf_refining *r, const struct gf_allreduce_cost *c)
{
	for (size_t i = 0; i < r->plan->nmessages; i++)
		if (goes_by(&r->plan->messages[i], c))
			return true;
	return false;
}

/* Algorithms that the plan does not use, and that had the entry's very costs, take the same steps
 * (gf-profile measures these once) and have its new ones. */
static void take_along(const struct gf_refining *r, struct gf_network *n,
		       const struct gf_allreduce_cost *c, double startup, double per_byte)
{
	struct gf_allreduce_cost *twin;

	for (twin = n->allreduce; twin < n->allreduce + n->nallreduce; twin++) {
		if (twin->startup_s != startup || twin->per_byte_s != per_byte ||
		    strcmp(gf_allreduce_codec(twin), gf_allreduce_codec(c)) != 0 || used(r, twin))
			continue;
		drop_lines(twin);
		twin->startup_s = c->startup_s;
		twin->per_byte_s = c->per_byte_s;
		twin->larger = gf_list_copy(&gf_cost_line_record, c->larger, c->nlarger);
		twin->nlarger = c->nlarger;
	}
}

static void refine_entry(const struct gf_refining *r, const struct gf_predicted_message *predicted,
			 struct gf_network *n, struct gf_allreduce_cost *c, struct gf_text *notes)
{
	double startup = c->startup_s, per_byte = c->per_byte_s;

	if (!used(r, c))
		return;
	if (!fit_alone(r, c))
		scale_lines(c, ratio(r, predicted, c));
	take_along(r, n, c, startup, per_byte);
	gf_text_addf(notes, "%s%s%s: startup %s -> %s, per byte %s -> %s\n", c->algorithm,
		     gf_allreduce_plain(c) ? "" : " with ", gf_allreduce_plain(c) ? "" : c->codec,
		     gf_human_time(startup).text, gf_human_time(c->startup_s).text,
		     gf_human_time(per_byte).text, gf_human_time(c->per_byte_s).text);
}

/* The old fits' points say nothing about the new lines. */
static void release_fits(struct gf_network *n)
{
	for (size_t i = 0; i < n->nallreduce; i++)
		gf_record_release(&gf_fit_record, &n->allreduce[i].fit);
}

static int refine_network(const struct gf_refining *r, struct gf_network **out,
			  struct gf_text *notes, struct gf_error *err)
{
	struct gf_plan now = *r->plan; /* borrows all but the model */
	struct gf_sim_result predicted = {
		.messages = gf_xcalloc(now.nmessages + 1, sizeof(*predicted.messages))};
	int rc;

	now.model = (struct gf_model_profile *)(uintptr_t)r->model;
	rc = gf_predict_plan(&now, r->fabric, &predicted, err);
	rc = rc ?: used_network(r, out, err);
	if (rc == 0 && !selects(r->plan)) {
		release_fits(*out);
		for (size_t i = 0; i < (*out)->nallreduce; i++)
			refine_entry(r, predicted.messages, *out, &(*out)->allreduce[i], notes);
	}
	free(predicted.messages);
	return rc;
}

/* --- selection ----------------------------------------------------------- */

static double memory_bytes(const struct gf_refining *r, size_t i)
{
	return (double)gf_plan_message_bytes(r->plan, i);
}

/* What the message took beyond its transfers. */
static double beyond_s(const struct gf_refining *r, size_t i)
{
	const struct gf_sim_message *m = &r->traffic.messages[i];
	double selecting_s = gf_selecting_s(r->fabric, r->plan, m->first, m->last);

	return alone_s(r, i) - (m->startup_s - selecting_s + m->per_byte_s * m->bytes);
}

/* By what the known cost is to be multiplied; per byte where none is known. */
static double share_of_known(const struct gf_refining *r, const struct gf_selection_cost *known)
{
	size_t count = r->plan->nmessages, i;
	GF_FREED double *shares = gf_xcalloc(count + 1, sizeof(*shares));

	for (i = 0; i < count; i++) {
		double by = memory_bytes(r, i);

		if (known->alpha_s > 0 || known->beta_s_per_byte > 0)
			by = known->alpha_s + known->beta_s_per_byte * by;
		shares[i] = by > 0 ? fmax(0, beyond_s(r, i)) / by : 0;
	}
	return count ? gf_stat_median(shares, count) : 0;
}

static void fit_selection(const struct gf_refining *r, struct gf_selection_cost *c)
{
	struct gf_linear_fit fit;
	GF_RELEASED(points_release) struct points p = {0};
	double by;

	points_init(&p, r->plan->nmessages);
	for (size_t i = 0; i < r->plan->nmessages; i++)
		if (was_alone(r, i) && beyond_s(r, i) > 0)
			points_add(&p, memory_bytes(r, i), beyond_s(r, i));
	if (points_fit(&p, &fit)) {
		c->alpha_s = fit.startup_s;
		c->beta_s_per_byte = fit.per_byte_s;
	} else {
		by = share_of_known(r, c);
		if (!(c->alpha_s > 0) && !(c->beta_s_per_byte > 0))
			c->beta_s_per_byte = 1;
		c->alpha_s *= by;
		c->beta_s_per_byte *= by;
	}
}

/* The cost of the plan's selection, in place of that in `p`. */
static void refine_selection(const struct gf_refining *r, struct gf_processing *p,
			     struct gf_text *notes)
{
	const struct gf_selection *s = &r->plan->selection;
	struct gf_selection_cost *c;
	double alpha_s, beta_s;

	if (!selects(r->plan) || gf_selection_has(s, GF_SELECT_RECUTS))
		return;
	c = gf_processing_selection_of(p, gf_selection_name(s), r->fabric->device);
	alpha_s = c->alpha_s;
	beta_s = c->beta_s_per_byte;
	fit_selection(r, c);
	gf_text_addf(notes, "%s: %s -> %s a message, %s -> %s a byte\n", c->of.name,
		     gf_human_time(alpha_s).text, gf_human_time(c->alpha_s).text,
		     gf_human_time(beta_s).text, gf_human_time(c->beta_s_per_byte).text);
}

int gf_refine_costs(const struct gf_refining *r, struct gf_network **network,
		    struct gf_processing *p, struct gf_text *notes, struct gf_error *err)
{
	int rc = refine_network(r, network, notes, err);

	if (rc < 0)
		return rc;
	gf_processing_add(p, &r->plan->processing);
	refine_selection(r, p, notes);
	return 0;
}
