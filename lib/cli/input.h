/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef GF_CLI_INPUT_H
#define GF_CLI_INPUT_H

#include <stdbool.h>

#include "cli/cli.h"

/* Takes one document: "-" is standard input. */
typedef int gf_cli_take(void *ctx, const char *path, struct gf_error *err);

/*
 * Takes the documents of the command line, each a path or a shipped name in one
 * of the folders of share/ that `kinds` lists (NULL-terminated). Without any,
 * standard input: where documents are `wanted`, whatever is there, and a note
 * that a terminal is read; else only what looks like one, so that a command in
 * a shell's loop leaves the list of that loop alone.
 */
int gf_cli_documents(const struct gf_cli *cli, const char *const *kinds,
		     bool wanted, gf_cli_take *take, void *ctx,
		     struct gf_error *err);

/* Takes the one that an option names, a path or a name in share/<kind>; name
 * NULL: the option was not given. */
int gf_cli_document(const char *kind, const char *name, gf_cli_take *take,
		    void *ctx, struct gf_error *err);
/* The one that a document names: a shipped one, never a path. */
int gf_cli_named(const char *kind, const char *name, gf_cli_take *take,
		 void *ctx, struct gf_error *err);

#endif
