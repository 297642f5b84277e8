/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What messages and backward do to each other: by hand, and beside a clock that ticks.
 */
#include "base/array.h"
#include "base/rng.h"
#include "simulator/pipeline.h"
#include "simulator/step.h"
#include "test.h"

#define MOST 6

/* Messages of b = 1 and gamma_n = n; `slow`, `drag` and `extra_s` are what one of them and backward
 * do to each other. */
struct sent {
	double ready_s, startup_s, bytes;
	bool simultaneous, late; /* late: released when backward has ended */
	double slow[2], drag, extra_s;
	bool split;
	double need_s;
};

struct step {
	const char *name;
	struct {
		double forward_s, backward_s, issue_s, otherwise;
		int lanes;
		size_t n;
		double update_s;
	};
	struct sent sent[MOST];
	struct { /* wanted, as the next */
		double ready_s[MOST], start_s[MOST], end_s[MOST];
	};
	struct {
		double backward_end_s, iteration_s;
	};
};

/* A step as the library takes it; each message is of one tensor. */
struct posed {
	struct gf_tensor tensors[MOST];
	struct gf_beside_backward mutual[MOST];
	struct gf_sim_message messages[MOST];
	double slow[MOST][2];
	struct gf_model_profile model;
	struct gf_sim_input in;
};

static void pose(const struct step *c, struct posed *p)
{
	size_t i;

	*p = (struct posed){
		.model = {.forward_s = c->forward_s,
			  .backward_s = c->backward_s,
			  .overlap_slowdown = c->otherwise,
			  .issue_s = c->issue_s,
			  .tensors = p->tensors,
			  .ntensors = c->n},
		.in = {&p->model, p->messages, c->n, c->lanes, c->update_s},
	};
	for (i = 0; i < c->n; i++) {
		const struct sent *m = &c->sent[i];

		p->slow[i][0] = m->slow[0];
		p->slow[i][1] = m->slow[1];
		p->mutual[i] = (struct gf_beside_backward){
			.compute_slowdown = p->slow[i],
			.ncompute_slowdown = m->slow[0] > 0 ? 2 : 0,
			.message_slowdown = m->drag,
			.startup_extra_s = m->extra_s,
		};
		p->tensors[i].ready_s = m->ready_s;
		p->tensors[i].need_s = m->need_s;
		p->messages[i] = (struct gf_sim_message){
			.first = i,
			.last = i,
			.mode = m->simultaneous ? GF_MODE_SIMULTANEOUS : GF_MODE_NORMAL,
			.release = m->late ? GF_RELEASE_BACKWARD_END : GF_RELEASE_READY,
			.half = m->split ? GF_HALF_SPLIT : GF_HALF_ALL,
			.startup_s = m->startup_s,
			.per_byte_s = 1,
			.gather_startup_s = m->split ? m->startup_s / 2 : 0,
			.gather_per_byte_s = m->split ? 0.5 : 0,
			.bytes = m->bytes,
			.mutual = &p->mutual[i],
		};
	}
}

static void run(const struct step *c, struct gf_sim_result *out)
{
	double gradient_s[MOST];
	struct posed p;
	size_t i;

	pose(c, &p);
	gf_sim_step(&p.in, out);
	gf_sim_gradients(&p.in, out, gradient_s);
	for (i = 0; i < c->n; i++)
		if (!c->sent[i].late)
			EXPECT_NEAR(gradient_s[i], out->messages[i].ready_s, 1e-9,
				    "%s: gradient %zu", c->name, i);
}

/* forward 1, backward 4 */
static const struct step by_hand[] = {
	{"the first message's issue delays what is ready after it",
	 {1, 4, 0.5, 1, 1, 2},
	 {{.ready_s = 2, .startup_s = 1, .bytes = 2}, {.ready_s = 4, .startup_s = 1, .bytes = 1}},
	 {{3, 5.5}, {3, 6}, {6, 8}},
	 {6, 8}},
	{"issuing what is released at the end holds nothing up",
	 {1, 4, 0.5, 1, 1, 2},
	 {{.ready_s = 2, .startup_s = 1, .bytes = 2, .late = true},
	  {.ready_s = 4, .startup_s = 1, .bytes = 1, .late = true}},
	 {{5, 5}, {5, 8}, {8, 10}},
	 {5, 10}},
	{"what is released at the end waits for the issue of later messages",
	 {1, 4, 0.5, 1, 1, 2},
	 {{.ready_s = 2, .startup_s = 1, .bytes = 2, .late = true},
	  {.ready_s = 2, .startup_s = 1, .bytes = 1}},
	 {{5.5, 3}, {5.5, 8.5}, {8.5, 10.5}},
	 {5.5, 10.5}},
	/* 3 of work are left at 2; until 5, 1.5 of it are done at half speed */
	{"a message that halves backward",
	 {1, 4, 0, 1, 1, 2},
	 {{.ready_s = 1, .startup_s = 1, .bytes = 2, .slow = {2, 2}},
	  {.ready_s = 4, .startup_s = 1, .bytes = 1, .slow = {2, 2}}},
	 {{2, 6.5}, {2, 6.5}, {5, 8.5}},
	 {6.5, 8.5}},
	/* startup 2..4, half a byte until backward ends at 5, then 3.5 */
	{"a message that backward halves",
	 {1, 4, 0, 1, 1, 2},
	 {{.ready_s = 1, .startup_s = 1, .bytes = 4, .drag = 2},
	  {.ready_s = 4, .startup_s = 1, .bytes = 1, .drag = 2}},
	 {{2, 5}, {2, 8.5}, {8.5, 10.5}},
	 {5, 10.5}},
	/* ends in its startup: 2..5 is 1.5 of 3 */
	{"backward ends in the startup",
	 {1, 4, 0, 1, 1, 1},
	 {{.ready_s = 1, .startup_s = 3, .bytes = 1, .drag = 2}},
	 {{2}, {2}, {7.5}},
	 {5, 7.5}},
	/* 2..4, of which 1 is extra; the second starts when backward has ended
	 */
	{"a startup that takes longer beside backward",
	 {1, 4, 0, 1, 1, 2},
	 {{.ready_s = 1, .startup_s = 1, .bytes = 1, .extra_s = 1},
	  {.ready_s = 4, .startup_s = 1, .bytes = 1, .extra_s = 1}},
	 {{2, 5}, {2, 5}, {5, 7}},
	 {5, 7}},
	/* 2..5 is three quarters of 1 + 3: a quarter of 1 is left */
	{"backward ends in the extra startup",
	 {1, 4, 0, 1, 1, 1},
	 {{.ready_s = 1, .startup_s = 1, .bytes = 1, .extra_s = 3}},
	 {{2}, {2}, {6.25}},
	 {5, 6.25}},
	/* no startup alone: what is left when backward ends is nothing */
	{"nothing but an extra startup",
	 {1, 4, 0, 1, 1, 1},
	 {{.ready_s = 1, .bytes = 1, .extra_s = 10}},
	 {{2}, {2}, {6}},
	 {5, 6}},
	/* Backward has 4 + 2 of work. Alone from 2: backward and the message at half speed. At 4, 2
	 * of the work are done, the issue among them: the second is ready, and the first one's
	 * startup ends. With two, backward goes at 1/4. The first drains a byte until 6; then two
	 * in transfer take 4 for each byte, until it ends at 8. */
	{"two lanes, both ways, with an issue",
	 {1, 4, 1, 1, 2, 2},
	 {{.ready_s = 1, .startup_s = 1, .bytes = 1.5, .slow = {2, 4}, .drag = 2},
	  {.ready_s = 1,
	   .startup_s = 1,
	   .bytes = 2,
	   .slow = {1, 1},
	   .drag = 2,
	   .simultaneous = true}},
	 {{2, 4}, {2, 4}, {8, 11}},
	 /* 4 are left at 4, 3 at 8 */
	 {11, 11}},
};

static void test_by_hand(void)
{
	struct gf_predicted_message messages[MOST];
	size_t i, k;

	for (i = 0; i < GF_ARRAY_LENGTH(by_hand); i++) {
		const struct step *c = &by_hand[i];
		struct gf_sim_result r = {.messages = messages};

		run(c, &r);
		for (k = 0; k < c->n; k++) {
			EXPECT_NEAR(messages[k].ready_s, c->ready_s[k], 1e-12, "%s: ready %zu",
				    c->name, k);
			EXPECT_NEAR(messages[k].start_s, c->start_s[k], 1e-12, "%s: start %zu",
				    c->name, k);
			EXPECT_NEAR(messages[k].end_s, c->end_s[k], 1e-12, "%s: end %zu", c->name,
				    k);
		}
		EXPECT_NEAR(r.backward_end_s, c->backward_end_s, 1e-12, "%s", c->name);
		EXPECT_NEAR(r.iteration_s, c->iteration_s, 1e-12, "%s", c->name);
	}
}

/* Messages of 1 s hide behind the next steps' compute, but their issue is compute: 1 + 4 + 2 * 0.5.
 * One that slows backward to half for its 1 s takes another half of a second. */
static void test_stale(void)
{
	struct step c = {
		.forward_s = 1,
		.backward_s = 4,
		.issue_s = 0.5,
		.otherwise = 1,
		.lanes = 2,
		.n = 2,
		.sent = {{.ready_s = 1, .startup_s = 0.5, .bytes = 0.5},
			 {.ready_s = 4, .startup_s = 0.5, .bytes = 0.5}},
	};
	struct posed p;

	pose(&c, &p);
	EXPECT_NEAR(gf_pipeline_pace_s(&p.in, 2), 6, 1e-9, "issue");
	c.sent[0].slow[0] = c.sent[0].slow[1] = 2;
	pose(&c, &p);
	EXPECT_NEAR(gf_pipeline_pace_s(&p.in, 2), 6.5, 1e-9, "issue and slowdown");
}

/* Forward takes 4, and the all-gathers, of messages that take 2 and 4 alone, are needed after 2 and
 * 1 of it. */
static void test_gathers(void)
{
	static const struct {
		double slow, drag, extra_s, forward_end_s;
	} cases[] = {
		/* the second message's comes first, from 0 to 2: 1 late */
		{1, 1, 0, 5},
		/* forward does its 1 until 2 and waits no more; half of the next second beside the
		 * other */
		{2, 1, 0, 5.5},
		/* half of the first is there after 1, and all of it after
		 * 2.5; the other has 1 s to go beside forward, twice as long, and half of it there
		 * when forward has done its next 1 */
		{1, 2, 0, 6},
		/* its startup of 1 takes 3 beside forward, a third of which is there after 1: then
		 * 2/3 and 1 more; the other's startup of .5 takes 2.5: 1 of that, then .3 and .5.
		 * Needed at 2. */
		{1, 1, 2, 1 + 2.0 / 3 + 1 + 1 + .3 + .5 + 2},
	};
	size_t i;

	for (i = 0; i < GF_ARRAY_LENGTH(cases); i++) {
		struct step c = {
			.forward_s = 4,
			.backward_s = 4,
			.otherwise = 1,
			.lanes = 1,
			.n = 2,
			.sent = {{.ready_s = 1,
				  .startup_s = 1,
				  .bytes = 1,
				  .split = true,
				  .need_s = 2},
				 {.ready_s = 4,
				  .startup_s = 2,
				  .bytes = 2,
				  .split = true,
				  .need_s = 1}},
		};
		struct gf_predicted_message messages[MOST];
		struct gf_sim_result r = {.messages = messages};
		size_t k;

		for (k = 0; k < c.n; k++) {
			c.sent[k].slow[0] = c.sent[k].slow[1] = cases[i].slow;
			c.sent[k].drag = cases[i].drag;
			c.sent[k].extra_s = cases[i].extra_s;
		}
		run(&c, &r);
		EXPECT_NEAR(r.forward_end_s, cases[i].forward_end_s, 1e-12, "case %zu", i);
	}
}

/* --- a clock that ticks --------------------------------------------------- */

#define TICK_S (1 / 2048.0)

struct clock {
	const struct step *c;
	double done_s; /* backward's work, issues included */
	double now_s;
	size_t started;
	bool over[MOST];
	double startup_s[MOST], bytes[MOST]; /* left */
	double start_s[MOST], end_s[MOST];
};

/* The work of backward that makes the message, or all of it. */
static double work_of(const struct clock *k, size_t message)
{
	double sum = 0;
	size_t i;

	for (i = 0; i < message; i++)
		sum += k->c->sent[i].late ? 0 : k->c->issue_s;
	if (message == k->c->n)
		return sum + k->c->backward_s;
	return sum + k->c->sent[message].ready_s;
}

static int active(const struct clock *k)
{
	size_t i;
	int n = 0;

	for (i = 0; i < k->started; i++)
		n += !k->over[i];
	return n;
}

static void start_what_may(struct clock *k)
{
	while (k->started < k->c->n) {
		const struct sent *m = &k->c->sent[k->started];
		size_t at = m->late ? k->c->n : k->started;

		if (k->done_s < work_of(k, at) - TICK_S / 2 ||
		    active(k) >= (m->simultaneous ? k->c->lanes : 1))
			return;
		k->start_s[k->started] = k->now_s;
		k->startup_s[k->started] = m->startup_s;
		k->bytes[k->started++] = m->bytes;
	}
}

static void tick(struct clock *k)
{
	bool backward = k->done_s < work_of(k, k->c->n) - TICK_S / 2;
	double slow = 1;
	int draining = 0, n = active(k);
	size_t i;

	for (i = 0; i < k->started; i++) {
		const struct sent *m = &k->c->sent[i];

		if (k->over[i])
			continue;
		slow = fmax(slow, m->slow[0] > 0 ? m->slow[n > 1] : k->c->otherwise);
		draining += k->startup_s[i] <= 0;
	}
	for (i = 0; i < k->started; i++) {
		const struct sent *m = &k->c->sent[i];
		double drag = fmax(backward ? m->drag : 1, 1);
		double extra = backward ? m->extra_s / m->startup_s : 0;

		if (k->over[i])
			continue;
		if (k->startup_s[i] > 0)
			k->startup_s[i] -= TICK_S / (drag + extra);
		else
			k->bytes[i] -= TICK_S / drag / draining;
	}
	k->now_s += TICK_S;
	if (backward)
		k->done_s += TICK_S / slow;
	for (i = 0; i < k->started; i++) {
		if (k->over[i] || k->startup_s[i] > TICK_S / 8 || k->bytes[i] > TICK_S / 8)
			continue;
		k->over[i] = true;
		k->end_s[i] = k->now_s;
	}
}

static void run_clock(const struct step *c, struct clock *k)
{
	*k = (struct clock){.c = c, .now_s = c->forward_s};
	for (;;) {
		start_what_may(k);
		if (k->started == c->n && active(k) == 0)
			return;
		tick(k);
	}
}

static double pick(struct gf_rng *rng, const double *from, uint64_t n)
{
	return from[gf_rng_below(rng, n)];
}

static void make(struct gf_rng *rng, struct step *c)
{
	static const double factors[] = {0, 1, 1.5, 2, 4};
	static const double times[] = {0.25, 0.5, 1, 1.5, 2};
	double ready_s = 0;
	size_t i;

	*c = (struct step){
		.name = "random",
		.forward_s = 1,
		.issue_s = pick(rng, (const double[]){0, 0, 0.25, 0.5}, 4),
		.otherwise = pick(rng, factors + 1, 3),
		.lanes = 1 + (int)gf_rng_below(rng, 2),
		.n = 1 + gf_rng_below(rng, MOST),
	};
	for (i = 0; i < c->n; i++) {
		struct sent *m = &c->sent[i];

		ready_s += pick(rng, times, 5);
		m->ready_s = ready_s;
		m->startup_s = pick(rng, times, 5);
		m->bytes = pick(rng, times, 5);
		m->simultaneous = gf_rng_below(rng, 2);
		m->slow[0] = pick(rng, factors, 4);
		m->slow[1] = m->slow[0] * pick(rng, factors + 1, 3);
		m->drag = pick(rng, factors, 5);
		m->extra_s = pick(rng, factors, 4);
	}
	c->backward_s = ready_s + pick(rng, times, 2);
	for (i = 0; i < c->n; i++)
		c->sent[i].late = gf_rng_below(rng, 4) == 0;
}

static void test_clock(void)
{
	const double tolerance = 64 * TICK_S;
	struct gf_predicted_message messages[MOST];
	struct gf_rng rng;
	size_t i, m;

	gf_rng_init(&rng, 7, 0);
	for (i = 0; i < 400; i++) {
		struct gf_sim_result r = {.messages = messages};
		struct clock k;
		struct step c;

		make(&rng, &c);
		run(&c, &r);
		run_clock(&c, &k);
		for (m = 0; m < c.n; m++) {
			EXPECT_NEAR(messages[m].start_s, k.start_s[m], tolerance,
				    "case %zu: start %zu", i, m);
			EXPECT_NEAR(messages[m].end_s, k.end_s[m], tolerance, "case %zu: end %zu",
				    i, m);
		}
	}
}

/* --- the clock of steps with stale gradients, and of all-gathers ---------- */

#define STALE_STEPS 24

struct stale {
	const struct step *c;
	struct clock work;                    /* for work_of */
	size_t steps, first, next, staleness; /* first: not over */
	double now_s, done_s;                 /* the last step's work */
	double startup_s[STALE_STEPS * MOST], bytes[STALE_STEPS * MOST];
};

static bool stale_over(const struct stale *k, size_t i)
{
	return i < k->next && k->startup_s[i] <= TICK_S / 8 && k->bytes[i] <= TICK_S / 8;
}

static int stale_active(const struct stale *k)
{
	size_t i;
	int n = 0;

	for (i = k->first; i < k->next; i++)
		n += !stale_over(k, i);
	return n;
}

static double compute_of(const struct stale *k)
{
	return k->c->update_s + k->c->forward_s + work_of(&k->work, k->c->n);
}

static void stale_start(struct stale *k)
{
	while (k->next < k->steps * k->c->n) {
		size_t i = k->next % k->c->n;
		const struct sent *m = &k->c->sent[i];
		double work_s =
			k->c->update_s + k->c->forward_s + work_of(&k->work, m->late ? k->c->n : i);

		if (k->next / k->c->n + 1 == k->steps && k->done_s < work_s - TICK_S / 2)
			return;
		if (stale_active(k) >= (m->simultaneous ? k->c->lanes : 1))
			return;
		k->startup_s[k->next] = m->startup_s;
		k->bytes[k->next++] = m->bytes;
	}
}

static void stale_tick(struct stale *k)
{
	bool computes = k->steps && k->done_s < compute_of(k) - TICK_S / 2;
	int draining = 0, n = stale_active(k);
	double slow = 1;
	size_t i;

	for (i = k->first; i < k->next; i++) {
		const struct sent *m = &k->c->sent[i % k->c->n];

		if (stale_over(k, i))
			continue;
		slow = fmax(slow, m->slow[0] > 0 ? m->slow[n > 1] : k->c->otherwise);
		draining += k->startup_s[i] <= TICK_S / 8;
	}
	for (i = k->first; i < k->next; i++) {
		const struct sent *m = &k->c->sent[i % k->c->n];
		double drag = computes ? fmax(m->drag, 1) : 1;
		double extra = computes ? m->extra_s / m->startup_s : 0;

		if (k->startup_s[i] > TICK_S / 8)
			k->startup_s[i] -= TICK_S / (drag + extra);
		else if (!stale_over(k, i))
			k->bytes[i] -= TICK_S / drag / draining;
	}
	while (k->first < k->next && stale_over(k, k->first))
		k->first++;
	k->now_s += TICK_S;
	if (computes)
		k->done_s += TICK_S / slow;
}

/* May the next step begin? */
static bool stale_may(const struct stale *k)
{
	size_t wanted = k->steps < k->staleness ? 0 : k->steps - k->staleness + 1;
	size_t i;

	if (k->steps && k->done_s < compute_of(k) - TICK_S / 2)
		return false;
	for (i = k->first; i < wanted * k->c->n; i++)
		if (!stale_over(k, i))
			return false;
	return true;
}

static void test_stale_clock(void)
{
	static const double factor = 1;
	struct gf_rng rng;
	size_t i;

	gf_rng_init(&rng, 8, 0);
	for (i = 0; i < 60; i++) {
		struct gf_pipeline p;
		struct posed posed;
		struct stale k;
		struct step c;

		make(&rng, &c);
		c.update_s = pick(&rng, (const double[]){0, 0.5, 1}, 3);
		k = (struct stale){.c = &c, .work.c = &c, .staleness = 1 + i % 3};
		pose(&c, &posed);
		gf_pipeline_init(&p, &posed.in, (int)k.staleness, 1);
		for (; k.steps < STALE_STEPS; k.steps++, k.done_s = 0) {
			double begun_s = gf_pipeline_step(&p, &factor);

			for (stale_start(&k); !stale_may(&k); stale_start(&k))
				stale_tick(&k);
			EXPECT_NEAR(begun_s, k.now_s, 0.005 * (1 + k.now_s), "case %zu: step %zu",
				    i, k.steps);
		}
		gf_pipeline_release(&p);
	}
}

static void test_gathers_clock(void)
{
	struct gf_predicted_message messages[MOST];
	struct gf_rng rng;
	size_t i, k, m;

	gf_rng_init(&rng, 9, 0);
	for (i = 0; i < 200; i++) {
		struct gf_sim_result r = {.messages = messages};
		double now_s = 0, done_s = 0, startup_s, bytes;
		struct step c;

		make(&rng, &c);
		c.lanes = 1;
		c.forward_s = 1 + (double)gf_rng_below(&rng, 8);
		for (k = 0; k < c.n; k++) {
			c.sent[k].split = true;
			c.sent[k].simultaneous = false;
			c.sent[k].need_s = c.forward_s * gf_rng_uniform(&rng);
		}
		for (m = c.n; m-- > 0;) {
			const struct sent *s = &c.sent[m];
			double slow = s->slow[0] > 0 ? s->slow[0] : c.otherwise;
			double stops_s = c.forward_s;

			for (k = 0; k <= m; k++)
				stops_s = fmin(stops_s, c.sent[k].need_s);
			startup_s = s->startup_s / 2;
			bytes = s->bytes / 2;
			for (; bytes > 0; now_s += TICK_S) {
				bool runs = done_s < stops_s;
				double drag = runs ? fmax(s->drag, 1) : 1;
				double extra = runs ? 2 * s->extra_s / s->startup_s : 0;

				if (startup_s > 0)
					startup_s -= TICK_S / (drag + extra);
				else
					bytes -= TICK_S / drag;
				if (runs)
					done_s += TICK_S / fmax(slow, 1);
			}
		}
		run(&c, &r);
		EXPECT_NEAR(r.forward_end_s, now_s + c.forward_s - done_s, 64 * TICK_S, "case %zu",
			    i);
	}
}

int main(void)
{
	test_by_hand();
	test_stale();
	test_gathers();
	test_clock();
	test_stale_clock();
	test_gathers_clock();
	return TEST_END();
}
