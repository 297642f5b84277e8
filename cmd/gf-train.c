/* SPDX-License-Identifier: BSD-3-Clause */
#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/file.h"
#include "base/heap.h"
#include "cli/command.h"
#include "cli/deadline.h"
#include "cli/progress.h"
#include "cli/share.h"
#include "cli/start.h"
#include "engine/priority.h"
#include "engine/session.h"
#include "nn/net.h"
#include "optim/optimizer.h"
#include "train/assign.h"
#include "train/choose.h"
#include "train/log.h"
#include "train/options.h"
#include "train/place.h"
#include "train/predict.h"
#include "train/report.h"
#include "train/trace.h"
#include "train/train.h"

static const char help[] =
	"Train a model on all ranks of a job, exchanging gradients as a "
	"plan says; print predicted beside measured times."
	"\vExamples:\n"
	"  gf-topo | gf-plan > plan.json\n"
	"  mpirun -np 4 gf-train --plan plan.json --checkpoint ckpt";

struct arguments {
	struct gf_cli cli;
	struct gf_train_options options;
	struct gf_cli_start start;
};

/* --- options ------------------------------------------------------------ */

static const char *const bad_gradient_names[] = {"end", "skip", NULL};

static const char *const data_sets[] = {"synthetic", NULL};
static const char *const augmentations[] = {"none", "flip", "crop:4", NULL};
static const char *const exclusions[] = {"vectors", "none", NULL};
static const char *const loss_scales[] = {"auto", "none", "dynamic", "65536",
					  NULL};
static const char *const devices[] = {"auto",   "cpu", "cuda", "cuda:0",
				      "onednn", "ref", NULL};

#define AT(field) offsetof(struct arguments, options.field)
#define START     offsetof(struct arguments, start)

static const char *const precision_names[] = {"f32", "f16", "bf16", NULL};

#pragma GCC diagnostic ignored "-Wmissing-field-initializers" /* clang */
static const struct gf_setting settings[] = {
	{"plan", "FILE", 1, GF_SETTING_TEXT, AT(plan),
	 "exchange gradients by this plan"},
	{"model", "NAME", 1, GF_SETTING_TEXT, AT(model),
	 "train a shipped model or a file (the plan's, or digits-cnn)",
	 .share = "models"},
	{"data", "DIR", 1, GF_SETTING_TEXT, AT(data),
	 "train with a folder, FORMAT:FOLDER, synthetic or synthetic:N "
	 "(digits)",
	 .names = data_sets, .share = "data"},
	{"training", "NAME", 1, GF_SETTING_TEXT, AT(training_file),
	 "train as a shipped document or a file says; options override it",
	 .share = "training"},
	{"augment", "LIST", 1, GF_SETTING_TEXT, AT(training.augment),
	 "change training images: flip, crop:N, or both (none)",
	 .names = augmentations},
	{"label-smoothing", "S", 2, GF_SETTING_REAL,
	 AT(training.label_smoothing),
	 "share of a label that goes to all classes in equal parts (0)", 0, 1},
	{"ema-decay", "D", 2, GF_SETTING_REAL, AT(training.ema_decay),
	 "keep an average of weights, of which D stays in a step, and test "
	 "it (none)",
	 0, 0.999999},
	{"epochs", "N", 2, GF_SETTING_WHOLE, AT(training.epochs),
	 "passes over the training data (10)", 1, 1e9},
	{"steps", "N", 2, GF_SETTING_WHOLE, AT(steps),
	 "stop after N steps in all (a replay: 50)", 1, 1e12},
	{"batch", "N", 2, GF_SETTING_WHOLE, AT(training.batch),
	 "samples that a rank computes at once (the plan's, or 16)", 1, 1e9},
	{"accumulate", "N", 2, GF_SETTING_WHOLE, AT(training.accumulate),
	 "exchange the mean gradient of N batches at once (1)", 1, 1e9},
	{"optimizer", "NAME", 2, GF_SETTING_TEXT, AT(training.optimizer),
	 "sgd, nesterov, lars, lars-paper or adamw (sgd; with attention "
	 "adamw)",
	 .from = {{gf_optimizers}}},
	{"lr", "RATE", 2, GF_SETTING_REAL, AT(training.rate),
	 "peak learning rate (0.1 for a global batch of 64, scaled; adamw: "
	 "1e-3)",
	 0, 1e9},
	{"lr-batch", "N", 2, GF_SETTING_REAL, AT(training.rate_batch),
	 "RATE is meant for a global batch of N: scale it to this run's", 1,
	 1e12},
	{"momentum", "M", 2, GF_SETTING_REAL, AT(training.momentum),
	 "the optimizer's momentum (0.9)", 0, 1},
	{"weight-decay", "D", 2, GF_SETTING_REAL, AT(training.weight_decay),
	 "the optimizer's weight decay (5e-3; adamw: 0.01)", 0, 1e9},
	{"beta1", "B", 2, GF_SETTING_REAL, AT(training.beta1),
	 "adamw: how much of the mean gradient stays in a step (0.9)", 0,
	 0.999999},
	{"beta2", "B", 2, GF_SETTING_REAL, AT(training.beta2),
	 "adamw: how much of the mean square stays in a step (0.999)", 0,
	 0.999999},
	{"eta", "E", 2, GF_SETTING_REAL, AT(training.eta),
	 "LARS's trust coefficient (0.02)", 0, 1e9},
	{"epsilon", "E", 2, GF_SETTING_REAL, AT(training.epsilon),
	 "what adamw (1e-8) and LARS (0) add to the divisor", 0, 1e9},
	{"exclude", "LIST", 2, GF_SETTING_TEXT, AT(training.exclude),
	 "tensors without weight decay and trust ratio: vectors, none, or "
	 "patterns (lars: vectors, else none)",
	 .names = exclusions},
	{"clip-norm", "N", 2, GF_SETTING_REAL, AT(training.clip_norm),
	 "scale larger gradients down to this norm; 0 is no limit (0)", 0, 1e9},
	{"warmup", "EPOCHS", 2, GF_SETTING_REAL, AT(training.warmup_epochs),
	 "raise the rate to its peak over EPOCHS (1)", 0, 1e9},
	{"schedule", "NAME", 2, GF_SETTING_CHOICE, AT(training.schedule),
	 "the rate after that: constant, linear, cosine, step or poly "
	 "(cosine)",
	 .names = gf_schedule_names},
	{"drop-epochs", "LIST", 2, GF_SETTING_REALS, AT(training.drop_epochs),
	 "schedule step: the epochs after which the rate drops", 0, 1e9,
	 .offset2 = AT(training.ndrops)},
	{"drop-factor", "F", 2, GF_SETTING_REAL, AT(training.drop_factor),
	 "schedule step: the factor of each drop (0.1)", 0, 1},
	{"power", "P", 2, GF_SETTING_REAL, AT(training.power),
	 "schedule poly: the exponent (2)", 0, 100},
	{"floor", "F", 2, GF_SETTING_REAL, AT(training.floor),
	 "schedule cosine: the share of the peak that it ends at (0)", 0, 1},
	{"loss-scale", "S", 2, GF_SETTING_TEXT, AT(loss_scale),
	 "scale gradients on the wire: none, dynamic, a power of two, or "
	 "auto, which is dynamic with codec f16 (auto)",
	 .names = loss_scales},
	{"seed", "N", 2, GF_SETTING_WHOLE, AT(training.seed),
	 "seed of weights and data order (1)", 0, 1e15},
	{"checkpoint", "DIR", 3, GF_SETTING_TEXT, AT(checkpoint),
	 "write checkpoints there"},
	{"checkpoint-every", "N", 3, GF_SETTING_WHOLE, AT(checkpoint_every),
	 "write one every N steps and at the end (every epoch)", 1, 1e12},
	{"weights", "FILE", 3, GF_SETTING_TEXT, AT(weights),
	 "start from the parameters of a safetensors file"},
	{"export", "FILE", 3, GF_SETTING_TEXT, AT(export),
	 "write the weights in the end, by PyTorch's names"},
	{"evaluate", NULL, 3, GF_SETTING_FLAG, AT(evaluate),
	 "with --weights: test them on the data, and stop"},
	{"resume", NULL, 3, GF_SETTING_FLAG, AT(resume),
	 "go on from the last complete checkpoint"},
	{"reshard", NULL, 3, GF_SETTING_FLAG, AT(reshard),
	 "with --resume: accept a checkpoint of another number of ranks"},
	{"bad-gradients", "WHAT", 3, GF_SETTING_CHOICE, AT(bad_gradients),
	 "if a gradient is infinite or not a number, end the run or skip "
	 "the step (end)",
	 .names = bad_gradient_names},
	{"check-replicas", "N", 3, GF_SETTING_WHOLE, AT(check_every),
	 "compare parameters and momentum of all ranks every N steps; 0 is "
	 "never (100 if the plan uses the MPI library's all-reduce, else 0)",
	 0, 1e12},
	{"log", "FILE", 4, GF_SETTING_TEXT, AT(log),
	 "write losses and accuracies as JSON Lines"},
	{"log-every", "N", 4, GF_SETTING_WHOLE, AT(log_every),
	 "of the log's rows of steps, write every Nth; 0 is none (1)", 0, 1e12},
	{"trace", "FILE", 4, GF_SETTING_TEXT, AT(trace),
	 "write a Chrome trace of all ranks' last steps and the prediction"},
	{"top-k", "K", 4, GF_SETTING_WHOLE, AT(top_k),
	 "count test labels among the K likeliest, too", 1, 1e9},
	{"target", "A", 4, GF_SETTING_REAL, AT(target),
	 "exit 1 if the test accuracy ends below A (0 to 1)", 0, 1},
	{"list", NULL, 4, GF_SETTING_FLAG, AT(list),
	 "list selections, optimizers and schedules"},
	{"print-training", NULL, 4, GF_SETTING_FLAG, AT(print_training),
	 "print the training as a document, and stop"},
	{"timeout", "TIME", 5, GF_SETTING_TIME, AT(timeout_s),
	 "give up when a rank does not answer for TIME (60s)"},
	{"threads", "N", 5, GF_SETTING_WHOLE, AT(threads),
	 "compute threads per rank (its share of the cores)", 1, 4096},
	{"device", "NAME", 5, GF_SETTING_TEXT, AT(device),
	 "compute on auto, cpu, cuda, cuda:N, or a backend by name (auto)",
	 .names = devices},
	{"precision", "TYPE", 5, GF_SETTING_CHOICE, AT(precision),
	 "type of weights and activations on a GPU: f32, f16 or bf16 (f32)",
	 .names = precision_names},
	{"transport", "NAME", 5, GF_SETTING_CHOICE, AT(transport),
	 "send gradients of GPUs by nccl, and from the host by mpi or ucx; or "
	 "auto (auto)",
	 .names = gf_train_transports},
	{GF_CLI_START_JOIN(5, START)},
	{GF_CLI_START_RANK(5, START)},
	{GF_CLI_START_RANKS(5, START, "")},
	{"cuda-graph", NULL, 5, GF_SETTING_FLAG, AT(cuda_graph),
	 "insist on a GPU, whose passes are captured into graphs"},
	{"no-cuda-graph", NULL, 5, GF_SETTING_FLAG, AT(no_cuda_graph),
	 "enqueue a GPU's passes anew in each step"},
	{"replay", NULL, 5, GF_SETTING_FLAG, AT(replay),
	 "sleep while the plan's model would compute, and communicate for "
	 "real"},
};

/* A replay computes nothing, and learns nothing. */
static const struct gf_setting_rule rules[] = {
	{"list", NULL, "*"},
	{"weights", NULL, "resume reshard"},
	{"evaluate", NULL,
	 "resume reshard checkpoint checkpoint-every epochs steps trace"},
	{"log-every", "log", NULL},
	{"no-cuda-graph", NULL, "cuda-graph"},
	{"replay", NULL,
	 "model data training augment epochs batch accumulate optimizer lr "
	 "lr-batch momentum weight-decay beta1 beta2 eta epsilon exclude "
	 "clip-norm label-smoothing ema-decay top-k warmup schedule "
	 "drop-epochs drop-factor power floor loss-scale seed weights export "
	 "evaluate checkpoint "
	 "checkpoint-every resume reshard bad-gradients check-replicas log "
	 "target print-training threads device precision "
	 "cuda-graph no-cuda-graph"},
};

static int check(void *arguments, struct gf_error *err)
{
	struct arguments *a = arguments;

	bool mpi = a->options.transport == GF_TRANSPORT_MPI;
	int rc = gf_cli_start_finish(&a->cli, &a->start, mpi, err);

	return rc ? rc
		  : gf_train_options_finish(&a->options, a->cli.output, err);
}

/* In the order of use, as the options are. */
static const char *const groups[] = {
	"What is trained:",
	"The training:",
	"Checkpoints and checks:",
	"What is printed:",
	"How ranks compute and meet:",
};

static const struct gf_command command = {
	.name = "gf-train",
	.help = help,
	.settings = settings,
	.nsettings = GF_ARRAY_LENGTH(settings),
	.groups = groups,
	.rules = rules,
	.nrules = GF_ARRAY_LENGTH(rules),
	.check = check,
};

/* --- what is told ------------------------------------------------------- */

struct session {
	const struct arguments *a;
	const struct gf_train_options *o; /* a's */
	struct gf_comm *comm;
	struct gf_session session;
	struct gf_train_config config;
	struct gf_plan plan;
	struct gf_model model;
	struct gf_dataset data;
	struct gf_train_place place;
	struct gf_prediction replayed; /* a replay's own */
	struct gf_clock_offset offset;
	struct gf_train_log log;
	bool told_growth; /* of the log */
	struct gf_progress progress;
	struct gf_train_row epoch; /* the last "train" row */
	char *job;
};

static int tell_row(void *ctx, const struct gf_train_row *row,
		    struct gf_error *err)
{
	struct session *s = ctx;

	if (strcmp(row->part, "train") == 0)
		s->epoch = *row;
	if (strcmp(row->part, "test") == 0 && s->epoch.part &&
	    s->epoch.step == row->step) {
		char *line = gf_report_epoch(&s->epoch, row,
					     s->config.training.epochs);

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
	char *growth;

	gf_progress_at(&s->progress, (double)step / (double)steps, NULL);
	if (s->told_growth || !s->log.row_bytes)
		return;
	s->told_growth = true;
	growth = gf_train_log_growth(&s->log, steps);
	if (growth)
		gf_cli_note(&s->a->cli, 0, "%s", growth);
	free(growth);
}

static void tell_note(void *ctx, const char *text)
{
	gf_cli_note(&((struct session *)ctx)->a->cli, 0, "%s", text);
}

/* --- what is run -------------------------------------------------------- */

/* What is said by options, and what by --training. */
static int load_training(struct session *s, struct gf_error *err)
{
	struct gf_training given;
	char *path = NULL;
	int rc = 0;

	gf_training_copy(&s->config.training, &s->o->training);
	if (!s->o->training_file)
		return 0;
	if (s->comm->rank == 0)
		rc = gf_cli_share("training", s->o->training_file, &path, err);
	rc = gf_train_read_training(s->comm, rc, path, &given, err);
	if (!rc) {
		gf_training_fill(&s->config.training, &given);
		gf_training_release(&given);
	}
	free(path);
	return rc;
}

/* --model, else the model that a whole plan was made for, else the default. A
 * name in a document is a shipped model's, never a path. */
static int find_model(const struct session *s, char **path,
		      struct gf_error *err)
{
	const char *named = s->plan.model ? s->plan.model->name : "digits-cnn";
	int rc;

	if (s->o->model)
		return gf_cli_share("models", s->o->model, path, err);
	rc = gf_cli_shipped("models", named, path, err);
	if (rc && s->plan.model)
		gf_error_set(err, rc,
			     "the plan's model: want the name of a shipped "
			     "model, got \"%s\" (--model FILE names another)",
			     named);
	return rc;
}

static int load_model(struct session *s, struct gf_error *err)
{
	char *path = NULL;
	int rc = s->comm->rank == 0 ? find_model(s, &path, err) : 0;

	rc = gf_train_read_model(s->comm, rc, path, &s->model, err);
	free(path);
	return rc;
}

static int load_data(struct session *s, struct gf_error *err)
{
	const char *name = s->o->data ? s->o->data : "digits";
	const char *folder = gf_dataset_folder(name);
	char *found = NULL, *path;
	int rc;

	/* what is no folder may still be the name of a made-up set */
	gf_cli_share("data", folder, &found, NULL);
	path = gf_xasprintf("%.*s%s", (int)(folder - name), name,
			    found ? found : folder);
	rc = gf_train_open_data(s->comm, path, &s->model,
				s->config.training.seed, &s->data, err);
	free(found);
	free(path);
	return rc;
}

static int load(struct session *s, struct gf_error *err)
{
	const struct gf_train_options *o = s->o;
	int rc = 0;

	if (o->plan)
		rc = gf_train_read_plan(s->comm, o->plan, &s->plan, err);
	else
		gf_train_default_plan(&s->plan);
	if (!rc && !o->replay)
		rc = load_model(s, err);
	if (rc)
		return rc;
	rc = gf_train_bind(&s->plan, o->replay ? NULL : &s->model,
			   s->comm->ranks, err);
	if (rc && o->plan)
		gf_error_prefix(err, "%s", o->plan);
	rc = gf_comm_agree(s->comm, rc, err);
	rc = rc ? rc : load_training(s, err);
	rc = rc ? rc : gf_train_complete(&s->config, err);
	rc = rc ? rc : gf_train_options_heeded(o, &s->config.training, err);
	if (rc || o->print_training)
		return rc;
	return o->replay ? 0 : load_data(s, err);
}

static int take_place(struct session *s, struct gf_error *err)
{
	const struct gf_train_wish wish = {
		.device = s->o->device,
		.threads = (int)s->o->threads,
		.precision = gf_train_precisions[s->o->precision],
		.transport = (enum gf_train_transport)s->o->transport,
	};
	int rc;

	rc = gf_train_place_take(&s->config, &wish, &s->place, err);
	if (!rc && s->place.note)
		gf_cli_note(&s->a->cli, 0, "%s", s->place.note);
	if (!rc && s->place.threads && !s->o->replay && s->comm->ranks > 1 &&
	    s->comm->processors > 0)
		gf_cli_note(&s->a->cli, 1,
			    "compute threads of a rank: %d, on %.4g "
			    "processors; the communication thread %s",
			    s->place.threads, s->comm->processors,
			    gf_priority_crowded(s->comm, s->place.threads)
				    ? "shares them and goes first"
				    : "has one of its own");
	if (!rc && s->place.nccl && !s->o->plan)
		gf_train_use_library(&s->plan, false);
	return rc;
}

/* What the run needs of the options; documents come later. */
static void configure(struct session *s)
{
	const struct gf_train_options *o = s->o;

	s->config = (struct gf_train_config){
		.comm = s->comm,
		.plan = &s->plan,
		.model = &s->model,
		.data = &s->data,
		.steps = o->steps,
		.top_k = o->top_k,
		.checkpoint = o->checkpoint,
		.checkpoint_every = o->checkpoint_every,
		.job = s->job,
		.resume = o->resume,
		.reshard = o->reshard,
		.weights = o->weights,
		.export = o->export,
		.evaluate = o->evaluate,
		.half = gf_train_precisions[o->precision] == GF_F16,
		.check_every = o->check_every,
		.graphs = o->cuda_graph,
		.no_graphs = o->no_cuda_graph,
		.skip_bad = o->bad_gradients,
		.timeout_s = o->timeout_s,
		.watch = {tell_row, tell_progress, s, tell_note},
	};
}

static int begin(struct session *s, struct gf_error *err)
{
	const struct gf_train_options *o = s->o;
	int rc = 0;

	if (!o->replay) {
		char *line = gf_report_start(&s->config);

		gf_cli_note(&s->a->cli, 0, "%s", line);
		free(line);
	}
	if (s->plan.staleness > 2)
		gf_cli_note(&s->a->cli, 0,
			    "staleness %d: gradients older than one step often "
			    "keep a training from converging",
			    s->plan.staleness);
	if (s->config.choose_s > 1)
		gf_cli_note(&s->a->cli, 0, "choosing algorithms took %.1f s",
			    s->config.choose_s);
	/* better to learn now than after an hour that a file cannot be */
	if (s->comm->rank == 0 && o->trace)
		rc = gf_file_try(o->trace, err);
	if (!rc && s->comm->rank == 0 && o->export)
		rc = gf_file_try(o->export, err);
	if (!rc)
		rc = gf_cli_try_output(&s->a->cli, err);
	if (!rc && s->comm->rank == 0 && o->log)
		rc = gf_train_log_open(&s->log, o->log, o->log_every,
				       &s->config, err);
	rc = gf_comm_agree(s->comm, rc, err);
	if (!rc && o->trace)
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
		rc = gf_file_write(s->o->trace, trace, strlen(trace), err);
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

	predicted = gf_train_prediction(&s->plan, &s->config.training,
					s->o->replay, &s->replayed, err);
	if (!predicted && err->text[0])
		gf_cli_note(&s->a->cli, 0, "no prediction: %s", err->text);
	if (s->o->trace)
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

	if (!test->part || accuracy >= s->o->target)
		return 0;
	return gf_error_set(err, 1, "want test accuracy %.4f, got %.4f",
			    s->o->target, accuracy);
}

static int print_training(const struct session *s, struct gf_error *err)
{
	char *text = gf_training_write(&s->config.training);
	int rc = s->comm->rank ? 0 : gf_cli_emit(&s->a->cli, text, err);

	free(text);
	return gf_comm_agree(s->comm, rc, err);
}

static int run(struct session *s, struct gf_error *err)
{
	struct gf_train_result result = {0};
	int rc;

	s->job = gf_cli_job_name();
	configure(s);
	rc = load(s, err);
	if (!rc && s->o->print_training)
		return print_training(s, err);
	if (!rc && !s->o->replay)
		rc = take_place(s, err);
	rc = rc ? rc : gf_train_take_folder(&s->config, err);
	/* once it is known how gradients go */
	rc = rc ? rc : gf_train_choose(&s->config, &s->plan, err);
	rc = rc ? rc : begin(s, err);
	if (rc)
		return rc;
	gf_progress_start(&s->progress, &s->a->cli, "training");
	rc = s->o->replay ? gf_train_replay(&s->config, &result, err)
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

/* A rank that lost the others says what it saw, and ends the job. */
static int finish(struct session *s, int rc, struct gf_error *err)
{
	struct gf_deadline *end;
	bool lost;
	int status;

	rc = gf_session_end(&s->session, rc, err);
	lost = s->comm && s->comm->broken && s->comm->ranks > 1;
	status = gf_cli_exit_rank(&s->a->cli, rc, s->comm && !lost, err);

	gf_train_leave_folder(&s->config);
	if (lost)
		gf_comm_abort(s->comm, status);
	end = gf_cli_close_deadline(&s->a->cli, s->o->timeout_s);
	gf_train_place_close(&s->place);
	gf_dataset_close(&s->data);
	gf_model_release(&s->model);
	gf_plan_release(&s->plan);
	gf_training_release(&s->config.training);
	free(s->replayed.messages);
	free(s->job);
	gf_comm_close(s->comm);
	gf_cli_end_deadline(end);
	return status;
}

static int print_list(const struct gf_cli *cli, struct gf_error *err)
{
	struct gf_text out = {0};
	int rc;

	gf_train_list(&out);
	rc = cli->rank > 0 ? 0 : gf_cli_emit(cli, out.data, err);
	gf_text_release(&out);
	return rc;
}

int main(int argc, char **argv)
{
	struct arguments a = {0};
	struct session s = {.a = &a, .o = &a.options};
	struct gf_error err = {""};
	struct gf_deadline *start;
	struct gf_comm_how how;
	int rc;

	gf_train_options_init(&a.options);
	gf_cli_parse(&command, argc, argv, &a);
	start = gf_cli_start_deadline(&a.cli, a.start.join,
				      a.options.timeout_s);
	how = (struct gf_comm_how){
		.transport = gf_train_between_hosts(a.options.transport),
		.meet = a.start.join,
		.rank = a.start.rank,
		.ranks = a.start.ranks,
		.timeout_s = gf_cli_open_limit_s(a.options.timeout_s),
	};
	rc = a.options.list && !a.cli.launched
		     ? gf_comm_local_new(1, &s.comm, &err)
		     : gf_comm_open(&how, &s.comm, &err);
	gf_cli_end_deadline(start);
	if (!rc)
		gf_session_begin(&s.session, s.comm, a.options.timeout_s);
	rc = rc ? rc : gf_train_same(s.comm, &a.options, &err);
	if (!rc)
		rc = a.options.list ? print_list(&a.cli, &err) : run(&s, &err);
	rc = finish(&s, rc, &err);
	gf_train_options_release(&a.options);
	return rc;
}
