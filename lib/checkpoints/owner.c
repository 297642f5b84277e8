/* SPDX-License-Identifier: BSD-3-Clause */
#include "checkpoints/set.h"

#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/heap.h"
#include "base/timeout.h"
#include "json/record.h"

#define BEATS 5 /* of an owner, in a lease */
/* An owner locks its file, and then writes its name: looks at a locked file before a name is
 * believed, and before it is held to have none. */
#define LOOKS_NAMED    1
#define LOOKS_NAMELESS 5
/* More than any record takes. */
#define MAX_BYTES 4096

/* What a lock file says. */
struct record {
	char *host, *job, *kernel, *since;
	size_t pid;
	char *token; /* of this owner alone */
	char *extra;
};

struct gf_checkpoint_owner {
	char *dir, *path;
	struct gf_checkpoint_claim claim;
	bool made; /* DIR is */
	struct record self;
	int fd;    /* -1: not owned */
	int looks; /* at a file that another process has locked */
	/* of another's lock file that is watched: its last change, and since when there was none */
	struct timespec changed;
	double still_since_s;
	bool watches;
	pthread_t thread; /* touches the file */
	bool beats, stops;
	pthread_mutex_t mutex; /* over fd and stops */
	pthread_cond_t stop;
};

#define AT(member) offsetof(struct record, member)
static const struct gf_field fields[] = {
	{GF_MEMBER(host, GF_FIELD_STRING, GF_REQUIRED)},
	{GF_MEMBER(pid, GF_FIELD_SIZE, GF_REQUIRED), .high = GF_MAX_SIZE},
	{GF_MEMBER(job, GF_FIELD_STRING, GF_OMITTED)},
	{GF_MEMBER(since, GF_FIELD_STRING, GF_REQUIRED)},
	{GF_MEMBER(kernel, GF_FIELD_STRING, GF_REQUIRED)},
	{GF_MEMBER(token, GF_FIELD_STRING, GF_REQUIRED)},
	{NULL},
};
#undef AT

static const struct gf_record record = {
	GF_RECORD(struct record, fields),
	.one_line = true,
};

static const struct gf_document_format format = {.name = "gf-lock", .record = &record};

/* --- who ------------------------------------------------------------------ */

/* One boot of one machine, which all containers on it share. */
static char *kernel_name(void)
{
	char text[64] = "", *end;
	FILE *f = fopen("/proc/sys/kernel/random/boot_id", "r");

	if (f && !fgets(text, sizeof(text), f))
		text[0] = '\0';
	if (f)
		fclose(f);
	end = strchr(text, '\n');
	if (end)
		*end = '\0';
	return gf_xstrdup(text[0] ? text : "unknown");
}

static char *random_token(void)
{
	unsigned long long words[2] = {0};

	if (getrandom(words, sizeof(words), 0) < 0)
		words[0] = (unsigned long long)(gf_clock_s() * 1e9);
	return gf_xasprintf("%016llx%016llx", words[0], words[1]);
}

static void describe_self(struct record *r, const char *job)
{
	char host[256] = "unknown", since[32];
	time_t now = time(NULL);
	struct tm tm;

	gethostname(host, sizeof(host) - 1);
	strftime(since, sizeof(since), "%Y-%m-%dT%H:%M:%SZ", gmtime_r(&now, &tm));
	*r = (struct record){
		.host = gf_xstrdup(host),
		.job = gf_xstrdup_or_null(job),
		.kernel = kernel_name(),
		.since = gf_xstrdup(since),
		.pid = (size_t)getpid(),
		.token = random_token(),
	};
}

/* "job 47 (process 123 on n1, since ...)" */
static char *name_of(const struct record *r)
{
	if (!r->token)
		return gf_xstrdup("a job that does not say its name");
	return gf_xasprintf("%s (process %zu on %s, since %s)", r->job ? r->job : "a job", r->pid,
			    r->host, r->since);
}

/* Leaves *r empty if that is no record. */
static void read_record(int fd, const char *path, struct record *r)
{
	char text[MAX_BYTES];
	GF_RELEASED(gf_json_free_at) struct gf_json *root = NULL;
	ssize_t n = pread(fd, text, sizeof(text), 0);

	memset(r, 0, sizeof(*r));
	if (n > 0 && !gf_json_parse(text, (size_t)n, path, &root, NULL))
		gf_document_read(root, path, &format, r, NULL);
}

/* --- the file ------------------------------------------------------------- */

/* Opens and locks; 0 and *fd, *locked as it is; -EBUSY: another process has locked it. Between
 * opening and locking, an owner may have removed it. */
static int open_lock(struct gf_checkpoint_owner *o, int *fd, bool *locked, struct gf_error *err)
{
	struct stat by_fd, by_path;
	int rc, tries;

	for (tries = 0; tries < 100; tries++) {
		*fd = -1;
		if (!lstat(o->path, &by_path) && !S_ISREG(by_path.st_mode))
			return gf_error_set(err, S_ISLNK(by_path.st_mode) ? -ELOOP : -EEXIST,
					    "%s: want a regular file or none", o->path);
		*fd = open(o->path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0666);
		if (*fd < 0)
			return gf_error_errno(err, -errno, "%s", o->dir);
		rc = o->claim.unlocked ? -ENOLCK : flock(*fd, LOCK_EX | LOCK_NB) ? -errno : 0;
		*locked = rc == 0;
		if (rc == -EWOULDBLOCK)
			return -EBUSY;
		if (fstat(*fd, &by_fd) == 0 && lstat(o->path, &by_path) == 0 &&
		    by_fd.st_ino == by_path.st_ino)
			return 0;
		close(*fd);
	}
	return gf_error_set(err, -EBUSY,
			    "%s: want a lock file that stays, it was replaced %d times", o->path,
			    tries);
}

static int write_record(struct gf_checkpoint_owner *o, int fd, struct gf_error *err)
{
	GF_FREED char *text = gf_document_write(&format, &o->self);
	size_t size = strlen(text);
	int rc = 0;

	errno = 0; /* which a short write leaves alone */
	if (ftruncate(fd, 0) || pwrite(fd, text, size, 0) != (ssize_t)size)
		rc = gf_error_errno(err, errno ? -errno : -EIO, "%s", o->path);
	return rc;
}

/* --- an owner that may be no more ----------------------------------------- */

static double lease_s(const struct gf_checkpoint_owner *o)
{
	return o->claim.lease_s > 0 ? o->claim.lease_s : GF_TIMEOUT_LEASE_S;
}

static void tell(const struct gf_checkpoint_owner *o, char *text)
{
	if (o->claim.note)
		o->claim.note(o->claim.ctx, text);
	free(text);
}

/* -EBUSY once it moves, 0 once it has not for a lease. */
static int watch(struct gf_checkpoint_owner *o, int fd, const char *other)
{
	struct stat st;

	if (fstat(fd, &st))
		return -EAGAIN;
	if (!o->watches) {
		o->watches = true;
		o->changed = st.st_mtim;
		o->still_since_s = gf_clock_s();
		tell(o, gf_xasprintf("%s: %s may be running: waiting %.0f s for a sign of life",
				     o->path, other, lease_s(o)));
		return -EAGAIN;
	}
	if (st.st_mtim.tv_sec != o->changed.tv_sec || st.st_mtim.tv_nsec != o->changed.tv_nsec)
		return -EBUSY;
	return gf_clock_s() - o->still_since_s < lease_s(o) ? -EAGAIN : 0;
}

/* --- signs of life -------------------------------------------------------- */

static void *beat(void *arg)
{
	struct gf_checkpoint_owner *o = arg;
	const double every_s = lease_s(o) / BEATS;
	struct timespec until;

	pthread_mutex_lock(&o->mutex);
	while (!o->stops) {
		futimens(o->fd, NULL);
		until = gf_clock_after(every_s);
		pthread_cond_timedwait(&o->stop, &o->mutex, &until);
	}
	pthread_mutex_unlock(&o->mutex);
	return NULL;
}

static void take(struct gf_checkpoint_owner *o, int fd)
{
	sigset_t all, before;

	pthread_mutex_lock(&o->mutex);
	if (o->fd >= 0)
		close(o->fd);
	o->fd = fd;
	pthread_mutex_unlock(&o->mutex);
	if (o->beats)
		return;
	/* the caller's signals are for the caller's threads */
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	o->beats = pthread_create(&o->thread, NULL, beat, o) == 0;
	pthread_sigmask(SIG_SETMASK, &before, NULL);
}

/* --- the interface -------------------------------------------------------- */

struct gf_checkpoint_owner *gf_checkpoint_claim(const char *dir,
						const struct gf_checkpoint_claim *claim)
{
	struct gf_checkpoint_owner *o = gf_xcalloc(1, sizeof(*o));
	pthread_condattr_t attributes;

	o->dir = gf_xstrdup(dir);
	o->path = gf_xasprintf("%s/" GF_OWNER_NAME, dir);
	o->claim = *claim;
	o->fd = -1;
	describe_self(&o->self, claim->job);
	o->claim.job = NULL; /* borrowed until here */
	o->made = mkdir(dir, 0777) == 0;
	if (o->made) /* its sets can be no safer than its own name */
		gf_file_sync_parent(dir, NULL);
	pthread_mutex_init(&o->mutex, NULL);
	pthread_condattr_init(&attributes);
	pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
	pthread_cond_init(&o->stop, &attributes);
	pthread_condattr_destroy(&attributes);
	return o;
}

int gf_checkpoint_claim_poll(struct gf_checkpoint_owner *o, struct gf_error *err)
{
	struct gf_error why = {""};
	struct record other = {0};
	bool locked = false, own, unsure;
	GF_FREED char *name = NULL;
	int fd = -1, rc = open_lock(o, &fd, &locked, &why);

	if (fd >= 0)
		read_record(fd, o->path, &other);
	name = name_of(&other);
	own = other.token && strcmp(other.token, o->self.token) == 0;
	if (rc == -EBUSY && !why.text[0] &&
	    o->looks++ < (other.token ? LOOKS_NAMED : LOOKS_NAMELESS))
		rc = -EAGAIN;
	/* an owner under this kernel would hold the lock */
	if (!rc && other.token && !own && !(locked && strcmp(other.kernel, o->self.kernel) == 0))
		rc = watch(o, fd, name);
	if (!rc && other.token && !own)
		tell(o, gf_xasprintf("%s: %s is no more: taken over", o->path, name));
	if (!rc && !own)
		rc = write_record(o, fd, &why);
	/* without a lock another job may write at the same moment: the next look shows which name
	 * has stayed */
	unsure = !rc && !own && !locked && o->fd < 0;
	if (rc == -EBUSY && !why.text[0])
		gf_error_set(err, rc,
			     "%s: is in use by %s: want a folder that no other job writes to",
			     o->dir, name);
	else if (rc && rc != -EAGAIN && err)
		*err = why;
	if (!rc)
		take(o, fd);
	else if (fd >= 0)
		close(fd);
	if (rc && locked && !other.token) /* on a full disk, for one */
		unlink(o->path);
	gf_record_release(&record, &other);
	return unsure ? -EAGAIN : rc;
}

int gf_checkpoint_owns(struct gf_checkpoint_owner *o, struct gf_error *err)
{
	struct record found = {0};
	int fd = open(o->path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	int rc = 0;

	if (fd < 0 && errno == ENOENT) {
		o->watches = false;
		o->looks = LOOKS_NAMELESS;
		rc = gf_checkpoint_claim_poll(o, err);
		return rc == -EAGAIN
			       ? gf_error_set(err, -EBUSY, "%s: another job has taken it", o->dir)
			       : rc;
	}
	if (fd < 0)
		return gf_error_errno(err, -errno, "%s", o->path);
	read_record(fd, o->path, &found);
	close(fd);
	if (!found.token || strcmp(found.token, o->self.token) != 0) {
		GF_FREED char *name = name_of(&found);

		rc = gf_error_set(err, -EBUSY,
				  "%s: %s has taken the folder: nothing is written to it", o->dir,
				  name);
	}
	gf_record_release(&record, &found);
	return rc;
}

void gf_checkpoint_release(struct gf_checkpoint_owner *o)
{
	if (!o)
		return;
	pthread_mutex_lock(&o->mutex);
	o->stops = true;
	pthread_cond_signal(&o->stop);
	pthread_mutex_unlock(&o->mutex);
	if (o->beats)
		pthread_join(o->thread, NULL);
	/* removed while it is locked: nobody takes over what is about to go */
	if (o->fd >= 0 && access(o->path, F_OK) == 0 && !gf_checkpoint_owns(o, NULL))
		unlink(o->path);
	if (o->fd >= 0)
		close(o->fd);
	if (o->made)
		rmdir(o->dir);
	pthread_cond_destroy(&o->stop);
	pthread_mutex_destroy(&o->mutex);
	gf_record_release(&record, &o->self);
	free(o->dir);
	free(o->path);
	free(o);
}
