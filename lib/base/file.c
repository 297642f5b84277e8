/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/heap.h"
#include "base/text.h"

static int read_stream(FILE *stream, const char *path, struct gf_text *text,
		       struct gf_error *err)
{
	char block[65536];
	size_t n;

	while ((n = fread(block, 1, sizeof(block), stream)) > 0) {
		if (text->length + n > GF_FILE_MAX_BYTES)
			return gf_error_set(
				err, -EFBIG,
				"%s: want at most %zu bytes, got more", path,
				GF_FILE_MAX_BYTES);
		gf_text_add(text, block, n);
	}
	if (ferror(stream))
		return gf_error_errno(err, errno ? -errno : -EIO, "%s", path);
	return 0;
}

int gf_file_read(const char *path, char **data, size_t *size,
		 struct gf_error *err)
{
	int use_stdin = strcmp(path, "-") == 0;
	const char *name = use_stdin ? "standard input" : path;
	struct gf_text text = {0};
	FILE *stream;
	int rc;

	stream = use_stdin ? stdin : fopen(path, "rb");
	if (!stream)
		return gf_error_errno(err, -errno, "%s", path);
	errno = 0;
	rc = read_stream(stream, name, &text, err);
	if (!use_stdin)
		fclose(stream);
	if (rc) {
		gf_text_release(&text);
		return rc;
	}
	if (text.length >= 3 && !memcmp(text.data, "\xef\xbb\xbf", 3))
		memmove(text.data, text.data + 3, (text.length -= 3) + 1);
	*size = text.length;
	*data = gf_text_take(&text);
	return 0;
}

int gf_file_create(struct gf_file *f, const char *path, struct gf_error *err)
{
	struct stat st;
	mode_t mask;
	int fd;

	memset(f, 0, sizeof(*f));
	if (stat(path, &st) == 0 && !S_ISREG(st.st_mode)) {
		f->stream = fopen(path, "wb");
		if (!f->stream)
			return gf_error_errno(err, -errno, "%s", path);
		f->path = gf_xstrdup(path);
		return 0;
	}
	f->temporary = gf_xasprintf("%s.XXXXXX", path);
	fd = mkstemp(f->temporary);
	if (fd < 0) {
		int rc = gf_error_errno(err, -errno, "%s", path);

		free(f->temporary);
		f->temporary = NULL;
		return rc;
	}
	mask = umask(0);
	umask(mask);
	fchmod(fd, 0666 & ~mask);
	f->stream = fdopen(fd, "wb");
	f->path = gf_xstrdup(path);
	return 0;
}

static void forget(struct gf_file *f)
{
	free(f->path);
	free(f->temporary);
	memset(f, 0, sizeof(*f));
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

int gf_file_try(const char *path, struct gf_error *err)
{
	struct gf_file f;
	int rc;

	rc = gf_file_create(&f, path, err);
	if (!rc)
		gf_file_abandon(&f);
	return rc;
}

/* The folder that a file is, or would be, in; and its name there. */
static char *folder_of(const char *path, const char **name)
{
	const char *slash = strrchr(path, '/');
	char *folder =
		slash ? gf_xasprintf("%.*s", (int)(slash - path + 1), path)
		      : gf_xstrdup(".");
	char *real = realpath(folder, NULL);

	*name = slash ? slash + 1 : path;
	free(folder);
	return real;
}

/* Would both be written to one file, whether it is there yet or not? */
static bool same_file(const char *path, const char *other)
{
	struct stat a, b;
	const char *name, *other_name;
	char *folder, *other_folder;
	bool same;

	if (stat(path, &a) == 0 && stat(other, &b) == 0)
		return S_ISREG(a.st_mode) && a.st_dev == b.st_dev &&
		       a.st_ino == b.st_ino;
	folder = folder_of(path, &name);
	other_folder = folder_of(other, &other_name);
	same = folder && other_folder && strcmp(folder, other_folder) == 0 &&
	       strcmp(name, other_name) == 0;
	free(folder);
	free(other_folder);
	return same;
}

int gf_file_apart(const struct gf_file_wish *files, size_t n,
		  struct gf_error *err)
{
	size_t i, k;

	for (i = 0; i < n; i++)
		for (k = i + 1; k < n; k++)
			if (files[i].path && files[k].path &&
			    same_file(files[i].path, files[k].path))
				return gf_error_set(err, -EINVAL,
						    "%s and %s: want two "
						    "files, got one",
						    files[i].option,
						    files[k].option);
	return 0;
}

int gf_file_write(const char *path, const void *data, size_t size,
		  struct gf_error *err)
{
	struct gf_file f;
	int rc;

	rc = gf_file_create(&f, path, err);
	if (rc)
		return rc;
	errno = 0;
	fwrite(data, 1, size, f.stream); /* commit sees a failure */
	return gf_file_commit(&f, err);
}

int gf_file_sync_parent(const char *path, struct gf_error *err)
{
	char *folder = gf_xstrdup(path);
	char *slash = strrchr(folder, '/');
	int fd, rc = 0;

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
