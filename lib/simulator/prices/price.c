/* SPDX-License-Identifier: BSD-3-Clause */
#include "simulator/prices/price.h"

#include <assert.h>
#include <math.h>
#include <stdbool.h>
#include <string.h>

#include "base/heap.h"
#include "collectives/algorithm.h"
#include "collectives/codecs/codec.h"
#include "collectives/way.h"

#define ELEM_BYTES 4
#define PLAIN      gf_codecs[GF_CODEC_F32].name
#define PROCESSOR  "cpu"

static struct gf_link_cost link_of(const struct gf_level_cost *c)
{
	return (struct gf_link_cost){c->alpha_s, c->beta_s_per_byte, c->reduce_s_per_byte,
				     c->larger, c->nlarger};
}

static struct gf_link_cost fabric_link(const struct gf_fabric *f, size_t level)
{
	const struct gf_level *l = &f->levels[level];
	const struct gf_level_cost *c = gf_network_level(f->network, l->name);

	return c ? link_of(c)
		 : (struct gf_link_cost){l->latency_s, 1 / l->bandwidth_bytes_per_s, 0};
}

void gf_fabric_net_init(struct gf_fabric_net *net, const struct gf_fabric *f)
{
	size_t n = f->nlevels, i;

	net->links = gf_xcalloc(n + 1, sizeof(*net->links));
	net->sizes = gf_xcalloc(n + 1, sizeof(*net->sizes));
	for (i = 0; i < n; i++) {
		net->sizes[i] = (int)f->levels[i].size;
		net->links[i] = fabric_link(f, i);
	}
	if (n == 0 && f->network && f->network->nlevels == 1) {
		/* one level needs no size */
		net->links[0] = link_of(&f->network->levels[0]);
		net->sizes[0] = f->ranks;
		n = 1;
	}
	net->cost = (struct gf_cost_net){n, net->sizes, net->links, NULL};
}

void gf_fabric_net_release(struct gf_fabric_net *net)
{
	free(net->links);
	free(net->sizes);
}

bool gf_fabric_is_mixed(const struct gf_fabric *f)
{
	size_t plain = 0, level = 0;

	while (f->network && plain < f->network->nallreduce &&
	       !gf_allreduce_plain(&f->network->allreduce[plain]))
		plain++;
	while (level < f->nlevels && gf_network_level(f->network, f->levels[level].name))
		level++;
	return f->network && plain < f->network->nallreduce && level < f->nlevels;
}

/* --- closed forms and replays --------------------------------------------- */

/* The cost of a message of so many bytes as a line, from no bytes on; what rounding lets fall below
 * 0 is 0. */
static struct gf_line as_line(struct gf_cost cost, double bytes)
{
	return (struct gf_line){
		0,
		cost.below_scale > 0 ? cost.below_scale * bytes : INFINITY,
		fmax(2 * cost.s - cost.twice_s, 0),
		fmax(cost.twice_s - cost.s, 0) / bytes,
	};
}

/*
 * A closed form is a straight line over messages that every factor divides, as long as each round
 * keeps to one line of its levels. So a short message, charged by the lines that hold in one of the
 * given size, gives it.
 */
static struct gf_line form_at(const struct gf_algorithm *a, struct gf_coll_args args,
			      const struct gf_cost_net *net, double bytes)
{
	size_t n = gf_coll_divisible(&args);
	double least = (double)n * ELEM_BYTES, scale = bytes / least;
	struct gf_cost_net by = *net;

	by.scale = &scale;
	args.count_elems = n;
	return as_line(a->cost(&args, &by), least);
}

static bool near(double a, double b)
{
	return fabs(a - b) <= 1e-12 * fmax(fabs(a), fabs(b));
}

/*
 * The same, but derived costs do not fall as messages grow: a line that would begin below the one
 * before it is raised. It would where several messages share a link, and what a longer one saves
 * there is more than what it pays at the start; and where a level's measured lines fall, of which
 * nobody knows whether they do in an algorithm's rounds.
 */
static struct gf_line form_line(const struct gf_algorithm *a, const struct gf_coll_args *args,
				const struct gf_cost_net *net, double bytes)
{
	struct gf_line line = form_at(a, *args, net, 0), next;
	double from;

	while (isfinite(line.below_bytes)) {
		/* no size lies below a byte, where times may be too short for a double to tell
		 * sizes apart */
		from = line.below_bytes = fmax(line.below_bytes, 1);
		next = form_at(a, *args, net, from);
		assert(next.below_bytes > from);
		next.startup_s =
			fmax(next.startup_s, gf_line_s(&line, from) - next.per_byte_s * from);
		if (near(next.per_byte_s, line.per_byte_s) &&
		    near(next.startup_s, line.startup_s)) {
			line.below_bytes = next.below_bytes;
			continue;
		}
		if (bytes < from)
			break;
		next.from_bytes = from; /* no gap between lines, no ulp */
		line = next;
	}
	return line;
}

static struct gf_line replayed_line(const struct gf_derived_cost *c, double bytes)
{
	size_t i = c->nlines - 1;

	while (i > 0 && c->lines[i].from_bytes > bytes)
		i--;
	return c->lines[i];
}

/* The line through what a message of just so many elements takes. */
static void pass_through(double seconds, double bytes, struct gf_line *l)
{
	if (isnan(seconds) || !(bytes > 0))
		return;
	l->startup_s = fmin(l->startup_s, seconds);
	l->per_byte_s = (seconds - l->startup_s) / bytes;
	l->from_bytes = l->below_bytes = bytes;
}

static void price_steps(const struct gf_fabric *f, const struct gf_algorithm *a,
			const struct gf_coll_args *args, const struct gf_cost_net *net,
			double bytes, struct gf_price *p)
{
	static const struct gf_derived_cost none;
	const struct gf_derived_cost *c = &none;

	if (f->derived)
		c = gf_derived_find(f->derived, a, args, net);
	p->line = c->nlines ? replayed_line(c, bytes) : form_line(a, args, net, bytes);
	p->load_per_byte_s = c->nlines ? c->lines[c->nlines - 1].per_byte_s
				       : form_at(a, *args, net, GF_MAX_SIZE).per_byte_s;
	p->contention = c->contention;
	p->nsteps = c->nsteps;
	if (c->nsteps && args->count_elems)
		pass_through(gf_derived_message_s(f->derived, a, args, net, bytes), bytes,
			     &p->line);
}

/* Narrows the sizes for which `best` holds to those where it stays below another. */
static void stay_below(struct gf_line *best, const struct gf_line *other, double bytes)
{
	double meet = (other->startup_s - best->startup_s) / (best->per_byte_s - other->per_byte_s);

	best->from_bytes = fmax(best->from_bytes, other->from_bytes);
	best->below_bytes = fmin(best->below_bytes, other->below_bytes);
	if (best->per_byte_s > other->per_byte_s && meet > bytes)
		best->below_bytes = fmin(best->below_bytes, meet);
	if (best->per_byte_s < other->per_byte_s)
		best->from_bytes = fmax(best->from_bytes, fmin(meet, bytes));
}

/* The cheapest of those that it stands for, a little above that size: where two lines meet, the one
 * that goes on below. */
static void price_cheapest(const struct gf_fabric *f, const struct gf_algorithm *a,
			   const struct gf_coll_args *args, const struct gf_cost_net *net,
			   double bytes, struct gf_price *p)
{
	double above = bytes * (1 + 1e-9), best_s = INFINITY;
	struct gf_price one = *p;

	for (size_t i = 0; a->stands_for[i]; i++) {
		price_steps(f, a->stands_for[i], args, net, bytes, &one);
		if (gf_line_s(&one.line, above) >= best_s)
			continue;
		best_s = gf_line_s(&one.line, above);
		*p = one;
	}
	for (size_t i = 0; a->stands_for[i]; i++) {
		price_steps(f, a->stands_for[i], args, net, bytes, &one);
		stay_below(&p->line, &one.line, above);
	}
}

/* The price of a message of f32 by its algorithm's own form on these levels, or by replays where
 * the fabric has some. */
static int price_form(const struct gf_fabric *f, const struct gf_priced *m,
		      const struct gf_cost_net *net, struct gf_price *price, struct gf_error *err)
{
	const struct gf_algorithm *a;
	struct gf_coll_args args;
	struct gf_way way;
	int rc;

	if (!gf_algorithm_find(m->algorithm))
		return gf_error_set(err, -EINVAL, "want the name of an algorithm, got %s",
				    m->algorithm);
	rc = gf_way_of(m->algorithm, m->stages, m->nstages, &way, err);
	if (rc < 0)
		return rc;
	a = way.algorithm;
	way.servers = f->servers;
	way.copies = m->copies;
	args = gf_way_args(&way, f->ranks);
	args.elem_bytes = ELEM_BYTES;
	args.count_elems = m->count_elems;
	args.half = m->half;
	rc = gf_coll_args_check(&args, err);
	if (rc == 0 && a->applicable)
		rc = a->applicable(&args, err);
	if (rc < 0)
		return rc;
	(a->stands_for ? price_cheapest : price_steps)(f, a, &args, net, m->bytes, price);
	return 0;
}

/* The same without replays, on one level of such links. */
static int price_unit(const struct gf_fabric *f, const struct gf_priced *m,
		      struct gf_link_cost unit, struct gf_line *line, struct gf_error *err)
{
	const struct gf_cost_net net = {.nlevels = 1, .links = &unit};
	struct gf_fabric bare = *f;
	struct gf_price price = {0};
	int rc;

	bare.derived = NULL;
	rc = price_form(&bare, m, &net, &price, err);
	*line = price.line;
	return rc;
}

/* --- measured costs ------------------------------------------------------- */

static void take_line(const struct gf_allreduce_cost *c, double bytes, double scale,
		      struct gf_price *price)
{
	struct gf_cost_lines lines = gf_allreduce_lines(c);
	struct gf_cost_line l = gf_cost_line_at(&lines, bytes, scale, &price->line.below_bytes);

	price->line.startup_s = l.startup_s;
	price->line.per_byte_s = l.per_byte_s;
	price->line.from_bytes = scale * (double)l.from_bytes;
	price->contention = &c->contention;
	price->mutual = gf_beside_backward_of(c);
	price->nsteps = 0;
	price->entry = c;
	price->scale = scale;
	price->codec_s_per_byte = price->hops = price->handling_s_per_byte = 0;
	price->load_per_byte_s = 0;
}

/*
 * On any uniform network a closed form is A(p)*alpha + B(p)*n*beta: the ratios of A and B carry a
 * measurement over to another number of ranks. A round carries B/A of a message; where several
 * lines were measured, each keeps the rounds that it held for.
 */
static int rescale(const struct gf_fabric *f, const struct gf_allreduce_cost *c, double bytes,
		   struct gf_price *price, struct gf_error *err)
{
	const struct gf_priced m = {.algorithm = c->algorithm, .half = c->collective};
	const struct gf_link_cost unit = {1, 1, 0};
	double startups, drains, scale = 1;
	struct gf_fabric then = *f;
	struct gf_line before, now;
	int rc;

	then.ranks = f->network->ranks;
	then.servers = 0;
	if (then.ranks < 2)
		return gf_error_set(
			err, -ENOTSUP,
			"want a network measured on 2 ranks or more to foretell %d, got %d",
			f->ranks, then.ranks);
	rc = price_unit(&then, &m, unit, &before, err);
	rc = rc ?: price_unit(f, &m, unit, &now, err);
	if (rc < 0)
		return rc;
	startups = now.startup_s / before.startup_s;
	drains = now.per_byte_s / before.per_byte_s;
	/* one rank has no rounds, whose sizes could change */
	if (startups > 0 && drains > 0)
		scale = startups / drains;
	take_line(c, bytes, scale, price);
	price->line.startup_s *= startups;
	price->line.per_byte_s *= drains;
	price->origin = GF_PRICE_RESCALED;
	return 0;
}

/* The entry measured for this collective and way with this codec; NULL: none. A cost measured with
 * other stages says nothing about these; one of which they are unknown stands in, and the first
 * does for stages that are unsaid. */
static const struct gf_allreduce_cost *entry_of(const struct gf_network *n,
						const struct gf_priced *m, const char *codec)
{
	const struct gf_allreduce_cost *like = NULL;

	/* nobody measures halves that leave copies */
	for (size_t i = 0; n && i < n->nallreduce && m->copies <= 1; i++) {
		const struct gf_allreduce_cost *c = &n->allreduce[i];

		if (c->collective != m->half || strcmp(c->algorithm, m->algorithm) != 0 ||
		    strcmp(gf_allreduce_codec(c), codec) != 0)
			continue;
		if (gf_stages_same(c->stages, c->nstages, m->stages, m->nstages))
			return c;
		if (!like && (c->nstages == 0 || m->nstages == 0))
			like = c;
	}
	return like;
}

static int price_entry(const struct gf_fabric *f, const struct gf_allreduce_cost *c, double bytes,
		       struct gf_price *price, struct gf_error *err)
{
	if (f->network->ranks && f->network->ranks != f->ranks)
		return rescale(f, c, bytes, price, err);
	take_line(c, bytes, 1, price);
	price->origin = GF_PRICE_MEASURED;
	return 0;
}

/* Of gradients as they are. */
static int price_plain(const struct gf_fabric *f, const struct gf_priced *m, struct gf_price *price,
		       struct gf_error *err)
{
	const struct gf_allreduce_cost *c = entry_of(f->network, m, PLAIN);
	GF_RELEASED(gf_fabric_net_release) struct gf_fabric_net net = {0};

	if (c)
		return price_entry(f, c, m->bytes, price, err);
	memset(price, 0, sizeof(*price));
	price->origin = GF_PRICE_DERIVED;
	gf_fabric_net_init(&net, f);
	if (net.cost.nlevels == 0)
		return gf_error_set(err, -ENOTSUP,
				    "want a measured %s by %s, or a topology to derive it from, "
				    "found neither",
				    gf_coll_half_names[m->half], m->algorithm);
	return price_form(f, m, &net.cost, price, err);
}

const struct gf_codec_cost *gf_fabric_codec(const struct gf_fabric *f, const char *codec)
{
	return f->processing ? gf_processing_codec(f->processing, codec,
						   f->device ? f->device : PROCESSOR)
			     : NULL;
}

const struct gf_selection_cost *gf_fabric_selection(const struct gf_fabric *f, const char *method)
{
	return f->processing ? gf_processing_selection(f->processing, method,
						       f->device ? f->device : PROCESSOR)
			     : NULL;
}

/* How often every byte of a message is passed on, one hop after the other: it is encoded before and
 * decoded after each of them. A replay finds the same, or less where several ranks send to one
 * (linear, hierarchical, ps): they encode at the same time. An algorithm without steps is one call:
 * it encodes once before the call, and decodes once after. */
static int count_hops(const struct gf_fabric *f, const struct gf_priced *m, double *hops,
		      struct gf_error *err)
{
	const struct gf_algorithm *a = gf_algorithm_find(m->algorithm);
	const struct gf_link_cost byte = {.beta_s_per_byte = 1};
	struct gf_line line;
	int rc;

	*hops = 1;
	if (!a || !a->build)
		return 0;
	rc = price_unit(f, m, byte, &line, err);
	if (rc == 0)
		*hops = line.per_byte_s;
	return rc;
}

/* Of one collective. */
static int price_one(const struct gf_fabric *f, const struct gf_priced *m, struct gf_price *price,
		     struct gf_error *err)
{
	const char *codec = m->codec ? m->codec : PLAIN;
	const struct gf_allreduce_cost *c = entry_of(f->network, m, codec);
	const struct gf_codec_cost *cost = gf_fabric_codec(f, codec);
	double ratio;
	int rc = c ? price_entry(f, c, m->bytes, price, err) : price_plain(f, m, price, err);

	if (rc < 0 || !cost)
		return rc;
	ratio = gf_codec_ratio(gf_codec_find(codec)); /* bytes on the wire */
	if (!c) {
		rc = count_hops(f, m, &price->hops, err);
		price->codec_s_per_byte =
			(cost->encode_s_per_byte + cost->decode_s_per_byte) / ratio;
	}
	/* multiplied before the one half, divided after the other */
	price->handling_s_per_byte =
		price->hops * price->codec_s_per_byte +
		(m->half == GF_COLL_WHOLE ? 1 : 0.5) * cost->scale_s_per_byte / ratio;
	price->line.per_byte_s += price->handling_s_per_byte;
	if (price->load_per_byte_s > 0)
		price->load_per_byte_s += price->handling_s_per_byte;
	return rc;
}

/* Has each half a price of its own? Not where whole all-reduces alone were measured. */
static bool has_halves(const struct gf_fabric *f, struct gf_priced m)
{
	const struct gf_algorithm *a = gf_algorithm_find(m.algorithm);
	const char *const codecs[] = {m.codec ? m.codec : PLAIN, PLAIN};
	bool has[3];

	for (size_t i = 0; i < 2; i++) {
		for (m.half = GF_COLL_WHOLE; m.half <= GF_COLL_ALL_GATHER; m.half++)
			has[m.half] = entry_of(f->network, &m, codecs[i]);
		if (has[GF_COLL_REDUCE_SCATTER] && has[GF_COLL_ALL_GATHER])
			return true;
		if (has[GF_COLL_WHOLE])
			return false;
	}
	return a && a->owned;
}

/* Both halves together hold for the sizes for which each does. Halves that differ by rounding alone
 * are the same. */
static void add_gather(struct gf_price *p, struct gf_price *gather)
{
	if (near(p->line.startup_s, gather->line.startup_s) &&
	    near(p->line.per_byte_s, gather->line.per_byte_s)) {
		gather->line.startup_s = p->line.startup_s;
		gather->line.per_byte_s = p->line.per_byte_s;
	}
	p->line.startup_s += gather->line.startup_s;
	p->line.per_byte_s += gather->line.per_byte_s;
	p->line.from_bytes = fmax(p->line.from_bytes, gather->line.from_bytes);
	p->line.below_bytes = fmin(p->line.below_bytes, gather->line.below_bytes);
	p->hops += gather->hops;
	p->handling_s_per_byte += gather->handling_s_per_byte;
	p->nsteps += gather->nsteps;
	p->gather = gather->line;
}

int gf_price_message(const struct gf_fabric *f, const struct gf_priced *m, struct gf_price *price,
		     struct gf_error *err)
{
	struct gf_priced one = *m;
	const bool halves = m->split && has_halves(f, *m);
	struct gf_price gather = {0};
	int rc;

	if (halves)
		one.half = GF_COLL_REDUCE_SCATTER;
	rc = price_one(f, &one, price, err);
	price->gather = (struct gf_line){0};
	price->halved = m->split && !halves;
	if (rc < 0 || !m->split)
		return rc;
	if (!halves) {
		price->gather = price->line;
		price->gather.startup_s /= 2;
		price->gather.per_byte_s /= 2;
		price->load_per_byte_s /= 2;
		return 0;
	}
	one.half = GF_COLL_ALL_GATHER;
	rc = price_one(f, &one, &gather, err);
	if (rc == 0)
		add_gather(price, &gather);
	return rc;
}

int gf_price_link(const struct gf_fabric *f, double bytes, struct gf_link_cost *link,
		  struct gf_error *err)
{
	struct gf_cost_round round = {f->ranks, 1, f->ranks, 1};
	struct gf_priced m = {"ring", NULL, 0, f->ranks * bytes};
	const struct gf_link_cost unit = {1, 1, 0};
	const struct gf_allreduce_cost *other;
	struct gf_price all;
	struct gf_line one;
	GF_RELEASED(gf_fabric_net_release) struct gf_fabric_net net = {0};
	int rc;

	gf_fabric_net_init(&net, f);
	if (net.cost.nlevels > 0) {
		*link = gf_cost_link(&net.cost, &round, bytes);
		return 0;
	}
	other = f->network ? gf_network_cheapest(f->network, m.bytes) : NULL;
	if (other && !entry_of(f->network, &m, PLAIN))
		m.algorithm = other->algorithm;
	rc = gf_price_message(f, &m, &all, err);
	rc = rc ?: price_unit(f, &m, unit, &one, err);
	if (rc < 0)
		return rc;
	*link = (struct gf_link_cost){0};
	if (one.startup_s > 0 && one.per_byte_s > 0) {
		link->alpha_s = all.line.startup_s / one.startup_s;
		link->beta_s_per_byte = all.line.per_byte_s / one.per_byte_s;
	}
	return 0;
}

int gf_price_set(const struct gf_fabric *f, const struct gf_algorithm *a, double bytes,
		 struct gf_line *line, struct gf_error *err)
{
	/* Of a set of one byte. The scale picks the lines that hold for the whole set. */
	const struct gf_coll_args args = {.ranks = f->ranks, .count_elems = 1, .elem_bytes = 1};
	GF_RELEASED(gf_fabric_net_release) struct gf_fabric_net net = {0};
	int rc = 0;

	gf_fabric_net_init(&net, f);
	if (!net.cost.nlevels) {
		rc = gf_price_link(f, bytes, net.links, err);
		net.sizes[0] = f->ranks;
		net.cost.nlevels = 1;
	}
	for (size_t i = 0; i < net.cost.nlevels; i++)
		net.links[i].gamma_s_per_byte = 0;
	net.cost.scale = &bytes;
	if (rc == 0)
		*line = as_line(a->cost(&args, &net.cost), 1);
	return rc;
}
