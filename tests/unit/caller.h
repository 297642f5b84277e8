/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef GF_TESTS_CALLER_H
#define GF_TESTS_CALLER_H

#include <stdint.h>

#include "base/dtype.h"
#include "base/heap.h"
#include "collectives/codecs/codec.h"
#include "gf_kernels.h"
#include "gradflow.h"
#include "libgradflow/handle.h"
#include "ranks.h"
#include "transport/comm.h"

/* A program that calls an exchange: its tensors, and where it keeps them. */
#define CALLER_TENSORS 5
static const struct gradflow_tensor caller_tensors[CALLER_TENSORS] = {
	{"e", 1, {60}}, {"d", 2, {30, 40}}, {"c", 1, {1}}, {"b", 1, {7}}, {"a", 2, {20, 30}},
};
static const size_t caller_counts[CALLER_TENSORS] = {60, 1200, 1, 7, 600};
#define CALLER_ELEMS 1868

/* In the plan's order without gaps; one by one; in the reverse order. */
enum layout { FLAT, APART, REVERSED, LAYOUTS };

struct caller {
	struct gradflow_exchange *x;
	enum gf_dtype dtypes[CALLER_TENSORS];
	void *memory;
	char *data[CALLER_TENSORS];
};

#define RULE(threshold, lanes, algorithm, codec, more)                                             \
	"{\"format\": \"gf-plan\", \"version\": 1, \"system\": \"auto\", "                         \
	"\"policy\": \"threshold\", \"rule\": "                                                    \
	"{\"threshold_bytes\": " threshold ", \"lanes\": " lanes                                   \
	", \"algorithms\": [{\"min_bytes\": 0, "                                                   \
	"\"algorithm\": \"" algorithm "\", \"codec\": \"" codec "\"}]}, " more "}"
#define DENSE       "\"selection\": {\"method\": \"dense\"}, " SYNCHRONOUS
#define SYNCHRONOUS "\"pipeline\": {\"staleness\": 1, \"warmup_steps\": 0}"

static inline void caller_lay_out(struct caller *c, enum layout layout)
{
	size_t at = 0, bytes, i, k;

	c->memory = gf_xcalloc(CALLER_ELEMS + CALLER_TENSORS * 16, 8);
	for (i = 0; i < CALLER_TENSORS; i++) {
		k = layout == REVERSED ? CALLER_TENSORS - 1 - i : i;
		bytes = gf_dtype_bytes(c->dtypes[k]);
		at = (at + bytes - 1) / bytes * bytes;
		c->data[k] = (char *)c->memory + at;
		at += caller_counts[k] * bytes + (layout == APART ? 32 : 0);
	}
}

static inline int caller_open(struct caller *c, struct gf_comm *comm, const char *plan,
			      const enum gf_dtype *dtypes, enum layout layout, struct gf_error *err)
{
	enum gradflow_dtype given[CALLER_TENSORS];
	struct gradflow_exchange_options o = {
		.size = sizeof(o),
		.former = -1,
		.dtypes = given,
		.plan_text = plan,
		.epoch_steps = 3,
		.momentum = 0.9,
		.timeout_s = TEST_PATIENCE_S,
	};
	size_t i;

	memset(c, 0, sizeof(*c));
	for (i = 0; i < CALLER_TENSORS; i++) {
		c->dtypes[i] = dtypes[i];
		for (given[i] = 0; *gf_embed_dtype(given[i]) != dtypes[i];)
			given[i]++;
	}
	caller_lay_out(c, layout);
	return gf_embed_exchange_open(comm, caller_tensors, CALLER_TENSORS, &o, NULL, &c->x, err);
}

/* The i-th tensor's gradient; count and type are right. */
static inline struct gradflow_gradient caller_gradient(const struct caller *c, size_t i)
{
	struct gradflow_gradient g = {.tensor = i, .data = c->data[i], .count = caller_counts[i]};

	while (*gf_embed_dtype(g.dtype) != c->dtypes[i])
		g.dtype++;
	return g;
}

static inline int caller_post(const struct caller *c, size_t i)
{
	const struct gradflow_gradient g = caller_gradient(c, i);

	return gradflow_exchange_post(c->x, &g, 1);
}

static inline void caller_close(struct caller *c)
{
	gradflow_exchange_close(c->x);
	free(c->memory);
}

static inline const struct gf_codec_fns *caller_codec(enum gf_dtype dtype)
{
	const struct gf_codec *codec = gf_codec_find(gf_dtype_names[dtype]);

	return &gf_kernels()->codecs[gf_codec_number(codec)];
}

static inline void caller_put(struct caller *c, size_t i, const float *values)
{
	size_t k;

	if (c->dtypes[i] != GF_F64)
		caller_codec(c->dtypes[i])->encode(c->data[i], values, caller_counts[i], 0);
	for (k = 0; c->dtypes[i] == GF_F64 && k < caller_counts[i]; k++)
		((double *)(void *)c->data[i])[k] = values[k];
}

static inline void caller_get(const struct caller *c, size_t i, float *values)
{
	size_t k;

	if (c->dtypes[i] != GF_F64)
		caller_codec(c->dtypes[i])->decode(values, c->data[i], caller_counts[i], 0);
	for (k = 0; c->dtypes[i] == GF_F64 && k < caller_counts[i]; k++)
		values[k] = (float)((double *)(void *)c->data[i])[k];
}

/* Ranks as threads, each with two communicators of the same ranks. */
struct caller_rank {
	pthread_t thread;
	struct gf_comm *comm[2];
	int rank, ranks;
	const void *c; /* the case */
	void (*body)(struct caller_rank *r);
};

static void *caller_main(void *arg)
{
	struct caller_rank *r = arg;

	r->body(r);
	return NULL;
}

/* The body closes the first communicator, with its exchange; the second is closed here. */
static inline void on_callers(int ranks, void (*body)(struct caller_rank *r), const void *c)
{
	struct caller_rank r[8];
	struct gf_comm *comms[2][8];
	struct gf_error err = {""};
	int i;

	if (gf_comm_local_new(ranks, comms[0], &err) || gf_comm_local_new(ranks, comms[1], &err))
		abort();
	for (i = 0; i < ranks; i++) {
		r[i] = (struct caller_rank){.comm = {comms[0][i], comms[1][i]},
					    .rank = i,
					    .ranks = ranks,
					    .c = c,
					    .body = body};
		if (pthread_create(&r[i].thread, NULL, caller_main, &r[i]))
			abort();
	}
	for (i = 0; i < ranks; i++)
		pthread_join(r[i].thread, NULL);
	for (i = 0; i < ranks; i++)
		gf_comm_close(comms[1][i]);
}

#endif
