/* SPDX-License-Identifier: BSD-3-Clause */
#include "transport/shm_queue.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

/* The size stays, and so do the seals. */
#define SEALS (F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL)

static int map(struct gf_segment *s, int fd, size_t size_bytes)
{
	void *base = mmap(NULL, size_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

	if (base == MAP_FAILED)
		return -errno;
	s->base = base;
	s->size_bytes = size_bytes;
	return 0;
}

int gf_segment_make(struct gf_segment *s, size_t size_bytes, bool reserve, struct gf_error *err)
{
	struct stat st = {0};
	int fd, rc = 0;

	memset(s, 0, sizeof(*s));
	fd = memfd_create("gradflow", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	if (fd < 0)
		return gf_error_errno(err, -errno, "memfd_create");
	if (ftruncate(fd, (off_t)size_bytes))
		rc = -errno;
	if (!rc && reserve)
		rc = -posix_fallocate(fd, 0, (off_t)size_bytes);
	if (!rc && (fcntl(fd, F_ADD_SEALS, SEALS) || fstat(fd, &st)))
		rc = -errno;
	rc = rc ?: map(s, fd, size_bytes);
	if (rc) {
		close(fd);
		return gf_error_errno(err, rc, "%zu bytes of shared memory", size_bytes);
	}
	s->inode = st.st_ino;
	s->fd = fd;
	return 0;
}

/* Is it the file that was meant? Its process may have ended since, and others have its numbers.
 * Only anonymous files in memory have seals. */
static int identify(int fd, const struct gf_segment_place *place)
{
	struct stat st;
	int seals;

	if (fstat(fd, &st))
		return -errno;
	if (!S_ISREG(st.st_mode) || (uint64_t)st.st_size != place->size_bytes ||
	    st.st_ino != place->inode)
		return -ESTALE;
	seals = fcntl(fd, F_GET_SEALS);
	return seals < 0 || (seals & SEALS) != SEALS ? -ESTALE : 0;
}

int gf_segment_map(struct gf_segment *s, const struct gf_segment_place *place, struct gf_error *err)
{
	char path[64];
	int own, rc;

	memset(s, 0, sizeof(*s));
	snprintf(path, sizeof(path), "/proc/%d/fd/%d", place->pid, place->fd);
	/* O_NONBLOCK: it may be another process's pipe */
	own = open(path, O_RDWR | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	if (own < 0)
		return gf_error_errno(err, -errno, "%s", path);
	rc = identify(own, place);
	rc = rc ?: map(s, own, place->size_bytes);
	close(own);
	s->inode = place->inode;
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
