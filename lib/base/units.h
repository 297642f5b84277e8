/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef GF_BASE_UNITS_H
#define GF_BASE_UNITS_H

#include <stddef.h>

#include "base/error.h"

/*
 * Numbers with units, as people type them on a command line. Documents never hold such strings. All
 * return 0 or -EINVAL with a reason; *out only on 0.
 */

/* "4096", "64K", "4m", "1GiB", "1.5MB": every letter is a power of 1024, as nccl-tests have it. */
int gf_units_size(const char *text, size_t *bytes, struct gf_error *err);

/* "32GB/s", "100Gb/s", "10Gbps", "10gbit/s"; > 0. The letters are powers of 1000; B is a byte, b a
 * bit. "8x100Gb/s" is that of eight together. */
int gf_units_rate(const char *text, double *bytes_per_s, struct gf_error *err);

/* "7e12", "15T", "15TF", "15TFLOP/s"; > 0. */
int gf_units_flops(const char *text, double *flop_per_s, struct gf_error *err);

/* "3us", "3µs", "1.5ms", "2s", and "2" for seconds; >= 0. */
int gf_units_time(const char *text, double *seconds, struct gf_error *err);

/* A whole decimal integer in [low, high], nothing after it. */
int gf_units_int(const char *text, long long low, long long high, long long *value,
		 struct gf_error *err);

/* A finite decimal number in [low, high], nothing after it. Where high is at most 1 it is a share,
 * which may be in per cent: "0.05", "5%". */
int gf_units_real(const char *text, double low, double high, double *value, struct gf_error *err);

#endif
