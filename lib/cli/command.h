/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef GF_CLI_COMMAND_H
#define GF_CLI_COMMAND_H

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"
#include "base/text.h"
#include "cli/cli.h"
#include "cli/settings.h"
#include "base/registry.h"

/*
 * To add a command: cmd/gf-x.c with help text, settings, rules, a struct gf_command, `run` and
 * `main` (the Makefile finds it), man/gf-x.1.in, tests/cli/gf-x.bats, a line in gf(7) and in
 * README.md.
 *
 * A command's options as data: from it come the parse, --help, the usage errors, and the shells'
 * completions.
 *
 *	struct arguments { struct gf_cli cli; ... };
 *	static const struct gf_command command = {...};
 *
 *	gf_cli_parse(&command, argc, argv, &arguments);
 *	rc = run(&arguments, &err);
 *	return gf_cli_exit(&arguments.cli, rc, false, &err);
 *
 * Every command also has -o FILE, -q (errors only, no warnings), -v (unless it is brief), -h (some
 *ten options, those that are `often` used), --help (all), -V and --version. If both -q and -v are
 * given, the last one counts. --usage and --completion, which prints the options as command.c has
 * them, are not in --help.
 * Everything a parse can refuse is refused before MPI starts, identically on all ranks, and printed
 * by one of them.
 */
struct gf_command {
	const char *name;      /* "gf-plan" */
	const char *arguments; /* "[FILE...]", for the usage; NULL: none */
	/* before \v: above the options; after: below, a heading and examples, a line each */
	const char *help;
	const struct gf_setting *settings; /* as --help has them */
	size_t nsettings;
	const char *const *groups; /* headings of the settings' groups from 1 */
	const struct gf_setting_rule *rules;
	size_t nrules;
	/* Shipped documents that its arguments may name: folders of share/, NULL-terminated.
	 * (optional) */
	const char *const *kinds;
	bool ranked; /* several processes may be one job's ranks */
	bool brief;  /* has no -v: there is nothing more to print */
	/* Checks that rules cannot express: -EINVAL names the option. (optional) */
	int (*check)(void *arguments, struct gf_error *err);
};

/* The tables of these names, of a command whose settings are known when it is built. */
#define GF_COMMAND_TABLES                                                                          \
	.help = help, .settings = settings, .nsettings = GF_ARRAY_LENGTH(settings),                \
	.groups = groups, .rules = rules, .nrules = GF_ARRAY_LENGTH(rules)

/* The row of --table[=FORM], for commands whose output may be a table (gf_cli_form). */
#define GF_SETTING_TABLE(of)                                                                       \
	{                                                                                          \
		"table", "FORM", (of), GF_SETTING_CHOICE, offsetof(struct gf_cli, form),           \
			"print a table for people (text, md, tex), or rows (csv, tsv, json); "     \
			"else by the ending of -o (text on a terminal)",                           \
			.names = gf_cli_forms, .otherwise = "text"                                 \
	}

/* Fills `arguments`, whose first member is a struct gf_cli and whose other members hold the
 * defaults. Exits 0 after --help, --version or --completion, 2 on a usage error. */
void gf_cli_parse(const struct gf_command *command, int argc, char **argv, void *arguments);

/* Whether the command line had the setting of that name. */
bool gf_cli_given(const struct gf_cli *cli, const char *name);

/* Takes one document: "-" is standard input. */
typedef int gf_cli_take(void *ctx, const char *path, struct gf_error *err);

/*
 * Takes the documents of the command line, each a path or a shipped name in one of the folders of
 * share/ that `kinds` lists (NULL-terminated). Without any, standard input: where documents are
 * `wanted`, whatever is there, and a note that a terminal is read; else only what looks like one,
 * so that a command in a shell's loop leaves the list of that loop alone.
 */
int gf_cli_documents(const struct gf_cli *cli, const char *const *kinds, bool wanted,
		     gf_cli_take *take, void *ctx, struct gf_error *err);

/* Takes the one that an option names, a path or a name in share/<kind>; name NULL: the option was
 * not given. */
int gf_cli_document(const char *kind, const char *name, gf_cli_take *take, void *ctx,
		    struct gf_error *err);
/* The one that a document names: a shipped one, never a path. */
int gf_cli_named(const char *kind, const char *name, gf_cli_take *take, void *ctx,
		 struct gf_error *err);

/*
 * A progress bar on stderr for what takes longer than a second: only on a terminal, not under a
 * launcher (there every rank believes it has one), not with -q or a dumb terminal. Otherwise the
 * calls do nothing.
 */
struct gf_progress {
	bool shown;
	double started_s, drawn_s;
	const char *what;
	const struct gf_cli *cli;
	const char *detail; /* the last one noted */
};

void gf_progress_start(struct gf_progress *p, const struct gf_cli *cli, const char *what);
/* fraction in [0, 1]; detail may be NULL. */
void gf_progress_at(struct gf_progress *p, double fraction, const char *detail);
/* As gf_progress_at, for callbacks (p is a struct gf_progress); with -v also a line whenever
 * detail, a constant, is another one. */
void gf_progress_report(void *p, double fraction, const char *detail);
/* Removes the bar. */
void gf_progress_end(struct gf_progress *p);

/* The form of the output: what --table asks for, else what the ending of -o says, else a table on a
 * terminal and `piped` elsewhere. */
enum gf_cli_form gf_cli_form(const struct gf_cli *cli, enum gf_cli_form piped);
/* Is it a table for people? CSV and TSV are, where a command has no rows for programs. */
bool gf_cli_form_is_table(enum gf_cli_form form);
/* JSON Lines in the form: as they are, or as CSV or TSV. The caller frees. */
char *gf_cli_lines(enum gf_cli_form form, const char *lines);
/* Emits them. */
int gf_cli_emit_lines(const struct gf_cli *cli, enum gf_cli_form form, const char *lines,
		      struct gf_error *err);
/* For gf_table_print_in: the form, or for text the terminal's columns. */
size_t gf_cli_window(const struct gf_cli *cli, enum gf_cli_form form);

/* The columns of that terminal, by $COLUMNS or its window (80 where neither is known); 0: the
 * output goes elsewhere and has no limit. */
size_t gf_cli_width(const struct gf_cli *cli);

/* The parts of a comma-separated argument, empty ones too, NULL-terminated, in one allocation that
 * the caller frees. KEY=VALUE belongs to the part before it, where that is NAME:KEY=VALUE. */
const char **gf_cli_split(const char *arg);

/* gf_cli_split into *parts; -EINVAL where a name stands twice. */
int gf_cli_split_once(const char *arg, const char ***parts, struct gf_error *err);
/* gf_cli_split_once as `store` of an option; to: const char **, freed if there was one. */
int gf_cli_split_store(const char *arg, void *to, struct gf_error *err);

/*
 * Emits tables, each under its name, the entries of each a line: shipped models, topologies and
 * profiles, then `more`, which ends as gf_registry does; or those that the command's arguments
 * name. -EINVAL: there is no such table.
 */
int gf_cli_print_lists(const struct gf_cli *cli, const struct gf_list *more, struct gf_error *err);

/* Every line of a text as a warning, none with -q; a line that begins with a tab is a detail, for
 * -v. text may be NULL. */
void gf_cli_warn_lines(const struct gf_cli *cli, const char *text);

#endif
