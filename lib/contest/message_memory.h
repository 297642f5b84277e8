/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef GF_CONTEST_MESSAGE_MEMORY_H
#define GF_CONTEST_MESSAGE_MEMORY_H

#include "base/error.h"

/* Does this host have wanted_bytes of memory left, for all its ranks together?
 * The check comes before memory is taken: the kernel hands out more than there
 * is, and ends a process when the memory is used. -ENOMEM names both. */
int gf_contest_memory_check(double wanted_bytes, struct gf_error *err);

#endif
