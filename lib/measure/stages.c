/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdlib.h>
#include <string.h>

#include "base/heap.h"
#include "doc/algorithm_traits.h"
#include "measure/network.h"

/* Within a level: by NCCL between GPUs; through shared memory where that is
 * what it is, else halving where it halves evenly, else in a ring. */
static const char *stage_algorithm(const struct gf_level *level, size_t factor,
				   bool gpus)
{
	if (!gpus && strcmp(level->link, "shm") == 0)
		return "shm";
	if (!gpus && factor == 2) /* either way it is one exchange */
		return "ring";
	return gf_stage_unsaid((int)factor, gpus);
}

static void push(struct gf_stage *stages, size_t *count, size_t factor,
		 const char *algorithm)
{
	stages[*count].factor = (int)factor;
	stages[*count].algorithm = gf_xstrdup(algorithm);
	++*count;
}

size_t gf_measure_stages(const char *algorithm, const struct gf_level *levels,
			 size_t nlevels, bool gpus, struct gf_stage **out)
{
	bool two = gf_algorithm_has(algorithm, GF_ALGORITHM_TWO_LEVELS);
	bool staged = gf_algorithm_has(algorithm, GF_ALGORITHM_STAGES);
	struct gf_stage *stages = gf_xcalloc(nlevels + 1, sizeof(*stages));
	size_t count = 0, i;

	for (i = 0; i < nlevels; i++) {
		size_t size = levels[i].size;

		if (size < 2)
			continue;
		/* to the masters of groups the outer levels are one */
		if (two && count == 2)
			stages[1].factor *= (int)size;
		else
			push(stages, &count, size,
			     staged ? stage_algorithm(&levels[i], size, gpus)
				    : "ring");
	}
	if (!gf_algorithm_has(algorithm, GF_ALGORITHM_LEVELS) || count < 2) {
		gf_measure_stages_free(stages, count);
		stages = NULL;
		count = 0;
	}
	*out = stages;
	return count;
}

void gf_measure_stages_free(struct gf_stage *stages, size_t nstages)
{
	size_t i;

	for (i = 0; i < nstages; i++)
		free(stages[i].algorithm);
	free(stages);
}
