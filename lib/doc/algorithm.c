/* SPDX-License-Identifier: BSD-3-Clause */
#include "doc/algorithm.h"

#include <stddef.h>
#include <string.h>

#define OWN_STEPS (GF_ALGORITHM_ENCODED | GF_ALGORITHM_SAME_BITS)

const struct gf_algorithm_traits gf_algorithm_traits[] = {
	{"ring", OWN_STEPS | GF_ALGORITHM_HALVES},
	{"rhd", OWN_STEPS | GF_ALGORITHM_HALVES},
	{"butterfly", OWN_STEPS},
	{"tree", OWN_STEPS},
	{"linear", OWN_STEPS},
	{"hierarchical",
	 OWN_STEPS | GF_ALGORITHM_LEVELS | GF_ALGORITHM_TWO_LEVELS},
	{"blueconnect", OWN_STEPS | GF_ALGORITHM_HALVES | GF_ALGORITHM_LEVELS |
				GF_ALGORITHM_STAGES},
	{"direct", OWN_STEPS | GF_ALGORITHM_HALVES},
	{"ps", OWN_STEPS | GF_ALGORITHM_SERVERS | GF_ALGORITHM_ON_REQUEST},
	{"library", GF_ALGORITHM_ON_REQUEST},
	{"topk", GF_ALGORITHM_SAME_BITS | GF_ALGORITHM_SETS},
	{"gtopk", GF_ALGORITHM_SAME_BITS | GF_ALGORITHM_SETS},
	{NULL, 0},
};

bool gf_algorithm_has(const char *name, unsigned traits)
{
	const struct gf_algorithm_traits *a;

	for (a = gf_algorithm_traits; a->name; a++)
		if (strcmp(a->name, name) == 0)
			return (a->traits & traits) == traits;
	return false;
}

static const char halving[] = "halving";

/* The ways to reduce one factor of a decomposition. */
static const char *const stage_algorithms[] = {"ring", halving, "shm", "nccl",
					       NULL};

const char *gf_stage_algorithm(const char *name)
{
	size_t i;

	for (i = 0; name && stage_algorithms[i]; i++)
		if (strcmp(stage_algorithms[i], name) == 0)
			return stage_algorithms[i];
	return NULL;
}

bool gf_stage_takes(const char *name, int factor)
{
	return gf_stage_algorithm(name) != halving || !(factor & (factor - 1));
}
