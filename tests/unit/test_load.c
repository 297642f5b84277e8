/* SPDX-License-Identifier: BSD-3-Clause */
/* What ranks find out about the load of their host. They agree on it, and it is possible; how much
 * there is, no test can say. */

#include "base/clock.h"
#include "profiler/profile_parts.h"
#include "ranks.h"

static void find(struct gf_comm *comm, void *ctx)
{
	struct gf_measure_load_found *found = ctx;
	struct gf_measure_load load;
	struct gf_error err = {""};

	gf_measure_load_begin(&load);
	gf_clock_sleep(0.5);
	EXPECT(gf_measure_load_end(&load, comm, &found[comm->rank], &err) == 0, "%s", err.text);
}

int main(void)
{
	struct gf_measure_load_found found[3];
	int i;

	on_ranks(3, find, found);
	if (!found[0].processors) {
		printf("no /proc/stat here\n");
		return 77;
	}
	for (i = 0; i < 3; i++) {
		const struct gf_measure_load_found *f = &found[i];

		EXPECT(f->ranks == 3 && f->processors >= 1, "%d ranks, %d", f->ranks,
		       f->processors);
		EXPECT(f->own >= 0 && f->others >= 0 && f->others < f->processors + 1,
		       "%g, %g of %d", f->own, f->others, f->processors);
		EXPECT(f->own == found[0].own && f->others == found[0].others, "ranks differ");
	}
	return TEST_END();
}
