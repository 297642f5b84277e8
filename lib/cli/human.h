/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef GF_CLI_HUMAN_H
#define GF_CLI_HUMAN_H

#include <stdbool.h>
#include <stddef.h>

/* Numbers for people, never for documents: gf_human_time(s).text stands inside a printf. */
struct gf_human {
	char text[32];
};

/* 1536 -> "1.50 KiB", 4096 -> "4 KiB" */
struct gf_human gf_human_size(double bytes);
/* 0.0123 -> "12.3 ms", 0.02 -> "20.0 ms" */
struct gf_human gf_human_time(double seconds);
/* 1.25e8 -> "125 MB/s" */
struct gf_human gf_human_rate(double bytes_per_s);
/* The rate of a link: 1.25e8 -> "1 Gb/s" */
struct gf_human gf_human_link(double bytes_per_s);
/* 1.3 -> "1.30": three digits. */
struct gf_human gf_human_ratio(double ratio);

/* A unit of those above, or "%"; those of a family measure the same. false: the name is none. */
struct gf_human_unit {
	int family;
	double size; /* in the family's unit of size 1 */
	const char *name;
};
bool gf_human_find_unit(const char *name, size_t length, struct gf_human_unit *unit);

#endif
