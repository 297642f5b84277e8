/* SPDX-License-Identifier: BSD-3-Clause */
/* Measuring without anything to measure: networks with known constants. */
#include "base/array.h"
#include "base/heap.h"
#include "base/rng.h"
#include "profiler/curve.h"
#include "profiler/network.h"
#include "profiler/network_parts.h"
#include "profiler/pairs.h"
#include "ranks.h"

/* How far a recovered constant may be off, relative. */
static const double tolerance = 0.05;

/* What one message takes; n at once drain at 1 / gamma[n - 1]. */
struct synthetic {
	const char *name;
	double startup_s, per_byte_s, gamma[4], noise;
	double meeting_s; /* what a repeat takes besides */
	/* Messages of jump_bytes and more start so much later. */
	size_t jump_bytes;
	double jump_s;
};

struct state {
	const struct synthetic *net;
	struct gf_rng rng;
	double spent_s;
};

static int sit(void *ctx, const struct gf_measure_sitting *s, struct gf_measure_samples *samples,
	       struct gf_error *err)
{
	struct state *state = ctx;
	const struct synthetic *n = state->net;
	double drain = n->per_byte_s * (double)s->bytes, time;
	bool jumps = n->jump_bytes && s->bytes >= n->jump_bytes;
	double startup = n->startup_s + (jumps ? n->jump_s : 0);
	int repeats, i;

	(void)err;
	time = s->lanes > 1 ? startup + n->gamma[s->lanes - 1] * drain
			    : s->messages * (startup + drain);
	repeats = (int)fmin(s->budget.high, fmax(s->budget.low, s->budget.budget_s / time));
	for (i = 0; i < repeats; i++) {
		double noisy = time * (1 + n->noise * gf_rng_normal(&state->rng));

		/* now and then something gets in the way */
		if (n->noise > 0 && gf_rng_uniform(&state->rng) < 0.05)
			noisy *= 3;
		gf_measure_samples_add(samples, noisy + n->meeting_s);
	}
	state->spent_s += (repeats + gf_measure_uncounted(time)) * (time + n->meeting_s);
	return 0;
}

static const struct synthetic networks[] = {
	{"exact", 1e-3, 1e-8, {1, 1.5, 2, 2.5}, 0, 0},
	{"1 Gb/s", 3e-4, 1.2e-8, {1, 2, 3, 4}, 0.02, 1e-5},
	{"shared memory", 5e-6, 2.5e-10, {1, 1.2, 1.9, 2.6}, 0.02, 1e-7},
	{"paper", 1.065e-3, 4.6e-10, {1, 1.5, 1.8, 2.2}, 0.02, 1e-5},
	{"slow", 5e-4, 2.5e-7, {1, 1.9, 2.8, 3.7}, 0.01, 1e-5},
	{"asks first", 5e-5, 9e-9, {1, 1.8, 2.6, 3.4}, 0.02, 1e-6, 65536, 2e-3},
};

static struct gf_measure_curve_config config_on(struct gf_comm *comm)
{
	return (struct gf_measure_curve_config){
		.comm = comm,
		.limits = {.min_bytes = 1024,
			   .max_bytes = (size_t)16 << 20,
			   .budget_s = 10,
			   .point = {0.1, 5, 1000}},
		.lanes = 4,
		.lines = GF_FIT_LINES_MOST,
	};
}

static void recover_on(struct gf_comm *comm, void *ctx)
{
	const struct synthetic *n = ctx;
	struct state state = {.net = n};
	struct gf_measure_subject subject = {n->name, sit, &state};
	struct gf_measure_curve_config config = config_on(comm);
	struct gf_allreduce_cost curve = {0};
	struct gf_text remarks = {0};
	struct gf_error err = {""};
	size_t i, k;

	gf_rng_init(&state.rng, 11, 0); /* the same on every rank */
	EXPECT(!gf_measure_curve(&config, &subject, &curve, &remarks, &err), "%s: %s", n->name,
	       err.text);
	EXPECT(curve.fit.npoints >= GF_MEASURE_FEWEST_SIZES, "%s: %zu points", n->name,
	       curve.fit.npoints);
	EXPECT_NEAR(curve.startup_s / n->startup_s, 1, tolerance, "%s", n->name);
	EXPECT_NEAR(curve.per_byte_s / n->per_byte_s, 1, tolerance, "%s", n->name);
	EXPECT(curve.nlarger == (n->jump_bytes > 0), "%s: %zu lines more", n->name, curve.nlarger);
	if (curve.nlarger)
		EXPECT_NEAR(curve.larger[0].startup_s / (n->startup_s + n->jump_s), 1, tolerance,
			    "%s", n->name);
	EXPECT(curve.fit.r_squared > 0.99 && curve.fit.residual_max < 0.1, "%s: R^2 %g, off by %g",
	       n->name, curve.fit.r_squared, curve.fit.residual_max);
	EXPECT(curve.contention.nentries > 0, "%s: no contention", n->name);
	for (i = 0; i < curve.contention.nentries; i++)
		for (k = 0; k < 4; k++)
			EXPECT_NEAR(curve.contention.entries[i].gamma[k] / n->gamma[k], 1,
				    2 * tolerance, "%s: %zu at once, %zu B", n->name, k + 1,
				    curve.contention.entries[i].size_bytes);
	EXPECT(state.spent_s < 1.1 * config.limits.budget_s, "%s: %g s", n->name, state.spent_s);
	gf_measure_curve_release(&curve);
	gf_text_release(&remarks);
}

static void test_recovers(void)
{
	size_t i;

	for (i = 0; i < GF_ARRAY_LENGTH(networks); i++)
		on_ranks(2, recover_on, (void *)&networks[i]);
}

/* What takes as long at any size up to a border tells nothing of messages at once there. */
static int sit_flat(void *ctx, const struct gf_measure_sitting *s,
		    struct gf_measure_samples *samples, struct gf_error *err)
{
	const double alone_s = s->bytes <= 200003 ? 6.0001e-5 : 3e-10 * (double)s->bytes;
	int i;

	(void)ctx;
	(void)err;
	for (i = 0; i < s->budget.low; i++)
		gf_measure_samples_add(samples, alone_s * (s->lanes > 1 ? s->lanes : s->messages));
	return 0;
}

static void flat_on(struct gf_comm *comm, void *ctx)
{
	struct gf_measure_subject subject = {"flat", sit_flat, NULL};
	struct gf_measure_curve_config config = config_on(comm);
	struct gf_allreduce_cost curve = {0};
	struct gf_text remarks = {0};
	struct gf_error err = {""};
	size_t i, k;

	(void)ctx;
	EXPECT(!gf_measure_curve(&config, &subject, &curve, &remarks, &err), "%s", err.text);
	EXPECT(curve.per_byte_s < 1e-20 && curve.nlarger == 1, "%g s per byte, %zu lines more",
	       curve.per_byte_s, curve.nlarger);
	EXPECT(curve.contention.nentries > 0, "no contention");
	for (i = 0; i < curve.contention.nentries; i++)
		for (k = 0; k < 4; k++)
			EXPECT_NEAR(curve.contention.entries[i].gamma[k], k + 1, 0.5,
				    "%zu B, %zu at once", curve.contention.entries[i].size_bytes,
				    k + 1);
	gf_measure_curve_release(&curve);
	gf_text_release(&remarks);
}

static void test_unphysical(void)
{
	static const struct {
		const char *name;
		double time[4];
	} cases[] = {
		{"negative startup", {1e-9, 3e-6, 9e-6, 4e-5}},
		{"falling", {4e-3, 3e-3, 2e-3, 1e-3}},
		{"crooked", {1e-3, 9e-3, 1e-3, 9e-3}},
		{"fine", {2e-3, 3e-3, 5e-3, 9e-3}},
	};
	static const size_t sizes[4] = {1 << 20, 2 << 20, 4 << 20, 8 << 20};
	size_t i;

	for (i = 0; i < GF_ARRAY_LENGTH(cases); i++) {
		struct gf_allreduce_cost c = {0};
		struct gf_error err = {""};

		c.fit.npoints = 4;
		c.fit.size_bytes = gf_xmemdup(sizes, sizeof(sizes));
		c.fit.time_s = gf_xmemdup(cases[i].time, sizeof(cases[i].time));
		EXPECT(!gf_measure_fit(&c, 1, &err), "%s", err.text);
		EXPECT(c.startup_s >= 0 && c.per_byte_s >= 0, "%s", cases[i].name);
		gf_measure_curve_release(&c);
	}
}

static void test_fits_the_time(void)
{
	static const struct {
		const char *name;
		struct gf_measure_pace pace;
		double budget_s;
		bool whole;
		size_t min_count, last; /* 0: anything below max */
		int overrun;
	} cases[] = {
		{"plenty", {1e-5, 1e-10, 1e-3}, 10, false, 13, 4 << 20, 0},
		{"slow link", {1e-3, 2e-7, 1e-3}, 10, false, 8, 0, 0},
		{"slow link, whole", {1e-3, 2e-7, 1e-3}, 20, true, 8, 4 << 20, 0},
		{"crawl", {1e-2, 1e-4, 1e-3}, 1, false, 8, 256 << 10, 1},
		{"crawl, whole", {1e-2, 1e-4, 1e-3}, 1, true, 8, 4 << 20, 1},
		{"dear sittings", {1e-5, 1e-10, 0.2}, 1, false, 8, 0, 1},
	};
	size_t i, k;

	for (i = 0; i < GF_ARRAY_LENGTH(cases); i++) {
		struct gf_measure_limits l = {
			1024, 4 << 20, cases[i].whole, cases[i].budget_s, {0.1, 5, 1000}};
		struct gf_measure_sweep s;
		size_t last;

		gf_measure_sweep_choose(&l, &cases[i].pace, &s);
		last = s.sizes[s.count - 1];
		EXPECT(s.count >= cases[i].min_count, "%s: %zu sizes", cases[i].name, s.count);
		EXPECT(cases[i].last ? last == cases[i].last : last < 4 << 20, "%s: up to %zu",
		       cases[i].name, last);
		EXPECT((s.takes_s > l.budget_s * 1.001) == cases[i].overrun, "%s: %g of %g s",
		       cases[i].name, s.takes_s, l.budget_s);
		EXPECT(s.rounds >= 1 && s.rounds <= GF_MEASURE_ROUNDS, "%s", cases[i].name);
		for (k = 0; k < s.count; k++)
			EXPECT(s.sizes[k] % 4 == 0 && (k == 0 || s.sizes[k] > s.sizes[k - 1]),
			       "%s: size %zu", cases[i].name, s.sizes[k]);
		free(s.sizes);
	}
}

/* Every two members meet once, nobody twice in a round, in O(N) rounds. */
static void test_tournament(void)
{
	size_t n, r, i;

	for (n = 2; n <= 33; n++) {
		size_t rounds = gf_measure_pair_rounds(n);
		int *met = gf_xcalloc(n * n, sizeof(*met));

		EXPECT(rounds == (n % 2 ? n : n - 1), "%zu: %zu", n, rounds);
		for (r = 0; r < rounds; r++)
			for (i = 0; i < n; i++) {
				int other = gf_measure_pair_of(n, r, i);

				if (other < 0)
					continue;
				EXPECT((size_t)other < n && (size_t)other != i, "%zu: %d", n,
				       other);
				EXPECT(gf_measure_pair_of(n, r, (size_t)other) == (int)i,
				       "%zu members, round %zu: %zu", n, r, i);
				met[i * n + (size_t)other]++;
			}
		for (i = 0; i < n * n; i++)
			EXPECT(met[i] == (i / n != i % n), "%zu: %zu", n, i);
		free(met);
	}
}

/* rate[from][to] in MB/s; which are slow, as letters: S sends, R receives */
static void test_judge(void)
{
	static const struct {
		const char *name;
		size_t count;
		double rate[16];
		const char *hosts; /* per host: . S R B(oth) */
		size_t paths;
	} cases[] = {
		{"alike", 3, {0, 118, 117, 116, 0, 118, 117, 118, 0}, "...", 0},
		{"one slow both ways", 3, {0, 12, 118, 12, 0, 12, 118, 12, 0}, ".B.", 0},
		{"sends slowly",
		 4,
		 {0, 118, 118, 118, 12, 0, 12, 12, 118, 118, 0, 118, 118, 118, 118, 0},
		 ".S..",
		 0},
		{"a path",
		 4,
		 {0, 118, 118, 30, 118, 0, 118, 118, 118, 118, 0, 118, 118, 118, 118, 0},
		 "....",
		 1},
		{"two hosts", 2, {0, 118, 12, 0}, "..", 0},
	};
	size_t i, k, paths;

	for (i = 0; i < GF_ARRAY_LENGTH(cases); i++) {
		char *names[] = {"h0", "h1", "h2", "h3"};
		int ranks[] = {0, 1, 2, 3};
		double latency[16] = {0};
		struct gf_measure_pairs p = {cases[i].count,          true,   names, ranks,
					     (double *)cases[i].rate, latency};
		struct gf_measure_pairs_verdict v;
		struct gf_text text = {0};
		char hosts[5] = "";

		gf_measure_pairs_judge(&p, &v);
		for (k = 0; k < p.count; k++)
			hosts[k] = v.slow_send[k] && v.slow_receive[k] ? 'B'
				   : v.slow_send[k]                    ? 'S'
				   : v.slow_receive[k]                 ? 'R'
								       : '.';
		EXPECT_TEXT(hosts, cases[i].hosts);
		for (k = 0, paths = 0; k < p.count * p.count; k++)
			paths += v.slow_path[k];
		EXPECT(paths == cases[i].paths, "%s: %zu paths", cases[i].name, paths);
		EXPECT(v.any == (strpbrk(hosts, "SRB") || paths), "%s", cases[i].name);
		gf_measure_pairs_table(&p, &v, 0, &text);
		EXPECT(strstr(text.data, "h1") && !strstr(text.data, "nothing is slow") == v.any,
		       "%s: %s", cases[i].name, text.data);
		gf_text_release(&text);
		gf_measure_pairs_verdict_release(&v);
	}
}

static void test_peers(void)
{
	static const struct gf_level levels[] = {{.name = "host", .size = 2},
						 {.name = "net", .size = 3}};
	static const struct {
		size_t level;
		int rank, to, from;
	} cases[] = {
		{0, 0, 1, 1}, {0, 5, 4, 4},   {1, 0, 2, 4},
		{1, 4, 0, 2}, {1, 3, -1, -1}, {1, 2, 4, 0},
	};
	size_t i;

	for (i = 0; i < GF_ARRAY_LENGTH(cases); i++) {
		int to, from;

		gf_measure_level_peers(levels, cases[i].level, cases[i].rank, &to, &from);
		EXPECT(to == cases[i].to && from == cases[i].from, "case %zu: %d %d", i, to, from);
	}
}

static void test_stages(void)
{
	static const struct gf_level levels[] = {
		{.name = "gpu", .size = 2, .link = "shm"},
		{.name = "one", .size = 1, .link = "pcie"},
		{.name = "net", .size = 4, .link = "ethernet"},
		{.name = "rack", .size = 3, .link = "ethernet"},
	};
	static const struct {
		const char *algorithm;
		size_t nlevels;
		const char *want;
	} cases[] = {
		{"blueconnect", 4, "2 shm 4 halving 3 ring "},
		{"hierarchical", 4, "2 ring 12 ring "},
		{"blueconnect", 2, ""},
		{"ring", 4, ""},
	};
	size_t i, k;

	for (i = 0; i < GF_ARRAY_LENGTH(cases); i++) {
		struct gf_stage *stages;
		struct gf_text t = {0};
		size_t n = gf_measure_stages(cases[i].algorithm, levels, cases[i].nlevels, false,
					     &stages);
		char *got;

		for (k = 0; k < n; k++)
			gf_text_addf(&t, "%d %s ", stages[k].factor, stages[k].algorithm);
		got = gf_text_take(&t);
		EXPECT_TEXT(got, cases[i].want);
		free(got);
		gf_stages_free(stages, n);
	}
}

static int append_stages(void *ctx, const struct gf_stage *stages, size_t nstages,
			 struct gf_error *err)
{
	(void)err;
	gf_text_addf(ctx, "; ");
	gf_stages_text(ctx, " ", stages, nstages);
	return 0;
}

/* Of two ranks halving is the ring; nccl is for GPUs. */
static void test_stages_vary(void)
{
	static const struct {
		struct gf_stage base[2];
		bool gpus;
		const char *want;
	} cases[] = {
		{{{2, "shm", NULL}, {4, "ring", NULL}},
		 false,
		 "; 2:ring 4:ring; 2:mpi 4:ring; 2:shm 4:halving; 2:shm 4:shm; 2:shm 4:mpi"},
		{{{3, "ring", NULL}, {2, "ring", NULL}},
		 false,
		 "; 3:shm 2:ring; 3:mpi 2:ring; 3:ring 2:shm; 3:ring 2:mpi"},
		{{{8, "nccl", NULL}, {2, "nccl", NULL}},
		 true,
		 "; 8:ring 2:nccl; 8:halving 2:nccl; 8:nccl 2:ring"},
	};
	size_t i;

	for (i = 0; i < GF_ARRAY_LENGTH(cases); i++) {
		struct gf_text got = {0};
		struct gf_error err = {""};

		EXPECT(!gf_measure_stages_vary(cases[i].base, 2, cases[i].gpus, append_stages, &got,
					       &err),
		       "%s", err.text);
		EXPECT_TEXT(got.data, cases[i].want);
		gf_text_release(&got);
	}
}

/* Costs are sums over stages: the best of each make the best. */
static void test_stages_together(void)
{
	static struct gf_stage ways[][2] = {
		{{2, "shm", NULL}, {4, "ring", NULL}},    {{2, "mpi", NULL}, {4, "ring", NULL}},
		{{2, "shm", NULL}, {4, "halving", NULL}}, {{2, "shm", NULL}, {4, "mpi", NULL}},
		{{2, "mpi", NULL}, {4, "mpi", NULL}},
	};
	/* mpi starts soonest, and halving is the fastest between hosts */
	static const double costs[][2] = {
		{1e-3, 4e-9}, {5e-4, 5e-9}, {1e-3, 3e-9}, {8e-4, 6e-9}, {1, 1}};
	static const struct {
		size_t entries;
		double bytes;
		const char *want;
	} cases[] = {
		{4, 1024, "2:mpi 4:mpi"},
		{4, 1 << 24, ""},
		{2, 1024, ""},
		{4, 3e5, "2:mpi 4:halving"},
		/* another algorithm's stages are not these */
		{5, 1024, "2:mpi 4:mpi"},
	};
	struct gf_allreduce_cost entries[5] = {{0}};
	size_t i;

	for (i = 0; i < 5; i++)
		entries[i] = (struct gf_allreduce_cost){
			.algorithm = i < 4 ? "blueconnect" : "2dring",
			.stages = ways[i],
			.nstages = 2,
			.startup_s = costs[i][0],
			.per_byte_s = costs[i][1],
		};
	for (i = 0; i < GF_ARRAY_LENGTH(cases); i++) {
		const struct gf_network net = {.allreduce = entries,
					       .nallreduce = cases[i].entries};
		struct gf_stage *stages;
		struct gf_text got = {0};
		size_t n = gf_measure_stages_together(&net, 0, cases[i].bytes, &stages);

		gf_text_addf(&got, "%s", "");
		if (n) {
			gf_stages_text(&got, " ", stages, n);
			gf_stages_free(stages, n);
		}
		EXPECT_TEXT(got.data, cases[i].want);
		gf_text_release(&got);
	}
}

/* A network of hosts of two whose library asks before it sends long messages; what a hop takes on
 * it, with noise. */
struct asking {
	struct gf_cost_lines levels[2];
	double reduce_s_per_byte;
	struct gf_rng rng;
	int rank;
};

static int asking_run(void *ctx, const struct gf_measure_hop *hop, double *times_s, int repeats,
		      struct gf_error *err)
{
	struct asking *a = ctx;
	bool far = hop->to >= 0 && abs(hop->to - a->rank) > 1;
	double once = 1e-9;
	int i;

	(void)err;
	if (hop->to >= 0)
		once = hop->messages * gf_cost_lines_s(&a->levels[far], (double)hop->bytes);
	if (hop->reduce)
		once += hop->messages * a->reduce_s_per_byte * (double)hop->bytes;
	for (i = 0; i < repeats; i++)
		times_s[i] = hop->rounds * once * (1 + 0.005 * gf_rng_normal(&a->rng));
	return 0;
}

static void recover_levels_on(struct gf_comm *comm, void *ctx)
{
	static const struct gf_level levels[] = {{.name = "host", .size = 2, .link = "shm"},
						 {.name = "net", .size = 2, .link = "ethernet"}};
	struct gf_cost_line long_shm[] = {{8192, 9e-6, 1.2e-10, NULL}},
			    long_tcp[] = {{65536, 2e-3, 8.5e-9, NULL}};
	struct asking a = {
		.levels = {{{0, 2e-6, 2.5e-10, NULL}, long_shm, 1},
			   {{0, 5e-5, 9e-9, NULL}, long_tcp, 1}},
		.reduce_s_per_byte = 2e-10,
		.rank = comm->rank,
	};
	struct gf_measure_levels config = {
		.curve = {.comm = comm,
			  .limits = {.min_bytes = 1024,
				     .max_bytes = (size_t)16 << 20,
				     .budget_s = 20,
				     .point = {0.1, 5, 1000}},
			  .lanes = 2,
			  .lines = GF_FIT_LINES_MOST},
		.levels = levels,
		.nlevels = 2,
		.mover = {comm, asking_run, NULL, &a},
	};
	struct gf_network *net = gf_xcalloc(1, sizeof(*net));
	struct gf_text remarks = {0};
	struct gf_error err = {""};
	size_t i;

	(void)ctx;
	gf_rng_init(&a.rng, 7, (uint64_t)comm->rank);
	EXPECT(!gf_measure_levels(&config, net, &remarks, &err), "%s", err.text);
	EXPECT(net->nlevels == 2, "%zu levels", net->nlevels);
	for (i = 0; i < net->nlevels; i++) {
		const struct gf_level_cost *c = &net->levels[i];
		const struct gf_cost_line *want = &a.levels[i].larger[0];

		EXPECT_NEAR(c->alpha_s / a.levels[i].first.startup_s, 1, tolerance, "%s", c->name);
		EXPECT_NEAR(c->beta_s_per_byte / a.levels[i].first.per_byte_s, 1, tolerance, "%s",
			    c->name);
		EXPECT_NEAR(c->reduce_s_per_byte / a.reduce_s_per_byte, 1, tolerance, "%s",
			    c->name);
		EXPECT(c->nlarger == 1, "%s: %zu lines more", c->name, c->nlarger);
		if (c->nlarger != 1)
			continue;
		EXPECT_NEAR(c->larger[0].startup_s / want->startup_s, 1, tolerance, "%s", c->name);
		EXPECT_NEAR(c->larger[0].per_byte_s / want->per_byte_s, 1, tolerance, "%s",
			    c->name);
		/* between the sizes that were measured on both sides */
		EXPECT(c->larger[0].from_bytes > want->from_bytes / 2 &&
			       c->larger[0].from_bytes <= want->from_bytes,
		       "%s: from %zu", c->name, c->larger[0].from_bytes);
		EXPECT(c->fit.residual_max < tolerance, "%s: off by %g", c->name,
		       c->fit.residual_max);
	}
	gf_network_free(net);
	gf_text_release(&remarks);
}

/* Levels and pairs for real, between threads. */
static void links_on(struct gf_comm *comm, void *ctx)
{
	static const struct gf_level levels[] = {{.name = "host", .size = 2, .link = "shm"},
						 {.name = "net", .size = 2, .link = "ethernet"}};
	struct gf_measure_levels config = {
		.curve = {.comm = comm,
			  .limits = {.min_bytes = 1024,
				     .max_bytes = 256 << 10,
				     .budget_s = 1,
				     .point = {0.01, 2, 5}},
			  .lanes = 2},
		.levels = levels,
		.nlevels = 2,
	};
	struct gf_measure_link link;
	struct gf_measure_pairs_config pairs = {comm, 0.2, 60, NULL, NULL};
	struct gf_network *net = gf_xcalloc(1, sizeof(*net));
	struct gf_measure_pairs p = {0};
	struct gf_text remarks = {0};
	struct gf_error err = {""};
	size_t i;

	(void)ctx;
	gf_measure_link_open(&link, comm, 60);
	config.mover = gf_measure_link_mover(&link);
	EXPECT(!gf_measure_levels(&config, net, &remarks, &err), "%s", err.text);
	gf_measure_link_close(&link);
	EXPECT(net->nlevels == 2, "%zu levels", net->nlevels);
	for (i = 0; i < net->nlevels; i++) {
		EXPECT_TEXT(net->levels[i].name, levels[i].name);
		EXPECT(net->levels[i].alpha_s + net->levels[i].beta_s_per_byte > 0, "level %zu", i);
	}
	EXPECT(net->levels[1].reduce_s_per_byte > 0, "%g", net->levels[1].reduce_s_per_byte);
	gf_network_free(net);
	EXPECT(!gf_measure_pairs(&pairs, &p, &err), "%s", err.text);
	for (i = 0; i < p.count * p.count; i++)
		EXPECT((p.rate_bytes_per_s[i] > 0) == (i / p.count != i % p.count) &&
			       (p.latency_s[i] > 0) == (i / p.count != i % p.count),
		       "pair %zu: %g", i, p.rate_bytes_per_s[i]);
	gf_measure_pairs_release(&p);
	gf_text_release(&remarks);
}

int main(void)
{
	watchdog(240);
	test_recovers();
	on_ranks(2, flat_on, NULL);
	test_unphysical();
	test_fits_the_time();
	test_tournament();
	test_judge();
	test_peers();
	on_ranks(4, recover_levels_on, NULL);
	test_stages();
	test_stages_vary();
	test_stages_together();
	on_ranks(4, links_on, NULL);
	return TEST_END();
}
