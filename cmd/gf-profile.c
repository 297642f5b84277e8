/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/heap.h"
#include "base/text.h"
#include "base/units.h"
#include "bench/given.h"
#include "bench/profile.h"
#include "cli/cli.h"
#include "cli/input.h"
#include "comm/comm.h"
#include "comm/processors.h"
#include "comm/shm.h"
#include "doc/stream.h"
#include "nn/net.h"

static const char doc[] =
	"Measure what a model's backward pass and, under mpirun, the network's "
	"all-reduce cost. Documents on standard input are passed on, followed "
	"by the profile."
	"\vExamples:\n"
	"  gf-profile --model digits-cnn\n"
	"  mpirun -np 4 gf-profile --model digits-cnn topo.json > prof.json\n"
	"  gf-topo | gf-profile --model digits-cnn | gf-plan";

enum {
	KEY_MODEL = 256,
	KEY_BATCH,
	KEY_BACKEND,
	KEY_THREADS,
	KEY_WARMUP,
	KEY_REPEATS,
	KEY_NO_NETWORK,
	KEY_LANES,
	KEY_TIME,
	KEY_TIMEOUT,
};

static const struct argp_option options[] = {
	{"model", KEY_MODEL, "NAME", 0, "measure this model's backward pass",
	 1},
	{"batch", KEY_BATCH, "N", 0, "samples per rank (16)", 1},
	{"backend", KEY_BACKEND, "NAME", 0, "auto, onednn or ref", 1},
	{"threads", KEY_THREADS, "N", 0,
	 "threads per rank that compute (its share of the processors)", 1},
	{"warmup", KEY_WARMUP, "N", 0, "steps that do not count (5)", 1},
	{"repeats", KEY_REPEATS, "N", 0, "steps that count (30)", 1},
	{"no-network", KEY_NO_NETWORK, NULL, 0, "leave out the network half",
	 2},
	{"algorithms", 'a', "LIST", 0,
	 "all-reduce algorithms, with commas between (all that can run)", 2},
	{"min-bytes", 'b', "SIZE", 0, "the smallest message (1K)", 2},
	{"max-bytes", 'e', "SIZE", 0,
	 "the largest message (4M, or the model's whole gradient)", 2},
	{"lanes", KEY_LANES, "K", 0,
	 "measure the contention of up to K messages at once (2)", 2},
	{"time", KEY_TIME, "TIME", 0, "about how long per point (100ms)", 2},
	{"timeout", KEY_TIMEOUT, "TIME", 0,
	 "give up when nothing moves for so long (60s)", 2},
	{0},
};

enum { MOST_ALGORITHMS = 32 };

struct arguments {
	struct gf_cli cli;
	const char *model;
	struct gf_bench_profile bench;
	char *algorithm_list; /* cut up; what algorithms points into */
	const char *algorithms[MOST_ALGORITHMS + 1];
	const char **documents; /* NULL-terminated */
};

/* Options that are one number: where it goes, and the least it may be. */
enum kind { INT, COUNT, SIZE, TIME };
static const struct number {
	int key;
	const char *option;
	enum kind kind;
	long long low;
	size_t offset;
} numbers[] = {
#define AT(field) offsetof(struct gf_bench_profile, field)
	{KEY_BATCH, "--batch", COUNT, 1, AT(batch)},
	{KEY_THREADS, "--threads", INT, 1, AT(threads)},
	{KEY_WARMUP, "--warmup", INT, 0, AT(warmup)},
	{KEY_REPEATS, "--repeats", INT, 1, AT(repeats)},
	{KEY_LANES, "--lanes", INT, 1, AT(sweep.lanes)},
	{'b', "--min-bytes", SIZE, 0, AT(sweep.min_bytes)},
	{'e', "--max-bytes", SIZE, 0, AT(sweep.max_bytes)},
	{KEY_TIME, "--time", TIME, 0, AT(sweep.budget.budget_s)},
	{KEY_TIMEOUT, "--timeout", TIME, 0, AT(sweep.timeout_s)},
#undef AT
};

/* 1 if the option is one of them. */
static int parse_number(struct argp_state *state, int key, const char *arg,
			struct gf_bench_profile *b)
{
	const struct number *n = numbers;
	struct gf_error err;
	long long value;
	void *at;
	int rc;

	while (n->key != key)
		if (++n == numbers + GF_ARRAY_LENGTH(numbers))
			return 0;
	at = (char *)b + n->offset;
	if (n->kind == SIZE)
		rc = gf_units_size(arg, at, &err);
	else if (n->kind == TIME)
		rc = gf_units_time(arg, at, &err);
	else
		rc = gf_units_int(arg, n->low, INT_MAX / 2, &value, &err);
	if (rc < 0)
		gf_cli_usage_error(state, n->option, &err);
	if (n->kind == COUNT)
		*(size_t *)at = (size_t)value;
	else if (n->kind == INT)
		*(int *)at = (int)value;
	return 1;
}

static void parse_backend(struct argp_state *state, struct arguments *a,
			  const char *arg)
{
	struct gf_error err;

	a->bench.backend = gf_backend_find(arg);
	if (a->bench.backend)
		return;
	gf_error_set(&err, -EINVAL, "there is no backend %s in this build",
		     arg);
	gf_cli_usage_error(state, "--backend", &err);
}

static void parse_algorithms(struct argp_state *state, struct arguments *a,
			     const char *arg)
{
	char *saved = NULL, *name;
	size_t count = 0;

	free(a->algorithm_list);
	a->algorithm_list = gf_xstrdup(arg);
	for (name = strtok_r(a->algorithm_list, ",", &saved); name;
	     name = strtok_r(NULL, ",", &saved)) {
		if (count == MOST_ALGORITHMS)
			argp_error(state, "--algorithms: want at most %d",
				   MOST_ALGORITHMS);
		a->algorithms[count++] = name;
	}
	a->algorithms[count] = NULL;
	if (count == 0)
		argp_error(state, "--algorithms: want a list, got nothing");
	a->bench.sweep.algorithms = a->algorithms;
}

/* Found before MPI starts, alike on every rank. */
static void check_sweep(struct argp_state *state, struct gf_bench_network sweep)
{
	struct gf_error err;

	if (sweep.max_bytes == 0)
		sweep.max_bytes = GF_BENCH_MAX_BYTES;
	if (gf_bench_network_check(&sweep, &err) < 0)
		argp_error(state, "%s", err.text);
}

static int parse_opt(int key, char *arg, struct argp_state *state)
{
	struct arguments *a = state->input;
	struct gf_bench_profile *b = &a->bench;

	switch (key) {
	case ARGP_KEY_INIT:
		state->child_inputs[0] = &a->cli;
		return 0;
	case KEY_MODEL:
		a->model = arg;
		return 0;
	case KEY_BACKEND:
		parse_backend(state, a, arg);
		return 0;
	case KEY_NO_NETWORK:
		b->network = false;
		return 0;
	case 'a':
		parse_algorithms(state, a, arg);
		return 0;
	case ARGP_KEY_ARGS:
		a->documents = (const char **)state->argv + state->next;
		return 0;
	case ARGP_KEY_END:
		check_sweep(state, b->sweep);
		return 0;
	default:
		return parse_number(state, key, arg, b) ? 0 : ARGP_ERR_UNKNOWN;
	}
}

/* Rank 0: everything that was given. */
static int read_documents(const struct arguments *a, int ranks,
			  struct gf_documents *d, struct gf_error *err)
{
	char *path = NULL;
	size_t i;
	int rc = 0;

	for (i = 0; a->documents && a->documents[i] && rc == 0; i++)
		rc = gf_documents_add(d, a->documents[i], err);
	if (rc == 0 && !a->documents && gf_cli_has_input(&a->cli))
		rc = gf_documents_add(d, "-", err);
	if (rc == 0 && a->model)
		rc = gf_cli_share("models", a->model, &path, err);
	if (rc == 0 && path) {
		rc = gf_documents_add(d, path, err);
		if (rc == 0 && !d->model)
			rc = gf_error_set(err, -EINVAL,
					  "%s: want a gf-model document", path);
	}
	free(path);
	return rc < 0 ? rc
		      : gf_bench_given_check(d, a->bench.network && ranks > 1,
					     ranks, err);
}

static void say_remarks(const struct gf_cli *cli, char *remarks)
{
	char *saved = NULL, *line;

	for (line = strtok_r(remarks, "\n", &saved); line;
	     line = strtok_r(NULL, "\n", &saved))
		gf_cli_warn(cli, "%s", line);
}

struct progress {
	const struct gf_cli *cli;
	const char *shown;
};

/* With -v, one line per algorithm. */
static void say_progress(void *ctx, double fraction, const char *what)
{
	struct progress *p = ctx;

	if (p->shown != what)
		gf_cli_note(p->cli, 1, "measuring %s (%.0f %% done)", what,
			    100 * fraction);
	p->shown = what;
}

static int measure(const struct arguments *a, struct gf_comm *comm,
		   const struct gf_model *model, const char *passed_on,
		   struct gf_error *err)
{
	struct gf_bench_profile bench = a->bench;
	struct gf_profile profile = {0};
	struct gf_text remarks = {0}, text = {0};
	struct progress progress = {.cli = &a->cli};
	int rc;

	bench.comm = comm;
	bench.sweep.progress = say_progress;
	bench.sweep.progress_ctx = &progress;
	bench.model = model;
	bench.network = bench.network && comm->ranks > 1;
	rc = bench.threads > 0
		     ? 0
		     : gf_comm_compute_threads(comm, &bench.threads, err);
	if (rc == 0) {
		gf_nn_set_threads(bench.threads);
		rc = gf_bench_profile(&bench, &profile, &remarks, err);
	}
	if (rc == 0 && comm->rank == 0) {
		char *written = gf_profile_write(&profile);

		if (remarks.data)
			say_remarks(&a->cli, remarks.data);
		gf_text_addf(&text, "%s%s", passed_on ? passed_on : "",
			     written);
		free(written);
		rc = gf_cli_emit(&a->cli, text.data, err);
	}
	if (!comm->broken)
		rc = gf_comm_agree(comm, rc, err);
	gf_profile_release(&profile);
	gf_text_release(&remarks);
	gf_text_release(&text);
	return rc;
}

static int run_ranks(const struct arguments *a, struct gf_comm *comm,
		     struct gf_error *err)
{
	struct gf_documents documents = {0};
	struct gf_model model = {0};
	bool given = false;
	int rc = 0;

	if (comm->rank == 0)
		rc = read_documents(a, comm->ranks, &documents, err);
	rc = gf_comm_agree(comm, rc, err);
	if (rc == 0)
		rc = gf_bench_given_model(comm, documents.model, &model, &given,
					  err);
	if (rc == 0 && comm->ranks == 1 && a->bench.network)
		gf_cli_note(&a->cli, 0,
			    "one rank: no network half (mpirun -np N)");
	if (rc == 0)
		rc = measure(a, comm, given ? &model : NULL,
			     documents.passed_on, err);
	gf_model_release(&model);
	gf_documents_release(&documents);
	return rc;
}

static int open_comm(const struct arguments *a, struct gf_comm **comm,
		     struct gf_error *err)
{
	struct gf_comm *mpi;
	int rc;

	if (!a->cli.launched)
		return gf_comm_local_new(1, comm, err);
	rc = gf_comm_open(&mpi, err);
	return rc < 0 ? rc : gf_comm_shm_over(mpi, comm, err);
}

static int run(const struct arguments *a, struct gf_error *err)
{
	struct gf_comm *comm;
	int rc = open_comm(a, &comm, err);

	if (rc < 0)
		return rc;
	rc = run_ranks(a, comm, err);
	/* All ranks have the same reason: one of them says it. */
	if (rc < 0 && comm->rank > 0 && !comm->broken)
		rc = gf_cli_status(rc);
	gf_comm_close(comm);
	return rc;
}

int main(int argc, char **argv)
{
	static const struct argp argp = {
		options, parse_opt, "[DOCUMENT...]", doc, gf_cli_children,
		NULL,    NULL,
	};
	struct arguments a = {
		.bench =
			{
				.backend = gf_backend_find("auto"),
				.batch = 16,
				.warmup = 5,
				.repeats = 30,
				.network = true,
				.sweep =
					{
						.min_bytes = 1024,
						.lanes = 2,
						.budget = {0.1, 5, 1000},
						.timeout_s = 60,
					},
			},
	};
	struct gf_error err = {""};
	int rc;

	gf_cli_parse(&a.cli, "gf-profile", &argp, argc, argv, &a);
	rc = run(&a, &err);
	free(a.algorithm_list);
	return gf_cli_exit(&a.cli, rc, &err);
}
