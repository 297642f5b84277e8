/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef GF_SELECT_FINITE_H
#define GF_SELECT_FINITE_H

#include <stddef.h>

/* How many of the values are finite before the first that is not; count if all
 * are. At the speed of memory as long as they are. */
size_t gf_finite_prefix(const float *values, size_t count);

#endif
