/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef GF_PROBE_PLACED_H
#define GF_PROBE_PLACED_H

#include "base/error.h"
#include "base/text.h"
#include "comm/comm.h"
#include "doc/topology.h"

/*
 * Do the ranks lie on hosts as the levels say? A level below the first network
 * is within a host, so the ranks of one of its groups are to share a host.
 * Collective; rank 0's remark says where they do not, and what to do.
 */
int gf_levels_placed(struct gf_comm *c, const struct gf_level *levels,
		     size_t nlevels, struct gf_text *remark,
		     struct gf_error *err);

#endif
