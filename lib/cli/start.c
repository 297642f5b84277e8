/* SPDX-License-Identifier: BSD-3-Clause */
#include "cli/start.h"

#include <limits.h>
#include <stdio.h>

#include "base/array.h"
#include "base/heap.h"
#include "base/launcher.h"
#include "cli/command.h"

const char *const gf_cli_start_places[] = {"localhost:29600", NULL};
const char *const gf_cli_transports[] = {"auto", "mpi", "ucx", NULL};

const char *gf_cli_start_transport(const struct gf_cli_start *s)
{
	return s->transport == GF_CLI_TRANSPORT_AUTO ? NULL : gf_cli_transports[s->transport];
}

static int number_of(const char *variable)
{
	const char *text = variable ? getenv(variable) : NULL;

	return text ? atoi(text) : 0;
}

/* Processes that the launcher has started beside each other; 0: unknown. */
static int started(const struct gf_launcher *l, const char **variable)
{
	*variable = l->step_size ? l->step_size : l->size;
	return l->step_size && !getenv(l->step_size) ? 1 : number_of(*variable);
}

static bool has_torchrun(void)
{
	return getenv("MASTER_ADDR") && getenv("MASTER_PORT") && getenv("RANK") &&
	       getenv("WORLD_SIZE");
}

void gf_cli_start_hint(struct gf_cli *cli)
{
	const struct gf_launcher *l = gf_launcher_named(getenv);
	int n;

	/* torchrun's ranks inherit what Slurm, or a launcher of MPI, gave torchrun */
	if (!l || (has_torchrun() && (l->step_size || getenv("TORCHELASTIC_RUN_ID"))))
		return;
	cli->launched = true;
	n = started(l, &cli->started_says);
	if (n != 1)
		cli->rank = number_of(l->rank);
	cli->started = n > 1 ? n : 0;
}

/* A whole number that a variable may have; *value stays if it has none. */
static int read_variable(const char *name, int most, int *value, struct gf_error *err)
{
	const char *text = getenv(name);
	char *end;
	long n;

	if (!text)
		return 0;
	errno = 0;
	n = strtol(text, &end, 10);
	if (errno || end == text || *end || n < 0 || n > most)
		return gf_error_set(err, -EINVAL,
				    "%s: want a whole number from 0 to %d, got \"%s\"", name, most,
				    text);
	*value = (int)n;
	return 0;
}

static int read_torchrun(struct gf_cli_start *s, int *rank, int *ranks, struct gf_error *err)
{
	int port = 0, rc;

	if (!has_torchrun() && s->ranks != 1 && getenv("RANK") && number_of("WORLD_SIZE") > 1)
		return gf_error_set(
			err, -EINVAL,
			"each would be a job of its own (--ranks 1): WORLD_SIZE says %d "
			"processes, and %s is not set",
			number_of("WORLD_SIZE"),
			getenv("MASTER_ADDR") ? "MASTER_PORT" : "MASTER_ADDR");
	if (!has_torchrun())
		return 0;
	rc = read_variable("RANK", INT_MAX, rank, err);
	rc = rc ?: read_variable("WORLD_SIZE", INT_MAX, ranks, err);
	rc = rc ?: read_variable("MASTER_PORT", 65534, &port, err);
	if (rc)
		return rc;
	snprintf(s->made, sizeof(s->made), "%s:%d", getenv("MASTER_ADDR"), port + 1);
	s->join = s->made;
	return 0;
}

static int read_launcher(const struct gf_cli *cli, int *rank, int *ranks, struct gf_error *err)
{
	const struct gf_launcher *l = gf_launcher_named(getenv);
	int rc = 0;

	if (!cli->launched)
		return 0;
	rc = read_variable(l->rank, INT_MAX, rank, err);
	for (l = gf_launchers; !rc && *ranks < 0 && l->rank; l++)
		if (l->size)
			rc = read_variable(l->size, INT_MAX, ranks, err);
	return rc;
}

int gf_cli_start_finish(struct gf_cli *cli, struct gf_cli_start *s, bool mpi, struct gf_error *err)
{
	bool with_rank = gf_cli_given(cli, "rank");
	bool with_ranks = gf_cli_given(cli, "ranks");
	int rank = -1, ranks = -1, rc;

	if (mpi && s->join)
		return gf_error_set(err, -EINVAL,
				    "--join: want --transport ucx or auto, got mpi, whose launcher "
				    "says what ranks there are");
	rc = s->join                ? read_launcher(cli, &rank, &ranks, err)
	     : mpi || cli->launched ? 0
				    : read_torchrun(s, &rank, &ranks, err);
	if (rc)
		return rc;
	if (!s->join && (with_rank || (with_ranks && s->ranks > 1)))
		return gf_error_set(err, -EINVAL, "--%s: want --join",
				    with_rank ? "rank" : "ranks");
	if (!s->join)
		return 0;
	s->rank = with_rank ? s->rank : rank;
	s->ranks = with_ranks ? s->ranks : ranks;
	if (s->rank < 0 || s->ranks < 0)
		return gf_error_set(err, -EINVAL, "--join: want --rank and --ranks");
	if (s->rank >= s->ranks)
		return gf_error_set(err, -EINVAL, "want a rank below the %d ranks, got %d",
				    s->ranks, s->rank);
	cli->rank = s->rank;
	cli->launched = true;
	return 0;
}

char *gf_cli_job_name(void)
{
	static const char *const variables[] = {"SLURM_JOB_ID", "PBS_JOBID", "LSB_JOBID",
						"FLUX_JOB_ID"};
	const char *name = NULL;

	for (size_t i = 0; i < GF_ARRAY_LENGTH(variables) && !name; i++)
		name = getenv(variables[i]);
	return name && *name ? gf_xasprintf("job %s", name) : NULL;
}
