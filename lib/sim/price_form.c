/* SPDX-License-Identifier: BSD-3-Clause */
/* Prices by closed forms, or by replays where the fabric has some. */
#include <assert.h>
#include <errno.h>
#include <math.h>
#include <stdbool.h>

#include "coll/way.h"
#include "sim/price.h"

#define ELEM_BYTES 4

/*
 * A closed form is a straight line over messages that every factor divides, as
 * long as each round keeps to one line of its levels. So two
 * short messages, charged by the lines that hold in a message of the given
 * size, give startup and slope.
 */
static void line_at(const struct gf_algorithm *a, struct gf_coll_args args,
		    const struct gf_cost_net *net, double bytes,
		    struct gf_price *p)
{
	struct gf_line_choice first = {.below_scale = INFINITY}, second = first;
	size_t n = gf_coll_divisible(&args);
	struct gf_cost_net by = *net;
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
		 const struct gf_cost_net *net, double bytes,
		 struct gf_price *p)
{
	struct gf_price next = *p;
	double from, least;

	line_at(a, *args, net, 0, p);
	while (isfinite(p->below_bytes)) {
		/* no size lies below a byte, where times may be too short for
		 * a double to tell sizes apart */
		from = p->below_bytes = fmax(p->below_bytes, 1);
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
		      const struct gf_cost_net *net, double bytes,
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
			   const struct gf_cost_net *net, double bytes,
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

int gf_price_closed_form(const struct gf_fabric *f, const struct gf_priced *m,
			 const struct gf_cost_net *net, struct gf_price *price,
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
