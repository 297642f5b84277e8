/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef GF_CLI_HUMAN_H
#define GF_CLI_HUMAN_H

#include <stddef.h>

/*
 * Numbers for people, never for documents. Each writes into the caller's buffer and returns it, so
 * that it can stand inside a printf.
 */
struct gf_human {
	char text[32];
};

/* 1536 -> "1.5 KiB" */
const char *gf_human_size(double bytes, struct gf_human *h);
/* 0.0123 -> "12.3 ms" */
const char *gf_human_time(double seconds, struct gf_human *h);
/* 1.25e8 -> "125 MB/s" */
const char *gf_human_rate(double bytes_per_s, struct gf_human *h);

#endif
