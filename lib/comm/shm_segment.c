/* SPDX-License-Identifier: BSD-3-Clause */
#include "comm/shm_segment.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

static int map(struct gf_segment *s, int fd, size_t size_bytes)
{
	void *base = mmap(NULL, size_bytes, PROT_READ | PROT_WRITE, MAP_SHARED,
			  fd, 0);

	if (base == MAP_FAILED)
		return -errno;
	s->base = base;
	s->size_bytes = size_bytes;
	return 0;
}

int gf_segment_make(struct gf_segment *s, size_t size_bytes, bool reserve,
		    struct gf_error *err)
{
	int fd, rc = 0;

	memset(s, 0, sizeof(*s));
	fd = memfd_create("gradflow", MFD_CLOEXEC);
	if (fd < 0)
		return gf_error_errno(err, -errno, "memfd_create");
	if (ftruncate(fd, (off_t)size_bytes))
		rc = -errno;
	if (!rc && reserve)
		rc = -posix_fallocate(fd, 0, (off_t)size_bytes);
	if (!rc)
		rc = map(s, fd, size_bytes);
	if (rc) {
		close(fd);
		return gf_error_errno(err, rc, "%zu bytes of shared memory",
				      size_bytes);
	}
	s->fd = fd;
	return 0;
}

int gf_segment_map(struct gf_segment *s, int pid, int fd, size_t size_bytes,
		   struct gf_error *err)
{
	char path[64];
	struct stat st;
	int own, rc = 0;

	memset(s, 0, sizeof(*s));
	snprintf(path, sizeof(path), "/proc/%d/fd/%d", pid, fd);
	own = open(path, O_RDWR | O_CLOEXEC);
	if (own < 0)
		return gf_error_errno(err, -errno, "%s", path);
	/* the number may by now be another file's */
	if (fstat(own, &st))
		rc = -errno;
	else if (!S_ISREG(st.st_mode) || (size_t)st.st_size != size_bytes)
		rc = -ESTALE;
	if (!rc)
		rc = map(s, own, size_bytes);
	close(own);
	s->fd = -1;
	return rc ? gf_error_errno(err, rc, "%s", path) : 0;
}

void gf_segment_release(struct gf_segment *s)
{
	if (s->base) {
		munmap(s->base, s->size_bytes);
		if (s->fd >= 0)
			close(s->fd);
	}
	memset(s, 0, sizeof(*s));
}
