/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef GF_BASE_GUNZIP_H
#define GF_BASE_GUNZIP_H

#include <stddef.h>

#include "base/error.h"

/* gf_file_read of another program's text, which may be packed by gzip,
 * whatever its name. What unpacks to more than GF_FILE_MAX_BYTES is refused, as
 * is a stream that is cut off or damaged. */
int gf_gunzip_read(const char *path, char **data, size_t *size,
		   struct gf_error *err);
/* Unpacks bytes that were read, where gzip has packed them: *data is freed and
 * replaced, and freed on failure. */
int gf_gunzip(const char *path, char **data, size_t *size,
	      struct gf_error *err);

#endif
