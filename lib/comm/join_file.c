/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/heap.h"
#include "comm/join_state.h"

static const char magic[8] = "gfjoin 1";

int gf_join_write(const char *path, const struct gf_join_head *head,
		  const void *data, struct gf_error *err)
{
	size_t whole_bytes = sizeof(*head) + head->size_bytes;
	char *whole;
	struct stat st;
	int rc;

	/* a pipe would be written to, and wait */
	if (!lstat(path, &st) && !S_ISREG(st.st_mode))
		return gf_error_set(err, -EEXIST,
				    "%s: want a regular file or none", path);
	whole = gf_xmalloc(whole_bytes);
	memcpy(whole, head, sizeof(*head));
	memcpy(whole, magic, sizeof(magic));
	if (head->size_bytes > 0)
		memcpy(whole + sizeof(*head), data, head->size_bytes);
	rc = gf_file_write(path, whole, whole_bytes, err);
	free(whole);
	return rc;
}

static bool read_whole(int fd, void *data, size_t size_bytes)
{
	size_t done = 0;
	ssize_t n = 1;

	while (done < size_bytes && n > 0) {
		n = read(fd, (char *)data + done, size_bytes - done);
		done += n > 0 ? (size_t)n : 0;
	}
	return done == size_bytes;
}

static bool read_file(int fd, struct gf_join_file *f)
{
	struct stat st;

	if (fstat(fd, &st) || !S_ISREG(st.st_mode) ||
	    !read_whole(fd, &f->head, sizeof(f->head)) ||
	    memcmp(f->head.magic, magic, sizeof(magic)) != 0 ||
	    f->head.size_bytes > GF_PLACE_MOST_BYTES ||
	    f->head.size_bytes != (uint64_t)st.st_size - sizeof(f->head))
		return false;
	f->data = gf_xmalloc(f->head.size_bytes + 1);
	if (read_whole(fd, f->data, f->head.size_bytes))
		return true;
	free(f->data);
	f->data = NULL;
	return false;
}

bool gf_join_read(const char *path, struct gf_join_file *f)
{
	int fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC | O_NOFOLLOW);
	bool good;

	f->data = NULL;
	if (fd < 0)
		return false;
	good = read_file(fd, f);
	close(fd);
	return good;
}
