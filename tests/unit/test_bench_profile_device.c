/* SPDX-License-Identifier: BSD-3-Clause */
#include "ranks.h"

#include <errno.h>
#include <math.h>

#include "../gpu/fake.h"
#include "../gpu/fake_net.h"
#include "base/array.h"
#include "profiler/whole_profile.h"
#include "shipped_model.h"

/*
 * gf-profile on GPUs whose operations take known times on a clock of their own (tests/gpu/fake.h):
 * what is put in comes out, of compute, of copies, and of messages by NCCL, and nothing of what the
 * host needs to enqueue them.
 */
static const double tolerance = 0.05;

/* Of times, which are far below 1. */
#define EXPECT_ABOUT(got, want, ...) EXPECT_NEAR((got) / (want), 1, tolerance, __VA_ARGS__)

static struct fake_costs costs = {
	.to_device = {5e-6, 1 / 20e9},
	.to_host = {6e-6, 1 / 25e9},
	.within = {2e-6, 1 / 1e12},
	.nccl = {20e-6, 1 / 5e9},
	.kernel_s = 1e-4,
	.enqueue_s = 3e-6,
};

struct job {
	struct fake_world *world;
	const struct gf_model *model;
	bool network;
	const char *const *algorithms;
	const struct gf_level *levels;
	size_t nlevels;
	bool by_host;
	struct gf_profile profile; /* rank 0's */
	char *remarks;
};

static void profile_on(struct gf_comm *c, void *ctx)
{
	struct job *job = ctx;
	struct gf_backend backend = fake_backend;
	struct gf_measure_profile config = {
		.comm = c,
		.model = job->model,
		.backend = &backend,
		.batch = 2,
		.device = {.gpu = fake_gpu(job->world, c->rank),
			   .nccl = job->by_host ? NULL : fake_nccl()},
		.warmup = 1,
		.repeats = 3,
		.threads = 1,
		.network = job->network,
		.sweep = {.algorithms = job->algorithms,
			  .min_bytes = 1024,
			  .max_bytes = 1 << 20,
			  .lanes = job->nlevels ? 2 : 1,
			  .levels = job->levels,
			  .nlevels = job->nlevels,
			  .time_s = 1e-4,
			  .budget_s = 1,
			  .timeout_s = TEST_PATIENCE_S},
	};
	struct gf_profile p = {0};
	struct gf_text remarks = {0};
	struct gf_error err = {""};

	fake_be(job->world, c->rank);
	EXPECT(gf_measure_profile(&config, &p, &remarks, &err) == 0, "%s", err.text);
	if (c->rank > 0) {
		gf_profile_release(&p);
		gf_text_release(&remarks);
		return;
	}
	job->profile = p;
	job->remarks = gf_text_take(&remarks);
}

static void run(struct job *job, int ranks)
{
	static const struct fake_faults none = {0};
	struct gf_error err = {""};

	job->world = fake_world_new(ranks, 4, 3, &none);
	fake_world_costs(job->world, &costs);
	on_ranks(ranks, profile_on, job);
	EXPECT(!fake_world_complaint(job->world), "%s", fake_world_complaint(job->world));
	fake_world_free(job->world);
	EXPECT(gf_profile_check(&job->profile, &err) == 0, "%s", err.text);
}

static void test_compute_and_copies(void)
{
	static const struct {
		const char *name;
		const struct fake_cost *cost;
	} copies[] = {{"host-to-device", &costs.to_device},
		      {"device-to-host", &costs.to_host},
		      {"within-device", &costs.within}};
	struct gf_model model = {0};
	struct job job = {.model = &model};
	const struct gf_model_profile *m;
	size_t i;

	load_model("share/models/digits-mlp.json", &model);
	run(&job, 1);
	m = job.profile.model;
	EXPECT_TEXT(m->device, "fake");
	/* forward and loss; the gradients, each shown by a kernel */
	EXPECT_ABOUT(m->forward_s, 2e-4, "forward");
	EXPECT_ABOUT(m->backward_s, 1e-4 * (double)(1 + m->ntensors), "backward");
	EXPECT_ABOUT(m->update_s, 1e-4, "update");
	EXPECT(m->overlap_slowdown == 1, "%g", m->overlap_slowdown);
	for (i = 0; i < m->ntensors; i++)
		EXPECT_ABOUT(m->tensors[i].ready_s, 1e-4 * (double)(2 + i), "tensor %zu", i);
	EXPECT(job.profile.ncopies == GF_ARRAY_LENGTH(copies), "%zu", job.profile.ncopies);
	for (i = 0; i < job.profile.ncopies; i++) {
		const struct gf_copy_cost *c = &job.profile.copies[i];

		EXPECT_TEXT(c->name, copies[i].name);
		EXPECT_ABOUT(c->alpha_s, copies[i].cost->start_s, "%s", c->name);
		EXPECT_ABOUT(c->beta_s_per_byte, copies[i].cost->per_byte_s, "%s", c->name);
		EXPECT(c->fit.npoints >= 8, "%s: %zu points", c->name, c->fit.npoints);
	}
	gf_profile_release(&job.profile);
	free(job.remarks);
	gf_model_release(&model);
}

static void test_network(void)
{
	static const char *const names[] = {"library", "ring", NULL};
	/* one call of NCCL's; 2 (p-1) groups of a p-th each */
	static const struct {
		const char *algorithm;
		double startup_s, per_byte_s;
	} want[] = {{"ring", 6 * 20e-6, 6.0 / 4 / 5e9}, {"library", 20e-6, 1 / 5e9}};
	struct job job = {.network = true, .algorithms = names};
	const struct gf_network *net;
	size_t i;

	run(&job, 4);
	net = job.profile.network;
	EXPECT(net->nallreduce == GF_ARRAY_LENGTH(want), "%zu", net->nallreduce);
	for (i = 0; i < net->nallreduce; i++) {
		const struct gf_allreduce_cost *a = &net->allreduce[i];

		EXPECT_TEXT(a->algorithm, want[i].algorithm);
		EXPECT_ABOUT(a->startup_s, want[i].startup_s, "%s", a->algorithm);
		EXPECT_ABOUT(a->per_byte_s, want[i].per_byte_s, "%s", a->algorithm);
	}
	gf_profile_release(&job.profile);
	free(job.remarks);
}

/* A round of a level is one group of NCCL's, whatever the level: here all GPUs are equally far from
 * each other. Rounds at once do not slow each other. */
static void test_levels(void)
{
	static const struct gf_level levels[] = {{.name = "nvlink", .size = 2, .link = "nvlink"},
						 {.name = "net", .size = 2, .link = "infiniband"}};
	static const char *const names[] = {"blueconnect", NULL};
	struct job job = {.network = true, .algorithms = names, .levels = levels, .nlevels = 2};
	const struct gf_network *net;
	size_t i, k;

	run(&job, 4);
	net = job.profile.network;
	EXPECT(net->nlevels == 2, "%zu levels", net->nlevels);
	for (i = 0; i < net->nlevels; i++) {
		const struct gf_level_cost *l = &net->levels[i];

		EXPECT_TEXT(l->name, levels[i].name);
		EXPECT_ABOUT(l->alpha_s, costs.nccl.start_s, "%s", l->name);
		EXPECT_ABOUT(l->beta_s_per_byte, costs.nccl.per_byte_s, "%s", l->name);
		EXPECT(l->fit.npoints >= 8, "%zu points", l->fit.npoints);
		for (k = 0; k < l->contention.nentries; k++)
			EXPECT_NEAR(l->contention.entries[k].gamma[1], 1, tolerance,
				    "contention of %s", l->name);
	}
	EXPECT(net->allreduce[0].nstages == 2, "%zu stages", net->allreduce[0].nstages);
	gf_profile_release(&job.profile);
	free(job.remarks);
}

/* Kernels beside NCCL's take 1.2 times as long: backward loses a fifth of itself to messages that
 * take about half of it. */
static void test_overlap(void)
{
	static const char *const names[] = {"library", NULL};
	struct gf_model model = {0};
	struct job job = {.model = &model, .network = true, .algorithms = names};
	const struct gf_allreduce_cost *a;
	double one_s, busy_s, lost_s;

	load_model("share/models/digits-mlp.json", &model);
	costs.beside_nccl = 1.2;
	run(&job, 2);
	costs.beside_nccl = 0;
	a = &job.profile.network->allreduce[0];
	one_s = a->startup_s + a->per_byte_s * (double)gf_model_profile_bytes(job.profile.model);
	lost_s = 0.2 * job.profile.model->backward_s;
	busy_s = one_s * fmax(2, ceil(0.5 * job.profile.model->backward_s / one_s));
	EXPECT(busy_s > lost_s, "%g s of messages", busy_s);
	EXPECT_NEAR(job.profile.model->overlap_slowdown, 1 / (1 - lost_s / busy_s), tolerance,
		    "overlap");
	EXPECT(!strstr(job.remarks ? job.remarks : "", "overlap"), "%s", job.remarks);
	gf_profile_release(&job.profile);
	free(job.remarks);

	/* by the host NCCL has no part in it */
	job.by_host = true;
	run(&job, 2);
	EXPECT_NEAR(job.profile.model->overlap_slowdown, 1, tolerance, "overlap by the host");
	gf_profile_release(&job.profile);
	free(job.remarks);
	gf_model_release(&model);
}

int main(void)
{
	watchdog(240);
	test_compute_and_copies();
	test_network();
	test_levels();
	test_overlap();
	return TEST_END();
}
