/* SPDX-License-Identifier: BSD-3-Clause */
/* The owner of a folder: one at a time, and none that is no more. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/heap.h"
#include "checkpoints/set.h"
#include "folder.h"
#include "test.h"

#define LEASE_S 3.0

static char said[512];

static void note(void *ctx, const char *text)
{
	(void)ctx;
	snprintf(said, sizeof(said), "%s", text);
}

static int claim(const char *dir, const char *job, bool unlocked, struct gf_checkpoint_owner **o,
		 struct gf_error *err)
{
	const struct gf_checkpoint_claim c = {
		.job = job, .lease_s = LEASE_S, .unlocked = unlocked, .note = note};
	int rc;

	said[0] = '\0';
	*o = gf_checkpoint_claim(dir, &c);
	while ((rc = gf_checkpoint_claim_poll(*o, err)) == -EAGAIN)
		gf_clock_sleep(LEASE_S / 20);
	return rc;
}

static bool is_file(const char *path)
{
	return access(path, F_OK) == 0;
}

/* A second job is refused by name, with and without the file system's locks; what is left is
 * taken. */
static void test_two(void)
{
	char *dir = gf_xasprintf("%s/two", folder);
	char *path = gf_xasprintf("%s/" GF_OWNER_NAME, dir);
	int way;

	for (way = 0; way < 2; way++) {
		struct gf_checkpoint_owner *first, *second;
		struct gf_error err = {""};

		EXPECT(claim(dir, "job 47", way, &first, &err) == 0, "%s", err.text);
		EXPECT(is_file(path), "%s", path);
		EXPECT(claim(dir, "job 48", way, &second, &err) == -EBUSY &&
			       strstr(err.text, "is in use by job 47 (process ") &&
			       strstr(err.text, dir),
		       "%s", err.text);
		gf_checkpoint_release(second);
		EXPECT(gf_checkpoint_owns(first, &err) == 0, "%s", err.text);
		gf_checkpoint_release(first);
		EXPECT(!is_file(path) && !is_file(dir), "left as it was");
		EXPECT(claim(dir, NULL, way, &second, &err) == 0 && !said[0], "%s", err.text);
		gf_checkpoint_release(second);
	}
	free(path);
	free(dir);
}

/* A job that is killed leaves its file: under this kernel that is known at once, of another host's
 * only when it shows no life for a while. */
static void test_killed(void)
{
	char *dir = gf_xasprintf("%s/killed", folder);
	char *path = gf_xasprintf("%s/" GF_OWNER_NAME, dir);
	struct gf_checkpoint_owner *o;
	struct gf_error err = {""};
	double began_s;
	int status, way;
	pid_t child;

	mkdir(dir, 0777);
	for (way = 0; way < 2; way++) {
		child = fork();
		if (child == 0) {
			if (claim(dir, "job 47", way, &o, NULL) == 0)
				raise(SIGKILL);
			_exit(1);
		}
		waitpid(child, &status, 0);
		EXPECT(WIFSIGNALED(status) && is_file(path), "way %d", way);
		began_s = gf_clock_s();
		EXPECT(claim(dir, "job 48", way, &o, &err) == 0 &&
			       strstr(said, "job 47 (process ") &&
			       strstr(said, "is no more: taken over"),
		       "way %d: %s, %s", way, err.text, said);
		EXPECT(!way || gf_clock_s() - began_s >= LEASE_S, "waited");
		gf_checkpoint_release(o);
		EXPECT(!is_file(path), "released");
	}
	free(path);
	free(dir);
}

/* A file in DIR/lock as another host's job has it. */
static const char other_text[] =
	"{\"format\": \"gf-lock\", \"version\": 1, \"host\": \"n9\", \"pid\": 1, \"since\": "
	"\"then\", \"kernel\": \"other\", \"token\": \"t\"}\n";

static void write_other(const char *path)
{
	gf_file_write(path, other_text, strlen(other_text), NULL);
}

/* The other, which was seen, writes again: it is named, and its file stays. */
static void check_alive(struct gf_checkpoint_owner *o, const char *path)
{
	struct gf_error err = {""};

	gf_clock_sleep(0.02);
	write_other(path);
	EXPECT(gf_checkpoint_claim_poll(o, &err) == -EBUSY && strstr(err.text, "(process 1 on n9"),
	       "%s", err.text);
	gf_checkpoint_release(o);
	EXPECT(is_file(path), "not ours to remove");
}

static void test_other_host(void)
{
	char *dir = gf_xasprintf("%s/host", folder);
	char *path = gf_xasprintf("%s/" GF_OWNER_NAME, dir);
	struct gf_checkpoint_owner *o;
	struct gf_error err = {""};
	const struct gf_checkpoint_claim c = {.lease_s = TEST_PATIENCE_S, .note = note};

	mkdir(dir, 0777);
	write_other(path);
	/* one that lives: its file changes */
	o = gf_checkpoint_claim(dir, &c);
	EXPECT(gf_checkpoint_claim_poll(o, &err) == -EAGAIN &&
		       strstr(said, "(process 1 on n9, since then) may be running"),
	       "%s", said);
	EXPECT(gf_checkpoint_claim_poll(o, &err) == -EAGAIN, "%s", err.text);
	check_alive(o, path);

	/* an owner that lost the folder writes nothing more */
	unlink(path);
	EXPECT(claim(dir, NULL, false, &o, &err) == 0, "%s", err.text);
	write_other(path);
	EXPECT(gf_checkpoint_owns(o, &err) == -EBUSY &&
		       strstr(err.text, "on n9, since then) has taken the folder"),
	       "%s", err.text);
	gf_checkpoint_release(o);
	EXPECT(is_file(path), "not ours any more");

	/* the file alone is gone: it is made anew */
	unlink(path);
	EXPECT(claim(dir, NULL, false, &o, &err) == 0, "%s", err.text);
	unlink(path);
	EXPECT(gf_checkpoint_owns(o, &err) == 0 && is_file(path), "%s", err.text);
	gf_checkpoint_release(o);

	/* what is no record belongs to nobody; a link is not followed */
	gf_file_write(path, "hello", 5, NULL);
	EXPECT(claim(dir, NULL, false, &o, &err) == 0, "%s", err.text);
	gf_checkpoint_release(o);
	EXPECT(symlink("/tmp", path) == 0, "symlink");
	EXPECT(claim(dir, NULL, false, &o, &err) == -ELOOP, "%s", err.text);
	gf_checkpoint_release(o);
	/* nor is anything else taken for a lock */
	EXPECT(!unlink(path) && !mkfifo(path, 0600), "mkfifo");
	EXPECT(claim(dir, NULL, false, &o, &err) == -EEXIST &&
		       strstr(err.text, "lock: want a regular file or none"),
	       "%s", err.text);
	gf_checkpoint_release(o);
	EXPECT(!unlink(path) && !mkdir(path, 0700), "mkdir");
	EXPECT(claim(dir, NULL, false, &o, &err) == -EEXIST, "%s", err.text);
	gf_checkpoint_release(o);
	free(path);
	free(dir);
}

/* Two jobs begin at the same moment. */
static void test_at_once(void)
{
	char *dir = gf_xasprintf("%s/once", folder);
	char *path = gf_xasprintf("%s/" GF_OWNER_NAME, dir);
	const struct gf_checkpoint_claim locked = {.lease_s = TEST_PATIENCE_S};
	const struct gf_checkpoint_claim unlocked = {.lease_s = TEST_PATIENCE_S, .unlocked = true};
	struct gf_checkpoint_owner *o;
	struct gf_error err = {""};
	int fd, rc;

	/* the other has locked the file, and has not written its name yet */
	o = gf_checkpoint_claim(dir, &locked);
	fd = open(path, O_RDWR | O_CREAT, 0666);
	EXPECT(fd >= 0 && !flock(fd, LOCK_EX), "%s", path);
	EXPECT(gf_checkpoint_claim_poll(o, &err) == -EAGAIN, "%s", err.text);
	EXPECT(pwrite(fd, other_text, strlen(other_text), 0) > 0, "%s", path);
	EXPECT(gf_checkpoint_claim_poll(o, &err) == -EBUSY && strstr(err.text, "(process 1 on n9"),
	       "%s", err.text);
	gf_checkpoint_release(o);
	/* it never does */
	EXPECT(!ftruncate(fd, 0), "%s", path);
	rc = claim(dir, NULL, false, &o, &err);
	EXPECT(rc == -EBUSY && strstr(err.text, "does not say its name"), "%d, %s", rc, err.text);
	gf_checkpoint_release(o);
	close(fd);
	unlink(path);

	/* there are no locks, and the other has written after this one */
	o = gf_checkpoint_claim(dir, &unlocked);
	EXPECT(gf_checkpoint_claim_poll(o, &err) == -EAGAIN, "not known yet");
	write_other(path);
	EXPECT(gf_checkpoint_claim_poll(o, &err) == -EAGAIN, "the other's");
	check_alive(o, path);
	free(path);
	free(dir);
}

int main(void)
{
	make_folder("test_ckpt_owner");
	test_two();
	test_killed();
	test_other_host();
	test_at_once();
	return TEST_END();
}
