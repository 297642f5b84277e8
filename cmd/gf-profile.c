/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <math.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/heap.h"
#include "base/text.h"
#include "bench/given.h"
#include "bench/import.h"
#include "bench/profile.h"
#include "cli/cli.h"
#include "cli/input.h"
#include "cli/list.h"
#include "cli/settings.h"
#include "comm/comm.h"
#include "comm/processors.h"
#include "cost/layer_times.h"
#include "doc/stream.h"
#include "nn/net.h"

static const char doc[] =
	"Measure what a model's backward pass and, under mpirun, the network's "
	"all-reduce cost, or import what other tools measured. Documents on "
	"standard input are passed on, followed by the profile."
	"\vExamples:\n"
	"  gf-profile --model digits-cnn\n"
	"  mpirun -np 4 gf-profile --model digits-cnn topo.json > prof.json\n"
	"  gf-topo | gf-profile --model digits-cnn | gf-plan\n"
	"  gf-profile --import ready.csv --forward 80ms --batch 32\n"
	"  gf-profile --estimate --flops 7e12 --model resnet50 --batch 64";

enum { DEFAULT_BATCH = 16 };

struct arguments {
	struct gf_cli cli;
	const char *model;
	const char *backend;
	size_t batch, threads, warmup, repeats; /* batch, threads 0: not told */
	bool no_network;
	const char **algorithms;            /* NULL: all that can run */
	size_t min_bytes, max_bytes, lanes; /* max 0: not told */
	double time_s, timeout_s;
	const char *import, *format, *params, *name;
	size_t ranks;
	bool estimate;
	double flops_per_s;           /* 0: not told */
	double forward_s, backward_s; /* NAN: not told */
	const char **documents;       /* NULL-terminated */
};

/* --- options ---------------------------------------------------------------
 */

#define AT(field) offsetof(struct arguments, field)

static const struct gf_setting settings[] = {
	{"model", "NAME", 1, GF_SETTING_TEXT, AT(model),
	 "measure this model's backward pass"},
	{"batch", "N", 1, GF_SETTING_WHOLE, AT(batch), "samples per rank (16)",
	 1, 1 << 24},
	{"backend", "NAME", 1, GF_SETTING_TEXT, AT(backend),
	 "auto, onednn or ref"},
	{"threads", "N", 1, GF_SETTING_WHOLE, AT(threads),
	 "threads per rank that compute (its share of the processors)", 1,
	 4096},
	{"warmup", "N", 1, GF_SETTING_WHOLE, AT(warmup),
	 "steps that do not count (5)", 0, 1e5},
	{"repeats", "N", 1, GF_SETTING_WHOLE, AT(repeats),
	 "steps that count (30)", 1, 1e5},
	{"no-network", NULL, 2, GF_SETTING_FLAG, AT(no_network),
	 "leave out the network half"},
	{"min-bytes", "SIZE", 2, GF_SETTING_SIZE, AT(min_bytes),
	 "the smallest message (1K)"},
	{"max-bytes", "SIZE", 2, GF_SETTING_SIZE, AT(max_bytes),
	 "the largest message (4M, or the model's whole gradient)"},
	{"lanes", "K", 2, GF_SETTING_WHOLE, AT(lanes),
	 "measure the contention of up to K messages at once (2)", 1, 64},
	{"time", "TIME", 2, GF_SETTING_TIME, AT(time_s),
	 "about how long per point (100ms)"},
	{"timeout", "TIME", 2, GF_SETTING_TIME, AT(timeout_s),
	 "give up when nothing moves for so long (60s)"},
	{"import", "FILE", 3, GF_SETTING_TEXT, AT(import),
	 "take a half from what another tool measured"},
	{"format", "NAME", 3, GF_SETTING_TEXT, AT(format),
	 "csv, nccl-tests or kineto (what it looks like)"},
	{"params", "FILE", 3, GF_SETTING_TEXT, AT(params),
	 "names and sizes of parameters, for a kineto trace (CSV)"},
	{"name", "NAME", 3, GF_SETTING_TEXT, AT(name),
	 "the model's name (the file's)"},
	{"ranks", "P", 3, GF_SETTING_WHOLE, AT(ranks),
	 "how many ranks were measured", 1, 1 << 30},
	{"estimate", NULL, 4, GF_SETTING_FLAG, AT(estimate),
	 "estimate the model half from the layers' FLOPs"},
	{"flops", "RATE", 4, GF_SETTING_REAL, AT(flops_per_s),
	 "FLOPs per second that the hardware reaches (15e12)", 1, 1e30},
	{"forward", "TIME", 4, GF_SETTING_TIME, AT(forward_s),
	 "of the whole forward pass, for --import and --estimate"},
	{"backward", "TIME", 4, GF_SETTING_TIME, AT(backward_s),
	 "of the whole backward pass, likewise"},
};
#define NSETTINGS GF_ARRAY_LENGTH(settings)

/* With a letter. */
static const struct argp_option own_options[] = {
	{"algorithms", 'a', "LIST", 0,
	 "all-reduce algorithms, with commas between (all that can run)", 2},
};
#define NOWN GF_ARRAY_LENGTH(own_options)

static struct gf_bench_network sweep_of(const struct arguments *a)
{
	return (struct gf_bench_network){
		.algorithms = a->algorithms,
		.min_bytes = a->min_bytes,
		.max_bytes = a->max_bytes,
		.lanes = (int)a->lanes,
		.budget = {a->time_s, 5, 1000},
		.timeout_s = a->timeout_s,
	};
}

/* Found before MPI starts, alike on every rank. */
static void check_arguments(const struct arguments *a, struct argp_state *state)
{
	struct gf_bench_network sweep = sweep_of(a);
	struct gf_error err;

	if (sweep.max_bytes == 0)
		sweep.max_bytes = GF_BENCH_MAX_BYTES;
	if (gf_bench_network_check(&sweep, &err) < 0)
		argp_error(state, "%s", err.text);
	if (!gf_backend_find(a->backend))
		argp_error(state, "--backend: there is none named %s here",
			   a->backend);
	if (a->import && (a->model || a->estimate))
		argp_error(state, "--import goes without --model and "
				  "--estimate: one half after the other");
	if (!a->import && (a->format || a->params || a->name || a->ranks))
		argp_error(state, "--format, --params, --name and --ranks go "
				  "with --import");
	if (!a->import && !a->estimate &&
	    (!isnan(a->forward_s) || !isnan(a->backward_s)))
		argp_error(state, "--forward and --backward go with --import "
				  "or --estimate");
	if (a->flops_per_s > 0 && (!a->estimate || !isnan(a->forward_s)))
		argp_error(state, "--flops goes with --estimate, and in place "
				  "of --forward and --backward");
}

static int parse_opt(int key, char *arg, struct argp_state *state)
{
	struct arguments *a = state->input;

	switch (key) {
	case ARGP_KEY_INIT:
		state->child_inputs[0] = &a->cli;
		return 0;
	case 'a':
		free(a->algorithms);
		a->algorithms = gf_cli_split(arg);
		return 0;
	case ARGP_KEY_ARGS:
		a->documents = (const char **)state->argv + state->next;
		return 0;
	case ARGP_KEY_END:
		check_arguments(a, state);
		return 0;
	default:
		return gf_settings_parse(settings, NSETTINGS, key, arg, state,
					 a);
	}
}

/* --- running ----------------------------------------------------------------
 */

/* Rank 0: everything that was given. */
static int read_documents(const struct arguments *a, struct gf_documents *d,
			  struct gf_error *err)
{
	char *path = NULL;
	size_t i;
	int rc = 0;

	for (i = 0; a->documents && a->documents[i] && rc == 0; i++)
		rc = gf_documents_add(d, a->documents[i], err);
	if (rc == 0 && !a->documents && gf_cli_has_input(&a->cli))
		rc = gf_documents_add(d, "-", err);
	if (rc == 0 && a->model)
		rc = gf_cli_share("models", a->model, &path, err);
	if (rc == 0 && path) {
		rc = gf_documents_add(d, path, err);
		if (rc == 0 && !d->model)
			rc = gf_error_set(err, -EINVAL,
					  "%s: want a gf-model document", path);
	}
	free(path);
	return rc;
}

/* What came in, then the profile; and what there is to say about it. */
static int emit(const struct arguments *a, const struct gf_documents *d,
		const struct gf_profile *profile, struct gf_text *remarks,
		struct gf_error *err)
{
	char *written = gf_profile_write(profile);
	char *text =
		gf_xasprintf("%s%s", d->passed_on ? d->passed_on : "", written);
	int rc;

	gf_cli_warn_lines(&a->cli, remarks->data);
	rc = gf_cli_emit(&a->cli, text, err);
	free(written);
	free(text);
	return rc;
}

struct progress {
	const struct gf_cli *cli;
	const char *shown;
};

/* With -v, one line per algorithm. */
static void say_progress(void *ctx, double fraction, const char *what)
{
	struct progress *p = ctx;

	if (p->shown != what)
		gf_cli_note(p->cli, 1, "measuring %s (%.0f %% done)", what,
			    100 * fraction);
	p->shown = what;
}

static int measure(const struct arguments *a, struct gf_bench_profile *bench,
		   const struct gf_documents *d, struct gf_error *err)
{
	struct progress progress = {.cli = &a->cli};
	struct gf_profile profile = {0};
	struct gf_text remarks = {0};
	int rc = 0;

	bench->sweep.progress = say_progress;
	bench->sweep.progress_ctx = &progress;
	if (bench->threads == 0)
		rc = gf_comm_compute_threads(bench->comm, &bench->threads, err);
	if (rc == 0) {
		gf_nn_set_threads(bench->threads);
		rc = gf_bench_profile(bench, &profile, &remarks, err);
	}
	if (rc == 0 && bench->comm->rank == 0)
		rc = emit(a, d, &profile, &remarks, err);
	if (!bench->comm->broken)
		rc = gf_comm_agree(bench->comm, rc, err);
	gf_profile_release(&profile);
	gf_text_release(&remarks);
	return rc;
}

static int run_ranks(const struct arguments *a, struct gf_comm *comm,
		     struct gf_error *err)
{
	struct gf_bench_profile bench = {
		.comm = comm,
		.backend = gf_backend_find(a->backend),
		.batch = a->batch ? a->batch : DEFAULT_BATCH,
		.warmup = (int)a->warmup,
		.repeats = (int)a->repeats,
		.threads = (int)a->threads,
		.network = !a->no_network && comm->ranks > 1,
		.sweep = sweep_of(a),
	};
	struct gf_documents documents = {0};
	struct gf_model model = {0};
	bool given = false;
	int rc = 0;

	if (comm->rank == 0) {
		rc = read_documents(a, &documents, err);
		if (rc == 0)
			rc = gf_bench_given_check(&documents, bench.network,
						  comm->ranks, err);
	}
	rc = gf_comm_agree(comm, rc, err);
	if (rc == 0)
		rc = gf_bench_given_model(comm, documents.model, &model, &given,
					  err);
	if (rc == 0 && comm->ranks == 1 && !a->no_network)
		gf_cli_note(&a->cli, 0,
			    "one rank: no network half (mpirun -np N)");
	bench.model = given ? &model : NULL;
	if (rc == 0)
		rc = measure(a, &bench, &documents, err);
	gf_model_release(&model);
	gf_documents_release(&documents);
	return rc;
}

static int run_measurement(const struct arguments *a, struct gf_error *err)
{
	struct gf_comm *comm;
	int rc = a->cli.launched ? gf_comm_open(&comm, err)
				 : gf_comm_local_new(1, &comm, err);

	if (rc < 0)
		return rc;
	rc = run_ranks(a, comm, err);
	/* One says it while the others still wait in close: the first to leave
	 * with a status ends the job. */
	if (rc < 0 && (comm->rank == 0 || comm->broken))
		gf_cli_warn(&a->cli, "%s", err->text);
	rc = gf_cli_status(rc);
	gf_comm_close(comm);
	return rc;
}

static int import(const struct arguments *a, struct gf_profile *profile,
		  struct gf_text *remarks, struct gf_error *err)
{
	struct gf_import in = {
		.file = a->import,
		.name = a->name,
		.forward_s = a->forward_s,
		.backward_s = a->backward_s,
		.ranks = (int)a->ranks,
		.batch = a->batch,
	};

	return gf_import_file(&in, a->params, a->format, profile, remarks, err);
}

static int estimate(const struct arguments *a, const struct gf_documents *d,
		    struct gf_profile *profile, struct gf_error *err)
{
	struct gf_estimate in = {
		.batch = a->batch ? a->batch : DEFAULT_BATCH,
		.flops_per_s = a->flops_per_s,
		.forward_s = isnan(a->forward_s) ? 0 : a->forward_s,
		.backward_s = isnan(a->backward_s) ? 0 : a->backward_s,
	};

	if (!d->model)
		return gf_error_set(err, -EINVAL,
				    "--estimate: want a model (--model)");
	profile->producer = gf_xstrdup("gf-profile " GF_VERSION);
	return gf_model_estimate(d->model, &in, &profile->model, err);
}

/* Without measuring anything: one rank is enough. */
static int run_alone(const struct arguments *a, struct gf_error *err)
{
	struct gf_documents documents = {0};
	struct gf_profile profile = {0};
	struct gf_text remarks = {0};
	int rc = read_documents(a, &documents, err);

	if (rc == 0)
		rc = a->import ? import(a, &profile, &remarks, err)
			       : estimate(a, &documents, &profile, err);
	if (rc == 0)
		rc = emit(a, &documents, &profile, &remarks, err);
	gf_documents_release(&documents);
	gf_profile_release(&profile);
	gf_text_release(&remarks);
	return rc;
}

int main(int argc, char **argv)
{
	struct argp_option options[NSETTINGS + NOWN + 1];
	struct argp argp = {options, parse_opt,       "[DOCUMENT...]",
			    doc,     gf_cli_children, NULL,
			    NULL};
	struct arguments a = {
		.backend = "auto",
		.warmup = 5,
		.repeats = 30,
		.min_bytes = 1024,
		.lanes = 2,
		.time_s = 0.1,
		.timeout_s = 60,
		.forward_s = NAN,
		.backward_s = NAN,
	};
	struct gf_error err = {""};
	int rc = 0;

	memcpy(options, own_options, sizeof(own_options));
	gf_settings_options(settings, NSETTINGS, options + NOWN);
	gf_cli_parse(&a.cli, "gf-profile", &argp, argc, argv, &a);
	if (!a.import && !a.estimate)
		rc = run_measurement(&a, &err);
	else if (a.cli.rank == 0) /* the others have nothing to do */
		rc = run_alone(&a, &err);
	free(a.algorithms);
	return gf_cli_exit(&a.cli, rc, &err);
}
