/* SPDX-License-Identifier: BSD-3-Clause */
/* lib/cli: what the commands share: options as tables, messages, tables, figures and pictures for
 * people, and the start of a command as one rank of a job. */
#ifndef GF_CLI_CLI_H
#define GF_CLI_CLI_H

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"

/*
 * The common part of all commands: messages, output, exit status. Options are in cli/command.h. It
 * is the first member of a command's arguments: the offsets of settings count from it, too.
 */
#define GF_CLI_SETTINGS_MOST 128

/* Forms of a table, in the order of gf_cli_forms. */
enum gf_cli_form {
	GF_FORM_TEXT,
	GF_FORM_MARKDOWN,
	GF_FORM_LATEX,
	GF_FORM_CSV,
	GF_FORM_TSV,
	GF_FORM_JSON,
};
extern const char *const gf_cli_forms[]; /* NULL-terminated */

struct gf_cli {
	const struct gf_command *command;
	const char *output; /* -o; NULL or "-": standard output */
	int form;           /* of enum gf_cli_form: --table */
	bool quiet;
	int verbose;
	/* Of a job of several ranks: as the launcher's environment says, and then as the ranks have
	 * found each other; else 0. */
	int rank;
	bool launched; /* under mpirun, srun, torchrun */
	/* The first of so many processes, as a variable of the launcher says; 0: it does not, or it
	 * says one. */
	int started;
	const char *started_says;
	/* While other ranks wait for this one: for how long its words may wait for a reader
	 * (cli/deadline.h); 0: for good. */
	double reader_s;
	/* Arguments that are no options, NULL-terminated. */
	const char *const *files;
	size_t nfiles;
	/* Which settings were given, by their index: see gf_cli_given. */
	unsigned char given[GF_CLI_SETTINGS_MOST];
};

/* The exit status for a negative errno, as base/error.h lists them. */
int gf_cli_status(int rc);

/* "gf-plan: <text>" on stderr ("gf-plan[3]: " under a launcher on rank > 0), with -q, too: for
 * errors. Warnings and notes are gf_cli_note's. */
void gf_cli_warn(const struct gf_cli *cli, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));
/* "gf-plan: <text>" on stderr where -v was given `level` times and -q not; nothing on ranks > 0. */
void gf_cli_note(const struct gf_cli *cli, int level, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

/* Writes a document to a file, which appears whole or not at all, or to standard output (NULL). A
 * failed write (a full disk, /dev/full) is an error.
 */
int gf_cli_write(const struct gf_cli *cli, const char *path, const char *text,
		 struct gf_error *err);
/* To -o. */
int gf_cli_emit(const struct gf_cli *cli, const char *text, struct gf_error *err);

/* Whether -o and the files of all settings that are `written` can be, at the start of what takes
 * long; nothing on ranks > 0. */
int gf_cli_try_outputs(const struct gf_cli *cli, struct gf_error *err);
/* -EINVAL: two of them are one file. */
int gf_cli_outputs_apart(const struct gf_cli *cli, struct gf_error *err);

/* Closes standard output, prints err if rc < 0, and returns the status for main. rc > 0 is taken as
 * an exit status by itself (1: the answer is no), and may have a reason in err, too. What failed on
 * all ranks of a job alike is said by one. */
int gf_cli_exit(const struct gf_cli *cli, int rc, bool alike, struct gf_error *err);

#endif
