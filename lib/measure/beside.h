/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef GF_MEASURE_BESIDE_H
#define GF_MEASURE_BESIDE_H

#include <stdbool.h>

#include "contest/device.h"
#include "doc/profile.h"
#include "measure/compute_step.h"

/*
 * What messages cost backward and backward costs messages, for a profile with
 * both halves: the model's overlap_slowdown and issue_s, and beside_backward of
 * each algorithm, with one message in flight and more. The cheapest algorithm
 * comes first, and the others follow as long as there is time. By NCCL only the
 * model's figure is measured.
 */
struct gf_measure_beside {
	struct gf_comm *comm;
	const struct gf_contest_device *device;
	int lanes, threads, repeats;
	bool callers_memory; /* measure/chain.h */
	double budget_s, timeout_s;
};

/* Collective; all ranks get the same. */
int gf_measure_beside(const struct gf_measure_beside *config,
		      struct gf_measure_step *step, struct gf_profile *profile,
		      struct gf_error *err);

#endif
