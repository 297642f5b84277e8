/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#include "base/array.h"
#include "base/heap.h"
#include "base/text.h"
#include "base/timeout.h"
#include "profiler/contest/allreduce.h"
#include "profiler/contest/row_report.h"
#include "profiler/contest/size_sweep.h"
#include "cli/command.h"
#include "cli/deadline.h"
#include "cli/start.h"
#include "profiler/autotune/ways.h"
#include "collectives/codecs/codec.h"
#include "collectives/algorithm.h"
#include "transport/comm.h"
#include "documents/algorithm_traits.h"
#include "cli/launch.h"
#include "discovery/find_levels.h"
#include "trainer/options.h"

static const char help[] =
	"Measure and verify the all-reduce of all ranks of a job, or its halves, size by size, "
	"algorithm by algorithm; with the flags and the table of nccl-tests.\vExamples:\n"
	"  mpirun -np 4 gf-allreduce -b 1K -e 64M\n"
	"  mpirun -np 4 gf-allreduce -a all --best rule.json\n"
	"  mpirun -np 8 gf-allreduce -a ring,blueconnect --factors 4x2 --table=json\n"
	"  mpirun -np 4 gf-allreduce --plan plan.json";

struct arguments {
	struct gf_cli cli;
	struct gf_cli_start start;
	struct gf_contest_sweep sweep;
	struct gf_contest_allreduce_config config;
	const char *plan, *best, *trace;
	double min_bw;
	bool verify, list;
};

/* --- options ------------------------------------------------------------ */

#define AT(field) offsetof(struct arguments, field)
#define START     offsetof(struct arguments, start)

static const char *const contestants[] = {"auto", "all", NULL};
static const char *const devices[] = {"cpu", "cuda", "auto", NULL};

/* In nccl-tests a process may have several ranks, of threads and GPUs. */
static int want_one(const char *arg, void *to, struct gf_error *err)
{
	(void)to;
	if (!strcmp(arg, "1"))
		return 0;
	return gf_error_set(
		err, -EINVAL,
		"want 1: each process is one rank with one GPU; start more with mpirun -np N");
}

#pragma GCC diagnostic ignored "-Wmissing-field-initializers" /* clang */
static const struct gf_field repeats_fields[] = {
	{"repeats", GF_FIELD_INT, .offset = AT(config.repeats), .low = 1, .high = 1e6},
	{"warmup", GF_FIELD_INT, .offset = AT(config.warmup), .high = 1e6, .unit = "N",
	 .help = "repeats before those, not measured; -w N, too (5)"},
	{"across", GF_FIELD_CHOICE, .offset = AT(config.across), .unit = "NAME",
	 .names = gf_contest_across_names,
	 .help = "a repeat's time over the ranks: max, mean, min or rank0"},
	{NULL},
};
static const struct gf_record repeats_keys = {.fields = repeats_fields};

static const struct gf_setting settings[] = {
	{"min-bytes", "SIZE", 1, GF_SETTING_SIZE, AT(sweep.min_bytes), "the smallest message (1K)",
	 .alias = "minbytes", .letter = 'b', .often = true},
	{"max-bytes", "SIZE", 1, GF_SETTING_SIZE, AT(sweep.max_bytes), "the largest message (64M)",
	 .alias = "maxbytes", .letter = 'e', .often = true},
	{"step-factor", "N", 1, GF_SETTING_WHOLE, AT(sweep.step_factor),
	 "each size is N times the one before (2)", 2, 1 << 30, .alias = "stepfactor",
	 .letter = 'f'},
	{"step-bytes", "SIZE", 1, GF_SETTING_SIZE, AT(sweep.step_bytes),
	 "each size is larger than the one before by SIZE", 1, .alias = "stepbytes", .letter = 'i'},
	{"datatype", "NAME", 1, GF_SETTING_CHOICE, AT(sweep.dtype), "f32, f64, f16, bf16 or i32",
	 .names = gf_dtype_names, .words = gf_contest_dtype_words, .letter = 'd'},
	{"collective", "NAME", 1, GF_SETTING_CHOICE, AT(config.collective),
	 "all_reduce, reduce_scatter or all_gather", .names = gf_coll_half_names,
	 .words = gf_contest_collective_words, .often = true},
	{"op", "NAME", 1, GF_SETTING_CHOICE, AT(sweep.op), "sum, prod, max, min or avg",
	 .names = gf_op_names},
	{"algorithms", "LIST", 2, GF_SETTING_OWN, AT(sweep.algorithms),
	 "names with commas between, all, or auto, the best one (auto)",
	 .store = gf_cli_split_store, .names = contestants, .letter = 'a',
	 .from = {{gf_algorithms}, {gf_sparse_algorithms}}, .often = true},
	{"factors", "LIST", 2, GF_SETTING_TEXT, AT(sweep.factors),
	 "decompose the ranks, innermost first, e.g. 4x2 or 4:shm,2:ring (ranks per host x hosts)"},
	{"codecs", "NAME", 2, GF_SETTING_TEXT, AT(sweep.codec),
	 "send gradients in this form; --list names them (f32)",
	 .from = {{gf_codecs, sizeof(*gf_codecs)}}, .often = true},
	{"density", "D", 2, GF_SETTING_REAL, AT(sweep.density),
	 "share of the values that gather and gtopk send", 1e-9, 1},
	{"lanes", "K", 2, GF_SETTING_INT, AT(config.lanes),
	 "run K messages at once, each of the size", 1, 64, .often = true},
	{"segment", "SIZE", 2, GF_SETTING_SIZE, AT(config.segment_bytes),
	 "cut transfers into segments of SIZE (a good size)", 1},
	{"device", "NAME", 2, GF_SETTING_TEXT, AT(config.device.name),
	 "memory of the messages: cpu, cuda, cuda:N or auto (cpu)", .names = devices,
	 .often = true},
	{GF_CLI_START_TRANSPORT(2, START)},
	{GF_CLI_START_JOIN(2, START)},
	{GF_CLI_START_RANK(2, START)},
	{GF_CLI_START_RANKS(2, START, "")},
	{"plan", "FILE", 2, GF_SETTING_TEXT, AT(plan),
	 "run a plan's messages, or take auto from a rule", .often = true},
	{"repeats", "N[:KEYS]", 3, GF_SETTING_ENTRY,
	 .help = "measured repeats per size and algorithm (20)", .keys = &repeats_keys,
	 .alias = "iters", .letter = 'n'},
	{"warmup", "N", 3, GF_SETTING_INT, AT(config.warmup), "the key of --repeats", 0, 1e6,
	 .alias = "warmup_iters", .letter = 'w', .hidden = true},
	{"check", "N", 3, GF_SETTING_INT, AT(config.checks),
	 "repeats whose results are checked, each with its own inputs", 0, 1e6, .letter = 'c',
	 .often = true},
	{"error", NULL, 3, GF_SETTING_FLAG, AT(config.errors),
	 "measure the error of sums of random values, too"},
	{"verify", NULL, 3, GF_SETTING_FLAG, AT(verify),
	 "prove before each measurement that the schedules of all ranks add every contribution "
	 "once, without races and deadlocks"},
	{"timeout", "TIME", 3, GF_SETTING_TIME, AT(config.timeout_s),
	 "give up when nothing moves for TIME"},
	{"spoil", "N", 3, GF_SETTING_WHOLE, AT(config.spoil),
	 "change N elements of rank 0's results before they are checked", 0, 1e15, .hidden = true},
	GF_SETTING_TABLE(4),
	{"best", "FILE", 4, GF_SETTING_TEXT, AT(best),
	 "write the best algorithm per size as a rule plan", .written = true, .often = true},
	{"trace", "FILE", 4, GF_SETTING_TEXT, AT(trace),
	 "write a Chrome trace of the steps of the last repeats", .written = true},
	{"min-bw", "RATE", 4, GF_SETTING_RATE, AT(min_bw),
	 "exit 1 if the average bus bandwidth is below RATE, e.g. 10GB/s"},
	{"list", NULL, 4, GF_SETTING_FLAG, AT(list),
	 "print algorithms, codecs and transports of this build, and the GPUs"},
	{"ngpus", "N", 4, GF_SETTING_OWN, AT(cli), .store = want_one, .letter = 'g',
	 .hidden = true},
	{"nthreads", "N", 4, GF_SETTING_OWN, AT(cli), .store = want_one, .letter = 't',
	 .hidden = true},
};
static const struct gf_setting_rule rules[] = {
	{"list", NULL, "*"},
};

/* Found before MPI starts, alike on every rank. */
static int check(void *arguments, struct gf_error *err)
{
	struct arguments *a = arguments;
	int op, rc = gf_cli_start_finish(&a->cli, &a->start,
					 a->start.transport == GF_CLI_TRANSPORT_MPI, err);

	if (rc || a->list)
		return rc;
	/* nccl-tests has -o for the operation */
	if (a->cli.output && !gf_names_find(gf_op_names, a->cli.output, &op, NULL))
		return gf_error_set(err, -EINVAL,
				    "-o: want a file, got \"%s\"; the operation is --op %s",
				    a->cli.output, a->cli.output);
	a->sweep.ruled = a->best != NULL;
	a->sweep.planned = a->plan != NULL;
	return gf_contest_sweep_finish(&a->sweep, &a->config, err);
}

/* In the order of use, as the options are. */
static const char *const groups[] = {
	"Messages:",
	"How they are reduced:",
	"Repeats and checks:",
	"What is printed:",
};

static const struct gf_command command = {
	.name = "gf-allreduce",
	.ranked = true,
	GF_COMMAND_TABLES,
	.check = check,
};

/* --- running ------------------------------------------------------------ */

struct session {
	const struct arguments *a;
	struct gf_comm *comm;
	struct gf_plan plan;
	struct gf_contest_allreduce_config config;
	struct gf_contest_rows rows;
	struct gf_contest_timeline timeline;
	struct gf_deadline *deadline;
	struct gf_text proofs;
	struct gf_progress progress;
};

/* A blocking call of the library cannot give up. */
static void hold(void *session, bool begins)
{
	struct session *s = session;

	if (begins)
		s->deadline = gf_cli_call_deadline(&s->a->cli, "the library's call has not ended",
						   s->a->config.timeout_s);
	else
		gf_cli_end_deadline(s->deadline);
}

static int prepare(struct session *s, struct gf_error *err)
{
	const struct arguments *a = s->a;
	GF_RELEASED(gf_text_release) struct gf_text remark = {0};
	int rc = 0;

	s->config = a->config;
	s->config.comm = s->comm;
	s->config.hold = hold;
	s->config.hold_ctx = s;
	s->config.timeline = a->trace ? &s->timeline : NULL;
	s->config.proofs = a->verify ? &s->proofs : NULL;
	rc = gf_launch_try_outputs(&a->cli, s->comm, err);
	rc = rc ?: gf_contest_sweep_same(&a->sweep, &s->config, a->plan, err);
	if (!rc && a->trace)
		rc = gf_trace_compare_clocks(s->comm, &s->timeline.offset, err);
	rc = rc ?: gf_contest_device_open(s->comm, &s->config.device, err);
	gf_contest_device_suit(&s->config.device, &s->config.element);
	if (!rc && a->plan)
		rc = gf_train_read_plan(s->comm, 0, a->plan, &s->plan, err);
	gf_plan_settle(&s->plan, 1, 1); /* a warm-up is over */
	gf_period_keep_outer(&s->plan);
	rc = rc ?: gf_levels_placed(s->comm, s->plan.levels, s->plan.nlevels, &remark, err);
	if (!rc && gf_contest_sweep_tells(&a->sweep) && s->config.device.nccl && !s->comm->rank)
		gf_nccl_remark(&remark);
	gf_cli_warn_lines(&a->cli, remark.data);
	if (!a->config.segment_bytes)
		s->config.segment_bytes = s->plan.segment_bytes;
	return rc;
}

static void tell_progress(void *ctx, double fraction, size_t count_elems)
{
	struct session *s = ctx;

	gf_progress_at(&s->progress, fraction, NULL);
	gf_cli_note(&s->a->cli, 1, "measuring %zu elements", count_elems);
}

/* Options that a whole plan sets are refused. */
static int measure_plan(struct session *s, struct gf_error *err)
{
	const struct arguments *a = s->a;
	int rc = 0;

	if (gf_cli_given(&a->cli, "algorithms") || a->sweep.codec ||
	    gf_cli_given(&a->cli, "lanes") || a->sweep.sized || a->best)
		rc = gf_error_set(
			err, -EINVAL,
			"%s: want a rule beside sizes, --algorithms, --codecs, --lanes or "
			"--best, got a whole plan, which sets them",
			a->plan);
	rc = gf_comm_agree(s->comm, rc, err);
	return rc ?: gf_contest_plan_run(&s->plan, &s->config, &s->rows, err);
}

static int measure(struct session *s, struct gf_error *err)
{
	struct gf_contest_progress progress = {tell_progress, s};
	GF_RELEASED(gf_text_release) struct gf_text remarks = {0};
	int rc;

	if (s->a->plan && !s->plan.rule)
		return measure_plan(s, err);
	s->config.rule = s->a->plan ? &s->plan : NULL;
	rc = gf_choose_place(s->comm, &s->plan, s->config.device.nccl != NULL, err);
	if (rc)
		return rc;
	gf_progress_start(&s->progress, &s->a->cli, "measuring");
	rc = gf_contest_sweep_run(&s->a->sweep, &s->config, &progress, &s->rows, &remarks, err);
	gf_progress_end(&s->progress);
	if (s->comm->rank == 0 && s->a->cli.verbose)
		gf_cli_warn_lines(&s->a->cli, remarks.data);
	return rc;
}

/* Rank 0. */
static int report(const struct session *s, const struct gf_contest_report *r, struct gf_error *err)
{
	const struct arguments *a = s->a;
	const enum gf_cli_form form = gf_cli_form(&a->cli, GF_FORM_TEXT);
	GF_RELEASED(gf_text_release) struct gf_text out = {0};
	int rc = a->best ? gf_contest_report_write_rule(r, a->best, err) : 0;

	gf_contest_report_print(r,
				form == GF_FORM_TEXT         ? GF_REPORT_TABLE
				: gf_cli_form_is_table(form) ? GF_REPORT_CELLS
							     : GF_REPORT_JSON,
				gf_cli_window(&a->cli, form), &out);
	rc = rc ?: gf_cli_emit_lines(&a->cli, form, out.data, err);
	gf_text_release(&out);
	gf_contest_report_falls(r, &out);
	if (!rc && gf_contest_report_judge(r, a->min_bw, NULL) == 0)
		gf_contest_report_answer(r, &out);
	gf_cli_warn_lines(&a->cli, out.data);
	return rc;
}

static int run(struct session *s, struct gf_error *err)
{
	struct gf_contest_report r;
	int rc = prepare(s, err);

	rc = rc ?: measure(s, err);
	if (s->comm->rank == 0 && s->a->cli.verbose)
		gf_cli_warn_lines(&s->a->cli, s->proofs.data);
	if (!rc && s->a->trace)
		rc = gf_contest_timeline_write(&s->timeline, s->comm, s->a->trace, err);
	if (rc)
		return rc;
	r = (struct gf_contest_report){
		.config = &s->config,
		.rows = s->rows.list,
		.nrows = s->rows.count,
		.left_out = s->rows.left_out,
		.plan = s->plan.messages ? &s->plan : NULL,
	};
	if (s->comm->rank == 0)
		rc = report(s, &r, err);
	return gf_comm_agree(s->comm, rc, err) ?: gf_contest_report_judge(&r, s->a->min_bw, err);
}

static void release(void *session)
{
	struct session *s = session;

	gf_contest_device_close(&s->config.device);
	gf_plan_release(&s->plan);
	gf_trace_release(&s->timeline.trace);
	gf_text_release(&s->proofs);
	free(s->rows.list);
}

static int work(void *session, struct gf_comm *comm, struct gf_error *err)
{
	struct session *s = session;

	s->comm = comm;
	return s->a->list ? gf_launch_print(&s->a->cli, comm, gf_contest_list(), err) : run(s, err);
}

int main(int argc, char **argv)
{
	struct arguments a = {
		.sweep = {.algorithms = gf_cli_split("auto"),
			  .min_bytes = GF_SWEEP_UNSAID,
			  .max_bytes = GF_SWEEP_UNSAID},
		.config = {.lanes = 1,
			   .repeats = 20,
			   .warmup = 5,
			   .checks = 1,
			   .timeout_s = GF_TIMEOUT_S},
	};
	struct session s = {.a = &a};
	struct gf_launch launch = {
		.cli = &a.cli,
		.start = &a.start,
		.work = work,
		.release = release,
		.ctx = &s,
	};
	int status;

	gf_cli_parse(&command, argc, argv, &a);
	if (!a.list && gf_contest_sweep_tells(&a.sweep))
		gf_comm_mpi_listen();
	launch.transport = gf_cli_start_transport(&a.start);
	launch.timeout_s = a.config.timeout_s;
	launch.doing = a.list ? "--list" : "measure";
	status = gf_launch_run(&launch);
	free((void *)a.sweep.algorithms);
	return status;
}
