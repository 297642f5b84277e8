/* SPDX-License-Identifier: BSD-3-Clause */
/* Shards between GPUs: what a run without shards on the host comes to. */
#include "train_device.h"

struct shard_case {
	const char *method; /* of gf_shard_plans; its place in the list is found */
	const char *model;
	int ranks;
	const char *optimizer, *algorithm;
	int lanes;
	size_t accumulate;
	double tolerance; /* of sums in another order; 0: the same bits */
	bool late;        /* messages wait for the end of backward */
	int copies;       /* 0: one */
	bool graphs;
	double clip_norm;
	const char *codec;
};

static int method_named(const char *name)
{
	int k = 0;

	while (gf_shard_plans[k] && strcmp(gf_shard_plans[k]->name, name) != 0)
		k++;
	return k;
}

static void stage(struct gf_message *m, int first, int second)
{
	const int factors[] = {first, second};
	size_t i;

	m->stages = gf_xcalloc(2, sizeof(*m->stages));
	m->nstages = 2;
	for (i = 0; i < 2; i++) {
		m->stages[i].factor = factors[i];
		m->stages[i].algorithm = gf_xstrdup("ring");
	}
}

static void shard(const struct train_run *run, struct gf_plan *plan)
{
	const struct shard_case *c = run->edit_ctx;
	const int copies = c->copies ? c->copies : 1;
	struct gf_error err = {""};
	size_t i;

	plan->shard.method = method_named(c->method);
	plan->shard.group_ranks = plan->shard.method ? plan->ranks / copies : 0;
	for (i = 0; i < plan->nmessages; i++) {
		struct gf_message *m = &plan->messages[i];

		free(m->algorithm);
		m->algorithm = gf_xstrdup(c->algorithm);
		if (c->copies)
			stage(m, plan->ranks / copies, copies);
		m->half = plan->shard.method ? GF_HALF_SPLIT : GF_HALF_ALL;
		m->mode = plan->lanes > 1 ? GF_MODE_SIMULTANEOUS : GF_MODE_NORMAL;
		m->release = c->late ? GF_RELEASE_BACKWARD_END : GF_RELEASE_READY;
	}
	gf_plan_set_types(plan);
	EXPECT(!gf_plan_check(plan, &err), "%s", err.text);
}

static struct train_run shard_run_of(const struct shard_case *c, const char *checkpoint)
{
	const size_t accumulate = c->accumulate ? c->accumulate : 1;
	struct train_run run =
		train_defaults(c->model, c->ranks, 12 / (size_t)c->ranks / accumulate);

	run.config.training.optimizer = (char *)c->optimizer;
	run.config.training.accumulate = accumulate;
	run.config.training.clip_norm = c->clip_norm;
	run.config.check_every = 3;
	run.config.checkpoint = checkpoint;
	run.config.place.graphs = c->graphs;
	run.lanes = c->lanes;
	run.codec = c->codec;
	run.edit = shard;
	run.edit_ctx = c;
	return run;
}

static void test_equal(void)
{
	static const struct shard_case shard_cases[] = {
		{"zero1", MLP, 1, "sgd", "ring"},
		{"zero1", MLP, 2, "sgd", "ring"},
		{"zero1", NORMED, 3, "nesterov", "ring", .lanes = 2},
		{"zero1", MASKED, 2, "adamw", "ring", .graphs = true},
		{"zero2", NORMED, 2, "adamw", "rhd", .accumulate = 2},
		{"zero2", DROPPING, 3, "adamw", "ring", .late = true},
		{"zero2", MLP, 4, "sgd", "direct", .accumulate = 3, .lanes = 2},
		{"zero1", MLP, 4, "nesterov", "blueconnect", .copies = 2},
		/* copies are added up in an order of NCCL's */
		{"zero2", MLP, 6, "adamw", "blueconnect", .copies = 3, .graphs = true,
		 .tolerance = NCCL_TOLERANCE},
	};
	size_t i;
	int r;

	for (i = 0; i < GF_ARRAY_LENGTH(shard_cases); i++) {
		struct shard_case none = shard_cases[i];
		char *want = gf_xasprintf("%s/want-%zu", folder, i);
		char *got = gf_xasprintf("%s/got-%zu", folder, i);
		char *stopped = gf_xasprintf("%s/stopped-%zu", folder, i);
		char *label = gf_xasprintf("case %zu (%s)", i, shard_cases[i].method);
		struct train_run run;
		struct gf_train_row host;

		none.method = "none";
		none.graphs = false;
		run = shard_run_of(&none, want);
		train(&run);
		EXPECT(run.rc == 0, "%s: %s", label, run.err.text);
		host = run.test;
		run = shard_run_of(&shard_cases[i], got);
		train_on_devices(&run, (unsigned)i + 1, true);
		EXPECT(run.rc == 0 && run.last_step == 20, "%s: %s", label, run.err.text);
		near_file(want, got, shard_cases[i].tolerance, label);
		EXPECT(shard_cases[i].tolerance > 0 || run.test.loss == host.loss,
		       "%s: loss %.17g, want %.17g", label, run.test.loss, host.loss);

		run = shard_run_of(&shard_cases[i], stopped);
		run.config.steps = 7;
		train_on_devices(&run, (unsigned)i + 50, true);
		EXPECT(run.rc == 0, "%s: %s", label, run.err.text);
		run.config.steps = 0;
		run.config.resume = true;
		train_on_devices(&run, (unsigned)i + 60, true);
		EXPECT(run.rc == 0 && run.last_step == 20, "%s: %s", label, run.err.text);
		for (r = 0; r < shard_cases[i].ranks; r++)
			same_file(got, stopped, 20, r, label);
		free(want);
		free(got);
		free(stopped);
		free(label);
	}
}

/* A rank has the optimiser's state of its own parts alone: all ranks together have one. */
static void test_memory(void)
{
	static const char *const optimizers[] = {"sgd", "adamw"};
	static const char *const methods[] = {"none", "zero1"};
	const size_t slot_bytes = 103 * sizeof(float); /* which adamw has two of, and sgd one */
	uint64_t bytes[2][2];
	size_t i, k;

	for (i = 0; i < 2; i++)
		for (k = 0; k < 2; k++) {
			const struct shard_case c = {methods[i], MLP, 4, optimizers[k], "ring"};
			struct train_run run = shard_run_of(&c, NULL);

			run.config.steps = 2;
			train_on_devices(&run, 1, true);
			EXPECT(run.rc == 0, "%s", run.err.text);
			bytes[i][k] = last.alloc_bytes;
		}
	EXPECT(bytes[0][1] - bytes[0][0] == bytes[1][1] - bytes[1][0] + 3 * slot_bytes,
	       "%zu more without shards, %zu with", (size_t)(bytes[0][1] - bytes[0][0]),
	       (size_t)(bytes[1][1] - bytes[1][0]));
}

/* A gradient of which some ranks alone know that it is infinite: all of them skip the step and
 * lower the scale, or end. */
static void test_bad(void)
{
	const struct shard_case none = {"none", MLP, 6, "sgd", "ring"};
	const struct shard_case some = {"zero2", MLP, 6, "sgd", "ring"};
	char *want = gf_xasprintf("%s/bad-want", folder);
	char *got = gf_xasprintf("%s/bad-got", folder);
	struct train_run run[2] = {shard_run_of(&none, want), shard_run_of(&some, got)};
	struct gf_error host;
	size_t i;

	for (i = 0; i < 2; i++) {
		run[i].config.half = true;
		run[i].config.training.scale = 0x1p19;
		run[i].config.training.growth_steps = 1;
		train_on_devices(&run[i], (unsigned)i + 1, true);
		EXPECT(run[i].rc == 0 && run[i].last_step == 20, "%s", run[i].err.text);
	}
	near_file(want, got, NCCL_TOLERANCE, "scaled");
	for (i = 0; i < 2; i++) {
		run[i] = shard_run_of(i ? &some : &none, NULL);
		run[i].config.training.rate = 1e9;
		run[i].config.training.warmup_epochs = 0;
		run[i].config.check_every = 0;
		train_on_devices(&run[i], (unsigned)i + 1, true);
		EXPECT(run[i].rc == 1, "%d %s", run[i].rc, run[i].err.text);
		if (!i)
			host = run[i].err;
		EXPECT_TEXT(run[i].err.text, host.text);
	}
	free(want);
	free(got);
}

static void test_refused(void)
{
	static const struct {
		struct shard_case c;
		bool nccl;
		const char *why;
	} refused[] = {
		{{"zero3", MLP, 2, "sgd", "ring"}, true, "want none of parameters, got zero3"},
		{{"zero3", MLP, 2, "sgd", "ring"}, false, "want none of parameters, got zero3"},
		{{"zero1", MLP, 2, "sgd", "ring", .codec = "f16"}, true, "got \"f16\", which --d"},
		{{"zero1", MLP, 2, "lars", "ring"}, true, "asks for no norm, got lars"},
		{{"zero2", MLP, 2, "sgd", "ring", .clip_norm = 1}, true, "no norm, got clipping"},
		{{"zero2", MLP, 2, "sgd", "ring"}, false, "want NCCL between them, or --device c"},
	};
	size_t i;

	for (i = 0; i < GF_ARRAY_LENGTH(refused); i++) {
		struct train_run run = shard_run_of(&refused[i].c, NULL);

		train_on_devices(&run, 1, refused[i].nccl);
		EXPECT(run.rc == -ENOTSUP && strstr(run.err.text, refused[i].why),
		       "want %s; got %d, %s", refused[i].why, run.rc, run.err.text);
	}
}

int main(void)
{
	watchdog(290);
	make_folder("test_train_device_shards");
	test_equal();
	test_memory();
	test_bad();
	test_refused();
	return TEST_END();
}
