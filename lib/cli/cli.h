/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef GF_CLI_CLI_H
#define GF_CLI_CLI_H

#include <argp.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"

/*
 * What all commands share: options, messages, output, exit status.
 *
 *	static struct argp argp = {options, parse_opt, args_doc, doc,
 *				   gf_cli_children, NULL, NULL};
 *	gf_cli_parse(&cli, &argp, argc, argv, &arguments);
 *	return gf_cli_exit(&cli, run(&arguments, &err), &err);
 *
 * gf_cli_children adds -o FILE, -q (nothing but errors, no warnings), -v
 * (repeatable; of -q and -v the last one counts), -h; argp itself adds
 * --help, --usage, -V and --version. Everything a parse can refuse is refused
 * before MPI starts, identically on all ranks, and printed by one of them.
 */
#define GF_CLI_SETTINGS_MOST 128

struct gf_cli {
	const char *command; /* "gf-plan" */
	const char *output;  /* -o; NULL or "-": standard output */
	bool quiet;
	int verbose;
	int rank;      /* from the launcher's environment; 0 without one */
	bool launched; /* under mpirun, srun, torchrun */
	/* Which settings (cli/settings.h) were given, by their index. */
	unsigned char given[GF_CLI_SETTINGS_MOST];
};

extern const struct argp_child gf_cli_children[];

/* Exits 0 after --help or --version, 2 on a usage error. The command's own
 * parse_opt must hand the struct gf_cli to its child on ARGP_KEY_INIT:
 *	state->child_inputs[0] = cli; */
void gf_cli_parse(struct gf_cli *cli, const char *command,
		  const struct argp *argp, int argc, char **argv, void *input);

/* For parse_opt: prints "gf-x: --option: <err text>" with a usage hint and
 * exits 2. */
void gf_cli_usage_error(struct argp_state *state, const char *option,
			const struct gf_error *err);

/* The exit status of STYLE line 18 for a negative errno. */
int gf_cli_status(int rc);

/* "gf-plan: <text>" on stderr ("gf-plan[3]: " under a launcher on rank > 0),
 * with -q, too: for errors. Warnings and notes are gf_cli_note's. */
void gf_cli_warn(const struct gf_cli *cli, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));
/* The same where -v was given `level` times and -q not; nothing on ranks > 0.
 */
void gf_cli_note(const struct gf_cli *cli, int level, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

/* Writes a document to -o or standard output. -o files appear whole or not at
 * all; a failed write (a full disk, /dev/full) is an error. */
int gf_cli_emit(const struct gf_cli *cli, const char *text,
		struct gf_error *err);

/* Whether -o can be written, at the start of what takes long; nothing on
 * ranks > 0. */
int gf_cli_try_output(const struct gf_cli *cli, struct gf_error *err);

/* Closes standard output, prints err if rc < 0, and returns the status for
 * main. rc > 0 is taken as an exit status by itself (1: the answer is no). */
int gf_cli_exit(const struct gf_cli *cli, int rc, struct gf_error *err);

/* The same for a rank of a job, where rc > 0 has a reason, too: what failed on
 * all of them alike is said by one. */
int gf_cli_exit_rank(const struct gf_cli *cli, int rc, bool alike,
		     struct gf_error *err);

/*
 * A shipped file by name: `name` itself if such a path exists, else
 * share/<kind>/<name>[.json] in $GF_SHARE, beside the command (build tree or
 * ../share/gradflow), or in the installed data folder. The caller frees.
 */
int gf_cli_share(const char *kind, const char *name, char **path,
		 struct gf_error *err);

#endif
