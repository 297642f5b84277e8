/* SPDX-License-Identifier: BSD-3-Clause */
#include "sim/price.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/heap.h"
#include "codec/codec.h"
#include "coll/algorithm.h"

#define ELEM_BYTES 4
#define PLAIN      gf_codecs[GF_CODEC_F32].name
#define PROCESSOR  "cpu"

/* The levels as the closed forms want them. */
struct net {
	struct gf_cost_net cost;
	struct gf_link_cost *links;
	int *sizes;
};

static struct gf_link_cost link_of(const struct gf_level_cost *c)
{
	return (struct gf_link_cost){c->alpha_s, c->beta_s_per_byte,
				     c->reduce_s_per_byte, c->larger,
				     c->nlarger};
}

struct gf_link_cost gf_fabric_link(const struct gf_fabric *f, size_t level)
{
	const struct gf_level *l = &f->levels[level];
	const struct gf_level_cost *c = gf_network_level(f->network, l->name);

	return c ? link_of(c)
		 : (struct gf_link_cost){l->latency_s,
					 1 / l->bandwidth_bytes_per_s, 0};
}

static void net_init(struct net *net, const struct gf_fabric *f)
{
	size_t n = f->nlevels, i;

	net->links = gf_xcalloc(n + 1, sizeof(*net->links));
	net->sizes = gf_xcalloc(n + 1, sizeof(*net->sizes));
	for (i = 0; i < n; i++) {
		net->sizes[i] = (int)f->levels[i].size;
		net->links[i] = gf_fabric_link(f, i);
	}
	if (n == 0 && f->network && f->network->nlevels == 1) {
		/* one level needs no size */
		net->links[0] = link_of(&f->network->levels[0]);
		net->sizes[0] = f->ranks;
		n = 1;
	}
	net->cost = (struct gf_cost_net){n, net->sizes, net->links, NULL};
}

static void net_release(struct net *net)
{
	free(net->links);
	free(net->sizes);
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
	price->entry = c;
	price->scale = scale;
	price->codec_s_per_byte = price->hops = price->handling_s_per_byte = 0;
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
	struct gf_cost_net net = {.nlevels = 1, .links = &unit};
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
	rc = gf_price_closed_form(&then, &m, &net, &before, err);
	if (rc == 0)
		rc = gf_price_closed_form(&now_on, &m, &net, &now, err);
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

/* The entry measured for this way with this codec; NULL: none. A cost measured
 * with other stages says nothing about these; one of which they are unknown
 * stands in, and the first does for stages that are unsaid. */
static const struct gf_allreduce_cost *entry_of(const struct gf_network *n,
						const struct gf_priced *m,
						const char *codec)
{
	const struct gf_allreduce_cost *like = NULL;
	size_t i;

	for (i = 0; n && i < n->nallreduce; i++) {
		const struct gf_allreduce_cost *c = &n->allreduce[i];

		if (strcmp(c->algorithm, m->algorithm) != 0 ||
		    strcmp(gf_allreduce_codec(c), codec) != 0)
			continue;
		if (gf_stages_same(c->stages, c->nstages, m->stages,
				   m->nstages))
			return c;
		if (!like && (c->nstages == 0 || m->nstages == 0))
			like = c;
	}
	return like;
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
		rc = gf_price_closed_form(f, m, &net.cost, price, err);
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

/* How often every byte of a message is passed on, one hop after the other: it
 * is encoded before and decoded after each of them. A replay finds the same, or
 * less where several ranks send to one (linear, hierarchical, ps): they encode
 * at the same time. An algorithm without steps is one call: it encodes once
 * before the call, and decodes once after. */
static int count_hops(const struct gf_fabric *f, const struct gf_priced *m,
		      double *hops, struct gf_error *err)
{
	const struct gf_algorithm *a = gf_algorithm_find(m->algorithm);
	struct gf_link_cost unit = {0, 1, 0};
	struct gf_cost_net net = {.nlevels = 1, .links = &unit};
	struct gf_fabric uniform = *f;
	struct gf_price price = {0};
	int rc;

	*hops = 1;
	if (!a || !a->build || !a->cost_s)
		return 0;
	uniform.derived = NULL;
	rc = gf_price_closed_form(&uniform, m, &net, &price, err);
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
	double ratio;
	int rc = c ? price_entry(f, c, m->bytes, price, err)
		   : price_plain(f, m, price, err);

	if (rc < 0 || !cost)
		return rc;
	ratio = gf_codec_ratio(gf_codec_find(codec)); /* bytes on the wire */
	if (!c) {
		rc = count_hops(f, m, &price->hops, err);
		price->codec_s_per_byte =
			(cost->encode_s_per_byte + cost->decode_s_per_byte) /
			ratio;
	}
	price->handling_s_per_byte = price->hops * price->codec_s_per_byte +
				     cost->scale_s_per_byte / ratio;
	price->per_byte_s += price->handling_s_per_byte;
	return rc;
}

int gf_price_link(const struct gf_fabric *f, double bytes,
		  struct gf_link_cost *link, struct gf_error *err)
{
	struct gf_cost_round round = {f->ranks, 1, f->ranks, 1};
	struct gf_priced m = {"ring", NULL, 0, f->ranks * bytes};
	struct gf_link_cost unit = {1, 1, 0};
	struct gf_cost_net uniform = {.nlevels = 1, .links = &unit};
	const struct gf_allreduce_cost *other;
	struct gf_price one = {0}, all;
	struct gf_fabric bare = *f;
	struct net net;
	int rc;

	net_init(&net, f);
	if (net.cost.nlevels > 0) {
		*link = gf_cost_link(&net.cost, &round, bytes);
		net_release(&net);
		return 0;
	}
	net_release(&net);
	other = f->network ? gf_network_cheapest(f->network, m.bytes) : NULL;
	if (other && !entry_of(f->network, &m, PLAIN))
		m.algorithm = other->algorithm;
	rc = gf_price_message(f, &m, &all, err);
	bare.derived = NULL;
	rc = rc ? rc : gf_price_closed_form(&bare, &m, &uniform, &one, err);
	if (rc < 0)
		return rc;
	*link = (struct gf_link_cost){0};
	if (one.startup_s > 0 && one.per_byte_s > 0) {
		link->alpha_s = all.startup_s / one.startup_s;
		link->beta_s_per_byte = all.per_byte_s / one.per_byte_s;
	}
	return 0;
}

int gf_price_set(const struct gf_fabric *f, const struct gf_algorithm *a,
		 double bytes, double *startup_s, double *per_byte_s,
		 struct gf_error *err)
{
	/* The form is a line, which its values at one byte and at two give.
	 * The scale picks the lines that hold for the whole set. */
	struct gf_line_choice first = {.below_scale = INFINITY, .scale = bytes};
	struct gf_line_choice second = first;
	struct gf_coll_args args = {
		.ranks = f->ranks, .count_elems = 1, .elem_bytes = 1};
	double one, two;
	struct net net;
	size_t i;
	int rc = 0;

	net_init(&net, f);
	if (!net.cost.nlevels) {
		rc = gf_price_link(f, bytes, net.links, err);
		net.sizes[0] = f->ranks;
		net.cost.nlevels = 1;
	}
	for (i = 0; i < net.cost.nlevels; i++)
		net.links[i].gamma_s_per_byte = 0;
	second.scale /= 2;
	net.cost.choice = &first;
	one = a->cost_s(&args, &net.cost);
	args.elem_bytes = 2;
	net.cost.choice = &second;
	two = a->cost_s(&args, &net.cost);
	net_release(&net);
	if (rc < 0)
		return rc;
	*startup_s = fmax(2 * one - two, 0);
	*per_byte_s = fmax(two - one, 0);
	return 0;
}
