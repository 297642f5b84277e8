/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef GF_PROFILER_PAIRS_H
#define GF_PROFILER_PAIRS_H

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"
#include "base/text.h"
#include "transport/comm.h"

/*
 * Every link by itself: one rank of each host (on one host: all ranks) sends to every other one,
 * first the one way, then the other. In each round all members are busy in disjoint pairs, as in a
 * tournament: N - 1 rounds for N members, N if N is odd.
 */
struct gf_measure_pairs_config {
	struct gf_comm *comm;
	double budget_s; /* for everything, about */
	double timeout_s;
	/* (optional) */
	void (*progress)(void *ctx, double fraction, const char *what);
	void *progress_ctx;
};

struct gf_measure_pairs {
	size_t count;
	bool hosts;   /* several; else the ranks of one */
	char **names; /* of hosts; "rank 3" on one host */
	int *ranks;
	/* count x count, [from * count + to]; 0 on the diagonal */
	double *rate_bytes_per_s;
	double *latency_s; /* half of there and back */
};

/* Collective; all ranks get the same. -EINVAL: there is one rank, and no link. */
int gf_measure_pairs(const struct gf_measure_pairs_config *config, struct gf_measure_pairs *pairs,
		     struct gf_error *err);
void gf_measure_pairs_release(struct gf_measure_pairs *pairs);

/* A member's partner in a round; -1: none. round < gf_measure_pair_rounds. */
size_t gf_measure_pair_rounds(size_t count);
int gf_measure_pair_of(size_t count, size_t round, size_t member);

/*
 * A slow host has no fast link: its best is below GF_MEASURE_SLOW of the median host's best,
 * sending or receiving (of 3 members or more: of two nobody knows which). A slow path is below it
 * though both ends have faster ones. Ranks of one host are not judged: their rates differ by which
 * rank had the processor.
 */
#define GF_MEASURE_SLOW 0.7
struct gf_measure_pairs_verdict {
	double *best_send, *best_receive; /* count, bytes per second */
	double median_send, median_receive;
	bool *slow_send, *slow_receive; /* count */
	bool *slow_path;                /* count x count */
	bool any;
};
void gf_measure_pairs_judge(const struct gf_measure_pairs *pairs,
			    struct gf_measure_pairs_verdict *verdict);
void gf_measure_pairs_verdict_release(struct gf_measure_pairs_verdict *verdict);

/* A table for people (of many members: a row each, not a column each) and what is slow. */
void gf_measure_pairs_table(const struct gf_measure_pairs *pairs,
			    const struct gf_measure_pairs_verdict *verdict, size_t window,
			    struct gf_text *out);

/* Collective: measures, judges and writes, on every rank the same. Errors as gf_measure_pairs'. */
int gf_measure_pairs_report(const struct gf_measure_pairs_config *config, bool json, size_t window,
			    struct gf_text *out, struct gf_error *err);

#endif
