/* SPDX-License-Identifier: BSD-3-Clause */
#include "planner/menu.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/heap.h"

static double cost_s(const struct gf_option *o, double bytes)
{
	return o->startup_s + o->per_byte_s * bytes;
}

/* The cheapest option just above `bytes` (ties: the first). */
static size_t cheapest_above(const struct gf_menu *m, double bytes)
{
	size_t i, best = 0;

	for (i = 1; i < m->noptions; i++) {
		double d = cost_s(&m->options[i], bytes) -
			   cost_s(&m->options[best], bytes);

		if (d < 0 || (d == 0 && m->options[i].per_byte_s <
						m->options[best].per_byte_s))
			best = i;
	}
	return best;
}

/* Where option `now` meets the first one with a smaller slope. */
static double next_crossing(const struct gf_menu *m, size_t now, size_t *next)
{
	const struct gf_option *o = &m->options[now];
	double at = INFINITY;
	size_t i;

	for (i = 0; i < m->noptions; i++) {
		const struct gf_option *c = &m->options[i];
		double x;

		if (c->per_byte_s >= o->per_byte_s)
			continue;
		x = (c->startup_s - o->startup_s) /
		    (o->per_byte_s - c->per_byte_s);
		if (x < at ||
		    (x == at && c->per_byte_s < m->options[*next].per_byte_s)) {
			at = x;
			*next = i;
		}
	}
	return at;
}

static void find_envelope(struct gf_menu *m)
{
	size_t now = cheapest_above(m, 0), next = 0;
	double at = 0;

	m->envelope = gf_xcalloc(m->noptions, sizeof(*m->envelope));
	m->from_bytes = gf_xcalloc(m->noptions, sizeof(*m->from_bytes));
	while (isfinite(at)) {
		m->envelope[m->nenvelope] = now;
		m->from_bytes[m->nenvelope++] = at;
		at = next_crossing(m, now, &next);
		now = next;
	}
}

static void add_measured(struct gf_menu *m, const struct gf_problem *in)
{
	const struct gf_network *net = in->network;
	size_t i;

	m->options = gf_xcalloc(net->nallreduce + 1, sizeof(*m->options));
	for (i = 0; i < net->nallreduce; i++) {
		const struct gf_allreduce_cost *c = &net->allreduce[i];

		if (in->algorithm && strcmp(in->algorithm, c->algorithm) != 0)
			continue;
		m->options[m->noptions++] = (struct gf_option){
			.algorithm = c->algorithm,
			.codec = "f32",
			.startup_s = c->startup_s,
			.per_byte_s = c->per_byte_s,
			.wire_ratio = 1,
			.contention = &c->contention,
		};
	}
}

int gf_menu_init(struct gf_menu *m, const struct gf_problem *in,
		 struct gf_error *err)
{
	memset(m, 0, sizeof(*m));
	if (in->network)
		add_measured(m, in);
	if (m->noptions == 0) {
		gf_menu_release(m);
		return gf_error_set(err, -ENOTSUP,
				    "want a cost of %s%s, found none in the "
				    "profile's network",
				    in->algorithm ? "algorithm "
						  : "an all-reduce",
				    in->algorithm ? in->algorithm : "");
	}
	find_envelope(m);
	return 0;
}

void gf_menu_release(struct gf_menu *m)
{
	size_t i;

	for (i = 0; i < m->noptions; i++)
		free(m->options[i].stages);
	free(m->options);
	free(m->envelope);
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
