/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the executor asks of its transport: one rank of a ring alone with a transport that tells
 * what has come when, and counts the questions.
 */
#include <stdlib.h>

#include "base/heap.h"
#include "collectives/algorithm.h"
#include "runtime/exec/exec.h"
#include "test.h"

enum { RANKS = 4, SEGMENTS = 16, SEGMENT = 64, SLOTS = 4 };

struct gf_comm_request {
	bool receive, near;
	uint32_t match;
};

/* The priv of the communicator. */
struct line {
	uint32_t come;  /* so many messages of the peer are here */
	uint32_t told;  /* of which poll has said so */
	unsigned asked; /* in vain */
	/* where the host has other ranks, their messages are here at once */
	unsigned moved; /* of theirs */
	bool held;      /* more than one before it was sent on */
	uint32_t sent;  /* to those on other hosts: in the order of `match` */
	bool disorder;
};

static int post(bool receive, uint64_t tag, struct gf_comm_request **request)
{
	*request = gf_xcalloc(1, sizeof(**request));
	(*request)->receive = receive;
	(*request)->match = (uint32_t)tag;
	return 0;
}

static int line_isend(struct gf_comm *c, int peer, uint64_t tag, const void *data,
		      size_t size_bytes, struct gf_comm_request **request, struct gf_error *err)
{
	(void)c, (void)peer, (void)data, (void)size_bytes, (void)err;
	return post(false, tag, request);
}

static int line_irecv(struct gf_comm *c, int peer, uint64_t tag, void *data, size_t size_bytes,
		      struct gf_comm_request **request, struct gf_error *err)
{
	(void)c, (void)peer, (void)data, (void)size_bytes, (void)err;
	return post(true, tag, request);
}

static int line_test(struct gf_comm *c, struct gf_comm_request *r, struct gf_error *err)
{
	struct line *line = c->priv;

	(void)err;
	if (r->receive && r->match >= line->come) {
		line->asked++;
		return 0;
	}
	free(r);
	return 1;
}

/* All but the first message have come. */
static bool late_is_ripe(const struct gf_comm *c, const struct gf_comm_request *r)
{
	(void)c;
	return r->match != 0;
}

static int late_test(struct gf_comm *c, struct gf_comm_request *r, struct gf_error *err)
{
	struct line *line = c->priv;

	line->come = r->match ? RANKS * SEGMENTS : 0;
	return line_test(c, r, err);
}

static bool line_poll(struct gf_comm *c)
{
	struct line *line = c->priv;
	bool news = line->come > line->told;

	line->told = line->come;
	return news;
}

static void line_cancel(struct gf_comm *c, struct gf_comm_request *r)
{
	(void)c;
	free(r);
}

static int line_alloc(struct gf_comm *c, size_t size_bytes, void **data, struct gf_error *err)
{
	(void)c, (void)err;
	*data = gf_xcalloc(1, size_bytes);
	return 0;
}

static void line_free(struct gf_comm *c, void *data)
{
	(void)c;
	free(data);
}

/* Rank 0 with one other rank on its host. */
static bool host_reduces_from(struct gf_comm *c, int peer)
{
	(void)c;
	return peer == 1;
}

static int host_irecv_reduce(struct gf_comm *c, int peer, uint64_t tag, void *data,
			     size_t count_elems, const struct gf_element *element,
			     struct gf_comm_request **request, struct gf_error *err)
{
	(void)c, (void)peer, (void)data, (void)count_elems, (void)element;
	(void)err;
	if (post(true, tag, request))
		return -1;
	(*request)->near = true;
	return 0;
}

static int host_isend(struct gf_comm *c, int peer, uint64_t tag, const void *data,
		      size_t size_bytes, struct gf_comm_request **request, struct gf_error *err)
{
	struct line *line = c->priv;

	if (peer != 1)
		line->disorder |= line->sent++ != (uint32_t)tag;
	return line_isend(c, peer, tag, data, size_bytes, request, err);
}

static int host_test(struct gf_comm *c, struct gf_comm_request *r, struct gf_error *err)
{
	struct line *line = c->priv;

	if (!r->near)
		return line_test(c, r, err);
	line->held |= line->moved < SEGMENTS && line->moved > line->sent;
	line->moved++;
	c->moved_bytes += SEGMENT * sizeof(float);
	free(r);
	return 1;
}

static const struct gf_comm_ops line_ops = {
	.name = "line",
	.isend = line_isend,
	.irecv = line_irecv,
	.test = line_test,
	.cancel = line_cancel,
	.buffer_alloc = line_alloc,
	.buffer_free = line_free,
};

static const struct gf_comm_ops host_ops = {
	.name = "host",
	.isend = host_isend,
	.irecv = line_irecv,
	.reduces_from = host_reduces_from,
	.irecv_reduce = host_irecv_reduce,
	.test = host_test,
	.cancel = line_cancel,
	.buffer_alloc = line_alloc,
	.buffer_free = line_free,
};

static const struct gf_comm_ops polled_ops = {
	.name = "polled",
	.isend = line_isend,
	.irecv = line_irecv,
	.test = line_test,
	.poll = line_poll,
	.cancel = line_cancel,
	.buffer_alloc = line_alloc,
	.buffer_free = line_free,
};

struct walk {
	const char *name;
	const struct gf_comm_ops *ops;
	unsigned looks; /* calls of progress, from one message to the next */
	unsigned vain;  /* questions in vain at most, for each message */
};

/* If slots are few, the receives of the all-gather are posted before those of the last reductions.
 * Each message is taken in the pass in which it is there all the same, and few questions are asked
 * in vain: where the transport says whether anything has come, hardly more than if nobody had
 * looked. */
static void test_walk(const struct walk *walk)
{
	struct gf_coll_args args = {
		.ranks = RANKS,
		.count_elems = RANKS * SEGMENTS * SEGMENT,
		.elem_bytes = 4,
		.segment_elems = SEGMENT,
	};
	unsigned messages = 2 * (RANKS - 1) * SEGMENTS, taken = 0, k;
	struct line line = {0};
	struct gf_comm c = {.ops = walk->ops, .ranks = RANKS, .priv = &line};
	struct gf_exec *x = gf_exec_new(&c);
	struct gf_schedule s = {0};
	struct gf_exec_run *run = NULL;
	struct gf_error err = {""};
	float *data = gf_xcalloc(args.count_elems, sizeof(*data));
	bool moved;

	gf_exec_staging_bytes(x, SLOTS * SEGMENT * sizeof(*data));
	EXPECT(!gf_algorithm_schedule(gf_algorithm_find("ring"), &args, 0, &s, &err) &&
		       !gf_exec_run_new(x, &(struct gf_exec_config){.schedule = &s}, &run, &err) &&
		       !gf_exec_start(run, data, &err),
	       "%s: %s", walk->name, err.text);
	while (!gf_exec_done(run) && taken < 10 * messages) {
		line.come++;
		taken++;
		for (k = 0; k < walk->looks && !gf_exec_done(run); k++)
			EXPECT(!gf_exec_progress(x, &moved, &err), "%s: %s", walk->name, err.text);
	}
	EXPECT(taken <= messages + 1, "%s: %u came until %u had been taken", walk->name, taken,
	       messages);
	EXPECT(line.asked <= walk->vain * messages, "%s: asked %u times in vain for %u", walk->name,
	       line.asked, messages);
	gf_exec_run_free(run);
	gf_exec_free(x);
	gf_schedule_release(&s);
	free(data);
}

/* Sums made in shared memory go out segment by segment, in order, and not after the last of
 * them. */
static void test_wires_first(void)
{
	int factors[] = {2, 2};
	struct gf_coll_args args = {
		.ranks = 4,
		.count_elems = 4 * SEGMENTS * SEGMENT,
		.elem_bytes = 4,
		.segment_elems = SEGMENT,
		.factors = factors,
		.nfactors = 2,
	};
	struct line line = {0};
	struct gf_comm c = {.ops = &host_ops, .ranks = 4, .priv = &line};
	struct gf_exec *x = gf_exec_new(&c);
	struct gf_schedule s = {0};
	struct gf_exec_run *run = NULL;
	struct gf_error err = {""};
	float *data = gf_xcalloc(args.count_elems, sizeof(*data));
	bool moved;

	EXPECT(!gf_algorithm_schedule(gf_algorithm_find("blueconnect"), &args, 0, &s, &err) &&
		       !gf_exec_run_new(x, &(struct gf_exec_config){.schedule = &s}, &run, &err) &&
		       !gf_exec_start(run, data, &err),
	       "%s", err.text);
	/* few bytes: the network is looked at once */
	EXPECT(!gf_exec_progress(x, &moved, &err), "%s", err.text);
	EXPECT(line.moved == 2 * SEGMENTS && line.sent == SEGMENTS && !line.held,
	       "%u added, %u sent, %s", line.moved, line.sent, line.held ? "late" : "in time");
	EXPECT(!line.disorder, "sends out of order");
	gf_exec_run_free(run);
	gf_exec_free(x);
	gf_schedule_release(&s);
	free(data);
}

/* Data that the transport knows to be there is taken at once, whatever came before it: all but the
 * first of a peer's messages have come. */
static void test_overtaken(void)
{
	struct gf_comm_ops ops = line_ops;
	struct line line = {0};
	struct gf_comm c = {.ops = &ops, .ranks = 4, .priv = &line};
	struct gf_exec *x = gf_exec_new(&c);
	struct gf_schedule s;
	struct gf_exec_run *run = NULL;
	struct gf_error err = {""};
	float data[SEGMENTS] = {0};
	uint64_t before;
	bool moved;
	size_t i;

	ops.test = late_test;
	ops.is_ripe = late_is_ripe;
	gf_schedule_init(&s, 0, 4, SEGMENTS);
	for (i = 0; i < SEGMENTS; i++)
		gf_schedule_recv(&s, 2, gf_data(i, 1));
	gf_schedule_finish(&s);
	EXPECT(!gf_exec_run_new(x, &(struct gf_exec_config){.schedule = &s}, &run, &err) &&
		       !gf_exec_start(run, data, &err),
	       "%s", err.text);
	before = gf_exec_moves(run);
	EXPECT(!gf_exec_progress(x, &moved, &err), "%s", err.text);
	EXPECT(gf_exec_moves(run) - before == SEGMENTS - 1, "%d of %d taken",
	       (int)(gf_exec_moves(run) - before), SEGMENTS - 1);
	EXPECT(line.asked == 1, "asked %u times in vain", line.asked);
	gf_exec_run_free(run);
	gf_exec_free(x);
	gf_schedule_release(&s);
}

/* Segments that are ready at once are sent in the order in which the peer expects them. */
static void test_ready_in_order(void)
{
	struct gf_schedule s;
	struct line line = {.come = SEGMENTS};
	struct gf_comm c = {.ops = &host_ops, .ranks = 4, .priv = &line};
	struct gf_exec *x = gf_exec_new(&c);
	struct gf_exec_run *run = NULL;
	struct gf_error err = {""};
	float data[SEGMENTS] = {0};
	bool moved;
	size_t i;

	gf_schedule_init(&s, 0, 4, SEGMENTS);
	for (i = 0; i < SEGMENTS; i++)
		gf_schedule_recv(&s, 2, gf_data(i, 1));
	for (i = 0; i < SEGMENTS; i++)
		gf_schedule_send(&s, 3, gf_data(i, 1));
	gf_schedule_finish(&s);
	EXPECT(!gf_exec_run_new(x, &(struct gf_exec_config){.schedule = &s}, &run, &err) &&
		       !gf_exec_start(run, data, &err) && !gf_exec_progress(x, &moved, &err),
	       "%s", err.text);
	EXPECT(line.sent == SEGMENTS && !line.disorder, "%u sent, %s order", line.sent,
	       line.disorder ? "out of" : "in");
	gf_exec_run_free(run);
	gf_exec_free(x);
	gf_schedule_release(&s);
}

int main(void)
{
	static const struct walk walks[] = {
		{"one look", &line_ops, 1, 2},
		{"polled, one look", &polled_ops, 1, 2},
		{"polled, six looks", &polled_ops, 6, 4},
	};
	size_t i;

	for (i = 0; i < sizeof(walks) / sizeof(*walks); i++)
		test_walk(&walks[i]);
	test_wires_first();
	test_overtaken();
	test_ready_in_order();
	return TEST_END();
}
