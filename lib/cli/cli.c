/* SPDX-License-Identifier: BSD-3-Clause */
#include "cli/cli.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/heap.h"
#include "base/text.h"

/* Set by Open MPI, PMIx (PRRTE), MPICH and Slurm, in this order. */
static const char *const rank_variables[] = {
	"OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK", "SLURM_PROCID", NULL,
};

static int parse_shared(int key, char *arg, struct argp_state *state);

/* Keys outside the printable range have no short form. */
#define KEY_SHORT_HELP 'h'

static const struct argp_option shared_options[] = {
	{"output", 'o', "FILE", 0, "write to FILE instead of standard output",
	 90},
	{"quiet", 'q', NULL, 0, "say nothing but errors", 90},
	{"verbose", 'v', NULL, 0, "say more; may be repeated", 90},
	{NULL, KEY_SHORT_HELP, NULL, OPTION_HIDDEN, NULL, 0},
	{0},
};

static const struct argp shared_argp = {
	shared_options, parse_shared, NULL, NULL, NULL, NULL, NULL};

const struct argp_child gf_cli_children[] = {
	{&shared_argp, 0, NULL, 0},
	{0},
};

static int parse_shared(int key, char *arg, struct argp_state *state)
{
	struct gf_cli *cli = state->input;

	switch (key) {
	case 'o':
		cli->output = arg;
		return 0;
	case 'q': /* of -q and -v the last one counts */
		cli->quiet = true;
		cli->verbose = 0;
		return 0;
	case 'v':
		cli->quiet = false;
		cli->verbose++;
		return 0;
	case KEY_SHORT_HELP:
		argp_state_help(state, stdout, ARGP_HELP_STD_HELP);
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

static void find_rank(struct gf_cli *cli)
{
	size_t i;

	for (i = 0; rank_variables[i]; i++) {
		const char *value = getenv(rank_variables[i]);

		if (!value)
			continue;
		cli->launched = true;
		cli->rank = atoi(value);
		return;
	}
}

static bool parsing;

/* argp leaves by exit(0) after --help and --version, on whatever became of
 * them. */
static void check_help(void)
{
	if (!parsing || (fflush(stdout) == 0 && !ferror(stdout)))
		return;
	fprintf(stderr, "%s: standard output: %s\n",
		program_invocation_short_name, strerror(errno));
	_exit(3);
}

void gf_cli_parse(struct gf_cli *cli, const char *command,
		  const struct argp *argp, int argc, char **argv, void *input)
{
	static char version[64]; /* argp keeps the pointer */

	memset(cli, 0, sizeof(*cli));
	cli->command = command;
	find_rank(cli);
	snprintf(version, sizeof(version), "%s (gradflow) " GF_VERSION,
		 command);
	argp_program_version = version;
	argp_err_exit_status = 2;
	/*
	 * Every rank takes the same way out of a bad command line, before MPI
	 * starts; one of them says why. The others' output is turned off only
	 * for the parse.
	 */
	if (cli->rank > 0) {
		int out = dup(STDOUT_FILENO), err = dup(STDERR_FILENO);

		if (!freopen("/dev/null", "w", stdout) ||
		    !freopen("/dev/null", "w", stderr))
			exit(3);
		argp_parse(argp, argc, argv, 0, NULL, input);
		fflush(stdout);
		fflush(stderr);
		dup2(out, STDOUT_FILENO);
		dup2(err, STDERR_FILENO);
		close(out);
		close(err);
		setvbuf(stderr, NULL, _IONBF, 0);
		return;
	}
	atexit(check_help);
	parsing = true;
	argp_parse(argp, argc, argv, 0, NULL, input);
	parsing = false;
}

void gf_cli_usage_error(struct argp_state *state, const char *option,
			const struct gf_error *err)
{
	argp_error(state, "%s: %s", option, err->text);
	exit(argp_err_exit_status); /* argp_error returns under ARGP_NO_EXIT */
}

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
	size_t i;

	if (rc > 0)
		return rc;
	for (i = 0; i < sizeof(table) / sizeof(table[0]); i++)
		if (table[i].rc == rc)
			return table[i].status;
	return 3;
}

static void say(const struct gf_cli *cli, const char *fmt, va_list ap)
{
	struct gf_text whole = {0};
	char text[1024];

	gf_text_addv(&whole, fmt, ap);
	gf_text_one_line(text, sizeof(text), whole.data ? whole.data : "");
	gf_text_release(&whole);
	/* one write: ranks share the terminal */
	if (cli->rank > 0)
		fprintf(stderr, "%s[%d]: %s\n", cli->command, cli->rank, text);
	else
		fprintf(stderr, "%s: %s\n", cli->command, text);
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

int gf_cli_emit(const struct gf_cli *cli, const char *text,
		struct gf_error *err)
{
	if (cli->output && strcmp(cli->output, "-") != 0)
		return gf_file_write(cli->output, text, strlen(text), err);
	errno = 0;
	if (fputs(text, stdout) == EOF || fflush(stdout))
		return gf_error_errno(err, errno ? -errno : -EIO,
				      "standard output");
	return 0;
}

int gf_cli_try_output(const struct gf_cli *cli, struct gf_error *err)
{
	if (cli->rank > 0 || !cli->output || strcmp(cli->output, "-") == 0)
		return 0;
	return gf_file_try(cli->output, err);
}

int gf_cli_exit(const struct gf_cli *cli, int rc, struct gf_error *err)
{
	bool lost = ferror(stdout) != 0;
	int status;

	errno = 0;
	lost |= fclose(stdout) != 0;
	if (lost && rc == 0)
		rc = gf_error_errno(err, errno ? -errno : -EIO,
				    "standard output");
	status = gf_cli_status(rc);
	if (rc < 0)
		gf_cli_warn(cli, "%s", err->text);
	return status;
}

int gf_cli_exit_rank(const struct gf_cli *cli, int rc, bool alike,
		     struct gf_error *err)
{
	if (rc && alike && cli->rank > 0)
		rc = gf_cli_status(rc);
	else if (rc > 0)
		gf_cli_warn(cli, "%s", err->text);
	return gf_cli_exit(cli, rc, err);
}

/* Where share/ may be: an override, the build tree, an installed prefix. */
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

int gf_cli_share(const char *kind, const char *name, char **path,
		 struct gf_error *err)
{
	static const char *const endings[] = {"", ".json"};
	size_t i, k;

	if (access(name, R_OK) == 0) {
		*path = gf_xstrdup(name);
		return 0;
	}
	for (i = 0; i < 4 && !strchr(name, '/'); i++) {
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
	return gf_error_set(err, -ENOENT,
			    "%s: want a path or a name in share/%s, found "
			    "neither",
			    name, kind);
}
