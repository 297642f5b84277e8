/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/gunzip.h"

#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "base/file.h"
#include "base/text.h"

/* Of entries, a byte of gzip holds about one: they begin with a bracket or a comma, or are
 * attributes. A small file may hold a few more, and bytes. */
enum { ENTRIES_MOST = 2, ENTRIES_FREE = 1 << 16, BYTES_FREE = 1 << 20 };

static size_t entries_in(const char *p, const char *end)
{
	size_t n = 0;

	while (p < end)
		n += memchr("{[<,=", *p++, 5) != NULL;
	return n;
}

/* A file may be several streams, one after the other. */
static int unpack(z_stream *z, const char *path, struct gf_text *out, struct gf_error *err)
{
	size_t bytes_most = BYTES_FREE + GF_GUNZIP_MOST * (size_t)z->avail_in;
	size_t entries_most = ENTRIES_FREE + ENTRIES_MOST * (size_t)z->avail_in;
	size_t entries = 0;
	char block[65536];
	const Bytef *member = z->next_in;
	int code = Z_OK;

	if (bytes_most > GF_FILE_MAX_BYTES)
		bytes_most = GF_FILE_MAX_BYTES;
	while (code != Z_STREAM_END || z->avail_in > 0) {
		if (code == Z_STREAM_END && inflateReset(z) != Z_OK)
			return gf_error_set(err, -ENOMEM, "%s: no memory", path);
		if (code == Z_STREAM_END)
			member = z->next_in;
		z->next_out = (Bytef *)block;
		z->avail_out = sizeof(block);
		code = inflate(z, Z_NO_FLUSH);
		gf_text_add(out, block, sizeof(block) - z->avail_out);
		entries += entries_in(block, (char *)z->next_out);
		if (out->length > bytes_most || entries > entries_most)
			return gf_error_set(
				err, -EINVAL,
				"%s: want at most %d bytes and %d entries from a byte of gzip, and "
				"%zu bytes in all, got more: unpack it by gunzip first",
				path, GF_GUNZIP_MOST, ENTRIES_MOST, GF_FILE_MAX_BYTES);
		/* zeros may fill up what lies on a tape */
		if (code == Z_DATA_ERROR && out->length && !*member)
			return 0;
		if (code != Z_OK && code != Z_STREAM_END)
			return gf_error_set(err, -EINVAL, "%s: the gzip stream is %s", path,
					    code == Z_BUF_ERROR ? "truncated" : "damaged");
	}
	return 0;
}

int gf_gunzip(const char *path, char **data, size_t *size, struct gf_error *err)
{
	z_stream z = {.next_in = (Bytef *)*data, .avail_in = (uInt)*size};
	struct gf_text out = {0};
	int rc;

	if (*size < 2 || memcmp(*data, "\x1f\x8b", 2) != 0)
		return 0;
	/* 16: gzip's header and sum, and no other's */
	if (inflateInit2(&z, 16 + MAX_WBITS) != Z_OK)
		rc = gf_error_set(err, -ENOMEM, "%s: no memory", path);
	else
		rc = unpack(&z, path, &out, err);
	inflateEnd(&z);
	free(*data);
	*data = NULL;
	*size = out.length;
	if (rc)
		gf_text_release(&out);
	else
		*data = gf_text_take(&out);
	return rc;
}

int gf_gunzip_read(const char *path, char **data, size_t *size, struct gf_error *err)
{
	return gf_file_read(path, data, size, err) ?: gf_gunzip(path, data, size, err);
}
