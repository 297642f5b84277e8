/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef GF_CLI_INPUT_H
#define GF_CLI_INPUT_H

#include <stdbool.h>

#include "cli/cli.h"

/*
 * Whether documents may come on standard input, for a command that was given no
 * files: not from a terminal or another device. A terminal's input that mpirun
 * passes on does not count either: rank 0 then sees a pipe that stays open
 * until the user types an end of file.
 */
bool gf_cli_has_input(const struct gf_cli *cli);

#endif
