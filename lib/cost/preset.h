/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef GF_COST_PRESET_H
#define GF_COST_PRESET_H

#include "base/error.h"
#include "base/text.h"
#include "cost/layer_times.h"
#include "documents/topology.h"

/*
 * GPUs by name, for estimates without a measurement: the peak rates of their makers' data sheets,
 * dense, and how much of them is assumed to be reached.
 */
enum gf_precision {
	GF_PRECISION_F32,
	GF_PRECISION_TF32,
	GF_PRECISION_F16,
	GF_PRECISION_BF16,      /* as fast as f16, where there is one */
	GF_PRECISION_PURE_BF16, /* the same, and gradients are bf16, too */
};
extern const char *const gf_precision_names[]; /* NULL-terminated */

struct gf_preset {
	const char *name;        /* h100 */
	const char *description; /* the data sheet that the figures are from */
	const char *device;      /* how drivers name it: "H100", a whole word */
	struct {
		double flops_per_s[3]; /* by precision; 0: it has none */
		double memory_bytes_per_s;
		bool no_bf16;
	};
};
extern const struct gf_preset gf_presets[]; /* name NULL ends it */

#define GF_PRESET_FLOPS_SHARE  0.5
#define GF_PRESET_MEMORY_SHARE 0.7

/* Of the first GPU of the topology; NULL: it has none, or none that is known.
 */
const struct gf_preset *gf_preset_of(const struct gf_topology *t);

/* What the user said about the hardware of an estimate. */
struct gf_rates {
	const char *gpu;    /* a preset; NULL: open */
	int precision;      /* enum gf_precision; -1: tf32, or f32 where the GPU has none */
	double flops_per_s; /* 0: open */
};

/* Without any of them, and without a GPU that is known; and the samples. */
#define GF_RATE_DEFAULT  1e12
#define GF_BATCH_DEFAULT 32

/*
 * Fills in the estimate's rates. text: what was taken, for people ("at 10 TFLOP/s"). open: the
 * words for a list of defaults, if it was one; t (may be NULL) then says the GPU. -EINVAL: no such
 * preset, or it has no such precision.
 */
int gf_rates_take(const struct gf_rates *r, const struct gf_topology *t, struct gf_estimate *in,
		  struct gf_text *text, struct gf_text *open, struct gf_error *err);

#endif
