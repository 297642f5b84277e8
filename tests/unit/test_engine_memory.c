/* SPDX-License-Identifier: BSD-3-Clause */
/* Steps of the engine allocate nothing, once the first few are done: neither its thread nor the one
 * that computes. */
#include "allocations.h"
#include "base/array.h"
#include "ranks.h"
#include "rig.h"
#include "transport/transport.h"

#define WARMUP 4
#define STEPS  20

static int meet(struct gf_comm *comm, void *ctx, struct gf_error *err)
{
	bool *on = ctx;
	int rc = gf_comm_barrier(comm, err);

	if (comm->rank == 0)
		count_allocations(*on);
	return rc ? rc : gf_comm_barrier(comm, err);
}

static void one_step(struct rig *r)
{
	struct gf_error err = {""};
	size_t tensor;

	rig_begin(r);
	for (tensor = 0; tensor < TENSORS; tensor++)
		gf_engine_ready_all(r->engine, &(size_t){tensor}, 1);
	gf_engine_backward_end(r->engine);
	EXPECT(!gf_engine_wait(r->engine, &err), "%s", err.text);
}

static void steps(struct gf_comm *c, void *ctx)
{
	const struct setting *s = ctx;
	struct rig r = {0};
	struct gf_error err = {""};
	bool on = true, off = false;
	int step;

	if (rig_open(&r, c, s, &err)) {
		EXPECT(0, "%s", err.text);
		rig_close(&r);
		return;
	}
	memset(r.pool.data, 0, r.pool.count_elems * sizeof(*r.pool.data));
	for (step = 0; step < WARMUP; step++)
		one_step(&r);
	EXPECT(!gf_engine_call(r.engine, meet, &on, &err), "%s", err.text);
	for (step = 0; step < STEPS; step++)
		one_step(&r);
	EXPECT(!gf_engine_call(r.engine, meet, &off, &err), "%s", err.text);
	EXPECT(!COUNTED || !atomic_load(&allocations),
	       "%s, %d ranks, %d lanes: %d allocations in %d steps", s->algorithm, c->ranks,
	       s->lanes, atomic_load(&allocations), STEPS);
	rig_close(&r);
}

int main(void)
{
	static const struct setting settings[] = {
		{0, 1, "ring", false, 20},
		{4000, 2, "rhd", false, 0},
		{1 << 20, 1, "butterfly", true, 20},
	};
	size_t i;
	int ranks;

	watchdog(100);
	for (i = 0; i < GF_ARRAY_LENGTH(settings); i++)
		for (ranks = 1; ranks <= 4; ranks++) {
			struct setting s = settings[i];

			on_ranks(ranks, steps, &s);
			on_ranks_over(ranks, gf_comm_shm_over, steps, &s);
		}
	return TEST_END();
}
