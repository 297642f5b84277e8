/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/heap.h"
#include "base/text.h"
#include "base/units.h"
#include "cli/cli.h"
#include "cli/list.h"
#include "comm/comm.h"
#include "probe/format.h"
#include "probe/job.h"
#include "probe/levels.h"
#include "probe/probe.h"
#include "probe/tree.h"

static const char doc[] =
	"Describe this machine, or under mpirun the whole job, as a topology: "
	"hosts, processors, GPUs, network interfaces, and the levels of links "
	"between ranks. Every figure says whether it was reported by the "
	"system, measured, or assumed. Or read what another program knows."
	"\vExamples:\n"
	"  gf-topo --tree\n"
	"  mpirun -np 4 gf-topo > topo.json\n"
	"  gf-topo --synthetic \"gpu:4@32GB/s,3us node:16@12.5GB/s,5us\"\n"
	"  gf-topo --import nccl:dump.xml\n"
	"  gf-topo --import topology.conf --ranks-per-host 8 --export "
	"astra-sim";

enum {
	KEY_SYNTHETIC = 256,
	KEY_TREE,
	KEY_NAME,
	KEY_DEVICE,
	KEY_MEASURE,
	KEY_SYSFS,
	KEY_HWLOC,
	KEY_NVML,
	KEY_IMPORT,
	KEY_EXPORT,
	KEY_PER_HOST,
};

static const struct argp_option options[] = {
	{"synthetic", KEY_SYNTHETIC, "LEVELS", 0,
	 "do not look around; make a topology of levels, innermost first, each "
	 "NAME:SIZE@RATE,LATENCY[,LINK]",
	 1},
	{"device", KEY_DEVICE, "auto|cpu|gpu", 0,
	 "what ranks run on (auto: GPUs where there are enough)", 1},
	{"measure", KEY_MEASURE, NULL, 0,
	 "measure how fast memory is copied instead of assuming it", 1},
	{"import", KEY_IMPORT, "[FORMAT:]FILE", 0,
	 "read it instead: NCCL's or hwloc's XML, Slurm's topology.conf, "
	 "ASTRA-sim's yml, a gf-topology document (what it looks like)",
	 1},
	{"ranks-per-host", KEY_PER_HOST, "N", 0,
	 "where the file names hosts and not what is in them (1)", 1},
	{"export", KEY_EXPORT, "FORMAT", 0,
	 "write nccl, slurm or astra-sim instead of JSON", 2},
	{"name", KEY_NAME, "NAME", 0, "the topology's name", 2},
	{"tree", KEY_TREE, NULL, 0, "draw it for people instead of JSON", 2},
	{"hwloc", KEY_HWLOC, "FILE", 0,
	 "describe a machine saved by lstopo as XML instead of this one", 3},
	{"sysfs", KEY_SYSFS, "DIR", 0,
	 "read network interfaces and PCI links from a copy of /sys", 3},
	{"nvml", KEY_NVML, "LIBRARY", 0,
	 "ask it about GPUs in place of the driver's libnvidia-ml.so.1", 3},
	{0},
};

struct arguments {
	struct gf_cli cli;
	const char *synthetic, *name;
	const char *sysfs, *hwloc_xml, *nvml;
	const char *import;
	int ranks_per_host;                      /* 0: not told */
	const struct gf_topology_format *export; /* NULL: our own */
	enum gf_ranks_on ranks_on;
	bool measure, tree;
};

static void choose_device(struct argp_state *state, struct arguments *a,
			  const char *arg)
{
	struct gf_error err;
	int i;

	for (i = 0; gf_ranks_on_names[i]; i++)
		if (strcmp(gf_ranks_on_names[i], arg) == 0) {
			a->ranks_on = (enum gf_ranks_on)i;
			return;
		}
	gf_error_set(&err, -EINVAL, "want auto, cpu or gpu, got %s", arg);
	gf_cli_usage_error(state, "--device", &err);
}

/* Found before MPI starts, alike on every rank. */
static void check_synthetic(struct argp_state *state, const char *spec)
{
	struct gf_topology t = {0};
	struct gf_error err;

	if (gf_levels_synthetic(spec, &t, &err) < 0)
		gf_cli_usage_error(state, "--synthetic", &err);
	gf_topology_release(&t);
}

static void choose_export(struct argp_state *state, struct arguments *a,
			  const char *arg)
{
	char *names;
	struct gf_error err;

	a->export = gf_topology_format_find(arg);
	if (a->export && a->export->write)
		return;
	names = gf_topology_format_names(1);
	gf_error_set(&err, -EINVAL, "want %s, got %.40s", names, arg);
	free(names);
	gf_cli_usage_error(state, "--export", &err);
}

static void set_per_host(struct argp_state *state, struct arguments *a,
			 const char *arg)
{
	struct gf_error err;
	long long count;

	if (gf_units_int(arg, 1, 1 << 20, &count, &err) < 0)
		gf_cli_usage_error(state, "--ranks-per-host", &err);
	a->ranks_per_host = (int)count;
}

static void check_arguments(struct argp_state *state, const struct arguments *a)
{
	bool looks = a->measure || a->sysfs || a->hwloc_xml || a->nvml ||
		     a->ranks_on;

	if (a->synthetic && looks)
		argp_error(state, "--synthetic goes without --device, "
				  "--measure, --hwloc, --sysfs and --nvml");
	if (a->import && (looks || a->synthetic))
		argp_error(state, "--import goes without --synthetic, "
				  "--device, --measure, --hwloc, --sysfs and "
				  "--nvml");
	if (a->ranks_per_host && !a->import)
		argp_error(state, "--ranks-per-host goes with --import");
	if (a->export && a->tree)
		argp_error(state, "--export and --tree are two outputs");
	if (a->hwloc_xml && a->measure)
		argp_error(state, "--measure measures this machine, "
				  "not that of --hwloc");
}

static int parse_opt(int key, char *arg, struct argp_state *state)
{
	struct arguments *a = state->input;

	switch (key) {
	case ARGP_KEY_INIT:
		state->child_inputs[0] = &a->cli;
		return 0;
	case KEY_SYNTHETIC:
		check_synthetic(state, arg);
		a->synthetic = arg;
		return 0;
	case KEY_TREE:
		a->tree = true;
		return 0;
	case KEY_NAME:
		a->name = arg;
		return 0;
	case KEY_DEVICE:
		choose_device(state, a, arg);
		return 0;
	case KEY_MEASURE:
		a->measure = true;
		return 0;
	case KEY_SYSFS:
		a->sysfs = arg;
		return 0;
	case KEY_HWLOC:
		a->hwloc_xml = arg;
		return 0;
	case KEY_NVML:
		a->nvml = arg;
		return 0;
	case KEY_IMPORT:
		a->import = arg;
		return 0;
	case KEY_EXPORT:
		choose_export(state, a, arg);
		return 0;
	case KEY_PER_HOST:
		set_per_host(state, a, arg);
		return 0;
	case ARGP_KEY_ARG:
		argp_error(state, "want no argument, got %s", arg);
		return EINVAL;
	case ARGP_KEY_END:
		check_arguments(state, a);
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

static struct gf_probe_config probe_config(const struct arguments *a)
{
	struct gf_probe_config config = {
		.sysfs = a->sysfs,
		.hwloc_xml = a->hwloc_xml,
		.nvml = a->nvml,
	};

	/* the driver's answers are about this machine */
	if (!config.sysfs && !config.hwloc_xml) {
		config.sysfs = GF_PROBE_SYSFS;
		if (!config.nvml)
			config.nvml = GF_PROBE_NVML;
	}
	return config;
}

static int discover_host(const struct arguments *a, struct gf_topology *t,
			 struct gf_text *remarks, struct gf_error *err)
{
	struct gf_probe_config config = probe_config(a);
	double rate;
	int rc;

	config.remarks = remarks;
	t->hosts = gf_xcalloc(1, sizeof(*t->hosts));
	rc = gf_probe_host(&config, &t->hosts[0], err);
	if (rc < 0)
		return rc;
	t->nhosts = 1;
	rc = gf_levels_of_host(t, a->ranks_on, remarks, err);
	if (rc == 0 && a->measure) {
		rc = gf_probe_copy_rate(&rate, err);
		if (rc == 0)
			gf_levels_set_copy_rate(t, rate);
	}
	return rc;
}

/* "4x2" hosts by ranks; what does not depend on the host's name. */
static char *default_name(const struct arguments *a,
			  const struct gf_topology *t)
{
	if (a->name)
		return gf_xstrdup(a->name);
	if (a->synthetic)
		return gf_xstrdup("synthetic");
	if (t->ranks == 0)
		return gf_xstrdup("host");
	return gf_xasprintf("%zux%zu-%s", t->nhosts,
			    (size_t)t->ranks / t->nhosts,
			    t->levels[t->nlevels - 1].link);
}

static int write_out(const struct arguments *a, const struct gf_topology *t,
		     struct gf_text *out, struct gf_error *err)
{
	struct gf_text remarks = {0};
	char *written;
	int rc = gf_topology_check(t, err);

	if (rc == 0 && a->export)
		rc = a->export->write(t, out, &remarks, err);
	if (rc == 0 && !a->export) {
		written = gf_topology_write(t);
		gf_text_add(out, written, strlen(written));
		free(written);
	}
	gf_cli_warn_lines(&a->cli, remarks.data);
	gf_text_release(&remarks);
	return rc;
}

/* Of what was imported, the file says what it is. */
static void name_it(const struct arguments *a, struct gf_topology *t)
{
	if (!t->producer)
		t->producer = gf_xstrdup("gf-topo " GF_VERSION);
	if (!t->source)
		t->source =
			gf_xstrdup(a->synthetic ? "synthetic" : "discovered");
	if (t->name && !a->name)
		return;
	free(t->name);
	t->name = default_name(a, t);
}

static int emit(const struct arguments *a, struct gf_topology *t,
		struct gf_error *err)
{
	struct gf_text text = {0};
	int rc = 0;

	name_it(a, t);
	if (a->tree)
		gf_tree_draw(t, &text);
	else
		rc = write_out(a, t, &text, err);
	if (rc == 0)
		rc = gf_cli_emit(&a->cli, text.data, err);
	gf_text_release(&text);
	return rc;
}

static int run_job(const struct arguments *a, struct gf_error *err)
{
	struct gf_probe_job job = {
		.probe = probe_config(a),
		.ranks_on = a->ranks_on,
		.measure = a->measure,
	};
	struct gf_topology t = {0};
	struct gf_text remark = {0};
	struct gf_comm *comm;
	int rc = gf_comm_open(&comm, err);

	if (rc < 0)
		return rc;
	rc = gf_probe_job(comm, &job, &t, &remark, err);
	if (rc == 0) {
		if (comm->rank == 0)
			rc = emit(a, &t, err);
		rc = gf_comm_agree(comm, rc, err);
	}
	gf_cli_warn_lines(&a->cli, remark.data);
	gf_text_release(&remark);
	gf_topology_release(&t);
	/* All ranks have the same reason. One says it while the others still
	 * wait in close: the first to leave with a status ends the job. */
	if (rc < 0 && comm->rank == 0)
		gf_cli_warn(&a->cli, "%s", err->text);
	rc = gf_cli_status(rc);
	gf_comm_close(comm);
	return rc;
}

static int run_alone(const struct arguments *a, struct gf_error *err)
{
	struct gf_text remarks = {0};
	struct gf_topology t = {0};
	int rc;

	if (a->synthetic)
		rc = gf_levels_synthetic(a->synthetic, &t, err);
	else if (a->import)
		rc = gf_topology_import(a->import, a->ranks_per_host, &t,
					&remarks, err);
	else
		rc = discover_host(a, &t, &remarks, err);
	if (rc == 0) {
		gf_cli_warn_lines(&a->cli, remarks.data);
		rc = emit(a, &t, err);
	}
	gf_text_release(&remarks);
	gf_topology_release(&t);
	return rc;
}

static int run(const struct arguments *a, struct gf_error *err)
{
	if (!a->cli.launched)
		return run_alone(a, err);
	/* Needs no job: one rank writes, the others are done. */
	if (a->synthetic || a->import)
		return a->cli.rank == 0 ? run_alone(a, err) : 0;
	return run_job(a, err);
}

int main(int argc, char **argv)
{
	static const struct argp argp = {
		options, parse_opt, NULL, doc, gf_cli_children, NULL, NULL,
	};
	struct arguments a = {0};
	struct gf_error err = {""};

	gf_cli_parse(&a.cli, "gf-topo", &argp, argc, argv, &a);
	return gf_cli_exit(&a.cli, run(&a, &err), &err);
}
