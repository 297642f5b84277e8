/* SPDX-License-Identifier: BSD-3-Clause */
/* Whole training runs with each selection: replicas on every rank, stopping and going on, also with
 * stale gradients, learning, and what is refused. */
#include <math.h>

#include "doc/stream.h"
#include "compressors/select.h"
#include "folder.h"
#include "selections.h"
#include "train_run.h"

/* Rows of interest; tests/data/selections.txt gives one to every other selection. */
static double densities[] = {.5};
static struct selected {
	const char *name;
	struct gf_selection selection;
	size_t epochs; /* to learn; 0: as many as dense */
} selections[64] = {
	{"dense", SELECT_DENSE},
	{"csc", SELECT_CSC(.chunk_elems = 13, .keep = .2, .decay = 1)},
	{"csc-ramp", SELECT_CSC(.chunk_elems = 7, .keep = .1, .warmup_steps = 12, .decay = NAN)},
	{"topk", SELECT_TOPK(.density = .05, .warmup_densities = densities, .nwarmup = 1)},
	{"gtopk", SELECT_GTOPK(.density = .05, .warmup_densities = densities, .nwarmup = 1)},
	{"gtopk-conserve", SELECT_GTOPK(.density = .1, .putback = GF_PUTBACK_CONSERVE)},
	{"gtopk-naive", SELECT_GTOPK(.density = .1, .putback = GF_PUTBACK_NAIVE)},
	{"dgc",
	 SELECT_DGC(.density = .2, .warmup_densities = densities, .nwarmup = 1, .momentum = NAN)},
	{"dgc-masked",
	 SELECT_DGC(.density = .02, .clip_norm = 40, .momentum = NAN, .masking = true),
	 60}, /* masked momentum is less momentum */
	{"onebit", SELECT_ONEBIT(.chunk_elems = 13)},
	{"powersgd", SELECT_POWERSGD(.rank = 2, .warm_start = true, .min_compression = 1)},
	{"powersgd-cold", SELECT_POWERSGD(.rank = 3, .warmup_steps = 4, .min_compression = 1)},
	{"randomk",
	 SELECT_RANDOMK(.density = .3, .warmup_densities = densities, .nwarmup = 1, .seed = 3)},
};
static size_t nselections;

static struct gf_selection read_selection(const struct test_selection *row)
{
	char *text = gf_xasprintf(
		"{\"format\": \"gf-plan\", \"version\": 1, \"system\": \"auto\", \"policy\": "
		"\"single\", \"rule\": {\"threshold_bytes\": 0, \"lanes\": 1, \"algorithms\": "
		"[{\"min_bytes\": 0, \"algorithm\": \"ring\"}]}, \"selection\": %s, \"pipeline\": "
		"{\"staleness\": 1, \"warmup_steps\": 0}}",
		row->object);
	struct gf_documents d = {0};
	struct gf_selection s = {0};
	struct gf_error err = {""};

	EXPECT(!gf_documents_add_text(&d, text, strlen(text), row->name, &err), "%s", err.text);
	if (d.plan)
		s = gf_selection_copy(&d.plan->selection);
	gf_documents_release(&d);
	free(text);
	return s;
}

static void read_others(struct test_selection *rows)
{
	size_t n = test_selections(rows), i, k;

	while (selections[nselections].name)
		nselections++;
	for (i = 0; i < n; i++) {
		for (k = 0; k < nselections; k++)
			if (strcmp(gf_selection_name(&selections[k].selection), rows[i].name) == 0)
				break;
		if (k == nselections)
			selections[nselections++] =
				(struct selected){rows[i].name, read_selection(&rows[i]), 40};
	}
}

static void test_every_one(void)
{
	const struct gf_select_plan *const *p;
	size_t i;

	for (p = gf_select_plans; *p; p++) {
		for (i = 0; i < nselections; i++)
			if (gf_selection_plan(&selections[i].selection) == *p)
				break;
		EXPECT(i < nselections, "tests/data/selections.txt has no row of %s", (*p)->name);
	}
}

/* The row of that name. */
static size_t row(const char *name)
{
	size_t i = 0;

	while (strcmp(selections[i].name, name) != 0)
		i++;
	return i;
}

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

	for (i = 0; i < nselections; i++)
		for (k = 0; k < GF_ARRAY_LENGTH(ranks); k++) {
			struct train_run run = run_of(i, ranks[k]);

			if (!test_tries(i + k, 2))
				continue;
			run.config.check_every = 1;
			train(&run);
			EXPECT(run.rc == 0 && run.last_step >= 20, "%s, %d ranks: %s",
			       selections[i].name, ranks[k], run.err.text);
		}
}

/* Residuals, histories, chosen chunks, the place in warm-up: down to the last bit of the files. An
 * epoch has 10 steps. */
static void test_resume(void)
{
	static const size_t stops[][2] = {{1, 2}, {7, 13}, {10, 19}};
	size_t i, k;
	int r;

	for (i = 0; i < nselections; i++) {
		char *through = gf_xasprintf("%s/%s-through", folder, selections[i].name);
		struct train_run whole = run_of(i, 3);

		whole.config.checkpoint = through;
		train(&whole);
		EXPECT(whole.rc == 0 && whole.last_step == 20, "%s: %s", selections[i].name,
		       whole.err.text);
		for (k = 0; k < GF_ARRAY_LENGTH(stops); k++) {
			struct train_run run = run_of(i, 3);
			char label[32];
			char *stopped;

			if (!test_tries(i + k, 3))
				continue;
			snprintf(label, sizeof(label), "%s-%zu", selections[i].name, k);
			stopped = gf_xasprintf("%s/%s", folder, label);
			run.config.checkpoint = stopped;
			run.config.steps = stops[k][0];
			train(&run);
			run.config.resume = true;
			run.config.steps = stops[k][1];
			train(&run);
			run.config.steps = 0;
			train(&run);
			EXPECT(run.rc == 0 && run.last_step == 20, "%s: %s", label, run.err.text);
			for (r = 0; r < run.ranks; r++)
				same_file(through, stopped, 20, r, label);
			free(stopped);
		}
		free(through);
	}
}

struct stale_case {
	const char *name;
	size_t stop;
	int staleness;
	const char *optimizer;
	double clip_norm;
};

static void stale(const struct stale_case *c, size_t number)
{
	struct train_run run = run_of(row(c->name), 3);
	char *stopped = gf_xasprintf("%s/stale-%zu", folder, number);
	char *through = gf_xasprintf("%s-through", stopped);
	int r;

	run.staleness = c->staleness;
	run.config.training.optimizer = (char *)c->optimizer;
	run.config.training.clip_norm = c->clip_norm;
	run.config.check_every = 1;
	run.config.checkpoint = through;
	train(&run);
	EXPECT(run.rc == 0 && run.last_step == 20, "%s, %zu: %s", c->name, number, run.err.text);
	run.config.checkpoint = stopped;
	run.config.steps = c->stop;
	train(&run);
	run.config.resume = true;
	run.config.steps = 0;
	train(&run);
	EXPECT(run.rc == 0 && run.last_step == 20, "%s, %zu: %s", c->name, number, run.err.text);
	for (r = 0; r < run.ranks; r++)
		same_file(through, stopped, 20, r, "stale");
	free(through);
	free(stopped);
}

/* What waits on each rank, and the gradients in flight; stopped while the pipeline fills, and after
 * that. */
static void test_stale(void)
{
	static const struct stale_case cases[] = {
		{"csc", 1, 3, "sgd", 0},        {"csc-ramp", 2, 3, "nesterov", 0},
		{"csc-ramp", 11, 2, "lars", 0}, {"csc", 7, 3, "lars", .5},
		{"csc", 10, 1, "lars", .5},     {"csc", 7, 2, "lars-paper", 0},
		{"topk", 7, 2, "adamw", .5},    {"gtopk-conserve", 11, 3, "adamw", 0},
		{"onebit", 7, 1, "adamw", 0},   {"powersgd", 7, 1, "adamw", 0},
		{"randomk", 7, 2, "adamw", 0},
	};
	size_t i;

	for (i = 0; i < nselections; i++)
		if (test_tries(i, 3))
			stale(&(struct stale_case){selections[i].name, 9, 2, "sgd", 0}, i);
	for (i = 0; i < GF_ARRAY_LENGTH(cases); i++)
		if (test_tries(i, 3))
			stale(&cases[i], nselections + i);
}

/* A checkpoint of another selection, or of other chunks. */
static void test_refusals(void)
{
	static const struct {
		const char *before, *after, *text;
	} cases[] = {
		{"csc", "topk", "written with method \"csc\", this run has \"topk\""},
		{"topk", "gtopk", "written with method \"topk\", this run has \"gtopk\""},
		{"gtopk", "csc", "written with method \"gtopk\", this run has \"csc\""},
		{"csc", "csc-ramp", "written with chunk_elems 13, this run has 7"},
	};
	size_t i;

	for (i = 0; i < GF_ARRAY_LENGTH(cases); i++) {
		struct train_run run = run_of(row(cases[i].before), 2);
		char *dir = gf_xasprintf("%s/refused-%zu", folder, i);

		run.config.checkpoint = dir;
		run.config.steps = 3;
		train(&run);
		EXPECT(run.rc == 0, "%s", run.err.text);
		run.selection = selections[row(cases[i].after)].selection;
		run.config.resume = true;
		run.config.steps = 6;
		train(&run);
		EXPECT(run.rc == -EINVAL && strstr(run.err.text, cases[i].text), "case %zu: %d, %s",
		       i, run.rc, run.err.text);
		free(dir);
	}
}

/* A selection that corrects momentum wants an optimiser that has it. */
static void test_momentum(void)
{
	static const char *const names[] = {"csc", "dgc"};
	size_t i;

	for (i = 0; i < GF_ARRAY_LENGTH(names); i++) {
		struct train_run run = run_of(row(names[i]), 2);
		char *want = gf_xasprintf("optimizer \"adamw\": selection \"%s\" corrects momentum",
					  names[i]);

		run.config.training.optimizer = (char *)"adamw";
		train(&run);
		EXPECT(run.rc == -EINVAL && strstr(run.err.text, want), "%s: %d, %s", names[i],
		       run.rc, run.err.text);
		free(want);
	}
}

/* Every selection learns what dense learns, and without being told to: the made-up data is easy. */
static void test_learning(void)
{
	struct train_run dense = train_defaults(MLP, 4, 3);
	size_t i;

	dense.config.training.epochs = 25;
	train(&dense);
	for (i = 0; i < nselections; i++) {
		struct train_run run = run_of(i, 4);

		run.config.training.epochs = selections[i].epochs ? selections[i].epochs : 25;
		train(&run);
		EXPECT(run.test.correct + 3 >= dense.test.correct, "%s: %zu of %zu, dense %zu",
		       selections[i].name, run.test.correct, run.test.samples, dense.test.correct);
	}
}

/* A diverging run ends alike under each, naming a tensor. */
static void test_divergence(void)
{
	size_t i;

	for (i = 0; i < nselections; i++) {
		struct train_run run = run_of(i, 3);

		run.config.training.rate = 1e9;
		run.config.training.warmup_epochs = 0;
		train(&run);
		EXPECT(run.rc == 1 && strstr(run.err.text, "the gradient of fc") &&
			       strstr(run.err.text, " in step "),
		       "%s: %d, %s", selections[i].name, run.rc, run.err.text);
		/* skipping leaves the weights as large as they are */
		run.config.skip_bad = true;
		train(&run);
		EXPECT(run.rc == 1 && strstr(run.err.text, "the loss is "), "%s: %d, %s",
		       selections[i].name, run.rc, run.err.text);
	}
}

int main(void)
{
	struct test_selection rows[TEST_SELECTIONS];

	watchdog(280);
	make_folder("test_train_select");
	read_others(rows);
	test_every_one();
	test_replicas();
	test_resume();
	test_stale();
	test_refusals();
	test_momentum();
	test_learning();
	test_divergence();
	return TEST_END();
}
