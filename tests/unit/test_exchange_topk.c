/* SPDX-License-Identifier: BSD-3-Clause */
/* topk and gtopk, element by element: tests/data/vectors.md, a serial run, and the bytes. */
#include <math.h>
#include <string.h>

#include "base/array.h"
#include "compressors/sets.h"
#include "documents/selections/select_density.h"
#include "largest.h"

/* What both have; topk has no putback. */
struct keys {
	const char *method;
	enum gf_putback putback;
	double density;
	const double *warmup; /* of the first epochs */
	size_t nwarmup;
};

static bool merges(const struct keys *k)
{
	return strcmp(k->method, "gtopk") == 0;
}

static struct gf_selection selection(const struct keys *k)
{
	static const char *const words[] = {
		[GF_PUTBACK_PAPER] = "paper",
		[GF_PUTBACK_CONSERVE] = "conserve",
		[GF_PUTBACK_NAIVE] = "naive",
	};
	struct gf_text t = {0};
	struct gf_selection s;
	size_t i;

	gf_text_addf(&t, "{\"method\": \"%s\", \"density\": %g, \"warmup_densities\": [", k->method,
		     k->density);
	for (i = 0; i < k->nwarmup; i++)
		gf_text_addf(&t, "%s%g", i ? ", " : "", k->warmup[i]);
	gf_text_addf(&t, "]");
	if (merges(k))
		gf_text_addf(&t, ", \"putback\": \"%s\"", words[k->putback]);
	gf_text_addf(&t, "}");
	s = test_selection_of(t.data);
	gf_text_release(&t);
	return s;
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
		const char *method;
		enum gf_putback putback;
		float sum[8];         /* over ranks, that is applied */
		float residual[4][8]; /* after the step */
	} cases[] = {
		{4,
		 "gtopk",
		 GF_PUTBACK_PAPER,
		 {9, 0, 0, 0, 0, 0, 12.5f, 0},
		 {{0}, {0, 8}, {[7] = 1}, {[5] = .5f}}},
		{4,
		 "gtopk",
		 GF_PUTBACK_CONSERVE,
		 {9, 0, 0, 0, 0, 0, 12.5f, 0},
		 {{[1] = 8, [6] = 4.5f, [7] = 1}, {0}, {[5] = .5f}, {0}}},
		{4,
		 "gtopk",
		 GF_PUTBACK_NAIVE,
		 {9, 0, 0, 0, 0, 0, 17, 0},
		 {{0}, {0, 8}, {[7] = 1}, {[5] = .5f}}},
		{3,
		 "gtopk",
		 GF_PUTBACK_PAPER,
		 {9, 0, 0, 0, 0, 0, 9.5f, 0},
		 {{0}, {0, 8}, {[7] = 1}}},
		{3, "gtopk", GF_PUTBACK_NAIVE, {9, 0, 0, 0, 0, 0, 14, 0}, {{0}, {0, 8}, {[7] = 1}}},
		{4, "topk", GF_PUTBACK_PAPER, {9, 8, 0, 0, 0, .5f, 17, 1}, {{0}, {0}, {0}, {0}}},
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
			.selection = selection(
				&(struct keys){cases[c].method, cases[c].putback, .25, NULL, 0}),
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

struct serial {
	const struct keys *keys;
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
				     s->keys->putback == GF_PUTBACK_CONSERVE
					     ? s->residual[r] + first
					     : NULL);
		}
	memcpy(p->sum, p->tree[0], sizeof(p->sum));
	memcpy(p->in_sum, p->in_tree[0], sizeof(p->in_sum));
}

static void serial_gather(const struct exchange_run *run, const struct serial *s, struct parts *p,
			  size_t n, size_t k)
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
	if (merges(s->keys))
		keep_largest(p->sum, p->in_sum, n, k, NULL);
}

static void serial_message(const struct exchange_run *run, struct serial *s, size_t step,
			   size_t first, size_t n, vector sum)
{
	static struct parts p;
	const struct keys *t = s->keys;
	double density =
		gf_density_at(t->density, t->warmup, t->nwarmup, (step - 1) / run->epoch_steps);
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
	if (!merges(s->keys) || s->keys->putback == GF_PUTBACK_NAIVE)
		serial_gather(run, s, &p, n, k);
	else
		serial_tree(run, s, &p, first, n, k);
	for (r = 0; r < run->ranks; r++)
		for (i = 0; i < n; i++)
			if (p.is_sent[r][i] && !p.in_sum[i] &&
			    s->keys->putback != GF_PUTBACK_CONSERVE)
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

static void compare_serial(struct exchange_run *run, const struct keys *keys, const char *what)
{
	static struct serial s;
	size_t n = run_elems(run), step, i;
	double mass = 0, made = 0;
	int r;

	memset(&s, 0, sizeof(s));
	s.keys = keys;
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
	if (!merges(keys) || keys->putback == GF_PUTBACK_CONSERVE)
		EXPECT(mass + s.applied == made, "%s: made %g, applied %g, residuals %g", what,
		       made, s.applied, mass);
}

static void test_serial(void)
{
	static const int ranks[] = {1, 2, 3, 4, 5, 8};
	static const size_t counts[] = {60, 7, 130, 1, 33, 200};
	static double warmup[] = {.5, .25};
	static const struct {
		const char *method;
		enum gf_putback putback;
		double density;
		size_t threshold, nwarmup;
		int lanes;
		bool at_end;
	} cases[] = {
		{"topk", GF_PUTBACK_PAPER, .1, 1 << 20, 0, 1, true},
		{"topk", GF_PUTBACK_PAPER, .05, 100, 2, 2, false},
		{"gtopk", GF_PUTBACK_PAPER, .1, 1 << 20, 0, 1, true},
		{"gtopk", GF_PUTBACK_PAPER, .02, 0, 2, 1, false},
		{"gtopk", GF_PUTBACK_CONSERVE, .1, 100, 1, 3, false},
		{"gtopk", GF_PUTBACK_CONSERVE, 1, 1 << 20, 0, 1, true},
		{"gtopk", GF_PUTBACK_NAIVE, .1, 300, 2, 1, false},
	};
	static struct exchange_run run;
	char what[64];
	size_t i, k;

	for (i = 0; i < GF_ARRAY_LENGTH(cases); i++)
		for (k = 0; k < GF_ARRAY_LENGTH(ranks); k++) {
			const struct keys keys = {cases[i].method, cases[i].putback,
						  cases[i].density, warmup, cases[i].nwarmup};

			run = (struct exchange_run){
				.ranks = ranks[k],
				.counts = counts,
				.ntensors = GF_ARRAY_LENGTH(counts),
				.threshold_bytes = cases[i].threshold,
				.lanes = cases[i].lanes,
				.at_end = cases[i].at_end,
				.selection = selection(&keys),
				.momentum = .5,
				.lr = .25,
				.first_step = 1,
				.steps = 9,
				.epoch_steps = 3,
				.gradient = noise,
			};
			snprintf(what, sizeof(what), "sparse case %zu, %d ranks", i, ranks[k]);
			compare_serial(&run, &keys, what);
		}
}

/* Eq. 6 and 7: a rank gathers p-1 sets; the tree's root sends log2 p. */
static void test_bytes(void)
{
	static const size_t counts[] = {400};
	static const struct {
		const char *method;
		uint64_t sets[4]; /* that a rank sends in a step */
	} cases[] = {
		{"topk", {3, 3, 3, 3}},
		{"gtopk", {2, 1, 2, 1}},
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
			.selection = selection(
				&(struct keys){cases[i].method, GF_PUTBACK_PAPER, .05, NULL, 0}),
			.lr = .1,
			.first_step = 1,
			.steps = 5,
			.gradient = noise,
		};
		run_exchange(&run, "bytes");
		for (r = 0; r < 4; r++)
			EXPECT(run.sent_bytes[r] == 5 * 8 * 20 * cases[i].sets[r],
			       "%s: rank %d: %llu bytes", cases[i].method, r,
			       (unsigned long long)run.sent_bytes[r]);
		EXPECT(run.dense_bytes == 2 * 3 * 400, "dense: %llu",
		       (unsigned long long)run.dense_bytes);
	}
}

int main(void)
{
	watchdog(250);
	test_vector();
	test_serial();
	test_bytes();
	return TEST_END();
}
