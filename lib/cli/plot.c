/* SPDX-License-Identifier: BSD-3-Clause */
#include "cli/plot.h"

#include <fcntl.h>
#include <math.h>
#include <spawn.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/file.h"
#include "base/heap.h"
#include "base/registry.h"
#include "cli/share.h"

/* The descriptor that gnuplot finds the numbers at. */
#define NUMBERS      3
#define NUMBERS_PATH "/dev/fd/3"
/* Bytes of a title: it goes to gnuplot as an argument. */
#define TEXT_MOST 400

/* Length of the UTF-8 sequence at text that XML 1.0 allows, or 0. */
static size_t sequence(const char *text)
{
	uint32_t code;
	const size_t n = gf_text_decode(text, &code);

	return code < 0x20 || code == 0x7f || code == 0xfffe || code == 0xffff ? 0 : n;
}

/* At most `most` bytes of it. */
static void add_clean(struct gf_text *t, const char *text, size_t most)
{
	size_t end = t->length + most;

	while (*text && t->length < end) {
		size_t n = strchr("\"\\`", *text) ? 0 : sequence(text);

		gf_text_add(t, n ? text : "?", n ? n : 1);
		text += n ? n : 1;
	}
}

void gf_plot_text(struct gf_plot *p, const char *name, const char *fmt, ...)
{
	GF_RELEASED(gf_text_release) struct gf_text text = {0}, clean = {0};
	const char *at, *quote;
	va_list ap;

	va_start(ap, fmt);
	gf_text_addv(&text, fmt, ap);
	va_end(ap);
	add_clean(&clean, text.data ? text.data : "", TEXT_MOST);
	gf_text_addf(&p->vars, "%s='", name);
	/* single quotes: gnuplot reads all but these as they are */
	for (at = clean.data; at && (quote = strchr(at, '\'')); at = quote + 1)
		gf_text_addf(&p->vars, "%.*s''", (int)(quote - at), at);
	gf_text_addf(&p->vars, "%s';", at ? at : "");
}

void gf_plot_number(struct gf_plot *p, const char *name, double value)
{
	gf_text_addf(&p->vars, "%s=%.17g;", name, value);
}

void gf_plot_label(struct gf_text *csv, const char *text)
{
	size_t from = csv->length;

	add_clean(csv, text, SIZE_MAX / 2);
	for (; from < csv->length; from++)
		if (csv->data[from] == ',')
			csv->data[from] = ';';
}

void gf_plot_cell(struct gf_text *csv, double value)
{
	gf_text_addf(csv, ",");
	if (!isnan(value))
		gf_text_addf(csv, "%.12g", value);
}

int gf_plot_store(const char *arg, void *to, struct gf_error *err)
{
	static const char *const endings[] = {"svg", "pdf", "png", "csv", NULL};
	const char *dot = strrchr(arg, '.');

	if (!dot || gf_names_index(endings, dot + 1) < 0)
		return gf_error_set(err, -EINVAL,
				    "want a file that ends in .svg, .pdf, .png or .csv, got \"%s\"",
				    arg);
	*(const char **)to = arg;
	return 0;
}

/* The last line that gnuplot wrote, without its newline. */
static int read_complaint(int fd, struct gf_error *err)
{
	char said[4096], *line;
	ssize_t n = pread(fd, said, sizeof(said) - 1, 0);

	while (n > 0 && strchr(" \t\n", said[n - 1]))
		n--;
	said[n > 0 ? n : 0] = '\0';
	line = strrchr(said, '\n');
	return gf_error_set(err, -EIO, "gnuplot: %s", *said ? line ? line + 1 : said : "failed");
}

/* No shell, no file of the user's that gnuplot would read by itself. */
static int run(const char *script, char *vars, const int fds[3], struct gf_error *err)
{
	char *argv[] = {"gnuplot", "-d", "-e", vars, gf_xstrdup(script), NULL};
	posix_spawn_file_actions_t actions;
	int rc, status = 0;
	pid_t pid;

	posix_spawn_file_actions_init(&actions);
	posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
	posix_spawn_file_actions_adddup2(&actions, fds[1], 1);
	posix_spawn_file_actions_adddup2(&actions, fds[2], 2);
	posix_spawn_file_actions_adddup2(&actions, fds[0], NUMBERS);
	rc = posix_spawnp(&pid, argv[0], &actions, NULL, argv, environ);
	posix_spawn_file_actions_destroy(&actions);
	free(argv[4]);
	if (rc)
		return gf_error_errno(err, -rc,
				      "want gnuplot to draw (Debian: gnuplot-nox; a file that ends "
				      "in .csv needs none)");
	while (waitpid(pid, &status, 0) < 0)
		if (errno != EINTR)
			return gf_error_errno(err, -errno, "gnuplot");
	return status ? read_complaint(fds[2], err) : 0;
}

/* Numbers to a file of no name, the picture to `to`. */
static int draw(const struct gf_plot *p, const char *script, char *vars, int to,
		struct gf_error *err)
{
	int numbers = memfd_create("numbers", MFD_CLOEXEC);
	int said = memfd_create("said", MFD_CLOEXEC);
	size_t done = 0;
	ssize_t n = 0;
	int rc = numbers < 0 || said < 0 ? -errno : 0;

	for (; !rc && done < p->csv.length; done += (size_t)n) {
		n = write(numbers, p->csv.data + done, p->csv.length - done);
		if (n < 0)
			rc = -errno, n = 0;
	}
	if (rc)
		gf_error_errno(err, rc, "memory for gnuplot");
	else
		rc = run(script, vars, (int[]){numbers, to, said}, err);
	if (numbers >= 0)
		close(numbers);
	if (said >= 0)
		close(said);
	return rc;
}

static int draw_file(const struct gf_plot *p, const char *script, const char *path, char *vars,
		     struct gf_error *err)
{
	struct gf_file f;
	int rc = gf_file_create(&f, path, err);

	if (rc)
		return rc;
	rc = draw(p, script, vars, fileno(f.stream), err);
	if (!rc)
		return gf_file_commit(&f, err);
	gf_error_prefix(err, "%s", path);
	gf_file_abandon(&f);
	return rc;
}

static int write_file(const struct gf_plot *p, const char *path, struct gf_error *err)
{
	GF_RELEASED(gf_text_release) struct gf_text vars = {0};
	const char *type;
	GF_FREED char *name = NULL, *script = NULL;
	int rc = gf_plot_store(path, &type, err);

	if (rc)
		return rc;
	type = strrchr(path, '.') + 1;
	if (strcmp(type, "csv") == 0)
		return gf_file_write(path, p->csv.data, p->csv.length, err);
	gf_text_addf(&vars, "data='" NUMBERS_PATH "';out='%s';%s", type,
		     p->vars.data ? p->vars.data : "");
	name = gf_xasprintf("%s.gp", p->script);
	rc = gf_cli_shipped("plots", name, &script, err);
	return rc ?: draw_file(p, script, path, vars.data, err);
}

int gf_plot_finish(struct gf_plot *p, const char *path, struct gf_error *err)
{
	int rc = write_file(p, path, err);

	gf_text_release(&p->csv);
	gf_text_release(&p->vars);
	return rc;
}
