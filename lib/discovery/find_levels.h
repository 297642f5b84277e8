/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef GF_DISCOVERY_FIND_LEVELS_H
#define GF_DISCOVERY_FIND_LEVELS_H

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"
#include "base/text.h"
#include "documents/topology.h"
#include "transport/comm.h"

/*
 * From hosts to the levels of a topology: how many ranks meet on which link.
 *
 * Figures that no prober reported are assumed, and marked as assumed:
 *	shm       8 GB/s, 1 us      one core's copy through the caches
 *	pcie      12 GB/s, 5 us     16 lanes of 8 GT/s, less protocol
 *	nvlink    what NCCL counts on per link (gf_nvlink_rate), 3 us
 *	ethernet  10 Gb/s, 50 us    what NCCL takes for an unknown speed; TCP
 *	roce, infiniband  100 Gb/s, 5 and 3 us
 *	loopback  8 GB/s, 20 us     one machine, but through TCP
 */
enum gf_ranks_on {
	GF_RANKS_ON_AUTO, /* accelerators where every host has enough of them */
	GF_RANKS_ON_CPU,
	GF_RANKS_ON_GPU,
};
extern const char *const gf_ranks_on_names[]; /* auto cpu gpu, NULL */

/*
 * Outside a job: the level "host" of as many ranks as a job would start here: one per accelerator,
 * in groups "nvlink" where NVLink makes some, or one per core. Appended to t, which holds one host.
 * remark as gf_levels_of_job's. -ENOTSUP: accelerators were asked for and there are none.
 */
int gf_levels_of_host(struct gf_topology *t, enum gf_ranks_on ranks_on, struct gf_text *remark,
		      struct gf_error *err);

/*
 * The levels of a job in which rank r runs on t->hosts[host_of[r]]. Sets t->ranks and the hosts'
 * ranks, and appends the levels "host" (and below it "nvlink", as above) and "net"; a level of size
 * 1 is left out if the other one is there. Levels cannot describe hosts with unequal numbers of
 * ranks, or with scattered ranks: such a job gets one flat level "net", whose bandwidth is one
 * rank's share of the busiest host's interface, and a line in *remark. *remark also tells when
 * NVLinks make no levels.
 */
int gf_levels_of_job(struct gf_topology *t, const size_t *host_of, int ranks,
		     enum gf_ranks_on ranks_on, struct gf_text *remark, struct gf_error *err);

/*
 * Reads levels "NAME:SIZE@RATE,LATENCY[,LINK]", innermost first, with blanks between:
 * "gpu:4@32GB/s,3us node:16@12.5GB/s,5us". Sets levels and ranks of a zeroed t. -EINVAL names the
 * level and what it lacks.
 */
int gf_levels_synthetic(const char *spec, struct gf_topology *t, struct gf_error *err);

/* Appends a level; takes level's link, not its name. */
void gf_levels_append(struct gf_topology *t, struct gf_level level, const char *name, size_t size);
/* Ranks of one host through shared memory: link, bandwidth and latency. */
struct gf_level gf_levels_shm(void);

/* A measured memory-copy rate in place of the assumed one of shm levels. */
void gf_levels_set_copy_rate(struct gf_topology *t, double bytes_per_s);

/* The interface that one host's ranks share: its fastest kind of interface that is up, with
 * InfiniBand and RoCE ports of that kind added up. Fills a level's link, bandwidth, latency and
 * their origins; the rest is zero. */
void gf_levels_network_of(const struct gf_host *host, struct gf_level *level);

/*
 * Do the ranks lie on hosts as the levels say? A level below the first network is within a host, so
 * the ranks of one of its groups are to share a host. Collective; rank 0's remark says where they
 * do not, and what to do.
 */
int gf_levels_placed(struct gf_comm *c, const struct gf_level *levels, size_t nlevels,
		     struct gf_text *remark, struct gf_error *err);

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
