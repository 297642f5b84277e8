/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef GF_CLI_HUMAN_H
#define GF_CLI_HUMAN_H

#include <stddef.h>

/* Numbers for people, never for documents: gf_human_time(s).text stands inside a printf. */
struct gf_human {
	char text[32];
};

/* 1536 -> "1.5 KiB" */
struct gf_human gf_human_size(double bytes);
/* 0.0123 -> "12.3 ms" */
struct gf_human gf_human_time(double seconds);
/* 1.25e8 -> "125 MB/s" */
struct gf_human gf_human_rate(double bytes_per_s);
/* The rate of a link: 1.25e8 -> "1 Gb/s" */
struct gf_human gf_human_link(double bytes_per_s);
/* 1.3 -> "1.30": three digits. */
struct gf_human gf_human_ratio(double ratio);

#endif
