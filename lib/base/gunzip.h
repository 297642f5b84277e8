/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef GF_BASE_GUNZIP_H
#define GF_BASE_GUNZIP_H

#include <stddef.h>

#include "base/error.h"

/* gzip can say a thousand bytes in one, so a small file could take all of a host's memory. Traces
 * and data, of which one byte says 10 to 35, need no more than this; the first bytes are not
 * counted. */
#define GF_GUNZIP_MOST 50

/* gf_file_read of another program's text, which may be packed by gzip, whatever its name. Refused
 * are what unpacks to more than GF_FILE_MAX_BYTES or to more bytes or entries than the packed size
 * allows, and a stream that is cut off or damaged. */
int gf_gunzip_read(const char *path, char **data, size_t *size, struct gf_error *err);
/* Unpacks bytes that were read, where gzip has packed them: *data is freed and replaced, and freed
 * on failure. */
int gf_gunzip(const char *path, char **data, size_t *size, struct gf_error *err);

#endif
