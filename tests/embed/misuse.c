/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Calls of libgradflow that no program should make, and what they answer.
 *
 *	misuse threads		under mpirun, two ranks
 *	misuse nothing		NULL in the place of every handle
 *	misuse signals PLACE RANK RANKS	a signal every half millisecond
 *	misuse leaves PLACE RANK RANKS	rank 1 closes within its second step
 *	misuse alone PLACE RANK RANKS	no other rank comes
 */
#define _GNU_SOURCE
#include <gradflow.h>

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define COUNT 4096

static const struct gradflow_tensor one = {"a", 1, {COUNT}};
static float data[COUNT];
static const struct gradflow_gradient made = {0, data, COUNT, GRADFLOW_F32};

static void check(int holds, const char *what)
{
	if (holds)
		return;
	fprintf(stderr, "misuse: %s; the last error is: %s\n", what, gradflow_error());
	exit(1);
}

static void refused(int rc, int want, const char *text)
{
	check(rc == want && strstr(gradflow_error(), text), text);
}

static struct gradflow_exchange_options defaults(void)
{
	struct gradflow_exchange_options o;

	check(gradflow_exchange_options_init(&o, sizeof(o)) == 0, "options");
	return o;
}

static struct gradflow_exchange_options meeting(char **where)
{
	struct gradflow_exchange_options o = defaults();

	o.meet = GRADFLOW_MEET_PLACE;
	o.place = where[0];
	o.rank = atoi(where[1]);
	o.ranks = atoi(where[2]);
	return o;
}

/* --- two threads, and two processes ---------------------------------------
 */

/* Rank 1 keeps rank 0's thread in its step, until rank 0 has tried, which a file in the folder of
 * the run says. */
#define TRIED "tried"

static void *finish_step(void *x)
{
	int rc;

	do
		rc = gradflow_exchange_wait(x, GRADFLOW_ALL);
	while (rc == -EBUSY);
	check(rc == 0, "a step on another thread");
	return NULL;
}

static void two_threads(struct gradflow_exchange *x)
{
	const int rank = gradflow_exchange_rank(x);
	pthread_t thread;
	int rc;

	while (rank == 1 && access(TRIED, F_OK))
		usleep(1000);
	check(!gradflow_exchange_post(x, &made, 1), "a step");
	check(!pthread_create(&thread, NULL, finish_step, x), "a thread");
	do
		rc = rank ? 0 : gradflow_exchange_drop(x);
	while (rc != -EBUSY && !rank && gradflow_exchange_steps(x) == 1);
	if (!rank)
		refused(rc, -EBUSY,
			"gradflow_exchange_drop: another thread is in gradflow_exchange_wait: one "
			"at a time");
	if (!rank)
		check(close(creat(TRIED, 0600)) == 0, "a file");
	pthread_join(thread, NULL);
}

static void child(struct gradflow_exchange *x)
{
	int status = 1;
	pid_t pid = fork();

	if (!pid) {
		const int rc = gradflow_exchange_flush(x);

		gradflow_exchange_close(x);
		_exit(rc == -EINVAL && strstr(gradflow_error(), "forked") ? 0 : 1);
	}
	check(waitpid(pid, &status, 0) == pid && !status, "a forked child");
}

static void threads(void)
{
	struct gradflow_exchange_options o = defaults();
	struct gradflow_exchange *x;

	o.timeout_s = 30;

	check(gradflow_exchange_open(&one, 1, &o, &x) == 0, "open");
	check(gradflow_exchange_post(x, &made, 1) == 0, "a step");
	check(gradflow_exchange_wait(x, GRADFLOW_ALL) == 0, "its end");
	two_threads(x);
	child(x);
	check(gradflow_exchange_steps(x) == 2, "two steps");
	gradflow_exchange_close(x);
}

/* --- nothing at all --------------------------------------------------------
 */

/* Without a launcher, MPI is begun only where it is asked for. */
static void meetings(struct gradflow_exchange_options *o)
{
	struct gradflow_exchange *x;
	static const char *const launched[] = {"OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK",
					       "SLURM_STEP_NUM_TASKS"};
	size_t i;

	for (i = 0; i < sizeof(launched) / sizeof(*launched); i++)
		unsetenv(launched[i]);
	refused(gradflow_exchange_open(&one, 1, o, &x), -EINVAL,
		"meet: want a launcher (mpirun, srun) that has started this process, found none");
	setenv("SLURM_PROCID", "0", 1); /* a batch script's */
	refused(gradflow_exchange_open(&one, 1, o, &x), -EINVAL, "found none");
	o->place = "place";
	refused(gradflow_exchange_open(&one, 1, o, &x), -EINVAL,
		"place: want it with GRADFLOW_MEET_PLACE alone, got one with GRADFLOW_MEET_LAUN");
	o->meet = GRADFLOW_MEET_ALLGATHER;
	o->place = NULL;
	refused(gradflow_exchange_open(&one, 1, o, &x), -EINVAL,
		"allgather: want it with GRADFLOW_MEET_ALLGATHER alone, got none with");
	o->meet = (enum gradflow_meet)9;
	refused(gradflow_exchange_open(&one, 1, o, &x), -EINVAL, "meet: want a GRADFLOW_MEET_");
}

static void nothing(void)
{
	static const struct gradflow_exchange_options zeros;
	struct gradflow_exchange_options o = defaults();
	struct gradflow_exchange *x = (void *)&o;
	struct gradflow_array array;
	int rank;

	refused(gradflow_exchange_post(NULL, NULL, 0), -EINVAL, "gradflow_exchange_post: want an");
	refused(gradflow_exchange_flush(NULL), -EINVAL, "gradflow_exchange_flush: want an open");
	refused(gradflow_exchange_test(NULL, 0), -EINVAL, "gradflow_exchange_test: want an");
	refused(gradflow_exchange_wait(NULL, 0), -EINVAL, "gradflow_exchange_wait: want an open");
	refused(gradflow_exchange_on_done(NULL, NULL, NULL), -EINVAL, "gradflow_exchange_on_done");
	refused(gradflow_exchange_drop(NULL), -EINVAL, "gradflow_exchange_drop: want an open");
	refused(gradflow_exchange_rescale(NULL, 1), -EINVAL, "gradflow_exchange_rescale: want");
	refused(gradflow_exchange_save(NULL, "x"), -EINVAL, "_save: want an");
	refused(gradflow_exchange_load(NULL, "x"), -EINVAL, "_load: want an");
	refused(gradflow_exchange_state(NULL, 0, &array), -EINVAL, "_state: ");
	refused(gradflow_exchange_restored(NULL, 0), -EINVAL, "_restored: ");
	refused(gradflow_exchange_missing(NULL, &rank, 1), -EINVAL, "_missing:");
	refused(gradflow_exchange_check("{}", 0), -EINVAL, "plan_text");
	check(gradflow_exchange_check(NULL, 1) == 0, "no plan at all");
	check(gradflow_exchange_rank(NULL) < 0 && gradflow_exchange_ranks(NULL) < 0 &&
		      gradflow_exchange_local_rank(NULL) < 0 && !gradflow_exchange_ways(NULL) &&
		      !gradflow_exchange_host(NULL, 0) && !gradflow_exchange_messages(NULL) &&
		      gradflow_exchange_message(NULL, 0) == SIZE_MAX &&
		      !gradflow_exchange_steps(NULL) && !gradflow_exchange_sent_bytes(NULL) &&
		      !gradflow_exchange_copied_bytes(NULL) && gradflow_exchange_carried(NULL) == 0,
	      "queries of no exchange");
	gradflow_exchange_close(NULL);
	refused(gradflow_exchange_open(&one, 1, &o, NULL), -EINVAL,
		"gradflow_exchange_open: want a place for the exchange");
	refused(gradflow_exchange_open(&one, 1, NULL, &x), -EINVAL,
		"options: want what gradflow_exchange_options_init fills in");
	refused(gradflow_exchange_open(&one, 1, &zeros, &x), -EINVAL,
		"options: want what gradflow_exchange_options_init fills in");
	refused(gradflow_exchange_options_init(NULL, sizeof(o)), -EINVAL, "got NULL");
	refused(gradflow_exchange_options_init(&o, sizeof(o) + sizeof(void *)), -EINVAL,
		"build the program with this library's header");
	check(o.size == sizeof(o) && o.former == -1 && o.join_s == 60, "options as before");
	check(!x, "no exchange");
	check(gradflow_version_number() == GRADFLOW_VERSION &&
		      !strcmp(gradflow_version(), GRADFLOW_VERSION_TEXT),
	      "the header's version");
	meetings(&o);
}

/* --- the exchange ----------------------------------------------------------
 */

static struct gradflow_exchange *join(char **where)
{
	struct gradflow_exchange_options o = meeting(where);
	struct gradflow_exchange *x;

	o.timeout_s = 20;
	check(gradflow_exchange_open(&one, 1, &o, &x) == 0, "open");
	return x;
}

static int mean_of(struct gradflow_exchange *x)
{
	int rank = gradflow_exchange_rank(x), rc;
	size_t i;

	for (i = 0; i < COUNT; i++)
		data[i] = (float)(2 * rank);
	rc = gradflow_exchange_post(x, &made, 1);
	return rc ? rc : gradflow_exchange_wait(x, GRADFLOW_ALL);
}

static volatile sig_atomic_t alarms;

static void count(int signal)
{
	(void)signal;
	alarms = alarms + 1;
}

static void signals(char **where)
{
	/* without SA_RESTART: what blocks is interrupted */
	const struct sigaction act = {.sa_handler = count};
	const struct itimerval often = {{0, 500}, {0, 500}};
	struct gradflow_exchange *x;
	int s;

	check(!sigaction(SIGALRM, &act, NULL) && !setitimer(ITIMER_REAL, &often, NULL), "a timer");
	x = join(where);
	for (s = 0; s < 300; s++) {
		check(mean_of(x) == 0, "a step");
		check(data[7] == (float)(gradflow_exchange_ranks(x) - 1), "a mean");
	}
	check(alarms > 0, "signals");
	gradflow_exchange_close(x);
}

static double now_s(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* The step's time-out is another matter: it is longer than this test. */
static void alone(char **where)
{
	struct gradflow_exchange_options o = meeting(where);
	struct gradflow_exchange *x;
	double begun_s = now_s();

	o.timeout_s = 600;
	o.join_s = -1;
	refused(gradflow_exchange_open(&one, 1, &o, &x), -EINVAL, "join_s: want 0 or more, got -1");
	o.join_s = 1.5;
	refused(gradflow_exchange_open(&one, 1, &o, &x), -ETIMEDOUT, "rank");
	begun_s = now_s() - begun_s;
	check(begun_s >= 1.5 && begun_s < 30, "the time that joining took");
	fprintf(stderr, "misuse: %s\n", gradflow_error());
}

static void leaves(char **where)
{
	struct gradflow_exchange *x = join(where);
	const int rank = gradflow_exchange_rank(x);
	int missing = -1;
	double begun_s;

	check(mean_of(x) == 0, "a step");
	if (rank == 1) {
		check(gradflow_exchange_post(x, &made, 1) == 0, "a post");
		begun_s = now_s();
		gradflow_exchange_close(x);
		/* 5 s, and what a crowded machine takes */
		check(now_s() - begun_s < 15, "the time that closing took");
		return;
	}
	check(mean_of(x) == 0, "the step that rank 1 has left");
	check(mean_of(x) < 0 && strstr(gradflow_error(), "rank 1"), "a step without rank 1");
	check(gradflow_exchange_missing(x, &missing, 1) == 1 && missing == 1, "rank 1 is missing");
	gradflow_exchange_close(x);
}

int main(int argc, char **argv)
{
	const char *mode = argc > 1 ? argv[1] : "";

	if (!strcmp(mode, "threads"))
		threads();
	else if (!strcmp(mode, "nothing"))
		nothing();
	else if (!strcmp(mode, "signals") && argc == 5)
		signals(argv + 2);
	else if (!strcmp(mode, "alone") && argc == 5)
		alone(argv + 2);
	else if (!strcmp(mode, "leaves") && argc == 5)
		leaves(argv + 2);
	else
		return 64;
	return 0;
}
