/* SPDX-License-Identifier: BSD-3-Clause */
/* lib/simulator/whatif: what a plan takes on slower ranks and links, and with times that vary. */
#ifndef GF_WHATIF_WHATIF_H
#define GF_WHATIF_WHATIF_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "documents/plan.h"
#include "documents/topology.h"
#include "simulator/gantt.h"

/*
 * A plan in other circumstances. Zero and NULL: as the plan has it.
 */
struct gf_slow_rank {
	int rank;
	double factor; /* its compute takes so many times as long; > 0 */
};

/* A link of the rank with 1/factor of its bandwidth: the narrowest on its way to others, or that of
 * the level of this name. A link may be named twice. */
struct gf_what_link {
	int rank;
	char *level;    /* NULL: the narrowest */
	double out, in; /* factors, > 0 */
};

struct gf_what_if {
	int ranks;
	const struct gf_level *levels; /* costs by closed forms on these */
	size_t nlevels;
	const struct gf_network *network; /* measured elsewhere */
	double bandwidth_bytes_per_s;     /* of the outermost level */
	const struct gf_slow_rank *slow;
	size_t nslow;
	const struct gf_what_link *slow_links;
	size_t nslow_links;
	/* Every rank's compute takes max(0, 1 + jitter*N(0,1)) times as long, drawn anew in each of
	 * `runs` iterations. Stale gradients: these are consecutive steps of a pipeline
	 * (simulator/pipeline.h). */
	double jitter;
	/* Every message starts up later by an exponential deviate of this mean, drawn anew in each
	 * of the runs. */
	double network_jitter_s;
	size_t runs; /* 0: 1 */
	uint64_t seed;
	struct gf_beyond *beyond; /* to be added to; or NULL */
	bool timeline;            /* the outcome is to have one */
	double iterations;        /* of a whole run, for total_s; 0: not asked for */
	size_t epoch_steps;       /* of it; 0: not known */
	size_t period_steps;      /* of a plan with a period; 0: the plan's */
};

/*
 * compute_s is one rank's, and exposed_comm_s is the rest of the iteration, including the cost of
 * slow ranks. Both are without jitter, as the messages are. Speed-up is relative to one rank, P *
 * compute_s / iteration_s; efficiency is speed-up / P. Both use the median if there is jitter
 * (ASC-WFBP section VI-E, BlueConnect Figure 3); of a pipeline, whose steps make up for each other,
 * the mean. Without jitter least_s to mean_s are 0.
 * Jitter is of compute, or of the network.
 */
struct gf_outcome {
	int ranks;
	double bandwidth_bytes_per_s; /* 0: not asked for */
	double iteration_s, compute_s, exposed_comm_s;
	double low_s, high_s; /* of iteration_s (simulator/uncertainty.h); both 0: no doubt */
	double efficiency_low, efficiency_high; /* by these */
	/* What backward can hide of the bytes' time on the wire without any startup, and the
	 * speed-up if it did (ASC-WFBP Eqs. 41, 42); 0 of a plan with several lanes, stale
	 * gradients or split messages, of which more is hidden. */
	double hideable_s, largest_speedup;
	/* An iteration if `staleness` steps computed and exchanged beside each other for nothing
	 * (Pipe-SGD Eq. 3). */
	double unlimited_s;
	double communication_s; /* first start to last end */
	double slowest_s;       /* compute_s of the slowest rank, no jitter */
	double synchronous_s;   /* an iteration if none were stale; as above */
	double backward_end_s, forward_end_s;
	double speedup, efficiency;
	double samples_per_s; /* 0: the batch is not known */
	double error;         /* of the mean gradients; 0: unknown; and if it is of note */
	double error_of_note;
	double memory_bytes; /* that a rank holds at the most; 0: not asked for */
	/* Of what.iterations, one after the other: those of a pipeline's warm-up synchronous, the
	 * others with what pipelining fills and drains (Pipe-SGD Eq. 4), those of a selection's
	 * warm-up with what they send. Epochs of unknown length are taken to have no steps. */
	double total_s;
	/* Of a plan with a period (simulator/period_time.h), else 0: H, a period, its outer
	 * exchange and what of that is exposed. The iteration is the mean over a period. Messages
	 * and doubt are those of a step of the slowest group. */
	double period_steps, period_s, outer_s, outer_exposed_s;
	double least_s, p50_s, p90_s, p99_s, most_s, mean_s; /* over runs */
	struct gf_predicted_message *messages;               /* the plan's nmessages */
	/* NULL unless wanted. With jitter: the iteration of the median run, or two steps of the
	 * pipeline as they were drawn. */
	struct gf_gantt *timeline;
};

/* Does one run differ from the next? */
bool gf_what_if_varies(const struct gf_what_if *w);

/* Where something is in doubt, three simulations, each of all runs. */
int gf_what_if(const struct gf_plan *p, const struct gf_what_if *w, struct gf_outcome *out,
	       struct gf_error *err);
/* How much longer the slowest rank computes, without jitter. */
double gf_what_if_slowest(const struct gf_what_if *w, int ranks);
/* The rest of an outcome that has ranks, messages and the iteration, from a result of p without
 * jitter. */
void gf_outcome_finish(struct gf_outcome *o, const struct gf_plan *p,
		       const struct gf_sim_result *r);
void gf_outcome_release(struct gf_outcome *out);

#endif
