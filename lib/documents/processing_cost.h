/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef GF_DOCUMENTS_PROCESSING_COST_H
#define GF_DOCUMENTS_PROCESSING_COST_H

#include <stdbool.h>
#include <stddef.h>

#include "documents/cost_line.h"

struct gf_record;

#define GF_PROCESSING_MOST 4096 /* entries of a list */

/*
 * What messages cost beside the network, per device: encoding and decoding, and choosing gradients
 * (gf-profile(5)). A profile and a plan have it at top level.
 */

/* What every entry begins with: each pair of a name and a device is there once.
 */
struct gf_processing_entry {
	char *name, *device;
	bool assumed; /* shipped, not measured on this machine */
	/* Of the time on the thread that moves messages, the share that backward loses beside it: 1
	 * where both want one processor. */
	double backward_share;
	struct gf_fit fit;
	char *extra;
};

/* Per byte of f32, on one thread as the runtime uses it. */
struct gf_codec_cost {
	struct gf_processing_entry of; /* a codec */
	double encode_s_per_byte;
	double decode_s_per_byte; /* with the sum where a step adds */
	/* Per byte of a set's values as f32: with its indices. */
	double set_encode_s_per_byte, set_decode_s_per_byte;
	/* Of a message of sums: to multiply gradients by the loss scale before it goes, and divide
	 * by it after. */
	double scale_s_per_byte;
};

/*
 * One message of f32 gradients: all that a dense message does not do. Passes over its gradients
 * take alpha_s + beta_s_per_byte * bytes; where there is a fit, as much per byte as a message took
 * that was as large as the whole model: all of a step's gradients have gone through the caches
 * since a message was there last. What goes out and comes in takes sent_s_per_byte more, of f32 and
 * indices before any codec.
 */
struct gf_selection_cost {
	struct gf_processing_entry of; /* a selection */
	double alpha_s, beta_s_per_byte, sent_s_per_byte;
};

/* A message's passes, of a model of so many bytes. */
double gf_selection_passes_s(const struct gf_selection_cost *c, double message_bytes,
			     double model_bytes);

struct gf_processing {
	struct gf_codec_cost *codecs;
	size_t ncodecs;
	struct gf_selection_cost *selections;
	size_t nselections;
};

/* The entry for that device; borrowed. NULL: there is none. */
const struct gf_codec_cost *gf_processing_codec(const struct gf_processing *p, const char *codec,
						const char *device);
const struct gf_selection_cost *gf_processing_selection(const struct gf_processing *p,
							const char *method, const char *device);

/* The entry of a selection, to be changed: a new one, of no cost, if there is none. It is no longer
 * assumed, and has no fit. */
struct gf_selection_cost *gf_processing_selection_of(struct gf_processing *p, const char *method,
						     const char *device);

/* Copies to `to` the entries that it lacks, and those that were measured where its own is
 * assumed. */
void gf_processing_add(struct gf_processing *to, const struct gf_processing *from);
void gf_processing_release(struct gf_processing *p);

/* For lib/documents alone: the entries' tables, and the check of both lists under the cursor. */
struct gf_json_at;
struct gf_error;
extern const struct gf_record gf_codec_cost_record;
extern const struct gf_record gf_selection_cost_record;
int gf_processing_check(const struct gf_json_at *at, const struct gf_processing *p,
			struct gf_error *err);

#endif
