/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Calls that the engine refuses, and the ranks that it blames when ranks stop, come late or fail. A
 * rank stops here by a transport that does not return.
 */
#include <errno.h>
#include <pthread.h>

#include "base/array.h"
#include "ranks.h"
#include "rig.h"

/* Long enough that a busy machine lets every innocent thread run in half of it. */
#define TIMEOUT_S 5

static const struct setting watched = {0, 1, "ring", false, TIMEOUT_S};

/* A place where the culprit waits until the others have ended. */
struct gate {
	pthread_mutex_t lock;
	pthread_cond_t cond;
	int passed;
	bool frozen, caught; /* to be stopped; it has been */
};

static void gate_pass(struct gate *g)
{
	pthread_mutex_lock(&g->lock);
	g->passed++;
	pthread_cond_broadcast(&g->cond);
	pthread_mutex_unlock(&g->lock);
}

static void gate_wait(struct gate *g, int passed)
{
	pthread_mutex_lock(&g->lock);
	while (g->passed < passed)
		pthread_cond_wait(&g->cond, &g->lock);
	pthread_mutex_unlock(&g->lock);
}

/* --- a transport with faults ---------------------------------------------- */

static struct gate gate = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, 0, false, false};
static struct gf_comm_ops faulty;
static int (*real_isend)(struct gf_comm *, int, uint64_t, const void *, size_t,
			 struct gf_comm_request **, struct gf_error *);
static int (*real_probe)(struct gf_comm *, uint64_t, int *, struct gf_error *);

static int frozen_probe(struct gf_comm *c, uint64_t tag, int *peer, struct gf_error *err)
{
	bool frozen;

	pthread_mutex_lock(&gate.lock);
	frozen = gate.frozen;
	gate.caught |= frozen;
	pthread_cond_broadcast(&gate.cond);
	pthread_mutex_unlock(&gate.lock);
	if (frozen)
		gate_wait(&gate, c->ranks - 1);
	return real_probe(c, tag, peer, err);
}

static int broken_isend(struct gf_comm *c, int peer, uint64_t tag, const void *data,
			size_t size_bytes, struct gf_comm_request **request, struct gf_error *err)
{
	if (tag >> 32 > GF_CHANNEL_LAST)
		return real_isend(c, peer, tag, data, size_bytes, request, err);
	return gf_error_set(err, -EIO, "cable pulled");
}

/* --- the cases -------------------------------------------------------------
 */

static void give_all(struct rig *r)
{
	rig_begin(r);
	gf_engine_backward_end(r->engine);
}

/* Every later call says the same. */
static void expect_kept(struct rig *r, int rc, const char *text)
{
	struct gf_error err = {""};

	EXPECT(gf_engine_wait(r->engine, &err) == rc, "wait");
	EXPECT_TEXT(err.text, text);
	EXPECT(gf_engine_wait_message(r->engine, 0, &err) == rc, "message");
	EXPECT(gf_engine_call(r->engine, NULL, NULL, &err) == rc, "call");
	EXPECT_TEXT(err.text, text);
	rig_begin(r);
	gf_engine_ready_all(r->engine, &(size_t){0}, 1);
	gf_engine_backward_end(r->engine);
	EXPECT(gf_engine_wait(r->engine, &err) == rc, "another step");
}

/* Which rank does not answer; -1: all do. */
static void expect_missing(struct gf_comm *c, struct rig *r, int which)
{
	bool missing[8];
	int rank;

	EXPECT(c->ranks <= 8 && gf_engine_missing(r->engine, missing) == 0, "rank %d", c->rank);
	for (rank = 0; rank < c->ranks; rank++)
		EXPECT(missing[rank] == (rank == which), "rank %d misses rank %d: %d", c->rank,
		       rank, missing[rank]);
}

static void expect_blame(struct gf_comm *c, struct rig *r, const char *what, const char *blame)
{
	struct gf_error err = {""};

	EXPECT(gf_engine_wait(r->engine, &err) == -ETIMEDOUT, "rank %d: %s", c->rank, err.text);
	EXPECT(strstr(err.text, what) && strstr(err.text, blame),
	       "rank %d: want \"%s\" and \"%s\", got %s", c->rank, what, blame, err.text);
	EXPECT(c->broken, "nothing collective any more");
	expect_missing(c, r, strstr(blame, "rank 2 does not answer") ? 2 : -1);
	expect_kept(r, -ETIMEDOUT, err.text);
}

static void stopped(struct gf_comm *c, void *ctx)
{
	struct rig r = {0};
	struct gf_error err = {""};
	bool culprit = c->rank == 2;

	(void)ctx;
	if (culprit)
		c->ops = &faulty;
	EXPECT(!rig_open(&r, c, &watched, &err), "%s", err.text);
	if (culprit) {
		pthread_mutex_lock(&gate.lock);
		gate.frozen = true;
		while (!gate.caught)
			pthread_cond_wait(&gate.cond, &gate.lock);
		pthread_mutex_unlock(&gate.lock);
	}
	give_all(&r);
	if (culprit) {
		gate_wait(&gate, c->ranks - 1);
		EXPECT(gf_engine_wait(r.engine, &err) == -ETIMEDOUT, "told by the others");
	} else {
		expect_blame(c, &r,
			     "step 1, message 0 (tensor 0, t0, 240 bytes): no progress for 5 s: ",
			     "rank 2 does not answer (stopped, dead or cut off)");
		gate_pass(&gate);
	}
	rig_close(&r);
}

static void late(struct gf_comm *c, void *ctx)
{
	struct rig r = {0};
	struct gf_error err = {""};
	size_t i;

	(void)ctx;
	EXPECT(!rig_open(&r, c, &watched, &err), "%s", err.text);
	if (c->rank == 1) {
		rig_begin(&r);
		gf_engine_ready_all(r.engine, &(size_t){0}, 1);
		gf_engine_ready_all(r.engine, &(size_t){1}, 1);
		gf_engine_ready_all(r.engine, &(size_t){3}, 1);
		gate_wait(&gate, c->ranks - 1);
		for (i = 0; i < TENSORS; i++)
			gf_engine_ready_all(r.engine, &(size_t){i}, 1);
		gf_engine_backward_end(r.engine);
		EXPECT(gf_engine_wait(r.engine, &err) == -ETIMEDOUT, "told by the others");
	} else {
		give_all(&r);
		expect_blame(c, &r,
			     "step 1, message 2 (tensor 2, t2, 32 bytes): no progress for 5 s: ",
			     "rank 1 has not made its gradients of message 2 yet");
		gate_pass(&gate);
	}
	rig_close(&r);
}

/* A caller that waits for an older step is told of a failure, too. */
static void ahead(struct gf_comm *c, void *ctx)
{
	static const struct setting deep = {0, 1, "ring", false, TIMEOUT_S, 2};
	struct rig r = {0};
	struct gf_error err = {""};
	int rc;

	(void)ctx;
	EXPECT(!rig_open(&r, c, &deep, &err), "%s", err.text);
	give_all(&r);
	rig_begin(&r);
	gf_engine_backward_end(r.engine);
	EXPECT(!gf_engine_wait(r.engine, &err), "%s", err.text);
	EXPECT(!gf_engine_wait(r.engine, &err), "%s", err.text);
	if (c->rank == 0) {
		gate_wait(&gate, c->ranks - 1);
		rig_close(&r);
		return;
	}
	give_all(&r);
	rig_begin(&r);
	rc = gf_engine_wait(r.engine, &err);
	EXPECT(rc == -ETIMEDOUT && strstr(err.text, "rank 0 is still in step"), "rank %d: %d, %s",
	       c->rank, rc, err.text);
	EXPECT(gf_engine_wait(r.engine, &err) == rc, "again");
	gate_pass(&gate);
	rig_close(&r);
}

/* One message of all tensors; rank 0 does not come to the second step. */
static void behind(struct gf_comm *c, void *ctx)
{
	static const struct setting single = {1 << 20, 1, "ring", false, TIMEOUT_S};
	struct rig r = {0};
	struct gf_error err = {""};

	(void)ctx;
	EXPECT(!rig_open(&r, c, &single, &err), "%s", err.text);
	give_all(&r);
	EXPECT(!gf_engine_wait(r.engine, &err), "%s", err.text);
	if (c->rank == 0) {
		gate_wait(&gate, c->ranks - 1);
	} else {
		give_all(&r);
		expect_blame(c, &r,
			     "step 2, message 0 (tensors 0 to 5, t0 to t5, 19476 bytes): no "
			     "progress for 5 s: ",
			     "rank 0 is still in step 1");
		gate_pass(&gate);
	}
	rig_close(&r);
}

static void absent(struct gf_comm *c, void *ctx)
{
	struct rig r = {0};
	struct gf_error err = {""};
	int rc;

	(void)ctx;
	EXPECT(!rig_open(&r, c, &watched, &err), "%s", err.text);
	if (c->rank == 1) {
		gate_wait(&gate, c->ranks - 1);
	} else {
		rc = gf_engine_barrier(r.engine, &err);
		EXPECT(rc == -ETIMEDOUT, "%d", rc);
		EXPECT(strstr(err.text, "rank 1 has not come to it, it is in step 0"), "%s",
		       err.text);
		gate_pass(&gate);
	}
	rig_close(&r);
}

/* One rank's own failure becomes everybody's, without waiting. */
static void infectious(struct gf_comm *c, void *ctx)
{
	static const struct setting patient = {0, 1, "ring", false, 0};
	const char *text = "step 1, message 0 (tensor 0, t0, 240 bytes): cable pulled";
	struct rig r = {0};
	struct gf_error err = {""};
	const struct gf_comm_ops *whole = c->ops;
	struct gf_comm_ops cut = *whole;

	(void)ctx;
	if (c->rank == 1) {
		cut.isend = broken_isend;
		c->ops = &cut;
	}
	EXPECT(!rig_open(&r, c, &patient, &err), "%s", err.text);
	expect_missing(c, &r, -1);
	give_all(&r);
	EXPECT(gf_engine_wait(r.engine, &err) == -EIO, "%s", err.text);
	if (c->rank == 1)
		EXPECT_TEXT(err.text, text);
	expect_missing(c, &r, -1);
	rig_close(&r);
	c->ops = whole;
}

static void (*const cases[])(struct gf_comm *, void *) = {
	stopped, late, ahead, behind, absent,
};

/* --- refusals --------------------------------------------------------------
 */

static void set_text(char **at, const char *text)
{
	free(*at);
	*at = gf_xstrdup(text);
}

static void spoil(struct gf_plan *p, int how)
{
	switch (how) {
	case 0:
		p->messages[1].half = GF_HALF_SPLIT;
		set_text(&p->messages[1].algorithm, "butterfly");
		break;
	case 1:
		set_text(&p->messages[2].algorithm, "library");
		set_text(&p->messages[2].codec, "q8");
		break;
	case 2:
		set_text(&p->messages[2].codec, "morse");
		break;
	case 3:
		p->servers = 1;
		break;
	case 4:
		set_text(&p->messages[0].algorithm, "carrier-pigeon");
		break;
	case 5:
		p->model->tensors[3].dtype = GF_F16;
		break;
	case 6:
		p->ranks = 4;
		break;
	case 7:
		p->model->tensors[3].count_elems = 2;
		break;
	case 8:
		p->messages[0].last = 9;
		break;
	}
}

static void refusals(struct gf_comm *c, void *ctx)
{
	static const struct {
		int rc;
		const char *text;
	} want[] = {
		{-ENOTSUP, "message 1: algorithm \"butterfly\" has no halves for \"split\""},
		{-ENOTSUP, "message 2: algorithm \"library\" adds numbers, and what codec \"q8\" "
			   "sends are none"},
		{-ENOTSUP, "message 2: this build has no codec \"morse\""},
		{-EINVAL, "the plan: /messages/0/algorithm: want \"ps\" in a plan with a server, "
			  "got \"ring\""},
		{-ENOTSUP, "message 0: this build has no algorithm \"carrier-pigeon\""},
		{-ENOTSUP, "tensor 3: this build runs f32 gradients, got f16"},
		{-EINVAL, "the plan is for 4 ranks, this job has 1"},
		{-EINVAL, "tensor 3: the plan has 2 elements, the gradient pool has 1"},
		{-EINVAL, "the plan: /messages/0/last: want an integer from 0 to 5, got 9"},
	};
	struct gf_error err;
	size_t i;

	(void)ctx;
	for (i = 0; i < GF_ARRAY_LENGTH(want); i++) {
		struct rig r = {0};
		struct gf_engine_config config = {c, &r.plan, &r.pool, 0, 0};

		plan_of(&r.plan, counts, TENSORS, 1, 0, 1, "ring");
		EXPECT(!gf_pool_init(&r.pool, c, counts, TENSORS, &err), "%s", err.text);
		spoil(&r.plan, (int)i);
		EXPECT(gf_engine_new(&config, &r.engine, &err) == want[i].rc, "case %zu", i);
		EXPECT_TEXT(err.text, want[i].text);
		EXPECT(!r.engine, "untouched");
		rig_close(&r);
	}
}

/* Rank 1 has something else: both values, the same words everywhere. */
static void different(struct gf_comm *c, void *ctx)
{
	int what = *(int *)ctx;
	size_t own[TENSORS];
	struct rig r = {0};
	struct gf_engine_config config = {c, &r.plan, &r.pool, TEST_PATIENCE_S, 0};
	struct gf_error err = {""};
	char words[sizeof(err.text) * 2];

	memcpy(own, counts, sizeof(own));
	if (what == 0 && c->rank == 1)
		own[1]++;
	plan_of(&r.plan, own, TENSORS, 2, 0, 1, "ring");
	if (what == 1 && c->rank == 1)
		r.plan.lanes = 2;
	if (what == 2 && c->rank == 1)
		spoil(&r.plan, 1);
	EXPECT(!gf_pool_init(&r.pool, c, own, TENSORS, &err), "%s", err.text);
	EXPECT(gf_engine_new(&config, &r.engine, &err) == (what == 2 ? -ENOTSUP : -EINVAL),
	       "case %d: %s", what, err.text);
	if (what == 0)
		EXPECT(strstr(err.text,
			      "gradients: rank 0 has 6 tensors of 4869 elements in all, sha256:") &&
			       strstr(err.text,
				      "rank 1 has 6 tensors of 4870 elements in all, sha256:"),
		       "%s", err.text);
	if (what == 1)
		EXPECT(!strncmp(err.text, "plan: rank 0 has sha256:", 24), "%s", err.text);
	if (what == 2)
		EXPECT_TEXT(err.text, "rank 1: message 2: algorithm \"library\" adds numbers, and "
				      "what codec \"q8\" sends are none");
	EXPECT(!gf_comm_allgather(c, err.text, sizeof(err.text), words, &err), "%s", err.text);
	EXPECT_TEXT(words, words + sizeof(err.text));
	rig_close(&r);
}

int main(void)
{
	struct gf_comm *comm;
	struct gf_error err;
	size_t i;
	int what;

	watchdog(200);
	if (gf_comm_local_new(1, &comm, &err))
		return 1;
	faulty = *comm->ops;
	real_isend = faulty.isend;
	real_probe = faulty.probe;
	faulty.probe = frozen_probe;
	gf_comm_close(comm);

	on_ranks(1, refusals, NULL);
	for (what = 0; what < 3; what++)
		on_ranks(2, different, &what);
	on_ranks(3, infectious, NULL);
	for (i = 0; i < GF_ARRAY_LENGTH(cases); i++) {
		gate.passed = 0;
		gate.frozen = gate.caught = false;
		on_ranks(4, cases[i], NULL);
	}
	return TEST_END();
}
