/* SPDX-License-Identifier: BSD-3-Clause */
#include <pthread.h>
#include <stdatomic.h>

#include "base/clock.h"
#include "ranks.h"
#include "transport.h"
#include "transport/comm.h"
#include "transport/transport.h"

/* Two views of each rank's communicator, both in use at a time: whatever a transport must do, each
 * of them does, and their messages never meet. */

static void *check_all(void *comm)
{
	int round;

	for (round = 0; round < 3; round++)
		check_transport(comm);
	return NULL;
}

static void split(struct gf_comm *c, void *ctx)
{
	const int group_ranks = *(const int *)ctx;
	struct gf_comm *whole, *group;
	struct gf_error err = {""};
	pthread_t other;

	if (gf_comm_split(c, group_ranks, &whole, &group, &err)) {
		EXPECT(0, "%s", err.text);
		return;
	}
	EXPECT(whole->rank == c->rank && whole->ranks == c->ranks && whole->host == c->host &&
		       whole->local_ranks == c->local_ranks,
	       "the whole is rank %d of %d", whole->rank, whole->ranks);
	EXPECT(group->rank == c->rank % group_ranks && group->ranks == group_ranks &&
		       group->host == 0 && group->local_rank == group->rank &&
		       group->local_ranks == group_ranks,
	       "a group's rank %d of %d, %d of its host's %d", group->rank, group->ranks,
	       group->local_rank, group->local_ranks);
	if (pthread_create(&other, NULL, check_all, whole))
		abort();
	check_all(group);
	pthread_join(other, NULL);
	gf_comm_close(whole);
	gf_comm_close(group);
	EXPECT(!c->broken, "c is as it was");
	check_transport(c);
}

/* What breaks one view breaks c, once it is closed. */
static void broken(struct gf_comm *c, void *ctx)
{
	struct gf_comm *whole, *group;
	struct gf_error err = {""};

	(void)ctx;
	EXPECT(!gf_comm_split(c, 1, &whole, &group, &err), "%s", err.text);
	group->broken = true;
	gf_comm_close(group);
	EXPECT(c->broken, "a broken group");
	gf_comm_close(whole);
	c->broken = false;
}

static int count(void *ctx, struct gf_error *err)
{
	(void)err;
	atomic_fetch_add((atomic_int *)ctx, 1);
	return 0;
}

/* What watches c watches its views, too. */
static void watched(struct gf_comm *c, void *ctx)
{
	struct gf_comm *whole, *group;
	struct gf_error err = {""};
	atomic_int *looked = ctx; /* by rank 0: before the group is made, and in its barrier */

	c->on_wait = c->rank == 0 ? count : NULL;
	c->on_wait_ctx = &looked[0];
	EXPECT(!gf_comm_split(c, 2, &whole, &group, &err), "%s", err.text);
	c->on_wait_ctx = &looked[1];
	/* where nobody looks, the watchdog ends it */
	while (c->rank == 1 && atomic_load(&looked[1]) == 0)
		gf_clock_sleep(1e-3);
	EXPECT(!gf_comm_barrier(group, &err), "%s", err.text);
	gf_comm_close(group);
	gf_comm_close(whole);
	c->on_wait = NULL;
}

int main(void)
{
	static const struct {
		int ranks, group_ranks;
	} cases[] = {{2, 1}, {4, 2}, {6, 3}};
	size_t i;

	watchdog(60);
	names_its_own = false;
	for (i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		int group_ranks = cases[i].group_ranks;

		on_ranks(cases[i].ranks, split, &group_ranks);
		on_ranks_over(cases[i].ranks, gf_comm_shm_over, split, &group_ranks);
	}
	on_ranks(2, broken, NULL);
	on_ranks(2, watched, (atomic_int[2]){0});
	return TEST_END();
}
