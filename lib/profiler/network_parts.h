/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef GF_PROFILER_NETWORK_PARTS_H
#define GF_PROFILER_NETWORK_PARTS_H

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"
#include "base/text.h"
#include "collectives/schedule.h"
#include "documents/profile.h"
#include "documents/topology.h"
#include "profiler/curve.h"
#include "profiler/network.h"
#include "runtime/exec/exec.h"
#include "transport/comm.h"
#include "transport/watch.h"

/*
 * Transfers between ranks with no all-reduce around them, as schedules through the executor that
 * training uses. Whatever blocks is watched (transport/watch.h): a rank that does not come is
 * named.
 */
struct gf_measure_link {
	struct gf_comm *comm; /* borrowed; belongs to the link until closed */
	struct gf_exec *exec;
	struct gf_watch watch;
};

void gf_measure_link_open(struct gf_measure_link *l, struct gf_comm *comm, double timeout_s);
void gf_measure_link_close(struct gf_measure_link *l);

/*
 * A rank's part. A rank with both peers is a link of a ring: in each round it sends on the data
 * received in the one before. A rank with one peer only sends or only receives; the receiver then
 * tells the sender that all has come. A rank with no peer stands by, or, if it reduces, adds up on
 * its own.
 */
struct gf_measure_hop {
	int to, from; /* -1: nobody */
	size_t bytes; /* of a message, whole f32 */
	int rounds;
	int messages; /* of each round, all at once */
	bool reduce;  /* adds what is received to what is there */
};

/* As steps of a message of twice the bytes. */
void gf_measure_hop_schedule(const struct gf_measure_hop *hop, int rank, int ranks,
			     struct gf_schedule *s);

/* The mover of hops: a link, or NCCL between GPUs (profiler/network_parts.h).
 */
struct gf_measure_mover {
	struct gf_comm *comm;
	/* Collective: ranks meet, then all hops go, so many times; times_s[i] until this rank's
	 * last step. */
	int (*run)(void *ctx, const struct gf_measure_hop *hop, double *times_s, int repeats,
		   struct gf_error *err);
	/* (optional) Is what comes from there added as it comes, with no memory of its own in
	 * between? */
	bool (*adds)(void *ctx, int from);
	void *ctx;
};

struct gf_measure_mover gf_measure_link_mover(struct gf_measure_link *l);

/*
 * The decompositions that are measured (Cho et al. 2019, BlueConnect: an implementation per
 * fabric). The base has a stage per level. Beside it, one stage at a time goes by each other
 * algorithm that can carry it out. A cost is a sum over stages (Eq. 7), so the best of each stage
 * are the best together, and are measured, too: once for short messages, once for long ones. Other
 * mixtures are not tried: of four algorithms in three stages there are 64.
 */

/* How `algorithm` is decomposed on such levels, innermost first, between GPUs by NCCL; 0 stages if
 * it takes no levels, or on one level. The caller frees with gf_stages_free. */
size_t gf_measure_stages(const char *algorithm, const struct gf_level *levels, size_t nlevels,
			 bool gpus, struct gf_stage **out);

/* Calls each for the base's stages with one stage by another algorithm; stops at the first failure,
 * and returns it. The stages are the caller's to copy. */
typedef int gf_measure_stages_fn(void *ctx, const struct gf_stage *stages, size_t nstages,
				 struct gf_error *err);
int gf_measure_stages_vary(const struct gf_stage *base, size_t nstages, bool gpus,
			   gf_measure_stages_fn *each, void *ctx, struct gf_error *err);

/* The best algorithm of each stage for a message of that many bytes, of the entries from `base` on
 * that differ from it in one stage. 0 if its algorithm has an entry of these stages already. Else
 * the caller frees. */
size_t gf_measure_stages_together(const struct gf_network *net, size_t base, double bytes,
				  struct gf_stage **out);

/* The ways that a network's measurement takes, as entries without figures. */

/* Takes the stages. */
void gf_measure_entry_add(struct gf_network *net, const char *algorithm, struct gf_stage *stages,
			  size_t nstages);

/* Can the entry's way go as that half here? */
bool gf_measure_has_half(const struct gf_measure_network *c, const struct gf_allreduce_cost *cost,
			 enum gf_coll_half half);

/* Collective: an entry for each algorithm that is wanted and can run here on messages of all sizes,
 * and for other algorithms of its stages
 * (above). */
int gf_measure_entries(const struct gf_measure_network *c, struct gf_network *net,
		       struct gf_text *remarks, struct gf_error *err);

/*
 * Algorithms that take the same steps on the ranks at hand, apart from which parts of the message
 * each step moves: on two ranks a ring, rhd and blueconnect. They cost the same. They are measured
 * once, which takes less time; and a planner does not choose among them by noise.
 */

/* Collective; all ranks get the same: twins[i] is the first entry whose steps are those of entry i,
 * at most i. The caller frees. */
int gf_measure_twins(struct gf_comm *comm, const struct gf_network *net, size_t **twins,
		     struct gf_error *err);

/*
 * The cost of each level of a topology: a round of messages between neighbours.
 *
 * Ranks are grouped by the digits of their number. On a level one rank of each group one level down
 * takes part, all groups at the same time: it sends to the next group's and receives from the one
 * before, as in a ring. So a message has for itself what the ranks of its group otherwise share,
 * which is what a level's bandwidth means. alpha and beta are a round's startup and per-byte cost;
 * reduce is what adding up what came takes besides: where the transport adds while it receives,
 * what that makes the round longer, else the addition by itself on all ranks at once.
 */
struct gf_measure_levels {
	struct gf_measure_curve_config curve; /* limits.budget_s: of them all */
	const struct gf_level *levels;        /* the product is the ranks */
	size_t nlevels;
	struct gf_measure_mover mover; /* of messages between the ranks */
};

/* Collective; all ranks get the same: levels of one member are left out. */
int gf_measure_levels(const struct gf_measure_levels *config, struct gf_network *net,
		      struct gf_text *remarks, struct gf_error *err);

/* The neighbours of a rank on a level, as above; both -1 for one that takes no part. */
void gf_measure_level_peers(const struct gf_level *levels, size_t level, int rank, int *to,
			    int *from);

/*
 * Messages that travel together are no faster than the network. An all-reduce of m bytes sends at
 * least 2 (g - 1) / g * m through the link of each of g groups of ranks (Patarasuk and Yuan 2009),
 * and each of its halves half of that.
 * n all-reduces at once pass this link as n messages on that level alone do. So on each level
 * between hosts
 *
 *	gamma_n >= 2 (g - 1) / g * beta / per_byte * gamma_n of the level
 *
 * A gamma measured below that, on a machine with other work for example, is raised to it, though
 * not above n; a remark says so. net->levels are measured, `levels` are what they were measured on,
 * local_ranks share a host.
 */
void gf_measure_contention_floor(const struct gf_network *net, const struct gf_level *levels,
				 size_t nlevels, int local_ranks, struct gf_allreduce_cost *cost,
				 struct gf_text *remarks);

/*
 * The all-reduces of the network half between GPUs: chains of messages on NCCL's lanes, as
 * training's engine enqueues them, with the device's times. Communicators are made once for all
 * sizes and algorithms, which takes longer than any message.
 */
struct gf_network_device;

/* Collective. */
int gf_network_device_open(const struct gf_measure_network *config, struct gf_network_device **d,
			   struct gf_error *err);
/* NULL is allowed. */
void gf_network_device_close(struct gf_network_device *d);

/* As struct gf_measure_subject's sit, of an algorithm and its stages. */
int gf_network_device_sit(struct gf_network_device *d, const struct gf_allreduce_cost *cost,
			  const struct gf_measure_sitting *sitting,
			  struct gf_measure_samples *samples, struct gf_error *err);

/* Transfers between neighbours, for profiler/network_parts.h. */
struct gf_measure_mover gf_network_device_mover(struct gf_network_device *d);

#endif
