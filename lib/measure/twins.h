/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef GF_MEASURE_TWINS_H
#define GF_MEASURE_TWINS_H

#include <stddef.h>

#include "base/error.h"
#include "comm/comm.h"
#include "doc/profile.h"

/*
 * Algorithms that take the same steps on the ranks at hand, apart from which
 * parts of the message each step moves: on two ranks a ring, rhd and
 * blueconnect. They cost the same. They are measured once, which takes less
 * time; and a planner does not choose among them by noise.
 */

/* Collective; all ranks get the same: twins[i] is the first entry whose steps
 * are those of entry i, at most i. The caller frees. */
int gf_measure_twins(struct gf_comm *comm, const struct gf_network *net,
		     size_t **twins, struct gf_error *err);

#endif
