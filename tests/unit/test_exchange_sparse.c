/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/heap.h"
#include "collectives/codecs/encode.h"
#include "compressors/sets.h"
#include "doc/selections/select_ef21.h"
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
		kind = c % 3; /* topk, gtopk's conserve and naive forms */
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

/* topk([1,-3,3,2,-2], 2) = {1,2} */
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

/* --- tests/data/vectors.md: topk and gtopk ----------------------------------
 */

static float vector_gradient(int rank, size_t step, size_t i)
{
	static const float acc[4][8] = {{9, 0, 0, 0, 0, 0, 2, 0},
					{0, 8, 0, 0, 0, 0, 2.5f, 0},
					{0, 0, 0, 0, 0, 0, 9.5f, 1},
					{0, 0, 0, 0, 0, .5f, 3, 0}};

	return step == 1 ? acc[rank][i] : 0;
}

static void test_vector(void)
{
	static const struct {
		int ranks;
		const struct gf_select_plan *method;
		enum gf_putback putback;
		float sum[8];         /* over ranks, that is applied */
		float residual[4][8]; /* after the step */
	} cases[] = {
		{4,
		 &gf_select_plan_gtopk,
		 GF_PUTBACK_PAPER,
		 {9, 0, 0, 0, 0, 0, 12.5f, 0},
		 {{0}, {0, 8}, {[7] = 1}, {[5] = .5f}}},
		{4,
		 &gf_select_plan_gtopk,
		 GF_PUTBACK_CONSERVE,
		 {9, 0, 0, 0, 0, 0, 12.5f, 0},
		 {{[1] = 8, [6] = 4.5f, [7] = 1}, {0}, {[5] = .5f}, {0}}},
		{4,
		 &gf_select_plan_gtopk,
		 GF_PUTBACK_NAIVE,
		 {9, 0, 0, 0, 0, 0, 17, 0},
		 {{0}, {0, 8}, {[7] = 1}, {[5] = .5f}}},
		{3,
		 &gf_select_plan_gtopk,
		 GF_PUTBACK_PAPER,
		 {9, 0, 0, 0, 0, 0, 9.5f, 0},
		 {{0}, {0, 8}, {[7] = 1}}},
		{3,
		 &gf_select_plan_gtopk,
		 GF_PUTBACK_NAIVE,
		 {9, 0, 0, 0, 0, 0, 14, 0},
		 {{0}, {0, 8}, {[7] = 1}}},
		{4,
		 &gf_select_plan_topk,
		 GF_PUTBACK_PAPER,
		 {9, 8, 0, 0, 0, .5f, 17, 1},
		 {{0}, {0}, {0}, {0}}},
	};
	static const size_t counts[] = {3, 5};
	static struct exchange_run run;
	size_t c, i;
	int r;

	for (c = 0; c < GF_ARRAY_LENGTH(cases); c++) {
		run = (struct exchange_run){
			.ranks = cases[c].ranks,
			.counts = counts,
			.ntensors = 2,
			.threshold_bytes = 1000, /* one message */
			.lanes = 1,
			.at_end = true,
			.selection = {cases[c].method,
				      &(struct gf_topk_params){.density = .25,
							       .putback = cases[c].putback}},
			.lr = 1,
			.first_step = 1,
			.steps = 1,
			.gradient = vector_gradient,
		};
		run_exchange(&run, "vector");
		for (i = 0; i < 8; i++)
			EXPECT_NEAR((double)-run.weights[0][0][i],
				    (double)cases[c].sum[i] / run.ranks, 1e-6, "case %zu: w[%zu]",
				    c, i);
		for (r = 0; r < run.ranks; r++)
			for (i = 0; i < 8; i++)
				EXPECT(run.own[r][i] == cases[c].residual[r][i],
				       "case %zu: r%d[%zu]: %g", c, r, i, (double)run.own[r][i]);
	}
}

/* --- a serial run ------------------------------------------------------------
 */

static float noise(int rank, size_t step, size_t i)
{
	return run_noise(rank, step, i, 20); /* ties are common */
}

/* A message's dense vectors, as the paper's algorithms see them. */
typedef float vector[RUN_ELEMS];

/* Zeroes all but the k largest magnitudes among the marked; ties to the lower index. Dropped
 * elements are added to `dropped`, if given. */
static void keep_largest(vector v, bool *marked, size_t n, size_t k, float *dropped)
{
	bool kept[RUN_ELEMS] = {false};
	size_t i, best;

	while (k--) {
		for (i = 0, best = n; i < n; i++)
			if (marked[i] && !kept[i] && (best == n || fabsf(v[i]) > fabsf(v[best])))
				best = i;
		kept[best] = true;
	}
	for (i = 0; i < n; i++) {
		if (!marked[i] || kept[i])
			continue;
		if (dropped)
			dropped[i] += v[i];
		v[i] = 0;
		marked[i] = false;
	}
}

struct serial {
	vector weights, velocity;
	vector residual[RUN_RANKS];
	double applied; /* sum of everything that was applied */
};

struct parts {
	vector sent[RUN_RANKS], tree[RUN_RANKS];
	bool is_sent[RUN_RANKS][RUN_ELEMS], in_tree[RUN_RANKS][RUN_ELEMS];
	vector sum;
	bool in_sum[RUN_ELEMS];
};

static void serial_tree(const struct exchange_run *run, struct serial *s, struct parts *p,
			size_t first, size_t n, size_t k)
{
	int r, d;
	size_t i;

	memcpy(p->tree, p->sent, sizeof(p->tree));
	memcpy(p->in_tree, p->is_sent, sizeof(p->in_tree));
	for (d = 1; d < run->ranks; d *= 2)
		for (r = 0; r + d < run->ranks; r += 2 * d) {
			for (i = 0; i < n; i++) {
				p->tree[r][i] += p->tree[r + d][i];
				p->in_tree[r][i] |= p->in_tree[r + d][i];
			}
			keep_largest(p->tree[r], p->in_tree[r], n, k,
				     gf_topk_params(&run->selection)->putback == GF_PUTBACK_CONSERVE
					     ? s->residual[r] + first
					     : NULL);
		}
	memcpy(p->sum, p->tree[0], sizeof(p->sum));
	memcpy(p->in_sum, p->in_tree[0], sizeof(p->in_sum));
}

static void serial_gather(const struct exchange_run *run, struct parts *p, size_t n, size_t k)
{
	size_t i;
	int r;

	memset(p->sum, 0, sizeof(p->sum));
	memset(p->in_sum, 0, sizeof(p->in_sum));
	for (r = 0; r < run->ranks; r++)
		for (i = 0; i < n; i++) {
			p->sum[i] += p->sent[r][i];
			p->in_sum[i] |= p->is_sent[r][i];
		}
	if (run->selection.plan == &gf_select_plan_gtopk)
		keep_largest(p->sum, p->in_sum, n, k, NULL);
}

static void serial_message(const struct exchange_run *run, struct serial *s, size_t step,
			   size_t first, size_t n, vector sum)
{
	static struct parts p;
	const struct gf_topk_params *t = gf_topk_params(&run->selection);
	double density = gf_density_at(t->density, t->warmup_densities, t->nwarmup,
				       (step - 1) / run->epoch_steps);
	size_t k = (size_t)(density * (double)n), i;
	int r;

	k = k ? k : 1;
	for (r = 0; r < run->ranks; r++) {
		for (i = 0; i < n; i++) {
			s->residual[r][first + i] += run->gradient(r, step, first + i);
			p.sent[r][i] = s->residual[r][first + i];
			p.is_sent[r][i] = true;
		}
		keep_largest(p.sent[r], p.is_sent[r], n, k, NULL);
		for (i = 0; i < n; i++)
			if (p.is_sent[r][i])
				s->residual[r][first + i] = 0;
	}
	if (run->selection.plan == &gf_select_plan_topk ||
	    gf_topk_params(&run->selection)->putback == GF_PUTBACK_NAIVE)
		serial_gather(run, &p, n, k);
	else
		serial_tree(run, s, &p, first, n, k);
	for (r = 0; r < run->ranks; r++)
		for (i = 0; i < n; i++)
			if (p.is_sent[r][i] && !p.in_sum[i] &&
			    gf_topk_params(&run->selection)->putback != GF_PUTBACK_CONSERVE)
				s->residual[r][first + i] += p.sent[r][i];
	memcpy(sum + first, p.sum, n * sizeof(float));
}

static void serial_step(const struct exchange_run *run, struct serial *s, size_t step)
{
	size_t first = 0, last = 0, i, n = run_elems(run), t;
	vector sum;
	float g, mean = 1.0f / (float)run->ranks;

	for (t = 0; t < run->ntensors; t++) {
		last += run->counts[t];
		if ((last - first) * sizeof(float) <= run->threshold_bytes && t + 1 < run->ntensors)
			continue;
		serial_message(run, s, step, first, last - first, sum);
		first = last;
	}
	for (i = 0; i < n; i++) {
		s->applied += (double)sum[i];
		g = mean * sum[i] + 0 * s->weights[i];
		s->velocity[i] = (float)run->momentum * s->velocity[i] + g;
		s->weights[i] -= (float)run->lr * s->velocity[i];
	}
}

static void compare_serial(struct exchange_run *run, const char *what)
{
	static struct serial s;
	size_t n = run_elems(run), step, i;
	double mass = 0, made = 0;
	int r;

	memset(&s, 0, sizeof(s));
	run_exchange(run, what);
	for (step = 0; step < run->steps; step++) {
		serial_step(run, &s, step + 1);
		for (i = 0; i < n; i++)
			if (run->weights[0][step][i] != s.weights[i])
				break;
		EXPECT(i == n, "%s: step %zu, element %zu: want %.9g, got %.9g", what, step + 1, i,
		       (double)s.weights[i], (double)run->weights[0][step][i]);
		if (i < n)
			return;
	}
	for (r = 0; r < run->ranks; r++)
		for (i = 0; i < n; i++) {
			EXPECT(run->own[r][i] == s.residual[r][i],
			       "%s: residual of rank %d, element %zu", what, r, i);
			mass += (double)run->own[r][i];
			for (step = 1; step <= run->steps; step++)
				made += (double)run->gradient(r, step, i);
		}
	/* integers: exact. The paper's put-back loses partial sums. */
	if (run->selection.plan == &gf_select_plan_topk ||
	    gf_topk_params(&run->selection)->putback == GF_PUTBACK_CONSERVE)
		EXPECT(mass + s.applied == made, "%s: made %g, applied %g, residuals %g", what,
		       made, s.applied, mass);
}

static void test_serial(void)
{
	static const int ranks[] = {1, 2, 3, 4, 5, 8};
	static const size_t counts[] = {60, 7, 130, 1, 33, 200};
	static double warmup[] = {.5, .25};
	static const struct {
		const struct gf_select_plan *method;
		enum gf_putback putback;
		double density;
		size_t threshold, nwarmup;
		int lanes;
		bool at_end;
	} cases[] = {
		{&gf_select_plan_topk, GF_PUTBACK_PAPER, .1, 1 << 20, 0, 1, true},
		{&gf_select_plan_topk, GF_PUTBACK_PAPER, .05, 100, 2, 2, false},
		{&gf_select_plan_gtopk, GF_PUTBACK_PAPER, .1, 1 << 20, 0, 1, true},
		{&gf_select_plan_gtopk, GF_PUTBACK_PAPER, .02, 0, 2, 1, false},
		{&gf_select_plan_gtopk, GF_PUTBACK_CONSERVE, .1, 100, 1, 3, false},
		{&gf_select_plan_gtopk, GF_PUTBACK_CONSERVE, 1, 1 << 20, 0, 1, true},
		{&gf_select_plan_gtopk, GF_PUTBACK_NAIVE, .1, 300, 2, 1, false},
	};
	static struct exchange_run run;
	char what[64];
	size_t i, k;

	for (i = 0; i < GF_ARRAY_LENGTH(cases); i++)
		for (k = 0; k < GF_ARRAY_LENGTH(ranks); k++) {
			run = (struct exchange_run){
				.ranks = ranks[k],
				.counts = counts,
				.ntensors = GF_ARRAY_LENGTH(counts),
				.threshold_bytes = cases[i].threshold,
				.lanes = cases[i].lanes,
				.at_end = cases[i].at_end,
				.selection = {cases[i].method,
					      &(struct gf_topk_params){.putback = cases[i].putback,
								       .density = cases[i].density,
								       .warmup_densities = warmup,
								       .nwarmup =
									       cases[i].nwarmup}},
				.momentum = .5,
				.lr = .25,
				.first_step = 1,
				.steps = 9,
				.epoch_steps = 3,
				.gradient = noise,
			};
			snprintf(what, sizeof(what), "sparse case %zu, %d ranks", i, ranks[k]);
			compare_serial(&run, what);
		}
}

/* ef21 as doc/selections/select_ef21.h has it. Halves are exact. */
static void test_estimates(void)
{
	static const struct {
		int ranks;
		double density, momentum;
	} cases[] = {{1, .1, 0}, {2, .1, .5}, {3, .25, .5}, {4, .02, .5}};
	static const size_t counts[] = {60, 7, 33};
	enum { N = 100 };
	static struct exchange_run run;
	size_t c, i, k, step;
	int r;

	for (c = 0; c < GF_ARRAY_LENGTH(cases); c++) {
		static vector v[RUN_RANKS], h[RUN_RANKS], sent;
		vector sum = {0};
		double weights[N] = {0};

		memset(v, 0, sizeof(v));
		memset(h, 0, sizeof(h));
		run = (struct exchange_run){
			.ranks = cases[c].ranks,
			.counts = counts,
			.ntensors = GF_ARRAY_LENGTH(counts),
			.threshold_bytes = 1 << 20,
			.lanes = 1,
			.selection = {&gf_select_plan_ef21,
				      &(struct gf_ef21_params){.density = cases[c].density}},
			.momentum = cases[c].momentum,
			.lr = .25,
			.first_step = 1,
			.steps = 6,
			.gradient = noise,
		};
		k = gf_density_count(cases[c].density, N);
		run_exchange(&run, "ef21");
		for (step = 1; step <= run.steps; step++) {
			for (r = 0; r < run.ranks; r++) {
				bool marked[N];

				memset(marked, 1, sizeof(marked));
				for (i = 0; i < N; i++) {
					v[r][i] = (float)run.momentum * v[r][i] + noise(r, step, i);
					sent[i] = v[r][i] - h[r][i];
				}
				keep_largest(sent, marked, N, k, NULL);
				for (i = 0; i < N; i++) {
					h[r][i] += sent[i];
					sum[i] += sent[i];
				}
			}
			for (i = 0; i < N; i++) {
				weights[i] -= run.lr * (double)sum[i] / run.ranks;
				EXPECT_NEAR((double)run.weights[0][step - 1][i], weights[i], 1e-4,
					    "ef21 case %zu, step %zu, w[%zu]", c, step, i);
			}
		}
	}
}

/* Eq. 6 and 7: a rank gathers p-1 sets; the tree's root sends log2 p. */
static void test_bytes(void)
{
	static const size_t counts[] = {400};
	static const struct {
		const struct gf_select_plan *method;
		uint64_t sets[4]; /* that a rank sends in a step */
	} cases[] = {
		{&gf_select_plan_topk, {3, 3, 3, 3}},
		{&gf_select_plan_gtopk, {2, 1, 2, 1}},
	};
	static struct exchange_run run;
	size_t i;
	int r;

	for (i = 0; i < GF_ARRAY_LENGTH(cases); i++) {
		run = (struct exchange_run){
			.ranks = 4,
			.counts = counts,
			.ntensors = 1,
			.lanes = 1,
			.selection = {cases[i].method, &(struct gf_topk_params){.density = .05}},
			.lr = .1,
			.first_step = 1,
			.steps = 5,
			.gradient = noise,
		};
		run_exchange(&run, "bytes");
		for (r = 0; r < 4; r++)
			EXPECT(run.sent_bytes[r] == 5 * 8 * 20 * cases[i].sets[r],
			       "%s: rank %d: %llu bytes", cases[i].method->name, r,
			       (unsigned long long)run.sent_bytes[r]);
		EXPECT(run.dense_bytes == 2 * 3 * 400, "dense: %llu",
		       (unsigned long long)run.dense_bytes);
	}
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
	test_vector();
	test_serial();
	test_estimates();
	test_bytes();
	return TEST_END();
}
