/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef GF_CONTEST_LISTING_H
#define GF_CONTEST_LISTING_H

/* The output of gf-allreduce --list: the algorithms, codecs and transports of
 * this build, a line each. The caller frees. */
char *gf_contest_list(void);

#endif
