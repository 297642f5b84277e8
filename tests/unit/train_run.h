/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef GF_TESTS_TRAIN_RUN_H
#define GF_TESTS_TRAIN_RUN_H

#include <errno.h>
#include <stdint.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/array.h"
#include "base/file.h"
#include "base/heap.h"
#include "checkpoints/set.h"
#include "json/json.h"
#include "ranks.h"
#include "trainer/options.h"
#include "trainer/groups.h"
#include "trainer/train.h"

/* A whole training run over threads: small models, made-up data, the reference backend. The result
 * is read back from its checkpoint. */
#define MLP                                                                                        \
	"{\"format\": \"gf-model\", \"version\": 1, \"name\": \"mlp\","                            \
	" \"input\": [1, 2, 3], \"classes\": 4, \"layers\": ["                                     \
	"{\"name\": \"fc1\", \"type\": \"fc\", \"outputs\": 9},"                                   \
	"{\"name\": \"relu1\", \"type\": \"relu\"},"                                               \
	"{\"name\": \"fc2\", \"type\": \"fc\", \"outputs\": 4}]}"
#define NORMED                                                                                     \
	"{\"format\": \"gf-model\", \"version\": 1, \"name\": \"normed\","                         \
	" \"input\": [1, 4, 4], \"classes\": 4, \"layers\": ["                                     \
	"{\"name\": \"conv1\", \"type\": \"conv\", \"filters\": 3,"                                \
	" \"kernel\": 3, \"stride\": 1, \"pad\": 1, \"bias\": false},"                             \
	"{\"name\": \"bn1\", \"type\": \"batchnorm\"},"                                            \
	"{\"name\": \"relu1\", \"type\": \"relu\"},"                                               \
	"{\"name\": \"fc1\", \"type\": \"fc\", \"outputs\": 4}]}"

/* A text whose numbers are masked; a weight of it is used twice. */
#define MASKED                                                                                     \
	"{\"format\": \"gf-model\", \"version\": 1, \"name\": \"masked\","                         \
	" \"input\": [6], \"classes\": 8, \"layers\": ["                                           \
	"{\"name\": \"words\", \"type\": \"embedding\", \"entries\": 8,"                           \
	" \"outputs\": 4},"                                                                        \
	"{\"name\": \"qkv\", \"type\": \"fc\", \"outputs\": 12},"                                  \
	"{\"name\": \"attention\", \"type\": \"attention\", \"heads\": 2},"                        \
	"{\"name\": \"out\", \"type\": \"fc\", \"outputs\": 8,"                                    \
	" \"tied\": \"words\"}]}"

struct train_run {
	const char *model; /* JSON */
	const char *data;
	struct gf_train_config config; /* comm, plan, model, data: filled in */
	int ranks;
	int staleness; /* 0: 1 */
	size_t pipeline_warmup;
	const char *codec; /* NULL: f32 */
	struct gf_selection selection;
	int lanes; /* 0: 1 */
	/* Its keys, without messages: they are the plan's. NULL: every step. */
	const struct gf_period *period;
	void (*edit)(const struct train_run *run, struct gf_plan *plan); /* (optional) */
	const void *edit_ctx;
	/* Where the rank computes (optional), and afterwards. */
	void (*enter)(struct gf_comm *comm, struct gf_train_config *config);
	void (*leave)(struct gf_comm *comm, struct gf_train_config *config);
	/* out */
	int rc;
	struct gf_error err;
	struct gf_train_row test;
	size_t last_step;
	uint64_t sent_bytes, dense_bytes; /* by all ranks */
	struct gf_speed speed;
	int rcs[16];
};

static inline void read_model(const char *text, struct gf_model *model)
{
	struct gf_json *root = NULL;
	struct gf_error err = {""};
	int rc = gf_json_parse(text, strlen(text), "test", &root, &err);

	if (!rc)
		rc = gf_model_read(root, "test", model, &err);
	EXPECT(rc == 0, "%s", err.text);
	gf_json_free(root);
}

extern const struct gf_period_plan gf_period_plan_streaming;

static inline void make_periodic(struct gf_plan *plan, const struct gf_period *keys)
{
	struct gf_period *p = &plan->period;
	struct gf_plan copy;

	gf_plan_copy(&copy, plan);
	*p = *keys;
	p->plan = &gf_period_plan_streaming; /* its table has all keys */
	p->lanes = 1;
	p->messages = copy.messages;
	p->nmessages = copy.nmessages;
	copy.messages = NULL;
	copy.nmessages = 0;
	gf_plan_release(&copy);
}

static inline void train_rank(struct gf_comm *comm, void *ctx)
{
	struct train_run *run = ctx;
	struct gf_train_config config = run->config;
	struct gf_train_result result = {0};
	struct gf_error err = {""};
	struct gf_dataset data = {0};
	struct gf_model model;
	struct gf_plan plan;
	size_t i;
	int rc;

	read_model(run->model, &model);
	gf_train_default_plan(&plan, false);
	plan.rule->threshold_bytes = 64; /* several messages */
	plan.rule->lanes = run->lanes ? run->lanes : 1;
	plan.staleness = run->staleness ? run->staleness : 1;
	plan.pipeline_warmup_steps = run->pipeline_warmup;
	gf_selection_release(&plan.selection);
	plan.selection = gf_selection_copy(&run->selection);
	rc = gf_train_bind(&plan, &model, comm->ranks, &err);
	for (i = 0; run->codec && i < plan.nmessages; i++) {
		free(plan.messages[i].codec);
		plan.messages[i].codec = gf_xstrdup(run->codec);
	}
	if (!rc && run->edit)
		run->edit(run, &plan);
	if (!rc && run->period)
		make_periodic(&plan, run->period);
	if (!rc)
		rc = gf_train_open_data(comm, run->data, &model, config.training.seed, &data, &err);
	config.comm = comm;
	config.plan = &plan;
	config.model = &model;
	config.data = &data;
	config.backend = gf_backend_find("ref");
	if (!rc)
		rc = gf_train_split(&config, &err);
	if (run->enter)
		run->enter(comm, &config);
	gf_training_copy(&config.training, &run->config.training);
	if (!rc)
		rc = gf_train_complete(&config, &err);
	if (!rc)
		rc = gf_train_take_folder(&config, &err);
	if (!rc)
		rc = gf_train_run(&config, &result, &err);
	gf_train_leave_folder(&config);
	gf_train_join(&config);
	if (run->leave)
		run->leave(comm, &config);
	run->rcs[comm->rank] = rc;
	if (comm->rank == 0) {
		run->rc = rc;
		run->err = err;
		run->test = result.test;
		run->last_step = result.last_step;
		run->sent_bytes = result.sent_bytes;
		run->dense_bytes = result.dense_bytes;
		run->speed = result.speed;
	}
	gf_timeline_release(&result.timeline);
	gf_training_release(&config.training);
	free(config.remark);
	gf_dataset_close(&data);
	gf_model_release(&model);
	gf_plan_release(&plan);
}

/* Runs it; every rank must come to the same return code. */
static inline void train(struct train_run *run)
{
	int r;

	on_ranks(run->ranks, train_rank, run);
	for (r = 0; r < run->ranks; r++)
		EXPECT(run->rcs[r] == run->rc, "rank %d: %d, rank 0: %d", r, run->rcs[r], run->rc);
}

static inline struct train_run train_defaults(const char *model, int ranks, size_t batch)
{
	struct train_run run = {
		.model = model,
		.data = "synthetic:120",
		.ranks = ranks,
		.config =
			{
				.timeout_s = TEST_PATIENCE_S,
			},
	};
	gf_training_init(&run.config.training);
	run.config.training.batch = batch;
	run.config.training.epochs = 2;
	run.config.training.seed = 5;
	run.config.training.rate = 0.05;
	run.config.training.weight_decay = 1e-3;
	run.config.training.warmup_epochs = 0.5;
	return run;
}

/* A rank's files of two checkpoints, byte for byte. */
static inline void same_file(const char *a, const char *b, size_t step, int rank, const char *label)
{
	char *p = gf_checkpoint_part(a, step, rank, false);
	char *q = gf_checkpoint_part(b, step, rank, false);
	char *x = NULL, *y = NULL;
	size_t n = 0, m = 0;
	struct gf_error err = {""};

	EXPECT(!gf_file_read(p, &x, &n, &err) && !gf_file_read(q, &y, &m, &err), "%s: %s", label,
	       err.text);
	EXPECT(n && n == m && memcmp(x, y, n) == 0, "%s: rank %d of step %zu", label, rank, step);
	free(x);
	free(y);
	free(p);
	free(q);
}

#endif
