/* SPDX-License-Identifier: BSD-3-Clause */
/* The start rule, and that the engine with a thread starts messages when the step model does. */
#include "documents/start_rule.h"

#include "base/array.h"
#include "base/rng.h"
#include "ranks.h"
#include "runtime/engine/thread_parts.h"
#include "simulator/pipeline.h"

/* --- the rule --------------------------------------------------------------
 */

static const struct {
	const char *name;
	struct gf_held held;
	bool may;
} cases[] = {
	{"free", {.lanes = 1}, true},
	{"release alone", {.by_release = true, .lanes = 1}, false},
	{"gradients alone", {.by_gradients = true, .lanes = 1}, false},
	{"half alone", {.by_half = true, .lanes = 1}, false},
	{"step alone", {.by_step = true, .lanes = 1}, false},
	{"lane alone", {.active = 1, .lanes = 1}, false},
	{"all but release", {false, true, true, true, false, 1, 1}, false},
	{"all but gradients", {true, false, true, true, false, 1, 1}, false},
	{"all but half", {true, true, false, true, false, 1, 1}, false},
	{"all but step", {true, true, true, false, false, 1, 1}, false},
	{"all but lane", {true, true, true, true, false, 0, 1}, false},
	{"normal, of many lanes", {.active = 1, .lanes = 8}, false},
	{"a lane is free", {.simultaneous = true, .active = 2, .lanes = 3}, true},
	{"none is", {.simultaneous = true, .active = 3, .lanes = 3}, false},
	{"the only one", {.simultaneous = true, .lanes = 1}, true},
};

static void test_rule(void)
{
	size_t i;

	for (i = 0; i < GF_ARRAY_LENGTH(cases); i++)
		EXPECT(gf_may_start(&cases[i].held) == cases[i].may, "%s", cases[i].name);
}

/* --- the engine beside the model -------------------------------------------
 * The engine runs by the model's clock. Tensors are ready, backward ends and messages end when the
 * model says so, one after the other, by a transport whose all-reduce ends when it is told to.
 * After each of these events the messages that have started must be the same in both.
 */

enum { STEPS = 6, TENSORS = 7, RANKS = 2 };
#define TOLERANCE 1e-9

struct cell { /* a message of a step; its address is its data and request */
	bool started, ended;
	double start_s, end_s; /* the model's */
};

static _Thread_local struct cell cells[STEPS][TENSORS];

static bool is_cell(const void *at)
{
	return (const char *)at >= (const char *)cells &&
	       (const char *)at < (const char *)(cells + STEPS);
}

static int (*real_test)(struct gf_comm *, struct gf_comm_request *, struct gf_error *);

static int test_cell(struct gf_comm *c, struct gf_comm_request *request, struct gf_error *err)
{
	return is_cell(request) ? ((struct cell *)(void *)request)->ended
				: real_test(c, request, err);
}

static int start_cell(struct gf_comm *c, void *data, size_t count_elems,
		      const struct gf_element *element, struct gf_comm_request **request,
		      struct gf_error *err)
{
	(void)c;
	(void)count_elems;
	(void)element;
	(void)err;
	((struct cell *)data)->started = true;
	*request = data;
	return 0;
}

static bool never_rest(void *ctx, size_t slot, size_t nready)
{
	(void)ctx;
	(void)slot;
	(void)nready;
	return true;
}

struct event {
	double at_s;
	enum { END, READY, BACKWARD_END, BEGIN } kind;
	size_t step, which;
};

/* A step may begin right when the one before it ends. */
static int by_time(const void *a, const void *b)
{
	const struct event *x = a, *y = b;

	if (fabs(x->at_s - y->at_s) > TOLERANCE)
		return x->at_s < y->at_s ? -1 : 1;
	return (int)x->kind - (int)y->kind;
}

struct race {
	int staleness;
	struct gf_model_profile model;
	struct gf_tensor tensors[TENSORS];
	struct gf_sim_message messages[TENSORS];
	struct gf_sim_input in;
	struct gf_way way;
	struct gf_work work[STEPS][TENSORS];
	struct event events[STEPS * (2 * TENSORS + 2)];
	size_t nevents;
	struct gf_thread *engine;
};

static void draw(struct race *r, uint64_t seed)
{
	struct gf_rng rng;
	size_t i, last;

	gf_rng_init(&rng, seed, 0);
	r->staleness = 1 + (int)gf_rng_below(&rng, 3);
	r->model = (struct gf_model_profile){
		.tensors = r->tensors,
		.ntensors = TENSORS,
		.forward_s = gf_rng_uniform(&rng),
		.overlap_slowdown = 1,
	};
	for (i = 0; i < TENSORS; i++) {
		r->model.backward_s += gf_rng_uniform(&rng);
		r->tensors[i].ready_s = r->model.backward_s;
	}
	r->model.backward_s += gf_rng_uniform(&rng);
	r->in = (struct gf_sim_input){&r->model, r->messages, 0, 1 + (int)gf_rng_below(&rng, 3), 0};
	for (i = 0; i < TENSORS; i = last + 1) {
		last = i + gf_rng_below(&rng, 2);
		last = last < TENSORS ? last : TENSORS - 1;
		r->messages[r->in.nmessages++] = (struct gf_sim_message){
			.first = i,
			.last = last,
			.mode = gf_rng_below(&rng, 3) ? GF_MODE_SIMULTANEOUS : GF_MODE_NORMAL,
			.release =
				gf_rng_below(&rng, 4) ? GF_RELEASE_READY : GF_RELEASE_BACKWARD_END,
			.startup_s = gf_rng_uniform(&rng),
			.per_byte_s = 1,
			.bytes = gf_rng_uniform(&rng),
		};
	}
}

static void add(struct race *r, double at_s, int kind, size_t step, size_t which)
{
	r->events[r->nevents++] = (struct event){at_s, kind, step, which};
}

static void take_times(struct race *r, const struct gf_pipeline *p, size_t step)
{
	size_t slot = gf_pipeline_slot(p, step), i;

	for (i = 0; i < r->in.nmessages; i++) {
		cells[step][i].start_s = p->state.start_s[slot + i];
		cells[step][i].end_s = p->state.end_s[slot + i];
		add(r, cells[step][i].end_s, END, step, i);
	}
}

static void predict(struct race *r)
{
	const double factor = 1;
	const size_t late = (size_t)r->staleness;
	struct gf_pipeline p;
	double begun_s;
	size_t step, i;

	gf_pipeline_init(&p, &r->in, r->staleness, 1);
	for (step = 0; step < STEPS; step++) {
		begun_s = gf_pipeline_step(&p, &factor);
		if (step >= late)
			take_times(r, &p, step - late);
		add(r, begun_s, BEGIN, step, 0);
		begun_s += r->model.forward_s;
		for (i = 0; i < TENSORS; i++)
			add(r, begun_s + r->tensors[i].ready_s, READY, step, i);
		add(r, begun_s + r->model.backward_s, BACKWARD_END, step, 0);
	}
	gf_pipeline_finish(&p);
	for (step = STEPS - late; step < STEPS; step++)
		take_times(r, &p, step);
	gf_pipeline_release(&p);
	qsort(r->events, r->nevents, sizeof(*r->events), by_time);
}

static void begin(struct race *r, size_t step)
{
	struct gf_engine *e = &r->engine->base;
	struct gf_error err = {""};
	size_t i;

	if (step >= (size_t)r->staleness)
		EXPECT(!gf_engine_wait(e, &err), "%s", err.text);
	for (i = 0; i < r->in.nmessages; i++) {
		const struct gf_sim_message *m = &r->messages[i];

		r->work[step][i] = (struct gf_work){
			.first = m->first,
			.last = m->last,
			.simultaneous = m->mode == GF_MODE_SIMULTANEOUS,
			.at_end = m->release == GF_RELEASE_BACKWARD_END,
			.way = &r->way,
			.element = gf_element_number(GF_F32, GF_OP_SUM),
			.data = &cells[step][i],
			.count_elems = 1,
		};
	}
	gf_engine_begin_work(e, r->work[step], r->in.nmessages);
}

static void happen(struct race *r, const struct event *event)
{
	struct gf_engine *e = &r->engine->base;

	if (event->kind == END)
		cells[event->step][event->which].ended = true;
	else if (event->kind == BEGIN)
		begin(r, event->step);
	else if (event->kind == READY)
		gf_engine_ready_all(e, &event->which, 1);
	else
		gf_engine_backward_end(e);
}

static void expect_same(const struct race *r, uint64_t seed, double now_s)
{
	size_t step, i;

	for (step = 0; step < STEPS; step++)
		for (i = 0; i < r->in.nmessages; i++)
			EXPECT(cells[step][i].started ==
				       (cells[step][i].start_s <= now_s + TOLERANCE),
			       "plan %d, step %zu, message %zu, at %g: starts at %g", (int)seed,
			       step, i, now_s, cells[step][i].start_s);
}

static void run(struct gf_comm *c, uint64_t seed, const struct gf_comm_ops *ops)
{
	const struct gf_comm_ops *real = c->ops;
	struct race r = {0};
	struct gf_pool layout = {.ntensors = TENSORS};
	struct gf_watch watch;
	struct gf_error err = {""};
	struct gf_engine *e = NULL;
	size_t i;
	int round, rc = 0;

	memset(cells, 0, sizeof(cells));
	draw(&r, seed);
	predict(&r);
	EXPECT(!gf_way_of("library", NULL, 0, &r.way, &err), "%s", err.text);
	gf_watch_init(&watch, c, 0);
	EXPECT(!gf_engine_new(
		       &(struct gf_engine_config){
			       .comm = c,
			       .pool = &layout,
			       .depth = (size_t)r.staleness,
			       .lanes = r.in.lanes,
			       .watch = &watch,
			       .hooks.meanwhile = never_rest,
		       },
		       &e, &err),
	       "%s", err.text);
	r.engine = (struct gf_thread *)e;
	c->ops = ops;
	for (i = 0; i < r.nevents && !rc; i++) {
		happen(&r, &r.events[i]);
		/* the message ends, another starts, and no more */
		for (round = 0; round < 3 && !rc; round++)
			rc = gf_thread_round(r.engine, &err);
		if (i + 1 == r.nevents || r.events[i + 1].at_s > r.events[i].at_s + TOLERANCE)
			expect_same(&r, seed, r.events[i].at_s);
	}
	EXPECT(!rc, "%s", err.text);
	c->ops = real;
	gf_engine_free(e);
	gf_watch_release(&watch);
}

static void race(struct gf_comm *c, void *ctx)
{
	struct gf_comm_ops ops = *c->ops;
	uint64_t seed;

	(void)ctx;
	ops.iallreduce = start_cell;
	ops.test = test_cell;
	for (seed = 0; seed < 300; seed++)
		run(c, seed, &ops);
}

static void note_test(struct gf_comm *c, void *ctx)
{
	(void)ctx;
	if (c->rank == 0)
		real_test = c->ops->test;
}

int main(void)
{
	watchdog(60);
	test_rule();
	on_ranks(RANKS, note_test, NULL);
	on_ranks(RANKS, race, NULL);
	return TEST_END();
}
