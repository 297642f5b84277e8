/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef GF_DOCUMENTS_PROFILE_H
#define GF_DOCUMENTS_PROFILE_H

#include <stdbool.h>
#include <stddef.h>

#include "base/dtype.h"
#include "base/error.h"
#include "documents/algorithm_traits.h"
#include "documents/cost_line.h"
#include "documents/processing_cost.h"
#include "documents/stage_list.h"
#include "json/json.h"

/*
 * gf-profile: what a model's backward pass and a cluster's all-reduce cost (gf-profile(5)). Either
 * half may be absent, and the model half may be whole passes alone.
 */

/* Statistics of a tensor's gradients over steps of a training (gf-train --statistics). */
struct gf_gradient {
	double rms;
	/* The largest magnitude of so many neighbours by their rms, in the root of the mean square
	 * over ranks' own gradients and as much over the exact means. */
#define GF_GRADIENT_PEAK_ELEMS 1024
	double peak;
	double zeros;       /* the share of elements that are 0 */
	double correlation; /* between two ranks, -1 to 1 */
	char *extra;
};

/* Tensors stand in generation order: the order in which backward makes their gradients, last layer
 * first. */
struct gf_tensor {
	char *name;
	size_t count_elems; /* >= 1, count * width < 2^62 */
	enum gf_dtype dtype;
	double ready_s; /* from the start of backward; non-decreasing */
	double need_s;  /* from the start of the next forward; NAN: unknown */
	/* What forward keeps until this gradient is made (gf_model_keep), of a micro-batch of a
	 * rank; 0: nothing, or, where no tensor has any, unknown. */
	size_t activation_bytes;
	struct gf_gradient *gradient; /* NULL: unknown */
	size_t *shape;                /* nshape dimensions, product count_elems; none: unknown */
	size_t nshape;
	char *extra;
};
/* The tensor's shape; it has none yet. */
void gf_tensor_set_shape(struct gf_tensor *t, const size_t *dims, size_t n);
size_t gf_tensor_bytes(const struct gf_tensor *t);

struct gf_model_profile {
	char *name;
	char *device;          /* cpu, cuda; or what an importer was told */
	size_t batch_per_rank; /* 0: unknown */
	/* Micro-batches whose gradients are added up before they are exchanged; 0: one. All but the
	 * last one's forward and backward are in forward_s, for no message starts before they have
	 * ended. */
	size_t accumulate;
	double forward_s, backward_s, update_s;
	/* Interquartile ranges of forward, backward and update over the repeats, added up; 0:
	 * unknown. */
	double spread_s;
	/* By what share another run's compute may differ, as far as times that were measured apart
	 * from each other tell; 0: unknown. */
	double drift;
	/* How much longer backward takes while messages are in flight; >= 1. */
	double overlap_slowdown;
	/* What one message costs the compute side, which waits for it. */
	double issue_s;
	struct gf_tensor *tensors;
	size_t ntensors; /* >= 1 */
	char *extra;
};
/* The device of a model whose times are estimated. */
#define GF_DEVICE_ESTIMATE "estimate"
/* Is that a GPU, which exchanges by NCCL? NULL: no. Of estimates it is not known, so they are taken
 * for a processor's. */
bool gf_device_is_gpu(const char *device);
size_t gf_model_profile_bytes(const struct gf_model_profile *m); /* all */
size_t gf_model_profile_elems(const struct gf_model_profile *m); /* all */
/* What forward keeps for backward; 0: unknown. */
size_t gf_model_profile_activations(const struct gf_model_profile *m);
/* A profile that knows no times, of f32 tensors whose names and sizes are the caller's to fill in.
 */
struct gf_model_profile *gf_model_profile_untimed(const char *name, size_t ntensors);
struct gf_model_profile *gf_model_profile_copy(const struct gf_model_profile *m);
void gf_model_profile_free(struct gf_model_profile *m);
size_t gf_model_micro_batches(const struct gf_model_profile *m); /* >= 1 */
/* The forward of one of them. */
double gf_model_forward_s(const struct gf_model_profile *m);
/* Gives the model that many. */
void gf_model_accumulate(struct gf_model_profile *m, size_t micro_batches);
/* Forward, backward and what happens in them take `factor` times as long. */
void gf_model_slow(struct gf_model_profile *m, double factor);

/* What whole passes of a model take, where no more is known; its layers' times follow
 * (cost/layer_times.h). */
struct gf_passes {
	char *model;  /* of a shipped one */
	char *device; /* NULL: unknown */
	size_t batch_per_rank;
	size_t accumulate;            /* micro-batches per step; 0: one */
	double forward_s, backward_s; /* of one of them; backward_s > 0 */
	char *extra;
};

/*
 * gamma_n: by how much a message slows when n are in transfer. One entry with size_bytes 0 is a
 * table for all sizes; several are linear in log2(size) between entries and constant outside.
 * gamma[0] = 1, non-decreasing; beyond the last given n = j: gamma_n = n*gamma_j/j. No entries:
 * gamma_n = n.
 */
struct gf_contention_entry {
	size_t size_bytes;
	double *gamma;
	size_t ngamma;
	char *extra;
};
struct gf_contention {
	struct gf_contention_entry *entries;
	size_t nentries;
};
/* gamma_n for a message of that size; n >= 1. */
double gf_contention_gamma(const struct gf_contention *c, size_t size_bytes, int n);
/* gamma_n in two steps, for one size and many n: the size's neighbours in the table, and gamma_n
 * there. A zeroed place: gamma_n = n. Borrows from c. */
struct gf_contention_place {
	const struct gf_contention_entry *below, *above;
	double share; /* of `above` */
};
struct gf_contention_place gf_contention_find(const struct gf_contention *c, size_t size_bytes);
double gf_contention_at(const struct gf_contention_place *p, int n);

/* What messages and backward do to each other while both run. */
struct gf_beside_backward {
	/* How much longer backward takes with 1, 2, ... messages in flight; the last holds for
	 * more. None: the model's overlap_slowdown. All >= 1. */
	double *compute_slowdown;
	size_t ncompute_slowdown;
	/* How much longer a message takes, startup and bytes; 0: as 1. */
	double message_slowdown;
	/* What its startup takes besides: a communication thread beside compute sleeps between its
	 * looks. */
	double startup_extra_s;
	char *extra;
};

/* One algorithm's all-reduce, or a half of it by itself: startup_s + per_byte_s * bytes, larger
 * messages by the lines that take its place. The bytes of a half are the whole message's, too. */
struct gf_allreduce_cost {
	char *algorithm;
	enum gf_coll_half collective;
	char *codec;             /* NULL: f32 */
	struct gf_stage *stages; /* as it was measured; none: undecomposed */
	size_t nstages;
	double startup_s, per_byte_s; /* both >= 0, not both 0 */
	struct gf_cost_line *larger;
	size_t nlarger;
	struct gf_contention contention;
	struct gf_beside_backward beside;
	struct gf_fit fit;
	char *extra;
};

/* One level of the topology: point-to-point round, larger messages by the lines that take its
 * place, and local reduction. */
#define GF_LEVEL_LINES_MOST 10 /* in all */
struct gf_level_cost {
	char *name;
	double alpha_s, beta_s_per_byte, reduce_s_per_byte;
	struct gf_cost_line *larger;
	size_t nlarger;
	struct gf_contention contention;
	struct gf_fit fit;
	char *extra;
};

struct gf_network {
	int ranks; /* measured on; 0: unknown */
	/* each algorithm once per collective, codec and stages */
	struct gf_allreduce_cost *allreduce;
	size_t nallreduce;
	struct gf_level_cost *levels;
	size_t nlevels;
	double drift; /* as the model's, of messages */
	/* A library's blocking all-reduce, told how to go (documents/library_tuning.h): `algorithm`
	 * is what it was told. No plan has such messages. */
	char *library; /* its name and version; NULL: unknown */
	int hosts;     /* of the ranks; 0: unknown */
	struct gf_allreduce_cost *variants;
	size_t nvariants;
	char *extra;
};

/* A copy between a host and a GPU, or within one. */
struct gf_copy_cost {
	char *name; /* host-to-device, device-to-host, within-device */
	double alpha_s, beta_s_per_byte;
	struct gf_fit fit;
	char *extra;
};

struct gf_profile {
	char *producer;
	struct gf_model_profile *model; /* NULL: absent */
	struct gf_passes *passes;       /* in place of model; NULL: absent */
	struct gf_network *network;     /* NULL: absent */
	struct gf_copy_cost *copies;
	size_t ncopies;
	struct gf_processing processing;
	char *measured; /* JSON object text: host, date, commands; or NULL */
	char *extra;
};

int gf_profile_check(const struct gf_profile *p, struct gf_error *err);
/* One line on how far the measurements can be trusted, with a cause and advice; nothing if there is
 * nothing to say. */
void gf_profile_quality(const struct gf_profile *p, struct gf_text *out);
/* A line for each size at which a cost falls: the sizes before it that take longer, which a plan
 * avoids. name: of what takes that long. Of a profile, those of its collectives. */
void gf_cost_falls(const char *name, const struct gf_cost_lines *lines, struct gf_text *out);
void gf_profile_falls(const struct gf_profile *p, struct gf_text *out);
char *gf_profile_write(const struct gf_profile *p);
void gf_profile_release(struct gf_profile *p);
/* Moves b's halves into a where a lacks them, its copies if a has none, and its costs of codecs and
 * selections as gf_processing_add. Passes give way to the times of their model's layers. Two
 * networks are one if they are variants of one library between the same ranks, each once, and only
 * one of them has more. -EINVAL if both have one half otherwise. */
int gf_profile_combine(struct gf_profile *a, struct gf_profile *b, struct gf_error *err);

/* The codec that it was measured with; borrowed. */
const char *gf_allreduce_codec(const struct gf_allreduce_cost *c);
/* "blueconnect 2:shm 4:ring reduce_scatter"; the caller frees. */
char *gf_allreduce_text(const struct gf_allreduce_cost *c);
/* Was it measured of whole all-reduces with gradients as they are? */
bool gf_allreduce_plain(const struct gf_allreduce_cost *c);
/* What it and backward do to each other; borrowed. NULL: nothing is known. */
const struct gf_beside_backward *gf_beside_backward_of(const struct gf_allreduce_cost *c);
/* Its lines, borrowed. */
struct gf_cost_lines gf_allreduce_lines(const struct gf_allreduce_cost *c);
struct gf_cost_lines gf_level_lines(const struct gf_level_cost *c);

/* The measured costs of the level of that name; borrowed. NULL if there are none, or if net is
 * NULL. */
const struct gf_level_cost *gf_network_level(const struct gf_network *net, const char *name);
/* The entry that is cheapest for a message of f32 (ties: the first); NULL: there is none;
 * borrowed. */
const struct gf_allreduce_cost *gf_network_cheapest(const struct gf_network *net, double bytes);
/* The network half is also part of a plan. */
struct gf_network *gf_network_copy(const struct gf_network *net);
/* *copy = *cost, with everything owned anew. */
void gf_allreduce_cost_copy(struct gf_allreduce_cost *copy, const struct gf_allreduce_cost *cost);
void gf_network_free(struct gf_network *net);

#endif
