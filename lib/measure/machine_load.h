/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef GF_MEASURE_MACHINE_LOAD_H
#define GF_MEASURE_MACHINE_LOAD_H

#include "base/error.h"
#include "comm/comm.h"

/*
 * How busy the processors of the machines were during a measurement, and how
 * much of that other programs were: what /proc/stat counts beside the ranks'
 * own time. On a system without /proc/stat nothing is known.
 */
struct gf_measure_load {
	double began_s, busy_s, own_s; /* at the start; busy_s < 0: unknown */
};

/* Of the machine on which other programs took most; in processors, on average.
 * processors are those that the ranks may run on, and others what other
 * programs took of these at least. */
struct gf_measure_load_found {
	int ranks, processors; /* 0: unknown */
	double own, others;
};

void gf_measure_load_begin(struct gf_measure_load *l);
/* Collective; all ranks get the same. */
int gf_measure_load_end(const struct gf_measure_load *l, struct gf_comm *comm,
			struct gf_measure_load_found *found,
			struct gf_error *err);

#endif
