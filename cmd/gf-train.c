/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/file.h"
#include "base/heap.h"
#include "cli/cli.h"
#include "cli/progress.h"
#include "cli/settings.h"
#include "comm/processors.h"
#include "train/assign.h"
#include "train/log.h"
#include "train/predict.h"
#include "train/report.h"
#include "train/trace.h"
#include "train/train.h"

static const char doc[] =
	"Train a model on all ranks of an MPI job, exchanging gradients as a "
	"plan says; print predicted beside measured times."
	"\vExamples:\n"
	"  gf-topo | gf-plan > plan.json\n"
	"  mpirun -np 4 gf-train --plan plan.json --checkpoint ckpt";

struct arguments {
	struct gf_cli cli;
	const char *plan, *model, *data, *device, *log, *trace;
	struct gf_train_config config;
	size_t threads;
	double target;
	bool replay;
};

/* --- options ------------------------------------------------------------ */

static const struct gf_train_config defaults = {
	.epochs = 10,
	.seed = 1,
	.sgd = {.lr = -1, .momentum = 0.9, .weight_decay = 5e-3},
	.shape = GF_RATE_COSINE,
	.warmup_epochs = 1,
	.check_every = SIZE_MAX,
	.timeout_s = 60,
};

#define AT(field) offsetof(struct arguments, field)

#pragma GCC diagnostic ignored "-Wmissing-field-initializers" /* clang */
static const struct gf_setting settings[] = {
	{"plan", "FILE", 1, GF_SETTING_TEXT, AT(plan),
	 "exchange gradients by this plan"},
	{"model", "NAME", 1, GF_SETTING_TEXT, AT(model),
	 "a shipped model or a file (the plan's, or digits-cnn)"},
	{"data", "DIR", 1, GF_SETTING_TEXT, AT(data),
	 "a folder, FORMAT:FOLDER, synthetic or synthetic:N (digits)"},
	{"epochs", "N", 2, GF_SETTING_WHOLE, AT(config.epochs),
	 "passes over the training data (10)", 1, 1e9},
	{"steps", "N", 2, GF_SETTING_WHOLE, AT(config.steps),
	 "stop after N steps in all (a replay: 50)", 1, 1e12},
	{"batch", "N", 2, GF_SETTING_WHOLE, AT(config.batch),
	 "samples per rank and step (the plan's, or 16)", 1, 1e9},
	{"lr", "RATE", 2, GF_SETTING_REAL, AT(config.sgd.lr),
	 "peak learning rate (0.1 for a global batch of 64, scaled)", 0, 1e9},
	{"lr-batch", "N", 2, GF_SETTING_REAL, AT(config.lr_batch),
	 "RATE is meant for a global batch of N: scale it to this run's", 1,
	 1e12},
	{"momentum", "M", 2, GF_SETTING_REAL, AT(config.sgd.momentum),
	 "of SGD (0.9)", 0, 1},
	{"weight-decay", "D", 2, GF_SETTING_REAL, AT(config.sgd.weight_decay),
	 "of SGD (5e-3)", 0, 1e9},
	{"warmup", "EPOCHS", 2, GF_SETTING_REAL, AT(config.warmup_epochs),
	 "raise the rate to its peak over so many epochs (1)", 0, 1e9},
	{"schedule", "NAME", 2, GF_SETTING_CHOICE, AT(config.shape),
	 "the rate after that: constant, linear or cosine (cosine)",
	 .names = gf_rate_shape_names},
	{"seed", "N", 2, GF_SETTING_WHOLE, AT(config.seed),
	 "of weights and data order (1)", 0, 1e15},
	{"checkpoint", "DIR", 3, GF_SETTING_TEXT, AT(config.checkpoint),
	 "write checkpoints there"},
	{"checkpoint-every", "N", 3, GF_SETTING_WHOLE,
	 AT(config.checkpoint_every),
	 "every N steps and at the end (every epoch)", 1, 1e12},
	{"resume", NULL, 3, GF_SETTING_FLAG, AT(config.resume),
	 "go on from the last complete checkpoint"},
	{"check-replicas", "N", 3, GF_SETTING_WHOLE, AT(config.check_every),
	 "compare parameters and momentum of all ranks every N steps, 0: never "
	 "(100 if the plan uses the MPI library's all-reduce, else 0)",
	 0, 1e12},
	{"log", "FILE", 4, GF_SETTING_TEXT, AT(log),
	 "write losses and accuracies as JSON Lines"},
	{"trace", "FILE", 4, GF_SETTING_TEXT, AT(trace),
	 "write a Chrome trace of all ranks' last steps and the prediction"},
	{"target", "A", 4, GF_SETTING_REAL, AT(target),
	 "exit 1 if the test accuracy ends below A (0 to 1)", 0, 1},
	{"timeout", "TIME", 5, GF_SETTING_TIME, AT(config.timeout_s),
	 "give up when a rank does not answer for so long (60s)"},
	{"threads", "N", 5, GF_SETTING_WHOLE, AT(threads),
	 "compute threads per rank (its share of the cores)", 1, 4096},
	{"device", "NAME", 5, GF_SETTING_TEXT, AT(device),
	 "auto, cpu, or the name of a backend (auto)"},
	{"replay", NULL, 5, GF_SETTING_FLAG, AT(replay),
	 "sleep while the plan's model would compute; communicate for real"},
};

#define NSETTINGS GF_ARRAY_LENGTH(settings)

static void check_options(struct argp_state *state, struct arguments *a)
{
	if (a->replay && !a->plan)
		argp_error(state, "--replay: want --plan, for its times");
	if (a->replay && (a->model || a->config.checkpoint || a->log))
		argp_error(state, "--replay: computes nothing, so there is no "
				  "--model, --checkpoint or --log");
	if (a->config.resume && !a->config.checkpoint)
		argp_error(state, "--resume: want --checkpoint DIR");
	if (a->config.lr_batch > 0 && a->config.sgd.lr < 0)
		argp_error(state, "--lr-batch: want --lr, which it scales");
	if (strcmp(a->device, "cpu") == 0)
		a->device = "auto";
	a->config.backend = gf_backend_find(a->device);
	if (!a->config.backend)
		argp_error(state,
			   "--device: want auto, cpu or a backend of "
			   "this build, got \"%s\"",
			   a->device);
}

static int parse_opt(int key, char *arg, struct argp_state *state)
{
	struct arguments *a = state->input;

	if (key == ARGP_KEY_INIT)
		state->child_inputs[0] = &a->cli;
	else if (key == ARGP_KEY_END)
		check_options(state, a);
	else
		return gf_settings_parse(settings, NSETTINGS, key, arg, state,
					 a);
	return 0;
}

/* --- what is told ------------------------------------------------------- */

struct session {
	const struct arguments *a;
	struct gf_comm *comm;
	struct gf_train_config config;
	struct gf_plan plan;
	struct gf_model model;
	struct gf_dataset data;
	struct gf_prediction replayed; /* a replay's own */
	struct gf_clock_offset offset;
	struct gf_train_log log;
	struct gf_progress progress;
	struct gf_train_row epoch; /* the last "train" row */
};

static int tell_row(void *ctx, const struct gf_train_row *row,
		    struct gf_error *err)
{
	struct session *s = ctx;

	if (strcmp(row->part, "train") == 0)
		s->epoch = *row;
	if (strcmp(row->part, "test") == 0 && s->epoch.step == row->step) {
		char *line = gf_report_epoch(&s->epoch, row, s->config.epochs);

		gf_progress_end(&s->progress);
		gf_cli_note(&s->a->cli, 0, "%s", line);
		free(line);
		gf_progress_start(&s->progress, &s->a->cli, "training");
	}
	return s->log.stream ? gf_train_log_row(&s->log, row, err) : 0;
}

static void tell_progress(void *ctx, size_t step, size_t steps)
{
	struct session *s = ctx;

	gf_progress_at(&s->progress, (double)step / (double)steps, NULL);
}

/* --- what is run -------------------------------------------------------- */

/* --model, else the model that a whole plan was made for, else the default. */
static int load_model(struct session *s, struct gf_error *err)
{
	const char *name = s->a->model     ? s->a->model
			   : s->plan.model ? s->plan.model->name
					   : "digits-cnn";
	char *path = NULL;
	int rc = 0;

	if (s->comm->rank == 0)
		rc = gf_cli_share("models", name, &path, err);
	rc = gf_train_read_model(s->comm, rc, path, &s->model, err);
	free(path);
	return rc;
}

static int load_data(struct session *s, struct gf_error *err)
{
	const char *name = s->a->data ? s->a->data : "digits";
	const char *folder = gf_dataset_folder(name);
	char *found = NULL, *path;
	int rc;

	/* what is no folder may still be the name of a made-up set */
	gf_cli_share("data", folder, &found, NULL);
	path = gf_xasprintf("%.*s%s", (int)(folder - name), name,
			    found ? found : folder);
	rc = gf_train_open_data(s->comm, path, &s->model, s->config.seed,
				&s->data, err);
	free(found);
	free(path);
	return rc;
}

static int load(struct session *s, struct gf_error *err)
{
	const struct arguments *a = s->a;
	int rc = 0;

	if (a->plan)
		rc = gf_train_read_plan(s->comm, a->plan, &s->plan, err);
	else
		gf_train_default_plan(&s->plan);
	if (!rc && !a->replay)
		rc = load_model(s, err);
	if (rc)
		return rc;
	rc = gf_train_bind(&s->plan, a->replay ? NULL : &s->model,
			   s->comm->ranks, err);
	if (rc && a->plan)
		gf_error_prefix(err, "%s", a->plan);
	rc = gf_comm_agree(s->comm, rc, err);
	if (!rc && !a->replay)
		rc = load_data(s, err);
	return rc;
}

static int set_threads(struct session *s, struct gf_error *err)
{
	int threads = (int)s->a->threads;
	double share = 0;
	int rc = gf_comm_processor_share(s->comm, &share, err);

	if (!rc && !threads)
		rc = gf_comm_compute_threads(s->comm, &threads, err);
	if (rc)
		return rc;
	gf_nn_set_threads(threads);
	if (share + 0.01 < threads)
		gf_cli_note(&s->a->cli, 0,
			    "ranks of %d compute thread%s have %.2g processors "
			    "each: they slow each other",
			    threads, threads == 1 ? "" : "s", share);
	return 0;
}

static int begin(struct session *s, struct gf_error *err)
{
	const struct arguments *a = s->a;
	int rc = 0;

	s->config.comm = s->comm;
	s->config.plan = &s->plan;
	s->config.model = &s->model;
	s->config.data = &s->data;
	s->config.watch = (struct gf_train_watch){tell_row, tell_progress, s};
	gf_train_complete(&s->config);
	/* better to learn now than after an hour that a file cannot be */
	if (s->comm->rank == 0 && a->trace)
		rc = gf_file_try(a->trace, err);
	if (!rc && s->comm->rank == 0 && a->cli.output &&
	    strcmp(a->cli.output, "-") != 0)
		rc = gf_file_try(a->cli.output, err);
	if (!rc && s->comm->rank == 0 && a->log)
		rc = gf_train_log_open(&s->log, a->log, &s->config, err);
	rc = gf_comm_agree(s->comm, rc, err);
	if (!rc && a->trace)
		rc = gf_clock_compare(s->comm, &s->offset, err);
	return rc;
}

/* Rank 0, when all is done. */
static int write_out(struct session *s, const struct gf_train_result *result,
		     const struct gf_prediction *predicted, const char *trace,
		     struct gf_error *err)
{
	char *text = gf_report_text(&s->plan, predicted, result);
	int rc = gf_train_log_close(&s->log, err);

	if (!rc && trace)
		rc = gf_file_write(s->a->trace, trace, strlen(trace), err);
	if (!rc)
		rc = gf_cli_emit(&s->a->cli, text, err);
	free(text);
	return rc;
}

static int emit(struct session *s, const struct gf_train_result *result,
		struct gf_error *err)
{
	const struct gf_prediction *predicted;
	char *trace = NULL;
	int rc = 0;

	predicted = gf_train_prediction(&s->plan, s->config.batch, s->a->replay,
					&s->replayed, err);
	if (!predicted && err->text[0])
		gf_cli_note(&s->a->cli, 0, "no prediction: %s", err->text);
	if (s->a->trace)
		rc = gf_train_trace(s->comm, &s->plan, predicted,
				    &result->timeline, &s->offset, &trace, err);
	if (!rc && s->comm->rank == 0)
		rc = write_out(s, result, predicted, trace, err);
	free(trace);
	return gf_comm_agree(s->comm, rc, err);
}

static int judge(const struct session *s, const struct gf_train_row *test,
		 struct gf_error *err)
{
	double accuracy = (double)test->correct / (double)test->samples;

	if (!test->part || accuracy >= s->a->target)
		return 0;
	return gf_error_set(err, 1, "want test accuracy %.4f, got %.4f",
			    s->a->target, accuracy);
}

static int run(struct session *s, struct gf_error *err)
{
	struct gf_train_result result = {0};
	int rc = load(s, err);

	if (!rc && !s->a->replay)
		rc = set_threads(s, err);
	if (!rc)
		rc = begin(s, err);
	if (rc)
		return rc;
	gf_progress_start(&s->progress, &s->a->cli, "training");
	rc = s->a->replay ? gf_train_replay(&s->config, &result, err)
			  : gf_train_run(&s->config, &result, err);
	gf_progress_end(&s->progress);
	if (!rc)
		rc = emit(s, &result, err);
	if (!rc)
		rc = judge(s, &result.test, err);
	if (!s->comm->broken)
		gf_train_result_release(&result);
	return rc;
}

/* What fails on all ranks alike is said by one; a rank that lost the others
 * says what it saw, and ends the job. */
static int finish(struct session *s, int rc, struct gf_error *err)
{
	const struct gf_cli *cli = &s->a->cli;
	bool lost = s->comm && s->comm->broken && s->comm->ranks > 1;
	int status;

	if (rc && s->comm && s->comm->rank > 0 && !lost)
		rc = gf_cli_status(rc);
	else if (rc > 0)
		gf_cli_warn(cli, "%s", err->text);
	status = gf_cli_exit(cli, rc, err);
	if (lost)
		gf_comm_abort(s->comm, status);
	gf_dataset_close(&s->data);
	gf_model_release(&s->model);
	gf_plan_release(&s->plan);
	free(s->replayed.messages);
	gf_comm_close(s->comm);
	return status;
}

int main(int argc, char **argv)
{
	static struct argp_option options[NSETTINGS + 1];
	static const struct argp argp = {
		options, parse_opt, NULL, doc, gf_cli_children, NULL, NULL,
	};
	struct arguments a = {.device = "auto", .config = defaults};
	struct session s = {.a = &a};
	struct gf_error err = {""};
	int rc;

	gf_settings_options(settings, NSETTINGS, options);
	gf_cli_parse(&a.cli, "gf-train", &argp, argc, argv, &a);
	s.config = a.config;
	rc = gf_comm_open(&s.comm, &err);
	if (!rc)
		rc = run(&s, &err);
	return finish(&s, rc, &err);
}
