/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef GF_CLI_COMPLETE_H
#define GF_CLI_COMPLETE_H

#include "base/error.h"
#include "base/text.h"
#include "cli/command.h"

/*
 * The script by which a shell completes a command's options and their
 * arguments. The files of completions/ are these scripts (make completions).
 */

/* Appends the script. -EINVAL: shell is not bash, zsh or fish. */
int gf_cli_complete(const struct gf_command *command, const char *shell,
		    struct gf_text *out, struct gf_error *err);

#endif
