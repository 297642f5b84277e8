/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Messages of changing sizes through one collective, and what it promises about
 * memory: every call of malloc and its kin is counted.
 */
#include <errno.h>
#include <stdint.h>

#include "allocations.h"
#include "base/array.h"
#include "base/heap.h"
#include "comm/collective.h"
#include "comm/shm.h"
#include "ranks.h"

static float value(int rank, size_t i)
{
	return (float)((rank + 1) * (int)(i % 7));
}

static void once(struct gf_collective *c, struct gf_exec *x, float *data,
		 size_t n)
{
	struct gf_comm *comm = gf_exec_comm(x);
	int p = comm->ranks;
	struct gf_error err = {""};
	size_t i;
	int rc;

	for (i = 0; i < n; i++)
		data[i] = value(comm->rank, i);
	rc = gf_collective_start(c, data, n, &err);
	rc = rc ? rc : gf_exec_wait(x, gf_collective_run(c), 0, &err);
	EXPECT(!rc, "%s", err.text);
	for (i = 0; i < n; i++)
		if (data[i] != (float)(p * (p + 1) / 2) * (float)(i % 7)) {
			EXPECT(0, "p = %d, n = %zu: [%zu] is %g", p, n, i,
			       (double)data[i]);
			break;
		}
}

/* All ranks are here, and the count is on or off. */
static void meet(struct gf_comm *comm, bool on)
{
	struct gf_error err = {""};

	EXPECT(!gf_comm_barrier(comm, &err), "%s", err.text);
	if (comm->rank == 0)
		count_allocations(on);
	EXPECT(!gf_comm_barrier(comm, &err), "%s", err.text);
}

/* Sizes that come again, once each has been seen, cost no allocation; with
 * fewer places than sizes everything still adds up. */
static void sizes(struct gf_comm *comm, void *ctx)
{
	static const size_t counts[] = {4000, 1, 0, 65537, 12, 4001};
	static const char *const algorithms[] = {"ring", "rhd", "butterfly",
						 "hierarchical"};
	const char *codec = ctx;
	struct gf_exec *x = gf_exec_new(comm);
	struct gf_collective_config config = {.args = {.ranks = comm->ranks}};
	struct gf_error err = {""};
	struct gf_collective *c;
	float *data;
	void *memory;
	size_t a, places, i;
	int round;

	EXPECT(!gf_element_coded(codec, GF_OP_SUM, &config.element, &err), "%s",
	       err.text);
	EXPECT(!comm->ops->buffer_alloc(comm, 65537 * sizeof(float), &memory,
					&err),
	       "%s", err.text);
	data = memory;
	for (a = 0; a < GF_ARRAY_LENGTH(algorithms); a++)
		for (places = 0; places <= 2; places += 2) {
			config.algorithm = gf_algorithm_find(algorithms[a]);
			config.sizes = places;
			c = gf_collective_new(x, &config);
			EXPECT(!gf_collective_run(c), "before the first");
			for (round = 0; round < 4; round++) {
				meet(comm, true);
				for (i = 0; i < GF_ARRAY_LENGTH(counts); i++)
					once(c, x, data, counts[i]);
				meet(comm, false);
				EXPECT(!COUNTED || round < 2 || places ||
					       !atomic_load(&allocations),
				       "%s, p = %d: %d allocations in round %d",
				       algorithms[a], comm->ranks,
				       atomic_load(&allocations), round);
				EXPECT(!COUNTED || round ||
					       atomic_load(&allocations),
				       "the count counts");
			}
			gf_collective_free(c);
		}
	comm->ops->buffer_free(comm, memory);
	gf_exec_free(x);
}

static void errors(struct gf_comm *comm, void *ctx)
{
	struct gf_exec *x = gf_exec_new(comm);
	int factors[] = {2, 2};
	struct gf_collective_config config = {
		.algorithm = gf_algorithm_find("blueconnect"),
		.args = {.ranks = 1, .factors = factors, .nfactors = 2}};
	struct gf_collective *c = gf_collective_new(x, &config);
	struct gf_error err = {""};
	float data[3] = {1, 2, 3};

	(void)ctx;
	EXPECT(gf_collective_start(c, data, 3, &err) == -EINVAL, "factors");
	EXPECT_TEXT(err.text, "factors: want a product of 1 (the ranks), got "
			      "at least 2");
	EXPECT(!gf_collective_run(c), "none");
	gf_collective_free(c);
	config.args.nfactors = 0;
	c = gf_collective_new(x, &config);
	EXPECT(!gf_collective_prepare(c, 3, &err) &&
		       !gf_collective_start(c, data, 3, &err) &&
		       gf_exec_done(gf_collective_run(c)),
	       "%s", err.text);
	gf_collective_free(c);
	gf_collective_free(NULL);
	gf_exec_free(x);
}

int main(void)
{
	static const int ranks[] = {1, 2, 3, 4, 7};
	static char none[] = "f32", f16[] = "f16";
	size_t i;

	watchdog(200);
	on_ranks(1, errors, NULL);
	for (i = 0; i < GF_ARRAY_LENGTH(ranks); i++) {
		on_ranks(ranks[i], sizes, none);
		on_ranks(ranks[i], sizes, f16);
		on_ranks_over(ranks[i], gf_comm_shm_over, sizes, none);
		on_ranks_over(ranks[i], gf_comm_shm_over, sizes, f16);
	}
	return TEST_END();
}
