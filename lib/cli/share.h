/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef GF_CLI_SHARE_H
#define GF_CLI_SHARE_H

#include "base/registry.h"

/*
 * Files that gradflow ships. share/ is looked for in $GF_SHARE, beside the command: in
 * ../share/gradflow, or in the build tree's source.
 */

/* The path of a shipped file: `name` itself if such a path exists, else share/<kind>/<name>[.json],
 * in any case of the letters. -EINVAL: it is no such name; -ENOENT: it looks like a path, and is
 * none. The caller frees. */
int gf_cli_share(const char *kind, const char *name, char **path, struct gf_error *err);

/* The path of a shipped file that may lie in any of several folders of share/; `kinds` is
 * NULL-terminated. */
int gf_cli_share_any(const char *const *kinds, const char *name, char **path, struct gf_error *err);

/* The shipped file alone, for scripts that are run: a file of the same name in the working folder
 * must not be. */
int gf_cli_shipped(const char *kind, const char *name, char **path, struct gf_error *err);

/* The names of what is in share/<kind>, in order, as a table of that name. */
struct gf_list gf_cli_share_list(const char *kind, const char *description);
void gf_cli_share_list_free(struct gf_list *list);

#endif
