/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef GF_CLI_WINDOW_H
#define GF_CLI_WINDOW_H

#include "cli/cli.h"

/* Whether people read the output as it is: no -o, and a terminal. */
bool gf_cli_to_terminal(const struct gf_cli *cli);

/* The columns of that terminal, by $COLUMNS or its window (80 where neither is
 * known); 0: the output goes elsewhere and has no limit. */
size_t gf_cli_width(const struct gf_cli *cli);

/* Whether the locale's characters are UTF-8, by LC_ALL, LC_CTYPE or LANG. */
bool gf_cli_utf8(void);

#endif
