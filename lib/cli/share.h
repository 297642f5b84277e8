/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef GF_CLI_SHARE_H
#define GF_CLI_SHARE_H

#include "base/error.h"

/*
 * Files that gradflow ships. share/ is looked for in $GF_SHARE, beside the
 * command (build tree or ../share/gradflow), and in the installed data folder.
 */

/* The path of a shipped file: `name` itself if such a path exists, else
 * share/<kind>/<name>[.json]. -ENOENT: neither exists. The caller frees. */
int gf_cli_share(const char *kind, const char *name, char **path,
		 struct gf_error *err);

/* The shipped file alone, for scripts that are run: a file of the same name in
 * the working folder must not be. */
int gf_cli_shipped(const char *kind, const char *name, char **path,
		   struct gf_error *err);

#endif
