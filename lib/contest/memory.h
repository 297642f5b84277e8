/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef GF_CONTEST_MEMORY_H
#define GF_CONTEST_MEMORY_H

#include "base/error.h"

/* Has this host so much memory left, in bytes, for all its ranks together?
 * Asked before it is taken: the kernel hands out more than there is, and ends
 * somebody when it is used. -ENOMEM names both. */
int gf_bench_memory_check(double wanted_bytes, struct gf_error *err);

#endif
