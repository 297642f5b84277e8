/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <math.h>

#include "base/array.h"
#include "exchange_run.h"
#include "selections.h"

/* Of f32 sums of a few terms. */
#define TOLERANCE 2e-6

/* The keys of a run; NAN: the momentum's decay. */
struct keys {
	size_t chunk_elems;
	double keep;
	size_t warmup_steps;
	double decay;
};

static struct gf_selection selection(const struct keys *k)
{
	struct gf_text decay = {0};
	char *object;
	struct gf_selection s;

	gf_text_addf(&decay, isnan(k->decay) ? "\"momentum\"" : "%g", k->decay);
	object = gf_xasprintf("{\"method\": \"csc\", \"chunk_elems\": %zu, \"keep\": %g, "
			      "\"warmup_steps\": %zu, \"decay\": %s}",
			      k->chunk_elems, k->keep, k->warmup_steps, decay.data);
	s = test_selection_of(object);
	gf_text_release(&decay);
	free(object);
	return s;
}

/* --- the ramp ---------------------------------------------------------------
 */

static float one(int rank, size_t step, size_t i)
{
	(void)rank;
	(void)step;
	return (float)(i + 1);
}

/* How many of so many chunks step t chooses for the next: from all of them to keep * n, rounded up,
 * in warmup steps. */
static void test_kept(void)
{
	static const struct {
		size_t n, warmup;
		double keep;
		size_t t, want;
	} cases[] = {
		{100, 10, .1, 1, 91},  {100, 10, .1, 2, 82},  {100, 10, .1, 9, 19},
		{100, 10, .1, 10, 10}, {100, 10, .1, 99, 10}, {100, 0, .1, 1, 10},
		{4, 0, .75, 5, 3},     {4, 0, .01, 5, 1},     {1, 3, .01, 2, 1},
		{511, 0, 1, 7, 511},
	};
	static struct exchange_run run;
	size_t i, k, got;

	for (i = 0; i < GF_ARRAY_LENGTH(cases); i++) {
		const struct keys keys = {1, cases[i].keep, cases[i].warmup, 1};

		run = (struct exchange_run){
			.ranks = 2,
			.counts = &cases[i].n,
			.ntensors = 1,
			.lanes = 1,
			.selection = selection(&keys),
			.choice = "csc.important",
			.lr = 1,
			.first_step = cases[i].t,
			.steps = 1,
			.gradient = one,
		};
		run_exchange(&run, "kept");
		for (k = 0, got = 0; k < cases[i].n; k++) {
			got += run.next[0][k] != 0;
			/* the first step of a run sends all */
			EXPECT(run.weights[0][0][k] != 0, "case %zu: element %zu waits", i, k);
		}
		EXPECT(got == cases[i].want, "case %zu: want %zu, got %zu", i, cases[i].want, got);
	}
}

/* A plan without a decay has the optimiser's momentum. */
static void test_decay(void)
{
	const struct gf_selection s =
		test_selection_of("{\"method\": \"csc\", \"keep\": 0.1, \"decay\": \"momentum\"}");
	struct gf_json_writer w = {0};

	gf_json_open_line(&w, NULL);
	gf_record_write(&w, s.plan->record, s.params);
	gf_json_close_object(&w);
	EXPECT(strstr(w.text.data, "\"decay\": \"momentum\""), "%s", w.text.data);
	gf_text_release(&w.text);
}

/* --- tests/data/vectors.md: CSC with momentum correction --------------------
 */

static float vector_gradient(int rank, size_t step, size_t i)
{
	static const float first[2][8] = {{1, 2, 3, 4, 1, 0, 0, 1}, {1, -2, 5, 0, 1, 2, 1, 1}};

	return step == 2 ? first[rank][i] : 1;
}

static void expect_values(const float *got, const float *want, size_t n, const char *what)
{
	size_t i;

	for (i = 0; i < n; i++)
		EXPECT_NEAR((double)got[i], (double)want[i], TOLERANCE, "%s[%zu]", what, i);
}

static void test_vector(void)
{
	static const uint64_t important[] = {1, 0, 1, 0};
	static const uint64_t next[2][4] = {{0, 1, 1, 1}, {1, 1, 0, 1}};
	static const float weights[2][8] = {{-.1f, 0, 0, 0, -.1f, -.1f, 0, 0},
					    {-.1f, 0, -.46f, -.28f, -.29f, -.29f, -.145f, -.19f}};
	static const float history[2][8] = {{0, 0, 2.7f, 3.6f, 0, 0, 0, .9f},
					    {0, 0, 4.5f, 0, 0, 0, .9f, .9f}};
	static const size_t layouts[][3] = {{8}, {3, 5}, {1, 6, 1}};
	static const size_t thresholds[] = {0, 8, 1000};
	static struct exchange_run run;
	size_t l, t, steps;
	int r;

	for (l = 0; l < 3; l++)
		for (t = 0; t < 3; t++)
			for (steps = 1; steps <= 2; steps++) {
				run = (struct exchange_run){
					.ranks = 2,
					.counts = layouts[l],
					.ntensors = l + 1,
					.threshold_bytes = thresholds[t],
					.lanes = 1,
					.selection = selection(&(struct keys){2, .75, 0, NAN}),
					.choice = "csc.important",
					.momentum = .9,
					.lr = .1,
					.first_step = 2,
					.steps = steps,
					.gradient = vector_gradient,
					.important = important,
				};
				if (l == 1)
					run.ntensors = 2;
				run_exchange(&run, "vector");
				expect_values(run.weights[0][steps - 1], weights[steps - 1], 8,
					      "w");
				EXPECT(!memcmp(run.next[0], next[steps - 1], sizeof(next[0])),
				       "layout %zu: next set", l);
				for (r = 0; r < 2 && steps == 1; r++)
					expect_values(run.own[r], history[r], 8, "hg");
			}
}

/* --- a serial run, element by element ---------------------------------------
 */

/* Integers, different everywhere, chunks of unlike weight; no two norms come near each other. */
static float noise(int rank, size_t step, size_t i)
{
	return run_noise(rank, step, i, 1000);
}

/* The gradients that a step applies: sums of the chunks that it sent, and its choice. */
struct serial_sums {
	float sum[RUN_ELEMS];
	bool sent[RUN_ELEMS], next[RUN_ELEMS]; /* per chunk */
};

struct serial {
	const struct keys *keys;
	float weights[RUN_ELEMS], velocity[RUN_ELEMS];
	float history[RUN_RANKS][RUN_ELEMS];
	bool important[RUN_ELEMS];
	struct serial_sums under_way[4]; /* oldest first */
	int nunder_way;
};

static size_t serial_kept(const struct keys *keys, size_t n, size_t t)
{
	double ramp = 1;

	if (keys->warmup_steps && t < keys->warmup_steps)
		ramp = (double)t / (double)keys->warmup_steps;
	ramp = (1 - (1 - keys->keep) * ramp) * (double)n - 1e-9;
	return ramp <= 1 ? 1 : (size_t)ceil(ramp);
}

/* The norm of what was sent of elements first to end - 1. */
static double serial_norm(size_t chunk_elems, const float *values, const struct serial_sums *a,
			  size_t first, size_t end)
{
	double squares = 0;
	size_t i;

	for (i = first; i < end; i++)
		if (a->sent[i / chunk_elems])
			squares += (double)values[i] * (double)values[i];
	return sqrt(squares);
}

/* LARS on the parts of tensors that were sent; clipped by their norm. */
static void serial_apply(const struct exchange_run *run, struct serial *s,
			 const struct serial_sums *a)
{
	float mean = 1.0f / (float)run->ranks, rate;
	size_t first = 0, t, i, n = run_elems(run);
	double all, w, g, q, scale = 1;

	all = serial_norm(s->keys->chunk_elems, a->sum, a, 0, n) * (double)mean;
	if (run->clip_norm > 0 && all > run->clip_norm)
		scale = run->clip_norm / all;
	for (t = 0; t < run->ntensors; first += run->counts[t++]) {
		w = serial_norm(s->keys->chunk_elems, s->weights, a, first, first + run->counts[t]);
		g = serial_norm(s->keys->chunk_elems, a->sum, a, first, first + run->counts[t]) *
		    (double)mean * scale;
		q = run->eta > 0 && w > 0 && g > 0 ? run->eta * w / g : 1;
		rate = (float)(run->lr * q) * (float)((double)mean * scale);
		for (i = first; i < first + run->counts[t]; i++) {
			if (!a->sent[i / s->keys->chunk_elems])
				continue;
			s->velocity[i] = (float)run->momentum * s->velocity[i] + rate * a->sum[i];
			s->weights[i] -= s->velocity[i];
		}
	}
	memcpy(s->important, a->next, sizeof(s->important));
}

/* One step over all ranks, in the words of the paper; what it applies is of the step K - 1
 * before. */
static void serial_step(const struct exchange_run *run, struct serial *s, size_t step)
{
	struct serial_sums *a = &s->under_way[s->nunder_way++];
	size_t n = run_elems(run), c = s->keys->chunk_elems, i, k, best;
	size_t nchunks = (n + c - 1) / c, kept;
	double norm[RUN_ELEMS] = {0};
	float decay = (float)s->keys->decay, sum;
	int r;

	if (isnan(decay)) /* the optimiser's, which has none */
		decay = 1;

	memset(a, 0, sizeof(*a));
	memcpy(a->sent, s->important, sizeof(a->sent));
	for (i = 0; i < n; i++) {
		for (r = 0, sum = 0; r < run->ranks; r++) {
			s->history[r][i] += run->gradient(r, step, i);
			sum += s->history[r][i];
			if (!s->important[i / c])
				norm[i / c] += (double)fabsf(s->history[r][i]);
		}
		if (s->important[i / c]) {
			norm[i / c] += (double)fabsf(sum);
			a->sum[i] = sum;
		}
		for (r = 0; r < run->ranks; r++)
			s->history[r][i] = s->important[i / c] ? 0 : decay * s->history[r][i];
	}
	for (kept = serial_kept(s->keys, nchunks, step); kept; kept--) {
		for (k = 0, best = nchunks; k < nchunks; k++)
			if (!a->next[k] && (best == nchunks || norm[k] > norm[best]))
				best = k;
		a->next[best] = true;
	}
	if (s->nunder_way < run->staleness)
		return;
	serial_apply(run, s, &s->under_way[0]);
	s->nunder_way--;
	memmove(s->under_way, s->under_way + 1, (size_t)s->nunder_way * sizeof(*s->under_way));
}

/* To the bit but for norms, which are summed in another order. */
static void compare_serial(struct exchange_run *run, const struct keys *keys, const char *what)
{
	float tolerance = run->eta > 0 || run->clip_norm > 0 ? 1e-5f : 0;
	float largest;
	static struct serial s;
	size_t n = run_elems(run), step, i;

	memset(&s, 0, sizeof(s));
	s.keys = keys;
	memset(s.important, 1, sizeof(s.important));
	run_exchange(run, what);
	for (step = 0; step < run->steps; step++) {
		serial_step(run, &s, step + 1);
		for (i = 0, largest = 0; i < n; i++)
			largest = fmaxf(largest, fabsf(s.weights[i]));
		for (i = 0; i < n; i++)
			if (fabsf(run->weights[0][step][i] - s.weights[i]) > tolerance * largest)
				break;
		EXPECT(i == n, "%s: step %zu, element %zu: want %.9g, got %.9g", what, step + 1, i,
		       (double)s.weights[i], (double)run->weights[0][step][i]);
		if (i < n)
			break;
	}
}

static void test_serial(void)
{
	static const int ranks[] = {1, 2, 3, 4, 5, 8};
	static const size_t counts[] = {60, 7, 130, 1, 33, 200};
	static const struct {
		size_t chunk, warmup, threshold;
		double keep, decay;
		int lanes;
		bool at_end;
		int staleness;
		double eta, clip_norm;
	} cases[] = {
		{10, 0, 0, .3, 1, 1, false},
		{13, 4, 100, .2, 1, 1, false},
		{40, 6, 400, .4, .5, 2, false},
		{7, 3, 1 << 20, .05, 1, 1, true},
		{431, 0, 0, .1, 1, 1, false},
		{1, 2, 64, .5, 1, 3, false},
		{10, 0, 0, .3, 1, 1, false, 2},
		{13, 4, 100, .2, .5, 2, false, 3},
		{7, 3, 1 << 20, .1, 1, 1, true, 4},
		{10, 0, 0, .3, 1, 1, false, 1, .02, 0},
		{7, 3, 100, .1, 1, 1, false, 1, 0, 500},
		{13, 2, 100, .2, 1, 2, false, 2, .02, 700},
		{13, 4, 100, .2, NAN, 1, false},
	};
	static struct exchange_run run;
	char what[64];
	size_t i, k;

	for (i = 0; i < GF_ARRAY_LENGTH(cases); i++)
		for (k = 0; k < GF_ARRAY_LENGTH(ranks); k++) {
			const struct keys keys = {cases[i].chunk, cases[i].keep, cases[i].warmup,
						  cases[i].decay};

			run = (struct exchange_run){
				.ranks = ranks[k],
				.counts = counts,
				.ntensors = GF_ARRAY_LENGTH(counts),
				.threshold_bytes = cases[i].threshold,
				.lanes = cases[i].lanes,
				.at_end = cases[i].at_end,
				.selection = selection(&keys),
				.choice = "csc.important",
				.momentum = isnan(cases[i].decay) ? 0 : .5,
				.lr = .25,
				.optimizer = cases[i].eta > 0 ? "lars" : NULL,
				.eta = cases[i].eta,
				.clip_norm = cases[i].clip_norm,
				.staleness = cases[i].staleness,
				.first_step = 1,
				.steps = 12,
				.gradient = noise,
			};
			if (!test_tries(i + k, 2))
				continue;
			snprintf(what, sizeof(what), "csc case %zu, %d ranks", i, ranks[k]);
			compare_serial(&run, &keys, what);
			/* means by powers of two are exact */
			if (ranks[k] & (ranks[k] - 1))
				continue;
			run.scale = 64;
			compare_serial(&run, &keys, what);
		}
}

/* After the ramp a rank sends about `keep` of what dense would. */
static void test_bytes(void)
{
	static const size_t counts[] = {400};
	static struct exchange_run run;
	double share;

	run = (struct exchange_run){
		.ranks = 4,
		.counts = counts,
		.ntensors = 1,
		.lanes = 1,
		.selection = selection(&(struct keys){40, .2, 0, 1}),
		.lr = .1,
		.first_step = 1,
		.steps = 11,
		.gradient = noise,
	};
	run_exchange(&run, "bytes");
	/* one dense step, ten of a fifth, and 22 floats of norms in each */
	share = (double)run.sent_bytes[0] / (11. * (double)run.dense_bytes);
	EXPECT(share > 3. / 11 && share < 3. / 11 + .08, "share %g", share);
}

int main(void)
{
	watchdog(250);
	test_kept();
	test_decay();
	test_vector();
	test_serial();
	test_bytes();
	return TEST_END();
}
