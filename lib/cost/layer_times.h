/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef GF_COST_LAYER_TIMES_H
#define GF_COST_LAYER_TIMES_H

#include <stddef.h>

#include "base/error.h"
#include "base/text.h"
#include "documents/models/model.h"
#include "documents/profile.h"

/*
 * Estimates when a model's gradients are ready on hardware that was not measured.
 *
 * A roofline (Williams, Waterman, Patterson 2009): a layer takes as long as its FLOPs, but not less
 * than the bytes it moves allow: by the memory's rate, or GF_ESTIMATE_BALANCE FLOPs' time per byte,
 * which is where GPUs of the papers' years lie (P100 13, V100 16, RTX 2080 Ti 22). This is the
 * floor of cheap layers: batch norm, ReLU and pooling are never free. Forward moves a layer's
 * inputs, outputs and parameters once, backward twice.
 */
#define GF_ESTIMATE_BALANCE 16.0

/* How a pass is shared out over the layers: by the roofline, by FLOPs alone, or evenly over trained
 * tensors. A pass whose time is not given takes as long as the roofline says, whatever the
 * shares. */
enum gf_shares { GF_SHARES_ROOFLINE, GF_SHARES_FLOPS, GF_SHARES_EVEN };
extern const char *const gf_shares_names[]; /* NULL-terminated */

struct gf_estimate {
	size_t batch; /* samples per rank, >= 1 */
	/* One of the two: a rate, > 0, ... */
	double flops_per_s;
	double memory_bytes_per_s; /* 0: the balance */
	size_t element_bytes;      /* of what a layer reads and writes; 0: 4 */
	enum gf_dtype gradients;
	/* ... or the passes' total times, which are shared out (rate 0). */
	double forward_s, backward_s;
	enum gf_shares shares;
};

/*
 * A profile in generation order; all gradients of a layer are ready when its backward step ends
 * (with even shares one after the other), and needed when its next forward step begins. What
 * forward keeps is gf_model_activations. update_s is 0. *profile belongs to the caller
 * (gf_model_profile_free). -EINVAL: no batch, neither rate nor times, or a model without
 * parameters.
 */
int gf_model_estimate(const struct gf_model *m, const struct gf_estimate *in,
		      struct gf_model_profile **profile, struct gf_error *err);
/* A line for people: whose times are estimated, of how many samples of which shape; rate: the words
 * for the estimate's rates. */
void gf_estimate_note(const struct gf_model *m, const struct gf_estimate *in, const char *rate,
		      struct gf_text *notes);

/* The profile that whole passes of m stand for, by gf_model_estimate; in steps of their
 * micro-batches. -EINVAL: m is another model than theirs. */
int gf_passes_spread(const struct gf_passes *passes, const struct gf_model *m,
		     enum gf_shares shares, struct gf_model_profile **profile,
		     struct gf_error *err);

#endif
