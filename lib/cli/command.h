/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef GF_CLI_COMMAND_H
#define GF_CLI_COMMAND_H

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"
#include "base/text.h"
#include "cli/cli.h"
#include "cli/settings.h"

/*
 * To add a command: cmd/gf-x.c with help text, settings, rules, a struct
 * gf_command, `run` and `main` (the Makefile finds it), man/gf-x.1,
 * tests/cli/gf-x.bats, a line in gf(7) and in README.md.
 *
 * A command's options as data: from it come the parse, --help, the usage
 * errors, and the shells' completions.
 *
 *	struct arguments { struct gf_cli cli; ... };
 *	static const struct gf_command command = {...};
 *
 *	gf_cli_parse(&command, argc, argv, &arguments);
 *	return gf_cli_exit(&arguments.cli, run(&arguments, &err), &err);
 *
 * Every command also has -o FILE, -q (errors only, no warnings), -v
 * (repeatable), -h, --help, --usage, -V and --version. If both -q and -v are
 * given, the last one counts. --completion, which --help does not show, prints
 * the options as complete.h has them.
 * Everything a parse can refuse is refused before MPI starts, identically on
 * all ranks, and printed by one of them.
 */
struct gf_command {
	const char *name;      /* "gf-plan" */
	const char *arguments; /* "[FILE...]", for the usage; NULL: none */
	const char *help;      /* before \v: above the options; after: below */
	const struct gf_setting *settings; /* as --help has them */
	size_t nsettings;
	const char *const *groups; /* headings of the settings' groups from 1 */
	const struct gf_setting_rule *rules;
	size_t nrules;
	bool ranked; /* several processes may be one job's ranks */
	/* Checks that rules cannot express: -EINVAL names the option.
	 * (optional) */
	int (*check)(void *arguments, struct gf_error *err);
};

/* The rows of -o, -q and -v, which every command has. */
extern const struct gf_setting gf_cli_shared[];
extern const size_t gf_cli_nshared;

/* Fills `arguments`, whose first member is a struct gf_cli and whose other
 * members hold the defaults. Exits 0 after --help, --version or --completion, 2
 * on a usage error. */
void gf_cli_parse(const struct gf_command *command, int argc, char **argv,
		  void *arguments);

/* Whether the command line had the setting of that name. */
bool gf_cli_given(const struct gf_cli *cli, const char *name);
/* The names of those that it had from this group on, with blanks between. */
void gf_cli_given_from(const struct gf_cli *cli, int group,
		       struct gf_text *names);

#endif
