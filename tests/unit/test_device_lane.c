/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Programs of all algorithms and codecs on devices that do in any order what streams leave open:
 * the bits of the host's executor.
 */
#include "../gpu/lane_test.h"
#include "ranks.h"

#include "../gpu/fake.h"

static void body(struct gf_comm *comm, void *ctx)
{
	struct fake_world *world = ctx;

	fake_be(world, comm->rank);
	lane_test_all(comm, fake_gpu(world, comm->rank), fake_nccl());
}

static void run(int ranks, const struct fake_faults *faults)
{
	struct fake_world *world = fake_world_new(ranks, 1, (unsigned)ranks, faults);
	struct fake_counts counts;

	on_ranks(ranks, body, world);
	EXPECT(!fake_world_complaint(world), "%s", fake_world_complaint(world));
	counts = fake_world_counts(world);
	EXPECT(counts.waiting == 0 && counts.misaligned == 0,
	       "%d ranks: %zu operations remain, %zu are not aligned", ranks, counts.waiting,
	       counts.misaligned);
	fake_world_free(world);
}

static int give_up(void *ctx, struct gf_error *err)
{
	(void)ctx;
	return gf_error_set(err, -ECANCELED, "a rank is lost");
}

/* The team's communicator is not there yet when its parent is given up. */
static void body_lost(struct gf_comm *comm, void *ctx)
{
	struct fake_world *world = ctx;
	struct gf_gpu *gpu = fake_gpu(world, comm->rank);
	struct gf_group all = {0, 1, comm->ranks, comm->rank};
	const struct gf_lane_program p = {
		.rank = comm->rank, .ranks = comm->ranks, .teams = &all, .nteams = 1};
	struct lane_test t;
	int rc;

	fake_be(world, comm->rank);
	lane_test_open(&t, comm, gpu, fake_nccl());
	t.lane.on_wait = give_up;
	rc = gf_lane_prepare(&t.lane, &p, &t.err);
	EXPECT(rc == -ECANCELED, "rank %d: got %d", comm->rank, rc);
	rc = gf_lane_check(&t.lane, &t.err);
	EXPECT(rc == 0, "rank %d: %s", comm->rank, t.err.text);
	gf_lanes_abort(&t.lane, 1);
	lane_test_close(&t);
}

static void run_lost(int ranks)
{
	static const struct fake_faults none;
	struct fake_world *world = fake_world_new(ranks, 1, (unsigned)ranks, &none);

	on_ranks(ranks, body_lost, world);
	EXPECT(!fake_world_complaint(world), "%s", fake_world_complaint(world));
	fake_world_free(world);
}

int main(void)
{
	static const struct fake_faults none;
	int ranks;

	watchdog(240);
	for (ranks = 1; ranks <= 6; ranks++)
		run(ranks, &none);
	for (ranks = 1; ranks <= 4; ranks++)
		run_lost(ranks);
	return TEST_END();
}
