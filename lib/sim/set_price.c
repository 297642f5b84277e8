/* SPDX-License-Identifier: BSD-3-Clause */
#include "sim/set_price.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>

#include "base/heap.h"
#include "coll/algorithm.h"
#include "cost/stat.h"

/* The links of the ranks that were measured, without the all-reduces. */
static struct gf_fabric links_of(const struct gf_fabric *f,
				 struct gf_network *links)
{
	struct gf_fabric bare = *f;

	*links = *f->network;
	links->nallreduce = 0;
	bare.network = links;
	bare.derived = NULL;
	bare.servers = 0;
	if (links->ranks && links->ranks != f->ranks) {
		bare.ranks = links->ranks;
		bare.nlevels = 0;
	}
	return bare;
}

/* The runtime moves it, and not another library. */
static bool has_steps(const struct gf_allreduce_cost *c)
{
	const struct gf_algorithm *a = gf_algorithm_find(c->algorithm);

	return a && a->build && !gf_stages_call(c->stages, c->nstages);
}

double gf_price_call_s(const struct gf_fabric *f)
{
	struct gf_network links;
	struct gf_fabric bare;
	struct gf_price form;
	double *beside, median;
	size_t n = 0, i;

	if (!f->network || !f->network->nallreduce || !f->network->nlevels)
		return 0;
	bare = links_of(f, &links);
	beside = gf_xcalloc(f->network->nallreduce, sizeof(*beside));
	for (i = 0; i < f->network->nallreduce; i++) {
		const struct gf_allreduce_cost *c = &f->network->allreduce[i];
		const struct gf_priced m = {c->algorithm, c->stages, c->nstages,
					    .bytes = 1};

		if (has_steps(c) && gf_allreduce_plain(c) &&
		    gf_price_message(&bare, &m, &form, NULL) == 0)
			beside[n++] =
				fmax(0, c->startup_s - form.line.startup_s);
	}
	median = n ? gf_stat_median(beside, n) : 0;
	free(beside);
	return median;
}

int gf_price_sets(const struct gf_fabric *f, enum gf_wire_kind kind,
		  double call_s, struct gf_sim_message *m, struct gf_error *err)
{
	const struct gf_allreduce_cost *like =
		f->network ? gf_network_cheapest(f->network, m->bytes) : NULL;
	struct gf_line line;
	int rc = gf_price_set(f, gf_sparse_find(gf_wire_algorithm(kind)),
			      m->bytes, &line, err);

	if (rc < 0)
		return rc;
	m->startup_s = line.startup_s + call_s;
	m->per_byte_s = line.per_byte_s;
	if (like)
		m->mutual = gf_beside_backward_of(like);
	return 0;
}

double gf_price_codings_s(const struct gf_fabric *f, const struct gf_wire *wire,
			  const char *codec)
{
	const struct gf_codec_cost *c = gf_fabric_codec(f, codec);
	const struct gf_wire_handled sets =
		gf_wire_handled(wire->kind, f->ranks);

	if (!c || !wire->among)
		return 0;
	return sizeof(float) * wire->count_elems *
	       (sets.made * c->set_encode_s_per_byte +
		sets.taken * c->set_decode_s_per_byte);
}
