/* SPDX-License-Identifier: BSD-3-Clause */
/* The search for the best plan and its lower bounds, against every plan there is, each simulated by
 * a model of its own. */
#include <math.h>

#include "base/array.h"
#include "planner/policies/policy.h"
#include "planner/workbench.h"
#include "planner_cases.h"
#include "test.h"

#define TOLERANCE 1e-3  /* of the optimum on several lanes */
#define EXACT     1e-12 /* on one */
#define BOUND     1e-9

/* --- the model, by events, on the profile's own figures --------------------
 */

struct message {
	size_t first, last;
	bool simultaneous;
	const struct gf_allreduce_cost *cost;
	double bytes, ready, startup, left; /* ready: backward work */
	bool started, ended;
};

struct plan {
	const struct gf_model_profile *model;
	struct message messages[CASE_TENSORS];
	size_t n;
	int lanes;
};

static double gamma_of(const struct message *m, int n)
{
	const struct gf_contention *c = &m->cost->contention;
	const struct gf_contention_entry *e = c->entries;
	double at[2], share = 0;
	size_t low = 0, high, i;

	if (n == 1)
		return 1;
	while (low + 1 < c->nentries && (double)e[low + 1].size_bytes <= m->bytes)
		low++;
	high = low;
	if (low + 1 < c->nentries && m->bytes > (double)e[low].size_bytes) {
		high++;
		share = log(m->bytes / (double)e[low].size_bytes) /
			log((double)e[high].size_bytes / (double)e[low].size_bytes);
	}
	for (i = 0; i < 2; i++) {
		const struct gf_contention_entry *t = &e[i ? high : low];
		size_t last = t->ngamma;

		at[i] = (size_t)n <= last ? t->gamma[n - 1] : n * t->gamma[last - 1] / (double)last;
	}
	return at[0] * (1 - share) + at[1] * share;
}

static bool in_flight(const struct message *m)
{
	return m->started && !m->ended;
}

/* Starts and ends what is due; returns whether anything was. */
static bool settle(struct plan *p, double done)
{
	bool earlier = true, changed = false;
	size_t i;
	int n = 0;

	for (i = 0; i < p->n; i++) {
		struct message *m = &p->messages[i];

		if (in_flight(m) && m->startup <= 0 && m->left <= 0) {
			m->ended = true;
			changed = true;
		}
		n += in_flight(m);
	}
	for (i = 0; i < p->n && earlier; i++) {
		struct message *m = &p->messages[i];

		if (!m->started && m->ready <= done && n < (m->simultaneous ? p->lanes : 1)) {
			m->started = changed = true;
			n++;
		}
		earlier = m->started;
	}
	return changed;
}

/* The time to the next event at the present rates; then that much passes. */
static double advance(struct plan *p, double *done)
{
	double slowdown = p->model->overlap_slowdown, step = INFINITY;
	int active = 0, draining = 0;
	bool backward = *done < p->model->backward_s;
	double pace;
	size_t i;

	for (i = 0; i < p->n; i++) {
		active += in_flight(&p->messages[i]);
		draining += in_flight(&p->messages[i]) && p->messages[i].startup <= 0;
	}
	pace = active ? 1 / slowdown : 1;
	if (backward)
		step = (p->model->backward_s - *done) / pace;
	for (i = 0; i < p->n; i++) {
		struct message *m = &p->messages[i];

		if (in_flight(m))
			step = fmin(step,
				    m->startup > 0 ? m->startup : m->left * gamma_of(m, draining));
		else if (!m->started && m->ready > *done)
			step = fmin(step, (m->ready - *done) / pace);
	}
	for (i = 0; i < p->n; i++) {
		struct message *m = &p->messages[i];
		double whole = m->startup > 0 ? m->startup : m->left * gamma_of(m, draining);

		if (!in_flight(m))
			continue;
		/* what ends now ends exactly, whatever the rounding */
		if (m->startup > 0)
			m->startup = whole <= step * (1 + BOUND) ? 0 : m->startup - step;
		else
			m->left = whole <= step * (1 + BOUND)
					  ? 0
					  : m->left - step / gamma_of(m, draining);
	}
	for (i = 0; i < p->n && backward; i++)
		if (p->messages[i].ready > *done &&
		    p->messages[i].ready <= (*done + step * pace) * (1 + BOUND))
			p->messages[i].ready = *done;
	if (backward)
		*done = *done + step * pace >= p->model->backward_s * (1 - BOUND)
				? p->model->backward_s
				: *done + step * pace;
	return step;
}

static double simulate(struct plan *p)
{
	double now = p->model->forward_s, done = 0;
	bool running = true;
	size_t i;

	for (i = 0; i < p->n; i++) {
		struct message *m = &p->messages[i];

		m->started = m->ended = false;
		m->ready = p->model->tensors[m->last].ready_s;
		m->startup = m->cost->startup_s;
		m->left = m->cost->per_byte_s * m->bytes;
	}
	while (running) {
		while (settle(p, done))
			;
		running = done < p->model->backward_s;
		for (i = 0; i < p->n; i++)
			running |= !p->messages[i].ended;
		if (running)
			now += advance(p, &done);
	}
	return now + p->model->update_s;
}

/* All plans from this tensor on. */
static double optimum_s(struct plan *p, const struct problem_store *s, size_t first)
{
	double best = INFINITY, bytes = 0;
	size_t n = s->model.ntensors, last, k;
	int mode;

	if (first == n)
		return simulate(p);
	for (last = first; last < n; last++) {
		bytes += (double)gf_tensor_bytes(&s->tensors[last]);
		for (k = 0; k < s->network.nallreduce; k++)
			for (mode = 0; mode < (p->lanes > 1 && p->n ? 2 : 1); mode++) {
				p->messages[p->n++] = (struct message){
					.first = first,
					.last = last,
					.simultaneous = mode,
					.cost = &s->costs[k],
					.bytes = bytes,
				};
				best = fmin(best, optimum_s(p, s, last + 1));
				p->n--;
			}
	}
	return best;
}

/* --- random instances ------------------------------------------------------
 */

/* Every algorithm with contention of its own: by size, at one size, or none. */
static void store(struct problem_store *s, uint64_t seed, size_t ntensors, size_t algorithms,
		  int lanes)
{
	static const char *const names[] = {"ring", "butterfly", "rhd"};
	struct gf_rng rng;
	size_t k, e, n;

	store_random(s, seed, ntensors, lanes);
	gf_rng_init(&rng, seed, 7);
	s->network.nallreduce = algorithms;
	for (k = 0; k < algorithms; k++) {
		struct gf_allreduce_cost *c = &s->costs[k];

		*c = s->costs[0];
		c->algorithm = (char *)names[k];
		if (k > 0) {
			c->startup_s *= 0.2 + 1.2 * gf_rng_uniform(&rng);
			c->per_byte_s *= 0.6 + 1.2 * gf_rng_uniform(&rng);
		}
		c->contention.entries = s->entries[k];
		c->contention.nentries = 1 + gf_rng_below(&rng, 2);
		for (e = 0; e < 2; e++) {
			s->entries[k][e].size_bytes = e ? 4 + gf_rng_below(&rng, 200) : 4;
			s->entries[k][e].gamma = s->gamma[k][e];
			s->entries[k][e].ngamma = 2 + gf_rng_below(&rng, 3);
			s->gamma[k][e][0] = 1;
			for (n = 1; n < 4; n++)
				s->gamma[k][e][n] =
					fmin(s->gamma[k][e][n - 1] + gf_rng_uniform(&rng),
					     (double)n + 1);
		}
		if (s->entries[k][1].size_bytes == 4)
			s->entries[k][1].size_bytes = 5;
	}
}

static void test_optimum(void)
{
	static const struct {
		size_t ntensors, algorithms, instances;
		int lanes;
	} cases[] = {
		{7, 1, 12, 1}, {5, 3, 12, 1}, {8, 1, 16, 2}, {6, 2, 16, 2},
		{5, 3, 16, 2}, {8, 1, 16, 3}, {6, 2, 16, 3}, {5, 3, 16, 3},
		{8, 1, 16, 4}, {6, 2, 16, 4}, {5, 3, 16, 4},
	};
	size_t i, seed;

	for (i = 0; i < GF_ARRAY_LENGTH(cases); i++)
		for (seed = 1; seed <= cases[i].instances; seed++) {
			struct problem_store s;
			struct plan p = {.model = &s.model};
			double best_s = INFINITY;
			struct gf_draft d;
			struct gf_workbench w;

			if (!test_tries(i + seed, 5))
				continue;
			store(&s, 100 * i + seed, cases[i].ntensors, cases[i].algorithms,
			      cases[i].lanes);
			for (p.lanes = 1; p.lanes <= cases[i].lanes; p.lanes++)
				best_s = fmin(best_s, optimum_s(&p, &s, 0));
			EXPECT(gf_workbench_init(&w, &s.problem, NULL) == 0, "work");
			gf_draft_make(&d, &w, &gf_policy_optimal, cases[i].lanes);
			EXPECT(d.iteration_s <=
				       best_s * (1 + (cases[i].lanes > 1 ? TOLERANCE : BOUND)),
			       "case %zu, seed %zu: want %.9g, got %.9g", i, seed, best_s,
			       d.iteration_s);
			EXPECT(d.iteration_s >= best_s * (1 - BOUND),
			       "case %zu, seed %zu: %.9g is below the optimum %.9g", i, seed,
			       d.iteration_s, best_s);
			EXPECT(gf_workbench_bound_s(&w, cases[i].lanes) <= best_s * (1 + BOUND),
			       "case %zu, seed %zu: bound %.9g above %.9g", i, seed,
			       gf_workbench_bound_s(&w, cases[i].lanes), best_s);
			gf_draft_release(&d);
			gf_workbench_release(&w);
		}
}

/* More lanes and more algorithms are never worse. */
static void test_monotone(void)
{
	struct problem_store s;
	uint64_t seed;
	size_t k;
	int lanes;

	for (seed = 1; seed <= 6; seed++) {
		double before_s = INFINITY, alone_s = INFINITY;
		struct gf_allreduce_cost costs[3];
		struct gf_draft d;
		struct gf_workbench w;

		if (!test_tries(seed, 1))
			continue;
		store(&s, 5000 + seed, 11, 3, 4);
		for (lanes = 1; lanes <= 4; lanes++) {
			EXPECT(gf_workbench_init(&w, &s.problem, NULL) == 0, "work");
			gf_draft_make(&d, &w, &gf_policy_optimal, lanes);
			EXPECT(d.iteration_s <= before_s, "seed %zu, %d lanes: %.9g after %.9g",
			       (size_t)seed, lanes, d.iteration_s, before_s);
			before_s = d.iteration_s;
			gf_draft_release(&d);
			gf_workbench_release(&w);
		}
		memcpy(costs, s.costs, sizeof(costs));
		s.network.nallreduce = 1;
		for (k = 0; k < 3; k++) {
			s.costs[0] = costs[k];
			EXPECT(gf_workbench_init(&w, &s.problem, NULL) == 0, "work");
			gf_draft_make(&d, &w, &gf_policy_optimal, 4);
			alone_s = fmin(alone_s, d.iteration_s);
			gf_draft_release(&d);
			gf_workbench_release(&w);
		}
		EXPECT(before_s <= alone_s, "seed %zu: %.9g with all, %.9g", (size_t)seed, before_s,
		       alone_s);
	}
}

/* An instance whose optimum needs a dearer algorithm that slows little beside others, on three
 * lanes: all messages by the second one, [0] first, then
 * [1-3] [4] [5-6] [7-8] [9-10] together. */
static void test_dearer_pays(void)
{
	static const struct {
		size_t count;
		double ready_s;
	} tensors[] = {
		{1690, 2.618}, {1, 4.518},    {19, 4.518}, {25, 4.518}, {968, 4.84}, {2, 4.84},
		{60, 4.84},    {1458, 4.867}, {10, 5.005}, {1, 8.987},  {58, 8.987},
	};
	struct problem_store s;
	struct gf_draft d;
	struct gf_workbench w;
	size_t i;

	store_random(&s, 1, GF_ARRAY_LENGTH(tensors), 4);
	for (i = 0; i < GF_ARRAY_LENGTH(tensors); i++) {
		s.tensors[i].count_elems = tensors[i].count;
		s.tensors[i].ready_s = tensors[i].ready_s;
	}
	s.model.forward_s = s.model.update_s = 0;
	s.model.backward_s = 8.987;
	s.model.overlap_slowdown = 1;
	s.network.nallreduce = 2;
	for (i = 0; i < 2; i++) {
		s.costs[i] = (struct gf_allreduce_cost){
			.algorithm = (char *)(i ? "butterfly" : "ring"),
			.per_byte_s = i ? 0.0027662 : 0.0022103,
			.contention = {s.entries[i], i ? 2 : 0},
		};
		s.entries[1][i].size_bytes = i ? 64 : 4;
		s.entries[1][i].gamma = s.gamma[1][i];
		s.entries[1][i].ngamma = 2 + i;
		s.gamma[1][i][0] = 1;
		s.gamma[1][i][1] = i ? 1.0173 : 1.8409;
		s.gamma[1][i][2] = 1.807;
	}
	EXPECT(gf_workbench_init(&w, &s.problem, NULL) == 0, "work");
	gf_draft_make(&d, &w, &gf_policy_optimal, 4);
	EXPECT(d.iteration_s < 30.8719, "want 30.8718, got %.9g", d.iteration_s);
	gf_draft_release(&d);
	gf_workbench_release(&w);
}

/* The fewest messages of any plan on one lane within the limit. */
static size_t fewest_within(const struct problem_store *s, double limit_s)
{
	size_t n = s->model.ntensors, fewest = n, first, last;
	unsigned mask;

	for (mask = 0; mask < 1U << (n - 1); mask++) {
		struct plan p = {.model = &s->model, .lanes = 1};
		double bytes = 0;

		for (first = last = 0; last < n; last++) {
			bytes += (double)gf_tensor_bytes(&s->tensors[last]);
			if (last + 1 < n && !(mask >> last & 1))
				continue;
			p.messages[p.n++] = (struct message){
				.first = first,
				.last = last,
				.cost = &s->costs[0],
				.bytes = bytes,
			};
			first = last + 1;
			bytes = 0;
		}
		if (p.n < fewest && simulate(&p) <= limit_s)
			fewest = p.n;
	}
	return fewest;
}

/* Within the tolerance, on one lane: exactly the fewest messages where they do nothing to backward,
 * else no more than one above them. */
static void test_fewest(void)
{
	static const double tolerances[] = {0.005, 0.02, 0.1, 0.5};
	size_t more = 0, seed;

	for (seed = 1; seed <= 80; seed++) {
		double tolerance = tolerances[seed % 4], limit_s;
		size_t want, slowed = seed / 4 % 2;
		struct problem_store s;
		struct gf_draft d;
		struct gf_workbench w;

		store(&s, 9000 + seed, 4 + seed % 7, 1, 1);
		s.model.overlap_slowdown = slowed ? 1.4 : 1;
		s.problem.tolerance = tolerance;
		EXPECT(gf_workbench_init(&w, &s.problem, NULL) == 0, "work");
		gf_draft_make(&d, &w, &gf_policy_optimal, 1);
		limit_s = fmax(d.fastest_s, 0) * (1 + tolerance);
		if (!(d.fastest_s > 0))
			limit_s = d.iteration_s * (1 + tolerance);
		EXPECT(d.iteration_s <= limit_s, "seed %zu: %.9g", seed, d.iteration_s);
		want = fewest_within(&s, limit_s * (1 - BOUND));
		EXPECT(d.nsends <= want + slowed, "seed %zu: %zu messages, want %zu", seed,
		       d.nsends, want);
		more += d.nsends > want;
		gf_draft_release(&d);
		gf_workbench_release(&w);
	}
	EXPECT(more <= 4, "%zu plans have a message too many", more);
}

/* --- dear against all cuts and ways ---------------------------------------- */

/* The network's entries, and of each that has halves these, which are not alike. */
struct halves {
	struct gf_allreduce_cost costs[9];
	struct gf_cost_line larger[6][2];
};

static void add_half(struct problem_store *s, struct halves *h, size_t like, enum gf_coll_half half,
		     struct gf_rng *rng)
{
	const double by = 0.2 + gf_rng_uniform(rng);
	size_t n = s->network.nallreduce++, k;
	struct gf_allreduce_cost *c = &h->costs[n];
	struct gf_cost_line *larger = h->larger[n - 3];

	*c = h->costs[like];
	c->collective = half;
	c->startup_s *= by;
	c->per_byte_s *= c->nlarger ? by : 0.2 + gf_rng_uniform(rng);
	c->larger = larger;
	for (k = 0; k < c->nlarger; k++) {
		larger[k] = h->costs[like].larger[k];
		larger[k].startup_s *= by;
		larger[k].per_byte_s *= by;
	}
}

static void add_halves(struct problem_store *s, struct halves *h, uint64_t seed)
{
	size_t n = s->network.nallreduce, i;
	struct gf_rng rng;

	memset(h, 0, sizeof(*h));
	memcpy(h->costs, s->costs, sizeof(s->costs));
	s->network.allreduce = h->costs;
	gf_rng_init(&rng, seed, 2);
	for (i = n; i < 3; i++) /* of no use where halves are wanted */
		h->costs[i] = (struct gf_allreduce_cost){.algorithm = (char *)"tree",
							 .startup_s = 1e6 + (double)i};
	s->network.nallreduce = 3;
	for (i = 0; i < n; i++) {
		add_half(s, h, i, GF_COLL_REDUCE_SCATTER, &rng);
		add_half(s, h, i, GF_COLL_ALL_GATHER, &rng);
	}
}

struct split_message {
	double ready_s, need_s, scatter_s, gather_s;
};

/* The definition, written apart: one reduce-scatter after the other from when its gradients are
 * there, one all-gather after the other from the start of forward, the last message's first. */
static double split_iteration_s(const struct gf_model_profile *model, const struct split_message *m,
				size_t n)
{
	double late_s = 0, gathered_s = 0, end_s;
	size_t i;

	for (i = n; i-- > 0;) {
		gathered_s += m[i].gather_s;
		late_s = fmax(late_s, gathered_s - m[i].need_s);
	}
	end_s = model->forward_s + late_s;
	for (i = 0; i < n; i++)
		end_s = fmax(end_s, model->forward_s + late_s + m[i].ready_s) + m[i].scatter_s;
	return fmax(end_s, model->forward_s + late_s + model->backward_s) + model->update_s;
}

struct cuts {
	const struct problem_store *s;
	const struct gf_network *n;
	struct split_message messages[CASE_TENSORS];
	double best_s;
};

static double entry_s(const struct gf_network *n, const char *algorithm, enum gf_coll_half half,
		      double bytes)
{
	size_t i;

	for (i = 0; i < n->nallreduce; i++)
		if (n->allreduce[i].collective == half &&
		    strcmp(n->allreduce[i].algorithm, algorithm) == 0) {
			struct gf_cost_lines lines = gf_allreduce_lines(&n->allreduce[i]);

			return gf_cost_lines_s(&lines, bytes);
		}
	return NAN;
}

static void try_cuts(struct cuts *c, size_t first, size_t count)
{
	static const char *const ways[] = {"ring", "rhd"};
	const struct gf_model_profile *model = &c->s->model;
	struct split_message *m = &c->messages[count];
	double bytes = 0, need_s = INFINITY;
	size_t last, k;

	if (first == model->ntensors)
		c->best_s = fmin(c->best_s, split_iteration_s(model, c->messages, count));
	for (last = first; last < model->ntensors; last++) {
		const struct gf_tensor *t = &model->tensors[last];
		double mirrored = model->backward_s > 0
					  ? model->forward_s * (1 - t->ready_s / model->backward_s)
					  : 0;

		bytes += (double)gf_tensor_bytes(t);
		need_s = fmin(need_s, isnan(t->need_s) ? mirrored : t->need_s);
		for (k = 0; k < 2; k++) {
			double whole_s = entry_s(c->n, ways[k], GF_COLL_WHOLE, bytes);
			double scatter_s = entry_s(c->n, ways[k], GF_COLL_REDUCE_SCATTER, bytes);
			double gather_s = entry_s(c->n, ways[k], GF_COLL_ALL_GATHER, bytes);

			if (isnan(whole_s))
				continue;
			*m = (struct split_message){t->ready_s, need_s, whole_s / 2, whole_s / 2};
			if (!isnan(scatter_s)) {
				m->scatter_s = scatter_s;
				m->gather_s = gather_s;
			}
			try_cuts(c, last + 1, count + 1);
		}
	}
}

static void test_dear(void)
{
	uint64_t seed;

	for (seed = 1; seed <= 60; seed++) {
		size_t i, n = 4 + seed % 4;
		struct problem_store s;
		struct halves h;
		struct cuts all = {.s = &s, .n = &s.network, .best_s = INFINITY};
		struct gf_draft d;
		struct gf_workbench w;
		double bound_s;

		store_lines(&s, seed, n, 1);
		s.model.overlap_slowdown = 1;
		s.problem.halves = true;
		if (seed % 4)
			add_halves(&s, &h, seed);
		for (i = 0; i < n && seed % 3 == 0; i++)
			s.tensors[i].need_s = s.model.forward_s * (double)(n - 1 - i) / (double)n;
		EXPECT(gf_workbench_init(&w, &s.problem, NULL) == 0, "work");
		try_cuts(&all, 0, 0);
		gf_draft_make(&d, &w, &gf_policy_dear, 1);
		EXPECT_NEAR(d.iteration_s, all.best_s, BOUND, "seed %zu", (size_t)seed);
		bound_s = gf_workbench_split_bound_s(&w, 1);
		EXPECT(bound_s <= all.best_s * (1 + BOUND), "seed %zu: bound %.17g above %.17g",
		       (size_t)seed, bound_s, all.best_s);
		gf_draft_release(&d);
		gf_workbench_release(&w);
	}
}

int main(void)
{
	test_dear();
	test_optimum();
	test_monotone();
	test_dearer_pays();
	test_fewest();
	return TEST_END();
}
