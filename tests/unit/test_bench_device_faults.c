/* SPDX-License-Identifier: BSD-3-Clause */
/* A contest between GPUs whose schedules are proved, or that fails on a rank: all ranks end, and
 * hear why. */
#include "ranks.h"

#include <errno.h>

#include "../gpu/fake.h"
#include "base/array.h"
#include "profiler/contest/size_sweep.h"

enum { RANKS = 4 };

struct job {
	const char *what;
	struct fake_faults faults;
	bool proves;
	const char *algorithms[4], *factors;
	double density;
	int rc;           /* every rank's */
	const char *says; /* in the reason of some rank; or in the proofs */
	struct fake_world *world;
	char texts[RANKS][512];
};

static void sweep_on(struct gf_comm *c, void *ctx)
{
	struct job *job = ctx;
	struct gf_text proofs = {0}, remarks = {0};
	struct gf_contest_allreduce_config config = {
		.comm = c,
		.element = gf_element_number(GF_F32, GF_OP_SUM),
		.lanes = job->density > 0 ? 1 : 2,
		.warmup = 1,
		.repeats = 3,
		.checks = 1,
		.timeout_s = job->rc == -ETIMEDOUT ? 2 : TEST_PATIENCE_S,
		.device = {.gpu = fake_gpu(job->world, c->rank), .nccl = fake_nccl()},
		.proofs = job->proves ? &proofs : NULL,
	};
	struct gf_contest_sweep sweep = {.min_bytes = 400,
					 .max_bytes = 40000,
					 .step_factor = 100,
					 .algorithms = job->algorithms,
					 .factors = job->factors,
					 .density = job->density};
	struct gf_contest_rows rows = {0};
	struct gf_error err = {""};
	int rc;

	fake_be(job->world, c->rank);
	rc = gf_contest_sweep_run(&sweep, &config, NULL, &rows, &remarks, &err);
	EXPECT(rc == job->rc, "%s, rank %d: %d, %s", job->what, c->rank, rc, err.text);
	snprintf(job->texts[c->rank], sizeof(job->texts[0]), "%.500s",
		 rc            ? err.text
		 : proofs.data ? proofs.data
			       : "");
	free(rows.list);
	gf_text_release(&remarks);
	gf_text_release(&proofs);
}

static const struct job jobs[] = {
	{.what = "proofs",
	 .proves = true,
	 .algorithms = {"direct", "ring", NULL},
	 .says = "direct, 100 elements, f32, 4 ranks: "},
	{.what = "proofs of sets",
	 .proves = true,
	 .algorithms = {"gtopk", "gather", NULL},
	 .density = 0.1,
	 .says = "gather, 4 sets, all-gather, f32, 4 ranks: "},
	{.what = "nothing to prove",
	 .proves = true,
	 .algorithms = {"auto", NULL},
	 .rc = -ENOTSUP,
	 .says = "rank 0: library, 100 elements, f32, 4 ranks: library has no steps of its own"},
	{.what = "a stage by NCCL to prove",
	 .proves = true,
	 .algorithms = {"blueconnect", NULL},
	 .factors = "2x2",
	 .rc = -ENOTSUP,
	 .says = "a call of NCCL has no steps of its own"},
	{.what = "a call that fails",
	 .algorithms = {"ring", NULL},
	 .faults = {.fails = 2, .after = 15},
	 .rc = -EIO,
	 .says = "unhandled error"},
	{.what = "a communicator that reports an error",
	 .algorithms = {"ring", "rhd", NULL},
	 .faults = {.breaks = 4, .after = 15},
	 .rc = -EIO,
	 .says = "remote process exited"},
	{.what = "a GPU that stands still",
	 .algorithms = {"ring", NULL},
	 .faults = {.hangs = 3, .after = 20},
	 .rc = -ETIMEDOUT,
	 .says = "for all ranks"},
	{.what = "sets and a GPU that stands still",
	 .algorithms = {"gtopk", NULL},
	 .density = 0.1,
	 .faults = {.hangs = 1, .after = 20},
	 .rc = -ETIMEDOUT,
	 .says = "for all ranks"},
	{.what = "a rank that cannot join",
	 .algorithms = {"ring", NULL},
	 .faults = {.absent = 3},
	 .rc = -EIO,
	 .says = "ncclCommInitRankConfig: unhandled system error"},
};

static void test(struct job job)
{
	bool found = false;
	int r;

	job.world = fake_world_new(RANKS, 4, 5, &job.faults);
	on_ranks(RANKS, sweep_on, &job);
	for (r = 0; r < RANKS; r++)
		found |= strstr(job.texts[r], job.says) != NULL;
	EXPECT(found, "%s: want \"%s\", got: %s", job.what, job.says, job.texts[0]);
	EXPECT(fake_world_counts(job.world).comms == 0, "%s: communicators are left", job.what);
	fake_world_free(job.world);
}

int main(void)
{
	size_t i;

	watchdog(120);
	for (i = 0; i < GF_ARRAY_LENGTH(jobs); i++)
		test(jobs[i]);
	return TEST_END();
}
