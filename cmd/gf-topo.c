/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#include "base/array.h"
#include "base/heap.h"
#include "base/text.h"
#include "base/timeout.h"
#include "cli/command.h"
#include "cli/plot.h"
#include "cli/share.h"
#include "json/record.h"
#include "transport/comm.h"
#include "cli/launch.h"
#include "discovery/format.h"
#include "discovery/whole_job.h"
#include "discovery/find_levels.h"
#include "discovery/discovery.h"

static const char help[] = "Describe this machine, or under mpirun the whole job, as a topology: "
			   "hosts, processors, GPUs, network interfaces, and the levels of links "
			   "between ranks. Every figure is marked as reported by the system, "
			   "measured, or assumed. Or read another program's topology.\vExamples:\n"
			   "  gf-topo --table\n"
			   "  mpirun -np 4 gf-topo > topo.json\n"
			   "  gf-topo --synthetic \"gpu:4@32GB/s,3us node:16@12.5GB/s,5us\"\n"
			   "  gf-topo --import nccl:dump.xml\n"
			   "  gf-topo --import topology.conf --ranks-per-host 8";

struct arguments {
	struct gf_cli cli;
	const char *synthetic, *name;
	char *sysfs, *hwloc_xml, *nvml; /* owned */
	const char *import, *plot;
	int ranks_per_host; /* 0: not told */
	int ranks_on;       /* enum gf_ranks_on */
	bool measure;
};

/* Found before MPI starts, alike on every rank. */
static int store_synthetic(const char *arg, void *to, struct gf_error *err)
{
	GF_RELEASED(gf_topology_release) struct gf_topology t = {0};

	*(const char **)to = arg;
	return gf_levels_synthetic(arg, &t, err);
}

#define AT(field) offsetof(struct arguments, field)

static const struct gf_field machine_fields[] = {
	{"hwloc", GF_FIELD_STRING, .offset = AT(hwloc_xml), .unit = "FILE",
	 .help = "a machine saved by lstopo as XML"},
	{"sysfs", GF_FIELD_STRING, .offset = AT(sysfs), .unit = "DIR",
	 .help = "a copy of /sys, with network interfaces and PCI links"},
	{"nvml", GF_FIELD_STRING, .offset = AT(nvml), .unit = "FILE",
	 .help = "a library to ask about GPUs in place of the driver's libnvidia-ml.so.1"},
	{NULL},
};
static const struct gf_record machine_keys = {.fields = machine_fields};

#pragma GCC diagnostic ignored "-Wmissing-field-initializers" /* clang */
static const struct gf_setting settings[] = {
	{"synthetic", "LEVELS", 1, GF_SETTING_OWN, AT(synthetic),
	 "make a topology of these levels, innermost first, each NAME:SIZE@RATE,LATENCY[,LINK]",
	 .store = store_synthetic, .often = true},
	{"device", "auto|cpu|gpu", 1, GF_SETTING_CHOICE, AT(ranks_on),
	 "the device of ranks (auto: GPUs if there are enough)", .names = gf_ranks_on_names,
	 .often = true},
	{"measure", NULL, 1, GF_SETTING_FLAG, AT(measure),
	 "measure the rate of copies in memory instead of assuming it", .often = true},
	{"import", "[FORMAT:]FILE", 1, GF_SETTING_TEXT, AT(import),
	 "read a topology: NCCL's or hwloc's XML, Slurm's topology.conf or yaml, nvidia-smi's "
	 "matrix, ASTRA-sim's yml, a gf-topology document (what FILE looks like), or a shipped one "
	 "by its name",
	 .share = "topologies", .often = true},
	{"ranks-per-host", "N", 1, GF_SETTING_INT, AT(ranks_per_host),
	 "ranks on each host, for a file that only names hosts (1)", 1, 1 << 20, .often = true},
	{"name", "NAME", 2, GF_SETTING_TEXT, AT(name), "the topology's name", .often = true},
	GF_SETTING_TABLE(2),
	{"plot", "FILE", 2, GF_SETTING_OWN, AT(plot),
	 "draw the topology to FILE.svg, .pdf or .png; FILE.csv: what is in it",
	 .store = gf_plot_store, .written = true},
	{"machine", "KEYS", 3, GF_SETTING_ENTRY,
	 .help = "describe what these files say in place of this machine", .keys = &machine_keys},
};

static const struct gf_setting_rule rules[] = {
	{"synthetic", NULL, "device measure machine"},
	{"import", NULL, "synthetic device measure machine"},
	{"measure", NULL, "machine"},
	{"ranks-per-host", "import", NULL},
};

/* In the order of use, as the options are. */
static const char *const groups[] = {
	"What is described:",
	"What is printed:",
	"Where it is looked for:",
};

static const struct gf_command command = {
	.name = "gf-topo",
	.ranked = true,
	.brief = true,
	GF_COMMAND_TABLES,
};

static struct gf_discover_config probe_config(const struct arguments *a)
{
	struct gf_discover_config config = {
		.sysfs = a->sysfs,
		.hwloc_xml = a->hwloc_xml,
		.nvml = a->nvml,
	};

	/* the driver's answers are about this machine */
	if (!config.sysfs && !config.hwloc_xml) {
		config.sysfs = GF_DISCOVER_SYSFS;
		if (!config.nvml)
			config.nvml = GF_DISCOVER_NVML;
	}
	return config;
}

static int discover_host(const struct arguments *a, struct gf_topology *t, struct gf_text *remarks,
			 struct gf_error *err)
{
	struct gf_discover_config config = probe_config(a);
	double rate;
	int rc;

	config.remarks = remarks;
	t->hosts = gf_xcalloc(1, sizeof(*t->hosts));
	rc = gf_discover_host(&config, &t->hosts[0], err);
	if (rc < 0)
		return rc;
	t->nhosts = 1;
	rc = gf_levels_of_host(t, (enum gf_ranks_on)a->ranks_on, remarks, err);
	if (rc == 0 && a->measure) {
		rc = gf_discover_copy_rate(&rate, err);
		if (rc == 0)
			gf_levels_set_copy_rate(t, rate);
	}
	return rc;
}

/* "4x2" hosts by ranks; what does not depend on the host's name. */
static char *default_name(const struct arguments *a, const struct gf_topology *t)
{
	if (a->name)
		return gf_xstrdup(a->name);
	if (a->synthetic)
		return gf_xstrdup("synthetic");
	if (t->ranks == 0)
		return gf_xstrdup("host");
	return gf_xasprintf("%zux%zu-%s", t->nhosts, (size_t)t->ranks / t->nhosts,
			    t->levels[t->nlevels - 1].link);
}

/* Of what was imported, the file says what it is. */
static void name_it(const struct arguments *a, struct gf_topology *t)
{
	if (!t->producer)
		t->producer = gf_xstrdup("gf-topo " GF_VERSION);
	if (!t->source)
		t->source = gf_xstrdup(a->synthetic ? "synthetic" : "discovered");
	if (t->name && !a->name)
		return;
	free(t->name);
	t->name = default_name(a, t);
}

/* Whether the locale's characters are UTF-8, by LC_ALL, LC_CTYPE or LANG. */
static bool is_utf8(void)
{
	static const char *const variables[] = {"LC_ALL", "LC_CTYPE", "LANG"};
	const char *value = NULL;

	for (size_t i = 0; i < GF_ARRAY_LENGTH(variables) && !(value && *value); i++)
		value = getenv(variables[i]);
	return value && (strcasestr(value, "utf-8") || strcasestr(value, "utf8"));
}

static int emit(const struct arguments *a, struct gf_topology *t, struct gf_error *err)
{
	const enum gf_cli_form form = gf_cli_form(&a->cli, GF_FORM_JSON);
	struct gf_plot picture = {0};
	GF_RELEASED(gf_text_release) struct gf_text text = {0};
	GF_FREED char *written = NULL;
	int rc;

	if (form != GF_FORM_TEXT && form != GF_FORM_JSON)
		return gf_error_set(err, -EINVAL,
				    "--table: want text or json of a topology, got %s",
				    gf_cli_forms[form]);
	name_it(a, t);
	rc = gf_topology_check(t, err);
	if (rc == 0 && a->plot) {
		gf_tree_plot(t, &picture);
		rc = gf_plot_finish(&picture, a->plot, err);
	}
	if (rc == 0 && form == GF_FORM_TEXT)
		gf_tree_draw(t, !is_utf8(), &text);
	else if (rc == 0)
		written = gf_topology_write(t);
	return rc ?: gf_cli_emit(&a->cli, written ? written : text.data, err);
}

static int probe_job(void *arguments, struct gf_comm *comm, struct gf_error *err)
{
	const struct arguments *a = arguments;
	struct gf_discover_job job = {
		.probe = probe_config(a),
		.ranks_on = (enum gf_ranks_on)a->ranks_on,
		.measure = a->measure,
	};
	GF_RELEASED(gf_topology_release) struct gf_topology t = {0};
	GF_RELEASED(gf_text_release) struct gf_text remark = {0};
	int rc = gf_discover_job(comm, &job, &t, &remark, err);

	if (rc == 0) {
		if (comm->rank == 0)
			rc = emit(a, &t, err);
		rc = gf_comm_agree(comm, rc, err);
	}
	gf_cli_warn_lines(&a->cli, remark.data);
	return rc;
}

static void say_imported(const struct arguments *a, const struct gf_imported *imported)
{
	GF_FREED char *line = gf_imported_line(imported, a->import);

	gf_cli_note(&a->cli, 0, "%s", line);
}

/* What names no format may be a shipped topology. */
static int import(const struct arguments *a, struct gf_topology *t, struct gf_imported *imported,
		  struct gf_text *remarks, struct gf_error *err)
{
	GF_FREED char *path = NULL;
	int rc = 0;

	if (strcmp(a->import, "-") != 0 && !strchr(a->import, ':'))
		rc = gf_cli_share("topologies", a->import, &path, err);
	if (rc == 0)
		rc = gf_topology_import(path ? path : a->import, a->ranks_per_host, t, imported,
					remarks, err);
	return rc;
}

/* The other ranks have nothing to do. */
static int run_alone(void *arguments, struct gf_comm *comm, struct gf_error *err)
{
	const struct arguments *a = arguments;
	GF_RELEASED(gf_text_release) struct gf_text remarks = {0};
	GF_RELEASED(gf_imported_release) struct gf_imported imported = {0};
	GF_RELEASED(gf_topology_release) struct gf_topology t = {0};
	int rc = 0;

	if (comm->rank > 0)
		return gf_comm_agree(comm, rc, err);
	if (a->synthetic)
		rc = gf_levels_synthetic(a->synthetic, &t, err);
	else if (a->import)
		rc = import(a, &t, &imported, &remarks, err);
	else
		rc = discover_host(a, &t, &remarks, err);
	if (rc == 0) {
		if (imported.kind)
			say_imported(a, &imported);
		gf_cli_warn_lines(&a->cli, remarks.data);
		rc = emit(a, &t, err);
	}
	return gf_comm_agree(comm, rc, err);
}

int main(int argc, char **argv)
{
	struct arguments a = {0};
	bool finds_job;
	int status;

	gf_cli_parse(&command, argc, argv, &a);
	finds_job = a.cli.launched && !a.synthetic && !a.import;
	status = gf_launch_run(&(struct gf_launch){
		.cli = &a.cli,
		.timeout_s = GF_TIMEOUT_S,
		.doing = a.synthetic ? "--synthetic"
			 : a.import  ? "--import"
			 : a.measure ? "--measure"
				     : "describe",
		.work = finds_job ? probe_job : run_alone,
		.ctx = &a,
	});
	free(a.hwloc_xml);
	free(a.sysfs);
	free(a.nvml);
	return status;
}
