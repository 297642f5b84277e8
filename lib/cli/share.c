/* SPDX-License-Identifier: BSD-3-Clause */
#include "cli/share.h"

#include <ctype.h>
#include <dirent.h>
#include <stdbool.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "base/heap.h"
#include "base/registry.h"
#include "base/text.h"

enum { PLACES = 3 };

/* A place of share/: an override, an installed prefix, the build tree. */
static char *share_root(size_t i)
{
	char self[4096];
	ssize_t length;
	char *slash;

	if (i == 0)
		return gf_xstrdup_or_null(getenv("GF_SHARE"));
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
}

static char *share_folder(size_t place, const char *kind)
{
	GF_FREED char *root = share_root(place);

	return root ? gf_xasprintf("%s/%s", root, kind) : NULL;
}

/* Appends what is in a folder, documents by their names up to ".json". */
static void add_names(const char *folder, char ***names, size_t *count)
{
	GF_FREED struct dirent **found = NULL;
	int n = scandir(folder, &found, NULL, alphasort), i;

	for (i = 0; i < n; i++) {
		char *ending = strrchr(found[i]->d_name, '.');

		/* neither hidden nor of other kinds */
		if (!ending || (found[i]->d_name[0] != '.' && strcmp(ending, ".json") == 0)) {
			if (ending)
				*ending = '\0';
			*names = gf_xreallocarray(*names, *count + 2, sizeof(**names));
			(*names)[(*count)++] = gf_xstrdup(found[i]->d_name);
			(*names)[*count] = NULL;
		}
		free(found[i]);
	}
}

static char **names_of(const char *kind)
{
	char **names = gf_xcalloc(1, sizeof(*names));
	size_t place, count = 0;

	for (place = 0; place < PLACES && !count; place++) {
		GF_FREED char *folder = share_folder(place, kind);

		if (folder)
			add_names(folder, &names, &count);
	}
	return names;
}

static void free_names(char **names)
{
	for (size_t i = 0; names && names[i]; i++)
		free(names[i]);
	free(names);
}

int gf_cli_shipped(const char *kind, const char *name, char **path, struct gf_error *err)
{
	static const char *const endings[] = {"", ".json"};

	for (size_t i = 0; i < PLACES && *name && !strchr(name, '/'); i++) {
		GF_FREED char *folder = share_folder(i, kind);

		for (size_t k = 0; folder && k < 2; k++) {
			char *candidate = gf_xasprintf("%s/%s%s", folder, name, endings[k]);

			if (access(candidate, R_OK) == 0) {
				*path = candidate;
				return 0;
			}
			free(candidate);
		}
	}
	return gf_error_set(err, -ENOENT, "want %s in share/%s, found none", name, kind);
}

/* All names of several kinds, which the caller frees; and "share/models, share/training or
 * share/data". */
static char **all_names(const char *const *kinds, struct gf_text *folders)
{
	char **all = gf_xcalloc(1, sizeof(*all));
	size_t count = 0, i, k;

	for (i = 0; kinds[i]; i++) {
		GF_FREED char **names = names_of(kinds[i]);

		gf_text_addf(folders, "%sshare/%s",
			     !i             ? ""
			     : kinds[i + 1] ? ", "
					    : " or ",
			     kinds[i]);
		for (k = 0; names[k]; k++) {
			all = gf_xreallocarray(all, count + 2, sizeof(*all));
			all[count++] = names[k];
			all[count] = NULL;
		}
	}
	return all;
}

/* "a/b", "b.json"; not "llama-3.2". */
static bool is_path(const char *text)
{
	const char *ending = strrchr(text, '.');

	return strchr(text, '/') || (ending && !isdigit((unsigned char)ending[1]));
}

/* So many names are told, where none is near. */
enum { TOLD = 8 };

static int refuse(const char *const *kinds, const char *name, struct gf_error *err)
{
	GF_RELEASED(gf_text_release) struct gf_text folders = {0}, hint = {0};
	const char *near;
	char **names;

	if (is_path(name))
		return gf_error_errno(err, -ENOENT, "%s", name);
	names = all_names(kinds, &folders);
	near = gf_names_near((const char *const *)names, name);
	if (near)
		gf_text_addf(&hint, "; did you mean %s?", near);
	else if (names[0]) {
		gf_text_addf(&hint, "; names that are there: ");
		gf_names_nearest((const char *const *)names, name, TOLD, &hint);
	}
	gf_error_set(err, -EINVAL, "%s: want a path or a name in %s, found neither%s", name,
		     folders.data, hint.data ? hint.data : "");
	free_names(names);
	return -EINVAL;
}

/* The shipped file whose name differs in case alone; NULL: there is none. */
static char *in_any_case(const char *kind, const char *name)
{
	char **names = names_of(kind), *path = NULL;

	for (size_t i = 0; names[i] && !path; i++)
		if (strcasecmp(names[i], name) == 0)
			gf_cli_shipped(kind, names[i], &path, NULL);
	free_names(names);
	return path;
}

int gf_cli_share_any(const char *const *kinds, const char *name, char **path, struct gf_error *err)
{
	const char *own = getenv("GF_SHARE");

	*path = NULL;
	if (own && access(own, X_OK) != 0)
		return gf_error_errno(err, -errno, "GF_SHARE: %s", own);
	if (access(name, F_OK) == 0)
		*path = gf_xstrdup(name);
	for (size_t i = 0; kinds[i] && !*path; i++)
		gf_cli_shipped(kinds[i], name, path, NULL);
	for (size_t i = 0; kinds[i] && !*path; i++)
		*path = in_any_case(kinds[i], name);
	return *path ? 0 : refuse(kinds, name, err);
}

int gf_cli_share(const char *kind, const char *name, char **path, struct gf_error *err)
{
	const char *const kinds[] = {kind, NULL};

	return gf_cli_share_any(kinds, name, path, err);
}

struct gf_list gf_cli_share_list(const char *kind, const char *description)
{
	GF_FREED char **names = names_of(kind);
	struct gf_named *entries;
	size_t n = 0, i;

	while (names[n])
		n++;
	entries = gf_xcalloc(n + 1, sizeof(*entries));
	for (i = 0; i < n; i++)
		entries[i].name = names[i];
	return (struct gf_list){kind, description, {entries, sizeof(*entries), NULL}, false};
}

void gf_cli_share_list_free(struct gf_list *list)
{
	const struct gf_named *e;

	for (size_t i = 0; (e = gf_registry_at(&list->of, i)); i++)
		free((void *)e->name);
	free((void *)list->of.entries);
}
