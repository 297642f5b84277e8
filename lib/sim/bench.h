/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef GF_SIM_BENCH_H
#define GF_SIM_BENCH_H

#include "sim/derived.h"
#include "sim/replay.h"

/*
 * An algorithm's schedules on the network of a closed form, to be replayed at
 * any size: that of an element is the replay's, their number the schedule's.
 */
struct gf_replay_bench {
	const struct gf_algorithm *algorithm;
	struct gf_coll_args args;
	const struct gf_cost_net *net;
	struct gf_replay_input on;
	struct gf_level *levels;
	struct gf_cost_lines *lines;
	double *reduce_s_per_byte;
	struct gf_schedule *ranks;
	size_t nsteps;
	size_t nreplayed; /* steps so far */
};

/* -E2BIG: more than GF_DERIVED_STEPS_MOST steps. Released in either case; the
 * network is borrowed. */
int gf_replay_bench_init(struct gf_replay_bench *b,
			 const struct gf_algorithm *a,
			 const struct gf_coll_args *args,
			 const struct gf_cost_net *net);
void gf_replay_bench_release(struct gf_replay_bench *b);

/* `n` messages at once, each of so many bytes; NAN: too many steps. */
double gf_replay_bench_s(struct gf_replay_bench *b, double bytes, size_t n);

/* The lines of one message's cost, to be freed; none where the closed form
 * holds. */
struct gf_derived_line *gf_replay_bench_lines(struct gf_replay_bench *b,
					      size_t *nlines);

#endif
