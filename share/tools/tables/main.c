/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * gf-tables: the papers' tables beside gradflow's predictions, as text, and as
 * pictures with --svg FOLDER. `make tables` runs it.
 */
#include <stdlib.h>

#include "base/array.h"
#include "cli/cli.h"
#include "report.h"

struct arguments {
	struct gf_cli cli;
	const char *svg_folder;
};

static const struct argp_option options[] = {
	{"svg", 's', "FOLDER", 0, "write the pictures into FOLDER, too", 0},
	{0},
};

static int parse_opt(int key, char *arg, struct argp_state *state)
{
	struct arguments *a = state->input;

	switch (key) {
	case ARGP_KEY_INIT:
		state->child_inputs[0] = &a->cli;
		return 0;
	case 's':
		a->svg_folder = arg;
		return 0;
	case ARGP_KEY_ARG:
		argp_error(state, "want no argument, got \"%s\"", arg);
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

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
	static const struct argp argp = {
		options,
		parse_opt,
		NULL,
		"Sets the tables of the five papers beside gradflow's "
		"predictions.",
		gf_cli_children,
		NULL,
		NULL};
	struct arguments a = {.svg_folder = NULL};
	struct gf_error err = {""};

	gf_cli_parse(&a.cli, "gf-tables", &argp, argc, argv, &a);
	return gf_cli_exit(&a.cli, run(&a, &err), &err);
}
