/* SPDX-License-Identifier: BSD-3-Clause */
#include "cli/cli.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/heap.h"
#include "base/registry.h"
#include "base/text.h"
#include "cli/command.h"
#include "cli/deadline.h"
#include "cli/table.h"
#include "json/json.h"

int gf_cli_status(int rc)
{
	static const struct {
		int rc, status;
	} table[] = {
		{0, 0},
		{-EINVAL, 2},
		{-ENOTSUP, 1},
		{-ETIMEDOUT, 4},
	};

	if (rc > 0)
		return rc;
	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++)
		if (table[i].rc == rc)
			return table[i].status;
	return 3;
}

/* mpirun of Open MPI 5.0.7 reads at most 4096 bytes of a rank's standard output at once, from a
 * terminal of the rank's own. mpirun loses the part of a line that has been read when the rank's
 * standard error comes before the rest of the line. */
#define LAUNCHER_READS 4096
#define READ_SOON_US   100000
static size_t unread; /* bytes that the launcher may not have read */

static void let_launcher_read(void)
{
	if (unread > LAUNCHER_READS && isatty(STDOUT_FILENO))
		usleep(READ_SOON_US);
	unread = 0;
}

static void say(const struct gf_cli *cli, const char *fmt, va_list ap)
{
	struct gf_deadline *deadline = gf_cli_reader_deadline(cli, NULL);
	GF_RELEASED(gf_text_release) struct gf_text whole = {0};
	char text[1024];

	gf_text_addv(&whole, fmt, ap);
	gf_text_one_line(text, sizeof(text), whole.data ? whole.data : "");
	let_launcher_read();
	/* one write: ranks share the terminal */
	if (cli->rank > 0)
		fprintf(stderr, "%s[%d]: %s\n", cli->command->name, cli->rank, text);
	else
		fprintf(stderr, "%s: %s\n", cli->command->name, text);
	gf_cli_end_deadline(deadline);
}

void gf_cli_warn(const struct gf_cli *cli, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	say(cli, fmt, ap);
	va_end(ap);
}

void gf_cli_note(const struct gf_cli *cli, int level, const char *fmt, ...)
{
	va_list ap;

	if (cli->rank > 0 || cli->quiet || cli->verbose < level)
		return;
	va_start(ap, fmt);
	say(cli, fmt, ap);
	va_end(ap);
}

int gf_cli_write(const struct gf_cli *cli, const char *path, const char *text, struct gf_error *err)
{
	struct gf_deadline *deadline = gf_cli_reader_deadline(cli, path);
	int rc = 0;

	errno = 0;
	if (path)
		rc = gf_file_write(path, text, strlen(text), err);
	else if (fputs(text, stdout) == EOF || fflush(stdout))
		rc = gf_error_errno(err, errno ? -errno : -EIO, "standard output");
	if (!path && cli->launched)
		unread += strlen(text);
	gf_cli_end_deadline(deadline);
	return rc;
}

/* Of -o; NULL: none or "-", which is standard output. */
static const char *output_file(const struct gf_cli *cli)
{
	return cli->output && strcmp(cli->output, "-") != 0 ? cli->output : NULL;
}

int gf_cli_emit(const struct gf_cli *cli, const char *text, struct gf_error *err)
{
	return gf_cli_write(cli, output_file(cli), text, err);
}

/* The files that the command line names to be written; returns how many. Their offsets count from
 * *cli, the first member of the command's arguments. */
static size_t outputs(const struct gf_cli *cli, struct gf_file_wish files[GF_CLI_SETTINGS_MOST + 1])
{
	const struct gf_command *c = cli->command;
	size_t i, n = 0;

	for (i = 0; i < c->nsettings; i++)
		if (c->settings[i].written && cli->given[i])
			files[n++] = (struct gf_file_wish){
				c->settings[i].name,
				*(const char *const *)((const char *)cli + c->settings[i].offset)};
	if (output_file(cli))
		files[n++] = (struct gf_file_wish){"output", cli->output};
	return n;
}

/* Can a file be created there? Leaves none. */
static int try_file(const char *path, struct gf_error *err)
{
	struct gf_file f;
	struct stat st;
	int rc;

	/* opening a pipe and closing it would end its reader's input */
	if (!stat(path, &st) && !S_ISREG(st.st_mode) && !S_ISDIR(st.st_mode))
		return access(path, W_OK) ? gf_error_errno(err, -errno, "%s", path) : 0;
	rc = gf_file_create(&f, path, err);
	if (!rc)
		gf_file_abandon(&f);
	return rc;
}

int gf_cli_try_outputs(const struct gf_cli *cli, struct gf_error *err)
{
	struct gf_file_wish files[GF_CLI_SETTINGS_MOST + 1];
	size_t n = cli->rank > 0 ? 0 : outputs(cli, files), i;
	int rc = 0;

	for (i = 0; i < n && !rc; i++)
		rc = try_file(files[i].path, err);
	return rc;
}

int gf_cli_outputs_apart(const struct gf_cli *cli, struct gf_error *err)
{
	struct gf_file_wish files[GF_CLI_SETTINGS_MOST + 1];

	return gf_file_apart(files, outputs(cli, files), err);
}

/* --- who reads the output ------------------------------------------------- */

enum { NARROWEST = 20, USUAL = 80 };

/* Whether people read the output as it is: no -o, and a terminal. */
static bool to_terminal(const struct gf_cli *cli)
{
	return !output_file(cli) && isatty(STDOUT_FILENO);
}

const char *const gf_cli_forms[] = {"text", "md", "tex", "csv", "tsv", "json", NULL};

enum gf_cli_form gf_cli_form(const struct gf_cli *cli, enum gf_cli_form piped)
{
	const char *ending = output_file(cli) ? strrchr(output_file(cli), '.') : NULL;
	int named = ending ? gf_names_index(gf_cli_forms, ending + 1) : -1;

	if (gf_cli_given(cli, "table"))
		return (enum gf_cli_form)cli->form;
	if (named > GF_FORM_TEXT)
		return (enum gf_cli_form)named;
	/* a launcher gives ranks a terminal, whatever its own output is */
	return to_terminal(cli) && !cli->launched ? GF_FORM_TEXT : piped;
}

bool gf_cli_form_is_table(enum gf_cli_form form)
{
	return form == GF_FORM_TEXT || form == GF_FORM_MARKDOWN || form == GF_FORM_LATEX;
}

size_t gf_cli_window(const struct gf_cli *cli, enum gf_cli_form form)
{
	static const size_t windows[] = {
		[GF_FORM_MARKDOWN] = GF_TABLE_MARKDOWN,
		[GF_FORM_LATEX] = GF_TABLE_LATEX,
		[GF_FORM_CSV] = GF_TABLE_CSV,
		[GF_FORM_TSV] = GF_TABLE_TSV,
		[GF_FORM_JSON] = 0,
	};

	return form == GF_FORM_TEXT ? gf_cli_width(cli) : windows[form];
}

char *gf_cli_lines(enum gf_cli_form form, const char *lines)
{
	struct gf_text out = {0};

	if (form != GF_FORM_CSV && form != GF_FORM_TSV)
		return gf_xstrdup(lines ? lines : "");
	/* our own lines are objects */
	(void)gf_json_rows_text(lines ? lines : "", form == GF_FORM_CSV ? ',' : '\t', &out, NULL);
	return out.length ? gf_text_take(&out) : gf_xstrdup("");
}

int gf_cli_emit_lines(const struct gf_cli *cli, enum gf_cli_form form, const char *lines,
		      struct gf_error *err)
{
	GF_FREED char *text = gf_cli_lines(form, lines);

	return gf_cli_emit(cli, text, err);
}

size_t gf_cli_width(const struct gf_cli *cli)
{
	const char *columns = getenv("COLUMNS");
	struct winsize window = {0};
	int width = columns ? atoi(columns) : 0;

	if (!to_terminal(cli))
		return 0;
	if (width <= 0 && ioctl(STDOUT_FILENO, TIOCGWINSZ, &window) == 0)
		width = window.ws_col;
	if (width <= 0)
		width = USUAL;
	return (size_t)(width < NARROWEST ? NARROWEST : width);
}

/* --- the end -------------------------------------------------------------- */

static int finish(const struct gf_cli *cli, int rc, struct gf_error *err)
{
	bool lost = ferror(stdout) != 0;
	int status;

	errno = 0;
	lost |= fclose(stdout) != 0;
	if (lost && rc == 0)
		rc = gf_error_errno(err, errno ? -errno : -EIO, "standard output");
	status = gf_cli_status(rc);
	if (rc < 0)
		gf_cli_warn(cli, "%s", err->text);
	return status;
}

int gf_cli_exit(const struct gf_cli *cli, int rc, bool alike, struct gf_error *err)
{
	if (rc && alike && cli->rank > 0)
		rc = gf_cli_status(rc);
	else if (rc > 0 && err->text[0])
		gf_cli_warn(cli, "%s", err->text);
	return finish(cli, rc, err);
}
