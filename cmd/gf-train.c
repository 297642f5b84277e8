/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#include "base/array.h"
#include "base/heap.h"
#include "cli/command.h"
#include "cli/deadline.h"
#include "cli/start.h"
#include "cli/launch.h"
#include "trainer/optim/optimizer.h"
#include "discovery/find_levels.h"
#include "simulator/sum_error.h"
#include "trainer/groups.h"
#include "trainer/choose_ways.h"
#include "trainer/options.h"
#include "trainer/speed.h"
#include "trainer/run_report.h"
#include "trainer/train.h"

static const char help[] = "Train a model on all ranks of a job, exchanging gradients as a plan "
			   "says; print predicted beside measured times.\vExamples:\n"
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
static const char *const loss_scales[] = {"auto", "none", "dynamic", "65536", NULL};
static const char *const devices[] = {"auto", "cpu", "cuda", "cuda:0", "onednn", "ref", NULL};

#define AT(field) offsetof(struct arguments, options.field)
#define START     offsetof(struct arguments, start)

static const char *const precision_names[] = {"f32", "f16", "bf16", NULL};

#pragma GCC diagnostic ignored "-Wmissing-field-initializers" /* clang */
static const struct gf_setting own_settings[] = {
	{"plan", "FILE", 1, GF_SETTING_TEXT, AT(plan), "exchange gradients by this plan",
	 .often = true},
	{"model", "NAME", 1, GF_SETTING_TEXT, AT(model),
	 "train a shipped model or a file (the plan's, or digits-cnn)", .share = "models",
	 .often = true},
	{"data", "DIR", 1, GF_SETTING_TEXT, AT(data),
	 "train with a folder, FORMAT:FOLDER, synthetic or synthetic:N (digits)",
	 .names = data_sets, .share = "data"},
	{"training", "NAME", 1, GF_SETTING_TEXT, AT(training_file),
	 "train as a shipped document or a file says; options override it", .share = "training",
	 .often = true},
	{.kind = GF_SETTING_FIELDS,
	 .group = 2,
	 .offset = AT(training),
	 .keys = &gf_training_record,
	 .defaults = gf_train_print_default,
	 .often = true},
	{"schedule", "NAME[:KEYS]", 2, GF_SETTING_ENTRY, AT(training.schedule),
	 "the rate after its warm-up: constant, linear, cosine, step or poly (cosine)",
	 .names = gf_schedule_names, .keys = &gf_training_rate_record, .offset2 = AT(training),
	 .defaults = gf_train_print_default},
	{"optimizer", "NAME[:KEYS]", 2, GF_SETTING_ENTRY, AT(optimizer),
	 "sgd, nesterov, lars, lars-paper or adamw (sgd; with attention adamw, else of stale "
	 "gradients nesterov)",
	 .from = {{gf_optimizers}}, .keys = &gf_training_optimizer_record, .offset2 = AT(training),
	 .defaults = gf_train_print_default, .often = true},
	{"steps", "N", 2, GF_SETTING_WHOLE, AT(config.steps),
	 "stop after N steps in all (a replay: 50)", 1, 1e12},
	{"loss-scale", "S", 2, GF_SETTING_TEXT, AT(loss_scale),
	 "scale gradients on the wire: none, dynamic, a power of two, or auto, which is dynamic "
	 "with codec f16 (auto)",
	 .names = loss_scales},
	{"checkpoint", "DIR", 3, GF_SETTING_TEXT, AT(config.checkpoint), "write checkpoints there"},
	{"checkpoint-every", "N", 3, GF_SETTING_WHOLE, AT(config.checkpoint_every),
	 "write one every N steps and at the end (every epoch)", 1, 1e12},
	{"resume", "RANKS", 3, GF_SETTING_CHOICE, AT(config.resume),
	 "go on from the last complete checkpoint, of the same ranks or of any number",
	 .names = gf_train_resumes, .otherwise = "same"},
	{"bad-gradients", "WHAT", 3, GF_SETTING_CHOICE, AT(config.skip_bad),
	 "if a gradient is infinite or not a number, end the run or skip the step",
	 .names = bad_gradient_names},
	{"reproducible", NULL, 3, GF_SETTING_FLAG, AT(reproducible),
	 "add gradients in one order, whatever messages they are in"},
	{"check-replicas", "N", 3, GF_SETTING_WHOLE, AT(config.check_every),
	 "compare parameters and momentum of all ranks every N steps; 0 is never (100 if the plan "
	 "uses the MPI library's all-reduce, else 0)",
	 0, 1e12},
	{"log", "FILE", 4, GF_SETTING_TEXT, AT(log), "write losses and accuracies as JSON Lines",
	 .written = true},
	{"log-every", "N", 4, GF_SETTING_WHOLE, AT(log_every),
	 "of the log's rows of steps, write every Nth; 0 is none", 0, 1e12},
	{"trace", "FILE", 4, GF_SETTING_TEXT, AT(trace),
	 "write a Chrome trace of all ranks' last steps and the prediction", .written = true},
	{"statistics", "FILE", 4, GF_SETTING_TEXT, AT(statistics),
	 "write the plan's model with what its gradients are like, for gf-plan", .written = true},
	{"test-samples", "N", 4, GF_SETTING_WHOLE, AT(config.test_samples),
	 "test on N samples, evenly spread (all)", 1, 1e12},
	{"target", "A", 4, GF_SETTING_REAL, AT(target),
	 "exit 1 if the test accuracy ends below A, e.g. 0.9 or 90%", 0, 1},
	{"list", NULL, 4, GF_SETTING_FLAG, AT(list), "list selections, optimizers and schedules"},
	{"print-training", NULL, 4, GF_SETTING_FLAG, AT(print_training),
	 "print the training as a document, and stop"},
	{"timeout", "TIME", 5, GF_SETTING_TIME, AT(config.timeout_s),
	 "give up when a rank does not answer for TIME"},
	{"threads", "N", 5, GF_SETTING_WHOLE, AT(threads),
	 "compute threads per rank (its share of the cores)", 1, 4096},
	{"loaders", "N", 5, GF_SETTING_WHOLE, AT(config.loaders),
	 "threads per rank that fetch samples (1; for a GPU 4)", 1, 1024},
	{"device", "NAME", 5, GF_SETTING_TEXT, AT(device),
	 "compute on auto, cpu, cuda, cuda:N, or a backend by name", .names = devices},
	{"precision", "TYPE", 5, GF_SETTING_CHOICE, AT(precision),
	 "compute on a GPU in f32, f16 or bf16, on processors in f32 or bf16",
	 .names = precision_names},
	{"transport", "NAME", 5, GF_SETTING_CHOICE, AT(transport),
	 "send gradients of GPUs by nccl, and from the host by mpi or ucx; or auto",
	 .names = gf_train_transports},
	{GF_CLI_START_JOIN(5, START)},
	{GF_CLI_START_RANK(5, START)},
	{GF_CLI_START_RANKS(5, START, "")},
	{"cuda-graph", "WHEN", 5, GF_SETTING_CHOICE, AT(cuda_graph),
	 "capture a GPU's passes into graphs; on insists on a GPU, off enqueues them in each step",
	 .names = gf_train_graphs},
	{"replay", NULL, 5, GF_SETTING_FLAG, AT(replay),
	 "sleep while the plan's model would compute, and communicate for real"},
};

/* A replay computes nothing, and learns nothing. */
static const struct gf_setting_rule rules[] = {
	{"list", NULL, "*"},
	{"checkpoint-every resume", "checkpoint", NULL},
	{"log-every", "log", NULL},
	{"statistics", "plan", NULL},
	{"replay", "plan", "* but plan steps trace timeout transport join rank ranks replay"},
};

static int check(void *arguments, struct gf_error *err)
{
	struct arguments *a = arguments;

	bool mpi = a->options.transport == GF_TRANSPORT_MPI;
	int rc = gf_cli_start_finish(&a->cli, &a->start, mpi, err);

	return rc ?: gf_train_options_finish(&a->options, err);
}

/* In the order of use, as the options are. */
static const char *const groups[] = {
	"What is trained:",
	"The training:",
	"Checkpoints and checks:",
	"What is printed:",
	"How ranks compute and meet:",
};

/* --- what is told ------------------------------------------------------- */

struct session {
	const struct arguments *a;
	const struct gf_train_options *o; /* a's */
	struct gf_comm *comm;             /* the launch's */
	struct gf_train_config config;
	struct gf_train_inputs inputs;
	struct gf_train_place place;
	struct gf_prediction replayed; /* a replay's own */
	struct gf_clock_offset offset;
	struct gf_train_log log;
	struct gf_progress progress;
	struct gf_train_row epoch; /* the last "train" row */
	char *job;
};

static int tell_row(void *ctx, const struct gf_train_row *row, struct gf_error *err)
{
	struct session *s = ctx;
	struct gf_deadline *reader;
	int rc;

	if (strcmp(row->part, "train") == 0)
		s->epoch = *row;
	if (strcmp(row->part, "test") == 0 && s->epoch.part && s->epoch.step == row->step) {
		GF_FREED char *line = gf_report_epoch(&s->epoch, row, s->config.training.epochs);

		gf_progress_end(&s->progress);
		gf_cli_note(&s->a->cli, 0, "%s", line);
		gf_progress_start(&s->progress, &s->a->cli, "training");
	}
	if (!s->log.stream)
		return 0;
	reader = gf_cli_reader_deadline(&s->a->cli, s->o->log);
	rc = gf_train_log_row(&s->log, row, err);
	gf_cli_end_deadline(reader);
	return rc;
}

static void tell_progress(void *ctx, size_t step, size_t steps)
{
	struct session *s = ctx;
	GF_FREED char *growth = gf_train_log_growth(&s->log, steps);

	gf_progress_at(&s->progress, (double)step / (double)steps, NULL);
	if (growth)
		gf_cli_note(&s->a->cli, 0, "%s", growth);
}

static void tell_begin(void *ctx)
{
	struct session *s = ctx;
	GF_FREED char *lines = gf_report_start(&s->config, s->o->replay);

	gf_cli_warn_lines(&s->a->cli, lines);
	gf_progress_start(&s->progress, &s->a->cli, "training");
}

static void tell_note(void *ctx, const char *text)
{
	gf_cli_note(&((struct session *)ctx)->a->cli, 0, "%s", text);
}

/* --- what is run -------------------------------------------------------- */

static int take_place(struct session *s, struct gf_error *err)
{
	const struct gf_train_wish wish = gf_train_options_wish(s->o);
	int rc = gf_train_place_take(&s->config, &wish, &s->place, err);

	if (!rc && s->place.note)
		gf_cli_note(&s->a->cli, 0, "%s", s->place.note);
	if (!rc && s->place.at.nccl && !s->o->plan)
		gf_train_use_library(&s->inputs.plan, false);
	return rc;
}

static int open_files(struct session *s, struct gf_error *err)
{
	const struct gf_train_options *o = s->o;
	struct gf_deadline *reader;
	int rc = 0;

	if (s->comm->rank == 0 && o->log) {
		reader = gf_cli_reader_deadline(&s->a->cli, o->log);
		rc = gf_train_log_open(&s->log, o->log, o->log_every, &s->config, err);
		gf_cli_end_deadline(reader);
	}
	rc = gf_comm_agree(s->comm, rc, err);
	if (!rc && o->trace)
		rc = gf_trace_compare_clocks(s->comm, &s->offset, err);
	return rc;
}

static int write_statistics(struct session *s, const struct gf_train_result *result,
			    struct gf_error *err)
{
	const struct gf_statistics_result *found = &result->statistics;
	struct gf_plan *plan = &s->inputs.plan;
	const struct gf_profile profile = {.producer = "gf-train " GF_VERSION,
					   .model = plan->model};
	GF_FREED char *text = NULL;

	if (!found->gradients)
		return gf_error_set(
			err, 1, "--statistics: want a run with a tenth step, got steps %zu to %zu",
			result->first_step, result->last_step);
	for (size_t i = 0; i < plan->model->ntensors; i++) {
		struct gf_tensor *t = &plan->model->tensors[i];

		t->gradient = t->gradient ? t->gradient : gf_xcalloc(1, sizeof(*t->gradient));
		free(t->gradient->extra);
		*t->gradient = found->gradients[i];
	}
	if (found->error > 0)
		gf_cli_note(&s->a->cli, 0,
			    "the means that were applied are off by %.1e of the exact ones (rms), "
			    "predicted %.1e; those of %s by %.1e",
			    found->error, gf_sim_step_error(plan, NULL),
			    plan->model->tensors[found->tensor].name, found->most);
	text = gf_profile_write(&profile);
	return gf_cli_write(&s->a->cli, s->o->statistics, text, err);
}

/* Rank 0, when all is done. */
static int write_out(struct session *s, const struct gf_train_result *result,
		     const struct gf_prediction *predicted, const char *trace, struct gf_error *err)
{
	GF_FREED char *text = gf_report_text(&s->inputs.plan, predicted, result);
	int rc = gf_train_log_close(&s->log, err);

	if (!rc && s->o->statistics)
		rc = write_statistics(s, result, err);
	if (!rc && trace)
		rc = gf_cli_write(&s->a->cli, s->o->trace, trace, err);
	return rc ?: gf_cli_emit(&s->a->cli, text, err);
}

static int emit(struct session *s, const struct gf_train_result *result, struct gf_error *err)
{
	const struct gf_prediction *predicted;
	GF_FREED char *trace = NULL;
	int rc = 0;

	predicted = gf_train_prediction(&s->inputs.plan, &s->config.training, s->o->replay,
					&s->replayed, err);
	if (!predicted && err->text[0])
		gf_cli_note(&s->a->cli, 0, "no prediction: %s", err->text);
	if (s->o->trace)
		rc = gf_train_trace(s->comm, &s->inputs.plan, predicted, &result->timeline,
				    &result->speed, &s->offset, &trace, err);
	if (!rc && s->comm->rank == 0)
		rc = write_out(s, result, predicted, trace, err);
	return gf_comm_agree(s->comm, rc, err);
}

/* 1: the accuracy of a test, if there was one, is below the target. */
static int judge(const struct gf_train_row *test, double target, struct gf_error *err)
{
	double accuracy = (double)test->correct / (double)test->samples;

	if (!test->part || accuracy >= target)
		return 0;
	return gf_error_set(err, 1, "want test accuracy %.4f, got %.4f", target, accuracy);
}

static int run(struct session *s, struct gf_error *err)
{
	struct gf_train_result result = {0};
	GF_RELEASED(gf_text_release) struct gf_text remark = {0};
	int rc;

	s->job = gf_cli_job_name();
	s->config = s->o->config;
	s->config.comm = s->comm;
	s->config.job = s->job;
	s->config.statistics = s->o->statistics;
	s->config.watch =
		(struct gf_train_watch){tell_row, tell_progress, s, tell_note, tell_begin};
	rc = gf_launch_try_outputs(&s->a->cli, s->comm, err);
	rc = rc ?: gf_train_load(s->o, &s->config, &s->inputs, err);
	if (!rc && s->o->print_training)
		return gf_launch_print(&s->a->cli, s->comm, gf_train_document(&s->config.training),
				       err);
	rc = rc ?: gf_train_split(&s->config, err);
	s->comm = s->config.comm;
	if (!rc && !s->o->replay)
		rc = take_place(s, err);
	rc = rc ? rc
		: gf_levels_placed(s->comm, s->inputs.plan.levels, s->inputs.plan.nlevels, &remark,
				   err);
	gf_cli_warn_lines(&s->a->cli, remark.data);
	rc = rc ?: gf_train_take_folder(&s->config, err);
	if (!rc)
		gf_train_settle(&s->config, &s->inputs.plan);
	/* once it is known how gradients go */
	rc = rc ?: gf_train_choose(&s->config, &s->inputs.plan, err);
	rc = rc ?: open_files(s, err);
	if (rc)
		return rc;
	rc = s->o->replay ? gf_train_replay(&s->config, &result, err)
			  : gf_train_run(&s->config, &result, err);
	gf_progress_end(&s->progress);
	rc = rc ?: emit(s, &result, err);
	rc = rc ?: judge(&result.test, s->o->target, err);
	free(result.statistics.gradients);
	if (!s->comm->broken)
		gf_timeline_release(&result.timeline);
	return rc;
}

/* Other jobs may have the folder from now on, even if this one is aborted. */
static void leave_folder(void *session)
{
	struct session *s = session;

	gf_train_leave_folder(&s->config);
}

static void release(void *session)
{
	struct session *s = session;

	(void)gf_train_log_close(&s->log, NULL); /* of a run that failed */
	gf_train_place_close(&s->place);
	gf_train_unload(&s->config, &s->inputs);
	free(s->replayed.messages);
	free(s->job);
}

static int work(void *session, struct gf_comm *comm, struct gf_error *err)
{
	struct session *s = session;
	int rc = gf_train_same(comm, s->o, err);

	s->comm = comm;
	if (rc)
		return rc;
	if (s->o->list)
		return gf_launch_print(&s->a->cli, comm, gf_train_list(), err);
	rc = run(s, err);
	gf_train_join(&s->config);
	s->comm = comm;
	return rc;
}

/* What the options ask for: "train", "--replay" and so on. */
static const char *doing(const struct gf_train_options *o)
{
	return o->list             ? "--list"
	       : o->print_training ? "--print-training"
	       : o->replay         ? "--replay"
				   : "train";
}

int main(int argc, char **argv)
{
	struct gf_setting settings[GF_CLI_SETTINGS_MOST];
	const struct gf_command command = {
		.name = "gf-train",
		.ranked = true,
		.help = help,
		.settings = settings,
		.nsettings =
			gf_setting_expand(own_settings, GF_ARRAY_LENGTH(own_settings), settings),
		.groups = groups,
		.rules = rules,
		.nrules = GF_ARRAY_LENGTH(rules),
		.check = check,
	};
	struct arguments a = {0};
	struct session s = {.a = &a, .o = &a.options};
	struct gf_launch launch = {
		.cli = &a.cli,
		.start = &a.start,
		.work = work,
		.before_abort = leave_folder,
		.release = release,
		.ctx = &s,
	};
	int status;

	gf_train_options_init(&a.options);
	gf_cli_parse(&command, argc, argv, &a);
	launch.transport = gf_train_between_hosts(a.options.transport);
	launch.timeout_s = a.options.config.timeout_s;
	launch.ask = !a.options.list;
	launch.doing = doing(&a.options);
	status = gf_launch_run(&launch);
	free(a.options.training.drop_epochs);
	free(a.options.training.exclude);
	return status;
}
