/* SPDX-License-Identifier: BSD-3-Clause */
/* How ranks find each other at a place: threads that know nothing but it. */
#include <dirent.h>
#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/array.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/heap.h"
#include "ranks.h"
#include "transport/join.h"
#include "transport/join_state.h"

#define MOST 16

/* One rank of a job: what it is told, and what came of it. */
struct member {
	const char *place;
	int rank, ranks, rounds;
	size_t blob_bytes;
	double timeout_s, late_s;
	/* what came of it */
	int rc;
	size_t wrong;
	struct gf_error err;
	pthread_t thread;
};

static unsigned char byte_of(int rank, int round, size_t i)
{
	return (unsigned char)(rank * 17 + round * 5 + (int)i);
}

static int exchange(struct member *m, const struct gf_join *join, int round)
{
	unsigned char *own = gf_xmalloc(m->blob_bytes + 1);
	unsigned char *all = gf_xcalloc((size_t)m->ranks, m->blob_bytes ? m->blob_bytes : 1);
	size_t i, r;
	int rc;

	for (i = 0; i < m->blob_bytes; i++)
		own[i] = byte_of(m->rank, round, i);
	rc = join->allgather(join->ctx, own, m->blob_bytes, all, &m->err);
	for (r = 0; r < (size_t)m->ranks && !rc; r++)
		for (i = 0; i < m->blob_bytes; i++)
			m->wrong += all[r * m->blob_bytes + i] != byte_of((int)r, round, i);
	free(own);
	free(all);
	return rc;
}

static void *take_part(void *member)
{
	struct member *m = member;
	struct gf_join join = {.rank = m->rank, .ranks = m->ranks};
	int round;

	gf_clock_sleep(m->late_s);
	m->rc = gf_join_open(m->place, m->timeout_s, &join, &m->err);
	if (m->rc)
		return NULL;
	for (round = 0; round < m->rounds && !m->rc; round++)
		m->rc = exchange(m, &join, round);
	gf_join_close(&join);
	return NULL;
}

static void start(struct member *m)
{
	if (pthread_create(&m->thread, NULL, take_part, m))
		abort();
}

static void run(struct member *members, int n)
{
	int i;

	for (i = 0; i < n; i++)
		start(&members[i]);
	for (i = 0; i < n; i++)
		pthread_join(members[i].thread, NULL);
}

static void fill(struct member *members, int ranks, const char *place)
{
	int i;

	for (i = 0; i < ranks; i++)
		members[i] = (struct member){.place = place,
					     .rank = i,
					     .ranks = ranks,
					     .rounds = 3,
					     .blob_bytes = 200,
					     .timeout_s = 20};
}

static void expect_met(const struct member *members, int n)
{
	int i;

	for (i = 0; i < n; i++)
		EXPECT(!members[i].rc && !members[i].wrong, "rank %d of %d: %d, %zu wrong, %s", i,
		       n, members[i].rc, members[i].wrong, members[i].err.text);
}

/* --- places ------------------------------------------------------------- */

static char *new_folder(void)
{
	char *path = gf_xstrdup("/tmp/gf-test-join.XXXXXX");

	if (!mkdtemp(path))
		abort();
	return path;
}

static int count_files(const char *path)
{
	DIR *folder = opendir(path);
	struct dirent *entry;
	int n = 0;

	while (folder && (entry = readdir(folder)))
		n += entry->d_name[0] != '.';
	if (folder)
		closedir(folder);
	return n;
}

static void remove_folder(char *path)
{
	char *command = gf_xasprintf("rm -r %s", path);

	EXPECT(system(command) == 0, "%s", command);
	free(command);
	free(path);
}

static void put(const char *folder, const char *name, const void *data, size_t size)
{
	char *path = gf_xasprintf("%s/%s", folder, name);

	EXPECT(!gf_file_write(path, data, size, NULL), "%s", path);
	free(path);
}

static char *new_port(const char *host);

/* --- folders ------------------------------------------------------------ */

static void check_folder(int ranks)
{
	struct member m[MOST];
	char *folder = new_folder();
	int i;

	fill(m, ranks, folder);
	for (i = 0; i < ranks; i++)
		m[i].late_s = (double)((i * 7 + 3) % ranks) * 2e-3;
	run(m, ranks);
	expect_met(m, ranks);
	EXPECT(!count_files(folder), "%d files stay", count_files(folder));
	remove_folder(folder);
}

/* A folder that nobody has made yet. */
static void check_new_folder(void)
{
	struct member m[2];
	char *above = new_folder();
	char *folder = gf_xasprintf("%s/job", above);

	fill(m, 2, folder);
	run(m, 2);
	expect_met(m, 2);
	free(folder);
	remove_folder(above);
}

/* Rank 0's file has a key: it is its user's alone, and no link is followed to it. */
static void check_own_file(void)
{
	char *folder = new_folder();
	char *path = gf_xasprintf("%s/rank-0", folder);
	char *other = gf_xasprintf("%s/other", folder);
	struct member m[2];
	struct stat st = {0};

	put(folder, "rank-0", "", 0);
	chmod(path, 0644);
	put(folder, "other", "kept", 4);
	fill(m, 2, folder);
	start(&m[0]);
	while (!lstat(path, &st) && !st.st_size)
		gf_clock_sleep(1e-3);
	EXPECT((st.st_mode & 0777) == 0600, "mode %o", st.st_mode & 0777);
	run(&m[1], 1);
	pthread_join(m[0].thread, NULL);
	expect_met(m, 2);
	EXPECT(!symlink("other", path), "symlink");
	m[0].timeout_s = 0.1;
	run(&m[0], 1);
	EXPECT(m[0].rc == -EEXIST, "%d: %s", m[0].rc, m[0].err.text);
	EXPECT(!lstat(other, &st) && st.st_size == 4, "written to");
	free(other);
	free(path);
	remove_folder(folder);
}

/* What a job left that was ended: addresses at which nobody listens, or a program that says
 * nothing, or another job; cut short; not ours; a folder in place of the file. */
static void check_stale(void)
{
	char *folder = new_folder(), *silent = new_port("127.0.0.1"), *left;
	char *path = gf_xasprintf("%s/rank-0", folder);
	struct gf_error err = {""};
	int listeners[GF_SOCKET_LISTENERS];
	struct member m[3];
	size_t i;

	EXPECT(gf_socket_listen(silent, listeners, &err) == 1, "%s", err.text);
	left = gf_xasprintf("gfjoin 2 %032d\n127.0.0.1:1\n[::1]:1\n%s\n", 7, silent);
	for (i = 0; i <= strlen(left); i += 7) {
		put(folder, "rank-0", left, i);
		fill(m, 3, folder);
		m[0].late_s = 2e-3;
		run(m, 3);
		expect_met(m, 3);
	}
	for (i = 0; i < 3; i++) {
		static const char *const others[] = {"", "gfjoin 1 and then nothing", "\1\2\3"};

		put(folder, "rank-0", others[i], strlen(others[i]));
		fill(m, 2, folder);
		m[0].late_s = 2e-3;
		run(m, 2);
		expect_met(m, 2);
	}
	close(listeners[0]);
	EXPECT(!mkdir(path, 0777), "mkdir");
	fill(m, 2, folder);
	m[1].timeout_s = 0.1;
	run(m, 2);
	EXPECT(m[0].rc == -EEXIST && m[1].rc == -ETIMEDOUT, "%d %d", m[0].rc, m[1].rc);
	EXPECT(strstr(m[0].err.text, "want a regular file or none"), "%s", m[0].err.text);
	free(path);
	free(left);
	free(silent);
	remove_folder(folder);
}

static void check_missing(const char *place)
{
	struct member m[4];
	char *want = gf_xasprintf("%s: waited 2 s, and ranks 2, 3 have not come", place);

	fill(m, 4, place);
	m[0].timeout_s = 2; /* the other begins by then, on a busy machine, too */
	run(m, 2);
	EXPECT(m[0].rc == -ETIMEDOUT && m[1].rc == -ETIMEDOUT, "%d, %d", m[0].rc, m[1].rc);
	EXPECT_TEXT(m[0].err.text, want);
	EXPECT_TEXT(m[1].err.text, want);
	free(want);
	want = gf_xasprintf("%s: waited 0.3 s, and rank 0 has not come", place);
	fill(m, 2, place);
	m[1].timeout_s = 0.3;
	run(&m[1], 1);
	EXPECT(m[1].rc == -ETIMEDOUT, "%d", m[1].rc);
	EXPECT_TEXT(m[1].err.text, want);
	free(want);
}

/* No name server has such a name, or is asked for it: 63 letters are the most.
 */
#define LONG_LABEL "hhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhh"

static void check_refused(const char *place, int rc, const char *why)
{
	struct member m[2];
	char *want = gf_xasprintf("%s: %s", place, why);

	fill(m, 2, place);
	m[1].timeout_s = 0.3;
	run(&m[1], 1);
	EXPECT(m[1].rc == rc, "%d", m[1].rc);
	EXPECT_TEXT(m[1].err.text, want);
	free(want);
}

/* All but the rank that differs learn it at once, too. */
static void check_ranks_differ(const char *place)
{
	struct member m[3];
	char *want = gf_xasprintf("%s: rank 2 has come with 4 ranks, rank 0 with 3", place);
	double began_s = gf_clock_s();
	int i;

	fill(m, 3, place);
	m[2].ranks = 4;
	run(m, 3);
	EXPECT(gf_clock_s() - began_s < 5, "%g s", gf_clock_s() - began_s);
	for (i = 0; i < 2; i++)
		EXPECT(!strncmp(m[i].err.text, want, strlen(want)) &&
			       strstr(m[i].err.text, ": it is at "),
		       "%s", m[i].err.text);
	EXPECT(m[0].rc == -EINVAL && m[1].rc == -EINVAL && m[2].rc == -EINVAL, "%d %d %d", m[0].rc,
	       m[1].rc, m[2].rc);
	free(want);
}

static void check_sizes_differ(const char *place)
{
	struct member m[2];

	fill(m, 2, place);
	m[1].blob_bytes = 100;
	m[0].timeout_s = m[1].timeout_s = 2;
	run(m, 2);
	EXPECT(m[0].rc == -EMSGSIZE, "%d", m[0].rc);
	EXPECT(strstr(m[0].err.text, "rank 1 shows 100 bytes, rank 0 shows "
				     "200"),
	       "%s", m[0].err.text);
	EXPECT(m[1].rc < 0, "%d", m[1].rc);
}

/* Two jobs that meet in one folder, again and again: no rank finds itself among ranks that do not
 * find it. */
static void check_two_jobs(void)
{
	struct member m[4];
	char *folder = new_folder();
	int round, met = 0;

	for (round = 0; round < 10; round++) {
		fill(m, 2, folder);
		fill(&m[2], 2, folder);
		m[0].timeout_s = m[1].timeout_s = 0.3;
		m[2].timeout_s = m[3].timeout_s = 0.3;
		m[2].late_s = m[3].late_s = round * 1e-3;
		run(m, 4);
		EXPECT((!m[0].rc + !m[2].rc) == (!m[1].rc + !m[3].rc), "round %d: %d %d, %d %d",
		       round, m[0].rc, m[1].rc, m[2].rc, m[3].rc);
		met += !m[0].rc + !m[2].rc;
		EXPECT(!m[0].wrong && !m[1].wrong && !m[2].wrong && !m[3].wrong, "wrong bytes");
	}
	EXPECT(met > 0, "nobody ever meets");
	remove_folder(folder);
}

/* --- ports -------------------------------------------------------------- */

/* A port that was free a moment ago. */
static char *new_port(const char *host)
{
	struct sockaddr_in at = {.sin_family = AF_INET};
	socklen_t size = sizeof(at);
	int fd = socket(AF_INET, SOCK_STREAM, 0);

	if (fd < 0 || bind(fd, (struct sockaddr *)&at, size) ||
	    getsockname(fd, (struct sockaddr *)&at, &size))
		abort();
	close(fd);
	return gf_xasprintf("%s:%d", host, ntohs(at.sin_port));
}

static void check_port(const char *host, int ranks)
{
	struct member m[MOST];
	char *place = new_port(host);
	int i;

	fill(m, ranks, place);
	for (i = 0; i < ranks; i++) {
		m[i].late_s = (double)((i * 7 + 3) % ranks) * 2e-3;
		m[i].blob_bytes = ranks < 4 ? 300000 : 200;
	}
	run(m, ranks);
	expect_met(m, ranks);
	/* the next job takes the same port at once */
	run(m, ranks);
	expect_met(m, ranks);
	free(place);
}

static bool is_loopback(int listener)
{
	struct sockaddr_storage at = {0};
	socklen_t size = sizeof(at);
	char host[64] = "";

	getsockname(listener, (struct sockaddr *)&at, &size);
	getnameinfo((struct sockaddr *)&at, size, host, sizeof(host), NULL, 0, NI_NUMERICHOST);
	return !strcmp(host, "127.0.0.1") || !strcmp(host, "::1") ||
	       !strcmp(host, "::ffff:127.0.0.1");
}

static int visit(const char *place, const void *bytes, size_t size)
{
	struct sockaddr_in at = {.sin_family = AF_INET};
	int fd = socket(AF_INET, SOCK_STREAM, 0), tries;

	at.sin_port = htons((uint16_t)atoi(strrchr(place, ':') + 1));
	at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	for (tries = 0; tries < 1000; tries++) {
		if (!connect(fd, (struct sockaddr *)&at, sizeof(at)))
			break;
		gf_clock_sleep(1e-3);
	}
	EXPECT(send(fd, bytes, size, MSG_NOSIGNAL) == (ssize_t)size, "visit");
	return fd;
}

/* Bytes that are no hello, half of one, and none at all, from more visitors than there is place
 * for: the job meets all the same. */
static void check_visitors(void)
{
	static const char web[] = "GET / HTTP/1.1\r\nHost: x\r\n\r\n";
	static const struct {
		const char *bytes;
		size_t size;
	} says[] = {
		{web, sizeof(web)},
		{"", 0},
		{"gfport 2", 8},
		{"gfport 2\0\0\0\0\3\0\0\0", 16}, /* rank 0 */
		{"gfport 2\3\0\0\0\3\0\0\0", 16}, /* rank 3 of 3 */
		{"gfport 2\xff\xff\xff\xff\xff\xff\xff\xff", 16},
		{"gfport 1\1\0\0\0\3\0\0\0", 16},
	};
	struct member m[3];
	char *place = new_port("localhost");
	int fds[100];
	size_t i;

	fill(m, 3, place);
	start(&m[0]);
	for (i = 0; i < GF_ARRAY_LENGTH(fds); i++)
		fds[i] = visit(place, says[i % GF_ARRAY_LENGTH(says)].bytes,
			       says[i % GF_ARRAY_LENGTH(says)].size);
	start(&m[1]);
	start(&m[2]);
	for (i = 0; i < 3; i++)
		pthread_join(m[i].thread, NULL);
	expect_met(m, 3);
	for (i = 0; i < GF_ARRAY_LENGTH(fds); i++)
		close(fds[i]);
	free(place);
}

static atomic_bool floods;

/* Connections that end as soon as they are there. */
static void *flood(void *place)
{
	struct sockaddr_in at = {.sin_family = AF_INET};
	int fd, count = 0;

	at.sin_port = htons((uint16_t)atoi(strrchr(place, ':') + 1));
	at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	while (atomic_load(&floods)) {
		fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
		(void)connect(fd, (struct sockaddr *)&at, sizeof(at));
		close(fd);
		if (++count % 200 == 0) /* the queue of connections has room for true ranks */
			gf_clock_sleep(1e-3);
	}
	return NULL;
}

/* Ranks meet beside a flood; and one that fails says what came in its place. */
static void check_flood(void)
{
	struct member m[3];
	char *place = new_port("127.0.0.1");
	pthread_t thread;

	fill(m, 3, place);
	atomic_store(&floods, true);
	start(&m[0]);
	if (pthread_create(&thread, NULL, flood, place))
		abort();
	gf_clock_sleep(0.05);
	start(&m[1]);
	start(&m[2]);
	pthread_join(m[0].thread, NULL);
	atomic_store(&floods, false);
	pthread_join(thread, NULL);
	pthread_join(m[1].thread, NULL);
	pthread_join(m[2].thread, NULL);
	expect_met(m, 3);
	fill(m, 2, place);
	m[0].timeout_s = 0.5;
	start(&m[0]);
	close(visit(place, "GET / HTTP/1.1\r\nHost: x\r\n\r\n", 27));
	pthread_join(m[0].thread, NULL);
	EXPECT(m[0].rc == -ETIMEDOUT &&
		       strstr(m[0].err.text, "rank 1 has not come; connections to the port that "
					     "were no rank's: 1 (the last: 127.0.0.1:"),
	       "%s", m[0].err.text);
	free(place);
}

/* A stranger that says rank 1's hello: both true ranks say where it is. */
static void check_stranger(void)
{
	static const unsigned char hello[32] = "gfport 2\1\0\0\0\2\0\0";
	struct member m[2];
	char *place = new_port("127.0.0.1");
	int fd;

	fill(m, 2, place);
	m[0].timeout_s = 1;
	start(&m[0]);
	fd = visit(place, hello, sizeof(hello));
	while (recv(fd, (char[32]){0}, 32, MSG_PEEK) != 32)
		gf_clock_sleep(1e-3);
	pthread_join(m[0].thread, NULL);
	EXPECT(m[0].rc == -ETIMEDOUT && strstr(m[0].err.text, "rank 1, at 127.0.0.1:"), "%s",
	       m[0].err.text);
	close(fd);
	free(place);
}

/* The second process of a rank is refused, and the job goes on. */
static void check_twice(void)
{
	struct member m[3], again;
	char *place = new_port("127.0.0.1");

	fill(m, 3, place);
	start(&m[0]);
	start(&m[1]);
	gf_clock_sleep(2); /* it is the first on a busy machine, too */
	again = m[1];
	run(&again, 1);
	EXPECT(again.rc == -EBUSY &&
		       strstr(again.err.text,
			      "another process has come as rank 1: it is at 127.0.0.1:"),
	       "%d: %s", again.rc, again.err.text);
	run(&m[2], 1);
	pthread_join(m[0].thread, NULL);
	pthread_join(m[1].thread, NULL);
	expect_met(m, 3);
	free(place);
}

/* Something else has the port. */
static void check_taken(void)
{
	struct sockaddr_in at = {.sin_family = AF_INET};
	char *place = new_port("127.0.0.1");
	int fd = socket(AF_INET, SOCK_STREAM, 0);
	struct member m[2];

	at.sin_port = htons((uint16_t)atoi(strrchr(place, ':') + 1));
	at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	EXPECT(!bind(fd, (struct sockaddr *)&at, sizeof(at)) && !listen(fd, 5), "listen");
	fill(m, 2, place);
	m[1].timeout_s = 0.2;
	run(m, 2);
	EXPECT(m[0].rc == -EADDRINUSE, "%s", m[0].err.text);
	EXPECT(m[1].rc == -ETIMEDOUT, "%s", m[1].err.text);
	close(fd);
	free(place);
}

/* A name is listened to where it leads, and nowhere else; what leads nowhere on this machine,
 * everywhere. */
static void check_listens(void)
{
	static const struct {
		const char *host;
		bool loopback_alone;
	} cases[] = {{"localhost", true}, {"127.0.0.1", true},  {"[::ffff:127.0.0.1]", true},
		     {"0.0.0.0", false},  {"192.0.2.1", false}, {LONG_LABEL, false}};
	size_t i;

	for (i = 0; i < GF_ARRAY_LENGTH(cases); i++) {
		char *place = new_port(cases[i].host);
		int fds[GF_SOCKET_LISTENERS], n, k, others = 0;
		struct gf_error err = {""};

		n = gf_socket_listen(place, fds, &err);
		EXPECT(n > 0, "%s: %s", place, err.text);
		for (k = 0; k < n; k++) {
			others += !is_loopback(fds[k]);
			close(fds[k]);
		}
		EXPECT(!others == cases[i].loopback_alone, "%s: %d of %d", place, others, n);
		free(place);
	}
}

/* --- usage -------------------------------------------------------------- */

static void check_usage(void)
{
	static const struct {
		int rank, ranks;
	} bad[] = {{0, 0}, {-1, 2}, {2, 2}, {0, -1}};
	struct gf_error err = {""};
	struct gf_join join;
	size_t i;

	for (i = 0; i < GF_ARRAY_LENGTH(bad); i++) {
		join = (struct gf_join){.rank = bad[i].rank, .ranks = bad[i].ranks};
		EXPECT(gf_join_open("/tmp/x", 1, &join, &err) == -EINVAL, "rank %d of %d",
		       bad[i].rank, bad[i].ranks);
		EXPECT(strstr(err.text, "/tmp/x: want 0 <= rank < ranks"), "%s", err.text);
	}
	join = (struct gf_join){.rank = 0, .ranks = 2};
	EXPECT(gf_join_open("/proc/no/such", 1, &join, &err) == -ENOENT, "%s", err.text);
}

static void check_place(char *place)
{
	check_missing(place);
	check_ranks_differ(place);
	check_sizes_differ(place);
}

int main(void)
{
	static const int ranks[] = {1, 2, 3, 4, 7, 16};
	char *folder = new_folder(), *port;
	size_t i;

	watchdog(60);
	check_usage();
	check_refused("localhost:0", -EINVAL, "want a port from 1 to 65535, got 0");
	check_refused("localhost:65536", -EINVAL, "want a port from 1 to 65535, got 65536");
	check_refused(LONG_LABEL ":2000", -ETIMEDOUT, "waited 0.3 s, and the host has no address");
	for (i = 0; i < GF_ARRAY_LENGTH(ranks); i++) {
		check_folder(ranks[i]);
		check_port("127.0.0.1", ranks[i]);
	}
	check_port("localhost", 3);
	check_port("[::ffff:127.0.0.1]", 3);
	check_new_folder();
	check_own_file();
	check_listens();
	check_stale();
	check_two_jobs();
	check_visitors();
	check_flood();
	check_stranger();
	check_twice();
	check_taken();
	check_place(folder);
	port = new_port("localhost"); /* only now: others take what is free */
	check_place(port);
	remove_folder(folder);
	free(port);
	return TEST_END();
}
