/* SPDX-License-Identifier: BSD-3-Clause */
/* Whole training runs with each selection: replicas on every rank, stopping
 * and going on, and what is refused. */
#include <math.h>

#include "selections.h"
#include "train_run.h"

static char folder[] = "/tmp/test_train_select.XXXXXX";

static double densities[] = {.5};
static const struct {
	const char *name;
	struct gf_selection selection;
} selections[] = {
	{"csc", SELECT_CSC(.chunk_elems = 13, .keep = .2, .decay = 1)},
	{"csc-ramp", SELECT_CSC(.chunk_elems = 7, .keep = .1,
				.warmup_steps = 12, .decay = NAN)},
	{"topk", SELECT_TOPK(.density = .05, .warmup_densities = densities,
			     .nwarmup = 1)},
	{"gtopk", SELECT_GTOPK(.density = .05, .warmup_densities = densities,
			       .nwarmup = 1)},
	{"gtopk-conserve",
	 SELECT_GTOPK(.density = .1, .putback = GF_PUTBACK_CONSERVE)},
	{"gtopk-naive",
	 SELECT_GTOPK(.density = .1, .putback = GF_PUTBACK_NAIVE)},
};
#define NSELECTIONS GF_ARRAY_LENGTH(selections)

static struct train_run run_of(size_t which, int ranks)
{
	struct train_run run = train_defaults(MLP, ranks, 12 / (size_t)ranks);

	run.selection = selections[which].selection;
	return run;
}

/* Parameters and optimiser after every step. */
static void test_replicas(void)
{
	static const int ranks[] = {1, 2, 3, 4, 5, 8};
	size_t i, k;

	for (i = 0; i < NSELECTIONS; i++)
		for (k = 0; k < GF_ARRAY_LENGTH(ranks); k++) {
			struct train_run run = run_of(i, ranks[k]);

			run.config.check_every = 1;
			train(&run);
			EXPECT(run.rc == 0 && run.last_step >= 20,
			       "%s, %d ranks: %s", selections[i].name, ranks[k],
			       run.err.text);
		}
}

/* Residuals, histories, chosen chunks, the place in warm-up: down to the last
 * bit of the files. An epoch has 10 steps. */
static void test_resume(void)
{
	static const size_t stops[][2] = {{1, 2}, {7, 13}, {10, 19}};
	size_t i, k;
	int r;

	for (i = 0; i < NSELECTIONS; i++)
		for (k = 0; k < GF_ARRAY_LENGTH(stops); k++) {
			struct train_run run = run_of(i, 3);
			char label[32];
			char *stopped, *through;

			snprintf(label, sizeof(label), "%s-%zu",
				 selections[i].name, k);
			stopped = gf_xasprintf("%s/%s", folder, label);
			through = gf_xasprintf("%s-through", stopped);
			run.config.checkpoint = through;
			train(&run);
			EXPECT(run.rc == 0 && run.last_step == 20, "%s: %s",
			       label, run.err.text);
			run.config.checkpoint = stopped;
			run.config.steps = stops[k][0];
			train(&run);
			run.config.resume = true;
			run.config.steps = stops[k][1];
			train(&run);
			run.config.steps = 0;
			train(&run);
			EXPECT(run.rc == 0 && run.last_step == 20, "%s: %s",
			       label, run.err.text);
			for (r = 0; r < run.ranks; r++)
				same_file(through, stopped, 20, r, label);
			free(through);
			free(stopped);
		}
}

/* What waits on each rank, and the gradients in flight; stopped while the
 * pipeline fills, and after that. */
static void test_stale(void)
{
	static const struct {
		size_t which, stop;
		int staleness;
		const char *optimizer;
		double clip_norm;
	} cases[] = {
		{3, 9, 2, "sgd", 0},    {0, 9, 2, "sgd", 0},
		{0, 1, 3, "sgd", 0},    {1, 2, 3, "nesterov", 0},
		{1, 11, 2, "lars", 0},  {0, 7, 3, "lars", .5},
		{0, 10, 1, "lars", .5},
	};
	size_t i;
	int r;

	for (i = 0; i < GF_ARRAY_LENGTH(cases); i++) {
		struct train_run run = run_of(cases[i].which, 3);
		char *stopped = gf_xasprintf("%s/stale-%zu", folder, i);
		char *through = gf_xasprintf("%s-through", stopped);

		run.staleness = cases[i].staleness;
		run.config.training.optimizer = (char *)cases[i].optimizer;
		run.config.training.clip_norm = cases[i].clip_norm;
		run.config.check_every = 1;
		run.config.checkpoint = through;
		train(&run);
		EXPECT(run.rc == 0 && run.last_step == 20, "%zu: %s", i,
		       run.err.text);
		run.config.checkpoint = stopped;
		run.config.steps = cases[i].stop;
		train(&run);
		run.config.resume = true;
		run.config.steps = 0;
		train(&run);
		EXPECT(run.rc == 0 && run.last_step == 20, "%zu: %s", i,
		       run.err.text);
		for (r = 0; r < run.ranks; r++)
			same_file(through, stopped, 20, r, "stale");
		free(through);
		free(stopped);
	}
}

/* A checkpoint of another selection, or of other chunks. */
static void test_refusals(void)
{
	static const struct {
		size_t before, after;
		const char *text;
	} cases[] = {
		{0, 2, "written with method \"csc\", this run has \"topk\""},
		{2, 3, "written with method \"topk\", this run has \"gtopk\""},
		{3, 0, "written with method \"gtopk\", this run has \"csc\""},
		{0, 1, "written with chunk_elems 13, this run has 7"},
	};
	size_t i;

	for (i = 0; i < GF_ARRAY_LENGTH(cases); i++) {
		struct train_run run = run_of(cases[i].before, 2);
		char *dir = gf_xasprintf("%s/refused-%zu", folder, i);

		run.config.checkpoint = dir;
		run.config.steps = 3;
		train(&run);
		EXPECT(run.rc == 0, "%s", run.err.text);
		run.selection = selections[cases[i].after].selection;
		run.config.resume = true;
		run.config.steps = 6;
		train(&run);
		EXPECT(run.rc == -EINVAL && strstr(run.err.text, cases[i].text),
		       "case %zu: %d, %s", i, run.rc, run.err.text);
		free(dir);
	}
}

/* Every selection learns what dense learns, and without being told to: the
 * made-up data is easy. */
static void test_learning(void)
{
	struct train_run dense = train_defaults(MLP, 4, 3);
	size_t i;

	dense.config.training.epochs = 25;
	train(&dense);
	for (i = 0; i < NSELECTIONS; i++) {
		struct train_run run = run_of(i, 4);

		run.config.training.epochs = 25;
		train(&run);
		EXPECT(run.test.correct + 3 >= dense.test.correct,
		       "%s: %zu of %zu, dense %zu", selections[i].name,
		       run.test.correct, run.test.samples, dense.test.correct);
	}
}

/* A diverging run ends alike under each, naming a tensor. */
static void test_divergence(void)
{
	size_t i;

	for (i = 0; i < NSELECTIONS; i++) {
		struct train_run run = run_of(i, 3);

		run.config.training.rate = 1e9;
		run.config.training.warmup_epochs = 0;
		train(&run);
		EXPECT(run.rc == 1 &&
			       strstr(run.err.text, "the gradient of fc") &&
			       strstr(run.err.text, " in step "),
		       "%s: %d, %s", selections[i].name, run.rc, run.err.text);
		/* skipping leaves the weights as large as they are */
		run.config.skip_bad = true;
		train(&run);
		EXPECT(run.rc == 1 && strstr(run.err.text, "the loss is "),
		       "%s: %d, %s", selections[i].name, run.rc, run.err.text);
	}
}

int main(void)
{
	char *command;

	watchdog(280);
	if (!mkdtemp(folder))
		return 1;
	test_replicas();
	test_resume();
	test_stale();
	test_refusals();
	test_learning();
	test_divergence();
	command = gf_xasprintf("rm -rf %s", folder);
	EXPECT(system(command) == 0, "%s", command);
	free(command);
	return TEST_END();
}
