/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef GF_PROFILER_MODEL_TIMES_H
#define GF_PROFILER_MODEL_TIMES_H

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"
#include "profiler/compute_step.h"
#include "transport/comm.h"
#include "documents/profile.h"

/*
 * The model half of a profile: when backward has made each gradient.
 *
 * All ranks compute at the same time, as in training, and start each repeat together. A message can
 * start when the last rank is ready, so the time of a repeat is the slowest rank's, tensor by
 * tensor; the profile holds the medians of those over the repeats of all sittings. A machine's
 * speed changes from second to second, so sittings apart from each other tell more than one.
 */
struct gf_measure_compute {
	struct gf_comm *comm; /* one rank: nothing is exchanged */
	int warmup, repeats;  /* of a sitting; repeats >= 1 */
	/* Gradients are on the host, and ranks exchange them before the update, as in training.
	 * Compute is slower after that: it has waited, and another thread has touched its
	 * memory. */
	bool exchanges;
	int threads;      /* that compute, per rank */
	double timeout_s; /* of exchanges without progress; 0: none */
	/* (optional) told after each repeat, for a progress bar */
	void (*progress)(void *ctx, double fraction, const char *what);
	void *progress_ctx;
};

/* Of all sittings; the same on all ranks. Zero-initialise. */
struct gf_measure_compute_times {
	double *rows; /* one per repeat */
	size_t nrows;
	size_t *first; /* nsittings: their first rows */
	size_t nsittings;
	double repeat_s; /* of the last sitting: all of a repeat, about */
};
void gf_measure_compute_release(struct gf_measure_compute_times *t);

/* Interquartile ranges over the repeats. */
struct gf_measure_compute_spread {
	double forward_s, backward_s, update_s;
};

/* Collective: one sitting, whose repeats are added. All ranks return alike. */
int gf_measure_compute(const struct gf_measure_compute *config, struct gf_measure_step *step,
		       struct gf_measure_compute_times *t, struct gf_error *err);
/* Fills forward_s, backward_s, update_s, drift and the tensors (allocated if there are none, in
 * generation order) of a profile; need_s of new ones is unknown. There has been a sitting. */
void gf_measure_compute_conclude(const struct gf_measure_compute_times *t,
				 const struct gf_measure_step *step, struct gf_model_profile *out,
				 struct gf_measure_compute_spread *spread);

#endif
