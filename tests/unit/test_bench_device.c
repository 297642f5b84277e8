/* SPDX-License-Identifier: BSD-3-Clause */
#include "ranks.h"

#include <errno.h>

#include "../gpu/fake.h"
#include "base/array.h"
#include "profiler/contest/exact.h"
#include "profiler/contest/row_report.h"
#include "profiler/contest/size_sweep.h"

/*
 * The all-reduce of messages that lie on GPUs, on devices that do in any order what streams and
 * events leave open (tests/gpu/fake.h): sums are exact, what is spoilt is found, and what cannot be
 * is refused in words.
 */
struct job {
	struct fake_world *world;
	bool by_host;
	int lanes;
	size_t spoil, wrong;
	double density;
	const char *codec;
	const char *const *algorithms;
	enum gf_dtype dtype;
	enum gf_op op;
	enum gf_coll_half collective;
	const char *refusal; /* NULL: it runs */
	const char *suits;   /* why by the host, though there is NCCL */
	char algorithms_run[256];
};

static struct gf_contest_allreduce_config config_of(const struct job *job, struct gf_comm *c)
{
	struct gf_contest_allreduce_config config = {
		.comm = c,
		.collective = job->collective,
		.lanes = job->lanes,
		.warmup = 1,
		.repeats = 2,
		.checks = 1,
		.spoil = job->spoil,
		.timeout_s = TEST_PATIENCE_S,
		.device = {.gpu = fake_gpu(job->world, c->rank),
			   .nccl = job->by_host && !job->suits ? NULL : fake_nccl()},
	};
	struct gf_error err = {""};

	fake_be(job->world, c->rank);
	EXPECT(gf_contest_element(job->dtype, job->op, job->codec, &config.element, &err) == 0,
	       "%s", err.text);
	if (job->suits) {
		gf_contest_device_suit(&config.device, &config.element);
		EXPECT(job->by_host == !config.device.nccl, "the way");
		EXPECT(strstr(config.device.why, job->suits), "%s", config.device.why);
	}
	return config;
}

static void sweep_on(struct gf_comm *c, void *ctx)
{
	struct job *job = ctx;
	struct gf_contest_allreduce_config config = config_of(job, c);
	struct gf_contest_sweep sweep = {.min_bytes = 10,
					 .max_bytes = 100000,
					 .step_factor = 100,
					 .algorithms = job->algorithms,
					 .density = job->density};
	struct gf_contest_rows rows = {0};
	struct gf_text remarks = {0}, names = {0}, table = {0};
	struct gf_error err = {""};
	struct gf_contest_report report = {.config = &config};
	size_t i;
	int rc = gf_contest_sweep_run(&sweep, &config, NULL, &rows, &remarks, &err);

	if (job->refusal) {
		EXPECT(rc == -ENOTSUP && strstr(err.text, job->refusal), "%d: %s", rc, err.text);
		gf_text_release(&remarks);
		return;
	}
	EXPECT(rc == 0, "%s", err.text);
	report.rows = rows.list;
	report.nrows = rows.count;
	for (i = 0; i < rows.count && rc == 0; i++) {
		if (rows.list[i].count_elems == rows.list[0].count_elems)
			gf_text_addf(&names, "%s%s", i ? " " : "",
				     rows.list[i].way.algorithm->name);
		EXPECT(rows.list[i].reading[0].median_s > 0, "no time");
	}
	if (c->rank == 0 && rc == 0) {
		job->wrong = gf_contest_report_wrong(&report);
		snprintf(job->algorithms_run, sizeof(job->algorithms_run), "%s", names.data);
		gf_contest_report_print(&report, GF_REPORT_TABLE, 0, &table);
		EXPECT(strstr(table.data,
			      job->by_host ? "messages by the host" : "messages by NCCL"),
		       "%s", table.data);
	}
	free(rows.list);
	gf_text_release(&remarks);
	gf_text_release(&names);
	gf_text_release(&table);
}

static void run(struct job job, int ranks, const char *algorithms_run)
{
	static const struct fake_faults none = {0};

	job.world = fake_world_new(ranks, 4, 7, &none);
	on_ranks(ranks, sweep_on, &job);
	EXPECT(!fake_world_complaint(job.world), "%s", fake_world_complaint(job.world));
	EXPECT(fake_world_counts(job.world).waiting == 0, "operations are left");
	fake_world_free(job.world);
	if (job.refusal)
		return;
	EXPECT_TEXT(job.algorithms_run, algorithms_run);
	/* both placements, sizes of 10, 1000 and 100000 bytes: one or all */
	if (job.spoil == 0)
		EXPECT(job.wrong == 0, "%zu wrong", job.wrong);
	else
		EXPECT(job.wrong > 0, "nothing was found");
}

static const char *const all[] = {"all", NULL};
static const char *const chosen[] = {"auto", "ring", NULL};
static const char *const by_ring[] = {"ring", NULL};
static const char *const sparse[] = {"gtopk", NULL};
static const char *const both[] = {"gtopk", "gather", NULL};

static void test_runs(void)
{
	char every[256] = "", halves[256] = "";
	const struct {
		struct job job;
		int ranks;
		const char *run;
	} cases[] = {
		{{.lanes = 1, .algorithms = all}, 4, every},
		{{.lanes = 3, .algorithms = chosen}, 4, "library ring"},
		{{.lanes = 1, .algorithms = chosen}, 1, "library ring"},
		{{.lanes = 1, .algorithms = all, .collective = GF_COLL_REDUCE_SCATTER}, 4, halves},
		{{.lanes = 1, .algorithms = all, .collective = GF_COLL_ALL_GATHER}, 3, halves},
		{{.lanes = 3, .algorithms = chosen, .collective = GF_COLL_REDUCE_SCATTER},
		 3,
		 "library ring"},
		{{.lanes = 2, .algorithms = chosen, .collective = GF_COLL_ALL_GATHER},
		 4,
		 "library ring"},
		{{.lanes = 1,
		  .algorithms = by_ring,
		  .collective = GF_COLL_ALL_GATHER,
		  .codec = "q8"},
		 3,
		 "ring"},
		{{.lanes = 1,
		  .algorithms = by_ring,
		  .collective = GF_COLL_REDUCE_SCATTER,
		  .spoil = 3},
		 2,
		 "ring"},
		{{.lanes = 1,
		  .algorithms = by_ring,
		  .collective = GF_COLL_ALL_GATHER,
		  .by_host = true},
		 4,
		 "ring"},
		{{.lanes = 2, .algorithms = by_ring, .codec = "f16"}, 3, "ring"},
		{{.lanes = 1, .algorithms = by_ring, .spoil = 3}, 2, "ring"},
		{{.lanes = 1, .algorithms = by_ring, .by_host = true}, 4, "ring"},
		{{.lanes = 2, .algorithms = by_ring, .by_host = true, .op = GF_OP_MAX}, 3, "ring"},
		{{.lanes = 1, .algorithms = by_ring, .by_host = true, .spoil = 1}, 2, "ring"},
		/* what NCCL does not add here */
		{{.lanes = 1,
		  .algorithms = by_ring,
		  .by_host = true,
		  .dtype = GF_BF16,
		  .suits = "adds f32, got sum of bf16"},
		 2,
		 "ring"},
		{{.lanes = 1,
		  .algorithms = by_ring,
		  .by_host = true,
		  .op = GF_OP_AVG,
		  .suits = "adds f32, got avg of f32"},
		 3,
		 "ring"},
		{{.lanes = 1, .algorithms = by_ring, .suits = ""}, 2, "ring"},
		/* 5 elements of 2 bytes: messages end within words */
		{{.lanes = 3, .algorithms = by_ring, .by_host = true, .dtype = GF_F16}, 2, "ring"},
		{{.lanes = 1,
		  .algorithms = by_ring,
		  .by_host = true,
		  .dtype = GF_BF16,
		  .op = GF_OP_AVG},
		 4,
		 "ring"},
		{{.lanes = 2,
		  .algorithms = by_ring,
		  .by_host = true,
		  .dtype = GF_F64,
		  .op = GF_OP_MIN},
		 3,
		 "ring"},
		{{.lanes = 1,
		  .algorithms = by_ring,
		  .by_host = true,
		  .dtype = GF_I32,
		  .op = GF_OP_PROD},
		 2,
		 "ring"},
		{{.lanes = 2, .algorithms = by_ring, .by_host = true, .dtype = GF_F16, .spoil = 1},
		 2,
		 "ring"},
		{{.lanes = 1, .algorithms = sparse, .by_host = true, .density = 0.01}, 4, "gtopk"},
		{{.lanes = 1, .algorithms = both, .density = 0.01}, 5, "gtopk gather"},
		{{.lanes = 1, .algorithms = both, .density = 0.5}, 2, "gtopk gather"},
		{{.lanes = 1, .algorithms = sparse, .density = 0.01, .spoil = 2}, 4, "gtopk"},
	};
	size_t i;

	for (i = 0; gf_algorithms[i]; i++) {
		sprintf(every + strlen(every), "%s%s", i ? " " : "", gf_algorithms[i]->name);
		if (gf_algorithms[i]->owned || !gf_algorithms[i]->build)
			sprintf(halves + strlen(halves), "%s%s", *halves ? " " : "",
				gf_algorithms[i]->name);
	}
	for (i = 0; i < GF_ARRAY_LENGTH(cases); i++)
		run(cases[i].job, cases[i].ranks, cases[i].run);
}

static void test_refused(void)
{
	run((struct job){.lanes = 1,
			 .algorithms = by_ring,
			 .op = GF_OP_MAX,
			 .refusal = "between GPUs this build adds f32, got max of f32"},
	    2, NULL);
}

static void test_names(void)
{
	static const struct {
		const char *name, *want; /* NULL: taken */
	} cases[] = {
		{"cpu", NULL},     {"cuda", NULL},      {"cuda:3", NULL},
		{"auto", NULL},    {NULL, NULL},        {"gpu", "want cpu, cuda, cuda:N or auto"},
		{"cuda:", "want"}, {"cuda:-1", "want"}, {"cuda:x", "want"}};
	size_t i;

	for (i = 0; i < GF_ARRAY_LENGTH(cases); i++) {
		struct gf_contest_device d = {.name = cases[i].name};
		struct gf_error err = {""};
		int rc = gf_contest_device_check(&d, &err);

		EXPECT(rc == (cases[i].want ? -EINVAL : 0), "%s", cases[i].name);
		EXPECT(!cases[i].want || strstr(err.text, cases[i].want), "%s", err.text);
	}
}

int main(void)
{
	watchdog(240);
	test_names();
	test_runs();
	test_refused();
	return TEST_END();
}
