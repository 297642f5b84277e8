/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Programs of all algorithms and codecs on devices that do in any order what
 * streams leave open: the bits of the host's executor.
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
	struct fake_world *world =
		fake_world_new(ranks, 1, (unsigned)ranks, faults);

	on_ranks(ranks, body, world);
	EXPECT(!fake_world_complaint(world), "%s", fake_world_complaint(world));
	EXPECT(fake_world_comms(world) == 0 && fake_world_waiting(world) == 0,
	       "%zu communicators, %zu operations remain",
	       fake_world_comms(world), fake_world_waiting(world));
	EXPECT(fake_world_keeps(world) == (faults->no_keep ? 0 : (size_t)ranks),
	       "%d ranks: memory is NCCL's %zu times", ranks,
	       fake_world_keeps(world));
	fake_world_free(world);
}

int main(void)
{
	static const struct fake_faults none, no_keep = {.no_keep = true};
	int ranks;

	watchdog(240);
	for (ranks = 1; ranks <= 6; ranks++)
		run(ranks, &none);
	run(2, &no_keep);
	return TEST_END();
}
