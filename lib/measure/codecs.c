/* SPDX-License-Identifier: BSD-3-Clause */
#include "measure/codecs.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/heap.h"
#include "base/rng.h"
#include "codec/codec.h"
#include "codec/run.h"
#include "cost/stat.h"
#include "measure/exchange.h"

/* About what one transfer encodes (exec's segments): it stays in the cache. */
enum { ELEMS = 1 << 16, SITTINGS = 9 };
static const double sitting_s = 0.005;

struct bench {
	const struct gf_codec *codec;
	float *data;
	void *wire;
};

static void encode(const struct bench *b)
{
	gf_codec_send(b->codec, b->wire, b->data, ELEMS);
}

static void decode(const struct bench *b)
{
	gf_codec_decode_add(b->codec, b->data, b->wire, ELEMS);
}

static void fill(float *data)
{
	struct gf_rng rng;
	size_t i;

	gf_rng_init(&rng, 1, 0);
	for (i = 0; i < ELEMS; i++)
		data[i] = (float)(gf_rng_uniform(&rng) - 0.5);
}

/* Seconds per byte of f32: the median of the sittings. */
static double per_byte_s(const struct bench *b,
			 void (*work)(const struct bench *b))
{
	double times[SITTINGS], start_s, passed_s;
	int i, n;

	for (i = 0; i < SITTINGS; i++) {
		fill(b->data); /* sums of sums would grow */
		work(b);
		start_s = gf_clock_s();
		for (n = 0, passed_s = 0; passed_s < sitting_s; n++) {
			work(b);
			passed_s = gf_clock_s() - start_s;
		}
		times[i] = passed_s / (n * (double)ELEMS * sizeof(float));
	}
	return gf_stat_median(times, SITTINGS);
}

static void add(struct gf_processing *out, const char *codec,
		const double costs[2])
{
	struct gf_codec_cost *c;

	out->codecs = gf_xreallocarray(out->codecs, out->ncodecs + 1,
				       sizeof(*out->codecs));
	c = &out->codecs[out->ncodecs++];
	*c = (struct gf_codec_cost){
		.of = {.name = gf_xstrdup(codec), .device = gf_xstrdup("cpu")},
		.encode_s_per_byte = costs[0],
		.decode_s_per_byte = costs[1],
	};
}

int gf_bench_codecs(struct gf_comm *comm, struct gf_processing *out,
		    struct gf_error *err)
{
	struct bench b = {.data = gf_xcalloc(ELEMS, sizeof(float))};
	double costs[2];
	int i, rc = 0;

	for (i = 0; i < GF_CODECS && rc == 0; i++) {
		if (i == GF_CODEC_F32)
			continue;
		b.codec = &gf_codecs[i];
		b.wire = gf_xcalloc(1, gf_codec_wire_bytes(b.codec, ELEMS));
		fill(b.data);
		rc = gf_comm_barrier(comm, err);
		if (rc == 0) {
			encode(&b);
			costs[1] = per_byte_s(&b, decode);
			costs[0] = per_byte_s(&b, encode);
			rc = gf_bench_slowest(comm, costs, 2, err);
		}
		if (rc == 0)
			add(out, b.codec->name, costs);
		free(b.wire);
	}
	free(b.data);
	return rc;
}
