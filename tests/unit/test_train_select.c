/* SPDX-License-Identifier: BSD-3-Clause */
/* Whole training runs with each selection: replicas on every rank, stopping and going on, also with
 * stale gradients, learning, and what is refused. */
#include <math.h>

#include "compressors/select.h"
#include "folder.h"
#include "selections.h"
#include "train_run.h"

/* What the entries' files say under "training" and "stale". */
static struct selected {
	char *name; /* "ENTRY-CASE" */
	struct gf_selection selection;
	size_t epochs; /* to learn; 0: as many as the plain one */
	double rate;   /* 0: the plain one */
} selections[64];
static size_t nselections;

static struct stale_case {
	size_t which; /* of the selections */
	size_t stop;
	int staleness;
	const char *optimizer;
	double clip_norm;
} stale_cases[64];
static size_t nstale;

static size_t find_case(const char *entry, const char *of)
{
	char *name = gf_xasprintf("%s-%s", entry, of);
	size_t i;

	for (i = 0; i < nselections && strcmp(selections[i].name, name) != 0; i++)
		;
	EXPECT(i < nselections, "no training of %s", name);
	free(name);
	return i;
}

static void read_stale(struct gf_json_at *at, void *ctx)
{
	const struct gf_select_plan *plan = ctx;
	char *of = entry_text(at, "of");

	stale_cases[nstale++] = (struct stale_case){
		.which = find_case(plan->name, of ? of : "plain"),
		.stop = entry_size(at, "stop", 0),
		.staleness = (int)entry_size(at, "staleness", 1),
		.optimizer = entry_keep(entry_text(at, "optimizer")),
		.clip_norm = entry_real(at, "clip_norm", 0),
	};
	free(of);
}

static void read_entry(const struct gf_select_plan *plan, struct entry_facts *f, void *ctx)
{
	struct gf_json_at training;
	struct gf_error err = {""};
	const char *name = NULL;

	(void)ctx;
	if (gf_json_object(&f->at, "training", &training, &err))
		entry_complain(&err);
	while ((name = gf_json_next_key(&training, name))) {
		struct selected *s = &selections[nselections++];
		struct gf_json_at at;

		if (gf_json_object(&training, name, &at, &err))
			entry_complain(&err);
		*s = (struct selected){entry_keep(gf_xasprintf("%s-%s", plan->name, name)),
				       test_selection_at(plan, &at, "keys"),
				       entry_size(&at, "epochs", 0),
				       entry_real(&at, "rate", 0)};
		gf_json_leave(&at);
	}
	gf_json_leave(&training);
	entry_rows(f, "stale", read_stale, (void *)plan);
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

			if (!test_tries(i + k, 4))
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

static void stale(const struct stale_case *c, size_t number)
{
	const char *name = selections[c->which].name;
	struct train_run run = run_of(c->which, 3);
	char *stopped = gf_xasprintf("%s/stale-%zu", folder, number);
	char *through = gf_xasprintf("%s-through", stopped);
	int r;

	run.staleness = c->staleness;
	run.config.training.optimizer = (char *)c->optimizer;
	run.config.training.clip_norm = c->clip_norm;
	run.config.check_every = 1;
	run.config.checkpoint = through;
	train(&run);
	EXPECT(run.rc == 0 && run.last_step == 20, "%s, %zu: %s", name, number, run.err.text);
	run.config.checkpoint = stopped;
	run.config.steps = c->stop;
	train(&run);
	run.config.resume = true;
	run.config.steps = 0;
	train(&run);
	EXPECT(run.rc == 0 && run.last_step == 20, "%s, %zu: %s", name, number, run.err.text);
	for (r = 0; r < run.ranks; r++)
		same_file(through, stopped, 20, r, "stale");
	free(through);
	free(stopped);
}

/* What waits on each rank, and the gradients in flight; stopped while the pipeline fills, and after
 * that. */
static void test_stale(void)
{
	size_t i;

	for (i = 0; i < nselections; i++)
		if (test_tries(i, 3))
			stale(&(struct stale_case){i, 9, 2, "sgd", 0}, i);
	for (i = 0; i < nstale; i++)
		if (test_tries(i, 3))
			stale(&stale_cases[i], nselections + i);
}

/* A checkpoint of another selection, or of other chunks. */
static void test_refusals(void)
{
	static const struct {
		const char *before, *after, *key; /* NULL: the method */
	} cases[] = {
		{"pieces", "gathered", NULL},
		{"gathered", "merged", NULL},
		{"merged", "pieces", NULL},
		{"pieces: small", "pieces: fine", "written with chunk_elems 13, this run has 7"},
	};
	size_t i;

	for (i = 0; i < GF_ARRAY_LENGTH(cases); i++) {
		const struct gf_selection before = test_selection(cases[i].before);
		const struct gf_selection after = test_selection(cases[i].after);
		struct train_run run = train_defaults(MLP, 2, 6);
		char *dir = gf_xasprintf("%s/refused-%zu", folder, i);
		char *want =
			cases[i].key
				? gf_xstrdup(cases[i].key)
				: gf_xasprintf("written with method \"%s\", this run has \"%s\"",
					       gf_selection_name(&before),
					       gf_selection_name(&after));

		run.selection = before;
		run.config.checkpoint = dir;
		run.config.steps = 3;
		train(&run);
		EXPECT(run.rc == 0, "%s", run.err.text);
		run.selection = after;
		run.config.resume = true;
		run.config.steps = 6;
		train(&run);
		EXPECT(run.rc == -EINVAL && strstr(run.err.text, want), "case %zu: %d, %s", i,
		       run.rc, run.err.text);
		free(want);
		free(dir);
	}
}

/* A selection that corrects momentum, or moves some of it, wants an optimiser that has it. */
static void test_momentum(void)
{
	size_t i;

	for (i = 0; i < nselections; i++) {
		const struct gf_selection *s = &selections[i].selection;
		const bool refused = (gf_selection_has(s, GF_SELECT_PIECES) ||
				      gf_selection_has(s, GF_SELECT_MOMENTUM)) &&
				     !gf_selection_has(s, GF_SELECT_BARE);
		struct train_run run = run_of(i, 2);
		char *want = gf_xasprintf("optimizer \"adamw\": selection \"%s\" corrects momentum",
					  gf_selection_name(s));

		run.config.training.optimizer = (char *)"adamw";
		run.config.steps = 2;
		train(&run);
		EXPECT(refused ? run.rc == -EINVAL && strstr(run.err.text, want) : !run.rc,
		       "%s: %d, %s", selections[i].name, run.rc, run.err.text);
		free(want);
	}
}

/* Every selection learns what the plain one learns, and without being told to: the made-up data is
 * easy. */
static void test_learning(void)
{
	struct train_run plain = train_defaults(MLP, 2, 6);
	size_t i;

	plain.config.training.epochs = 25;
	train(&plain);
	for (i = 0; i < nselections; i++) {
		struct train_run run = run_of(i, 2);

		run.config.training.epochs = selections[i].epochs ? selections[i].epochs : 25;
		if (selections[i].rate > 0)
			run.config.training.rate = selections[i].rate;
		train(&run);
		EXPECT(run.test.correct + 3 >= plain.test.correct, "%s: %zu of %zu, plain %zu",
		       selections[i].name, run.test.correct, run.test.samples, plain.test.correct);
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
	watchdog(280);
	make_folder("test_train_select");
	test_each_selection(read_entry, NULL);
	test_replicas();
	test_resume();
	test_stale();
	test_refusals();
	test_momentum();
	test_learning();
	test_divergence();
	return TEST_END();
}
