/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/gunzip.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "base/file.h"
#include "base/text.h"

/* A file may be several streams, one after the other. */
static int unpack(z_stream *z, const char *path, struct gf_text *out,
		  struct gf_error *err)
{
	char block[65536];
	int code = Z_OK;

	while (code != Z_STREAM_END || z->avail_in > 0) {
		if (code == Z_STREAM_END && inflateReset(z) != Z_OK)
			return gf_error_set(err, -ENOMEM, "%s: no memory",
					    path);
		z->next_out = (Bytef *)block;
		z->avail_out = sizeof(block);
		code = inflate(z, Z_NO_FLUSH);
		gf_text_add(out, block, sizeof(block) - z->avail_out);
		if (out->length > GF_FILE_MAX_BYTES)
			return gf_error_set(err, -EFBIG,
					    "%s: want at most %zu bytes, got "
					    "more, unpacked",
					    path, GF_FILE_MAX_BYTES);
		/* zeros may fill up what lies on a tape */
		if (code == Z_DATA_ERROR && out->length && !z->total_out)
			return 0;
		if (code != Z_OK && code != Z_STREAM_END)
			return gf_error_set(
				err, -EINVAL, "%s: the gzip stream is %s", path,
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

int gf_gunzip_read(const char *path, char **data, size_t *size,
		   struct gf_error *err)
{
	int rc = gf_file_read(path, data, size, err);

	return rc ? rc : gf_gunzip(path, data, size, err);
}
