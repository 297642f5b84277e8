/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Whole training runs on devices that do in any order what streams and events
 * leave open (tests/gpu/fake.h), by a backend with the reference backend's
 * arithmetic (tests/gpu/fake_net.h): gradients staged to the host come to the
 * same bits as a run on the host, down to the checkpoints' files.
 */
#include <math.h>

#include "../gpu/fake.h"
#include "../gpu/fake_net.h"
#include "ckpt/safetensors.h"
#include "train_run.h"

static char folder[] = "/tmp/test_train_device.XXXXXX";

/* A net whose passes draw random numbers, too. */
#define DROPPING                                                               \
	"{\"format\": \"gf-model\", \"version\": 1, \"name\": \"dropping\","   \
	" \"input\": [1, 2, 3], \"classes\": 4, \"layers\": ["                 \
	"{\"name\": \"fc1\", \"type\": \"fc\", \"outputs\": 9},"               \
	"{\"name\": \"drop1\", \"type\": \"dropout\", \"rate\": 0.25},"        \
	"{\"name\": \"fc2\", \"type\": \"fc\", \"outputs\": 4}]}"

/* One world at a time: all ranks are threads of this process. */
static struct fake_world *world;

static void enter(struct gf_comm *comm, struct gf_train_config *config)
{
	struct gf_error err = {""};

	config->gpu = fake_gpu(world, comm->rank);
	config->backend = &fake_backend;
	EXPECT(!config->gpu->ops->stream_new(config->gpu, false,
					     &config->stream, &err),
	       "%s", err.text);
	fake_net_on(config->gpu, config->stream);
}

/* A GPU each, and NCCL between them. */
static void enter_nccl(struct gf_comm *comm, struct gf_train_config *config)
{
	enter(comm, config);
	config->nccl = fake_nccl();
	fake_be(world, comm->rank);
}

static void leave(struct gf_comm *comm, struct gf_train_config *config)
{
	(void)comm;
	config->gpu->ops->stream_free(config->gpu, config->stream);
}

static size_t syncs, launches; /* of the last run */
static uint64_t to_host_bytes;

static void train_with(struct train_run *run, unsigned seed, bool nccl,
		       const struct fake_faults *faults)
{
	world = fake_world_new(run->ranks, 4, seed, faults);
	run->enter = nccl ? enter_nccl : enter;
	run->leave = leave;
	train(run);
	EXPECT(fake_world_waiting(world) == 0, "%zu operations remain",
	       fake_world_waiting(world));
	EXPECT(fake_world_pinned(world) == 0, "%zu ranges stay pinned",
	       fake_world_pinned(world));
	EXPECT(fake_world_comms(world) == 0, "%zu communicators remain",
	       fake_world_comms(world));
	EXPECT(!fake_world_complaint(world), "%s", fake_world_complaint(world));
	syncs = fake_world_syncs(world);
	to_host_bytes = fake_world_to_host_bytes(world);
	launches = fake_world_launches(world);
	fake_world_free(world);
	run->enter = NULL;
	run->leave = NULL;
}

static void train_on_devices(struct train_run *run, unsigned seed, bool nccl)
{
	/* what is staged may share a GPU */
	const struct fake_faults faults = {.one_gpu = !nccl};

	train_with(run, seed, nccl, &faults);
}

static const struct {
	const char *label, *model;
	int ranks;
	const char *optimizer;
	size_t accumulate;
	int staleness;
	const char *codec;
	double clip_norm, scale; /* 0: the default */
	struct gf_selection selection;
} cases[] = {
	{"plain", MLP, 2, "sgd"},
	{"alone", NORMED, 1, "sgd"},
	{"normed", NORMED, 3, "nesterov"},
	{"dropping", DROPPING, 2, "sgd"},
	{"lars", NORMED, 2, "lars", .clip_norm = .05},
	{"accumulate", MLP, 3, "sgd", 2},
	{"many batches", DROPPING, 2, "nesterov", 3, .clip_norm = .2},
	{"scaled", MLP, 2, "sgd", .codec = "f16"},
	{"q8", MLP, 4, "sgd", .codec = "q8"},
	{"stale", NORMED, 2, "sgd", .staleness = 3},
	{"csc", MLP, 3, "sgd",
	 .selection = {.method = GF_SELECT_CSC,
		       .chunk_elems = 13,
		       .keep = .2,
		       .decay = 1}},
	/* chunks of several tensors, and tensors of several chunks; the
	 * momentum of each waits with it */
	{"csc-ramp", NORMED, 2, "nesterov",
	 .selection = {.method = GF_SELECT_CSC,
		       .chunk_elems = 5,
		       .keep = .1,
		       .warmup_steps = 8,
		       .decay = NAN}},
	{"csc-alone", MLP, 1, "sgd", 2,
	 .selection = {.method = GF_SELECT_CSC,
		       .chunk_elems = 7,
		       .keep = .3,
		       .decay = .5}},
	{"csc-stale", MLP, 4, "sgd", .staleness = 2,
	 .selection = {.method = GF_SELECT_CSC,
		       .chunk_elems = 13,
		       .keep = .2,
		       .decay = 1}},
	{"csc-staler", NORMED, 3, "nesterov", .staleness = 3,
	 .selection = {.method = GF_SELECT_CSC,
		       .chunk_elems = 4,
		       .keep = .1,
		       .warmup_steps = 6,
		       .decay = NAN}},
	/* scaled on the way, and the scale falls */
	{"csc-scaled", MLP, 2, "sgd", .codec = "f16", .scale = 0x1p24,
	 .selection = {.method = GF_SELECT_CSC,
		       .chunk_elems = 13,
		       .keep = .2,
		       .decay = 1}},
	{"csc-stale-scaled", MLP, 2, "sgd", .codec = "f16", .scale = 0x1p24,
	 .staleness = 2,
	 .selection = {.method = GF_SELECT_CSC,
		       .chunk_elems = 13,
		       .keep = .2,
		       .decay = 1}},
	/* all of it, in every step */
	{"csc-all", MLP, 2, "sgd",
	 .selection = {.method = GF_SELECT_CSC,
		       .chunk_elems = 13,
		       .keep = 1,
		       .decay = 1}},
	/* LARS looks at tensors of which some waits: on the host */
	{"csc-lars", NORMED, 2, "lars", .clip_norm = .05,
	 .selection = {.method = GF_SELECT_CSC,
		       .chunk_elems = 13,
		       .keep = .2,
		       .decay = 1}},
	{"topk", MLP, 2, "sgd",
	 .selection = {.method = GF_SELECT_TOPK, .density = .05}},
	{"topk-nesterov", NORMED, 3, "nesterov",
	 .selection = {.method = GF_SELECT_TOPK,
		       .density = .02,
		       .warmup_densities = (double[]){.5, .1},
		       .nwarmup = 2}},
	{"gtopk", MLP, 4, "sgd",
	 .selection = {.method = GF_SELECT_GTOPK, .density = .05}},
	{"gtopk-alone", MLP, 1, "sgd",
	 .selection = {.method = GF_SELECT_GTOPK, .density = .05}},
	/* merged at inner nodes of the tree, and where partners are missing */
	{"gtopk-conserve", MLP, 6, "nesterov",
	 .selection = {.method = GF_SELECT_GTOPK,
		       .putback = GF_PUTBACK_CONSERVE,
		       .density = .1}},
	{"gtopk-naive", NORMED, 3, "sgd",
	 .selection = {.method = GF_SELECT_GTOPK,
		       .putback = GF_PUTBACK_NAIVE,
		       .density = .1}},
	{"topk-accumulate", MLP, 2, "sgd", 2,
	 .selection = {.method = GF_SELECT_TOPK, .density = .05}},
	/* norms are added up there as here, on this device */
	{"gtopk-clipped", MLP, 2, "sgd", .clip_norm = .05,
	 .selection = {.method = GF_SELECT_GTOPK, .density = .05}},
	{"topk-lars", NORMED, 2, "lars",
	 .selection = {.method = GF_SELECT_TOPK, .density = .1}},
	/* a residual waits for what comes back of the step before */
	{"topk-stale", MLP, 2, "nesterov", .staleness = 2,
	 .selection = {.method = GF_SELECT_TOPK, .density = .05}},
	{"gtopk-stale", MLP, 4, "sgd", .staleness = 2,
	 .selection = {.method = GF_SELECT_GTOPK, .density = .05}},
	{"gtopk-staler", NORMED, 3, "nesterov", 2, .staleness = 4,
	 .selection = {.method = GF_SELECT_GTOPK,
		       .putback = GF_PUTBACK_CONSERVE,
		       .density = .1}},
};

static struct train_run run_of(size_t i)
{
	size_t accumulate = cases[i].accumulate ? cases[i].accumulate : 1;
	struct train_run run =
		train_defaults(cases[i].model, cases[i].ranks,
			       12 / (size_t)cases[i].ranks / accumulate);

	run.config.training.optimizer = (char *)cases[i].optimizer;
	run.config.training.accumulate = accumulate;
	run.config.training.clip_norm = cases[i].clip_norm;
	if (cases[i].scale > 0) {
		run.config.training.scale = cases[i].scale;
		run.config.training.growth_steps = 4;
	}
	run.config.check_every = 3;
	run.staleness = cases[i].staleness;
	run.codec = cases[i].codec;
	run.selection = cases[i].selection;
	return run;
}

static void test_same_bits(void)
{
	size_t i;
	int r;

	for (i = 0; i < GF_ARRAY_LENGTH(cases); i++) {
		struct train_run run = run_of(i);
		struct gf_train_row host;
		char *want, *got;

		want = gf_xasprintf("%s/%s", folder, cases[i].label);
		got = gf_xasprintf("%s-device", want);
		run.config.checkpoint = want;
		train(&run);
		EXPECT(run.rc == 0 && run.last_step == 20, "%s: %s",
		       cases[i].label, run.err.text);
		host = run.test;

		/* stopped in the middle of an epoch, too */
		run.config.checkpoint = got;
		run.config.steps = 7;
		train_on_devices(&run, (unsigned)i + 1, false);
		EXPECT(run.rc == 0 && run.last_step == 7, "%s: %s",
		       cases[i].label, run.err.text);
		run.config.steps = 0;
		run.config.resume = true;
		train_on_devices(&run, (unsigned)i + 100, false);
		EXPECT(run.rc == 0 && run.last_step == 20, "%s: %s",
		       cases[i].label, run.err.text);
		EXPECT(run.test.correct == host.correct &&
			       run.test.loss == host.loss,
		       "%s: want %zu, %g, got %zu, %g", cases[i].label,
		       host.correct, host.loss, run.test.correct,
		       run.test.loss);
		for (r = 0; r < cases[i].ranks; r++)
			same_file(want, got, 20, r, cases[i].label);
		free(want);
		free(got);
	}
}

/* Rank 0's checkpoints, number by number. */
static void near_file(const char *a, const char *b, double tolerance,
		      const char *label)
{
	char *p = gf_ckpt_part(a, 20, 0, false);
	char *q = gf_ckpt_part(b, 20, 0, false);
	struct gf_safetensors want = {0}, got = {0};
	struct gf_error err = {""};
	float x[256], y[256];
	size_t i, k, compared = 0;

	EXPECT(!gf_safetensors_open(p, &want, &err) &&
		       !gf_safetensors_open(q, &got, &err),
	       "%s", err.text);
	EXPECT(want.ntensors == got.ntensors, "%zu, %zu", want.ntensors,
	       got.ntensors);
	for (i = 0; i < want.ntensors; i++) {
		const struct gf_stored_tensor *t = &want.tensors[i];

		if (strcmp(t->dtype, "F32") != 0 || t->count_elems > 256)
			continue;
		EXPECT(!gf_safetensors_load(&want, t->name, "F32",
					    t->count_elems, x, &err) &&
			       !gf_safetensors_load(&got, t->name, "F32",
						    t->count_elems, y, &err),
		       "%s", err.text);
		for (k = 0; k < t->count_elems; k++, compared++)
			EXPECT_NEAR((double)y[k], (double)x[k], tolerance,
				    "%s: %s[%zu]", label, t->name, k);
	}
	EXPECT(compared > 200, "%zu numbers", compared);
	gf_safetensors_close(&want);
	gf_safetensors_close(&got);
	free(p);
	free(q);
}

/* A norm to clip at is added up over all that came, not chunk by chunk. */
static void test_clipped_chunks(void)
{
	static const struct {
		const char *optimizer;
		int staleness;
		double scale;
	} clipped[] = {{"sgd", 1, 0}, {"nesterov", 2, 0}, {"sgd", 1, 0x1p20}};
	size_t i;

	for (i = 0; i < GF_ARRAY_LENGTH(clipped); i++) {
		struct train_run run = train_defaults(NORMED, 3, 4);
		char *want = gf_xasprintf("%s/clipped-%zu", folder, i);
		char *got = gf_xasprintf("%s-device", want);

		run.selection = (struct gf_selection){.method = GF_SELECT_CSC,
						      .chunk_elems = 13,
						      .keep = .3,
						      .decay = 1};
		run.config.training.optimizer = (char *)clipped[i].optimizer;
		run.config.training.clip_norm = .05;
		run.staleness = clipped[i].staleness;
		if (clipped[i].scale > 0) {
			run.codec = "f16";
			run.config.training.scale = clipped[i].scale;
		}
		run.config.check_every = 3;
		run.config.checkpoint = want;
		train(&run);
		EXPECT(run.rc == 0, "%zu: %s", i, run.err.text);
		run.config.checkpoint = got;
		train_on_devices(&run, (unsigned)i + 7, false);
		EXPECT(run.rc == 0 && run.last_step == 20, "%zu: %s", i,
		       run.err.text);
		near_file(want, got, 1e-6, "clipped");
		free(want);
		free(got);
	}
}

static const struct gf_selection divergent[] = {
	{.method = GF_SELECT_DENSE},
	{.method = GF_SELECT_TOPK, .density = .05},
	{.method = GF_SELECT_GTOPK, .density = .2},
	{.method = GF_SELECT_CSC, .chunk_elems = 4, .keep = .1, .decay = 1},
};

/* Ends alike everywhere, in the words of a run on the host. */
static void test_divergence(void)
{
	size_t i;

	for (i = 0; i < 2 * GF_ARRAY_LENGTH(divergent); i++) {
		struct train_run run = train_defaults(MLP, 3, 4);
		struct gf_error host;

		run.selection = divergent[i % GF_ARRAY_LENGTH(divergent)];
		run.staleness = 1 + (int)(i / GF_ARRAY_LENGTH(divergent));
		run.config.training.rate = 1e9;
		run.config.training.warmup_epochs = 0;
		train(&run);
		host = run.err;
		EXPECT(run.rc == 1, "got %d", run.rc);
		train_on_devices(&run, 3, false);
		EXPECT(run.rc == 1, "got %d", run.rc);
		EXPECT_TEXT(run.err.text, host.text);
	}
}

/* What is selected there alone comes to the host, step after step: k indices
 * and values for a message, and the loss. */
static void test_traffic(void)
{
	/* in 5 steps; fc1: 54 and 9, fc2: 36 and 4 */
	static const struct {
		struct gf_selection selection;
		size_t least, most;
		int staleness;
	} traffic[] = {
		{{.method = GF_SELECT_DENSE}, 5 * 103 * 4, SIZE_MAX},
		{{.method = GF_SELECT_TOPK, .density = .001},
		 5 * 8,
		 5 * 4 * 8 + 5 * 64},
		{{.method = GF_SELECT_GTOPK, .density = .001},
		 5 * 8,
		 5 * 4 * 8 + 5 * 64},
		{{.method = GF_SELECT_GTOPK, .density = .001},
		 5 * 8,
		 5 * 4 * 8 + 5 * 64,
		 2},
		/* 2 of 15 chunks, the norms of all */
		{{.method = GF_SELECT_CSC,
		  .chunk_elems = 7,
		  .keep = .1,
		  .decay = 1},
		 5 * 15 * 8,
		 5 * (2 * 7 * 4 + 15 * 8) + 5 * 64},
		{{.method = GF_SELECT_CSC,
		  .chunk_elems = 7,
		  .keep = .1,
		  .decay = 1},
		 5 * 15 * 8,
		 5 * (2 * 7 * 4 + 15 * 8) + 5 * 64,
		 2},
	};
	uint64_t few;
	size_t i;

	for (i = 0; i < GF_ARRAY_LENGTH(traffic); i++) {
		struct train_run run = train_defaults(MLP, 1, 6);

		run.selection = traffic[i].selection;
		run.staleness = traffic[i].staleness;
		run.config.steps = 2;
		train_on_devices(&run, 1, false);
		few = to_host_bytes;
		run.config.steps = 7;
		train_on_devices(&run, 2, false);
		EXPECT(run.rc == 0 && run.last_step == 7, "%s", run.err.text);
		EXPECT(to_host_bytes - few >= traffic[i].least &&
			       to_host_bytes - few <= traffic[i].most,
		       "selection %d: want %zu to %zu bytes, got %zu",
		       (int)traffic[i].selection.method, traffic[i].least,
		       traffic[i].most, (size_t)(to_host_bytes - few));
	}
}

/* --- NCCL ------------------------------------------------------------------
 */

/* Sums over ranks, and LARS's norms, are taken in another order. */
#define NCCL_TOLERANCE 2e-6

static const struct {
	const char *label, *model;
	int ranks;
	const char *optimizer;
	int lanes;
	const char *codec;
	double scale; /* 0: the default */
	double tolerance, clip_norm;
	size_t accumulate;
	int staleness;
	size_t warmup_steps;
	struct gf_selection selection; /* all bits are the host's */
} nccl_cases[] = {
	{"alone", NORMED, 1, "sgd"},
	{"plain", MLP, 2, "sgd"},
	{"lanes", NORMED, 3, "nesterov", 3, .tolerance = NCCL_TOLERANCE},
	{"dropping", DROPPING, 4, "sgd", 2, .tolerance = NCCL_TOLERANCE},
	{"lars", NORMED, 2, "lars", .tolerance = NCCL_TOLERANCE},
	/* the loss scale falls and grows */
	{"scaled", MLP, 2, "sgd", 1, "f16", 0x1p24, .tolerance = 1e-3},
	{"q8", MLP, 4, "sgd", 1, "q8", .tolerance = 1e-2},
	{"clipped", NORMED, 1, "nesterov", .clip_norm = .3},
	{"clipped lars", NORMED, 3, "lars", 2, .clip_norm = .05,
	 .tolerance = NCCL_TOLERANCE},
	{"accumulate", DROPPING, 1, "nesterov", .accumulate = 3},
	{"accumulate lanes", NORMED, 2, "sgd", 2, .accumulate = 2,
	 .tolerance = NCCL_TOLERANCE, .clip_norm = .2},
	{"accumulate scaled", MLP, 2, "sgd", 1, "f16", 0x1p24, .accumulate = 3,
	 .tolerance = 1e-3},
	{"clipped scaled", MLP, 2, "sgd", 1, "f16", 0x1p24, .clip_norm = .5,
	 .tolerance = 1e-3},
	{"stale", MLP, 2, "sgd", .staleness = 2},
	{"stale alone", NORMED, 1, "nesterov", .staleness = 3},
	{"stale lanes", NORMED, 3, "nesterov", 3, .staleness = 3,
	 .tolerance = NCCL_TOLERANCE},
	/* stopped while it warms up, and when the pipeline has filled again */
	{"stale warm", MLP, 2, "sgd", 2, .staleness = 3, .warmup_steps = 6},
	{"stale later", MLP, 2, "sgd", 2, .staleness = 4, .warmup_steps = 9},
	{"stale scaled", MLP, 2, "sgd", 1, "f16", 0x1p24, .tolerance = 1e-3,
	 .staleness = 2, .clip_norm = .5},
	{"stale accumulate", DROPPING, 2, "lars", 2, .accumulate = 3,
	 .staleness = 2, .tolerance = NCCL_TOLERANCE, .clip_norm = .2},
	{"topk stale", MLP, 2, "nesterov", .staleness = 2,
	 .selection = {.method = GF_SELECT_TOPK, .density = .05}},
	{"gtopk stale", MLP, 4, "sgd", 3, .staleness = 2,
	 .selection = {.method = GF_SELECT_GTOPK,
		       .density = .05,
		       .warmup_densities = (double[]){.25, .1},
		       .nwarmup = 2}},
	{"gtopk staler", NORMED, 3, "nesterov", 2, .accumulate = 2,
	 .staleness = 4, .warmup_steps = 3,
	 .selection = {.method = GF_SELECT_GTOPK,
		       .putback = GF_PUTBACK_CONSERVE,
		       .density = .1}},
	{"topk", MLP, 3, "sgd",
	 .selection = {.method = GF_SELECT_TOPK, .density = .05}},
	/* what was not sent counts in a norm as elsewhere */
	{"topk clipped", MLP, 2, "sgd", 2, .clip_norm = .05,
	 .selection = {.method = GF_SELECT_TOPK, .density = .05}},
	{"topk lars", NORMED, 2, "lars", .clip_norm = .05,
	 .selection = {.method = GF_SELECT_TOPK, .density = .1}},
	{"gtopk lars", MLP, 3, "lars", .staleness = 2,
	 .selection = {.method = GF_SELECT_GTOPK, .density = .1}},
	{"topk lanes", NORMED, 2, "nesterov", 2, .accumulate = 2,
	 .selection = {.method = GF_SELECT_TOPK, .density = .1}},
	{"gtopk", MLP, 4, "sgd",
	 .selection = {.method = GF_SELECT_GTOPK,
		       .density = .02,
		       .warmup_densities = (double[]){.25, .1},
		       .nwarmup = 2}},
	{"gtopk alone", MLP, 1, "sgd",
	 .selection = {.method = GF_SELECT_GTOPK, .density = .1}},
	{"gtopk conserve", NORMED, 3, "nesterov", 3,
	 .selection = {.method = GF_SELECT_GTOPK,
		       .putback = GF_PUTBACK_CONSERVE,
		       .density = .1}},
	{"gtopk naive", MLP, 6, "sgd",
	 .selection = {.method = GF_SELECT_GTOPK,
		       .putback = GF_PUTBACK_NAIVE,
		       .density = .05}},
};

static struct train_run nccl_run_of(size_t i)
{
	const size_t accumulate =
		nccl_cases[i].accumulate ? nccl_cases[i].accumulate : 1;
	struct train_run run =
		train_defaults(nccl_cases[i].model, nccl_cases[i].ranks,
			       12 / (size_t)nccl_cases[i].ranks / accumulate);

	run.config.training.accumulate = accumulate;
	run.config.training.optimizer = (char *)nccl_cases[i].optimizer;
	if (nccl_cases[i].scale > 0) {
		run.config.training.scale = nccl_cases[i].scale;
		run.config.training.growth_steps = 4;
	}
	run.config.check_every = 3;
	run.config.training.clip_norm = nccl_cases[i].clip_norm;
	run.codec = nccl_cases[i].codec;
	run.lanes = nccl_cases[i].lanes;
	run.staleness = nccl_cases[i].staleness;
	run.pipeline_warmup = nccl_cases[i].warmup_steps;
	run.selection = nccl_cases[i].selection;
	return run;
}

/* As a run on the host; stopped and resumed to the same bits. */
static void test_nccl(void)
{
	size_t i;
	int r;

	for (i = 0; i < GF_ARRAY_LENGTH(nccl_cases); i++) {
		struct train_run run = nccl_run_of(i);
		char *want, *got, *stopped;
		uint64_t sent_bytes, dense_bytes;

		want = gf_xasprintf("%s/nccl-%s", folder, nccl_cases[i].label);
		got = gf_xasprintf("%s-device", want);
		stopped = gf_xasprintf("%s-stopped", want);
		run.config.checkpoint = want;
		train(&run);
		EXPECT(run.rc == 0, "%s: %s", nccl_cases[i].label,
		       run.err.text);
		sent_bytes = run.sent_bytes;
		dense_bytes = run.dense_bytes;
		run.config.checkpoint = got;
		train_on_devices(&run, (unsigned)i + 1, true);
		EXPECT(run.rc == 0 && run.last_step == 20, "%s: %s",
		       nccl_cases[i].label, run.err.text);
		EXPECT((sent_bytes > 0) == (run.ranks > 1) &&
			       run.sent_bytes == sent_bytes &&
			       run.dense_bytes == dense_bytes,
		       "%s: want %zu of %zu bytes, got %zu of %zu",
		       nccl_cases[i].label, (size_t)sent_bytes,
		       (size_t)dense_bytes, (size_t)run.sent_bytes,
		       (size_t)run.dense_bytes);
		near_file(want, got, nccl_cases[i].tolerance,
			  nccl_cases[i].label);
		for (r = 0; r < nccl_cases[i].ranks; r++)
			if (nccl_cases[i].selection.method != GF_SELECT_DENSE)
				same_file(want, got, 20, r,
					  nccl_cases[i].label);

		run.config.checkpoint = stopped;
		run.config.steps = 7;
		train_on_devices(&run, (unsigned)i + 50, true);
		run.config.steps = 0;
		run.config.resume = true;
		train_on_devices(&run, (unsigned)i + 60, true);
		EXPECT(run.rc == 0 && run.last_step == 20, "%s: %s",
		       nccl_cases[i].label, run.err.text);
		for (r = 0; r < nccl_cases[i].ranks; r++)
			same_file(got, stopped, 20, r, nccl_cases[i].label);
		free(want);
		free(got);
		free(stopped);
	}
}

/* The step that diverged is named one step late, on all ranks alike; what it
 * would have changed is not. */
static void test_nccl_divergence(void)
{
	struct train_run run = train_defaults(MLP, 3, 4);
	const char *at;
	struct gf_error host;

	run.config.training.rate = 1e9;
	run.config.training.warmup_epochs = 0;
	train(&run);
	host = run.err;
	train_on_devices(&run, 5, true);
	EXPECT(run.rc == 1, "got %d", run.rc);
	at = strstr(host.text, "in step ");
	EXPECT(at && strncmp(strstr(run.err.text, "in step "), at, 9) == 0,
	       "want %s, got %s", host.text, run.err.text);
}

/* What cannot go from GPU to GPU, and what NCCL does not do: alike on all
 * ranks, with everything given back. */
static void test_nccl_refusals(void)
{
	static const struct {
		const char *text;
		int rc;
		const char *optimizer;
		bool graphs;
		struct gf_selection selection;
		struct fake_faults faults;
	} refused[] = {
		{"selection \"csc\" goes by the host", -ENOTSUP, "sgd",
		 .selection = {.method = GF_SELECT_CSC,
			       .chunk_elems = 13,
			       .keep = .2}},
		{"fake captures no graphs of what it is given", -ENOTSUP, "sgd",
		 .graphs = true, .faults = {.no_graphs = true}},
		{"both use GPU 0000:17:00.0", -EINVAL, "sgd",
		 .faults = {.one_gpu = true}},
	};
	size_t i;

	for (i = 0; i < GF_ARRAY_LENGTH(refused); i++) {
		struct train_run run = train_defaults(MLP, 2, 3);

		run.config.training.optimizer = (char *)refused[i].optimizer;
		run.config.graphs = refused[i].graphs;
		run.selection = refused[i].selection;
		train_with(&run, 1, true, &refused[i].faults);
		EXPECT(run.rc == refused[i].rc &&
			       strstr(run.err.text, refused[i].text),
		       "want %d, %s; got %d, %s", refused[i].rc,
		       refused[i].text, run.rc, run.err.text);
	}
}

/* --- graphs ----------------------------------------------------------------
 */

/* The same run, with passes enqueued anew and with captured ones: stopped,
 * where passes are captured again, and resumed. */
static void compare_graphs(struct train_run *run, const char *label, bool nccl)
{
	char *want = gf_xasprintf("%s/eager-%d-%s", folder, nccl, label);
	char *got = gf_xasprintf("%s/graphs-%d-%s", folder, nccl, label);
	int r;

	run->config.checkpoint = want;
	run->config.steps = 12;
	train_on_devices(run, 21, nccl);
	EXPECT(run->rc == 0 && launches == 0, "%s: %s, %zu launches", label,
	       run->err.text, launches);
	run->config.checkpoint = got;
	run->config.graphs = true;
	run->config.steps = 7;
	train_on_devices(run, 22, nccl);
	/* of each pass's forward and backward, which is cut; those into a third
	 * pool have hardly come round by then */
	EXPECT(run->rc == 0 && launches > (run->staleness > 2 ? 5 : 2 * 5),
	       "%s: %s, %zu launches", label, run->err.text, launches);
	run->config.steps = 12;
	run->config.resume = true;
	train_on_devices(run, 23, nccl);
	EXPECT(run->rc == 0 && run->last_step == 12, "%s: %s", label,
	       run->err.text);
	for (r = 0; r < run->ranks; r++)
		same_file(want, got, 12, r, label);
	free(want);
	free(got);
}

static void test_graphs(void)
{
	struct train_run run;
	size_t i;

	for (i = 0; i < GF_ARRAY_LENGTH(cases); i++) {
		run = run_of(i);
		compare_graphs(&run, cases[i].label, false);
	}
	for (i = 0; i < GF_ARRAY_LENGTH(nccl_cases); i++) {
		run = nccl_run_of(i);
		compare_graphs(&run, nccl_cases[i].label, true);
	}
}

struct scales {
	double last, least; /* of steps */
	bool grew;
};

static int note_scale(void *ctx, const struct gf_train_row *row,
		      struct gf_error *err)
{
	struct scales *s = ctx;

	(void)err;
	if (!(row->loss_scale > 0))
		return 0;
	s->grew |= s->last > 0 && row->loss_scale > s->last;
	s->last = row->loss_scale;
	s->least = s->least > 0 ? fmin(s->least, s->last) : s->last;
	return 0;
}

/* Nets in f16, whose loss scale begins too large, falls, and grows again: a
 * captured pass is captured anew each time, and the same steps are skipped. */
static void test_half(void)
{
	size_t i;

	for (i = 0; i < 4; i++) {
		struct train_run run =
			train_defaults(i < 2 ? MLP : NORMED, 2, i < 2 ? 6 : 3);
		const char *label = i < 2 ? "half" : "half-accumulated";
		struct scales scales = {0};

		run.config.half = true;
		/* two that are too large, then about every other one */
		run.config.training.scale = 0x1p19;
		run.config.training.growth_steps = 1;
		run.config.training.accumulate = i < 2 ? 1 : 2;
		run.config.watch.row = note_scale;
		run.config.watch.ctx = &scales;
		compare_graphs(&run, label, i % 2);
		EXPECT(scales.least < 0x1p19 && scales.grew,
		       "%s: the scale fell to %g, ends at %g", label,
		       scales.least, scales.last);
	}
}

/* Nothing in a step waits for a whole stream. */
static void test_syncs(void)
{
	static const struct {
		bool nccl;
		size_t accumulate;
		int staleness;
		struct gf_selection selection;
	} runs[] = {
		{false, 1, 1},
		{true, 1, 1},
		{false, 2, 1},
		{true, 2, 1},
		{false, 1, 1, {.method = GF_SELECT_GTOPK, .density = .1}},
		{false, 1, 2, {.method = GF_SELECT_TOPK, .density = .1}},
		{false, 2, 2, {.method = GF_SELECT_GTOPK, .density = .1}},
		{true, 1, 3},
		{true, 2, 2},
		{true, 1, 2, {.method = GF_SELECT_GTOPK, .density = .1}},
		{false,
		 1,
		 1,
		 {.method = GF_SELECT_CSC,
		  .chunk_elems = 7,
		  .keep = .1,
		  .decay = 1}},
		{false,
		 1,
		 2,
		 {.method = GF_SELECT_CSC,
		  .chunk_elems = 7,
		  .keep = .1,
		  .decay = 1}},
	};
	size_t few, i;

	for (i = 0; i < GF_ARRAY_LENGTH(runs); i++) {
		struct train_run run = train_defaults(NORMED, 2, 3);

		run.config.training.accumulate = runs[i].accumulate;
		run.staleness = runs[i].staleness;
		run.selection = runs[i].selection;
		run.config.steps = 2;
		train_on_devices(&run, 1, runs[i].nccl);
		few = syncs;
		run.config.steps = 9;
		train_on_devices(&run, 2, runs[i].nccl);
		EXPECT(run.rc == 0 && run.last_step == 9 && syncs == few,
		       "%zu: 2 steps: %zu, 9 steps: %zu", i, few, syncs);
	}
}

int main(void)
{
	char *command;
	int rc;

	watchdog(290);
	if (!mkdtemp(folder)) {
		perror(folder);
		return 1;
	}
	test_same_bits();
	test_clipped_chunks();
	test_divergence();
	test_traffic();
	test_nccl();
	test_nccl_divergence();
	test_nccl_refusals();
	test_graphs();
	test_half();
	test_syncs();
	command = gf_xasprintf("rm -rf %s", folder);
	rc = system(command);
	free(command);
	return rc ? 1 : TEST_END();
}
