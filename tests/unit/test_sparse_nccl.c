/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Top-k selections whose sets go from GPU to GPU, on devices that do in any order what streams and
 * events leave open: sums and residuals have the bits of a selection on the host, whose sets are
 * merged here one after the other.
 */
#include "ranks.h"

#include <errno.h>

#include "../gpu/fake.h"
#include "base/array.h"
#include "base/heap.h"
#include "base/rng.h"
#include "compressors/sets_gpu.h"

#define ELEMS 331
#define STEPS 4

static const size_t ks[STEPS] = {7, 60, 1, 331};
#define MOST_K 331

static const struct {
	const char *name;
	bool merges;
	enum gf_putback putback;
} cases[] = {
	{"topk", false, GF_PUTBACK_PAPER},
	{"gtopk, paper", true, GF_PUTBACK_PAPER},
	{"gtopk, conserve", true, GF_PUTBACK_CONSERVE},
	{"gtopk, naive", true, GF_PUTBACK_NAIVE},
};

static const int nranks[] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 12, 16};

struct job {
	struct fake_world *world;
	size_t c;
	int skip;                        /* 1 + the step that is skipped */
	float *sums[16], *residuals[16]; /* after each step */
	uint32_t flags[16][STEPS];
	struct gf_error errors[16];
	int rcs[16];
};

/* Many alike, so that ties are met; now and then -0, and in step 2 of rank 1 what is not a
 * number. */
static float gradient(int rank, int step, size_t i)
{
	struct gf_rng rng;
	float x;

	gf_rng_init(&rng, (uint64_t)(step + 1), (uint64_t)rank * ELEMS + i);
	x = (float)((int)gf_rng_below(&rng, 41) - 20) / 4;
	if (gf_rng_below(&rng, 9) == 0)
		x = -0.0f;
	return rank == 1 && step == 2 && i == 100 ? NAN : x;
}

/* --- the host ------------------------------------------------------------- */

struct host_rank {
	struct gf_sparse_message m;
	float data[ELEMS], residual[ELEMS], sum[ELEMS];
};

static void tree(struct host_rank *all, int ranks)
{
	int far, r;

	for (far = 1; far < ranks; far *= 2)
		for (r = 0; r + far < ranks; r += 2 * far)
			gf_sparse_merge(&all[r].m, all[r].m.sets, all[r + far].m.sets, 1);
	for (r = 1; r < ranks; r++)
		memcpy(all[r].m.sets, all[0].m.sets, gf_sparse_set_bytes(&all[0].m, all[0].m.k));
}

static void gather(struct host_rank *all, int ranks)
{
	const size_t bytes = gf_sparse_set_bytes(&all[0].m, all[0].m.k);
	int r, from;

	for (r = 0; r < ranks; r++)
		for (from = 0; from < ranks; from++)
			memcpy((char *)all[r].m.sets + (size_t)from * bytes,
			       (char *)all[from].m.sets + (size_t)from * bytes, bytes);
}

static void host_step(struct host_rank *all, int ranks, int step, bool skip)
{
	int r;

	for (r = 0; r < ranks; r++) {
		for (size_t i = 0; i < ELEMS; i++)
			all[r].data[i] = gradient(r, step, i);
		gf_sparse_select(&all[r].m, ks[step], r);
	}
	(gf_sparse_gathers(&all[0].m) ? gather : tree)(all, ranks);
	for (r = 0; r < ranks; r++) {
		gf_sparse_conclude(&all[r].m);
		if (!skip)
			memcpy(all[r].residual, all[r].data, sizeof(all[r].residual));
		memset(all[r].sum, 0, sizeof(all[r].sum));
		gf_sparse_add(&all[r].m, all[r].sum);
	}
}

static struct host_rank *host_new(size_t c, int ranks)
{
	struct host_rank *all = gf_xcalloc((size_t)ranks, sizeof(*all));
	int r;

	for (r = 0; r < ranks; r++) {
		struct gf_sparse_message *m = &all[r].m;

		m->merges = cases[c].merges;
		m->putback = cases[c].putback;
		m->ranks = ranks;
		m->count_elems = ELEMS;
		m->data = all[r].data;
		m->residual = all[r].residual;
		m->sets = gf_xcalloc(1, gf_sparse_sets_bytes(m, MOST_K));
		m->scratch = gf_xcalloc(gf_sparse_scratch_elems(m, MOST_K), 4);
		EXPECT(!gf_sparse_init(m, MOST_K, NULL), "made");
	}
	return all;
}

static void host_free(struct host_rank *all, int ranks)
{
	for (int r = 0; r < ranks; r++) {
		free(all[r].m.sets);
		free(all[r].m.scratch);
		gf_sparse_release(&all[r].m);
	}
	free(all);
}

/* --- the devices ---------------------------------------------------------- */

struct device_rank {
	struct gf_gpu *gpu;
	struct gf_gpu_stream *compute;
	struct gf_gpu_event *made, *came;
	struct gf_lane lane;
	struct gf_sparse_gpu *n;
	void *grads, *residual, *flag;
};

struct make {
	float *to;
	int rank, step;
};

static void make_gradients(void *ctx)
{
	const struct make *m = ctx;

	for (size_t i = 0; i < ELEMS; i++)
		m->to[i] = gradient(m->rank, m->step, i);
}

static int device_open(struct device_rank *d, const struct job *job, struct gf_comm *comm,
		       struct gf_error *err)
{
	unsigned char id[GF_NCCL_ID_BYTES] = {0};
	const struct gf_gpu_ops *ops = d->gpu->ops;

	ops->stream_new(d->gpu, false, &d->compute, err);
	ops->event_new(d->gpu, false, &d->made, err);
	ops->event_new(d->gpu, false, &d->came, err);
	ops->alloc(d->gpu, ELEMS * sizeof(float), &d->grads, err);
	ops->alloc(d->gpu, ELEMS * sizeof(float), &d->residual, err);
	ops->alloc(d->gpu, sizeof(uint32_t), &d->flag, err);
	ops->zero(d->gpu, d->compute, d->residual, ELEMS * sizeof(float), err);
	d->lane.gpu = d->gpu;
	d->lane.nccl = fake_nccl();
	d->lane.timeout_s = TEST_PATIENCE_S;
	if (comm->rank == 0)
		d->lane.nccl->unique_id(id, err);
	gf_comm_bcast(comm, 0, id, sizeof(id), err);
	return gf_lane_open(&d->lane, id, comm->ranks, comm->rank, (struct gf_nccl_blocks){0},
			    err) ||
	       gf_lane_meet(&d->lane, err) ||
	       gf_sparse_gpu_new(
		       &(struct gf_sparse_gpu_config){
			       .gpu = d->gpu,
			       .residual = d->residual,
			       .count_elems = ELEMS,
			       .merges = cases[job->c].merges,
			       .putback = cases[job->c].putback,
			       .ranks = comm->ranks,
			       .rank = comm->rank,
			       .most_k = MOST_K,
		       },
		       &d->n, err) ||
	       gf_lane_prepare(&d->lane, gf_sparse_gpu_program(d->n), err) ||
	       gf_lane_reserve(&d->lane, err);
}

static int device_step(struct device_rank *d, struct job *job, int rank, int step,
		       struct gf_error *err)
{
	const struct gf_gpu_ops *ops = d->gpu->ops;
	struct make make = {d->grads, rank, step};
	const uint32_t skip = job->skip == step + 1;
	struct gf_work way = {0};
	int rc;

	ops->zero(d->gpu, d->compute, d->flag, sizeof(uint32_t), err);
	fake_enqueue_copy(d->compute, make_gradients, &make, sizeof(make));
	ops->record(d->gpu, d->made, d->compute, err);
	ops->wait(d->gpu, d->lane.stream, d->made, err);
	gf_sparse_gpu_work(d->n, &way);
	rc = gf_sparse_gpu_prepare(d->n, d->grads, ks[step], d->lane.stream, err);
	rc = rc ? rc : gf_lane_run(&d->lane, gf_sparse_gpu_program(d->n), way.data, err);
	rc = rc ? rc : gf_sparse_gpu_finish(d->n, d->lane.stream, err);
	if (rc)
		return rc;
	ops->record(d->gpu, d->came, d->lane.stream, err);
	ops->wait(d->gpu, d->compute, d->came, err);
	gf_sparse_gpu_look(d->n, d->compute, d->flag);
	ops->copy(d->gpu, d->compute, &job->flags[rank][step], d->flag, sizeof(uint32_t),
		  GF_GPU_TO_HOST, err);
	ops->copy(d->gpu, d->compute, d->flag, &skip, sizeof(skip), GF_GPU_TO_DEVICE, err);
	rc = gf_sparse_gpu_apply(d->n, d->compute, job->skip ? d->flag : NULL, err);
	ops->copy(d->gpu, d->compute, job->sums[rank] + step * ELEMS, d->grads,
		  ELEMS * sizeof(float), GF_GPU_TO_HOST, err);
	ops->copy(d->gpu, d->compute, job->residuals[rank] + step * ELEMS, d->residual,
		  ELEMS * sizeof(float), GF_GPU_TO_HOST, err);
	/* `skip` is this frame's */
	return rc ? rc : ops->stream_sync(d->gpu, d->compute, err);
}

static void body(struct gf_comm *comm, void *ctx)
{
	struct job *job = ctx;
	struct device_rank d = {.gpu = fake_gpu(job->world, comm->rank)};
	struct gf_error *err = &job->errors[comm->rank];
	int rc, step;

	fake_be(job->world, comm->rank);
	rc = device_open(&d, job, comm, err);
	for (step = 0; step < STEPS && !rc; step++)
		rc = device_step(&d, job, comm->rank, step, err);
	job->rcs[comm->rank] = rc;
	gf_sparse_gpu_free(d.n);
	gf_lane_close(&d.lane);
}

/* All NaNs are equal here. */
static size_t differs(const float *want, const float *got)
{
	size_t i;

	for (i = 0; i < ELEMS; i++)
		if (memcmp(&want[i], &got[i], sizeof(float)) != 0 &&
		    !(isnan(want[i]) && isnan(got[i])))
			break;
	return i;
}

static void check_step(const struct job *job, const struct host_rank *all, int ranks, int step)
{
	for (int r = 0; r < ranks; r++) {
		const float *sum = job->sums[r] + step * ELEMS;
		const float *residual = job->residuals[r] + step * ELEMS;
		const bool bad = gf_sparse_bad(&all[r].m) < ELEMS;
		const size_t at = differs(all[r].sum, sum);
		const size_t left = differs(all[r].residual, residual);

		EXPECT(!job->rcs[r], "rank %d: %s", r, job->errors[r].text);
		EXPECT(at == ELEMS && left == ELEMS,
		       "%s, %d ranks, step %d, rank %d: sum differs at %zu, residual at %zu",
		       cases[job->c].name, ranks, step, r, at, left);
		EXPECT((job->flags[r][step] != 0) == bad,
		       "%s, %d ranks, step %d, rank %d: bad %d, flag %u", cases[job->c].name, ranks,
		       step, r, bad, job->flags[r][step]);
	}
}

static void run(size_t c, int ranks, int skip)
{
	static const struct fake_faults none;
	struct job job = {.c = c, .skip = skip};
	struct host_rank *all = host_new(c, ranks);
	int r, step;

	job.world = fake_world_new(ranks, 1, (unsigned)ranks, &none);
	for (r = 0; r < ranks; r++) {
		job.sums[r] = gf_xcalloc(STEPS * ELEMS, sizeof(float));
		job.residuals[r] = gf_xcalloc(STEPS * ELEMS, sizeof(float));
	}
	on_ranks(ranks, body, &job);
	for (step = 0; step < STEPS; step++) {
		host_step(all, ranks, step, skip == step + 1);
		check_step(&job, all, ranks, step);
	}
	EXPECT(!fake_world_complaint(job.world), "%s", fake_world_complaint(job.world));
	for (r = 0; r < ranks; r++) {
		free(job.sums[r]);
		free(job.residuals[r]);
	}
	fake_world_free(job.world);
	host_free(all, ranks);
}

static void test_too_many(void)
{
	struct gf_sparse_gpu_config config = {
		.merges = true, .count_elems = 0x100000000u, .ranks = 2, .most_k = 1};
	struct gf_sparse_gpu *n;
	struct gf_error err = {""};

	EXPECT(gf_sparse_gpu_new(&config, &n, &err) == -EINVAL &&
		       strstr(err.text, "got 4294967296"),
	       "%s", err.text);
}

int main(void)
{
	watchdog(240);
	for (size_t c = 0; c < GF_ARRAY_LENGTH(cases); c++)
		for (size_t r = 0; r < GF_ARRAY_LENGTH(nranks); r++) {
			run(c, nranks[r], 0);
			run(c, nranks[r], 3);
		}
	test_too_many();
	return TEST_END();
}
