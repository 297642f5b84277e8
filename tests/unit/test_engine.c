/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <time.h>

#include "base/array.h"
#include "base/clock.h"
#include "collectives/algorithm.h"
#include "ranks.h"
#include "rig.h"

static float gradient(int rank, size_t step, size_t i)
{
	return (float)((rank + 1) * (int)((i + step) % 13 + 1));
}

static void fill(struct rig *r, int rank, size_t step, size_t tensor)
{
	size_t i;

	for (i = r->pool.offsets[tensor]; i < r->pool.offsets[tensor + 1]; i++)
		r->pool.data[i] = gradient(rank, step, i);
}

static void expect_sums(struct rig *r, struct gf_comm *c, size_t step, const char *what)
{
	size_t i;
	float want;
	int k;

	for (i = 0; i < r->pool.count_elems; i++) {
		for (k = 0, want = 0; k < c->ranks; k++)
			want += gradient(k, step, i);
		if (r->pool.data[i] == want)
			continue;
		EXPECT(0, "%s: rank %d of %d, step %zu, element %zu: want %g, got %g", what,
		       c->rank, c->ranks, step, i, want, r->pool.data[i]);
		break;
	}
}

/* The start rule, as the recorded times tell. */
static void expect_rule(const struct rig *r, const char *what)
{
	const struct gf_message_times *t = gf_engine_times(r->engine);
	size_t i, k;
	int active;

	for (i = 0; i < r->plan.nmessages; i++) {
		EXPECT(t[i].ready_s <= t[i].start_s && t[i].start_s <= t[i].end_s,
		       "%s: message %zu", what, i);
		EXPECT(i == 0 || t[i].start_s >= t[i - 1].start_s, "%s: message %zu before %zu",
		       what, i, i - 1);
		for (k = 0, active = 1; k < i; k++)
			active += t[k].end_s > t[i].start_s;
		EXPECT(active <= r->plan.lanes, "%s: %d active", what, active);
	}
}

static void one_step(struct rig *r, struct gf_comm *c, size_t step, const char *what)
{
	struct gf_error err = {""};
	size_t i, tensor;

	rig_begin(r);
	for (i = 0; i < TENSORS; i++) {
		/* another order on every rank and in every step */
		tensor = (i * 5 + step + (size_t)c->rank) % TENSORS;
		fill(r, c->rank, step, tensor);
		gf_engine_ready_all(r->engine, &(size_t){tensor}, 1);
	}
	gf_engine_backward_end(r->engine);
	EXPECT(!gf_engine_wait(r->engine, &err), "%s: %s", what, err.text);
	expect_sums(r, c, step, what);
	expect_rule(r, what);
}

static void steps(struct gf_comm *c, void *ctx)
{
	const struct setting *s = ctx;
	struct rig r = {0};
	struct gf_error err = {""};
	char what[128];
	size_t step;

	snprintf(what, sizeof(what), "%s, threshold %zu, %d lanes%s", s->algorithm,
		 s->threshold_bytes, s->lanes, s->at_end ? ", at the end" : "");
	if (rig_open(&r, c, s, &err))
		EXPECT(0, "%s: %s", what, err.text);
	for (step = 0; step < 5 && r.engine; step++)
		one_step(&r, c, step, what);
	rig_close(&r);
}

static void test_steps(void)
{
	static struct setting settings[] = {
		{0, 1, "ring", false, 0},     {0, 3, "ring", false, 0},
		{5000, 1, "ring", false, 20}, {5000, 2, "library", false, 20},
		{0, 8, "library", false, 0},  {1 << 20, 1, "ring", false, 0},
		{0, 1, "ring", true, 0},      {0, 4, "ring", true, 20},
	};
	static const int ranks[] = {1, 2, 3, 4, 5};
	struct setting any = {5000, 2, NULL, false, 0};
	size_t i, k;

	for (i = 0; i < GF_ARRAY_LENGTH(settings); i++)
		for (k = 0; k < GF_ARRAY_LENGTH(ranks); k++)
			on_ranks(ranks[k], steps, &settings[i]);
	for (i = 0; gf_algorithms[i]; i++) {
		any.algorithm = gf_algorithms[i]->name;
		for (k = 0; k < GF_ARRAY_LENGTH(ranks); k++)
			on_ranks(ranks[k], steps, &any);
	}
}

/* The layer whose gradients come last does not make them before message 0 is reduced: if
 * communication waited for the compute thread, this would wait for ever. */
static void overlap(struct gf_comm *c, void *ctx)
{
	static const struct setting s = {0, 1, "ring", false, 0};
	struct rig r = {0};
	struct gf_error err = {""};
	size_t step, tensor;

	(void)ctx;
	if (rig_open(&r, c, &s, &err))
		EXPECT(0, "%s", err.text);
	for (step = 0; step < 3 && r.engine; step++) {
		rig_begin(&r);
		for (tensor = 0; tensor < TENSORS; tensor++) {
			if (tensor == TENSORS - 1)
				EXPECT(!gf_engine_wait_message(r.engine, 0, &err), "%s", err.text);
			fill(&r, c->rank, step, tensor);
			gf_engine_ready_all(r.engine, &(size_t){tensor}, 1);
		}
		gf_engine_backward_end(r.engine);
		EXPECT(!gf_engine_wait(r.engine, &err), "%s", err.text);
		expect_sums(&r, c, step, "overlap");
	}
	rig_close(&r);
}

/* A tensor that got no gradient does not hold up the end of backward. */
static void forgotten(struct gf_comm *c, void *ctx)
{
	static const struct setting s = {0, 1, "ring", false, 0};
	struct rig r = {0};
	struct gf_error err = {""};
	size_t tensor;

	(void)ctx;
	if (rig_open(&r, c, &s, &err))
		EXPECT(0, "%s", err.text);
	rig_begin(&r);
	for (tensor = 0; tensor < TENSORS; tensor++) {
		fill(&r, c->rank, 0, tensor);
		gf_engine_ready_all(r.engine, &(size_t){tensor}, 1);
		/* twice is once */
		gf_engine_ready_all(r.engine, &(size_t){tensor}, 1);
		if (tensor == 2)
			break;
	}
	for (tensor = 3; tensor < TENSORS; tensor++)
		fill(&r, c->rank, 0, tensor);
	gf_engine_backward_end(r.engine);
	EXPECT(!gf_engine_wait(r.engine, &err), "%s", err.text);
	expect_sums(&r, c, 0, "forgotten");
	rig_close(&r);
}

static int gather(struct gf_comm *c, void *ctx, struct gf_error *err)
{
	return gf_comm_allgather(c, &c->rank, sizeof(int), ctx, err);
}

static int refuse(struct gf_comm *c, void *ctx, struct gf_error *err)
{
	int rc = 0;

	(void)ctx;
	if (c->rank == c->ranks - 1)
		rc = gf_error_set(err, -ENOENT, "not here");
	return gf_comm_agree(c, rc, err);
}

static void calls(struct gf_comm *c, void *ctx)
{
	static const struct setting s = {0, 2, "ring", false, 20};
	struct rig r = {0};
	struct gf_error err = {""};
	int got[16] = {0}, i;
	size_t step;

	(void)ctx;
	if (rig_open(&r, c, &s, &err))
		EXPECT(0, "%s", err.text);
	for (step = 0; step < 3 && r.engine; step++) {
		memset(got, 0xff, sizeof(got));
		EXPECT(!gf_engine_call(r.engine, gather, got, &err), "%s", err.text);
		for (i = 0; i < c->ranks; i++)
			EXPECT(got[i] == i, "rank %d's word", i);
		EXPECT(gf_engine_call(r.engine, refuse, NULL, &err) == -ENOENT,
		       "the call's own answer");
		EXPECT(strstr(err.text, "not here"), "%s", err.text);
		rig_begin(&r);
		EXPECT(gf_engine_call(r.engine, gather, got, &err) == -EINVAL,
		       "in the middle of a step");
		for (i = 0; i < TENSORS; i++)
			fill(&r, c->rank, step, (size_t)i);
		gf_engine_backward_end(r.engine);
		/* served after the step's last message */
		EXPECT(!gf_engine_call(r.engine, gather, got, &err), "%s", err.text);
		EXPECT(!gf_engine_wait(r.engine, &err), "%s", err.text);
		expect_sums(&r, c, step, "calls");
	}
	rig_close(&r);
}

static double processor_s(void)
{
	struct timespec t;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* A thread that is called while it waits for another rank's messages leaves the processor to
 * others. */
static void late_call(struct gf_comm *c, void *ctx)
{
	struct setting s = {0, 1, "ring", false, 0};
	const double late_s = 1;
	struct rig r = {0};
	struct gf_error err = {""};
	int got[16], i;
	double began_s;

	(void)ctx;
	EXPECT(!rig_open(&r, c, &s, &err), "%s", err.text);
	began_s = processor_s();
	if (c->rank == 0)
		gf_clock_sleep(late_s);
	rig_begin(&r);
	for (i = 0; i < TENSORS; i++)
		fill(&r, c->rank, 0, (size_t)i);
	gf_engine_backward_end(r.engine);
	EXPECT(!gf_engine_call(r.engine, gather, got, &err), "%s", err.text);
	EXPECT(processor_s() - began_s < late_s / 2, "%g s of a processor, of %g s",
	       processor_s() - began_s, late_s);
	EXPECT(!gf_engine_wait(r.engine, &err), "%s", err.text);
	expect_sums(&r, c, 0, "a late call");
	rig_close(&r);
}

static void count_merge(void *ctx, void *to, const void *from, size_t count)
{
	(void)to;
	(void)from;
	*(size_t *)ctx += count;
}

/* Sets are merged by the context of the step's own list, also if the path was made for another
 * slot's. */
static void merges(struct gf_comm *c, void *ctx)
{
	static const struct setting s = {0, 1, "ring", false, 20, 2};
	struct rig r = {0};
	struct gf_error err = {""};
	size_t merged[3] = {0}, step;
	struct gf_work work = {
		.last = TENSORS - 1,
		.count_elems = 1,
		.sparse = gf_sparse_find("gtopk"),
		.half = GF_COLL_WHOLE,
	};

	(void)ctx;
	if (rig_open(&r, c, &s, &err))
		EXPECT(0, "%s", err.text);
	work.data = r.pool.data;
	work.element = gf_element_set(64, count_merge, &merged[2]);
	EXPECT(!r.engine || !gf_engine_expect(r.engine, &work, 1, &err), "%s", err.text);
	for (step = 0; step < 4 && r.engine; step++) {
		work.element.ctx = &merged[step % 2];
		gf_engine_begin_work(r.engine, &work, 1);
		gf_engine_backward_end(r.engine);
		EXPECT(!gf_engine_wait(r.engine, &err), "%s", err.text);
	}
	EXPECT(merged[0] == merged[1] && merged[2] == 0 && (c->rank || c->ranks == 1 || merged[0]),
	       "rank %d of %d: %zu, %zu, %zu merges", c->rank, c->ranks, merged[0], merged[1],
	       merged[2]);
	rig_close(&r);
}

int main(void)
{
	static const int ranks[] = {1, 2, 4};
	size_t i;

	watchdog(200);
	test_steps();
	on_ranks(2, late_call, NULL);
	for (i = 0; i < GF_ARRAY_LENGTH(ranks); i++) {
		on_ranks(ranks[i], overlap, NULL);
		on_ranks(ranks[i], forgotten, NULL);
		on_ranks(ranks[i], calls, NULL);
		on_ranks(ranks[i], merges, NULL);
	}
	return TEST_END();
}
