/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef GF_TRAIN_CORES_H
#define GF_TRAIN_CORES_H

#include "base/error.h"
#include "comm/comm.h"

/* Who computes where on this machine, from all ranks' affinity masks. */
struct gf_cores {
	int own;     /* cores in this rank's mask */
	int sharing; /* ranks with the same mask here, this one included */
	int ranks;   /* ranks on this machine */
	int all;     /* cores in the union of their masks */
};

/* Collective, without an engine. Machines are told apart by their kernel's
 * boot, so that containers of one machine count together. */
int gf_cores_find(struct gf_comm *comm, struct gf_cores *cores,
		  struct gf_error *err);

/* This rank's fair share of its mask, at least 1. */
int gf_cores_threads(const struct gf_cores *cores);

#endif
