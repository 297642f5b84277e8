/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A saved machine, which hwloc parses in a child process: a damaged file can
 * bring hwloc down, or stop it for good: it is not made to be called in a child
 * of a process with threads. The child gets the bytes that were read, and
 * limits on time and memory. It answers with a status, and with the host as
 * text or the reason of its failure.
 */
#include "probe/probers.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/heap.h"
#include "base/text.h"
#include "base/timeout.h"

#define LIMIT_CPU_S 5
#define LIMIT_BYTES ((rlim_t)1 << 30)
/* A host is described by less. */
#define ANSWER_BYTES ((size_t)16 << 20)

/* A document's host has a name. */
static const char nameless[] = "?";

/* A sanitizer maps terabytes, and clang names it otherwise than gcc. */
#ifndef __has_feature
#define __has_feature(x) 0
#endif
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__) ||           \
	__has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define SANITIZED 1
#else
#define SANITIZED 0
#endif

static void limit(int what, rlim_t most)
{
	struct rlimit r = {most, most};

	(void)setrlimit(what, &r);
}

static void put(int to, const char *data, size_t size)
{
	ssize_t n;

	for (; size; data += n, size -= (size_t)n) {
		n = write(to, data, size);
		if (n < 0 && errno == EINTR)
			n = 0;
		else if (n <= 0)
			_exit(1);
	}
}

/* hwloc writes what it thinks of a file on standard error. */
static void be_quiet(void)
{
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);

	if (null >= 0) {
		(void)dup2(null, STDOUT_FILENO);
		(void)dup2(null, STDERR_FILENO);
	}
}

static _Noreturn void child(int to, const struct gf_probe_config *config,
			    const char *xml, size_t size)
{
	struct gf_host host = {0};
	struct gf_error err = {""};
	char *text;
	int rc;

	be_quiet();
	limit(RLIMIT_CORE, 0);
	limit(RLIMIT_CPU, LIMIT_CPU_S);
	if (!SANITIZED)
		limit(RLIMIT_AS, LIMIT_BYTES);
	rc = gf_hwloc_describe(config, xml, size, &host, &err);
	if (!rc && !host.name)
		host.name = gf_xstrdup(nameless);
	text = rc ? err.text : gf_probe_host_write(&host);
	put(to, (const char *)&rc, sizeof(rc));
	put(to, text, strlen(text));
	_exit(0);
}

static int take(int from, double patience_s, struct gf_text *answer)
{
	struct pollfd ready = {.fd = from, .events = POLLIN};
	double until_s = gf_clock_s() + patience_s, left_s;
	char piece[4096];
	ssize_t n;

	for (;;) {
		left_s = until_s - gf_clock_s();
		n = poll(&ready, 1, left_s > 0 ? (int)(left_s * 1e3) : 0);
		if (n == 0)
			return -ETIMEDOUT;
		if (n > 0)
			n = read(from, piece, sizeof(piece));
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0 || answer->length > ANSWER_BYTES)
			return n == 0 ? 0 : -EIO;
		gf_text_add(answer, piece, (size_t)n);
	}
}

/* 0: it ended as it should. */
static int ended(pid_t pid)
{
	int status;

	while (waitpid(pid, &status, 0) < 0)
		if (errno != EINTR)
			return -errno;
	return WIFEXITED(status) && WEXITSTATUS(status) == 0 ? 0 : -EINVAL;
}

static int understand(const char *path, const struct gf_text *answer,
		      struct gf_host *host, struct gf_error *err)
{
	const char *text = answer->data + sizeof(int);
	size_t length = answer->length - sizeof(int);
	int rc;

	memcpy(&rc, answer->data, sizeof(rc));
	if (rc)
		return gf_error_set(err, rc, "%s: %.*s", path, (int)length,
				    text);
	rc = gf_probe_host_read(text, length, path, host, err);
	if (!rc && strcmp(host->name, nameless) == 0) {
		free(host->name);
		host->name = NULL;
	}
	return rc;
}

int gf_hwloc_apart(const struct gf_probe_config *config, const char *xml,
		   size_t size, struct gf_host *host, struct gf_error *err)
{
	struct gf_text answer = {0};
	int ends[2], rc;
	pid_t pid;

	if (pipe2(ends, O_CLOEXEC) < 0)
		return gf_error_errno(err, -errno, "pipe");
	pid = fork();
	if (pid == 0) {
		close(ends[0]);
		child(ends[1], config, xml, size);
	}
	close(ends[1]);
	if (pid < 0) {
		rc = gf_error_errno(err, -errno, "fork");
		goto out;
	}
	rc = take(ends[0],
		  config->patience_s > 0 ? config->patience_s
					 : GF_TIMEOUT_HWLOC_S,
		  &answer);
	if (rc)
		kill(pid, SIGKILL);
	rc = ended(pid) || rc || answer.length < sizeof(int) ? -EINVAL : 0;
	if (rc)
		gf_error_set(err, rc, "%s: hwloc cannot load it",
			     config->hwloc_xml);
	else
		rc = understand(config->hwloc_xml, &answer, host, err);
out:
	close(ends[0]);
	gf_text_release(&answer);
	return rc;
}
