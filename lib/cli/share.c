/* SPDX-License-Identifier: BSD-3-Clause */
#include "cli/share.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/heap.h"

enum { PLACES = 4 };

/* A place of share/: an override, the build tree, an installed prefix. */
static char *share_root(size_t i)
{
	char self[4096];
	ssize_t length;
	char *slash;

	switch (i) {
	case 0:
		return gf_xstrdup_or_null(getenv("GF_SHARE"));
	case 1:
	case 2:
		length = readlink("/proc/self/exe", self, sizeof(self) - 1);
		if (length <= 0)
			return NULL;
		self[length] = '\0';
		slash = strrchr(self, '/');
		*slash = '\0';
		if (i == 1)
			return gf_xasprintf("%s/../share/gradflow", self);
		/* build/bin, build/asan/bin: the first folder up with share/ */
		while ((slash = strrchr(self, '/')) && slash != self) {
			char *root;

			*slash = '\0';
			root = gf_xasprintf("%s/share/models", self);
			if (access(root, R_OK) == 0) {
				root[strlen(root) - strlen("/models")] = '\0';
				return root;
			}
			free(root);
		}
		return NULL;
	default:
		return gf_xstrdup(GF_DATADIR);
	}
}

int gf_cli_shipped(const char *kind, const char *name, char **path,
		   struct gf_error *err)
{
	static const char *const endings[] = {"", ".json"};
	size_t i, k;

	for (i = 0; i < PLACES && !strchr(name, '/'); i++) {
		char *root = share_root(i);

		for (k = 0; root && k < 2; k++) {
			char *candidate = gf_xasprintf("%s/%s/%s%s", root, kind,
						       name, endings[k]);

			if (access(candidate, R_OK) == 0) {
				free(root);
				*path = candidate;
				return 0;
			}
			free(candidate);
		}
		free(root);
	}
	return gf_error_set(err, -ENOENT, "want %s in share/%s, found none",
			    name, kind);
}

int gf_cli_share(const char *kind, const char *name, char **path,
		 struct gf_error *err)
{
	if (access(name, R_OK) == 0) {
		*path = gf_xstrdup(name);
		return 0;
	}
	if (gf_cli_shipped(kind, name, path, err) == 0)
		return 0;
	return gf_error_set(err, -ENOENT,
			    "%s: want a path or a name in share/%s, found "
			    "neither",
			    name, kind);
}
