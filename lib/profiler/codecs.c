/* SPDX-License-Identifier: BSD-3-Clause */
#include "profiler/profile_parts.h"

#include <math.h>

#include "base/clock.h"
#include "base/heap.h"
#include "base/rng.h"
#include "collectives/algorithm.h"
#include "collectives/codecs/codec.h"
#include "collectives/codecs/encode.h"
#include "cost/stat.h"
#include "profiler/chain.h"

/* About what one transfer encodes (exec's segments): it stays in the cache. */
enum { ELEMS = 1 << 16, SITTINGS = 9 };
/* A set, sparse as those of gradients are. */
enum { SET_AMONG = 1 << 20, SET_ELEMS = 1 << 13 };
static const double longest_s = 0.005; /* a sitting */

struct bench {
	const struct gf_codec *codec;
	float *data;
	void *wire;
	uint32_t *index; /* of a set, SET_ELEMS */
	double sitting_s;
};

static void encode(const struct bench *b)
{
	gf_codec_send(b->codec, b->wire, b->data, ELEMS);
}

static void decode(const struct bench *b)
{
	gf_codec_decode_add(b->codec, b->data, b->wire, ELEMS);
}

static void encode_set(const struct bench *b)
{
	gf_codec_write_set(b->codec, SET_AMONG, b->wire, b->index, b->data, SET_ELEMS);
}

static void decode_set(const struct bench *b)
{
	(void)gf_codec_read_set(b->codec, SET_AMONG, b->wire, b->index, b->data, SET_ELEMS);
}

static void fill(float *data)
{
	struct gf_rng rng;

	gf_rng_init(&rng, 1, 0);
	for (size_t i = 0; i < ELEMS; i++)
		data[i] = (float)(gf_rng_uniform(&rng) - 0.5);
}

static void fill_set(uint32_t *index)
{
	const uint32_t step = SET_AMONG / SET_ELEMS;
	struct gf_rng rng;

	gf_rng_init(&rng, 2, 0);
	for (uint32_t i = 0; i < SET_ELEMS; i++)
		index[i] = i * step + (uint32_t)gf_rng_below(&rng, step);
}

/* Seconds per byte of f32: the median of the sittings. */
static double per_byte_s(const struct bench *b, size_t elems, void (*work)(const struct bench *b))
{
	double times[SITTINGS], start_s, passed_s;
	int i, n;

	for (i = 0; i < SITTINGS; i++) {
		fill(b->data); /* sums of sums would grow */
		work(b);
		start_s = gf_clock_s();
		n = 0;
		do {
			work(b);
			n++;
			passed_s = gf_clock_s() - start_s;
		} while (passed_s < b->sitting_s);
		times[i] = passed_s / (n * (double)elems * sizeof(float));
	}
	return gf_stat_median(times, SITTINGS);
}

static void add(struct gf_processing *out, const char *codec, const double costs[4],
		double backward_share)
{
	struct gf_codec_cost *c;

	out->codecs = gf_xreallocarray(out->codecs, out->ncodecs + 1, sizeof(*out->codecs));
	c = &out->codecs[out->ncodecs++];
	*c = (struct gf_codec_cost){
		.of = {.name = gf_xstrdup(codec),
		       .device = gf_xstrdup("cpu"),
		       .backward_share = backward_share},
		.encode_s_per_byte = costs[0],
		.decode_s_per_byte = costs[1],
		.set_encode_s_per_byte = costs[2],
		.set_decode_s_per_byte = costs[3],
	};
}

int gf_measure_codecs(struct gf_comm *comm, double backward_share, double time_s,
		      struct gf_processing *out, struct gf_error *err)
{
	struct bench b = {.data = gf_xcalloc(ELEMS, sizeof(float)),
			  .index = gf_xcalloc(SET_ELEMS, sizeof(uint32_t)),
			  .sitting_s = fmin(time_s / SITTINGS, longest_s)};
	double costs[4];
	int i, rc = 0;

	fill_set(b.index);

	for (i = 0; i < GF_CODECS && rc == 0; i++) {
		if (gf_codecs[i].plain)
			continue;
		b.codec = &gf_codecs[i];
		b.wire = gf_xcalloc(1, gf_codec_wire_bytes(b.codec, ELEMS));
		fill(b.data);
		rc = gf_comm_barrier(comm, err);
		if (rc == 0) {
			encode(&b);
			costs[1] = per_byte_s(&b, ELEMS, decode);
			costs[0] = per_byte_s(&b, ELEMS, encode);
			costs[2] = per_byte_s(&b, SET_ELEMS, encode_set);
			costs[3] = per_byte_s(&b, SET_ELEMS, decode_set);
			rc = gf_measure_slowest(comm, costs, 4, err);
		}
		if (rc == 0)
			add(out, b.codec->name, costs, backward_share);
		free(b.wire);
	}
	free(b.data);
	free(b.index);
	return rc;
}

/* --- through the runtime -------------------------------------------------- */

/* The slope of a line through two sizes. Each repeat is some messages, the longer of which are as
 * much as the model's gradient, up to a limit. */
static const size_t least_bytes = (size_t)64 << 10;
static const size_t most_bytes = (size_t)1 << 20, longest_bytes = (size_t)16 << 20;
enum { MESSAGES = 4 };
/* Of what the bytes take on the wire: noise is no codec's cost. */
static const double doubt = 0.1;

static const struct gf_allreduce_cost *cheapest_with_steps(const struct gf_network *n, double bytes)
{
	const struct gf_allreduce_cost *best = NULL;
	double least_s = INFINITY;

	for (size_t i = 0; i < n->nallreduce; i++) {
		const struct gf_allreduce_cost *c = &n->allreduce[i];
		const struct gf_algorithm *a = gf_algorithm_find(c->algorithm);
		struct gf_cost_lines lines = gf_allreduce_lines(c);
		double s = gf_cost_lines_s(&lines, bytes);

		if (c->collective != GF_COLL_WHOLE || !a || !a->build || !(s < least_s) ||
		    gf_stages_call(c->stages, c->nstages))
			continue;
		best = c;
		least_s = s;
	}
	return best;
}

/* How often a byte is encoded, one hop after the other. */
static double hops_of(const struct gf_allreduce_cost *by, int ranks)
{
	const struct gf_algorithm *a = gf_algorithm_find(by->algorithm);
	struct gf_link_cost unit = {0, 1, 0};
	struct gf_cost_net net = {.nlevels = 1, .links = &unit};
	struct gf_coll_args args = {.ranks = ranks, .elem_bytes = 4};

	args.count_elems = gf_coll_divisible(&args);
	return a->cost(&args, &net).s / (4 * (double)args.count_elems);
}

static size_t longer_bytes(const struct gf_measure_codecs_run *c)
{
	size_t bytes = c->model_bytes / MESSAGES / sizeof(float) * sizeof(float);

	if (bytes > longest_bytes)
		return longest_bytes;
	return bytes > most_bytes ? bytes : c->max_bytes < most_bytes ? c->max_bytes : most_bytes;
}

static int time_of(const struct gf_measure_codecs_run *c, const struct gf_allreduce_cost *by,
		   const char *codec, size_t bytes, double *time_s, struct gf_error *err)
{
	const struct gf_measure_exchange_config config = {
		.comm = c->comm,
		.by = by,
		.codec = codec,
		.count_elems = bytes / sizeof(float),
		.messages = MESSAGES,
		.lanes = 1,
		.compute_threads = c->threads,
		.callers_memory = c->callers_memory,
		.others_bytes = bytes > most_bytes ? gf_measure_others_bytes(c->model_bytes) : 0,
		.timeout_s = c->timeout_s,
	};
	const struct gf_measure_budget budget = {c->time_s, bytes > most_bytes ? 3 : 5, 100};
	GF_RELEASED(gf_measure_samples_release) struct gf_measure_samples samples = {0};
	int rc = gf_measure_exchange_sitting(&config, &budget, &samples, err);

	if (rc == 0)
		*time_s = gf_stat_median(samples.values, samples.count) / MESSAGES;
	return rc;
}

/* Seconds per byte of f32. */
static int slope_of(const struct gf_measure_codecs_run *c, const struct gf_allreduce_cost *by,
		    const char *codec, double *per_byte_s, struct gf_error *err)
{
	const size_t most = longer_bytes(c);
	double short_s, long_s;
	int rc = time_of(c, by, codec, least_bytes, &short_s, err);

	rc = rc ?: time_of(c, by, codec, most, &long_s, err);
	if (rc == 0)
		*per_byte_s = fmax(0, long_s - short_s) / (double)(most - least_bytes);
	return rc;
}

static void raise_to(struct gf_codec_cost *c, double least)
{
	double both = c->encode_s_per_byte + c->decode_s_per_byte;

	if (!(both > 0) || !(least > both))
		return;
	c->encode_s_per_byte *= least / both;
	c->decode_s_per_byte *= least / both;
}

int gf_measure_codecs_run(const struct gf_measure_codecs_run *c, struct gf_processing *p,
			  struct gf_error *err)
{
	const struct gf_allreduce_cost *by =
		cheapest_with_steps(c->network, (double)longer_bytes(c));
	double plain, coded, hops;
	int rc;

	if (!by || c->max_bytes < 2 * least_bytes)
		return 0;
	hops = hops_of(by, c->comm->ranks);
	rc = slope_of(c, by, NULL, &plain, err);
	for (size_t i = 0; i < p->ncodecs && rc == 0; i++) {
		const struct gf_codec *codec = gf_codec_find(p->codecs[i].of.name);

		rc = slope_of(c, by, codec->name, &coded, err);
		if (rc == 0 && hops > 0)
			raise_to(&p->codecs[i],
				 (coded - (1 + doubt) * plain * gf_codec_ratio(codec)) / hops);
	}
	return rc;
}
