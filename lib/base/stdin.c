/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/stdin.h"

#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "base/heap.h"

#define TICK_MS  250
#define UNSEEN_S 30
/* The last bytes of a launcher's input may still be on their way when it has ended; the first may
 * wait for the launcher itself. */
#define SETTLE_S       1
#define SETTLE_FIRST_S 5
#define MOST_ABOVE     64 /* processes */

/* The first line of /proc/PID/NAME that begins with `key`, after it; or NULL.
 */
static char *entry(int pid, const char *name, const char *key, char line[256])
{
	char path[64];
	char *found = NULL;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/%s", pid, name);
	f = gf_heap_need(fopen(path, "re"));
	while (f && !found && fgets(line, 256, f))
		if (strncmp(line, key, strlen(key)) == 0)
			found = line + strlen(key);
	if (f)
		fclose(f);
	return found;
}

static int parent_of(int pid)
{
	char line[256];
	const char *text = entry(pid, "status", "PPid:", line);

	return text ? atoi(text) : 0;
}

/* Has the process this pipe open for writing? */
static bool writes_to(int pid, const char *pipe)
{
	char path[64], target[64], line[256];
	bool writes = false;
	struct dirent *e;
	DIR *fds;

	snprintf(path, sizeof(path), "/proc/%d/fd", pid);
	fds = gf_heap_need(opendir(path));
	while (fds && !writes && (e = readdir(fds))) {
		ssize_t n = readlinkat(dirfd(fds), e->d_name, target, sizeof(target) - 1);
		const char *flags;

		if (n < 0)
			continue;
		target[n] = '\0';
		if (strcmp(target, pipe) != 0)
			continue;
		snprintf(path, sizeof(path), "fdinfo/%.16s", e->d_name);
		flags = entry(pid, path, "flags:", line);
		writes = flags && strtol(flags, NULL, 8) & O_ACCMODE;
	}
	if (fds)
		closedir(fds);
	return writes;
}

/* Does the process's name begin with one of these? */
static bool is_called(int pid, const char *const *names)
{
	char line[256];
	const char *name = entry(pid, "comm", "", line);

	for (; name && *names; names++)
		if (strncmp(name, *names, strlen(*names)) == 0)
			return true;
	return false;
}

/* The ancestor at the other end of standard input, or 0. */
static int find_writer(void)
{
	char target[64];
	ssize_t n = readlink("/proc/self/fd/0", target, sizeof(target) - 1);
	int pid = getppid(), i;

	if (n < 0)
		return 0;
	target[n] = '\0';
	if (strncmp(target, "pipe:", 5) != 0)
		return 0;
	for (i = 0; i < MOST_ABOVE && pid > 0; i++, pid = parent_of(pid))
		if (writes_to(pid, target))
			return pid;
	return 0;
}

static bool is_at_end(int pid, int fd, const struct stat *st)
{
	struct pollfd p = {.fd = fd, .events = POLLIN};
	char line[256];
	const char *at = entry(pid, "fdinfo/0", "pos:", line);

	if (S_ISREG(st->st_mode))
		return at && strtoll(at, NULL, 10) >= st->st_size;
	return poll(&p, 1, 0) == 1 && p.revents == POLLHUP;
}

enum gf_stdin gf_stdin_source(void)
{
	/* Any other program that writes to this one has reasons of its own. Daemons have no input:
	 * a launcher on another host sends it. */
	static const char *const launchers[] = {"mpirun", "mpiexec", "orterun", "prterun", NULL};
	static const char *const daemons[] = {"orted", "prted", NULL};
	int pid = find_writer(), fd;
	enum gf_stdin source;
	char path[64];
	struct stat st;

	if (pid && is_called(pid, daemons))
		return GF_STDIN_UNSEEN;
	if (!pid || !is_called(pid, launchers))
		return GF_STDIN_OWN;
	snprintf(path, sizeof(path), "/proc/%d/fd/0", pid);
	if (stat(path, &st))
		return GF_STDIN_UNSEEN;
	if (S_ISCHR(st.st_mode))
		return st.st_rdev == makedev(1, 3) ? GF_STDIN_NOTHING : GF_STDIN_TERMINAL;
	if (!S_ISREG(st.st_mode) && !S_ISFIFO(st.st_mode))
		return GF_STDIN_UNSEEN;
	fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	if (fd < 0)
		return GF_STDIN_UNSEEN;
	source = is_at_end(pid, fd, &st) ? GF_STDIN_ENDED : GF_STDIN_OPEN;
	close(fd);
	return source;
}

int gf_stdin_wait(bool begun, struct gf_error *err)
{
	const double settle_s = begun ? SETTLE_S : SETTLE_FIRST_S;
	struct pollfd in = {.fd = STDIN_FILENO, .events = POLLIN};
	double quiet_s = 0;

	while (poll(&in, 1, TICK_MS) == 0) {
		enum gf_stdin source;

		quiet_s += TICK_MS / 1e3;
		if (quiet_s < settle_s)
			continue;
		source = gf_stdin_source();
		if (source == GF_STDIN_OWN)
			return poll(&in, 1, -1) != 0;
		if (source == GF_STDIN_ENDED || source == GF_STDIN_NOTHING)
			return 0;
		if (source == GF_STDIN_UNSEEN && quiet_s >= UNSEEN_S)
			return gf_error_set(err, -ETIMEDOUT,
					    "standard input: want its end, got nothing for %d s: "
					    "name the file, or give mpirun the option --stdin none "
					    "(mpirun 5.0.11 passes no end on)",
					    UNSEEN_S);
	}
	return 1;
}
