/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef GF_RUN_HEIRS_H
#define GF_RUN_HEIRS_H

#include <stddef.h>

#include "base/error.h"
#include "run/team.h"

/*
 * Which rank goes on from what a rank of an earlier run has left. Collective;
 * every rank returns the same. former: 1 + what this rank was, of `before`
 * ranks; 0: it is new. *heirs has `before` entries, -1 for a rank that is no
 * more, and is the caller's to free. It is NULL if all ranks are new: nobody
 * knows. -EINVAL: there was no such rank, or two ranks were the same.
 */
int gf_heirs_find(struct gf_team *team, size_t former, int before, int **heirs,
		  struct gf_error *err);

#endif
