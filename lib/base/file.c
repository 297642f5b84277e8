/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/file.h"

#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdint.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/heap.h"
#include "base/stdin.h"
#include "base/text.h"
#include "base/units.h"

#define MOST_LINKS 40 /* as the kernel */
#define MOST_TRIES 100

static int read_all(int fd, const char *name, struct gf_text *text, struct gf_error *err)
{
	char block[65536];
	ssize_t n;
	int rc;

	for (;;) {
		rc = fd == STDIN_FILENO ? gf_stdin_wait(text->length > 0, err) : 1;
		if (rc <= 0)
			return rc;
		n = TEMP_FAILURE_RETRY(read(fd, block, sizeof(block)));
		if (n < 0)
			return gf_error_errno(err, -errno, "%s", name);
		if (n == 0)
			return 0;
		if (text->length + (size_t)n > GF_FILE_MAX_BYTES)
			return gf_error_set(err, -EFBIG, "%s: want at most %zu bytes, got more",
					    name, GF_FILE_MAX_BYTES);
		gf_text_add(text, block, (size_t)n);
	}
}

static int read_text(int fd, const char *name, char **data, size_t *size, struct gf_error *err)
{
	GF_RELEASED(gf_text_release) struct gf_text text = {0};
	int rc = read_all(fd, name, &text, err);

	if (rc)
		return rc;
	if (text.length >= 3 && !memcmp(text.data, "\xef\xbb\xbf", 3))
		memmove(text.data, text.data + 3, (text.length -= 3) + 1);
	*size = text.length;
	*data = gf_text_take(&text);
	return 0;
}

int gf_file_read(const char *path, char **data, size_t *size, struct gf_error *err)
{
	int fd, rc;

	if (strcmp(path, "-") == 0)
		return read_text(STDIN_FILENO, "standard input", data, size, err);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return gf_error_errno(err, -errno, "%s", path);
	rc = read_text(fd, path, data, size, err);
	close(fd);
	return rc;
}

/* The folder that a file is, or would be, in; and its name there. */
static char *folder_of(const char *path, const char **name)
{
	const char *slash = strrchr(path, '/');
	GF_FREED char *folder =
		slash ? gf_xasprintf("%.*s", (int)(slash - path + 1), path) : gf_xstrdup(".");
	char *real = realpath(folder, NULL);

	*name = slash ? slash + 1 : path;
	return real;
}

/* Does the path stand for an open file, as /dev/stdout does? */
static bool is_open_file(const char *path)
{
	const char *name;
	GF_FREED char *folder = folder_of(path, &name);

	return folder && strncmp(folder, "/proc/", 6) == 0;
}

/* A descriptor of this process is written at its offset, and that of another one is appended to. */
static FILE *open_in_place(const char *path)
{
	const char *name;
	GF_FREED char *folder = folder_of(path, &name), *own = NULL;
	long long number;
	FILE *f = NULL;

	own = realpath("/proc/self/fd", NULL);
	if (folder && own && strcmp(folder, own) == 0 &&
	    gf_units_int(name, 0, INT_MAX, &number, NULL) == 0) {
		int fd = fcntl((int)number, F_DUPFD_CLOEXEC, 0);

		f = fd < 0 ? NULL : fdopen(fd, "wb");
	} else {
		f = fopen(path, "abe");
	}
	return f;
}

/* The file that a link leads to, whether it is there yet or not, or the open file: a link stays
 * one. NULL and errno: it cannot be followed. The caller frees. */
static char *target_of(const char *path)
{
	char *at = gf_xstrdup(path), *to, *slash, target[PATH_MAX];

	for (int links = 0; links <= MOST_LINKS; links++) {
		ssize_t n = is_open_file(at) ? -1 : readlink(at, target, sizeof(target) - 1);

		if (n < 0)
			return at;
		target[n] = '\0';
		slash = strrchr(at, '/');
		to = target[0] == '/' || !slash
			     ? gf_xstrdup(target)
			     : gf_xasprintf("%.*s%s", (int)(slash - at + 1), at, target);
		free(at);
		at = to;
	}
	free(at);
	errno = ELOOP;
	return NULL;
}

/* NULL with errno 0: the target is no open file. */
static FILE *reopen(const char *target)
{
	if (is_open_file(target))
		return open_in_place(target);
	errno = 0;
	return NULL;
}

FILE *gf_file_reopen(const char *path)
{
	char *target = target_of(path);
	FILE *f = target ? reopen(target) : NULL;
	int failed = errno;

	free(target);
	errno = failed;
	return f;
}

/* A new file beside the path, of that mode as the process gives it to new files, or with that of
 * `old`. */
static int open_beside(struct gf_file *f, const struct stat *old, mode_t mode)
{
	uint64_t word = 0;
	int fd, tries;

	for (tries = 0; tries < MOST_TRIES; tries++) {
		if (getrandom(&word, sizeof(word), 0) < 0)
			word += (uint64_t)getpid();
		f->temporary = gf_xasprintf("%s.%06" PRIx64, f->path, word & 0xffffff);
		fd = open(f->temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, old ? 0600 : mode);
		if (fd >= 0 && old) {
			/* what only root may keep is lost, not gained */
			if (fchown(fd, (uid_t)-1, old->st_gid))
				errno = 0;
			fchmod(fd, old->st_mode & 0777);
		}
		if (fd >= 0)
			return fd;
		free(f->temporary);
		f->temporary = NULL;
		if (errno != EEXIST)
			break;
	}
	return -1;
}

static void forget(struct gf_file *f)
{
	free(f->path);
	free(f->temporary);
	memset(f, 0, sizeof(*f));
}

static int begin(struct gf_file *f, const struct stat *old, mode_t mode, const char *path,
		 struct gf_error *err)
{
	int fd = open_beside(f, old, mode), rc;

	f->stream = fd >= 0 ? fdopen(fd, "wb") : NULL;
	if (f->stream)
		return 0;
	rc = gf_error_errno(err, -errno, "%s", path);
	if (fd >= 0) {
		close(fd);
		unlink(f->temporary);
	}
	forget(f);
	return rc;
}

int gf_file_create_own(struct gf_file *f, const char *path, mode_t mode, struct gf_error *err)
{
	*f = (struct gf_file){.path = gf_xstrdup(path)};
	return begin(f, NULL, mode, path, err);
}

int gf_file_create(struct gf_file *f, const char *path, struct gf_error *err)
{
	struct stat st;
	bool there;
	int rc;

	memset(f, 0, sizeof(*f));
	there = stat(path, &st) == 0;
	if (there && !S_ISREG(st.st_mode)) {
		f->stream = fopen(path, "wbe");
		if (!f->stream)
			return gf_error_errno(err, -errno, "%s", path);
		f->path = gf_xstrdup(path);
		return 0;
	}
	f->path = target_of(path);
	if (!f->path)
		return gf_error_errno(err, -errno, "%s", path);
	f->stream = reopen(f->path);
	if (f->stream)
		return 0;
	if (errno) {
		rc = gf_error_errno(err, -errno, "%s", path);
		forget(f);
		return rc;
	}
	return begin(f, there ? &st : NULL, 0666, path, err);
}

void gf_file_abandon(struct gf_file *f)
{
	if (f->stream)
		fclose(f->stream);
	if (f->temporary)
		unlink(f->temporary);
	forget(f);
}

int gf_file_commit(struct gf_file *f, struct gf_error *err)
{
	int failed = fflush(f->stream) || ferror(f->stream);
	int rc = 0;

	if (!failed && f->temporary)
		failed = fsync(fileno(f->stream));
	if (failed)
		rc = errno ? -errno : -EIO;
	if (fclose(f->stream) && !rc)
		rc = errno ? -errno : -EIO;
	f->stream = NULL;
	if (!rc && f->temporary && rename(f->temporary, f->path))
		rc = -errno;
	if (rc) {
		gf_error_errno(err, rc, "%s", f->path);
		gf_file_abandon(f);
		return rc;
	}
	if (f->temporary)
		rc = gf_file_sync_parent(f->path, err);
	forget(f);
	return rc;
}

/* Would both be written to one file, whether it is there yet or not? */
static bool same_file(const char *path, const char *other)
{
	struct stat a, b;
	const char *name, *other_name;
	GF_FREED char *folder = NULL, *other_folder = NULL;

	if (stat(path, &a) == 0 && stat(other, &b) == 0)
		return S_ISREG(a.st_mode) && a.st_dev == b.st_dev && a.st_ino == b.st_ino;
	folder = folder_of(path, &name);
	other_folder = folder_of(other, &other_name);
	return folder && other_folder && strcmp(folder, other_folder) == 0 &&
	       strcmp(name, other_name) == 0;
}

int gf_file_apart(const struct gf_file_wish *files, size_t n, struct gf_error *err)
{
	for (size_t i = 0; i < n; i++)
		for (size_t k = i + 1; k < n; k++)
			if (files[i].path && files[k].path &&
			    same_file(files[i].path, files[k].path))
				return gf_error_set(err, -EINVAL,
						    "--%s and --%s: want two files, got one",
						    files[i].option, files[k].option);
	return 0;
}

int gf_file_put(struct gf_file *f, const void *data, size_t size, struct gf_error *err)
{
	errno = 0;
	fwrite(data, 1, size, f->stream); /* commit sees a failure */
	return gf_file_commit(f, err);
}

int gf_file_write(const char *path, const void *data, size_t size, struct gf_error *err)
{
	struct gf_file f;
	return gf_file_create(&f, path, err) ?: gf_file_put(&f, data, size, err);
}

int gf_file_sync_parent(const char *path, struct gf_error *err)
{
	char *folder = gf_xstrdup(path), *slash;
	size_t length = strlen(folder);
	int fd, rc = 0;

	while (length > 1 && folder[length - 1] == '/')
		folder[--length] = '\0';
	slash = strrchr(folder, '/');
	if (slash == folder)
		slash[1] = '\0';
	else if (slash)
		*slash = '\0';
	fd = open(slash ? folder : ".", O_RDONLY | O_DIRECTORY);
	if (fd < 0 || (fsync(fd) && errno != EINVAL))
		rc = gf_error_errno(err, -errno, "%s", slash ? folder : ".");
	if (fd >= 0)
		close(fd);
	free(folder);
	return rc;
}

int gf_file_open_regular(const char *path, int *fd, size_t *size_bytes, struct gf_error *err)
{
	int opened = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC), rc = 0;
	struct stat st;

	if (opened < 0)
		return gf_error_errno(err, -errno, "%s", path);
	if (fstat(opened, &st))
		rc = gf_error_errno(err, -errno, "%s", path);
	else if (!S_ISREG(st.st_mode))
		rc = gf_error_set(err, -EINVAL, "%s: want a regular file", path);
	if (rc) {
		close(opened);
		return rc;
	}
	*fd = opened;
	*size_bytes = (size_t)st.st_size;
	return 0;
}

int gf_file_read_regular(const char *path, char **data, size_t *size, struct gf_error *err)
{
	int fd = -1, rc = gf_file_open_regular(path, &fd, size, err);

	if (rc)
		return rc;
	rc = read_text(fd, path, data, size, err);
	close(fd);
	return rc;
}
