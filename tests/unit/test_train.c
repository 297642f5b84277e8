/* SPDX-License-Identifier: BSD-3-Clause */
#include "train_run.h"

#include <dirent.h>

#include "base/clock.h"
#include "checkpoints/safetensors.h"
#include "folder.h"

/* Sums over ranks and samples are taken in another order. */
#define SPLIT_TOLERANCE 2e-6

static char *in_folder(const char *name)
{
	return gf_xasprintf("%s/%s", folder, name);
}

/* --- P ranks, N batches of B a step, are one rank with batch P*N*B
 * --------------------- */

static void compare_parameters(const char *dir, const char *want_dir, size_t step, size_t numbers,
			       const char *label)
{
	char *path = gf_checkpoint_part(dir, step, 0, false);
	char *want_path = gf_checkpoint_part(want_dir, step, 0, false);
	struct gf_safetensors got = {0}, want = {0};
	struct gf_error err = {""};
	float a[64], b[64];
	size_t i, k, compared = 0;

	EXPECT(!gf_safetensors_open(path, &got, &err) &&
		       !gf_safetensors_open(want_path, &want, &err),
	       "%s", err.text);
	for (i = 0; i < want.ntensors; i++) {
		const struct gf_stored_tensor *t = &want.tensors[i];

		if (strcmp(t->dtype, "F32") != 0 || t->count_elems > 64)
			continue;
		EXPECT(!gf_safetensors_load(&got, t->name, "F32", t->count_elems, a, &err) &&
			       !gf_safetensors_load(&want, t->name, "F32", t->count_elems, b, &err),
		       "%s", err.text);
		for (k = 0; k < t->count_elems; k++, compared++)
			EXPECT_NEAR((double)a[k], (double)b[k], SPLIT_TOLERANCE, "%s: %s[%zu]",
				    label, t->name, k);
	}
	EXPECT(compared == numbers, "%s: %zu numbers", label, compared);
	gf_safetensors_close(&got);
	gf_safetensors_close(&want);
	free(path);
	free(want_path);
}

static void test_split(void)
{
	static const struct {
		int ranks;
		size_t batch, accumulate;
		const char *optimizer;
		double clip_norm;
		size_t arrays;     /* of its state; 0: one */
		const char *model; /* NULL: MLP */
	} cases[] = {
		{2, 6, 1, "sgd", 0},
		{3, 4, 1, "sgd", 0},
		{4, 3, 1, "sgd", 0},
		{5, 3, 1, "sgd", 0},
		{12, 1, 1, "sgd", 0},
		{1, 3, 4, "sgd", 0},
		{2, 3, 2, "nesterov", 0},
		{3, 2, 2, "lars", 0},
		{2, 2, 3, "sgd", .05},
		{4, 1, 3, "lars", .05},
		{8, 1, 1, "lars", 0},
		{3, 2, 2, "lars-paper", 0},
		{4, 3, 1, "adamw", 0, 2},
		{2, 3, 2, "adamw", .05, 2},
		{3, 2, 2, "sgd", 0, 1, MASKED},
	};
	size_t i;

	for (i = 0; i < GF_ARRAY_LENGTH(cases); i++) {
		const char *model = cases[i].model ? cases[i].model : MLP;
		struct train_run many = train_defaults(model, cases[i].ranks, cases[i].batch);
		struct train_run one = train_defaults(
			model, 1, (size_t)cases[i].ranks * cases[i].batch * cases[i].accumulate);
		char label[32];
		char *dir, *want;

		snprintf(label, sizeof(label), "split-%zu", i);
		many.config.training.accumulate = cases[i].accumulate;
		many.config.training.optimizer = (char *)cases[i].optimizer;
		many.config.training.clip_norm = cases[i].clip_norm;
		many.config.check_every = 1;
		one.config.training.optimizer = (char *)cases[i].optimizer;
		one.config.training.clip_norm = cases[i].clip_norm;
		dir = in_folder(label);
		want = gf_xasprintf("%s-one", dir);
		many.config.checkpoint = dir;
		one.config.checkpoint = want;
		train(&many);
		train(&one);
		EXPECT(many.rc == 0 && one.rc == 0, "%s: %s%s", label, many.err.text, one.err.text);
		EXPECT(many.last_step == one.last_step && many.last_step >= 16, "%s: %zu steps",
		       label, many.last_step);
		EXPECT(many.test.samples == 30 && many.test.correct == one.test.correct,
		       "%s: %zu of %zu, %zu", label, many.test.correct, many.test.samples,
		       one.test.correct);
		/* 9x6 + 9 + 4x9 + 4 or 8x4 + 12x4 + 12 + 8, and as many of each of the optimiser's
		 * arrays */
		compare_parameters(dir, want, many.last_step,
				   (cases[i].model ? 100 : 103) *
					   (1 + (cases[i].arrays ? cases[i].arrays : 1)),
				   label);
		free(dir);
		free(want);
	}
}

/* --- stop and resume ------------------------------------------------------ */

/* Not only weights: momentum, each rank's running statistics, the epoch's sums, down to the last
 * bit of the files. An epoch has 10 steps. */
static void test_resume(void)
{
	static const struct {
		const char *model;
		int ranks;
		size_t stop, stop_again;
		const char *optimizer;
		size_t accumulate;
		int staleness;
		size_t warmup;
		const char *codec;
		double scale; /* 0: the default */
	} cases[] = {
		/* the loss scale falls and grows */
		{MLP, 2, 3, 11, "sgd", 1, 1, 0, "f16", 0x1p24},
		{MLP, 3, 2, 5, "sgd", 1, 3, 0, "f16", 0x1p24},
		/* before, in and after warm-up and refilling */
		{MLP, 2, 1, 2, "sgd", 1, 2, 0},
		{MLP, 3, 2, 5, "sgd", 1, 3, 4, "f16"},
		{MLP, 2, 4, 6, "lars", 1, 3, 4, "q8"},
		{MLP, 3, 4, 6, "sgd", 1, 2, 0, "fp8"},
		{NORMED, 2, 7, 8, "lars", 1, 3, 4, "fp4"},
		{NORMED, 2, 7, 8, "nesterov", 2, 2, 6, "trunc16"},
		{NORMED, 1, 9, 13, "sgd", 1, 5, 0},
		{MLP, 1, 1, 2, "sgd", 1},
		{MLP, 2, 7, 13, "sgd", 1},
		{MASKED, 2, 3, 11, "sgd", 1},
		{NORMED, 2, 10, 15, "sgd", 1},
		{NORMED, 3, 3, 19, "lars", 1},
		{NORMED, 2, 9, 10, "nesterov", 2},
		{NORMED, 3, 4, 13, "adamw", 1, 1, 0},
		{NORMED, 2, 7, 8, "adamw", 2, 3, 4, "q8"},
		/* skipped steps do not count */
		{MLP, 2, 3, 11, "adamw", 1, 2, 0, "f16", 0x1p24},
		{MLP, 2, 9, 12, "lars-paper", 1, 2, 0},
	};
	size_t i;
	int r;

	for (i = 0; i < GF_ARRAY_LENGTH(cases); i++) {
		struct train_run run =
			train_defaults(cases[i].model, cases[i].ranks,
				       12 / (size_t)cases[i].ranks / cases[i].accumulate);
		char label[32];
		char *through, *stopped;

		snprintf(label, sizeof(label), "resume-%zu", i);
		stopped = in_folder(label);
		through = gf_xasprintf("%s-through", stopped);
		run.config.training.optimizer = (char *)cases[i].optimizer;
		run.config.training.accumulate = cases[i].accumulate;
		run.config.check_every = 3;
		if (cases[i].scale > 0) {
			run.config.training.scale = cases[i].scale;
			run.config.training.growth_steps = 4;
		}
		run.staleness = cases[i].staleness;
		run.pipeline_warmup = cases[i].warmup;
		run.codec = cases[i].codec;
		run.config.checkpoint = through;
		train(&run);
		EXPECT(run.rc == 0 && run.last_step == 20, "%s: %s", label, run.err.text);
		run.config.checkpoint = stopped;
		run.config.steps = cases[i].stop;
		train(&run);
		EXPECT(run.rc == 0 && run.last_step == cases[i].stop, "%s: %s", label,
		       run.err.text);
		run.config.resume = true;
		run.config.steps = cases[i].stop_again;
		train(&run);
		run.config.steps = 0;
		train(&run);
		EXPECT(run.rc == 0 && run.last_step == 20, "%s: %s", label, run.err.text);
		for (r = 0; r < cases[i].ranks; r++)
			same_file(through, stopped, 20, r, label);
		/* nothing left to do: says how good it is, changes nothing */
		train(&run);
		EXPECT(run.rc == 0 && run.last_step == 20 && run.test.part, "%s: %s", label,
		       run.err.text);
		free(through);
		free(stopped);
	}
}

static void test_refusals(void)
{
	char *dir = in_folder("refuses");
	struct train_run made = train_defaults(MLP, 2, 6);
	struct train_run again;
	size_t i;
	const struct {
		const char *label, *model, *data, *dir, *text;
		int ranks;
		size_t batch, seed;
		bool resume;
		int rc;
		const char *optimizer;
		size_t accumulate;
		int staleness;
	} cases[] = {
		{"anew", MLP, "synthetic:120", dir, "refuses: holds checkpoints of an earlier run",
		 2, 6, 5, false, -EINVAL},
		{"more ranks", MLP, "synthetic:120", dir, "written with ranks 2, this run has 3", 3,
		 6, 5, true, -EINVAL},
		{"other batch", MLP, "synthetic:120", dir, "written with batch 6, this run has 5",
		 2, 5, 5, true, -EINVAL},
		{"other seed", MLP, "synthetic:120", dir, "written with seed 5, this run has 6", 2,
		 6, 6, true, -EINVAL},
		{"other data", MLP, "synthetic:121", dir,
		 "written with training samples 120, this run has 121", 2, 6, 5, true, -EINVAL},
		{"other model", NORMED, "synthetic:120", dir,
		 "written with model \"mlp\", this run has \"normed\"", 2, 6, 5, true, -EINVAL},
		{"no folder", MLP, "synthetic:120", "/nonexistent/x",
		 "/nonexistent/x: No such file", 2, 6, 5, true, -ENOENT},
		{"other optimizer", MLP, "synthetic:120", dir,
		 "written with optimizer \"sgd\", this run has \"lars\"", 2, 6, 5, true, -EINVAL,
		 "lars", 1},
		{"other accumulation", MLP, "synthetic:120", dir,
		 "written with accumulated batches 1, this run has 2", 2, 6, 5, true, -EINVAL,
		 "sgd", 2},
		{"other staleness", MLP, "synthetic:120", dir,
		 "written with staleness 1, this run has 2", 2, 6, 5, true, -EINVAL, "sgd", 1, 2},
		{"too stale", MLP, "synthetic:120", NULL,
		 "staleness 21: want at most the 20 steps of the run", 2, 6, 5, false, -EINVAL,
		 "sgd", 1, 21},
		{"no such optimizer", MLP, "synthetic:120", NULL,
		 "want an optimizer (sgd, nesterov, lars, lars-paper, adamw), got \"adam\"", 2, 6,
		 5, false, -EINVAL, "adam", 1},
		{"too few for all parts", MLP, "synthetic:35", NULL,
		 "want at least 36 training samples (2 ranks, batch 6 times 3), the data has 35", 2,
		 6, 5, false, -EINVAL, "sgd", 3},
		{"too few samples", MLP, "synthetic:11", NULL,
		 "want at least 12 training samples (2 ranks, batch 6), the data has 11", 2, 6, 5,
		 false, -EINVAL},
	};

	made.config.checkpoint = dir;
	train(&made);
	for (i = 0; i < GF_ARRAY_LENGTH(cases); i++) {
		again = train_defaults(cases[i].model, cases[i].ranks, cases[i].batch);
		again.data = cases[i].data;
		again.config.training.seed = cases[i].seed;
		again.config.training.optimizer = (char *)cases[i].optimizer;
		again.config.training.accumulate = cases[i].accumulate;
		again.staleness = cases[i].staleness;
		again.config.resume = cases[i].resume;
		again.config.checkpoint = cases[i].dir;
		train(&again);
		EXPECT(again.rc == cases[i].rc && strstr(again.err.text, cases[i].text),
		       "%s: got %d, \"%s\"", cases[i].label, again.rc, again.err.text);
	}
	free(dir);
}

/* Another rate or more epochs do not hinder a resume. */
static void test_resume_differently(void)
{
	char *dir = in_folder("differently");
	struct train_run run = train_defaults(MLP, 2, 6);

	run.config.checkpoint = dir;
	train(&run);
	run.config.resume = true;
	run.config.training.epochs = 3;
	run.config.training.rate = 0.01;
	train(&run);
	EXPECT(run.rc == 0 && run.last_step == 30, "%s", run.err.text);
	free(dir);
}

/* --- runs that end otherwise -----------------------------------------------
 */

static void test_divergence(void)
{
	struct train_run run = train_defaults(MLP, 3, 4);

	run.config.training.rate = 1e9;
	run.config.training.warmup_epochs = 0;
	train(&run);
	EXPECT(run.rc == 1, "got %d", run.rc);
	EXPECT(strstr(run.err.text, "the gradient of fc") && strstr(run.err.text, " in step "),
	       "%s", run.err.text);
}

struct watcher {
	size_t rows, fail_at, batches, epochs, tests;
	double last_rate;
	int bad;
};

static int watch_row(void *ctx, const struct gf_train_row *row, struct gf_error *err)
{
	struct watcher *w = ctx;

	w->batches += strcmp(row->part, "batch") == 0;
	w->epochs += strcmp(row->part, "train") == 0;
	w->tests += strcmp(row->part, "test") == 0;
	w->bad += row->correct > row->samples || !(row->loss >= 0) ||
		  row->epoch != (row->step - 1) / 10 + 1;
	if (++w->rows == w->fail_at)
		return gf_error_set(err, -ENOSPC, "log: no space");
	return 0;
}

static void test_watch(void)
{
	struct train_run run = train_defaults(MLP, 2, 6);
	struct watcher w = {0};

	run.config.watch = (struct gf_train_watch){watch_row, NULL, &w};
	train(&run);
	EXPECT(run.rc == 0, "%s", run.err.text);
	EXPECT(w.batches == 20 && w.epochs == 2 && w.tests == 2 && !w.bad, "%zu %zu %zu, %d bad",
	       w.batches, w.epochs, w.tests, w.bad);
	/* rank 0 alone fails; all ranks end, with its reason */
	w = (struct watcher){.fail_at = 7};
	train(&run);
	EXPECT(run.rc == -ENOSPC, "got %d", run.rc);
	EXPECT_TEXT(run.err.text, "rank 0: log: no space");
	EXPECT(w.rows == 7, "%zu rows", w.rows);
}

/* Rank 1's fifth message to another rank fails. */
static struct gf_comm_ops cut;
static int (*real_isend)(struct gf_comm *, int, uint64_t, const void *, size_t,
			 struct gf_comm_request **, struct gf_error *);
static int (*real_probe)(struct gf_comm *, uint64_t, int *, struct gf_error *);
static _Atomic int sent, probed[2];

static int cut_isend(struct gf_comm *c, int peer, uint64_t tag, const void *data, size_t size_bytes,
		     struct gf_comm_request **request, struct gf_error *err)
{
	if (c->rank == 0 || tag >> 32 > GF_CHANNEL_LAST || sent++ < 4)
		return real_isend(c, peer, tag, data, size_bytes, request, err);
	return gf_error_set(err, -EIO, "cable pulled");
}

static int count_probe(struct gf_comm *c, uint64_t tag, int *peer, struct gf_error *err)
{
	probed[c->rank]++;
	return real_probe(c, tag, peer, err);
}

static void cut_in(struct gf_comm *c, struct gf_train_config *config)
{
	(void)config;
	c->ops = &cut;
}

static void look_after(struct gf_comm *c, struct gf_train_config *config)
{
	int before = probed[c->rank];

	(void)config;
	EXPECT(c->broken && before, "rank %d: %d", c->rank, before);
	gf_clock_sleep(0.1);
	EXPECT(probed[c->rank] == before, "rank %d: %d probes after the end", c->rank,
	       probed[c->rank] - before);
}

/* What a lost engine had under way is never freed (runtime/engine/engine.h). */
__attribute__((visibility("default"))) const char *__lsan_default_suppressions(void);
const char *__lsan_default_suppressions(void)
{
	return "leak:one_is_cut\nleak:test_one_fails\n";
}

/* Once a run has failed, the communicator is the caller's alone. */
static void one_is_cut(struct gf_comm *c, void *run)
{
	if (c->rank == 0) {
		cut = *c->ops;
		real_isend = cut.isend;
		real_probe = cut.probe;
		cut.isend = cut_isend;
		cut.probe = count_probe;
	}
	gf_comm_barrier(c, NULL);
	train_rank(c, run);
}

static void test_cut(void)
{
	struct train_run run = train_defaults(MLP, 2, 6);

	run.enter = cut_in;
	run.leave = look_after;
	on_ranks(2, one_is_cut, &run);
	EXPECT(run.rcs[0] == -EIO && run.rcs[1] == -EIO, "%d, %d: %s", run.rcs[0], run.rcs[1],
	       run.err.text);
}

/* A pass that fails on one rank alone: no thread may read the data after it. */
static int passes_left;

static int count_forward(struct gf_net *net, const float *params, const float *input, size_t batch,
			 int training, struct gf_error *err)
{
	if (!passes_left--)
		return gf_error_set(err, -EIO, "the device is lost");
	return gf_backend_find("ref")->forward(net, params, input, batch, training, err);
}

static void fail_in(struct gf_comm *c, struct gf_train_config *config)
{
	static struct gf_backend failing;

	(void)c;
	failing = *config->backend;
	failing.forward = count_forward;
	config->backend = &failing;
	passes_left = 3;
}

static size_t count_threads(void)
{
	DIR *tasks = opendir("/proc/self/task");
	size_t n = 0;

	while (tasks && readdir(tasks))
		n++;
	if (tasks)
		closedir(tasks);
	return n;
}

static void test_one_fails(void)
{
	struct train_run run = train_defaults(MLP, 1, 6);
	struct gf_comm *comm;
	size_t before = count_threads(), tries;

	if (gf_comm_local_new(1, &comm, NULL))
		return;
	run.enter = fail_in;
	train_rank(comm, &run);
	EXPECT(run.rc == -EIO, "%d: %s", run.rc, run.err.text);
	/* the kernel may show one for a moment that has been joined */
	for (tries = 0; count_threads() != before && tries < 300; tries++)
		gf_clock_sleep(0.01);
	EXPECT(tries < 300, "%zu more", count_threads() - before);
	gf_comm_close(comm);
}

/* A rank that takes 20 ms for each forward, beside one that takes far less. */
#define SLOW_S 0.02

static int slow_forward(struct gf_net *net, const float *params, const float *input, size_t batch,
			int training, struct gf_error *err)
{
	gf_clock_sleep(SLOW_S);
	return gf_backend_find("ref")->forward(net, params, input, batch, training, err);
}

static void slow_last(struct gf_comm *c, struct gf_train_config *config)
{
	static struct gf_backend slow;

	if (c->rank < c->ranks - 1)
		return;
	slow = *config->backend;
	slow.forward = slow_forward;
	config->backend = &slow;
}

static void predict(const struct train_run *run, struct gf_plan *plan)
{
	plan->predicted = gf_xcalloc(1, sizeof(*plan->predicted));
	plan->predicted->nmessages = plan->nmessages;
	plan->predicted->messages = gf_xcalloc(plan->nmessages, sizeof(*plan->predicted->messages));
	plan->model->forward_s = 0.002;
	plan->model->backward_s = 0.003;
	plan->model->batch_per_rank = run->config.training.batch;
}

/* As a profile, which has the times of the slowest rank. */
static void test_slowest_rank(void)
{
	struct train_run run = train_defaults(MLP, 3, 4);

	run.enter = slow_last;
	run.edit = predict;
	run.config.training.epochs = 1;
	train(&run);
	EXPECT(run.rc == 0, "%s", run.err.text);
	EXPECT(run.speed.at_start >= SLOW_S / 0.005 && run.speed.at_end >= SLOW_S / 0.005,
	       "%g and %g times the profile's", run.speed.at_start, run.speed.at_end);
}

int main(void)
{
	watchdog(120);
	make_folder("test_train");
	test_split();
	test_resume();
	test_refusals();
	test_resume_differently();
	test_divergence();
	test_watch();
	test_cut();
	test_one_fails();
	test_slowest_rank();
	return TEST_END();
}
