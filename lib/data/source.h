/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef GF_DATA_SOURCE_H
#define GF_DATA_SOURCE_H

#include <stddef.h>

#include "base/error.h"

/*
 * One file of a data set, plain or compressed by gzip, read from front to back.
 * A size that a file states about itself is not trusted: memory grows with the
 * bytes that are really there. Errors name the file; a truncated, damaged or
 * swollen gzip stream is -EINVAL, and so is what is no regular file (private to
 * lib/data).
 */
struct gf_source {
	char *path; /* owned */
	void *stream;
};

/* Nothing that fits beside a model on one host is larger. */
#define GF_SOURCE_MAX_BYTES ((size_t)1 << 36)

/* <folder>/<name>, or <folder>/<name>.gz if only that exists; NULL if neither
 * does. The caller frees. */
char *gf_source_find(const char *folder, const char *name);

/* Takes the path, also when it fails; gf_source_close in any case. */
int gf_source_open(struct gf_source *s, char *path, struct gf_error *err);
void gf_source_close(struct gf_source *s);

/* Up to want bytes; fewer at the end of the file. */
int gf_source_read(struct gf_source *s, void *out, size_t want, size_t *got,
		   struct gf_error *err);
/* Exactly total bytes (> 0) and then the end; the caller frees. */
int gf_source_exactly(struct gf_source *s, size_t total, unsigned char **bytes,
		      struct gf_error *err);
/* Reads the rest; *bytes is never NULL on success, and the caller's to free. */
int gf_source_rest(struct gf_source *s, unsigned char **bytes, size_t *size,
		   struct gf_error *err);

#endif
