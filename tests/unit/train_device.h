/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef GF_TESTS_TRAIN_DEVICE_H
#define GF_TESTS_TRAIN_DEVICE_H

#include <math.h>

#include "../gpu/fake.h"
#include "../gpu/fake_net.h"
#include "checkpoints/safetensors.h"
#include "folder.h"
#include "selections.h"
#include "train_run.h"

/*
 * Whole training runs on devices that do in any order what streams and events leave open
 * (tests/gpu/fake.h), by a backend with the reference backend's arithmetic (tests/gpu/fake_net.h):
 * what goes by the host comes to the same bits as a run on the host, down to the checkpoints'
 * files.
 */
static char folder[64];

/* A net whose passes draw random numbers, too. */
#define DROPPING                                                                                   \
	"{\"format\": \"gf-model\", \"version\": 1, \"name\": \"dropping\","                       \
	" \"input\": [1, 2, 3], \"classes\": 4, \"layers\": ["                                     \
	"{\"name\": \"fc1\", \"type\": \"fc\", \"outputs\": 9},"                                   \
	"{\"name\": \"drop1\", \"type\": \"dropout\", \"rate\": 0.25},"                            \
	"{\"name\": \"fc2\", \"type\": \"fc\", \"outputs\": 4}]}"

/* One world at a time: all ranks are threads of this process. */
static struct fake_world *world;

static inline void enter(struct gf_comm *comm, struct gf_train_config *config)
{
	struct gf_error err = {""};

	config->place.gpu = fake_gpu(world, comm->rank);
	config->backend = &fake_backend;
	EXPECT(!config->place.gpu->ops->stream_new(config->place.gpu, false, &config->place.stream,
						   &err),
	       "%s", err.text);
}

/* A GPU each, and NCCL between them. */
static inline void enter_nccl(struct gf_comm *comm, struct gf_train_config *config)
{
	enter(comm, config);
	config->place.nccl = fake_nccl();
	fake_be(world, comm->rank);
}

static inline void leave(struct gf_comm *comm, struct gf_train_config *config)
{
	(void)comm;
	config->place.gpu->ops->stream_free(config->place.gpu, config->place.stream);
}

static struct fake_counts last; /* of the last run */

static inline void train_with(struct train_run *run, unsigned seed, bool nccl,
			      const struct fake_faults *faults)
{
	world = fake_world_new(run->ranks, 4, seed, faults);
	run->enter = nccl ? enter_nccl : enter;
	run->leave = leave;
	train(run);
	EXPECT(!fake_world_complaint(world), "%s", fake_world_complaint(world));
	last = fake_world_counts(world);
	/* parts of shards begin where they begin */
	EXPECT(last.waiting == 0 && (run->edit || last.misaligned == 0),
	       "%zu operations remain, %zu are not aligned", last.waiting, last.misaligned);
	fake_world_free(world);
	run->enter = NULL;
	run->leave = NULL;
}

static inline void train_on_devices(struct train_run *run, unsigned seed, bool nccl)
{
	/* what is staged may share a GPU */
	const struct fake_faults faults = {.one_gpu = !nccl};

	train_with(run, seed, nccl, &faults);
}

static const struct gf_period periods[] = {
	{.group_ranks = 2, .steps = 4, .fragments = 1, .outer_rate = .7, .outer_momentum = .5},
	{.group_ranks = 2,
	 .steps = 6,
	 .fragments = 2,
	 .delay = 2,
	 .mix = .5,
	 .outer_rate = .7,
	 .outer_momentum = .9},
	{.group_ranks = 1, .steps = 3, .fragments = 1, .outer_rate = 1},
};

/* By the host. */
static const struct {
	const char *label, *model;
	int ranks;
	const char *optimizer;
	size_t accumulate;
	int staleness;
	const char *codec;
	double clip_norm, scale; /* 0: the default */
	const char *selection;
	const struct gf_period *period;
} cases[] = {
	{"plain", MLP, 2, "sgd"},
	{"masked", MASKED, 2, "sgd"},
	{"alone", NORMED, 1, "sgd"},
	{"normed", NORMED, 3, "nesterov"},
	{"dropping", DROPPING, 2, "sgd"},
	{"lars", NORMED, 2, "lars", .clip_norm = .05},
	{"lars-paper", NORMED, 2, "lars-paper"},
	{"adamw", NORMED, 2, "adamw", .clip_norm = .05},
	{"adamw stale", MLP, 2, "adamw", 2, .staleness = 3},
	{"accumulate", MLP, 3, "sgd", 2},
	{"many batches", DROPPING, 2, "nesterov", 3, .clip_norm = .2},
	{"scaled", MLP, 2, "sgd", .codec = "f16"},
	{"q8", MLP, 4, "sgd", .codec = "q8"},
	{"fp8", MLP, 3, "sgd", .codec = "fp8"},
	{"fp4", MLP, 4, "sgd", .codec = "fp4"},
	{"stale", NORMED, 2, "sgd", .staleness = 3},
	{"diloco", NORMED, 4, "sgd", .period = &periods[0]},
	{"streaming", MLP, 4, "adamw", .period = &periods[1]},
	{"streaming merged", MLP, 4, "sgd", .period = &periods[1], .selection = "merged: small"},
	{"local", MLP, 3, "nesterov", .period = &periods[2]},
	/* the host selects among whole gradients */
	{"pieces", MLP, 3, "sgd", .selection = "pieces: small"},
	{"pieces-stale-scaled", MLP, 2, "sgd", .codec = "f16", .scale = 0x1p24, .staleness = 2,
	 .selection = "pieces: small"},
	{"pieces-lars", NORMED, 2, "lars", .clip_norm = .05, .selection = "pieces: small"},
	{"gathered-accumulate", NORMED, 2, "nesterov", 2, .selection = "gathered: warm"},
	{"merged", MLP, 4, "sgd", .selection = "merged: small"},
	{"merged-staler", NORMED, 3, "nesterov", 2, .staleness = 4,
	 .selection = "merged: conserve"},
};

static inline struct train_run run_of(size_t i)
{
	size_t accumulate = cases[i].accumulate ? cases[i].accumulate : 1;
	struct train_run run = train_defaults(cases[i].model, cases[i].ranks,
					      12 / (size_t)cases[i].ranks / accumulate);

	run.config.training.optimizer = (char *)cases[i].optimizer;
	run.config.training.accumulate = accumulate;
	run.config.training.clip_norm = cases[i].clip_norm;
	if (cases[i].scale > 0) {
		run.config.training.scale = cases[i].scale;
		run.config.training.growth_steps = 4;
	}
	run.config.check_every = 3;
	run.period = cases[i].period;
	run.staleness = cases[i].staleness;
	run.codec = cases[i].codec;
	run.selection = test_selection(cases[i].selection);
	return run;
}

/* Rank 0's checkpoints, number by number. */
static inline void near_file(const char *a, const char *b, double tolerance, const char *label)
{
	char *p = gf_checkpoint_part(a, 20, 0, false);
	char *q = gf_checkpoint_part(b, 20, 0, false);
	struct gf_safetensors want = {0}, got = {0};
	struct gf_error err = {""};
	float x[256], y[256];
	size_t i, k, compared = 0;

	EXPECT(!gf_safetensors_open(p, &want, &err) && !gf_safetensors_open(q, &got, &err), "%s",
	       err.text);
	EXPECT(want.ntensors == got.ntensors, "%zu, %zu", want.ntensors, got.ntensors);
	for (i = 0; i < want.ntensors; i++) {
		const struct gf_stored_tensor *t = &want.tensors[i];

		if (strcmp(t->dtype, "F32") != 0 || t->count_elems > 256)
			continue;
		EXPECT(!gf_safetensors_load(&want, t->name, "F32", t->count_elems, x, &err) &&
			       !gf_safetensors_load(&got, t->name, "F32", t->count_elems, y, &err),
		       "%s", err.text);
		for (k = 0; k < t->count_elems; k++, compared++)
			EXPECT_NEAR((double)y[k], (double)x[k], tolerance, "%s: %s[%zu]", label,
				    t->name, k);
	}
	EXPECT(compared > 200, "%zu numbers", compared);
	gf_safetensors_close(&want);
	gf_safetensors_close(&got);
	free(p);
	free(q);
}

/* --- NCCL ------------------------------------------------------------------
 */

/* Of runs whose gradients grow beyond bounds. */
static const char *const divergent[] = {
	"plain",
	"gathered: small",
	"merged: diverges",
	"pieces: diverges",
};

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
	const char *selection; /* all bits are the host's */
	const struct gf_period *period;
} nccl_cases[] = {
	{"alone", NORMED, 1, "sgd"},
	{"plain", MLP, 2, "sgd"},
	{"lanes", NORMED, 3, "nesterov", 3, .tolerance = NCCL_TOLERANCE},
	{"dropping", DROPPING, 4, "sgd", 2, .tolerance = NCCL_TOLERANCE},
	{"diloco", NORMED, 4, "sgd", .period = &periods[0]},
	{"streaming", MLP, 4, "adamw", .period = &periods[1]},
	{"streaming stale", MLP, 4, "sgd", .staleness = 2, .period = &periods[1]},
	{"lars", NORMED, 2, "lars", .tolerance = NCCL_TOLERANCE},
	{"lars-paper", NORMED, 2, "lars-paper", .tolerance = NCCL_TOLERANCE},
	{"adamw", NORMED, 2, "adamw"},
	{"adamw stale", MLP, 2, "adamw", 2, .staleness = 3, .warmup_steps = 6},
	/* steps that are skipped, which the host learns late, do not count */
	{"adamw scaled", MLP, 1, "adamw", 1, "f16", 0x1p24, .tolerance = 1e-3},
	{"merged adamw", MLP, 4, "adamw", .staleness = 2, .selection = "merged: tenth"},
	/* the loss scale falls and grows */
	{"scaled", MLP, 2, "sgd", 1, "f16", 0x1p24, .tolerance = 1e-3},
	{"q8", MLP, 4, "sgd", 1, "q8", .tolerance = 1e-2},
	{"fp8", MLP, 3, "sgd", 1, "fp8", .tolerance = 5e-2},
	{"fp4", MLP, 4, "sgd", 1, "fp4", .tolerance = .2},
	{"clipped", NORMED, 1, "nesterov", .clip_norm = .3},
	{"clipped lars", NORMED, 3, "lars", 2, .clip_norm = .05, .tolerance = NCCL_TOLERANCE},
	{"accumulate", DROPPING, 1, "nesterov", .accumulate = 3},
	{"accumulate lanes", NORMED, 2, "sgd", 2, .accumulate = 2, .tolerance = NCCL_TOLERANCE,
	 .clip_norm = .2},
	{"accumulate scaled", MLP, 2, "sgd", 1, "f16", 0x1p24, .accumulate = 3, .tolerance = 1e-3},
	{"clipped scaled", MLP, 2, "sgd", 1, "f16", 0x1p24, .clip_norm = .5, .tolerance = 1e-3},
	{"stale", MLP, 2, "sgd", .staleness = 2},
	{"stale alone", NORMED, 1, "nesterov", .staleness = 3},
	{"stale lanes", NORMED, 3, "nesterov", 3, .staleness = 3, .tolerance = NCCL_TOLERANCE},
	/* stopped while it warms up, and when the pipeline has filled again */
	{"stale warm", MLP, 2, "sgd", 2, .staleness = 3, .warmup_steps = 6},
	{"stale later", MLP, 2, "sgd", 2, .staleness = 4, .warmup_steps = 9},
	{"stale scaled", MLP, 2, "sgd", 1, "f16", 0x1p24, .tolerance = 1e-3, .staleness = 2,
	 .clip_norm = .5},
	{"stale accumulate", DROPPING, 2, "lars", 2, .accumulate = 3, .staleness = 2,
	 .tolerance = NCCL_TOLERANCE, .clip_norm = .2},
	{"gathered stale", MLP, 2, "nesterov", .staleness = 2, .selection = "gathered: small"},
	{"merged stale", MLP, 4, "sgd", 3, .staleness = 2, .selection = "merged: warm"},
	{"merged staler", NORMED, 3, "nesterov", 2, .accumulate = 2, .staleness = 4,
	 .warmup_steps = 3, .selection = "merged: conserve"},
	{"pieces", MLP, 2, "sgd", .selection = "pieces: small"},
	/* chunks of several tensors, tensors of several, a ramp, a decay */
	{"pieces ramp", NORMED, 2, "nesterov", 2, .selection = "pieces: ramp"},
	{"pieces alone", MLP, 1, "sgd", .accumulate = 2, .selection = "pieces: half"},
	{"pieces all", MLP, 2, "sgd", .selection = "pieces: all"},
	/* chunks of whole grains of memory */
	{"pieces lanes", NORMED, 4, "sgd", 3, .tolerance = NCCL_TOLERANCE,
	 .selection = "pieces: grains"},
	{"pieces stale", MLP, 2, "sgd", .staleness = 2, .selection = "pieces: small"},
	{"pieces staler", NORMED, 2, "nesterov", 2, .staleness = 3, .warmup_steps = 4,
	 .selection = "pieces: finer"},
	{"pieces scaled", MLP, 2, "sgd", 1, "f16", 0x1p24, .tolerance = 1e-3, .staleness = 2,
	 .selection = "pieces: small"},
	{"pieces clipped", NORMED, 2, "sgd", 1, .tolerance = NCCL_TOLERANCE, .clip_norm = .05,
	 .selection = "pieces: more"},
	{"gathered", MLP, 3, "sgd", .selection = "gathered: small"},
	/* what was not sent counts in a norm as elsewhere */
	{"gathered clipped", MLP, 2, "sgd", 2, .clip_norm = .05, .selection = "gathered: small"},
	{"gathered lars", NORMED, 2, "lars", .clip_norm = .05, .selection = "gathered: tenth"},
	{"merged lars", MLP, 3, "lars", .staleness = 2, .selection = "merged: tenth"},
	{"gathered lanes", NORMED, 2, "nesterov", 2, .accumulate = 2,
	 .selection = "gathered: tenth"},
	{"merged", MLP, 4, "sgd", .selection = "merged: warm, few"},
	{"merged alone", MLP, 1, "sgd", .selection = "merged: tenth"},
	{"merged conserve", NORMED, 3, "nesterov", 3, .selection = "merged: conserve"},
	{"merged naive", MLP, 6, "sgd", .selection = "merged: naive"},
};

static inline struct train_run nccl_run_of(size_t i)
{
	const size_t accumulate = nccl_cases[i].accumulate ? nccl_cases[i].accumulate : 1;
	struct train_run run = train_defaults(nccl_cases[i].model, nccl_cases[i].ranks,
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
	run.selection = test_selection(nccl_cases[i].selection);
	run.period = nccl_cases[i].period;
	return run;
}

#endif
