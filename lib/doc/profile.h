/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef GF_DOC_PROFILE_H
#define GF_DOC_PROFILE_H

#include <stdbool.h>
#include <stddef.h>

#include "base/dtype.h"
#include "base/error.h"
#include "doc/cost_line.h"
#include "json/json.h"

/*
 * gf-profile: what a model's backward pass and a cluster's all-reduce cost
 * (gf-profile(5)). Either half may be absent.
 */

/* Tensors stand in generation order: the order in which backward makes their
 * gradients, last layer first. */
struct gf_tensor {
	char *name;
	size_t count_elems; /* >= 1, count * width < 2^62 */
	enum gf_dtype dtype;
	double ready_s; /* from the start of backward; non-decreasing */
	double need_s;  /* from the start of the next forward; NAN: unknown */
	size_t *shape;  /* nshape dimensions, product count_elems; none: unknown
			 */
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
	double forward_s, backward_s, update_s;
	/* How much longer backward takes while messages are in flight; >= 1. */
	double overlap_slowdown;
	struct gf_tensor *tensors;
	size_t ntensors; /* >= 1 */
	char *extra;
};
size_t gf_model_profile_bytes(const struct gf_model_profile *m); /* all */
struct gf_model_profile *
gf_model_profile_copy(const struct gf_model_profile *m);
void gf_model_profile_free(struct gf_model_profile *m);

/*
 * gamma_n: by how much a message slows when n are in transfer. One entry with
 * size_bytes 0 is a table for all sizes; several are linear in log2(size)
 * between entries and constant outside. gamma[0] = 1, non-decreasing; beyond
 * the last given n = j: gamma_n = n*gamma_j/j. No entries: gamma_n = n.
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
double gf_contention_gamma(const struct gf_contention *c, size_t size_bytes,
			   int n);

/* Quality of a least-squares fit. */
struct gf_fit {
	double r_squared;
	double residual_rms; /* relative: (measured - fitted) / fitted */
	double residual_max; /* relative, absolute value */
	size_t npoints;      /* 0: no fit is recorded */
	size_t *size_bytes;  /* npoints */
	double *time_s;      /* npoints, medians */
	double *spread_s;    /* npoints, interquartile range; or NULL */
	char *extra;
};

/* One factor of a decomposition (BlueConnect), innermost first. */
struct gf_stage {
	int factor;      /* >= 2 */
	char *algorithm; /* ring | halving | shm | nccl */
	char *extra;
};

/* One algorithm's all-reduce: startup_s + per_byte_s * bytes, larger messages
 * by the lines that take its place. */
struct gf_allreduce_cost {
	char *algorithm;
	struct gf_stage *stages; /* as it was measured; none: undecomposed */
	size_t nstages;
	double startup_s, per_byte_s; /* both >= 0, not both 0 */
	struct gf_cost_line *larger;
	size_t nlarger;
	struct gf_contention contention;
	struct gf_fit fit;
	char *extra;
};

/* One level of the topology: point-to-point round, larger messages by the lines
 * that take its place, and local reduction. */
#define GF_LEVEL_LINES_MOST 8 /* in all */
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
	int ranks;                           /* measured on; 0: unknown */
	struct gf_allreduce_cost *allreduce; /* each algorithm once */
	size_t nallreduce;
	struct gf_level_cost *levels;
	size_t nlevels;
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
	struct gf_network *network;     /* NULL: absent */
	struct gf_copy_cost *copies;
	size_t ncopies;
	char *measured; /* JSON object text: host, date, commands; or NULL */
	char *extra;
};

int gf_profile_read(const struct gf_json *root, const char *file,
		    struct gf_profile *p, struct gf_error *err);
int gf_profile_check(const struct gf_profile *p, struct gf_error *err);
char *gf_profile_write(const struct gf_profile *p);
void gf_profile_release(struct gf_profile *p);
/* Moves b's halves into a where a lacks them, and its copies if a has none;
 * -EINVAL if both have one half. */
int gf_profile_combine(struct gf_profile *a, struct gf_profile *b,
		       struct gf_error *err);

/* Its lines, borrowed. */
struct gf_cost_lines gf_allreduce_lines(const struct gf_allreduce_cost *c);
struct gf_cost_lines gf_level_lines(const struct gf_level_cost *c);

/* The measured costs of the level of that name; borrowed. NULL if there are
 * none, or if net is NULL. */
const struct gf_level_cost *gf_network_level(const struct gf_network *net,
					     const char *name);
/* The entry that is cheapest for a message (ties: the first); NULL: there is
 * none; borrowed. */
const struct gf_allreduce_cost *
gf_network_cheapest(const struct gf_network *net, double bytes);
/* The network half is also part of a plan. */
struct gf_network *gf_network_copy(const struct gf_network *net);
void gf_network_free(struct gf_network *net);

#endif
