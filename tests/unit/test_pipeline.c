/* SPDX-License-Identifier: BSD-3-Clause */
/* Staleness: what is applied when, and that the waiting overlaps. */
#include "pipe_rig.h"

#include <math.h>
#include <string.h>

#include "simulator/step.h"

#define MAX_STEPS 24
/* f32 on many ranks against f64 in a row; codecs are compared by their own step. */
#define TOLERANCE 2e-6

/* --- tests/data/vectors.md: f = w^2/2, w = 1, rate .1 -----------------------
 */

static const struct {
	int staleness;
	double w[8];
} vectors[] = {
	{1, {1, .9, .81, .729, .6561, .59049, .531441, .4782969}},
	{2, {1, 1, .9, .8, .71, .63, .559, .496}},
	{3, {1, 1, 1, .9, .8, .7, .61, .53}},
};

struct vector_run {
	struct rig_case c;
	const double *want;
};

static void vector_rank(struct gf_comm *comm, void *ctx)
{
	struct vector_run *v = ctx;
	struct rig r;
	size_t step, i;

	rig_open(&r, &v->c, comm);
	/* element 0 has c_0 = -.5 on rank 0: moved so that g = w */
	for (i = 0; i < RIG_ELEMS; i++)
		r.params[i] = 1 + (float)rig_centre(0, i);
	for (step = 1; step <= 8; step++) {
		for (i = 0; i < RIG_ELEMS; i++)
			EXPECT_NEAR((double)r.params[i] - rig_centre(0, i), v->want[step - 1],
				    TOLERANCE, "K = %d: w[%zu], element %zu", v->c.staleness, step,
				    i);
		rig_step(&r, step);
	}
	rig_close(&r);
}

static void test_vectors(void)
{
	size_t i;

	for (i = 0; i < GF_ARRAY_LENGTH(vectors); i++) {
		struct vector_run v = {
			.c = {.ranks = 1,
			      .staleness = vectors[i].staleness,
			      .threshold_bytes = 16,
			      .optim = {.name = "sgd"},
			      .rate = .1},
			.want = vectors[i].w,
		};

		on_ranks(1, vector_rank, &v);
	}
}

/* --- a serial reference --------------------------------------------------- */

struct reference {
	double w[MAX_STEPS + 2][RIG_ELEMS]; /* w[t]: at which g[t] is taken */
};

static void mean_gradient(const struct rig_case *c, const double *w, double *g)
{
	size_t i;
	int r;

	for (i = 0; i < RIG_ELEMS; i++) {
		g[i] = 0;
		for (r = 0; r < c->ranks; r++)
			g[i] += (w[i] - rig_centre(r, i)) / c->ranks;
	}
}

/* w[t+1] = w[t] - u, from the gradient of step t + 1 - K unless the warm-up has applied it or there
 * is none. */
static void refer(const struct rig_case *c, struct reference *ref)
{
	double u[RIG_ELEMS] = {0}, g[RIG_ELEMS];
	size_t t, i, from, k = (size_t)c->staleness;

	for (i = 0; i < RIG_ELEMS; i++)
		ref->w[1][i] = rig_start(i);
	for (t = 1; t <= c->steps; t++) {
		memcpy(ref->w[t + 1], ref->w[t], sizeof(ref->w[t]));
		from = t <= c->warmup ? t : t + 1 - k;
		if (t > c->warmup && (t + 1 <= k || from <= c->warmup))
			continue;
		mean_gradient(c, ref->w[from], g);
		for (i = 0; i < RIG_ELEMS; i++) {
			u[i] = c->optim.momentum * u[i] + g[i] +
			       c->optim.weight_decay * ref->w[t][i];
			ref->w[t + 1][i] -= c->rate * u[i];
		}
	}
}

#define SGD                                                                                        \
	{                                                                                          \
		.name = "sgd"                                                                      \
	}
#define MOMENTUM                                                                                   \
	{                                                                                          \
		.name = "sgd", .momentum = .9, .weight_decay = .01                                 \
	}
static const struct rig_case cases[] = {
	{1, 1, 0, 8, NULL, NULL, 16, SGD, .1},
	{2, 1, 0, 8, NULL, NULL, 16, MOMENTUM, .1},
	{1, 2, 0, 12, NULL, NULL, 16, MOMENTUM, .05},
	{2, 2, 0, 12, NULL, NULL, 16, MOMENTUM, .05},
	{3, 2, 0, 12, NULL, NULL, 1000, MOMENTUM, .05},
	{4, 2, 5, 12, NULL, "rhd", 16, MOMENTUM, .05},
	{5, 3, 0, 12, NULL, NULL, 16, MOMENTUM, .05},
	{8, 3, 4, 12, NULL, "butterfly", 40, SGD, .1},
	{3, 5, 1, 12, NULL, NULL, 16, SGD, .05},
	{2, 12, 0, 12, NULL, NULL, 16, SGD, .05},
	/* PS-Sync: one more rank, which serves */
	{1, 1, 0, 8, NULL, "ps", 16, MOMENTUM, .05, .servers = 1},
	{2, 1, 0, 8, NULL, "ps", 16, MOMENTUM, .05, .servers = 1},
	{3, 2, 0, 8, NULL, "ps", 1000, MOMENTUM, .05, .servers = 1},
	{4, 2, 3, 8, NULL, "ps", 16, MOMENTUM, .05, .servers = 1},
	{5, 1, 0, 8, NULL, "ps", 40, SGD, .05, .servers = 1},
	{8, 3, 0, 8, NULL, "ps", 16, SGD, .05, .servers = 1},
	/* every rank serves a part */
	{4, 2, 0, 8, NULL, "ps", 16, SGD, .05},
	/* warm-up to the end: synchronous */
	{3, 3, 12, 12, NULL, NULL, 16, MOMENTUM, .05},
};

struct serial_run {
	const struct rig_case *c;
	struct reference ref;
	float last[16][RIG_ELEMS];
};

static void serial_rank(struct gf_comm *comm, void *ctx)
{
	struct serial_run *s = ctx;
	struct rig r;
	size_t step, i;

	rig_open(&r, s->c, comm);
	for (step = 1; step <= s->c->steps; step++) {
		rig_step(&r, step);
		for (i = 0; i < RIG_ELEMS; i++)
			EXPECT_NEAR((double)r.params[i], s->ref.w[step + 1][i], TOLERANCE,
				    "P = %d, K = %d, warm-up %zu: w[%zu][%zu] on rank %d",
				    s->c->ranks, s->c->staleness, s->c->warmup, step + 1, i,
				    comm->rank);
	}
	memcpy(s->last[comm->rank], r.params, sizeof(r.params));
	rig_close(&r);
}

static void expect_replicas(const struct serial_run *s, const char *label)
{
	int r;

	for (r = 1; r < s->c->ranks + s->c->servers; r++)
		EXPECT(!memcmp(s->last[0], s->last[r], sizeof(s->last[0])),
		       "%s: P = %d, K = %d: rank %d", label, s->c->ranks, s->c->staleness, r);
}

static void test_serial(void)
{
	static struct serial_run s;
	size_t i;

	for (i = 0; i < GF_ARRAY_LENGTH(cases); i++) {
		s.c = &cases[i];
		refer(s.c, &s.ref);
		on_ranks(s.c->ranks + s.c->servers, serial_rank, &s);
		expect_replicas(&s, "serial");
	}
}

/* --- K = 1 is synchronous, bit for bit; codecs keep replicas ---------------
 */

static void plain_rank(struct gf_comm *comm, void *ctx)
{
	struct serial_run *s = ctx;
	struct rig r;
	size_t step;

	rig_open(&r, s->c, comm);
	for (step = 1; step <= s->c->steps; step++)
		rig_step(&r, step);
	memcpy(s->last[comm->rank], r.params, sizeof(r.params));
	rig_close(&r);
}

/* A warm-up as long as the run is K = 1, whatever K is. */
static void test_synchronous(void)
{
	static struct serial_run a, b;
	struct rig_case one = {3, 1, 0, 10, NULL, NULL, 16, MOMENTUM, .05};
	struct rig_case two = one;

	two.staleness = 2;
	two.warmup = 10;
	a.c = &one;
	b.c = &two;
	on_ranks(3, plain_rank, &a);
	on_ranks(3, plain_rank, &b);
	EXPECT(!memcmp(a.last, b.last, sizeof(a.last)), "synchronous");
	expect_replicas(&a, "synchronous");
}

/* --- split messages, applied when forward needs them ----------------------
 */

/* After n steps and a settle, what whole all-reduces make of it, bit for bit; also after a settle
 * in between. */
static void late_rank(struct gf_comm *comm, void *ctx)
{
	struct serial_run *s = ctx;
	struct gf_error err = {""};
	struct rig r;
	size_t step;

	rig_open(&r, s->c, comm);
	EXPECT(gf_method_asks(r.method) ==
		       (s->c->split && s->c->asks && !(s->c->optim.clip_norm > 0)),
	       "P = %d: late", s->c->ranks);
	for (step = 1; step <= s->c->steps; step++) {
		rig_step(&r, step);
		if (step == s->c->steps / 2)
			EXPECT(!gf_method_settle(r.method, &err), "%s", err.text);
	}
	EXPECT(!gf_method_settle(r.method, &err), "%s", err.text);
	memcpy(s->last[comm->rank], r.params, sizeof(r.params));
	rig_close(&r);
}

static void test_late(void)
{
	static const struct gf_optim_config optims[] = {
		MOMENTUM,
		{.name = "nesterov", .momentum = .5, .exclude = "none"},
		{.name = "lars", .momentum = .5, .eta = .1, .exclude = "none"},
		{.name = "sgd", .clip_norm = .25, .exclude = "none"},
		{.name = "lars-paper", .momentum = .5, .eta = .1},
		{.name = "adamw", .weight_decay = .01, .beta1 = .9, .beta2 = .99, .epsilon = 1e-8},
	};
	static const size_t thresholds[] = {0, 16, 40, 1000};
	static struct serial_run whole, late;
	size_t i, k;
	int ranks;

	for (ranks = 1; ranks <= 5; ranks++)
		for (i = 0; i < GF_ARRAY_LENGTH(optims); i++)
			for (k = 0; k < GF_ARRAY_LENGTH(thresholds); k++) {
				struct rig_case c = {.ranks = ranks,
						     .staleness = 1,
						     .steps = 9,
						     .threshold_bytes = thresholds[k],
						     .optim = optims[i],
						     .rate = .05};
				struct rig_case d = c;

				if (!test_tries((size_t)ranks + i + k, 4))
					continue;
				d.split = d.asks = true;
				whole.c = &c;
				late.c = &d;
				on_ranks(ranks, late_rank, &whole);
				on_ranks(ranks, late_rank, &late);
				EXPECT(!memcmp(whole.last, late.last,
					       (size_t)ranks * sizeof(late.last[0])),
				       "P = %d, optimizer %zu, threshold %zu", ranks, i, k);
				expect_replicas(&late, "late");
			}
}

/* --- bytes of a step: of the messages that it waits for -------------------
 */

struct sent_run {
	const struct rig_case *c;
	uint64_t step[8], rest; /* rank 0's */
};

static void sent_rank(struct gf_comm *comm, void *ctx)
{
	struct sent_run *s = ctx;
	struct gf_error err = {""};
	struct rig r;
	uint64_t sent;
	size_t step;

	rig_open(&r, s->c, comm);
	for (step = 1; step <= s->c->steps; step++) {
		rig_step(&r, step);
		if (comm->rank == 0)
			s->step[step - 1] = r.sent_bytes;
	}
	EXPECT(!gf_method_settle(r.method, &err), "%s", err.text);
	sent = gf_method_sent_bytes(r.method);
	if (comm->rank == 0)
		s->rest = sent;
	rig_close(&r);
}

/* Also where the next step's messages are under way, whose end is chance. */
static void test_sent_bytes(void)
{
	struct rig_case c = {3, 1, 0, 8, NULL, NULL, 16, MOMENTUM, .05};
	struct sent_run plain = {.c = &c}, other;
	size_t i;
	int k;

	on_ranks(3, sent_rank, &plain);
	EXPECT(plain.step[0] > 0 && plain.rest == 0, "%zu sent, %zu later", (size_t)plain.step[0],
	       (size_t)plain.rest);
	for (i = 1; i < c.steps; i++)
		EXPECT(plain.step[i] == plain.step[0], "step %zu", i + 1);
	for (k = 2; k <= 3; k++) {
		struct rig_case stale = c;

		stale.staleness = k;
		other = (struct sent_run){.c = &stale};
		on_ranks(3, sent_rank, &other);
		for (i = 0; i < c.steps; i++)
			EXPECT(other.step[i] == (i + 1 < (size_t)k ? 0 : plain.step[0]),
			       "K = %d, step %zu: %zu", k, i + 1, (size_t)other.step[i]);
		EXPECT(other.rest == (uint64_t)(k - 1) * plain.step[0], "K = %d", k);
	}
	c.split = c.asks = true;
	other = (struct sent_run){.c = &c};
	on_ranks(3, sent_rank, &other);
	EXPECT(other.step[0] > 0 && other.step[0] < plain.step[0] &&
		       other.step[0] + other.rest == plain.step[0],
	       "late: %zu, %zu", (size_t)other.step[0], (size_t)other.rest);
	for (i = 1; i < c.steps; i++)
		EXPECT(other.step[i] == plain.step[0], "late: step %zu", i + 1);
}

/* The messages that forward waits for end in the simulator's order. None ends before the step that
 * reduced it has ended, and some end after the next step has begun. */
static void order_rank(struct gf_comm *comm, void *ctx)
{
	const struct rig_case *c = ctx;
	struct gf_sim_message sim[RIG_TENSORS];
	size_t n, step, i, overlapped = 0;
	struct rig r;

	rig_open(&r, c, comm);
	n = r.plan.nmessages;
	r.plan.model->forward_s = 1;
	r.plan.model->backward_s = 2;
	for (i = 0; i < RIG_TENSORS; i++) {
		r.plan.model->tensors[i].ready_s = .25 * (double)(i + 1);
		r.plan.model->tensors[i].need_s = NAN;
	}
	for (i = 0; i < n; i++)
		sim[i] = (struct gf_sim_message){.first = r.plan.messages[i].first,
						 .last = r.plan.messages[i].last};
	for (step = 1; step <= c->steps; step++) {
		const struct gf_step_times *t;

		rig_step(&r, step);
		t = gf_timeline_last(&r.timeline);
		if (step == 1)
			continue;
		for (i = 0; i < n; i++) {
			EXPECT(t->messages[i].end_s <= t->forward_s,
			       "message %zu ends behind forward", i);
			overlapped += t->messages[i].end_s > t->start_s;
		}
		for (i = 0; i + 2 < n; i += 2)
			EXPECT((gf_sim_need_s(r.plan.model, &sim[i]) >
				gf_sim_need_s(r.plan.model, &sim[i + 2])) ==
				       (t->messages[i].end_s > t->messages[i + 2].end_s),
			       "messages %zu and %zu", i, i + 2);
	}
	EXPECT(overlapped, "no step began before the last had gathered");
	rig_close(&r);
}

static void test_order(void)
{
	struct rig_case c = {.ranks = 4,
			     .staleness = 1,
			     .steps = 40,
			     .optim = MOMENTUM,
			     .rate = .05,
			     .split = true,
			     .asks = true};

	on_ranks(4, order_rank, &c);
}

/* Every rank finds the value at its message, in the step after the one that made it. */
static void late_poison_rank(struct gf_comm *comm, void *ctx)
{
	const struct rig_case *c = ctx;
	struct gf_step_outcome out;
	struct gf_error err = {""};
	struct rig r;
	size_t step;
	int rc = 0;

	rig_open(&r, c, comm);
	r.poisoned = comm->rank == 1 ? 3 : 0;
	for (step = 1; step <= 5 && !rc; step++)
		rc = gf_train_step(&r.stepper, step, c->rate, &out, &err);
	EXPECT(rc == 1 && step == 5, "rank %d: %d in step %zu", comm->rank, rc, step - 1);
	EXPECT(strstr(err.text, "in step 3 (element 4)"), "%s", err.text);
	rig_close(&r);
}

static void test_late_poison(void)
{
	struct rig_case c = {.ranks = 3,
			     .staleness = 1,
			     .optim = MOMENTUM,
			     .rate = .05,
			     .split = true,
			     .asks = true};

	on_ranks(3, late_poison_rank, &c);
}

static void test_codecs(void)
{
	static const struct {
		const char *codec;
		double error; /* of a weight, at the end */
	} codecs[] = {
		{"f32", 2e-6}, {"f16", 2e-3}, {"bf16", 2e-2}, {"trunc16", 4e-2},
		{"q8", 4e-2},  {"fp8", .2},   {"fp4", .6},
	};
	static const int ranks[] = {1, 2, 3, 4, 5, 8};
	static struct serial_run s;
	size_t k, p, i;

	for (k = 0; k < GF_ARRAY_LENGTH(codecs); k++) {
		for (p = 0; p < 2 * GF_ARRAY_LENGTH(ranks); p++) {
			struct rig_case c = {ranks[p / 2], 2,  0,        12, codecs[k].codec,
					     NULL,         16, MOMENTUM, .05};

			c.servers = p % 2;
			c.algorithm = c.servers ? "ps" : NULL;
			s.c = &c;
			refer(&c, &s.ref);
			on_ranks(c.ranks + c.servers, plain_rank, &s);
			expect_replicas(&s, c.codec);
			for (i = 0; i < RIG_ELEMS; i++)
				EXPECT_NEAR((double)s.last[0][i], s.ref.w[13][i], codecs[k].error,
					    "%s: P = %d, w[%zu]", c.codec, c.ranks, i);
		}
	}
}

/* --- overlap -------------------------------------------------------------- */

/*
 * Rank 1 does not make the gradient of step t until rank 0 has entered backward of step t + K - 1:
 * were a rank to wait for step t's exchange any earlier, it would wait for ever (and SIGALRM end
 * the test). No clock is involved. The values above show that the update does wait.
 */
struct meeting {
	struct rig_case c;
	pthread_mutex_t lock;
	pthread_cond_t news;
	size_t entered; /* by rank 0 */
};

static struct meeting meeting = {
	.lock = PTHREAD_MUTEX_INITIALIZER,
	.news = PTHREAD_COND_INITIALIZER,
};

static void enter(struct rig *r, size_t step)
{
	struct meeting *m = &meeting;
	size_t want = step + (size_t)m->c.staleness - 1;

	pthread_mutex_lock(&m->lock);
	if (r->comm->rank == 0) {
		m->entered = step;
		pthread_cond_broadcast(&m->news);
	}
	if (want > m->c.steps)
		want = m->c.steps;
	while (r->comm->rank == 1 && m->entered < want)
		pthread_cond_wait(&m->news, &m->lock);
	pthread_mutex_unlock(&m->lock);
}

static void overlap_rank(struct gf_comm *comm, void *ctx)
{
	struct meeting *m = ctx;
	struct rig r;
	size_t step;

	rig_open(&r, &m->c, comm);
	r.entered = enter;
	for (step = 1; step <= m->c.steps; step++)
		rig_step(&r, step);
	rig_close(&r);
}

static void test_overlap(void)
{
	int k;

	for (k = 2; k <= 4; k++) {
		meeting.entered = 0;
		meeting.c = (struct rig_case){2, k, 0, 12, NULL, NULL, 16, SGD, .05};
		on_ranks(2, overlap_rank, &meeting);
		EXPECT(meeting.entered == 12, "K = %d", k);
	}
}

int main(void)
{
	watchdog(120);
	test_vectors();
	test_serial();
	test_synchronous();
	test_late();
	test_sent_bytes();
	test_order();
	test_late_poison();
	test_codecs();
	test_overlap();
	return TEST_END();
}
