/* SPDX-License-Identifier: BSD-3-Clause */
#include "cli/deadline.h"

#include <ctype.h>
#include <dirent.h>
#include <math.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/end.h"
#include "base/heap.h"
#include "base/timeout.h"

/* How often stopped processes are looked for, once that counts. */
#define LOOK_EVERY_S 0.1
/* A message needs less, unless nobody reads it. */
#define TELL_S 1.0

static const char late_rank[] = ": a rank is late, or ended without it";

/* A thread, for a signal could interrupt what it watches. */
struct gf_deadline {
	const struct gf_cli *cli;
	char *what;      /* "MPI has not started"; owned */
	const char *why; /* ": a rank is late", likely under a launcher */
	double asked_s;  /* after which a stopped process ends the wait */
	double limit_s;  /* after which anything does */
	int alone;       /* the status of a rank alone; -1: it is not */
	pthread_t thread;
	pthread_mutex_t lock;
	pthread_cond_t off_now;
	bool off;
};

/* What /proc says of a process from its name on, "(name) state parent"; NULL: nothing. */
static const char *read_stat(const char *pid, char line[512])
{
	char path[64];
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%.16s/stat", pid);
	f = fopen(path, "re");
	if (!f)
		return NULL;
	if (!fgets(line, 512, f))
		line[0] = '\0';
	fclose(f);
	return strchr(line, '(');
}

/* Has a signal stopped that process, and has it our parent and our program? The parent of ranks
 * that join by themselves may be a shell, which has other jobs, too. self: what read_stat says of
 * this process. */
static bool is_stopped(const char *pid, const char *self)
{
	char line[512], state;
	const char *stat = read_stat(pid, line);
	const char *end = stat ? strrchr(stat, ')') : NULL;
	int parent;

	return end && strncmp(stat, self, (size_t)(end - stat) + 1) == 0 &&
	       sscanf(end, ") %c %d", &state, &parent) == 2 && state == 'T' &&
	       parent == (int)getppid();
}

/* A stopped rank of the same launcher, on this host; 0: none. */
static int find_stopped(void)
{
	char line[512];
	const char *self = read_stat("self", line);
	const struct dirent *entry;
	DIR *proc = self ? opendir("/proc") : NULL;
	int pid = 0;

	while (proc && !pid && (entry = readdir(proc)))
		if (isdigit((unsigned char)entry->d_name[0]) && is_stopped(entry->d_name, self))
			pid = atoi(entry->d_name);
	if (proc)
		closedir(proc);
	return pid;
}

/* Waits until then; true: the deadline was called off. */
static bool off_by(struct gf_deadline *d, double seconds)
{
	struct timespec end = gf_clock_after(seconds);
	int rc = 0;

	while (!d->off && rc != ETIMEDOUT)
		rc = pthread_cond_timedwait(&d->off_now, &d->lock, &end);
	return d->off;
}

static void *watch(void *arg)
{
	struct gf_deadline *d = arg;
	const int status = gf_cli_status(-ETIMEDOUT);
	double waited_s = d->asked_s;
	int stopped = 0;
	bool off;

	pthread_mutex_lock(&d->lock);
	off = off_by(d, d->asked_s);
	while (!off && !(d->cli->launched && (stopped = find_stopped())) && waited_s < d->limit_s) {
		off = off_by(d, LOOK_EVERY_S);
		waited_s += LOOK_EVERY_S;
	}
	pthread_mutex_unlock(&d->lock);
	if (off)
		return NULL;
	if (d->alone >= 0)
		_exit(d->alone);
	(void)gf_end_within(TELL_S, status);
	if (stopped)
		gf_cli_warn(d->cli, "%s for %g s: process %d of this job is stopped", d->what,
			    waited_s, stopped);
	else
		gf_cli_warn(d->cli, "%s for %g s%s", d->what, d->limit_s,
			    d->cli->launched ? d->why : "");
	_exit(status);
}

/* what is given away. NULL: without it the wait has no end, as before. */
static struct gf_deadline *begin(const struct gf_cli *cli, char *what, const char *why, int alone,
				 double asked_s, double limit_s)
{
	struct gf_deadline *d = gf_xcalloc(1, sizeof(*d));
	pthread_condattr_t monotonic;

	d->cli = cli;
	d->what = what;
	d->why = why;
	d->alone = alone;
	d->asked_s = asked_s;
	d->limit_s = limit_s;
	pthread_mutex_init(&d->lock, NULL);
	pthread_condattr_init(&monotonic);
	pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
	pthread_cond_init(&d->off_now, &monotonic);
	pthread_condattr_destroy(&monotonic);
	if (pthread_create(&d->thread, NULL, watch, d) == 0)
		return d;
	d->off = true;
	gf_cli_end_deadline(d);
	return NULL;
}

struct gf_deadline *gf_cli_start_deadline(const struct gf_cli *cli, const char *join,
					  double timeout_s)
{
	const double joined_s = GF_TIMEOUT_START_S + 3 * timeout_s;

	if (timeout_s <= 0)
		return NULL;
	if (join)
		return begin(cli, gf_xstrdup("the ranks have not met"), late_rank, -1, joined_s,
			     joined_s);
	return begin(cli, gf_xstrdup("MPI has not started"), late_rank, -1, timeout_s,
		     fmax(timeout_s, GF_TIMEOUT_START_S));
}

struct gf_deadline *gf_cli_close_deadline(const struct gf_cli *cli, double timeout_s, int alone)
{
	const double limit_s = alone >= 0 ? fmin(timeout_s, GF_TIMEOUT_BETWEEN_STEPS_S) : timeout_s;

	if (timeout_s <= 0)
		return NULL;
	return begin(cli, gf_xstrdup("MPI has not ended"), late_rank, alone, limit_s, limit_s);
}

struct gf_deadline *gf_cli_call_deadline(const struct gf_cli *cli, const char *what,
					 double timeout_s)
{
	const double limit_s = 2 * timeout_s;

	if (timeout_s <= 0)
		return NULL;
	return begin(cli, gf_xstrdup(what), late_rank, -1, limit_s, limit_s);
}

struct gf_deadline *gf_cli_reader_deadline(const struct gf_cli *cli, const char *path)
{
	struct stat st;
	char *what;

	if (cli->reader_s <= 0 || (path && (stat(path, &st) || S_ISREG(st.st_mode))))
		return NULL;
	what = path ? gf_xasprintf("%s: nobody has read it", path)
		    : gf_xstrdup("nobody has read what this rank prints");
	return begin(cli, what, "", -1, cli->reader_s, cli->reader_s);
}

void gf_cli_end_deadline(struct gf_deadline *d)
{
	if (!d)
		return;
	if (!d->off) {
		pthread_mutex_lock(&d->lock);
		d->off = true;
		pthread_cond_signal(&d->off_now);
		pthread_mutex_unlock(&d->lock);
		pthread_join(d->thread, NULL);
	}
	pthread_cond_destroy(&d->off_now);
	pthread_mutex_destroy(&d->lock);
	free(d->what);
	free(d);
}
