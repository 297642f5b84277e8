/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef GF_MEASURE_CODECS_H
#define GF_MEASURE_CODECS_H

#include <stdbool.h>

#include "base/error.h"
#include "comm/comm.h"
#include "doc/processing.h"
#include "doc/profile.h"

/* Collective: the cost of each codec on the host, by the calls with which
 * messages are encoded and decoded, on one thread of every rank at once. The
 * slowest rank's counts; all ranks get the same. Takes about two tenths of a
 * second for each codec. Adds to `out`. */
int gf_measure_codecs(struct gf_comm *comm, double backward_share,
		      struct gf_processing *out, struct gf_error *err);

/*
 * Messages of a codec may also move in another way than f32, which ranks of one
 * host read from each other's memory. So messages of f32 and of each codec go
 * through the engine, by the algorithm with steps that is cheapest for them.
 * What a codec takes longer per byte, beyond what its bytes on the wire would
 * take as f32 and a tenth of that for noise, is its cost, if that is more than
 * encoding and decoding alone.
 */
struct gf_measure_codecs_run {
	struct gf_comm *comm;
	const struct gf_network *network; /* measured */
	int threads;         /* that compute beside messages, per rank */
	bool callers_memory; /* measure/chain.h */
	size_t max_bytes;    /* of a message */
	double time_s;       /* of a point, roughly */
	double timeout_s;
};

/* Collective, after gf_measure_codecs: raises the costs in `p`; all ranks get
 * the same. */
int gf_measure_codecs_run(const struct gf_measure_codecs_run *c,
			  struct gf_processing *p, struct gf_error *err);

#endif
