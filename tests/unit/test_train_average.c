/* SPDX-License-Identifier: BSD-3-Clause */
/* The exponential moving average of weights: alone, in a run's checkpoints, and in a run that is
 * stopped and resumed. */
#include "train_run.h"

#include "checkpoints/safetensors.h"
#include "trainer/optim/ema.h"
#include "folder.h"

#define DECAY 0.75

static void test_formula(void)
{
	static const float weights[][3] = {
		{1, -2, 1e-3f}, {3, 0, 5e-3f}, {-1, 7, -2e-3f}, {2, 2, 1e-3f}};
	double want[3] = {1, -2, (double)1e-3f};
	float now[3] = {10, 20, 30};
	struct gf_ema e;

	EXPECT(!gf_ema_init(&e, DECAY, 3), "memory");
	for (size_t step = 0; step < GF_ARRAY_LENGTH(weights); step++) {
		gf_ema_note(&e, weights[step]);
		for (size_t i = 0; i < 3; i++) {
			want[i] = DECAY * want[i] + (1 - DECAY) * (double)weights[step][i];
			EXPECT_NEAR((double)e.values[i], want[i], 1e-7, "step %zu, [%zu]", step + 1,
				    i);
		}
	}
	gf_ema_swap(&e, now);
	for (size_t i = 0; i < 3; i++)
		EXPECT(e.values[i] == 10 * (float)(i + 1) && fabs((double)now[i] - want[i]) < 1e-6,
		       "swapped [%zu]", i);
	gf_ema_release(&e);
}

/* A tensor of rank 0's file at a step, of at most 64 elements; 0: none. */
static size_t load(const char *dir, size_t step, const char *name, float *out)
{
	char *path = gf_checkpoint_part(dir, step, 0, false);
	struct gf_safetensors file = {0};
	const struct gf_stored_tensor *t;
	struct gf_error err = {""};
	size_t count = 0;

	EXPECT(!gf_safetensors_open(path, &file, &err), "%s", err.text);
	t = gf_safetensors_find(&file, name);
	if (t && t->count_elems <= 64) {
		count = t->count_elems;
		EXPECT(!gf_safetensors_load(&file, name, "F32", count, out, &err), "%s", err.text);
	}
	gf_safetensors_close(&file);
	free(path);
	return count;
}

/* From the first step's weights on: those of a checkpoint after each step. */
static void test_steps(void)
{
	static const char *const names[] = {"fc1.weight", "fc1.bias", "fc2.weight", "fc2.bias"};
	struct train_run run = train_defaults(MLP, 2, 6);
	char *dir = gf_xasprintf("%s/steps", folder);
	float weight[64], average[64], before[64];

	run.config.training.ema_decay = DECAY;
	run.config.checkpoint = dir;
	run.config.checkpoint_every = 1;
	run.config.steps = 2;
	train(&run);
	EXPECT(run.rc == 0 && run.last_step == 2, "%s", run.err.text);
	for (size_t n = 0; n < GF_ARRAY_LENGTH(names); n++) {
		char *ema = gf_xasprintf("ema.%s", names[n]);
		size_t count = load(dir, 1, names[n], weight), moved = 0;

		EXPECT(count && load(dir, 1, ema, before) == count &&
			       !memcmp(before, weight, count * sizeof(float)),
		       "%s: the first step's weights", ema);
		EXPECT(load(dir, 2, names[n], weight) == count &&
			       load(dir, 2, ema, average) == count,
		       "%s", ema);
		for (size_t i = 0; i < count; i++) {
			moved += weight[i] != before[i];
			EXPECT_NEAR((double)average[i],
				    DECAY * (double)before[i] + (1 - DECAY) * (double)weight[i],
				    1e-7, "%s[%zu]", ema, i);
		}
		EXPECT(moved, "%s: the second step changes weights", ema);
		free(ema);
	}
	free(dir);
}

/* In the middle of an epoch, between batches that are accumulated, and with gradients of an older
 * step under way. An epoch has 10 steps. */
static void test_resume(void)
{
	static const struct {
		const char *model, *optimizer;
		int ranks;
		size_t stop, accumulate;
		int staleness;
	} cases[] = {
		{MLP, "sgd", 2, 1, 1, 1},
		{NORMED, "adamw", 3, 10, 1, 1},
		{NORMED, "nesterov", 2, 13, 2, 2},
	};

	for (size_t i = 0; i < GF_ARRAY_LENGTH(cases); i++) {
		struct train_run run =
			train_defaults(cases[i].model, cases[i].ranks,
				       12 / (size_t)cases[i].ranks / cases[i].accumulate);
		char *stopped = gf_xasprintf("%s/resume-%zu", folder, i);
		char *through = gf_xasprintf("%s-through", stopped);
		struct gf_train_row test;
		float average[64];

		run.config.training.ema_decay = 0.9;
		run.config.training.optimizer = (char *)cases[i].optimizer;
		run.config.training.accumulate = cases[i].accumulate;
		run.config.check_every = 3;
		run.staleness = cases[i].staleness;
		run.config.checkpoint = through;
		train(&run);
		EXPECT(run.rc == 0 && run.last_step == 20, "%zu: %s", i, run.err.text);
		test = run.test;
		run.config.checkpoint = stopped;
		run.config.steps = cases[i].stop;
		train(&run);
		EXPECT(run.rc == 0 && run.last_step == cases[i].stop, "%zu: %s", i, run.err.text);
		run.config.resume = true;
		run.config.steps = 0;
		train(&run);
		EXPECT(run.rc == 0 && run.last_step == 20, "%zu: %s", i, run.err.text);
		for (int r = 0; r < cases[i].ranks; r++)
			same_file(through, stopped, 20, r, "resumed");
		EXPECT(load(stopped, 20, "ema.fc1.bias", average), "%zu: the average is there", i);
		EXPECT(run.test.loss == test.loss && run.test.correct == test.correct,
		       "%zu: tests: want %g, got %g", i, test.loss, run.test.loss);
		free(through);
		free(stopped);
	}
}

/* Tests are of the average. Without one the run is the same, and its weights, and another loss is
 * found in the end. */
static void test_tested(void)
{
	struct train_run run = train_defaults(MLP, 2, 6);
	char *plain = gf_xasprintf("%s/plain", folder);
	char *averaged = gf_xasprintf("%s/averaged", folder);
	float want[64], got[64];
	double loss;

	run.config.checkpoint = plain;
	train(&run);
	EXPECT(run.rc == 0, "%s", run.err.text);
	loss = run.test.loss;
	run.config.checkpoint = averaged;
	run.config.training.ema_decay = DECAY;
	train(&run);
	EXPECT(run.rc == 0, "%s", run.err.text);
	EXPECT(run.test.loss != loss, "both %g", loss);
	EXPECT(load(plain, 20, "fc1.weight", want) == 54 &&
		       load(averaged, 20, "fc1.weight", got) == 54 &&
		       !memcmp(want, got, 54 * sizeof(float)),
	       "the weights stay");
	EXPECT(!load(plain, 20, "ema.fc1.weight", got), "none was asked for");
	/* decay 0: the weights themselves */
	run.config.checkpoint = NULL;
	run.config.training.ema_decay = 0;
	train(&run);
	EXPECT(run.rc == 0 && run.test.loss == loss, "want %g, got %g", loss, run.test.loss);
	free(plain);
	free(averaged);
}

int main(void)
{
	watchdog(120);
	make_folder("test_train_average");
	test_formula();
	test_steps();
	test_resume();
	test_tested();
	return TEST_END();
}
