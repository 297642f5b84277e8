/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * gf-tables: the papers' tables beside gradflow's predictions, as text, and as
 * pictures with --svg FOLDER. `make tables` runs it.
 */
#include <stddef.h>
#include <stdlib.h>

#include "base/array.h"
#include "cli/command.h"
#include "report.h"

struct arguments {
	struct gf_cli cli;
	const char *svg_folder;
};

static const struct gf_setting settings[] = {
	{"svg", "DIR", 0, GF_SETTING_TEXT,
	 offsetof(struct arguments, svg_folder),
	 "write the pictures into this folder, too", .letter = 's'},
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
	struct gf_report r = {.svg_folder = a->svg_folder};
	char *text;
	size_t i;
	int rc = 0;

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
	struct arguments a = {.svg_folder = NULL};
	struct gf_error err = {""};

	gf_cli_parse(&command, argc, argv, &a);
	return gf_cli_exit(&a.cli, run(&a, &err), &err);
}
