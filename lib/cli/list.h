/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef GF_CLI_LIST_H
#define GF_CLI_LIST_H

#include "base/registry.h"
#include "base/text.h"
#include "cli/cli.h"

/* The parts of a comma-separated argument, empty ones too, NULL-terminated, in
 * one allocation that the caller frees. */
const char **gf_cli_split(const char *arg);

/* gf_cli_split into *parts; -EINVAL where a name stands twice. */
int gf_cli_split_once(const char *arg, const char ***parts,
		      struct gf_error *err);
/* gf_cli_split_once as `store` of an option; to: const char **, freed if there
 * was one. */
int gf_cli_split_store(const char *arg, void *to, struct gf_error *err);

/*
 * Emits tables, each under its name, the entries of each a line: shipped models
 * and topologies, then `more`, which ends as gf_registry does; or those that
 * the command's arguments name. -EINVAL: there is no such table.
 */
int gf_cli_print_lists(const struct gf_cli *cli, const struct gf_list *more,
		       struct gf_error *err);

/* Every line of a text as a warning, none with -q; a line that begins with a
 * tab is a detail, for -v. text may be NULL. */
void gf_cli_warn_lines(const struct gf_cli *cli, const char *text);

#endif
