/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef GF_BASE_UNITS_H
#define GF_BASE_UNITS_H

#include <stddef.h>

#include "base/error.h"

/*
 * Numbers with units, as people type them on a command line. Documents never
 * hold such strings. All return 0 or -EINVAL with a reason; *out only on 0.
 */

/* "4096", "64K", "4M", "1G" (powers of 1024, as nccl-tests), "1.5M". */
int gf_units_size(const char *text, size_t *bytes, struct gf_error *err);

/* "32GB/s", "12.5GB/s", "100Gb/s", "1e9B/s" (powers of 1000); > 0. */
int gf_units_rate(const char *text, double *bytes_per_s, struct gf_error *err);

/* "3us", "50us", "1.5ms", "2s", "0s"; >= 0. */
int gf_units_time(const char *text, double *seconds, struct gf_error *err);

/* A whole decimal integer in [low, high], nothing after it. */
int gf_units_int(const char *text, long long low, long long high,
		 long long *value, struct gf_error *err);

/* A finite decimal number in [low, high], nothing after it. */
int gf_units_real(const char *text, double low, double high, double *value,
		  struct gf_error *err);

#endif
