/* SPDX-License-Identifier: BSD-3-Clause */
#include "cli/command.h"

#include <string.h>

#include "base/heap.h"
#include "cli/share.h"

enum { LISTS_MOST = 16 };

const char **gf_cli_split(const char *arg)
{
	size_t room = strlen(arg) + 2, n = 0;
	const char **parts = gf_xmalloc(room * sizeof(*parts) + room);
	char *rest = (char *)(parts + room), *part;

	memcpy(rest, arg, room - 1);
	while ((part = strsep(&rest, ",")))
		if (n && part[strcspn(part, ":=")] == '=' && strchr(parts[n - 1], ':'))
			part[-1] = ',';
		else
			parts[n++] = part;
	parts[n] = NULL;
	return parts;
}

int gf_cli_split_once(const char *arg, const char ***parts, struct gf_error *err)
{
	const char **names = gf_cli_split(arg);

	for (size_t i = 0; names[i]; i++)
		for (size_t k = 0; k < i; k++)
			if (strcmp(names[i], names[k]) == 0) {
				gf_error_set(err, -EINVAL,
					     "want each once, got \"%s\" "
					     "twice",
					     names[i]);
				free(names);
				return -EINVAL;
			}
	*parts = names;
	return 0;
}

int gf_cli_split_store(const char *arg, void *to, struct gf_error *err)
{
	free(*(void **)to);
	*(void **)to = NULL;
	return gf_cli_split_once(arg, to, err);
}

void gf_cli_warn_lines(const struct gf_cli *cli, const char *text)
{
	char *copy = gf_xstrdup_or_null(text), *rest = copy, *line;

	while (!cli->quiet && rest && (line = strsep(&rest, "\n")))
		if (*line == '\t')
			gf_cli_note(cli, 1, "%s", line + 1);
		else if (*line)
			gf_cli_warn(cli, "%s", line);
	free(copy);
}

static void print_list(const struct gf_list *l, struct gf_text *out)
{
	struct sourced {
		struct gf_named named;
		const char *source;
	};
	const struct gf_named *e;

	gf_text_addf(out, "%s (%s):\n", l->name, l->description);
	for (size_t i = 0; (e = gf_registry_at(&l->of, i)); i++) {
		if (l->of.offers && !l->of.offers(e))
			continue;
		if (!e->description)
			gf_text_addf(out, "  %s", e->name);
		else
			gf_text_addf(out, "  %-17s %s", e->name, e->description);
		if (l->sourced)
			gf_text_addf(out, " [%s]", ((const struct sourced *)e)->source);
		if (l->mark) {
			gf_text_addf(out, " [");
			l->mark(e, out);
			gf_text_addf(out, "]");
		}
		gf_text_addf(out, "\n");
	}
}

/* Prints the table of that name; NULL: all of them. False: there is none. */
static bool print_named(const struct gf_list *lists, const char *name, struct gf_text *out)
{
	bool found = !name;

	for (; lists->name; lists++) {
		if (name && strcmp(lists->name, name) != 0)
			continue;
		print_list(lists, out);
		found = true;
	}
	return found;
}

static int print_lists(const struct gf_list *lists, const struct gf_cli *cli, struct gf_text *out,
		       struct gf_error *err)
{
	const struct gf_registry all = {lists, sizeof(*lists), NULL};

	if (!cli->nfiles)
		print_named(lists, NULL, out);
	for (size_t i = 0; i < cli->nfiles; i++)
		if (!print_named(lists, cli->files[i], out))
			return gf_registry_refuse(&all, "--list", NULL, cli->files[i], err);
	return 0;
}

int gf_cli_print_lists(const struct gf_cli *cli, const struct gf_list *more, struct gf_error *err)
{
	struct gf_list lists[LISTS_MOST + 1] = {
		gf_cli_share_list("models", "--model, or an argument"),
		gf_cli_share_list("topologies", "as an argument"),
		gf_cli_share_list("profiles", "as an argument"),
	};
	GF_RELEASED(gf_text_release) struct gf_text out = {0};
	size_t n = 3;
	int rc;

	for (; more->name && n < LISTS_MOST; more++)
		lists[n++] = *more;
	rc = print_lists(lists, cli, &out, err);
	rc = rc ?: gf_cli_emit(cli, out.data, err);
	gf_cli_share_list_free(&lists[0]);
	gf_cli_share_list_free(&lists[1]);
	gf_cli_share_list_free(&lists[2]);
	return rc;
}
