/* SPDX-License-Identifier: BSD-3-Clause */
#include "cli/command.h"

#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/heap.h"
#include "base/stdin.h"
#include "cli/share.h"

/* Whether documents may come on standard input: not from a terminal or another device. A terminal's
 * input that mpirun passes on does not count either: rank 0 then sees a pipe that stays open until
 * the user types an end of file. */
static bool has_input(const struct gf_cli *cli)
{
	enum gf_stdin source;
	struct stat in;

	if (fstat(STDIN_FILENO, &in) < 0 || S_ISCHR(in.st_mode))
		return false;
	source = cli->launched ? gf_stdin_source() : GF_STDIN_OWN;
	return source != GF_STDIN_TERMINAL && source != GF_STDIN_NOTHING;
}

enum { GLANCE = 4096 };

/* The first bytes of standard input, which stay there; -1: not to be had. Waits for a pipe's. */
static ssize_t glance(char *text)
{
	off_t at = lseek(STDIN_FILENO, 0, SEEK_CUR);
	int copy[2];
	ssize_t n;

	if (at >= 0)
		return pread(STDIN_FILENO, text, GLANCE, at);
	if (pipe(copy))
		return -1;
	n = tee(STDIN_FILENO, copy[1], GLANCE, 0);
	if (n > 0)
		n = read(copy[0], text, GLANCE);
	close(copy[0]);
	close(copy[1]);
	return n;
}

/* A document is JSON; what cannot be looked at may be one. 1: it looks like one; 0: not so. */
static int looks_like_document(const struct gf_cli *cli, struct gf_error *err)
{
	struct pollfd in = {.fd = STDIN_FILENO, .events = POLLIN};
	char text[GLANCE + 1];
	ssize_t n;
	int rc;

	if (poll(&in, 1, 2000) == 0)
		gf_cli_note(cli, 0,
			    "waiting for documents on standard input (</dev/null: there are none)");
	rc = gf_stdin_wait(false, err);
	if (rc <= 0)
		return rc;
	n = glance(text);
	if (n < 0)
		return 1;
	text[n] = '\0';
	return strchr("{[\xef", text[strspn(text, " \t\r\n")]) && n > 0;
}

static int take_named(const char *name, const char *const *kinds, gf_cli_take *take, void *ctx,
		      struct gf_error *err)
{
	GF_FREED char *path = NULL;
	int rc = gf_cli_share_any(kinds, name, &path, err);

	return rc ?: take(ctx, path, err);
}

int gf_cli_named(const char *kind, const char *name, gf_cli_take *take, void *ctx,
		 struct gf_error *err)
{
	GF_FREED char *path = NULL;
	int rc = gf_cli_shipped(kind, name, &path, err);

	return rc ?: take(ctx, path, err);
}

int gf_cli_document(const char *kind, const char *name, gf_cli_take *take, void *ctx,
		    struct gf_error *err)
{
	const char *const kinds[] = {kind, NULL};

	return name ? take_named(name, kinds, take, ctx, err) : 0;
}

int gf_cli_documents(const struct gf_cli *cli, const char *const *kinds, bool wanted,
		     gf_cli_take *take, void *ctx, struct gf_error *err)
{
	size_t i, read = 0;
	int rc = 0;

	for (i = 0; i < cli->nfiles; i++)
		read += strcmp(cli->files[i], "-") == 0;
	if (read > 1)
		return gf_error_set(err, -EINVAL, "want standard input once, got - twice");
	for (i = 0; i < cli->nfiles && rc == 0; i++)
		rc = strcmp(cli->files[i], "-") == 0
			     ? take(ctx, "-", err)
			     : take_named(cli->files[i], kinds, take, ctx, err);
	if (cli->nfiles)
		return rc;
	if (!wanted) {
		rc = has_input(cli) ? looks_like_document(cli, err) : 0;
		if (rc <= 0)
			return rc;
	}
	if (isatty(STDIN_FILENO))
		gf_cli_note(cli, 0, "reading documents from the terminal (--help)");
	return take(ctx, "-", err);
}
