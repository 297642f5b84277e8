/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>

#include "base/array.h"
#include "lists/gf_codec_number.h"
#include "collectives/algorithm.h"
#include "profiler/model_times.h"
#include "profiler/network_parts.h"
#include "profiler/network.h"
#include "profiler/overlap.h"
#include "profiler/whole_profile.h"
#include "profiler/curve.h"
#include "cost/stat.h"
#include "transport/processors.h"
#include "transport/transport.h"
#include "documents/selections/selection.h"
#include "compressors/select.h"
#include "ranks.h"
#include "shipped_model.h"

static void test_stat(void)
{
	static const struct {
		double values[5];
		size_t count;
		double median, spread;
	} cases[] = {
		{{7}, 1, 7, 0},
		{{3, 1}, 2, 2, 1},
		{{9, 1, 5}, 3, 5, 4},
		{{4, 1, 3, 2}, 4, 2.5, 1.5},
		{{5, 1, 4, 2, 3}, 5, 3, 2},
	};
	size_t i;

	for (i = 0; i < GF_ARRAY_LENGTH(cases); i++) {
		double v[5];

		memcpy(v, cases[i].values, sizeof(v));
		EXPECT_NEAR(gf_stat_median(v, cases[i].count), cases[i].median, 1e-15, "case %zu",
			    i);
		memcpy(v, cases[i].values, sizeof(v));
		EXPECT_NEAR(gf_stat_spread(v, cases[i].count), cases[i].spread, 1e-15, "case %zu",
			    i);
		EXPECT_NEAR(gf_stat_quantile(v, cases[i].count, 0), v[0], 0, "case %zu", i);
		EXPECT_NEAR(gf_stat_quantile(v, cases[i].count, 1), v[cases[i].count - 1], 0,
			    "case %zu", i);
	}
}

static void test_sizes(void)
{
	static const struct {
		size_t min, max, count, first, last;
	} cases[] = {
		{1024, 4 << 20, 13, 1024, 4 << 20},
		{1024, 5 << 20, 14, 1024, 5 << 20},
		{4, 8, 2, 4, 8},
		{4, 4, 1, 4, 4},
		{1023, 4001, 3, 1020, 4004}, /* whole elements */
		{4, SIZE_MAX / 8, 60, 4, SIZE_MAX / 32 * 4 * 1},
	};
	size_t i, k;

	for (i = 0; i < GF_ARRAY_LENGTH(cases); i++) {
		size_t count;
		size_t *sizes = gf_measure_sizes(cases[i].min, cases[i].max, &count);

		EXPECT(sizes[0] == cases[i].first, "case %zu: %zu", i, sizes[0]);
		if (cases[i].max < SIZE_MAX / 8)
			EXPECT(count == cases[i].count && sizes[count - 1] == cases[i].last,
			       "case %zu: %zu sizes, last %zu", i, count, sizes[count - 1]);
		for (k = 1; k < count; k++)
			EXPECT(sizes[k] > sizes[k - 1] && sizes[k] % 4 == 0, "case %zu: %zu", i,
			       sizes[k]);
		free(sizes);
	}
}

static void test_slowdown(void)
{
	static const struct {
		double lost_s, busy_s, want;
	} cases[] = {
		{0, 1, 1},   {-0.1, 1, 1}, /* noise */
		{0.5, 1, 2}, {0.25, 1, 4. / 3}, {2, 1, 100}, {1, 1, 100}, {0.1, 0, 1},
	};
	size_t i;

	for (i = 0; i < GF_ARRAY_LENGTH(cases); i++)
		EXPECT_NEAR(gf_measure_slowdown(cases[i].lost_s, cases[i].busy_s), cases[i].want,
			    1e-12, "case %zu", i);
}

/* Four messages of a second each alone; backward takes 4 s alone, and begins at 10. */
static void test_weigh(void)
{
	static const struct {
		const char *name;
		double end_s[4]; /* each begins as the one before ends, the first at 9 */
		double with_s;
		struct gf_measure_mutual want;
	} cases[] = {
		{"free of each other", {10, 11, 12, 13}, 4, {1, 1, 1}},
		/* 3 s in flight, of which backward loses 1 */
		{"backward loses", {10, 11, 12, 13}, 5, {1.5, 1.5, 1}},
		/* 3 s of messages take 6, of which backward loses 2 */
		{"both lose", {10, 12, 14, 16}, 6, {3, 1.5, 2}},
		/* of the last one half goes beside backward */
		{"after backward", {10, 12, 14, 18}, 6, {1 / (1 - 2 / 2.5), 1.5, 2.4}},
		{"passed on before", {9.4, 9.6, 9.8, 10}, 4.1, {NAN, NAN, NAN}},
		{"nearly all before", {9.3, 9.6, 9.9, 10.5}, 4.1, {NAN, NAN, NAN}},
	};

	for (size_t i = 0; i < GF_ARRAY_LENGTH(cases); i++) {
		struct gf_message_times times[4];
		struct gf_measure_mutual got;
		double values[3], want[3];

		for (size_t k = 0; k < 4; k++)
			times[k] = (struct gf_message_times){
				.start_s = k ? cases[i].end_s[k - 1] : 9,
				.end_s = cases[i].end_s[k],
			};
		got = gf_measure_weigh(times, 4, 10, 4, cases[i].with_s, 4);
		memcpy(values, &got, sizeof(values));
		memcpy(want, &cases[i].want, sizeof(want));
		for (size_t k = 0; k < 3; k++)
			if (isnan(want[k]))
				EXPECT(isnan(values[k]), "%s: %g", cases[i].name, values[k]);
			else
				EXPECT_NEAR(values[k], want[k], 1e-12, "%s: %zu", cases[i].name, k);
	}
}

/* Two levels: pairs that share one link each. Of the rack, 4 groups: a byte costs 2 * 3/4 * 10 = 15
 * on the link, and the message 20 alone. */
static void test_contention_floor(void)
{
	static const struct {
		int local_ranks;
		double level_gamma[3], gamma[3], want[3];
		bool raised;
	} cases[] = {
		/* nothing is too fast */
		{2, {1, 2, 3}, {1, 1.5, 2.25}, {1, 1.5, 2.25}, false},
		/* 2 * 15/20, 3 * 15/20 */
		{2, {1, 2, 3}, {1, 1.2, 2.5}, {1, 1.5, 2.5}, true},
		{2, {1, 2, 3}, {1, 1, 1}, {1, 1.5, 2.25}, true},
		/* a link that one message alone does not fill */
		{2, {1, 1.2, 1.6}, {1, 1, 1}, {1, 1, 1.2}, true},
		/* never above n, never falling */
		{2, {1, 3, 9}, {1, 1, 1}, {1, 2, 3}, true},
		{2, {1, 2, 1}, {1, 1, 1}, {1, 1.5, 1.5}, true},
		/* all on one host */
		{8, {1, 2, 3}, {1, 1, 1}, {1, 1, 1}, false},
	};
	const struct gf_level levels[] = {{.name = "host", .size = 2}, {.name = "rack", .size = 4}};
	size_t i, k;

	for (i = 0; i < GF_ARRAY_LENGTH(cases); i++) {
		double level_gamma[3], gamma[3];
		struct gf_contention_entry on_level = {1024, level_gamma, 3, NULL};
		struct gf_contention_entry entry = {4096, gamma, 3, NULL};
		struct gf_level_cost cost = {
			.name = "rack", .beta_s_per_byte = 10, .contention = {&on_level, 1}};
		struct gf_network net = {.levels = &cost, .nlevels = 1};
		struct gf_allreduce_cost ring = {
			.algorithm = "ring", .per_byte_s = 20, .contention = {&entry, 1}};
		struct gf_text remarks = {0};

		memcpy(level_gamma, cases[i].level_gamma, sizeof(level_gamma));
		memcpy(gamma, cases[i].gamma, sizeof(gamma));
		gf_measure_contention_floor(&net, levels, 2, cases[i].local_ranks, &ring, &remarks);
		for (k = 0; k < 3; k++)
			EXPECT_NEAR(gamma[k], cases[i].want[k], 1e-12, "case %zu: %zu at once", i,
				    k + 1);
		EXPECT((remarks.length > 0) == cases[i].raised, "case %zu", i);
		gf_text_release(&remarks);
	}
}

static void compute_on(struct gf_comm *comm, void *ctx)
{
	const struct gf_model *model = ctx;
	struct gf_measure_compute config = {comm, 1, 3};
	struct gf_measure_compute_spread spread;
	struct gf_measure_compute_times times = {0};
	struct gf_measure_step step;
	struct gf_model_profile p = {0};
	struct gf_error err = {""};
	size_t *order = gf_model_generation_order(model), i;
	double first = 0;

	EXPECT(!gf_measure_step_open(
		       &step,
		       &(struct gf_measure_step_config){
			       .model = model, .backend = gf_backend_find("ref"), .batch = 2},
		       &err),
	       "%s", err.text);
	for (i = 1; i <= 2; i++) {
		EXPECT(!gf_measure_compute(&config, &step, &times, &err), "%s", err.text);
		EXPECT(times.nrows == 3 * i, "%zu repeats", times.nrows);
		gf_measure_compute_conclude(&times, &step, &p, &spread);
	}
	EXPECT(p.ntensors == model->nparams, "%zu tensors", p.ntensors);
	EXPECT(p.forward_s > 0 && p.backward_s > 0 && p.update_s > 0, "%g %g %g", p.forward_s,
	       p.backward_s, p.update_s);
	EXPECT(spread.forward_s >= 0 && spread.backward_s >= 0, "spread");
	for (i = 0; i < p.ntensors; i++) {
		const struct gf_tensor *t = &p.tensors[i];

		EXPECT_TEXT(t->name, model->params[order[i]].name);
		EXPECT(t->count_elems == gf_shape_elems(&model->params[order[i]].shape), "%s: %zu",
		       t->name, t->count_elems);
		EXPECT(t->ready_s >= (i ? p.tensors[i - 1].ready_s : 0) &&
			       t->ready_s <= p.backward_s,
		       "%s: %g of %g", t->name, t->ready_s, p.backward_s);
	}
	/* all ranks have the slowest one's times */
	first = p.backward_s;
	EXPECT(!gf_comm_bcast(comm, 0, &first, sizeof(first), &err), "%s", err.text);
	EXPECT(first == p.backward_s, "rank %d", comm->rank);
	for (i = 0; i < p.ntensors; i++) {
		free(p.tensors[i].name);
		free(p.tensors[i].shape);
	}
	free(p.tensors);
	free(order);
	gf_measure_compute_release(&times);
	gf_measure_step_close(&step);
}

static void test_compute(void)
{
	struct gf_model model = {0};

	load_model("share/models/digits-mlp.json", &model);
	on_ranks(1, compute_on, &model);
	on_ranks(2, compute_on, &model);
	gf_model_release(&model);
}

static void share_on(struct gf_comm *comm, void *ctx)
{
	const struct gf_model *model = ctx;
	struct gf_model copy = {0};
	struct gf_error err = {""};
	bool given = false;

	EXPECT(!gf_measure_given_model(comm, comm->rank == 0 ? model : NULL, &copy, &given, &err),
	       "%s", err.text);
	EXPECT(given && copy.nlayers == model->nlayers, "rank %d", comm->rank);
	gf_model_release(&copy);
	EXPECT(!gf_measure_given_model(comm, NULL, &copy, &given, &err), "%s", err.text);
	EXPECT(!given, "rank %d", comm->rank);
}

static void test_share(void)
{
	struct gf_model model = {0};

	load_model("share/models/digits-mlp.json", &model);
	on_ranks(1, share_on, &model);
	on_ranks(3, share_on, &model);
	gf_model_release(&model);
}

static void threads_on(struct gf_comm *comm, void *ctx)
{
	long online = sysconf(_SC_NPROCESSORS_ONLN);
	struct gf_error err = {""};
	int threads = 0;

	(void)ctx;
	EXPECT(!gf_comm_compute_threads(comm, &threads, &err), "%s", err.text);
	EXPECT(threads >= 1 && threads <= online, "%d of %ld", threads, online);
	if (comm->ranks > online)
		EXPECT(threads == 1, "%d", threads);
}

static void test_threads(void)
{
	on_ranks(1, threads_on, NULL);
	on_ranks(4, threads_on, NULL);
}

/* Where gradients lie, and what two messages over neighbours, or over others, make of rank + 1:
 * sums in the pool, means in a caller's memory. */
struct lies {
	const char *codec;
	bool callers_memory, neighbours;
	size_t copies; /* of each message */
	float want;    /* on two ranks */
};

static void exchange_on(struct gf_comm *comm, void *ctx)
{
	enum { ELEMS = 1000, MESSAGES = 2 };
	const struct lies *l = ctx;
	const struct gf_measure_exchange_config config = {
		.comm = comm,
		.by = &(const struct gf_allreduce_cost){.algorithm = "ring"},
		.codec = l->codec,
		.count_elems = ELEMS,
		.messages = MESSAGES,
		.lanes = 1,
		.compute_threads = 1,
		.timeout_s = TEST_PATIENCE_S,
		.callers_memory = l->callers_memory,
	};
	struct gf_measure_exchange x;
	struct gf_error err = {""};
	size_t copied, i;
	float *data;

	EXPECT(!gf_measure_exchange_open(&x, &config, &err), "%s", err.text);
	data = l->callers_memory ? x.memory : x.grads;
	for (i = 0; i < ELEMS * MESSAGES; i++)
		data[i] = (float)comm->rank + 1;
	EXPECT(!gf_measure_exchange_go(&x, &err), "%s", err.text);
	for (i = 0; i < ELEMS * MESSAGES; i++)
		EXPECT(data[i] == l->want, "element %zu: %g", i, (double)data[i]);
	copied = (size_t)gf_exchange_totals(x.exchange).copied_bytes;
	EXPECT(copied == l->copies * MESSAGES * ELEMS * sizeof(float), "%zu bytes copied", copied);
	gf_measure_exchange_close(&x);
}

static void test_exchange(void)
{
	struct lies cases[] = {
		{NULL, false, false, 0, 3},  {NULL, false, true, 0, 3},
		{NULL, true, false, 0, 1.5}, {NULL, true, true, 2, 1.5},
		{"f16", true, true, 0, 1.5}, /* coded where it lies */
	};
	size_t i;

	for (i = 0; i < GF_ARRAY_LENGTH(cases); i++)
		on_ranks_over(2, cases[i].neighbours ? gf_comm_shm_over : NULL, exchange_on,
			      &cases[i]);
}

struct measured {
	const struct gf_model *model;
	bool callers_memory;
};

static void profile_on(struct gf_comm *comm, void *ctx)
{
	static const char *const algorithms[] = {"ring", NULL};
	const struct measured *m = ctx;
	struct gf_measure_profile config = {
		.comm = comm,
		.model = m->model,
		.backend = gf_backend_find("ref"),
		.batch = 64, /* backward lasts longer than its messages */
		.warmup = 1,
		.repeats = 3,
		.threads = 1,
		.network = true,
		.sweep =
			{
				.algorithms = algorithms,
				.min_bytes = 256,
				.max_bytes = 256 << 10,
				.lanes = 3,
				.callers_memory = m->callers_memory,
				.time_s = 1e-4,
				.budget_s = 5,
				.timeout_s = TEST_PATIENCE_S,
			},
	};
	struct gf_profile p = {0};
	struct gf_text remarks = {0};
	struct gf_error err = {""};
	const struct gf_allreduce_cost *a;
	size_t i, k;

	/* steps are measured whole, too, where any rank shares a processor */
	comm->crowded = comm->rank == 1;
	EXPECT(!gf_measure_profile(&config, &p, &remarks, &err), "%s", err.text);
	EXPECT(!gf_profile_check(&p, &err), "%s", err.text);
	EXPECT(!strstr(p.measured, "\"memory\"") == !m->callers_memory, "%s", p.measured);
	EXPECT(p.model->overlap_slowdown >= 1 && p.model->overlap_slowdown <= 100, "%g",
	       p.model->overlap_slowdown);
	EXPECT(p.network->ranks == comm->ranks && p.network->nallreduce == 1,
	       "%d ranks, %zu algorithms", p.network->ranks, p.network->nallreduce);
	a = &p.network->allreduce[0];
	EXPECT_TEXT(a->algorithm, "ring");
	EXPECT(a->startup_s >= 0 && a->per_byte_s >= 0, "%g %g", a->startup_s, a->per_byte_s);
	EXPECT(a->fit.npoints >= 8, "%zu points", a->fit.npoints);
	EXPECT(p.model->issue_s >= 0 && p.model->issue_s < 1, "%g", p.model->issue_s);
	EXPECT(a->beside.ncompute_slowdown >= 1 && a->beside.compute_slowdown[0] <= 100 &&
		       a->beside.message_slowdown >= 1,
	       "%zu, %g", a->beside.ncompute_slowdown, a->beside.message_slowdown);
	for (k = 1; k < a->beside.ncompute_slowdown; k++)
		EXPECT(a->beside.compute_slowdown[k] >= a->beside.compute_slowdown[k - 1],
		       "%zu lanes", k + 1);
	EXPECT(p.processing.ncodecs == GF_CODECS - 1, "%zu codecs", p.processing.ncodecs);
	for (i = 0; i < p.processing.ncodecs; i++)
		EXPECT(p.processing.codecs[i].encode_s_per_byte > 0 &&
			       p.processing.codecs[i].decode_s_per_byte > 0 &&
			       p.processing.codecs[i].set_encode_s_per_byte > 0 &&
			       p.processing.codecs[i].set_decode_s_per_byte > 0 &&
			       !p.processing.codecs[i].of.assumed,
		       "%s", p.processing.codecs[i].of.name);
	for (i = 0; gf_select_plans[i]; i++) {
		const char *name = gf_select_plans[i]->name;
		const struct gf_selection_cost *c =
			gf_processing_selection(&p.processing, name, "cpu");

		EXPECT(!c == !!(gf_select_plans[i]->traits & GF_SELECT_LOSSLESS), "%s", name);
		if (!c)
			continue;
		/* three points on a busy machine may have a line without a slope */
		EXPECT(c->alpha_s >= 0 && c->beta_s_per_byte >= 0 &&
			       c->alpha_s + c->beta_s_per_byte > 0 && !c->of.assumed &&
			       c->of.fit.npoints == 3,
		       "%s", name);
		/* it looks at every gradient, and a thousand times as many take longer whatever
		 * else the machine does */
		EXPECT(c->of.fit.time_s[c->of.fit.npoints - 1] > c->of.fit.time_s[0], "%s", name);
	}
	for (i = 0; i < a->contention.nentries; i++) {
		const struct gf_contention_entry *e = &a->contention.entries[i];

		EXPECT(e->ngamma == 3 && e->gamma[0] == 1, "entry %zu", i);
		for (k = 1; k < e->ngamma; k++)
			EXPECT(e->gamma[k] >= e->gamma[k - 1], "entry %zu", i);
	}
	gf_profile_release(&p);
	gf_text_release(&remarks);
}

static void test_profile(void)
{
	struct gf_model model = {0};

	load_model("share/models/digits-mlp.json", &model);
	on_ranks(2, profile_on, &(struct measured){&model, true});
	on_ranks(3, profile_on, &(struct measured){&model, false});
	gf_model_release(&model);
}

static void test_refused(void)
{
	static const char *const unknown[] = {"ring", "carrier-pigeon", NULL};
	static const struct {
		struct gf_measure_network config;
		const char *want;
	} cases[] = {
		{{.min_bytes = 1024, .max_bytes = 4096},
		 "--max-bytes: want at least 32 times min_bytes of --points, got 4096 and 1024"},
		{{.min_bytes = 0, .max_bytes = 4096},
		 "--points: min_bytes: want from 4 to the --max-bytes, got 0 and "
		 "4096"},
		{{.min_bytes = 8192, .max_bytes = 4096},
		 "--points: min_bytes: want from 4 to the --max-bytes, got 8192 and 4096"},
	};
	const struct gf_measure_network pigeon = {
		.algorithms = unknown, .min_bytes = 4, .max_bytes = 4096};
	struct gf_error err = {""};
	size_t i;

	for (i = 0; i < GF_ARRAY_LENGTH(cases); i++) {
		EXPECT(gf_measure_network_check(&cases[i].config, &err) == -EINVAL, "case %zu", i);
		EXPECT_TEXT(err.text, cases[i].want);
	}
	EXPECT(gf_measure_network_check(&pigeon, &err) == -EINVAL, "pigeon");
	for (i = 0; gf_algorithms[i]; i++)
		EXPECT(strstr(err.text, gf_algorithms[i]->name), "%s: %s", gf_algorithms[i]->name,
		       err.text);
	EXPECT(strstr(err.text, "got \"carrier-pigeon\""), "%s", err.text);
}

int main(void)
{
	watchdog(240);
	test_stat();
	test_sizes();
	test_slowdown();
	test_weigh();
	test_contention_floor();
	test_compute();
	test_share();
	test_threads();
	test_refused();
	test_exchange();
	test_profile();
	return TEST_END();
}
