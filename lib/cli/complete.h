/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef GF_CLI_COMPLETE_H
#define GF_CLI_COMPLETE_H

#include "base/text.h"
#include "cli/command.h"

/*
 * A command's options, as the shells' scripts in completions/ read them. Lines
 * of fields between tabs:
 *
 *	command NAME ARGUMENTS
 *	option NAME LETTER ARG REPEATS(1) PATHS(files, folders) HELP
 *	word TEXT HELP
 *	rule OPTIONS WITHOUT
 *
 * A word belongs to the option before it. A missing word is empty.
 */
void gf_cli_complete(const struct gf_command *command, struct gf_text *out);

#endif
