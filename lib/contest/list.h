/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef GF_CONTEST_LIST_H
#define GF_CONTEST_LIST_H

#include "base/text.h"

/* The output of gf-allreduce --list: the algorithms, codecs and transports of
 * this build, a line each. */
void gf_bench_list(struct gf_text *out);

#endif
