/* SPDX-License-Identifier: BSD-3-Clause */
#include <math.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#include "base/array.h"
#include "base/heap.h"
#include "base/text.h"
#include "imports/import.h"
#include "profiler/pairs.h"
#include "profiler/whole_profile.h"
#include "cli/command.h"
#include "cli/start.h"
#include "collectives/algorithm.h"
#include "transport/comm.h"
#include "documents/stream.h"
#include "cli/launch.h"
#include "discovery/whole_job.h"
#include "discovery/find_levels.h"

static const char help[] =
	"Measure the costs of a model's backward pass and, of several ranks (mpirun, torchrun, "
	"--join), of the network's all-reduce, or import other tools' measurements. Documents on "
	"standard input are passed on, followed by the profile. Or find the host that is slower "
	"than the others.\vExamples:\n"
	"  gf-profile --model digits-cnn\n"
	"  mpirun -np 4 gf-profile --model digits-cnn topo.json > prof.json\n"
	"  gf-topo | gf-profile --model digits-cnn | gf-plan\n"
	"  mpirun -np 4 gf-profile --pairs\n"
	"  gf-profile --import ready.csv --passes forward=80ms --batch 32\n"
	"  gf-profile --estimate --flops 7e12 --model resnet50 --batch 64";

enum { DEFAULT_BATCH = 16 };

static const char *const kinds[] = {"models", "topologies", "profiles", NULL};

struct arguments {
	struct gf_cli cli;
	const char *model;
	struct gf_measure_profile bench; /* filled in when it is about to run */
	bool pairs;
	struct gf_cli_start start;
	/* file NULL, times NAN, batch 0: not told; batch for all ways */
	struct gf_import import;
	const char *format;
	char *params, *name, *variant; /* owned */
	bool estimate;
	struct gf_rates rates;
};

/* --- options ---------------------------------------------------------------
 */

#define AT(field) offsetof(struct arguments, field)
#define START     offsetof(struct arguments, start)

static const char *const devices[] = {"auto", "cpu", "cuda", "onednn", "ref", NULL};

static const struct gf_field repeats_fields[] = {
	{"repeats", GF_FIELD_SIZE, .offset = AT(bench.repeats), .low = 1, .high = 1e5},
	{"warmup", GF_FIELD_SIZE, .offset = AT(bench.warmup), .high = 1e5, .unit = "N",
	 .help = "steps before the measured ones"},
	{NULL},
};
static const struct gf_record repeats_keys = {.fields = repeats_fields};

static const struct gf_field points_fields[] = {
	{"min_bytes", GF_FIELD_SIZE, .offset = AT(bench.sweep.min_bytes), .unit = "SIZE",
	 .help = "the smallest message (1 KiB)"},
	{"time", GF_FIELD_REAL, .offset = AT(bench.sweep.time_s), .unit = "TIME",
	 .help = "approximate time of each point (100 ms)"},
	{"callers_memory", GF_FIELD_BOOL, .offset = AT(bench.sweep.callers_memory),
	 .unit = "SWITCH",
	 .help = "whether messages go as in a PyTorch job, from a caller's memory and back, on or "
		 "off"},
	{NULL},
};
static const struct gf_record points_keys = {.fields = points_fields};

static const struct gf_field imported_fields[] = {
	{"name", GF_FIELD_STRING, .offset = AT(name), .unit = "NAME",
	 .help = "the model's name (the file's)"},
	{"params", GF_FIELD_STRING, .offset = AT(params), .unit = "FILE",
	 .help = "names and sizes of parameters, for a kineto trace (CSV)"},
	{"variant", GF_FIELD_STRING, .offset = AT(variant), .unit = "VARIANT",
	 .help = "what the library of an all-reduce was told, e.g. ring.simple.8"},
	{NULL},
};
static const struct gf_record imported_keys = {.fields = imported_fields};

static const struct gf_field passes_fields[] = {
	{"forward", GF_FIELD_REAL, .offset = AT(import.forward_s), .unit = "TIME",
	 .help = "of the forward pass"},
	{"backward", GF_FIELD_REAL, .offset = AT(import.backward_s), .unit = "TIME",
	 .help = "of the whole backward pass"},
	{NULL},
};
static const struct gf_record passes_keys = {.fields = passes_fields};

#pragma GCC diagnostic ignored "-Wmissing-field-initializers" /* clang */
static const struct gf_setting settings[] = {
	{"model", "NAME", 1, GF_SETTING_TEXT, AT(model), "measure this model's backward pass",
	 .share = "models", .often = true},
	{"batch", "N", 1, GF_SETTING_WHOLE, AT(import.batch),
	 "samples per rank (16; 32 for --estimate)", 1, 1 << 24, .often = true},
	{"device", "NAME", 1, GF_SETTING_TEXT, AT(bench.device.name),
	 "compute on auto, cpu, cuda, cuda:N, or a backend by name", .names = devices,
	 .often = true},
	{"threads", "N", 1, GF_SETTING_WHOLE, AT(bench.threads),
	 "compute threads per rank (its share of the processors)", 1, 4096},
	{"repeats", "N[:KEYS]", 1, GF_SETTING_ENTRY, .help = "measured steps (30)",
	 .keys = &repeats_keys},
	{"algorithms", "LIST", 2, GF_SETTING_OWN, AT(bench.sweep.algorithms),
	 "all-reduce algorithms, with commas between; none: no network half (all that can run)",
	 .store = gf_cli_split_store, .from = {{gf_algorithms}}, .letter = 'a', .often = true},
	{"collectives", "LIST", 2, GF_SETTING_OWN, AT(bench.sweep.collectives),
	 "measure these halves of all-reduces by themselves, too, for plans that split messages",
	 .store = gf_cli_split_store, .names = gf_coll_half_names},
	{"max-bytes", "SIZE", 2, GF_SETTING_SIZE, AT(bench.sweep.max_bytes),
	 "the largest message (4M, or the model's whole gradient)", .often = true},
	{"lanes", "K", 2, GF_SETTING_WHOLE, AT(bench.sweep.lanes),
	 "measure the contention of up to K messages at once", 1, 64},
	{"points", "KEYS", 2, GF_SETTING_ENTRY, .help = "how each size is measured",
	 .keys = &points_keys},
	{GF_CLI_START_TRANSPORT(2, START)},
	{GF_CLI_START_JOIN(2, START)},
	{GF_CLI_START_RANK(2, START)},
	{GF_CLI_START_RANKS(2, START, "; with --import: that were measured")},
	{"budget", "TIME", 2, GF_SETTING_TIME, AT(bench.sweep.budget_s),
	 "approximate time of the network half", .often = true},
	{"timeout", "TIME", 2, GF_SETTING_TIME, AT(bench.sweep.timeout_s),
	 "give up when nothing moves for TIME"},
	{"pairs", NULL, 2, GF_SETTING_FLAG, AT(pairs),
	 "test every link and name the slow host, without a profile", .often = true},
	{"import", "[FORMAT:]FILE", 3, GF_SETTING_TEXT, AT(import.file),
	 "take a half from another tool's measurement (what FILE looks like)",
	 .from = {{gf_importers, 0, gf_import_profiles}}, .often = true},
	{"imported", "KEYS", 3, GF_SETTING_ENTRY, .help = "what that file does not say",
	 .keys = &imported_keys},
	{"estimate", "SHARES", 4, GF_SETTING_CHOICE, AT(import.shares),
	 "estimate the model half from the layers' FLOPs; share a pass out over layers by roofline "
	 "or flops, or even over tensors",
	 .names = gf_shares_names, .otherwise = "roofline", .often = true},
	{"gpu", "NAME", 4, GF_SETTING_TEXT, AT(rates.gpu),
	 "estimate by this GPU's data sheet (gf-plan lists them)",
	 .from = {{gf_presets, sizeof(*gf_presets)}}, .often = true},
	{"precision", "NAME", 4, GF_SETTING_CHOICE, AT(rates.precision),
	 "the arithmetic of that GPU (tf32, else f32), or of a measurement (f32)",
	 .names = gf_precision_names},
	{"flops", "RATE", 4, GF_SETTING_FLOPS, AT(rates.flops_per_s),
	 "FLOPs per second that the hardware reaches, e.g. 15TF", 1, 1e30},
	{"passes", "KEYS", 4, GF_SETTING_ENTRY,
	 .help = "times of the passes, for --import and --estimate", .keys = &passes_keys},
	GF_SETTING_TABLE(5),
};

#define MEASURES_MODEL   "device threads repeats"
#define MEASURES_NETWORK "algorithms collectives max-bytes lanes points"

static const struct gf_setting_rule rules[] = {
	{"pairs", NULL,
	 "model import estimate batch precision " MEASURES_MODEL " " MEASURES_NETWORK},
	{"import", NULL, "model estimate"},
	{"imported", "import", NULL},
	{"join rank transport", NULL, "import estimate"},
	{"ranks", NULL, "estimate"},
	{"passes", "import estimate", NULL},
	{"gpu flops", "estimate", "gpu flops passes"},
	{"precision", NULL, "import flops passes"},
	{MEASURES_MODEL " " MEASURES_NETWORK " budget timeout", NULL, "import estimate"},
};

/* Of a measurement. */
static int take_precision(struct arguments *a, struct gf_error *err)
{
	static const enum gf_dtype types[] = {
		[GF_PRECISION_F32] = GF_F32,
		[GF_PRECISION_F16] = GF_F16,
		[GF_PRECISION_BF16] = GF_BF16,
	};

	if (a->rates.precision == GF_PRECISION_TF32 || a->rates.precision == GF_PRECISION_PURE_BF16)
		return gf_error_set(err, -EINVAL,
				    "--precision: want f32, f16 or bf16 for a measurement, got %s",
				    gf_precision_names[a->rates.precision]);
	a->bench.precision = a->rates.precision < 0 ? GF_F32 : types[a->rates.precision];
	return 0;
}

/* A format before the file, a backend in place of the device, and no algorithms at all. */
static void take_names(struct arguments *a)
{
	const char *const *algorithms = a->bench.sweep.algorithms;
	const char *device = a->bench.device.name, *file = a->import.file;
	size_t i, length;

	for (i = 0; file && gf_importers[i]; i++) {
		length = strlen(gf_importers[i]->name);
		if (strncmp(file, gf_importers[i]->name, length) != 0 || file[length] != ':')
			continue;
		a->format = gf_importers[i]->name;
		a->import.file += length + 1;
	}
	if (strcmp(device, "auto") != 0 && strcmp(device, "cuda") != 0 && gf_backend_find(device)) {
		a->bench.backend_name = device;
		a->bench.device.name = "cpu";
	}
	a->bench.network = !algorithms || algorithms[1] || strcmp(algorithms[0], "none") != 0;
	if (a->bench.network)
		return;
	free((void *)algorithms);
	a->bench.sweep.algorithms = NULL;
}

/* Found before MPI starts, alike on every rank. */
static int check(void *arguments, struct gf_error *err)
{
	struct arguments *a = arguments;
	int rc = 0;

	a->estimate = gf_cli_given(&a->cli, "estimate");
	take_names(a);
	if (!a->bench.network &&
	    (gf_cli_given(&a->cli, "lanes") || gf_cli_given(&a->cli, "budget") ||
	     gf_cli_given(&a->cli, "collectives")))
		return gf_error_set(
			err, -EINVAL,
			"--lanes, --budget and --collectives go without --algorithms none");
	a->bench.batch = a->import.batch ? a->import.batch : DEFAULT_BATCH;
	if (!a->estimate)
		rc = take_precision(a, err);
	if (rc == 0 && !a->import.file && !a->estimate)
		rc = gf_cli_start_finish(&a->cli, &a->start,
					 a->start.transport == GF_CLI_TRANSPORT_MPI, err);
	rc = rc ?: gf_measure_profile_check(&a->bench, err);
	if (rc == 0 && a->pairs && a->cli.nfiles)
		rc = gf_error_set(err, -EINVAL, "--pairs goes without documents");
	return rc;
}

/* In the order of use, as the options are. */
static const char *const groups[] = {
	"The model half, measured:", "The network half, measured:",
	"From another tool:",        "An estimate:",
	"What is printed:",
};

static const struct gf_command command = {
	.name = "gf-profile",
	.kinds = kinds,
	.ranked = true,
	.arguments = "[DOCUMENT...]",
	GF_COMMAND_TABLES,
	.check = check,
};

/* --- running ------------------------------------------------------------- */

static const struct gf_passes *passes_of(const struct gf_documents *d)
{
	return d->profile ? d->profile->passes : NULL;
}

/* Rank 0: everything that was given. */
static int read_documents(const struct arguments *a, struct gf_documents *d, struct gf_error *err)
{
	bool taken = a->import.file && !strcmp(a->import.file, "-");
	int rc = taken && !a->cli.nfiles
			 ? 0
			 : gf_cli_documents(&a->cli, kinds, false, gf_documents_take, d, err);

	rc = rc ?: gf_cli_document("models", a->model, gf_documents_take_model, d, err);
	if (rc == 0 && a->estimate && passes_of(d) && !d->model)
		rc = gf_cli_named("models", passes_of(d)->model, gf_documents_take_model, d, err);
	return rc;
}

/* What came in, then the profile, or its table alone; and what there is to say about it. */
static int emit(const struct arguments *a, const struct gf_documents *d,
		const struct gf_profile *profile, struct gf_text *remarks, struct gf_error *err)
{
	const enum gf_cli_form form = gf_cli_form(&a->cli, GF_FORM_JSON);
	GF_FREED char *written = gf_profile_write(profile);
	GF_RELEASED(gf_text_release) struct gf_text out = {0};

	if (form != GF_FORM_JSON)
		gf_profile_table(profile, gf_cli_window(&a->cli, form), &out);
	else
		gf_text_addf(&out, "%s%s", d->passed_on.data ? d->passed_on.data : "", written);
	gf_profile_quality(profile, remarks);
	gf_profile_falls(profile, remarks);
	gf_profile_answer(profile, remarks);
	gf_cli_warn_lines(&a->cli, remarks->data);
	return gf_cli_emit(&a->cli, out.data ? out.data : "", err);
}

static void start_progress(struct gf_progress *p, const struct arguments *a)
{
	gf_progress_start(p, &a->cli, "gf-profile");
}

static int measure(const struct arguments *a, struct gf_measure_profile *bench,
		   const struct gf_documents *d, struct gf_error *err)
{
	struct gf_progress progress;
	GF_RELEASED(gf_profile_release) struct gf_profile profile = {0};
	GF_RELEASED(gf_text_release) struct gf_text what = {0}, remarks = {0};
	int rc, kept;

	gf_measure_profile_say(bench, &what);
	gf_cli_note(&a->cli, 0, "%s", what.data);
	start_progress(&progress, a);
	bench->sweep.progress = gf_progress_report;
	bench->sweep.progress_ctx = &progress;
	rc = gf_measure_profile(bench, &profile, &remarks, err);
	gf_progress_end(&progress);
	if (bench->comm->rank == 0 && (profile.model || profile.network)) {
		kept = emit(a, d, &profile, &remarks, rc ? NULL : err);
		rc = rc ?: kept;
	}
	if (!bench->comm->broken)
		rc = gf_comm_agree(bench->comm, rc, err);
	return rc;
}

/* Only rank 0 has the documents. */
static int measure_given(const struct arguments *a, struct gf_measure_profile *bench,
			 const struct gf_documents *d, struct gf_error *err)
{
	struct gf_comm *comm = bench->comm;
	GF_RELEASED(gf_topology_release) struct gf_topology topology = {0};
	GF_RELEASED(gf_text_release) struct gf_text remark = {0};
	GF_RELEASED(gf_model_release) struct gf_model model = {0};
	bool given = false;
	int rc = gf_measure_given(comm, d, bench->network, &model, &given, err);

	if (rc == 0 && bench->network)
		rc = gf_discover_job_topology(comm, d->topology, &topology, err);
	if (rc == 0 && bench->network)
		rc = gf_levels_placed(comm, topology.levels, topology.nlevels, &remark, err);
	gf_cli_warn_lines(&a->cli, remark.data);
	if (rc == 0 && comm->ranks == 1 && a->bench.network)
		gf_cli_note(&a->cli, 0, "one rank: no network half (mpirun -np N)");
	bench->model = given ? &model : NULL;
	bench->sweep.levels = topology.levels;
	bench->sweep.nlevels = topology.nlevels;
	return rc ?: measure(a, bench, d, err);
}

static int run_ranks(const struct arguments *a, struct gf_comm *comm, struct gf_error *err)
{
	struct gf_measure_profile bench = a->bench;
	GF_RELEASED(gf_documents_release) struct gf_documents d = {0};
	GF_RELEASED(gf_text_release) struct gf_text remarks = {0};
	int rc = comm->rank ? 0 : read_documents(a, &d, err);

	bench.comm = comm;
	bench.network = a->bench.network && comm->ranks > 1;
	rc = gf_comm_agree(comm, rc, err);
	/* a profile that is there already is only printed */
	if (rc == 0 && gf_cli_given(&a->cli, "table") && comm->ranks == 1 && d.profile && !d.model)
		rc = emit(a, &d, d.profile, &remarks, err);
	else if (rc == 0)
		rc = measure_given(a, &bench, &d, err);
	return rc;
}

static int run_pairs(const struct arguments *a, struct gf_comm *comm, struct gf_error *err)
{
	struct gf_progress progress;
	struct gf_measure_pairs_config config = {
		.comm = comm,
		.budget_s = a->bench.sweep.budget_s,
		.timeout_s = a->bench.sweep.timeout_s,
		.progress = gf_progress_report,
		.progress_ctx = &progress,
	};
	/* people look at it in a job's log, too */
	const enum gf_cli_form form = gf_cli_form(&a->cli, GF_FORM_TEXT);
	GF_RELEASED(gf_text_release) struct gf_text out = {0};
	int rc;

	start_progress(&progress, a);
	rc = gf_measure_pairs_report(&config, !gf_cli_form_is_table(form),
				     gf_cli_window(&a->cli, form), &out, err);
	gf_progress_end(&progress);
	return rc ?: gf_launch_print(&a->cli, comm, gf_cli_lines(form, out.data), err);
}

/* Without measuring anything: one rank is enough. */
static int run_alone(const struct arguments *a, struct gf_comm *comm, struct gf_error *err)
{
	GF_RELEASED(gf_documents_release) struct gf_documents documents = {0};
	GF_RELEASED(gf_profile_release) struct gf_profile profile = {0};
	GF_RELEASED(gf_text_release) struct gf_text remarks = {0};
	GF_RELEASED(gf_imported_release) struct gf_imported imported = {0};
	struct gf_import in = a->import;
	int rc = 0;

	if (comm->rank > 0)
		return gf_comm_agree(comm, rc, err);
	rc = gf_cli_try_outputs(&a->cli, err);
	rc = rc ?: read_documents(a, &documents, err);
	in.ranks = a->start.ranks;
	in.name = a->name;
	in.variant = a->variant;
	in.imported = &imported;
	if (rc == 0 && in.file)
		rc = gf_import_file(&in, a->params, a->format, &profile, &remarks, err);
	else if (rc == 0)
		rc = gf_import_estimate(&in, documents.model, &a->rates, passes_of(&documents),
					&profile, &remarks, err);
	if (rc == 0 && imported.kind) {
		GF_FREED char *line = gf_imported_line(&imported, in.file);

		gf_cli_note(&a->cli, 0, "%s", line);
	}
	rc = rc ?: emit(a, &documents, &profile, &remarks, err);
	return gf_comm_agree(comm, rc, err);
}

/* A rank's work. */
static int work(void *arguments, struct gf_comm *comm, struct gf_error *err)
{
	const struct arguments *a = arguments;
	int rc;

	if (a->import.file || a->estimate)
		return run_alone(a, comm, err);
	rc = gf_measure_profile_same(comm, &a->bench, a->model, err);
	rc = rc ?: gf_launch_try_outputs(&a->cli, comm, err);
	if (rc)
		return rc;
	return a->pairs ? run_pairs(a, comm, err) : run_ranks(a, comm, err);
}

int main(int argc, char **argv)
{
	struct arguments a = {
		.import = {.forward_s = NAN, .backward_s = NAN},
		.rates = {.precision = -1},
	};
	struct gf_launch launch = {
		.cli = &a.cli,
		.start = &a.start,
		.work = work,
		.ctx = &a,
	};
	int status;

	gf_measure_profile_init(&a.bench);
	gf_cli_parse(&command, argc, argv, &a);
	if (a.import.file || a.estimate)
		launch.start = NULL; /* no matter who else does it */
	launch.transport = gf_cli_start_transport(&a.start);
	launch.timeout_s = a.bench.sweep.timeout_s;
	launch.doing = a.import.file ? "--import"
		       : a.estimate  ? "--estimate"
		       : a.pairs     ? "--pairs"
				     : "measure";
	status = gf_launch_run(&launch);
	free((void *)a.bench.sweep.algorithms);
	free((void *)a.bench.sweep.collectives);
	free(a.params);
	free(a.name);
	free(a.variant);
	return status;
}
