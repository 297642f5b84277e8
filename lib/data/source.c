/* SPDX-License-Identifier: BSD-3-Clause */
#include "data/data_parts.h"

#include <stdbool.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>

#include "base/file.h"
#include "base/gunzip.h"
#include "base/heap.h"

#define FIRST_BLOCK   ((size_t)1 << 20)
#define UNPACKED_FREE (1 << 25) /* of GF_GUNZIP_MOST */

char *gf_source_find(const char *folder, const char *name)
{
	static const char *const endings[] = {"", ".gz"};

	for (size_t e = 0; e < 2; e++) {
		char *path = gf_xasprintf("%s/%s%s", folder, name, endings[e]);

		if (access(path, F_OK) == 0)
			return path;
		free(path);
	}
	return NULL;
}

int gf_source_open(struct gf_source *s, char *path, struct gf_error *err)
{
	size_t size_bytes;
	int fd, rc;

	s->path = path;
	rc = gf_file_open_regular(path, &fd, &size_bytes, err);
	if (rc)
		return rc;
	s->stream = gzdopen(fd, "rb");
	if (s->stream)
		return 0;
	close(fd);
	return gf_error_errno(err, -ENOMEM, "%s", path);
}

void gf_source_close(struct gf_source *s)
{
	if (s->stream)
		gzclose_r(s->stream);
	free(s->path);
	memset(s, 0, sizeof(*s));
}

/* Has what was read so far grown by more than data do that tell anything? */
static bool is_swollen(gzFile stream)
{
	z_off_t read = gztell(stream);

	return read > UNPACKED_FREE && !gzdirect(stream) &&
	       read / GF_GUNZIP_MOST > gzoffset(stream);
}

int gf_source_read(struct gf_source *s, void *out, size_t want, size_t *got, struct gf_error *err)
{
	size_t done = 0;

	while (done < want) {
		size_t left = want - done;
		int n = gzread(s->stream, (char *)out + done,
			       left > FIRST_BLOCK ? FIRST_BLOCK : (unsigned)left);
		int code;

		if (n > 0) {
			done += (size_t)n;
			if (is_swollen(s->stream))
				return gf_error_set(
					err, -EINVAL,
					"%s: want at most %d bytes from a byte of gzip, got more",
					s->path, GF_GUNZIP_MOST);
			continue;
		}
		gzerror(s->stream, &code);
		if (n == 0 && code != Z_BUF_ERROR)
			break;
		if (code == Z_ERRNO)
			return gf_error_errno(err, errno ? -errno : -EIO, "%s", s->path);
		return gf_error_set(err, -EINVAL, "%s: %s", s->path,
				    code == Z_BUF_ERROR ? "the gzip stream is truncated"
							: "the gzip stream is damaged");
	}
	*got = done;
	return 0;
}

/* Reads on into *bytes up to `limit` bytes in all, doubling the room. */
static int read_up_to(struct gf_source *s, size_t limit, unsigned char **bytes, size_t *size,
		      struct gf_error *err)
{
	size_t room = limit < FIRST_BLOCK ? limit : FIRST_BLOCK, got = 0;
	int rc;

	*size = 0;
	*bytes = NULL;
	for (;;) {
		unsigned char *more = realloc(*bytes, room ? room : 1);

		if (!more)
			return gf_error_set(err, -ENOMEM, "%s: no memory for %zu bytes", s->path,
					    room);
		*bytes = more;
		rc = gf_source_read(s, more + *size, room - *size, &got, err);
		if (rc)
			return rc;
		*size += got;
		if (*size < room || room == limit)
			return 0;
		room = limit - room < room ? limit : 2 * room;
	}
}

int gf_source_exactly(struct gf_source *s, size_t total, unsigned char **bytes,
		      struct gf_error *err)
{
	unsigned char extra;
	size_t size, more = 0;
	int rc = read_up_to(s, total, bytes, &size, err);

	if (!rc && size < total)
		rc = gf_error_set(err, -EINVAL,
				  "%s: want %zu bytes of data as the header says, got %zu", s->path,
				  total, size);
	rc = rc ?: gf_source_read(s, &extra, 1, &more, err);
	if (!rc && more)
		rc = gf_error_set(err, -EINVAL,
				  "%s: want %zu bytes of data as the header says, got more",
				  s->path, total);
	if (rc) {
		free(*bytes);
		*bytes = NULL;
	}
	return rc;
}

int gf_source_rest(struct gf_source *s, unsigned char **bytes, size_t *size, struct gf_error *err)
{
	int rc = read_up_to(s, GF_SOURCE_MAX_BYTES, bytes, size, err);

	if (!rc && *size == GF_SOURCE_MAX_BYTES)
		rc = gf_error_set(err, -EINVAL, "%s: want less than %zu bytes", s->path,
				  GF_SOURCE_MAX_BYTES);
	if (rc) {
		free(*bytes);
		*bytes = NULL;
	}
	return rc;
}
