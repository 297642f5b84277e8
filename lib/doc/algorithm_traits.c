/* SPDX-License-Identifier: BSD-3-Clause */
#include "doc/algorithm_traits.h"

#include <stddef.h>
#include <string.h>

#define ROW(name, traits) {#name, traits},

const struct gf_algorithm_traits gf_algorithm_traits[] = {
	GF_ALGORITHMS(ROW) GF_SPARSE_ALGORITHMS(ROW){NULL, 0},
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
