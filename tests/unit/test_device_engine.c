/* SPDX-License-Identifier: BSD-3-Clause */
#include "plans.h"
#include "ranks.h"

#include <errno.h>

#include "../gpu/fake.h"
#include "base/array.h"
#include "base/rng.h"
#include "runtime/engine/streams_parts.h"

/*
 * The runtime for GPUs on devices that do in any order what streams and events leave open
 * (tests/gpu/fake.h): sums are complete, in every step, on every rank; and failures end alike
 * everywhere, with everything enqueued come to an end.
 */
#define TENSORS 7
#define STEPS   6

static const size_t counts[TENSORS] = {1000, 7, 33, 512, 1, 64, 2000};
#define ELEMS 3617
/* A pool's, of those that follow each other. */
#define STRIDE 3648

/* Relative to the largest possible sum. */
static const struct {
	const char *codec;
	double tolerance;
} codecs[] = {{"f32", 0},   {"f16", 4e-3}, {"bf16", 4e-2}, {"trunc16", 6e-2},
	      {"q8", 4e-2}, {"fp8", .2},   {"fp4", .8}};

struct rank {
	uint64_t ended; /* steps */
	size_t depth;
};

struct job {
	struct fake_world *world;
	struct gf_plan plan;
	double tolerance;
	float *snapshots[16]; /* per rank: the pool after each step */
	struct rank ranks[16];
	size_t offsets[TENSORS + 1];
	struct gf_pool pools[16][STEPS]; /* per rank and slot */
	/* failures */
	bool halves, graphs;
	double timeout_s;
	int late; /* 1 + the rank that makes no gradients in step 3 */
	struct gf_error errors[16];
	int rcs[16];
};

/* What the compute stream does: kernels of this test. */
struct kernel {
	float *to;
	const float *from;
	size_t count;
	int rank, step;
	size_t first; /* element of the pool */
};

static float gradient(int rank, int step, size_t element)
{
	return (float)((element * 7 + (size_t)rank * 13 + (size_t)step * 29) % 64) - 31;
}

static void make_gradient(void *ctx)
{
	struct kernel *k = ctx;

	for (size_t i = 0; i < k->count; i++)
		k->to[i] = gradient(k->rank, k->step, k->first + i);
	free(k);
}

static void take_snapshot(void *ctx)
{
	struct kernel *k = ctx;

	memcpy(k->to, k->from, k->count * sizeof(float));
	free(k);
}

static void enqueue(struct gf_gpu_stream *s, void (*run)(void *ctx), struct kernel k)
{
	fake_enqueue(s, run, gf_xmemdup(&k, sizeof(k)));
}

static int same_number(struct gf_comm *c, void *ctx, struct gf_error *err)
{
	(void)ctx;
	return gf_comm_same_text(c, "number", "7", err);
}

/* The end of a step comes once for each step, in order. */
static int count_end(void *ctx, size_t slot, struct gf_gpu_stream *s, struct gf_error *err)
{
	struct rank *r = ctx;

	(void)s;
	(void)err;
	EXPECT(slot == r->ended % r->depth, "a step in slot %zu ends after %d", slot,
	       (int)r->ended);
	r->ended++;
	return 0;
}

static float *data_of(const struct job *job, int rank, int step)
{
	return job->pools[rank][step % job->plan.staleness].data;
}

/* The oldest step has come. */
static int take_step(struct gf_engine *e, struct gf_gpu_stream *s, const struct job *job, int rank,
		     int step, struct gf_error *err)
{
	int rc = gf_engine_wait(e, err);

	rc = rc ? rc : gf_engine_end(e, err);
	EXPECT(rc || job->ranks[rank].ended > (uint64_t)step, "step %d has no end", step);
	if (!rc)
		enqueue(s, take_snapshot,
			(struct kernel){.to = job->snapshots[rank] + (size_t)step * ELEMS,
					.from = data_of(job, rank, step),
					.count = ELEMS});
	return rc;
}

/* The plan's messages; or two for each, the second of which takes up what the first brought, all of
 * those after the others. Told after the begin. */
static void tell_list(struct gf_engine *e, const struct job *job, int rank, int step,
		      struct gf_work *list)
{
	const size_t n = job->plan.nmessages;

	gf_work_of_plan(&job->plan, &job->pools[rank][step % job->plan.staleness], list);
	for (size_t i = 0; i < n && job->halves; i++) {
		list[n + i] = list[i];
		list[i].half = GF_COLL_REDUCE_SCATTER;
		list[n + i].half = GF_COLL_ALL_GATHER;
		list[n + i].after = i + 1;
	}
	if (job->halves) /* not before all others have ended */
		list[2 * n - 1].after = GF_AFTER_ALL;
	gf_engine_list(e, list, job->halves ? 2 * n : n);
}

static int run_step(struct gf_engine *e, struct gf_gpu_stream *s, const struct job *job, int rank,
		    int step, struct gf_rng *rng, struct gf_error *err)
{
	float *pool = data_of(job, rank, step);
	const int oldest = step + 1 - job->plan.staleness;
	size_t offsets[TENSORS + 1] = {0}, order[TENSORS], i;
	struct gf_work list[2 * TENSORS];
	int rc;

	for (i = 0; i < TENSORS; i++) {
		offsets[i + 1] = offsets[i] + counts[i];
		order[i] = i;
	}
	for (i = TENSORS - 1; i > 0; i--) {
		size_t other = gf_rng_below(rng, i + 1), was = order[i];

		order[i] = order[other];
		order[other] = was;
	}
	gf_engine_begin_work(e, NULL, 0);
	tell_list(e, job, rank, step, list);
	rc = gf_engine_check(e, err);
	for (i = 0; i < TENSORS && !rc; i++) {
		size_t t = order[i];

		if (job->late == rank + 1 && step == 3 && i == 3)
			break;
		enqueue(s, make_gradient,
			(struct kernel){.to = pool + offsets[t],
					.count = counts[t],
					.rank = rank,
					.step = step,
					.first = offsets[t]});
		gf_engine_ready_all(e, &(size_t){t}, 1);
		rc = gf_engine_check(e, err);
	}
	/* late: hears from the others that they have given up */
	while (job->late == rank + 1 && step == 3 && !rc) {
		usleep(1000);
		gf_engine_ready_all(e, &(size_t){order[0]}, 1);
		rc = gf_engine_check(e, err);
	}
	if (!rc)
		gf_engine_backward_end(e);
	rc = rc ? rc : gf_engine_check(e, err);
	return rc || oldest < 0 ? rc : take_step(e, s, job, rank, oldest, err);
}

/* Messages under way are ended and waited for, then taken as usual. */
static int drain(struct gf_engine *e, struct gf_gpu_stream *s, const struct job *job, int rank,
		 struct gf_error *err)
{
	int rc = gf_engine_settle(e, err), step;

	for (step = STEPS - job->plan.staleness + 1; step < STEPS && !rc; step++)
		rc = take_step(e, s, job, rank, step, err);
	EXPECT(rc || job->ranks[rank].ended == STEPS, "%d steps ended",
	       (int)job->ranks[rank].ended);
	return rc;
}

/* The start rule. */
static void check_times(struct gf_engine *e, const struct gf_plan *plan)
{
	const struct gf_message_times *t = gf_engine_times(e);

	for (size_t i = 0; i < plan->nmessages; i++) {
		EXPECT(t[i].ready_s >= 0 && t[i].start_s >= t[i].ready_s &&
			       t[i].end_s >= t[i].start_s,
		       "message %zu: %g %g %g", i, t[i].ready_s, t[i].start_s, t[i].end_s);
		for (size_t j = 0; j < i; j++)
			EXPECT(t[i].start_s >= t[j].end_s ||
				       (plan->messages[i].mode == GF_MODE_SIMULTANEOUS &&
					gf_streams_of(e)->lane_of[i] !=
						gf_streams_of(e)->lane_of[j]),
			       "message %zu starts before %zu ends", i, j);
	}
}

static void body(struct gf_comm *comm, void *ctx)
{
	struct job *job = ctx;
	struct gf_gpu *gpu = fake_gpu(job->world, comm->rank);
	struct gf_error *err = &job->errors[comm->rank];
	struct gf_gpu_stream *compute;
	struct gf_engine *e = NULL;
	struct gf_rng rng;
	void *pool;
	int rc, step;

	fake_be(job->world, comm->rank);
	gf_rng_init(&rng, 5, (uint64_t)comm->rank);
	gpu->ops->stream_new(gpu, false, &compute, err);
	gpu->ops->alloc(gpu, (size_t)job->plan.staleness * STRIDE * sizeof(float), &pool, err);
	for (step = 0; step < job->plan.staleness; step++)
		job->pools[comm->rank][step] = (struct gf_pool){
			.data = (float *)pool + step * STRIDE,
			.offsets = job->offsets,
			.count_elems = ELEMS,
			.ntensors = TENSORS,
		};
	job->ranks[comm->rank].depth = (size_t)job->plan.staleness;
	rc = gf_engine_new(
		&(struct gf_engine_config){
			.comm = comm,
			.plan = &job->plan,
			.pool = &job->pools[comm->rank][0],
			.timeout_s = job->timeout_s,
			.depth = (size_t)job->plan.staleness,
			.hooks = {.end = count_end, .ctx = &job->ranks[comm->rank]},
			.place = {.nccl = fake_nccl(),
				  .gpu = gpu,
				  .stream = compute,
				  .graphs = job->graphs},
		},
		&e, err);
	for (step = 0; step < STEPS && !rc; step++)
		rc = run_step(e, compute, job, comm->rank, step, &rng, err);
	rc = rc ? rc : drain(e, compute, job, comm->rank, err);
	rc = rc ? rc : gf_engine_settle(e, err);
	rc = rc ? rc : gf_engine_call(e, same_number, NULL, err);
	if (!rc)
		check_times(e, &job->plan);
	job->rcs[comm->rank] = rc;
	gf_engine_free(e);
	gpu->ops->stream_sync(gpu, compute, err);
}

static void start(struct job *job, int ranks, int slots, unsigned seed,
		  const struct fake_faults *faults)
{
	job->world = fake_world_new(ranks, slots, seed, faults);
	for (size_t i = 0; i < TENSORS; i++)
		job->offsets[i + 1] = job->offsets[i] + counts[i];
	for (int r = 0; r < ranks; r++)
		job->snapshots[r] = gf_xcalloc(STEPS * ELEMS, sizeof(float));
	on_ranks(ranks, body, job);
}

static void end(struct job *job, int ranks)
{
	EXPECT(!fake_world_complaint(job->world), "%s", fake_world_complaint(job->world));
	EXPECT(fake_world_counts(job->world).misaligned == 0, "transfers are not aligned");
	/* what was aborted comes to its end by and by, or the watchdog does */
	while (fake_world_counts(job->world).waiting)
		usleep(1000);
	for (int r = 0; r < ranks; r++)
		free(job->snapshots[r]);
	fake_world_free(job->world);
	gf_plan_release(&job->plan);
}

static void check_sums(const struct job *job, int ranks, const char *name)
{
	const double most = 32.0 * ranks;

	for (int r = 0; r < ranks; r++)
		for (size_t i = 0; i < STEPS * ELEMS; i++) {
			double want = 0, got = job->snapshots[r][i];

			for (int s = 0; s < ranks; s++)
				want += gradient(s, (int)(i / ELEMS), i % ELEMS);
			if (fabs(got - want) <= job->tolerance * most &&
			    job->snapshots[0][i] == job->snapshots[r][i])
				continue;
			EXPECT(0,
			       "%s, %d ranks: rank %d, step %zu, element "
			       "%zu: want %g, got %g, rank 0 has %g",
			       name, ranks, r, i / ELEMS, i % ELEMS, want, got,
			       (double)job->snapshots[0][i]);
			return;
		}
}

struct how {
	const char *algorithm, *codec;
	double tolerance;
	int ranks, lanes, at_end, staleness; /* 0: 1 */
	bool halves;
};

static void run(const struct how *how)
{
	static const struct fake_faults none;
	struct job job = {.tolerance = how->tolerance,
			  .halves = how->halves,
			  .graphs = how->lanes > 1,
			  .timeout_s = TEST_PATIENCE_S};
	const char *algorithm = how->algorithm, *codec = how->codec;
	const int ranks = how->ranks, lanes = how->lanes;
	char name[96];
	size_t launches;

	snprintf(name, sizeof(name), "%s, %s, %d lanes%s, staleness %d", algorithm, codec, lanes,
		 how->at_end ? ", at the end" : "", how->staleness);
	plan_of(&job.plan, counts, TENSORS, ranks, 100, lanes, algorithm);
	job.plan.staleness = how->staleness ? how->staleness : 1;
	/* a normal one waits for all lanes */
	if (lanes > 1 && job.plan.nmessages > 3) {
		job.plan.messages[3].mode = GF_MODE_NORMAL;
		gf_plan_set_types(&job.plan);
	}
	for (size_t i = 0; i < job.plan.nmessages; i++) {
		free(job.plan.messages[i].codec);
		job.plan.messages[i].codec = gf_xstrdup(codec);
		if (how->at_end)
			job.plan.messages[i].release = GF_RELEASE_BACKWARD_END;
	}
	start(&job, ranks, lanes, (unsigned)(ranks * 10 + lanes), &none);
	for (int r = 0; r < ranks; r++)
		EXPECT(!job.rcs[r], "%s, %d ranks: rank %d: %s", name, ranks, r,
		       job.errors[r].text);
	check_sums(&job, ranks, name);
	launches = fake_world_counts(job.world).launches;
	EXPECT((launches > 0) == (job.graphs && ranks > 1), "%s, %d ranks: %zu launches", name,
	       ranks, launches);
	end(&job, ranks);
}

static void test_sums(void)
{
	static const int ranks[] = {1, 2, 3, 4, 6};

	for (size_t a = 0; gf_algorithms[a]; a++)
		for (size_t r = 0; r < GF_ARRAY_LENGTH(ranks); r++)
			for (int lanes = 1; lanes <= 3; lanes += 2)
				run(&(struct how){gf_algorithms[a]->name, "f32", 0, ranks[r], lanes,
						  a == 0 && lanes == 3});
	for (size_t c = 1; c < GF_ARRAY_LENGTH(codecs); c++) {
		run(&(struct how){"ring", codecs[c].codec, codecs[c].tolerance, 4, 2});
		run(&(struct how){"butterfly", codecs[c].codec, codecs[c].tolerance, 6, 2});
	}
}

/* Steps that are under way together, in pools of their own. */
static void test_stale(void)
{
	for (int staleness = 2; staleness <= STEPS; staleness++)
		for (int lanes = 1; lanes <= 3; lanes++) {
			run(&(struct how){"library", "f32", 0, 2, lanes, lanes == 2, staleness});
			run(&(struct how){"ring", "f32", 0, 3, lanes, .staleness = staleness});
		}
}

/* Messages that wait for one or all of the others. */
static void test_chains(void)
{
	for (int lanes = 1; lanes <= 3; lanes++)
		for (int staleness = 1; staleness <= 2; staleness++) {
			run(&(struct how){"ring", "f32", 0, 4, lanes, .staleness = staleness,
					  .halves = true});
			run(&(struct how){"rhd", "f32", 0, 3, lanes, .staleness = staleness,
					  .halves = true});
		}
}

static const struct {
	const char *name;
	struct fake_faults faults;
	int late;
	int rc; /* of the rank that finds out first */
	const char *says[3];
	const char *instead; /* in place of the last: the ranks' pace decides */
} failures[] = {
	{"a GPU that stands still",
	 {.hangs = 3, .after = 20},
	 0,
	 -ETIMEDOUT,
	 {"no end for 2 s, with rank", "on lane", "all ranks answer"},
	 "is still at earlier messages"},
	/* when steps are launched as graphs */
	{"a GPU that stands still later",
	 {.hangs = 3, .after = 150},
	 0,
	 -ETIMEDOUT,
	 {"no end for 2 s, with rank", "on lane", "all ranks answer"},
	 "is still at earlier messages"},
	{"a rank without gradients",
	 {0},
	 2,
	 -ETIMEDOUT,
	 {"step 4", "no end for 2 s, with rank", "rank 1 has not made its gradients"}},
	{"a call that fails",
	 {.fails = 2, .after = 15},
	 0,
	 -EIO,
	 {"message", "on lane", "unhandled error"}},
	{"a rank that cannot join",
	 {.absent = 3},
	 0,
	 -EIO,
	 {"lane 0", "ncclCommInitRankConfig: unhandled system error", ""}},
	{"a communicator that reports an error",
	 {.breaks = 4, .after = 15},
	 0,
	 -EIO,
	 {"remote process exited", "", ""}},
	{"two ranks on one GPU",
	 {.one_gpu = true},
	 0,
	 -EINVAL,
	 {"ranks 0 and 1 both use GPU 0000:17:00.0", "NCCL", "a GPU for each"}},
};

static void test_failure(size_t f, const char *algorithm, int staleness, bool graphs)
{
	const int ranks = 4;
	/* long where it is not what ends the job */
	struct job job = {.timeout_s = failures[f].rc == -ETIMEDOUT ? 2 : TEST_PATIENCE_S,
			  .late = failures[f].late,
			  .graphs = graphs};
	int found = 0;

	plan_of(&job.plan, counts, TENSORS, ranks, 100, 2, algorithm);
	job.plan.staleness = staleness;
	start(&job, ranks, 2, (unsigned)f, &failures[f].faults);
	for (int r = 0; r < ranks; r++) {
		const char *text = job.errors[r].text;

		EXPECT(job.rcs[r] == failures[f].rc, "%s, %s: rank %d: %d, %s", failures[f].name,
		       algorithm, r, job.rcs[r], text);
		found += strstr(text, failures[f].says[0]) && strstr(text, failures[f].says[1]) &&
			 (strstr(text, failures[f].says[2]) ||
			  (failures[f].instead && strstr(text, failures[f].instead)));
	}
	/* rank 1 fails, between 0 and 2, or of 0 and 1 */
	if (failures[f].faults.fails)
		EXPECT(strstr(job.errors[1].text, "to rank 2: ") ||
			       strstr(job.errors[1].text, "from rank 0: ") ||
			       strstr(job.errors[1].text, "among "),
		       "%s, %s: no peer in \"%s\"", failures[f].name, algorithm,
		       job.errors[1].text);
	EXPECT(found > 0, "%s, %s: nobody says \"%s\", but: %s", failures[f].name, algorithm,
	       failures[f].says[0], job.errors[0].text);
	end(&job, ranks);
}

static void expect_refused(struct job *job, const char *says)
{
	static const struct fake_faults none;

	start(job, 2, 1, 1, &none);
	EXPECT(job->rcs[0] == -ENOTSUP && job->rcs[1] == -ENOTSUP &&
		       strstr(job->errors[1].text, says),
	       "want \"%s\", got %d: %s", says, job->rcs[1], job->errors[1].text);
	end(job, 2);
}

/* Plans that only the host can execute are refused. */
static void test_refusals(void)
{
	struct job job = {.timeout_s = TEST_PATIENCE_S}, served = job;
	size_t i;

	plan_of(&job.plan, counts, TENSORS, 2, 2500, 1, "library");
	free(job.plan.messages[1].codec);
	job.plan.messages[1].codec = gf_xstrdup("q8");
	expect_refused(&job, "message 1: algorithm \"library\"");
	/* a worker and its server */
	plan_of(&served.plan, counts, TENSORS, 1, 2500, 1, "ps");
	served.plan.servers = 1;
	for (i = 0; i < served.plan.nmessages; i++)
		served.plan.messages[i].nstages = 0;
	expect_refused(&served, "servers: on GPUs this build has none");
}

int main(void)
{
	watchdog(240);
	test_sums();
	test_stale();
	test_chains();
	for (size_t f = 0; f < GF_ARRAY_LENGTH(failures); f++) {
		test_failure(f, "ring", 1, false);
		test_failure(f, "ring", 1, true);
		if (failures[f].faults.after > 100)
			continue; /* the others make fewer calls */
		test_failure(f, "blueconnect", 1, true);
		test_failure(f, "ring", 3, true);
	}
	test_refusals();
	return TEST_END();
}
