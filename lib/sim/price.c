/* SPDX-License-Identifier: BSD-3-Clause */
#include "sim/price.h"

#include <assert.h>
#include <errno.h>
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/heap.h"
#include "codec/codec.h"
#include "coll/way.h"

#define ELEM_BYTES 4
#define PLAIN      gf_codecs[GF_CODEC_F32].name
#define PROCESSOR  "cpu"

/* The levels as the closed forms want them: nominal figures, replaced by what
 * was measured under the same name. */
struct net {
	struct gf_net_cost cost;
	struct gf_link_cost *links;
	int *sizes;
};

static struct gf_link_cost link_of(const struct gf_level_cost *c)
{
	return (struct gf_link_cost){c->alpha_s, c->beta_s_per_byte,
				     c->reduce_s_per_byte, c->larger,
				     c->nlarger};
}

static void net_init(struct net *net, const struct gf_fabric *f)
{
	size_t n = f->nlevels, i;

	net->links = gf_xcalloc(n + 1, sizeof(*net->links));
	net->sizes = gf_xcalloc(n + 1, sizeof(*net->sizes));
	for (i = 0; i < n; i++) {
		const struct gf_level *l = &f->levels[i];
		const struct gf_level_cost *c =
			gf_network_level(f->network, l->name);

		net->sizes[i] = (int)l->size;
		net->links[i] = c ? link_of(c)
				  : (struct gf_link_cost){
					    l->latency_s,
					    1 / l->bandwidth_bytes_per_s, 0};
	}
	if (n == 0 && f->network && f->network->nlevels == 1) {
		/* one level needs no size */
		net->links[0] = link_of(&f->network->levels[0]);
		net->sizes[0] = f->ranks;
		n = 1;
	}
	net->cost = (struct gf_net_cost){n, net->sizes, net->links, NULL};
}

static void net_release(struct net *net)
{
	free(net->links);
	free(net->sizes);
}

/*
 * A closed form is a straight line over messages that every factor divides, as
 * long as each round keeps to one line of its levels. So two
 * short messages, charged by the lines that hold in a message of the given
 * size, give startup and slope.
 */
static void line_at(const struct gf_algorithm *a, struct gf_coll_args args,
		    const struct gf_net_cost *net, double bytes,
		    struct gf_price *p)
{
	struct gf_line_choice first = {.below_scale = INFINITY}, second = first;
	size_t n = gf_coll_divisible(&args);
	struct gf_net_cost by = *net;
	double one, two;

	args.count_elems = n;
	first.scale = bytes / ((double)n * ELEM_BYTES);
	by.choice = &first;
	one = a->cost_s(&args, &by);
	args.count_elems = 2 * n;
	second.scale = first.scale / 2;
	by.choice = &second;
	two = a->cost_s(&args, &by);
	p->startup_s = 2 * one - two > 0 ? 2 * one - two : 0;
	p->per_byte_s = fmax(two - one, 0) / ((double)n * ELEM_BYTES);
	p->from_bytes = first.from_scale * ((double)n * ELEM_BYTES);
	p->below_bytes = first.below_scale * ((double)n * ELEM_BYTES);
}

static bool near(double a, double b)
{
	return fabs(a - b) <= 1e-12 * fmax(fabs(a), fabs(b));
}

/*
 * The same, but costs do not fall as messages grow: a line that would begin
 * below the one before it is raised. A level's own lines never do, but several
 * messages share its link, and what a longer message saves there may be more
 * than what it pays at the start.
 */
static void line(const struct gf_algorithm *a, const struct gf_coll_args *args,
		 const struct gf_net_cost *net, double bytes,
		 struct gf_price *p)
{
	struct gf_price next = *p;
	double from, least;

	line_at(a, *args, net, 0, p);
	while (isfinite(p->below_bytes)) {
		from = p->below_bytes;
		least = p->startup_s + p->per_byte_s * from;
		line_at(a, *args, net, from, &next);
		assert(next.below_bytes > from);
		next.startup_s =
			fmax(next.startup_s, least - next.per_byte_s * from);
		if (near(next.per_byte_s, p->per_byte_s) &&
		    near(next.startup_s, p->startup_s)) {
			p->below_bytes = next.below_bytes;
			continue;
		}
		if (bytes < from)
			return;
		next.from_bytes = from; /* no gap between lines, no ulp */
		*p = next;
	}
}

static void replayed_line(const struct gf_derived_cost *c, double bytes,
			  struct gf_price *p)
{
	size_t i = c->nlines - 1;

	while (i > 0 && c->lines[i].from_bytes > bytes)
		i--;
	p->startup_s = c->lines[i].startup_s;
	p->per_byte_s = c->lines[i].per_byte_s;
	p->from_bytes = c->lines[i].from_bytes;
	p->below_bytes =
		i + 1 < c->nlines ? c->lines[i + 1].from_bytes : INFINITY;
}

/* The line through what a message of just so many elements takes. */
static void pass_through(double seconds, double bytes, struct gf_price *p)
{
	if (isnan(seconds) || !(bytes > 0))
		return;
	p->startup_s = fmin(p->startup_s, seconds);
	p->per_byte_s = (seconds - p->startup_s) / bytes;
	p->from_bytes = p->below_bytes = bytes;
}

static void price_one(const struct gf_fabric *f, const struct gf_algorithm *a,
		      const struct gf_coll_args *args,
		      const struct gf_net_cost *net, double bytes,
		      struct gf_price *p)
{
	static const struct gf_derived_cost none;
	const struct gf_derived_cost *c = &none;

	if (f->derived)
		c = gf_derived_find(f->derived, a, args, net);
	if (c->nlines)
		replayed_line(c, bytes, p);
	else
		line(a, args, net, bytes, p);
	p->contention = c->contention;
	p->nsteps = c->nsteps;
	if (c->nsteps && args->count_elems)
		pass_through(
			gf_derived_message_s(f->derived, a, args, net, bytes),
			bytes, p);
}

/* Narrows the sizes for which `best` holds to those where it stays below
 * another. */
static void stay_below(struct gf_price *best, const struct gf_price *other,
		       double bytes)
{
	double meet = (other->startup_s - best->startup_s) /
		      (best->per_byte_s - other->per_byte_s);

	best->from_bytes = fmax(best->from_bytes, other->from_bytes);
	best->below_bytes = fmin(best->below_bytes, other->below_bytes);
	if (best->per_byte_s > other->per_byte_s && meet > bytes)
		best->below_bytes = fmin(best->below_bytes, meet);
	if (best->per_byte_s < other->per_byte_s)
		best->from_bytes = fmax(best->from_bytes, fmin(meet, bytes));
}

/* The cheapest of those that it stands for, a little above that size: where two
 * lines meet, the one that goes on below. */
static void price_cheapest(const struct gf_fabric *f,
			   const struct gf_algorithm *a,
			   const struct gf_coll_args *args,
			   const struct gf_net_cost *net, double bytes,
			   struct gf_price *p)
{
	double above = bytes * (1 + 1e-9), best_s = INFINITY;
	struct gf_price one = *p;
	size_t i;

	for (i = 0; a->stands_for[i]; i++) {
		price_one(f, a->stands_for[i], args, net, bytes, &one);
		if (one.startup_s + one.per_byte_s * above >= best_s)
			continue;
		best_s = one.startup_s + one.per_byte_s * above;
		*p = one;
	}
	for (i = 0; a->stands_for[i]; i++) {
		price_one(f, a->stands_for[i], args, net, bytes, &one);
		stay_below(p, &one, above);
	}
}

static int closed_form(const struct gf_fabric *f, const struct gf_priced *m,
		       const struct gf_net_cost *net, struct gf_price *price,
		       struct gf_error *err)
{
	const struct gf_algorithm *a;
	struct gf_coll_args args;
	struct gf_way way;
	int rc;

	if (!gf_algorithm_find(m->algorithm))
		return gf_error_set(err, -EINVAL,
				    "want the name of an algorithm, got %s",
				    m->algorithm);
	rc = gf_way_of(m->algorithm, m->stages, m->nstages, &way, err);
	if (rc < 0)
		return rc;
	a = way.algorithm;
	if (!a->cost_s)
		return gf_error_set(
			err, -ENOTSUP,
			"%s has no closed form and was not measured",
			m->algorithm);
	way.servers = f->servers;
	args = gf_way_args(&way, f->ranks);
	args.elem_bytes = ELEM_BYTES;
	args.count_elems = m->count_elems;
	rc = gf_coll_args_check(&args, err);
	if (rc == 0 && a->applicable)
		rc = a->applicable(&args, err);
	if (rc < 0)
		return rc;
	(a->stands_for ? price_cheapest : price_one)(f, a, &args, net, m->bytes,
						     price);
	return 0;
}

static void take_line(const struct gf_allreduce_cost *c, double bytes,
		      double scale, struct gf_price *price)
{
	struct gf_cost_lines lines = gf_allreduce_lines(c);
	struct gf_cost_line l =
		gf_cost_line_at(&lines, bytes, scale, &price->below_bytes);

	price->startup_s = l.startup_s;
	price->per_byte_s = l.per_byte_s;
	price->from_bytes = scale * (double)l.from_bytes;
	price->contention = &c->contention;
	price->mutual = gf_beside_backward_of(c);
	price->nsteps = 0;
}

/*
 * On any uniform network a closed form is A(p)*alpha + B(p)*n*beta: the ratios
 * of A and B carry a measurement over to another number of ranks. A round
 * carries B/A of a message; where several lines were measured, each keeps the
 * rounds that it held for.
 */
static int rescale(const struct gf_fabric *f, const struct gf_allreduce_cost *c,
		   double bytes, struct gf_price *price, struct gf_error *err)
{
	const struct gf_priced m = {.algorithm = c->algorithm};
	double startups, drains, scale = 1;
	struct gf_link_cost unit = {1, 1, 0};
	struct gf_net_cost net = {.nlevels = 1, .links = &unit};
	struct gf_fabric then = *f, now_on;
	struct gf_price before = {0}, now = {0};
	int rc;

	then.derived = NULL;
	now_on = *f;
	now_on.derived = NULL;
	then.ranks = f->network->ranks;
	then.servers = 0;
	if (then.ranks < 2)
		return gf_error_set(err, -ENOTSUP,
				    "want a network measured on 2 ranks or "
				    "more to foretell %d, got %d",
				    f->ranks, then.ranks);
	rc = closed_form(&then, &m, &net, &before, err);
	if (rc == 0)
		rc = closed_form(&now_on, &m, &net, &now, err);
	if (rc < 0)
		return rc;
	startups = now.startup_s / before.startup_s;
	drains = now.per_byte_s / before.per_byte_s;
	/* one rank has no rounds, whose sizes could change */
	if (startups > 0 && drains > 0)
		scale = startups / drains;
	take_line(c, bytes, scale, price);
	price->startup_s *= startups;
	price->per_byte_s *= drains;
	price->origin = GF_PRICE_RESCALED;
	return 0;
}

/* A cost measured with other factors says nothing about these. */
static bool same_factors(const struct gf_allreduce_cost *c,
			 const struct gf_stage *stages, size_t nstages)
{
	size_t i;

	if (c->nstages == 0 || nstages == 0)
		return true;
	for (i = 0; i < nstages && i < c->nstages; i++)
		if (stages[i].factor != c->stages[i].factor)
			return false;
	return nstages == c->nstages;
}

/* The entry measured for this way with this codec; NULL: none. */
static const struct gf_allreduce_cost *entry_of(const struct gf_network *n,
						const struct gf_priced *m,
						const char *codec)
{
	size_t i;

	for (i = 0; n && i < n->nallreduce; i++) {
		const struct gf_allreduce_cost *c = &n->allreduce[i];

		if (strcmp(c->algorithm, m->algorithm) == 0 &&
		    strcmp(gf_allreduce_codec(c), codec) == 0 &&
		    same_factors(c, m->stages, m->nstages))
			return c;
	}
	return NULL;
}

static int price_entry(const struct gf_fabric *f,
		       const struct gf_allreduce_cost *c, double bytes,
		       struct gf_price *price, struct gf_error *err)
{
	if (f->network->ranks && f->network->ranks != f->ranks)
		return rescale(f, c, bytes, price, err);
	take_line(c, bytes, 1, price);
	price->origin = GF_PRICE_MEASURED;
	return 0;
}

/* Of gradients as they are. */
static int price_plain(const struct gf_fabric *f, const struct gf_priced *m,
		       struct gf_price *price, struct gf_error *err)
{
	const struct gf_allreduce_cost *c = entry_of(f->network, m, PLAIN);
	struct net net;
	int rc;

	if (c)
		return price_entry(f, c, m->bytes, price, err);
	memset(price, 0, sizeof(*price));
	price->origin = GF_PRICE_DERIVED;
	net_init(&net, f);
	if (net.cost.nlevels == 0)
		rc = gf_error_set(err, -ENOTSUP,
				  "want a measured cost of %s, or a topology "
				  "to derive it from, found neither",
				  m->algorithm);
	else
		rc = closed_form(f, m, &net.cost, price, err);
	net_release(&net);
	return rc;
}

const struct gf_codec_cost *gf_fabric_codec(const struct gf_fabric *f,
					    const char *codec)
{
	return f->processing
		       ? gf_processing_codec(f->processing, codec,
					     f->device ? f->device : PROCESSOR)
		       : NULL;
}

const struct gf_selection_cost *gf_fabric_selection(const struct gf_fabric *f,
						    const char *method)
{
	return f->processing ? gf_processing_selection(f->processing, method,
						       f->device ? f->device
								 : PROCESSOR)
			     : NULL;
}

/* An algorithm without steps is one call: it encodes once before the call, and
 * decodes once after. */
int gf_price_hops(const struct gf_fabric *f, const struct gf_priced *m,
		  double *hops, struct gf_error *err)
{
	const struct gf_algorithm *a = gf_algorithm_find(m->algorithm);
	struct gf_link_cost unit = {0, 1, 0};
	struct gf_net_cost net = {.nlevels = 1, .links = &unit};
	struct gf_fabric uniform = *f;
	struct gf_price price = {0};
	int rc;

	*hops = 1;
	if (!a || !a->build || !a->cost_s)
		return 0;
	uniform.derived = NULL;
	rc = closed_form(&uniform, m, &net, &price, err);
	if (rc == 0)
		*hops = price.per_byte_s;
	return rc;
}

int gf_price_message(const struct gf_fabric *f, const struct gf_priced *m,
		     struct gf_price *price, struct gf_error *err)
{
	const char *codec = m->codec ? m->codec : PLAIN;
	const struct gf_allreduce_cost *c = entry_of(f->network, m, codec);
	const struct gf_codec_cost *cost = gf_fabric_codec(f, codec);
	double hops;
	int rc;

	if (c)
		return price_entry(f, c, m->bytes, price, err);
	rc = price_plain(f, m, price, err);
	if (rc < 0 || !cost)
		return rc;
	rc = gf_price_hops(f, m, &hops, err);
	if (rc == 0) /* per byte on the wire */
		price->per_byte_s +=
			hops *
			(cost->encode_s_per_byte + cost->decode_s_per_byte) /
			gf_codec_ratio(gf_codec_find(codec));
	return rc;
}

int gf_price_link(const struct gf_fabric *f, double bytes,
		  struct gf_link_cost *link, struct gf_error *err)
{
	struct gf_net_round round = {f->ranks, 1, f->ranks, 1};
	double p = f->ranks;
	struct gf_price ring;
	struct net net;
	int rc;

	net_init(&net, f);
	if (net.cost.nlevels > 0) {
		*link = gf_net_link(&net.cost, &round, bytes);
		net_release(&net);
		return 0;
	}
	net_release(&net);
	rc = gf_price_message(
		f, &(struct gf_priced){"ring", NULL, 0, p * bytes}, &ring, err);
	if (rc < 0)
		return rc;
	/* 2(p-1) alpha + 2(p-1)/p n beta */
	link->alpha_s = p > 1 ? ring.startup_s / (2 * (p - 1)) : 0;
	link->beta_s_per_byte = p > 1 ? ring.per_byte_s * p / (2 * (p - 1)) : 0;
	link->gamma_s_per_byte = 0;
	return 0;
}
