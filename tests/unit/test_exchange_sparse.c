/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/heap.h"
#include "collectives/codecs/encode.h"
#include "compressors/sets.h"
#include "documents/selections/select_density.h"
#include "exchange_run.h"

/* --- sets on the wire -------------------------------------------------------
 */

static void test_wire(void)
{
	static const struct {
		const char *codec;
		size_t count, k, bytes; /* 0: not compared */
	} cases[] = {
		{"f32", 1000, 10, 80},      {"f16", 1000, 0, 0},
		{"f16", 1, 1, 2},           {"q8", 1000000, 1000, 1495 + 1004},
		{"q8", 1000000, 10000, 0},  {"bf16", 1000, 1000, 2250},
		{"f16", 4294967295, 1, 6},  {"q8", 4294967295, 3000, 0},
		{"fp4", 40000000, 4097, 0}, {"q8", 5, 5, 0},
		{"trunc16", 65536, 2, 8},
	};
	static uint32_t index[10000], got[10000];
	static float value[10000], back[10000];
	static char wire[100000];
	size_t c, i, bytes;

	for (c = 0; c < GF_ARRAY_LENGTH(cases); c++) {
		const struct gf_codec *f = gf_codec_find(cases[c].codec);
		const size_t n = cases[c].count, k = cases[c].k;
		bool read;

		for (i = 0; i < k; i++) {
			index[i] = (uint32_t)((i + 1) * (n / k) - 1);
			value[i] = (float)(i % 13) - 6;
		}
		bytes = gf_codec_set_bytes(f, n, k);
		EXPECT(!cases[c].bytes || bytes == cases[c].bytes,
		       "case %zu: want %zu bytes, got %zu", c, cases[c].bytes, bytes);
		EXPECT(bytes <= 4 * k + gf_codec_wire_bytes(f, k), "case %zu: %zu bytes", c, bytes);
		memset(wire, 0x5a, sizeof(wire));
		gf_codec_write_set(f, n, wire + 1, index, value, k);
		EXPECT(wire[0] == 0x5a && wire[1 + bytes] == 0x5a, "case %zu: outside", c);
		read = gf_codec_read_set(f, n, wire + 1, got, back, k);
		EXPECT(read && !memcmp(index, got, k * sizeof(*got)) &&
			       !memcmp(value, back, k * sizeof(*back)),
		       "case %zu: what came", c);
		memset(wire, 0xff, sizeof(wire));
		read = gf_codec_read_set(f, n, wire + 1, got, back, k);
		EXPECT(!read || k == 0 || n == k || n == 1 || n > UINT32_MAX - 1,
		       "case %zu: ones are taken for a set", c);
		memset(wire, 0, sizeof(wire));
		read = gf_codec_read_set(f, n, wire + 1, got, back, k);
		EXPECT(!read || k < 2, "case %zu: zeros are taken for a set", c);
	}
}

/* Ranks that gather or merge sets under a codec: all get the same, and nothing is lost, as rank
 * after rank would do it. */
static void test_codecs(void)
{
	static const char *const codecs[] = {"f16", "bf16", "q8", "fp4"};
	enum { N = 3000, K = 300, P = 5 };
	static float data[P][N], residual[P][N], want[N], sum[P][N];
	static uint32_t scratch[2 * P * N];
	struct gf_sparse_message m[P];
	size_t c, i, kind;
	int r, d, p;
	double mass, most;
	bool is_f16;

	for (c = 0; c < 3 * GF_ARRAY_LENGTH(codecs) * (P - 1); c++) {
		kind = c % 3; /* gathered; merged, conserving and naive */
		is_f16 = c / 3 / (P - 1) == 0;
		p = 2 + (int)(c / 3 % (P - 1));
		memset(want, 0, sizeof(want));
		for (r = 0; r < p; r++) {
			m[r] = (struct gf_sparse_message){
				.merges = kind > 0,
				.putback = kind == 1 ? GF_PUTBACK_CONSERVE : GF_PUTBACK_NAIVE,
				.ranks = p,
				.count_elems = N,
				.codec = gf_codec_find(codecs[c / 3 / (P - 1)]),
				.data = data[r],
				.residual = residual[r],
				.scratch = scratch,
			};
			for (i = 0; i < N; i++) {
				data[r][i] = run_noise(r, c + 1, i, 1000) / 7;
				/* more than f16 holds, alone or as a sum */
				if (i % 1000 == 0 && is_f16)
					data[r][i] = i ? 65536 : -40960;
				want[i] += data[r][i];
			}
			EXPECT(!gf_sparse_init(&m[r], K, NULL), "made");
			m[r].sets = gf_xcalloc(1, gf_sparse_sets_bytes(&m[r], K));
			gf_sparse_select(&m[r], K, r);
		}
		for (r = 0; r < p && kind != 1; r++)
			for (d = 0; d < p; d++)
				memcpy((char *)m[d].sets +
					       (size_t)r * gf_sparse_set_bytes(&m[r], K),
				       (char *)m[r].sets +
					       (size_t)r * gf_sparse_set_bytes(&m[r], K),
				       gf_sparse_set_bytes(&m[r], K));
		for (d = 1; d < p && kind == 1; d *= 2)
			for (r = 0; r + d < p; r += 2 * d)
				gf_sparse_merge(&m[r], m[r].sets, m[r + d].sets, 1);
		for (r = 1; r < p && kind == 1; r++)
			memcpy(m[r].sets, m[0].sets, gf_sparse_set_bytes(&m[0], K));
		for (r = 0; r < p; r++) {
			gf_sparse_conclude(&m[r]);
			EXPECT(!m[r].damaged, "case %zu: damaged", c);
			memset(sum[r], 0, sizeof(sum[r]));
			gf_sparse_add(&m[r], sum[r]);
			EXPECT(!memcmp(sum[r], sum[0], sizeof(sum[0])),
			       "case %zu: rank %d has another sum", c, r);
			EXPECT(gf_sparse_bad(&m[r]) == N, "case %zu: rank %d has no finite sum", c,
			       r);
		}
		/* naive loses what was cut off sums, at indices that stay */
		for (i = 0, most = 0; i < N && kind < 2; i++) {
			mass = (double)sum[0][i];
			for (r = 0; r < p; r++)
				mass += (double)data[r][i];
			most = fmax(most, fabs(mass - (double)want[i]));
		}
		EXPECT(most < 1e-3, "case %zu: %g is lost", c, most);
		memset(m[0].sets, 0xff, gf_sparse_set_bytes(&m[0], K));
		gf_sparse_conclude(&m[0]);
		EXPECT(m[0].damaged, "case %zu: damage is not seen", c);
		for (r = 0; r < p; r++) {
			free(m[r].sets);
			gf_sparse_release(&m[r]);
		}
	}
}

/* --- k and densities --------------------------------------------------------
 */

static void test_k(void)
{
	static const struct {
		double density;
		size_t count, want;
	} cases[] = {
		{.25, 8, 2}, {.001, 1000, 1}, {.001, 999, 1}, {.001, 2000, 2},   {.01, 25450, 254},
		{1, 7, 7},   {1e-9, 1, 1},    {.5, 3, 1},     {.999, 1000, 999},
	};
	double warmup[] = {.25, .0725, .015, .004};
	size_t i, got;

	for (i = 0; i < GF_ARRAY_LENGTH(cases); i++) {
		got = gf_density_count(cases[i].density, cases[i].count);
		EXPECT(got == cases[i].want, "case %zu: want %zu, got %zu", i, cases[i].want, got);
	}
	for (i = 0; i < 6; i++)
		EXPECT(gf_density_at(.001, warmup, 4, i) == (i < 4 ? warmup[i] : .001), "epoch %zu",
		       i);
}

/* Of (1, -3, 3, 2, -2) the two largest are at 1 and 2. */
static void test_ties(void)
{
	float data[] = {1, -3, 3, 2, -2};
	const float residual[5] = {0};
	uint32_t set[4], scratch[10];
	struct gf_sparse_message m = {.ranks = 1,
				      .count_elems = 5,
				      .data = data,
				      .residual = residual,
				      .sets = set,
				      .scratch = scratch};
	struct gf_error err = {""};

	EXPECT(!gf_sparse_init(&m, 2, &err), "%s", err.text);
	gf_sparse_select(&m, 2, 0);
	EXPECT(set[0] == 1 && set[1] == 2, "%u %u", set[0], set[1]);
	EXPECT(data[0] == 1 && data[1] == 0 && data[2] == 0 && data[3] == 2 && data[4] == -2,
	       "what stays");
	gf_sparse_release(&m);
}

static float noise(int rank, size_t step, size_t i)
{
	return run_noise(rank, step, i, 20);
}

/* A ring in two halves is the ring: the same bits. */
static void test_split(void)
{
	static const int ranks[] = {1, 2, 3, 4, 5, 8};
	static const size_t counts[] = {60, 7, 130, 1, 33, 200};
	static struct exchange_run whole, split;
	size_t i;

	for (i = 0; i < 2 * GF_ARRAY_LENGTH(ranks); i++) {
		whole = (struct exchange_run){
			.ranks = ranks[i / 2],
			.counts = counts,
			.ntensors = GF_ARRAY_LENGTH(counts),
			.threshold_bytes = 100,
			.lanes = i % 2 ? 3 : 1,
			.momentum = .9,
			.lr = .1,
			.first_step = 1,
			.steps = 6,
			.gradient = noise,
		};
		split = whole;
		split.split = true;
		run_exchange(&whole, "whole");
		run_exchange(&split, "split");
		EXPECT(!memcmp(split.weights[0], whole.weights[0], sizeof(whole.weights[0])),
		       "%d ranks: other weights", ranks[i / 2]);
		EXPECT(split.sent_bytes[0] == whole.sent_bytes[0], "%d ranks: other bytes",
		       ranks[i / 2]);
	}
}

int main(void)
{
	test_wire();
	test_codecs();
	watchdog(250);
	test_split();
	test_k();
	test_ties();
	return TEST_END();
}
