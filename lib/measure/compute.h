/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef GF_MEASURE_COMPUTE_H
#define GF_MEASURE_COMPUTE_H

#include <stddef.h>

#include "base/error.h"
#include "measure/step.h"
#include "comm/comm.h"
#include "doc/profile.h"

/*
 * The model half of a profile: when backward has made each gradient.
 *
 * All ranks compute at the same time, as in training, and start each repeat
 * together. A message can start when the last rank is ready, so the time of a
 * repeat is the slowest rank's, tensor by tensor; the profile holds the medians
 * of those over the repeats.
 */
struct gf_bench_compute {
	struct gf_comm *comm; /* one rank: nothing is exchanged */
	int warmup, repeats;  /* repeats >= 1 */
};

/* Interquartile ranges over the repeats. */
struct gf_bench_compute_spread {
	double forward_s, backward_s, update_s;
};

/* Collective. Fills forward_s, backward_s, update_s and the tensors (allocated,
 * in generation order) of a zeroed profile; need_s stays unknown. All ranks get
 * the same and return alike. */
int gf_bench_compute(const struct gf_bench_compute *config,
		     struct gf_bench_step *step, struct gf_model_profile *out,
		     struct gf_bench_compute_spread *spread,
		     struct gf_error *err);

#endif
