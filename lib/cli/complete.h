/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef GF_CLI_COMPLETE_H
#define GF_CLI_COMPLETE_H

#include "base/text.h"
#include "cli/command.h"

/*
 * A command's options as share/tools/completions.py reads them, which writes
 * the files of completions/. Lines of fields between tabs:
 *
 *	command NAME ARGUMENTS
 *	option NAME LETTER ARG REPEATS(1) FOLDER HELP
 *	word TEXT HELP
 *	rule OPTIONS WITHOUT
 *
 * A word belongs to the option before it; the other words of its argument are
 * the names of the files in share/FOLDER. A missing word is empty.
 */
void gf_cli_complete(const struct gf_command *command, struct gf_text *out);

#endif
