/* SPDX-License-Identifier: BSD-3-Clause */
#include "planner/menu.h"

#include <errno.h>
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/heap.h"
#include "codec/codec.h"
#include "coll/algorithm.h"
#include "planner/factors.h"
#include "sim/price.h"

/* --- the envelope -------------------------------------------------------- */

static double cost_s(const struct gf_option *o, double bytes)
{
	return o->startup_s + o->per_byte_s * bytes;
}

bool gf_option_fits(const struct gf_option *o, double bytes)
{
	return o->from_bytes <= bytes && bytes < o->below_bytes;
}

/* The cheapest option from so many bytes on (ties: the first). */
static size_t cheapest_at(const struct gf_menu *m, double bytes)
{
	const struct gf_option *best = NULL;
	size_t i;

	for (i = 0; i < m->noptions; i++) {
		const struct gf_option *o = &m->options[i];

		if (!gf_option_fits(o, bytes))
			continue;
		if (!best || cost_s(o, bytes) < cost_s(best, bytes) ||
		    (cost_s(o, bytes) == cost_s(best, bytes) &&
		     o->per_byte_s < best->per_byte_s))
			best = o;
	}
	return (size_t)(best - m->options);
}

/* Where option `now`, cheapest from `bytes` on, meets the first one with a
 * smaller slope that holds there. */
static double next_crossing(const struct gf_menu *m, size_t now, double bytes,
			    size_t *next)
{
	const struct gf_option *o = &m->options[now];
	double at = INFINITY;
	size_t i;

	for (i = 0; i < m->noptions; i++) {
		const struct gf_option *c = &m->options[i];
		double x;

		if (c->per_byte_s >= o->per_byte_s || !gf_option_fits(c, bytes))
			continue;
		x = (c->startup_s - o->startup_s) /
		    (o->per_byte_s - c->per_byte_s);
		x = fmax(x, bytes); /* rounding */
		if (x < at ||
		    (x == at && c->per_byte_s < m->options[*next].per_byte_s)) {
			at = x;
			*next = i;
		}
	}
	return at;
}

/* The first size above `bytes` from which an option does or does not hold. */
static double next_border(const struct gf_menu *m, double bytes)
{
	double border = INFINITY;
	size_t i;

	for (i = 0; i < m->noptions; i++) {
		if (m->options[i].from_bytes > bytes)
			border = fmin(border, m->options[i].from_bytes);
		if (m->options[i].below_bytes > bytes)
			border = fmin(border, m->options[i].below_bytes);
	}
	return border;
}

static void append(struct gf_menu *m, size_t option, double from_bytes)
{
	size_t n = m->nenvelope;

	if (n > 0 && m->envelope[n - 1] == option)
		return;
	m->envelope = gf_xreallocarray(m->envelope, n + 1, sizeof(size_t));
	m->from_bytes = gf_xreallocarray(m->from_bytes, n + 1, sizeof(double));
	m->envelope[n] = option;
	m->from_bytes[n] = from_bytes;
	m->nenvelope++;
}

/* Between borders the same lines hold, and the least of them is concave. */
static void find_envelope(struct gf_menu *m)
{
	double at = 0, border;
	size_t now, next = 0;

	for (; isfinite(at); at = border) {
		border = next_border(m, at);
		now = cheapest_at(m, at);
		while (at < border) {
			append(m, now, at);
			at = next_crossing(m, now, at, &next);
			now = next;
		}
	}
}

/* --- the floor -----------------------------------------------------------
 *
 * Lines a + s * bytes with a, s >= 0 that lie below a way's cost everywhere.
 * The least of the ways' lines is concave and not negative, so no number of
 * messages costs less together than it gives for all their bytes at once; and
 * so is the larger of two such minima.
 */

/* The steepest such line with that startup below options first..last - 1. */
static double steepest(const struct gf_option *o, size_t n, double startup_s)
{
	double slope = o[n - 1].per_byte_s;
	size_t i;

	for (i = 0; i < n; i++) {
		double from = o[i].from_bytes, below = o[i].below_bytes;

		if (from > 0)
			slope = fmin(slope,
				     (cost_s(&o[i], from) - startup_s) / from);
		if (isfinite(below))
			slope = fmin(slope, (cost_s(&o[i], below) - startup_s) /
						    below);
	}
	return fmax(slope, 0);
}

/* The largest startup of such a line with the slope of the last option. */
static double highest(const struct gf_option *o, size_t n)
{
	double slope = o[n - 1].per_byte_s, startup = o[0].startup_s;
	size_t i;

	for (i = 0; i < n; i++) {
		double from = o[i].from_bytes, below = o[i].below_bytes;

		startup = fmin(startup, cost_s(&o[i], from) - slope * from);
		if (isfinite(below))
			startup = fmin(startup,
				       cost_s(&o[i], below) - slope * below);
	}
	return fmax(startup, 0);
}

static void find_floors(struct gf_menu *m)
{
	size_t first, last;

	for (first = 0; first < m->noptions; first++)
		if (m->options[first].from_bytes > 0)
			break;
	if (first == m->noptions)
		return;
	m->floors = gf_xcalloc(m->noptions, sizeof(*m->floors));
	for (first = 0; first < m->noptions; first = last) {
		const struct gf_option *o = &m->options[first];
		struct gf_menu_floor *f = &m->floors[m->nfloors++];

		for (last = first + 1;
		     isfinite(m->options[last - 1].below_bytes);)
			last++;
		f->low.startup_s = o->startup_s;
		f->low.per_byte_s = steepest(o, last - first, o->startup_s);
		f->high.startup_s = highest(o, last - first);
		f->high.per_byte_s =
			steepest(o, last - first, f->high.startup_s);
	}
}

double gf_menu_floor_s(const struct gf_menu *m, double bytes)
{
	double low = INFINITY, high = INFINITY;
	size_t i;

	if (!m->floors)
		return gf_menu_cost_s(m, bytes);
	for (i = 0; i < m->nfloors; i++) {
		const struct gf_menu_floor *f = &m->floors[i];

		low = fmin(low, f->low.startup_s + f->low.per_byte_s * bytes);
		high = fmin(high,
			    f->high.startup_s + f->high.per_byte_s * bytes);
	}
	return fmax(low, high);
}

/* --- the choices -----------------------------------------------------------
 */

#define CHOICES_MOST   12
#define LANES_COMPARED 16

/* The most and the least by which so many messages slow one of that option. */
static void gamma_range(const struct gf_option *o, int n, double *least,
			double *most)
{
	size_t entries = o->contention ? o->contention->nentries : 0, e;

	*least = *most = n;
	for (e = 0; e < entries; e++) {
		struct gf_contention one = {&o->contention->entries[e], 1};
		double gamma = gf_contention_gamma(&one, 0, n);

		*least = e == 0 ? gamma : fmin(*least, gamma);
		*most = e == 0 ? gamma : fmax(*most, gamma);
	}
}

static bool shares_no_worse(const struct gf_option *a,
			    const struct gf_option *b)
{
	double least, most, ignored;
	int n;

	if (a->contention == b->contention && a->wire_ratio == b->wire_ratio)
		return true;
	for (n = 2; n <= LANES_COMPARED; n++) {
		gamma_range(a, n, &ignored, &most);
		gamma_range(b, n, &least, &ignored);
		if (most > least)
			return false;
	}
	return true;
}

/* b is nowhere better, alone or beside others; of equals the first stays. */
static bool replaces(const struct gf_menu *m, size_t a, size_t b)
{
	const struct gf_option *x = &m->options[a], *y = &m->options[b];

	if (x->startup_s > y->startup_s || x->per_byte_s > y->per_byte_s ||
	    x->from_bytes > y->from_bytes || x->below_bytes < y->below_bytes ||
	    !shares_no_worse(x, y))
		return false;
	return a < b || x->from_bytes < y->from_bytes ||
	       x->below_bytes > y->below_bytes || x->startup_s < y->startup_s ||
	       x->per_byte_s < y->per_byte_s || !shares_no_worse(y, x);
}

static void find_choices(struct gf_menu *m)
{
	size_t i, k;

	m->choices = gf_xcalloc(m->noptions, sizeof(*m->choices));
	for (i = 0; i < m->noptions; i++) {
		for (k = 0; k < m->noptions; k++)
			if (k != i && replaces(m, k, i))
				break;
		if (k == m->noptions)
			m->choices[m->nchoices++] = i;
	}
	if (m->nchoices <= CHOICES_MOST)
		return;
	for (m->nchoices = i = 0; i < m->nenvelope; i++) {
		for (k = 0; k < m->nchoices; k++)
			if (m->choices[k] == m->envelope[i])
				break;
		if (k == m->nchoices)
			m->choices[m->nchoices++] = m->envelope[i];
	}
}

/* --- the options --------------------------------------------------------- */

struct filling {
	struct gf_menu *menu;
	size_t capacity;
	const struct gf_problem *in;
	struct gf_fabric fabric;
	struct gf_error why; /* the last algorithm that has no price */
};

static struct gf_stage *copy_stages(const struct gf_stage *stages, size_t n)
{
	return n ? gf_xmemdup(stages, n * sizeof(*stages)) : NULL;
}

/* One line of a way. */
static void add_option(struct filling *f, const struct gf_priced *priced,
		       const struct gf_price *price, const char *codec)
{
	double ratio = gf_codec_ratio(gf_codec_find(codec));
	struct gf_option *o = gf_array_push(&f->menu->options,
					    &f->menu->noptions, &f->capacity);

	*o = (struct gf_option){
		.algorithm = priced->algorithm,
		.codec = codec,
		.stages = copy_stages(priced->stages, priced->nstages),
		.nstages = priced->nstages,
		.startup_s = price->startup_s,
		.per_byte_s = price->per_byte_s * ratio,
		.from_bytes = price->from_bytes / ratio,
		.below_bytes = price->below_bytes / ratio,
		.wire_ratio = ratio,
		.contention = price->contention,
		.origin = price->origin,
	};
}

/* One algorithm, one decomposition, every codec. */
static void add(struct filling *f, const char *algorithm,
		const struct gf_stage *stages, size_t nstages)
{
	static const char *const plain[] = {"f32", NULL};
	const char *const *codecs = f->in->codecs ? f->in->codecs : plain;
	const struct gf_algorithm *a = gf_algorithm_find(algorithm);
	struct gf_priced priced = {algorithm, stages, nstages, 0};
	struct gf_price price;
	size_t i;

	if (f->in->halves && (!a || !a->owned)) {
		gf_error_set(&f->why, -ENOTSUP,
			     "%s does not come in two halves", algorithm);
		return;
	}
	for (i = 0; codecs[i]; i++) {
		/* a library adds numbers, not encodings */
		if (strcmp(algorithm, "library") == 0 &&
		    !gf_codec_find(codecs[i])->adds)
			continue;
		for (priced.bytes = 0; isfinite(priced.bytes);
		     priced.bytes = price.below_bytes) {
			if (gf_price_message(&f->fabric, &priced, &price,
					     &f->why) < 0)
				return;
			add_option(f, &priced, &price, codecs[i]);
		}
	}
}

static void add_decomposition(void *ctx, const struct gf_stage *stages,
			      size_t nstages)
{
	add(ctx, "blueconnect", stages, nstages);
}

static void add_two_levels(void *ctx, const struct gf_stage *stages,
			   size_t nstages)
{
	add(ctx, "hierarchical", stages, nstages);
}

static bool measured(const struct gf_network *n, const char *algorithm)
{
	size_t i;

	for (i = 0; n && i < n->nallreduce; i++)
		if (strcmp(n->allreduce[i].algorithm, algorithm) == 0)
			return true;
	return false;
}

static void add_derived(struct filling *f, const struct gf_algorithm *a)
{
	const struct gf_problem *in = f->in;
	struct gf_factor_rules rules = {
		.ranks = f->fabric.ranks,
		.levels = in->levels,
		.nlevels = in->nlevels,
		.most = 4,
		.fixed = in->factors,
		.nfixed = in->nfactors,
	};

	if (strcmp(a->name, "blueconnect") == 0) {
		gf_factors_each(&rules, add_decomposition, f);
	} else if (strcmp(a->name, "hierarchical") == 0) {
		rules.fewest = rules.most = 2;
		rules.rings_only = true;
		gf_factors_each(&rules, add_two_levels, f);
	} else {
		add(f, a->name, NULL, 0);
	}
}

/* To be run as it was measured, unless that was on other ranks or the user has
 * factors of his own. */
static void add_measured(struct filling *f, const struct gf_allreduce_cost *c)
{
	bool same = f->in->network->ranks == f->fabric.ranks;

	if (f->in->nfactors)
		add_derived(f, gf_algorithm_find(c->algorithm));
	else
		add(f, c->algorithm, c->stages, same ? c->nstages : 0);
}

/* A bystander: an algorithm that is used when asked for. */
static bool on_request(const char *algorithm)
{
	return strcmp(algorithm, "library") == 0 ||
	       strcmp(algorithm, "ps") == 0;
}

static void add_all(struct filling *f)
{
	const struct gf_problem *in = f->in;
	const struct gf_network *n = in->network;
	/* what was measured is not mixed with what a data sheet says */
	bool derive = !n || n->nallreduce == 0 ||
		      (in->algorithm && !measured(n, in->algorithm));
	size_t i;

	for (i = 0; n && i < n->nallreduce; i++)
		if (!in->algorithm ||
		    strcmp(in->algorithm, n->allreduce[i].algorithm) == 0)
			add_measured(f, &n->allreduce[i]);
	for (i = 0; derive && gf_algorithms[i]; i++) {
		const struct gf_algorithm *a = gf_algorithms[i];

		if (measured(n, a->name) ||
		    (in->algorithm ? strcmp(in->algorithm, a->name) != 0
				   : on_request(a->name)))
			continue;
		add_derived(f, a);
	}
}

/* Several messages at once are only replayed of the envelope: replays take
 * time, and what another option beats alone keeps gamma_n = n here. */
static void add_contention(struct filling *f)
{
	struct gf_menu *m = f->menu;
	struct gf_price price;
	size_t k;

	m->derived.lanes = f->in->lanes ? f->in->lanes : 2;
	f->fabric.derived = &m->derived;
	for (k = 0; m->derived.lanes > 1 && k < m->nenvelope; k++) {
		struct gf_option *o = &m->options[m->envelope[k]];

		if (o->origin == GF_PRICE_DERIVED &&
		    gf_price_message(&f->fabric,
				     &(struct gf_priced){o->algorithm,
							 o->stages, o->nstages,
							 m->from_bytes[k]},
				     &price, NULL) == 0)
			o->contention = price.contention;
	}
}

static int check_codecs(const struct gf_problem *in, struct gf_error *err)
{
	size_t i, k;

	for (i = 0; in->codecs && in->codecs[i]; i++) {
		const struct gf_codec *codec = gf_codec_find(in->codecs[i]);

		if (!codec)
			return gf_error_set(err, -EINVAL,
					    "--codecs: want f32, f16, bf16, "
					    "trunc16 or q8, got %s",
					    in->codecs[i]);
		if (gf_codec_ratio(codec) == 1 || !in->model)
			continue;
		for (k = 0; k < in->model->ntensors; k++)
			if (in->model->tensors[k].dtype != GF_F32)
				return gf_error_set(
					err, -EINVAL,
					"--codecs: want f32 gradients for %s, "
					"got %s in tensor %s",
					in->codecs[i],
					gf_dtype_names[in->model->tensors[k]
							       .dtype],
					in->model->tensors[k].name);
	}
	return 0;
}

struct gf_fabric gf_problem_fabric(const struct gf_problem *in)
{
	return (struct gf_fabric){
		.network = in->network,
		.levels = in->levels,
		.nlevels = in->levels ? in->nlevels : 0,
		.ranks = in->ranks + in->servers,
		.servers = in->servers,
	};
}

int gf_menu_init(struct gf_menu *m, const struct gf_problem *in,
		 struct gf_error *err)
{
	struct filling f = {
		.menu = m,
		.in = in,
		.fabric = gf_problem_fabric(in),
	};
	int rc = check_codecs(in, err);

	memset(m, 0, sizeof(*m));
	if (rc < 0)
		return rc;
	if (in->algorithm && !gf_algorithm_find(in->algorithm) &&
	    !measured(in->network, in->algorithm))
		return gf_error_set(err, -EINVAL,
				    "--algorithm: want the name of one, got %s",
				    in->algorithm);
	add_all(&f);
	if (m->noptions == 0) {
		gf_menu_release(m);
		return gf_error_set(err, -ENOTSUP, "%s",
				    f.why.text[0]
					    ? f.why.text
					    : "want a measured network or a "
					      "topology, found neither");
	}
	find_envelope(m);
	find_floors(m);
	add_contention(&f);
	find_choices(m);
	return 0;
}

void gf_menu_release(struct gf_menu *m)
{
	size_t i;

	for (i = 0; i < m->noptions; i++)
		free(m->options[i].stages);
	free(m->options);
	free(m->envelope);
	free(m->choices);
	free(m->floors);
	gf_derived_release(&m->derived);
	free(m->from_bytes);
	memset(m, 0, sizeof(*m));
}

size_t gf_menu_pick(const struct gf_menu *m, double bytes)
{
	size_t k = m->nenvelope - 1;

	while (k > 0 && m->from_bytes[k] > bytes)
		k--;
	return m->envelope[k];
}

double gf_menu_cost_s(const struct gf_menu *m, double bytes)
{
	return cost_s(&m->options[gf_menu_pick(m, bytes)], bytes);
}
