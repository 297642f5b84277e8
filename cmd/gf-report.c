/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdbool.h>
#include <string.h>

#include "base/array.h"
#include "base/heap.h"
#include "base/text.h"
#include "cli/command.h"
#include "imports/import.h"
#include "imports/report/report.h"

static const char help[] =
	"Say what happened in a job, from the traces of its ranks: what a step was made of, which "
	"rank came last and what that cost, what its messages took. TRACE is a file, or a folder "
	"with a file for each rank, of gf-train, gradflow.Record, PyTorch's profiler or NCCL's "
	"Inspector.\vExamples:\n"
	"  gf-report traces/\n"
	"  gf-report trace.json --plan plan.json --costs 4x2-1gbe\n"
	"  gf-report tuesday/ --against monday/\n"
	"  gf-report traces/ --profile - | gf-plan > plan.json";

struct arguments {
	struct gf_cli cli;
	const char *plan, *costs, *profile, *against, *plot;
};

#define AT(field) offsetof(struct arguments, field)

#pragma GCC diagnostic ignored "-Wmissing-field-initializers" /* clang */
static const struct gf_setting settings[] = {
	{"plan", "FILE", 1, GF_SETTING_TEXT, AT(plan), "the plan that the job ran", .often = true},
	{"costs", "FILE", 1, GF_SETTING_TEXT, AT(costs),
	 "set messages beside what this topology allows (a path or a shipped name), or beside the "
	 "costs in this profile",
	 .share = "topologies", .often = true},
	{"against", "TRACE", 1, GF_SETTING_TEXT, AT(against),
	 "say what is slower than in this run, of the same kind or a table of all-reduces; exit "
	 "status 1 if something is",
	 .often = true},
	{"profile", "FILE", 2, GF_SETTING_TEXT, AT(profile),
	 "write the profile that the traces hold, for gf-plan, and no report if FILE is -",
	 .written = true, .often = true},
	GF_SETTING_TABLE(2),
	{"plot", "FILE", 2, GF_SETTING_OWN, AT(plot),
	 "draw what the ranks' steps are made of, to FILE.svg, .pdf or .png; FILE.csv: the numbers",
	 .store = gf_plot_store, .written = true, .often = true},
};

static const struct gf_setting_rule rules[] = {
	{"against", NULL, "costs profile plot"},
};

static const char *const groups[] = {
	"What the traces stand beside:",
	"What is printed:",
};

static const struct gf_command command = {
	.name = "gf-report",
	.arguments = "TRACE...",
	.brief = true,
	GF_COMMAND_TABLES,
};

static enum gf_cli_form form_of(const struct arguments *a)
{
	return gf_cli_form(&a->cli, GF_FORM_JSON);
}

static bool for_people(const struct arguments *a)
{
	return gf_cli_form_is_table(form_of(a));
}

static int read_documents(const struct arguments *a, struct gf_documents *d, struct gf_error *err)
{
	int rc = a->plan ? gf_documents_add_of(d, a->plan, "gf-plan", err) : 0;

	return rc ?: gf_cli_document("topologies", a->costs, gf_documents_take_costs, d, err);
}

/* The profile that the traces hold. If there is none, the reason is an error under --profile, and a
 * note of the report otherwise. */
static int own_profile(const struct arguments *a, const struct gf_documents *d,
		       struct gf_profile *own, struct gf_text *notes, struct gf_error *err)
{
	GF_RELEASED(gf_text_release) struct gf_text remarks = {0};
	struct gf_error why = {""};
	int rc = a->cli.nfiles > 1 ? gf_error_set(a->profile ? err : &why, -EINVAL,
						  "%swant a folder with all traces, got %zu files",
						  a->profile ? "--profile: " : "", a->cli.nfiles)
				   : gf_report_profile(a->cli.files[0], gf_report_plan(d), own,
						       &remarks, a->profile ? err : &why);

	if (rc == 0 && a->profile)
		gf_text_addf(notes, "%s", remarks.data ? remarks.data : "");
	else if (rc < 0 && !a->profile)
		gf_text_addf(notes, "no plan is made: %s\n", why.text);
	return a->profile ? rc : 0;
}

/* The profile takes the report's place. */
static bool alone(const struct arguments *a)
{
	return a->profile && strcmp(a->profile, "-") == 0;
}

static int write_profile(const struct arguments *a, const struct gf_profile *own,
			 struct gf_error *err)
{
	GF_FREED char *text = gf_profile_write(own);

	return alone(a) ? gf_cli_emit(&a->cli, text, err)
			: gf_cli_write(&a->cli, a->profile, text, err);
}

/* What needs the report: its rows, or lines, and the picture. */
static int show(const struct arguments *a, const struct gf_import_job *job,
		const struct gf_documents *d, const struct gf_profile *own, struct gf_text *notes,
		struct gf_text *out, struct gf_error *err)
{
	GF_RELEASED(gf_report_whole_release) struct gf_report_whole r = {.scales = !for_people(a)};
	struct gf_plot picture = {0};
	int rc = gf_report_find(&r, job, d, own, notes, err);

	if (rc == 0 && a->plot && !r.nsteps)
		rc = gf_error_set(err, -EINVAL, "--plot: want traces with steps, found none");
	if (rc == 0 && for_people(a))
		gf_report_table(&r, gf_cli_window(&a->cli, form_of(a)), out);
	else if (rc == 0)
		gf_report_json(&r, out);
	if (rc == 0 && a->plot) {
		gf_report_plot(&r, &picture);
		rc = gf_plot_finish(&picture, a->plot, err);
	}
	return rc;
}

static int report(const struct arguments *a, struct gf_error *err)
{
	GF_RELEASED(gf_documents_release) struct gf_documents d = {0};
	GF_RELEASED(gf_profile_release) struct gf_profile own = {0};
	GF_RELEASED(gf_text_release) struct gf_text notes = {0}, out = {0};
	GF_RELEASED(gf_import_job_release) struct gf_import_job job = {0};
	int rc = read_documents(a, &d, err);

	rc = rc ?: gf_import_job_read(&job, a->cli.files, a->cli.nfiles, gf_report_plan(&d), err);
	rc = rc ?: own_profile(a, &d, &own, &notes, err);
	if (rc == 0 && !alone(a))
		rc = show(a, &job, &d, own.producer ? &own : NULL, &notes, &out, err);
	if (rc == 0 && a->profile)
		rc = write_profile(a, &own, err);
	if (rc == 0) {
		GF_FREED char *line = gf_imported_line(&job.imported, a->cli.files[0]);

		gf_cli_note(&a->cli, 0, "%s", line);
		gf_cli_warn_lines(&a->cli, notes.data);
	}
	if (rc == 0 && !alone(a))
		rc = gf_cli_emit_lines(&a->cli, form_of(a), out.data, err);
	return rc;
}

static int against(const struct arguments *a, struct gf_error *err)
{
	struct gf_against against = {
		.before = a->against,
		.after = a->cli.files,
		.nafter = a->cli.nfiles,
		.table = for_people(a),
		.width = gf_cli_window(&a->cli, form_of(a)),
	};
	GF_RELEASED(gf_documents_release) struct gf_documents d = {0};
	GF_RELEASED(gf_text_release) struct gf_text notes = {0}, out = {0};
	struct gf_error why;
	int rc = read_documents(a, &d, err), emitted;

	against.plan = gf_report_plan(&d);
	rc = rc ?: gf_against(&against, &out, &notes, err);
	gf_cli_warn_lines(&a->cli, notes.data);
	emitted = rc < 0 ? 0 : gf_cli_emit_lines(&a->cli, form_of(a), out.data, &why);
	if (emitted) {
		rc = emitted;
		*err = why;
	}
	return rc;
}

int main(int argc, char **argv)
{
	static const char *const of_report[] = {"plot", "costs", "table"};
	struct arguments a = {0};
	struct gf_error err = {""};
	int rc;

	gf_cli_parse(&command, argc, argv, &a);
	rc = a.cli.nfiles ? gf_cli_try_outputs(&a.cli, &err)
			  : gf_error_set(&err, -EINVAL, "want the traces of a job");
	for (size_t i = 0; rc == 0 && alone(&a) && i < GF_ARRAY_LENGTH(of_report); i++)
		if (gf_cli_given(&a.cli, of_report[i]))
			rc = gf_error_set(&err, -EINVAL, "--%s: want a report, got --profile -",
					  of_report[i]);
	rc = rc ?: (a.against ? against(&a, &err) : report(&a, &err));
	return gf_cli_exit(&a.cli, rc, false, &err);
}
