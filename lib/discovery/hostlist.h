/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef GF_DISCOVERY_HOSTLIST_H
#define GF_DISCOVERY_HOSTLIST_H

#include <stddef.h>

#include "base/error.h"
#include "base/text.h"

/* More hosts than that in one list are a mistake or an attack. */
#define GF_HOSTLIST_MAX ((size_t)1 << 16)

struct gf_hostlist {
	char **names;
	size_t count, capacity;
};

/*
 * Adds the names of a list as Slurm writes it: "tux[0-5,8],login,gpu[01-03]b". Numbers keep their
 * leading zeros; several brackets in a name multiply. -EINVAL: what is wrong with it, or more than
 * GF_HOSTLIST_MAX names in all.
 */
int gf_hostlist_add(struct gf_hostlist *l, const char *text, struct gf_error *err);
void gf_hostlist_release(struct gf_hostlist *l);

#endif
