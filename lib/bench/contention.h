/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef GF_BENCH_CONTENTION_H
#define GF_BENCH_CONTENTION_H

#include "bench/curve.h"

/*
 * gamma_n at a few sizes: n equal messages at once take
 * startup + gamma_n * per_byte * bytes, one alone startup + per_byte * bytes,
 * so gamma_n = 1 + (T_n - T_1) / (per_byte * bytes) whatever both of them spend
 * on meeting and waking up. Sizes whose transfer is shorter than two
 * startups say nothing about it and are left out, and those for which there is
 * no time; with a per-byte cost of 0 there is no contention to find.
 * Collective; the curve is fitted already. sitting_s is what a sitting takes
 * besides its messages.
 */
int gf_bench_contention(const struct gf_bench_curve_config *config,
			const struct gf_bench_subject *subject,
			double sitting_s, struct gf_bench_curve *curve,
			struct gf_error *err);

#endif
