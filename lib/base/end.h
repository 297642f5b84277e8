/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef GF_BASE_END_H
#define GF_BASE_END_H

#include <stdbool.h>

/* The process ends with that status so many seconds from now, whatever its threads wait for by
 * then. false: no thread can see to that. */
bool gf_end_within(double seconds, int status);

#endif
