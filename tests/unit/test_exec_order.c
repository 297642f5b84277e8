/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the executor asks of its transport: one rank of a ring alone with a
 * transport that tells what has come when, and counts the questions.
 */
#include <stdlib.h>

#include "base/heap.h"
#include "coll/algorithm.h"
#include "comm/exec.h"
#include "test.h"

enum { RANKS = 4, SEGMENTS = 16, SEGMENT = 64, SLOTS = 4 };

struct gf_request {
	bool receive;
	uint32_t match;
};

/* The priv of the communicator. */
struct line {
	uint32_t come;  /* so many messages of the peer are here */
	unsigned asked; /* in vain */
};

static int post(bool receive, uint64_t tag, struct gf_request **request)
{
	*request = gf_xcalloc(1, sizeof(**request));
	(*request)->receive = receive;
	(*request)->match = (uint32_t)tag;
	return 0;
}

static int line_isend(struct gf_comm *c, int peer, uint64_t tag,
		      const void *data, size_t size_bytes,
		      struct gf_request **request, struct gf_error *err)
{
	(void)c, (void)peer, (void)data, (void)size_bytes, (void)err;
	return post(false, tag, request);
}

static int line_irecv(struct gf_comm *c, int peer, uint64_t tag, void *data,
		      size_t size_bytes, struct gf_request **request,
		      struct gf_error *err)
{
	(void)c, (void)peer, (void)data, (void)size_bytes, (void)err;
	return post(true, tag, request);
}

static int line_test(struct gf_comm *c, struct gf_request *r,
		     struct gf_error *err)
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

static void line_cancel(struct gf_comm *c, struct gf_request *r)
{
	(void)c;
	free(r);
}

static int line_alloc(struct gf_comm *c, size_t size_bytes, void **data,
		      struct gf_error *err)
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

static const struct gf_comm_ops line_ops = {
	.name = "line",
	.isend = line_isend,
	.irecv = line_irecv,
	.test = line_test,
	.cancel = line_cancel,
	.buffer_alloc = line_alloc,
	.buffer_free = line_free,
};

/* With few slots the receives of the all-gather are posted before those of the
 * last reductions. Each message is taken in the pass in which it is there all
 * the same, and few questions are asked in vain. */
int main(void)
{
	struct gf_coll_args args = {
		.ranks = RANKS,
		.count_elems = RANKS * SEGMENTS * SEGMENT,
		.elem_bytes = 4,
		.segment_elems = SEGMENT,
	};
	unsigned messages = 2 * (RANKS - 1) * SEGMENTS, passes = 0;
	struct line line = {0};
	struct gf_comm c = {.ops = &line_ops, .ranks = RANKS, .priv = &line};
	struct gf_exec *x = gf_exec_new(&c);
	struct gf_schedule s = {0};
	struct gf_exec_run *run = NULL;
	struct gf_error err = {""};
	float *data = gf_xcalloc(args.count_elems, sizeof(*data));
	bool moved;

	gf_exec_staging_bytes(x, SLOTS * SEGMENT * sizeof(*data));
	EXPECT(!gf_algorithm_schedule(gf_algorithm_find("ring"), &args, 0, &s,
				      &err) &&
		       !gf_exec_run_new(
			       x, &(struct gf_exec_config){.schedule = &s},
			       &run, &err) &&
		       !gf_exec_start(run, data, &err),
	       "%s", err.text);
	while (!gf_exec_done(run) && passes < 10 * messages) {
		line.come++;
		passes++;
		EXPECT(!gf_exec_progress(x, &moved, &err), "%s", err.text);
	}
	EXPECT(passes <= messages + 1, "%u passes for %u messages", passes,
	       messages);
	EXPECT(line.asked <= 2 * messages, "asked %u times in vain for %u",
	       line.asked, messages);
	gf_exec_run_free(run);
	gf_exec_free(x);
	gf_schedule_release(&s);
	free(data);
	return TEST_END();
}
