/* SPDX-License-Identifier: BSD-3-Clause */
/* lib/base: what every folder needs and libc lacks: errors, arrays, text, files, clocks, random
 * numbers. */
#ifndef GF_BASE_ERROR_H
#define GF_BASE_ERROR_H

#include <errno.h> /* what functions return: whoever has this header does without that one */

/*
 * Reasons for failure.
 *
 * A function that can fail returns 0 or a negative errno and, where the reason matters, takes a
 * struct gf_error that the caller owns (usually on its stack). The function that first knows the
 * reason writes the text; its callers only prefix where it happened.
 * The text is lower case, has no final dot, and names what was wanted and what was found, on one
 * line: control characters in names are shown as \xHH, and a text that is too long loses its
 * middle. A NULL struct gf_error * is always allowed and means "don't care".
 *
 * The errno chooses a command's exit status (gf_cli_status of cli/cli.h):
 *   -EINVAL      usage, a bad document, a request that contradicts itself  (2)
 *   -ENOTSUP     a valid request that nothing here can meet                (1)
 *   -ETIMEDOUT   gave up waiting                                           (4)
 *   other        the environment: I/O, MPI, CUDA                           (3)
 */
struct gf_error {
	char text[512];
};

/* Writes the text and returns rc, so that `return gf_error_set(...)` works. */
int gf_error_set(struct gf_error *err, int rc, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

/* Puts "<formatted>: " in front of the text that is already there. */
void gf_error_prefix(struct gf_error *err, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));

/* Writes "<formatted>: <strerror(-rc)>" and returns rc. */
int gf_error_errno(struct gf_error *err, int rc, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

#endif
