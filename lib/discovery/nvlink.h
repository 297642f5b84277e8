/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef GF_DISCOVERY_NVLINK_H
#define GF_DISCOVERY_NVLINK_H

#include <stdbool.h>
#include <stddef.h>

#include "base/text.h"
#include "documents/topology.h"

/*
 * GPUs that NVLink connects, directly or through switches, and the levels that they make: groups of
 * neighbours that are alike are a level of their own, the rest meets over PCI Express.
 */
struct gf_nvlinked {
	size_t group;       /* the first GPU that it is connected to, or itself */
	double bytes_per_s; /* of all its links, per direction */
	const char *link;   /* nvlink, as it is made, or xgmi */
	enum gf_origin origin;
};

/* n GPUs with no links; the caller frees. */
struct gf_nvlinked *gf_nvlinked_new(size_t n);
void gf_nvlinked_join(struct gf_nvlinked *g, size_t n, size_t a, size_t b);

/* Bytes per second that NCCL counts on per NVLink, by compute capability (90 for 9.0); 0: there is
 * none. */
double gf_nvlink_rate(double sm);

/* The levels of n devices on t's hosts, which lie in g as on the hosts, one after the other: groups
 * that links connect, what is left of a host over PCI Express, hosts over their networks. Unequal
 * groups or hosts are flat, with a line in remarks. */
void gf_levels_linked(struct gf_topology *t, const struct gf_nvlinked *g, size_t n,
		      struct gf_text *remarks);

#endif
