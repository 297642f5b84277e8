/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef GF_CONTEST_LIST_H
#define GF_CONTEST_LIST_H

/* The output of gf-allreduce --list: the algorithms, codecs and transports of
 * this build, a line each. The caller frees. */
char *gf_bench_list(void);

#endif
