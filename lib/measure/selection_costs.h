/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef GF_MEASURE_SELECTION_COSTS_H
#define GF_MEASURE_SELECTION_COSTS_H

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"
#include "comm/comm.h"
#include "doc/processing.h"

struct gf_measure_selections {
	struct gf_comm *comm;
	int threads;        /* that compute beside messages, per rank */
	size_t max_bytes;   /* of a message; three sizes are measured anyway */
	size_t model_bytes; /* a size, too, up to a limit; 0: none */
	double backward_share; /* doc/processing.h; of all entries */
	bool callers_memory;   /* measure/chain.h */
	double time_s;         /* of a size, roughly */
	double timeout_s;
};

/*
 * Collective: what each selection of the registry, with its default keys, adds
 * to a dense message of f32 on the host: seconds in its hooks and in merging
 * sets on the thread that moves messages, in its part on the compute thread,
 * and in compute, which then finds less of its own memory in the caches: by how
 * much a pass takes longer than the same again. The message goes through the
 * engine that training uses, and its selection is in the steady state, after
 * any warm-up. As in training, compute works on as much memory as weights,
 * momentum and activations may take, and then writes the gradients. A second
 * share of elements tells what goes out
 * from passes over all gradients. The slowest rank's median counts; all ranks
 * get the same. Adds to `out`, and to the codecs there that may overflow what
 * multiplying by a loss scale takes.
 */
int gf_measure_selections(const struct gf_measure_selections *c,
			  struct gf_processing *out, struct gf_error *err);

#endif
