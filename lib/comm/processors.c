/* SPDX-License-Identifier: BSD-3-Clause */
#include "comm/processors.h"

#include <math.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/allowance.h"
#include "base/heap.h"

static const char kernel_file[] = "/proc/sys/kernel/random/boot_id";

/* As many as Linux serves; a cpu_set_t has 1024. */
enum { PROCESSORS = 8192, SETS = PROCESSORS / CPU_SETSIZE };

struct place {
	int host;
	char kernel[GF_KERNEL_BYTES];
	cpu_set_t processors[SETS];
	struct gf_allowance limits[GF_ALLOWANCES];
	size_t nlimits;
};

void gf_comm_kernel(char kernel[GF_KERNEL_BYTES])
{
	FILE *f = gf_heap_need(fopen(kernel_file, "r"));

	kernel[0] = '\0';
	if (f && !fgets(kernel, GF_KERNEL_BYTES, f))
		kernel[0] = '\0';
	if (f)
		fclose(f);
}

static bool same_processors(const struct place *a, const struct place *b)
{
	return a->host == b->host ||
	       (a->kernel[0] && strcmp(a->kernel, b->kernel) == 0);
}

/* Of the processors that a control group has, by the ranks in it. */
static double limited(const struct place *all, int ranks, int rank,
		      double share)
{
	const struct place *mine = &all[rank];
	size_t i, k;
	int r;

	for (i = 0; i < mine->nlimits; i++) {
		int sharers = 0;

		for (r = 0; r < ranks; r++)
			for (k = 0; same_processors(&all[r], mine) &&
				    k < all[r].nlimits;
			     k++)
				sharers += all[r].limits[k].group ==
					   mine->limits[i].group;
		share = fmin(share, mine->limits[i].processors / sharers);
	}
	return share;
}

static double share_of(const struct place *all, int ranks, int rank)
{
	const struct place *mine = &all[rank];
	double share = 0;
	int cpu, r;

	for (cpu = 0; cpu < PROCESSORS; cpu++) {
		int sharers = 0;

		if (!CPU_ISSET_S(cpu, sizeof(mine->processors),
				 mine->processors))
			continue;
		for (r = 0; r < ranks; r++)
			sharers += same_processors(&all[r], mine) &&
				   CPU_ISSET_S(cpu, sizeof(all[r].processors),
					       all[r].processors);
		share += 1.0 / sharers;
	}
	return limited(all, ranks, rank, share);
}

int gf_comm_processor_share(struct gf_comm *c, double *share,
			    struct gf_error *err)
{
	struct place mine, *all = gf_xcalloc((size_t)c->ranks, sizeof(*all));
	int rc, r;

	memset(&mine, 0, sizeof(mine));
	mine.host = c->host;
	gf_comm_kernel(mine.kernel);
	/* if it fails, none is set, and the answer is the safe one */
	(void)sched_getaffinity(0, sizeof(mine.processors), mine.processors);
	mine.nlimits = gf_allowance_processors("", mine.limits);
	rc = gf_comm_allgather(c, &mine, sizeof(mine), all, err);
	if (rc == 0)
		*share = share_of(all, c->ranks, c->rank);
	for (r = c->ranks - 1; rc == 0 && r >= 0; r--)
		if (same_processors(&all[r], &all[c->rank]))
			c->machine = r;
	free(all);
	return rc;
}

int gf_comm_compute_threads(struct gf_comm *c, int *threads,
			    struct gf_error *err)
{
	double share = 0;
	int rc = gf_comm_processor_share(c, &share, err);

	if (rc < 0)
		return rc;
	/* thirds of a processor may sum to a little less than one */
	*threads = (int)(share + 1e-6);
	if (*threads >= 4 && c->ranks > 1)
		--*threads;
	if (*threads < 1)
		*threads = 1;
	return 0;
}
