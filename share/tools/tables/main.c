/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * gf-tables: the papers' tables beside gradflow's predictions, as text, and as
 * pictures with --svg FOLDER (which gnuplot draws) or as their numbers with
 * --csv FOLDER. `make tables` runs it.
 */
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "cli/command.h"
#include "report.h"

struct arguments {
	struct gf_cli cli;
	const char *folders[GF_REPORT_KINDS];
};

#define AT(kind) offsetof(struct arguments, folders[kind])

static const struct gf_setting settings[] = {
	{"svg", "DIR", 0, GF_SETTING_TEXT, AT(GF_REPORT_SVG),
	 "write the pictures into this folder, too", .letter = 's'},
	{"pdf", "DIR", 0, GF_SETTING_TEXT, AT(GF_REPORT_PDF), "as PDF"},
	{"png", "DIR", 0, GF_SETTING_TEXT, AT(GF_REPORT_PNG), "as PNG"},
	{"csv", "DIR", 0, GF_SETTING_TEXT, AT(GF_REPORT_CSV),
	 "write the numbers of the pictures into this folder"},
};

static const struct gf_command command = {
	.name = "gf-tables",
	.help = "Sets the tables of the five papers beside gradflow's "
		"predictions.",
	.settings = settings,
	.nsettings = GF_ARRAY_LENGTH(settings),
};

static int run(const struct arguments *a, struct gf_error *err)
{
	static int (*const sections[])(struct gf_report *,
				       struct gf_error *) = {
		gf_report_asc_wfbp, gf_report_gradientflow, gf_report_gtopk,
		gf_report_pipe_sgd, gf_report_blueconnect,
	};
	struct gf_report r = {.body = {0}};
	char *text;
	size_t i;
	int rc = 0;

	memcpy(r.folders, a->folders, sizeof(r.folders));
	for (i = 0; i < GF_ARRAY_LENGTH(sections) && !rc; i++)
		rc = sections[i](&r, err);
	if (!rc) {
		text = gf_report_text(&r);
		rc = gf_cli_emit(&a->cli, text, err);
		free(text);
	}
	gf_report_release(&r);
	return rc;
}

int main(int argc, char **argv)
{
	struct arguments a = {.folders = {NULL}};
	struct gf_error err = {""};

	gf_cli_parse(&command, argc, argv, &a);
	return gf_cli_exit(&a.cli, run(&a, &err), &err);
}
