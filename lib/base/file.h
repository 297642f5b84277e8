/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef GF_BASE_FILE_H
#define GF_BASE_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <sys/types.h>

#include "base/error.h"

/* Largest input that is read whole. A document beyond it is refused. */
#define GF_FILE_MAX_BYTES ((size_t)1 << 30)

/*
 * Reads a whole text, "-" being standard input, without the byte order mark that some editors put
 * first. *data has *size bytes and a NUL after them; the caller frees it. Errors name the path.
 */
int gf_file_read(const char *path, char **data, size_t *size, struct gf_error *err);

/*
 * A file that is there whole or not at all: written beside its final name, synced, renamed. Until
 * gf_file_commit returned 0 the old file is untouched; gf_file_abandon, or a failed commit, removes
 * what was written.
 * A path that exists and is no regular file (a pipe, /dev/null) is written in place: nothing else
 * can be done with it. So is one that stands for an open file (/dev/stdout, /dev/fd/3), after what
 * that has. Any other link is followed, and a file that is replaced keeps its mode.
 */
struct gf_file {
	FILE *stream;
	char *path;
	char *temporary; /* NULL when written in place */
};

int gf_file_create(struct gf_file *f, const char *path, struct gf_error *err);
/* A new file of the program's own, with that mode, in a folder that others may write to: what lies
 * at its name is replaced, and a link not followed. */
int gf_file_create_own(struct gf_file *f, const char *path, mode_t mode, struct gf_error *err);
int gf_file_commit(struct gf_file *f, struct gf_error *err);
void gf_file_abandon(struct gf_file *f);

/* A stream that goes on where the open file stands for which the path does, through links or not.
 * NULL: it cannot be opened, or (errno 0) the path stands for none. */
FILE *gf_file_reopen(const char *path);

/* Files to be written: those that were given, that is whose path is not NULL, must not be written
 * over by one another. -EINVAL names two options. */
struct gf_file_wish {
	const char *option, *path; /* option without "--" */
};
int gf_file_apart(const struct gf_file_wish *files, size_t n, struct gf_error *err);

/* create, write, commit. */
int gf_file_write(const char *path, const void *data, size_t size, struct gf_error *err);
/* write, commit. */
int gf_file_put(struct gf_file *f, const void *data, size_t size, struct gf_error *err);

/* Opens a regular file to be read. What is none is -EINVAL: nothing may ever be written to a pipe,
 * whose opening would wait. */
int gf_file_open_regular(const char *path, int *fd, size_t *size_bytes, struct gf_error *err);
/* gf_file_read of such a file. */
int gf_file_read_regular(const char *path, char **data, size_t *size, struct gf_error *err);

/* fsync on the folder that holds path, so that a rename in it survives. */
int gf_file_sync_parent(const char *path, struct gf_error *err);

#endif
