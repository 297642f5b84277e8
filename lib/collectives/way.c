/* SPDX-License-Identifier: BSD-3-Clause */
#include "collectives/way.h"

#include <string.h>

#include "documents/algorithm_traits.h"

bool gf_way_takes_factors(const struct gf_algorithm *a)
{
	return gf_algorithm_has(a->name, GF_ALGORITHM_LEVELS);
}

static bool has_stages(const struct gf_way *way)
{
	return gf_algorithm_has(way->algorithm->name, GF_ALGORITHM_STAGES);
}

/* Unsaid, a stage halves wherever its factor is a power of two. */
const char *gf_way_stage_at(const struct gf_way *way, size_t i)
{
	if (i >= way->nfactors || !has_stages(way))
		return NULL;
	return way->stages[0] ? way->stages[i] : gf_stage_unsaid(way->factors[i], false);
}

bool gf_way_undivided(const struct gf_way *way)
{
	return way->nfactors < 2 && has_stages(way);
}

bool gf_way_outer_rings(struct gf_way *way)
{
	struct gf_way rings = *way;
	bool differs = false;

	if (!has_stages(way) || way->stages[0])
		return false;
	for (size_t i = 0; i < way->nfactors; i++) {
		const char *now = gf_way_stage_at(way, i);

		rings.stages[i] = i == 0 ? now : gf_stage_algorithm("ring");
		/* of two ranks, either exchanges the same */
		differs |= way->factors[i] > 2 && rings.stages[i] != now;
	}
	if (differs)
		*way = rings;
	return differs;
}

int gf_way_of(const char *algorithm, const struct gf_stage *stages, size_t nstages,
	      struct gf_way *way, struct gf_error *err)
{
	memset(way, 0, sizeof(*way));
	way->algorithm = gf_algorithm_find(algorithm);
	if (!way->algorithm)
		return gf_error_set(err, -ENOTSUP, "this build has no algorithm \"%s\"", algorithm);
	if (nstages > GF_WAY_FACTORS)
		return gf_error_set(err, -EINVAL, "want at most %d stages, got %zu", GF_WAY_FACTORS,
				    nstages);
	way->nfactors = nstages;
	for (size_t i = 0; i < nstages; i++) {
		way->factors[i] = stages[i].factor;
		way->stages[i] = gf_stage_algorithm(stages[i].algorithm);
		if (gf_stage_check(stages[i].algorithm, stages[i].factor, err)) {
			gf_error_prefix(err, "stage %zu", i);
			return -EINVAL;
		}
	}
	return 0;
}

int gf_way_of_message(const struct gf_message *m, struct gf_way *way, struct gf_error *err)
{
	return gf_way_of(m->algorithm, m->stages, m->nstages, way, err);
}

struct gf_coll_args gf_way_args(const struct gf_way *way, int ranks)
{
	bool serves = gf_algorithm_has(way->algorithm->name, GF_ALGORITHM_SERVERS);

	return (struct gf_coll_args){
		.ranks = ranks,
		.factors = way->nfactors ? way->factors : NULL,
		.stage_algorithms = way->nfactors && way->stages[0] ? way->stages : NULL,
		.nfactors = way->nfactors,
		.servers = serves ? way->servers : 0,
		.copies = way->copies,
	};
}
