/* SPDX-License-Identifier: BSD-3-Clause */
/* Calls of an exchange: what is refused, and what it holds back. */
#include "caller.h"
#include "selections.h"
#include "test.h"

#include <errno.h>
#include <inttypes.h>
#include <sys/wait.h>

#include "base/array.h"
#include "base/clock.h"
#include "libgradflow/handle.h"
#include "runtime/engine/engine.h"

static const enum gf_dtype f32[CALLER_TENSORS] = {GF_F32, GF_F32, GF_F32, GF_F32, GF_F32};

/* A plan with the selection of that object. */
static const char *plan_with(const char *object)
{
	return entry_keep(gf_xasprintf(
		RULE("4096", "1", "ring", "f32", "\"selection\": %s, " SYNCHRONOUS), object));
}

/* Of every selection. */
static const char *plans[64], *gathered;
static bool holds[64], bare[64]; /* ... back what it does not send */
static size_t nplans;

static void add_plan(const struct gf_select_plan *plan, struct entry_facts *f, void *ctx)
{
	(void)f;
	(void)ctx;
	holds[nplans] = !(plan->traits & GF_SELECT_LOSSLESS) && !(plan->traits & GF_SELECT_BARE);
	bare[nplans] = plan->traits & GF_SELECT_BARE;
	plans[nplans++] = plan_with(test_object_of(plan, "caller"));
}

static void refused(int rc, int want, const char *text)
{
	EXPECT(rc == want && strstr(gradflow_error(), text), "want %d and \"%s\", got %d: %s", want,
	       text, rc, gradflow_error());
}

static bool opened(struct caller *c, struct gf_comm *comm, const char *plan)
{
	struct gf_error err = {""};
	int rc = caller_open(c, comm, plan, f32, FLAT, &err);

	EXPECT(!rc, "%s", err.text);
	return !rc;
}

static void fill(struct caller *c, int rank, size_t step)
{
	uint32_t state = 1 + (uint32_t)rank * 7919 + (uint32_t)step * 104729;
	float *to = c->memory;
	size_t i;

	for (i = 0; i < CALLER_ELEMS; i++) {
		state = state * 1664525 + 1013904223;
		to[i] = (float)(int32_t)state * 0x1p-31f;
	}
}

static void step(struct caller *c)
{
	size_t i;

	for (i = 0; i < CALLER_TENSORS; i++)
		EXPECT(caller_post(c, i) == 0, "%s", gradflow_error());
	EXPECT(gradflow_exchange_wait(c->x, GRADFLOW_ALL) == 0, "%s", gradflow_error());
}

/* --- order ---------------------------------------------------------------- */

/* One that is as the tensor was opened but for what is given. */
static int post_as(struct caller *c, size_t i, void *data, size_t count, int dtype)
{
	struct gradflow_gradient g = caller_gradient(c, i);

	g.data = data;
	g.count = count;
	g.dtype = (enum gradflow_dtype)dtype;
	return gradflow_exchange_post(c->x, &g, 1);
}

/* If one of several is refused, none is posted, and no step begins. */
static void several(struct caller *c)
{
	struct gradflow_gradient g[] = {caller_gradient(c, 1), caller_gradient(c, 3),
					caller_gradient(c, 1)};

	EXPECT(gradflow_exchange_post(c->x, NULL, 0) == 0, "%s", gradflow_error());
	refused(gradflow_exchange_post(NULL, g, 3), -EINVAL,
		"gradflow_exchange_post: want an open handle");
	refused(gradflow_exchange_post(c->x, NULL, 3), -EINVAL,
		"gradflow_exchange_post: want 3 gradients, got NULL");
	refused(gradflow_exchange_post(c->x, g, 3), -EINVAL,
		"tensor 1 (d): want it once in step 1");
	g[1].data = NULL;
	refused(gradflow_exchange_post(c->x, g, 2), -EINVAL,
		"tensor 3 (b): want memory at a multiple");
	g[1].tensor = CALLER_TENSORS;
	refused(gradflow_exchange_post(c->x, g, 2), -EINVAL, "want a tensor below 5, got 5");
	EXPECT(gradflow_exchange_drop(c->x) == 0, "a step has begun: %s", gradflow_error());
}

static void order(struct caller_rank *r)
{
	struct caller c;
	size_t i;

	if (!opened(&c, r->comm[0], r->c))
		return;
	refused(post_as(&c, 1, c.data[1] + 2, 1200, GRADFLOW_F32), -EINVAL,
		"gradflow_exchange_post: tensor 1 (d): want memory at a multiple of 4");
	refused(post_as(&c, 1, c.data[1], 1199, GRADFLOW_F32), -EINVAL,
		"tensor 1 (d): want 1200 elements of f32, as it was opened, got 1199 of f32");
	refused(post_as(&c, 1, c.data[1], 1200, GRADFLOW_F64), -EINVAL, "got 1200 of f64");
	refused(post_as(&c, 1, c.data[1], 1200, 7), -EINVAL, "got 1200 of no known type");
	several(&c);
	refused(gradflow_exchange_state(c.x, 0, NULL), -EINVAL,
		"gradflow_exchange_state: want a place for the array, got "
		"NULL");
	refused(gradflow_exchange_missing(c.x, NULL, 2), -EINVAL,
		"gradflow_exchange_missing: want a place for 2 ranks, got "
		"NULL");
	EXPECT(gradflow_exchange_wait(c.x, GRADFLOW_ALL) == 0, "no step, no wait");
	EXPECT(gradflow_exchange_test(c.x, 0) == 0, "nothing has come yet");
	fill(&c, r->rank, 1);
	for (i = 0; i < CALLER_TENSORS; i += 2)
		EXPECT(caller_post(&c, i) == 0, "%s", gradflow_error());
	refused(caller_post(&c, 2), -EINVAL, "tensor 2 (c): want it once in step 1, got it again");
	refused(gradflow_exchange_wait(c.x, 4), -EINVAL,
		"gradflow_exchange_wait, step 1: tensor 1 (d) has not been posted");
	refused(gradflow_exchange_wait(c.x, GRADFLOW_ALL), -EINVAL,
		"tensor 1 (d) has not been posted: post it, or call gradflow_exchange_flush");
	refused(gradflow_exchange_drop(c.x), -EINVAL,
		"gradflow_exchange_drop: want it between steps, got it within step 1");
	refused(gradflow_exchange_save(c.x, "/nonexistent"), -EINVAL,
		"gradflow_exchange_save: want it between steps");
	refused(gradflow_exchange_on_done(c.x, NULL, NULL), -EINVAL,
		"gradflow_exchange_on_done: want it between steps");
	EXPECT(gradflow_exchange_flush(c.x) == 0, "%s", gradflow_error());
	refused(caller_post(&c, 1), -EINVAL,
		"tensor 1 (d): step 1 is complete: call gradflow_exchange_wait");
	EXPECT(gradflow_exchange_wait(c.x, 4) == 0, "%s", gradflow_error());
	EXPECT(gradflow_exchange_wait(c.x, GRADFLOW_ALL) == 0, "%s", gradflow_error());
	refused(gradflow_exchange_rescale(c.x, NAN), -EINVAL, "want a finite factor");
	refused(gradflow_exchange_wait(c.x, 7), -EINVAL, "want a tensor below 5");
	refused(gradflow_exchange_test(c.x, 7), -EINVAL, "want a tensor below 5");
	/* all of it in order, still */
	fill(&c, r->rank, 2);
	step(&c);
	EXPECT(gradflow_exchange_steps(c.x) == 2, "steps");
	/* a step that is left is one of zeros to the others */
	fill(&c, r->rank, 3);
	EXPECT(caller_post(&c, 1) == 0, "%s", gradflow_error());
	caller_close(&c);
}

/* --- other threads, children, callbacks ----------------------------------- */

struct busy {
	struct caller c;
	pthread_t thread;
	_Atomic bool inside, go;
	_Atomic int told, failed_within;
};

/* Holds up the library's thread until the others have tried. */
static void hold(void *ctx, size_t tensor, int status)
{
	struct busy *b = ctx;

	EXPECT(status == 0 && tensor < CALLER_TENSORS, "tensor %zu: %d", tensor, status);
	refused(gradflow_exchange_wait(b->c.x, GRADFLOW_ALL), -EBUSY,
		"gradflow_exchange_wait: called by a callback of gradflow_exchange_on_done");
	EXPECT(gradflow_exchange_test(b->c.x, tensor) == 1, "tensor %zu", tensor);
	atomic_store(&b->inside, true);
	while (!atomic_load(&b->go))
		gf_clock_sleep(1e-3);
	atomic_fetch_add(&b->told, 1);
}

static void *waiter(void *arg)
{
	struct busy *b = arg;
	int rc;

	do
		rc = gradflow_exchange_wait(b->c.x, GRADFLOW_ALL);
	while (rc == -EBUSY);
	EXPECT(rc == 0, "%s", gradflow_error());
	return NULL;
}

static void busy(struct caller_rank *r)
{
	struct busy b = {.inside = false};
	size_t i;
	int rc;

	if (!opened(&b.c, r->comm[0], r->c))
		return;
	EXPECT(gradflow_exchange_on_done(b.c.x, hold, &b) == 0, "%s", gradflow_error());
	fill(&b.c, r->rank, 1);
	for (i = 0; i < CALLER_TENSORS; i++)
		EXPECT(caller_post(&b.c, i) == 0, "%s", gradflow_error());
	if (pthread_create(&b.thread, NULL, waiter, &b))
		abort();
	while (!atomic_load(&b.inside))
		gf_clock_sleep(1e-3);
	do /* until the other thread is in its call */
		rc = gradflow_exchange_flush(b.c.x);
	while (rc == 0);
	refused(rc, -EBUSY, "gradflow_exchange_flush: another thread is in gradflow_exchange_wait");
	atomic_store(&b.go, true);
	pthread_join(b.thread, NULL);
	EXPECT(b.told == CALLER_TENSORS, "%d tensors", (int)b.told);
	caller_close(&b.c);
}

/* A child has no exchange, but knows what its parent's had done, and is never in wait: the lock is
 * held here while the child is made, by a thread that the child has not. */
static void forked(struct caller_rank *r)
{
	pthread_mutex_t *lock;
	uint64_t sent, copied;
	struct caller c;
	int status = 0;
	pid_t child;

	if (!opened(&c, r->comm[0], r->c))
		return;
	step(&c);
	sent = gradflow_exchange_sent_bytes(c.x);
	copied = gradflow_exchange_copied_bytes(c.x);
	EXPECT(sent && copied, "%" PRIu64 " bytes sent, %" PRIu64 " copied", sent, copied);
	lock = &gf_exchange_engine(c.x->exchange)->thread.lock;
	pthread_mutex_lock(lock);
	child = fork();
	if (child == 0) {
		int rc, test;

		alarm(20);
		rc = caller_post(&c, 0);
		test = gradflow_exchange_test(c.x, 0);
		if (gradflow_exchange_sent_bytes(c.x) != sent ||
		    gradflow_exchange_copied_bytes(c.x) != copied)
			_exit(2);
		gradflow_exchange_close(c.x);
		_exit(rc == -EINVAL && test == -EINVAL ? 0 : 1);
	}
	pthread_mutex_unlock(lock);
	EXPECT(child > 0 && waitpid(child, &status, 0) == child && !status,
	       "the child's status is %d", status);
	step(&c);
	caller_close(&c);
}

/* --- what is held back ---------------------------------------------------- */

/* The first step's residual, that of drop, rescale and a set. */
static void held(struct caller_rank *r)
{
	static float first[8][CALLER_ELEMS], second[8][CALLER_ELEMS];
	const size_t bytes = CALLER_ELEMS * sizeof(float);
	struct gradflow_array a;
	double sum = 0, after = 0;
	struct caller c;
	size_t i, k;

	if (!opened(&c, r->comm[0], r->c))
		return;
	for (i = 1; i <= 4; i++) {
		fill(&c, r->rank, i);
		step(&c);
		if (i == 1)
			memcpy(first[r->rank], c.memory, bytes);
	}
	for (i = 0; gradflow_exchange_state(c.x, i, &a) == 0; i++)
		for (k = 0; !a.shared && k < a.size_bytes / sizeof(float); k++)
			sum += fabs(((float *)a.data)[k]);
	refused(gradflow_exchange_state(c.x, i, &a), -ENOENT,
		"gradflow_exchange_state: want an array below");
	EXPECT(sum > 0 || !i, "%s: nothing is held back", (const char *)r->c);
	EXPECT(gradflow_exchange_rescale(c.x, 0.5) == 0, "%s", gradflow_error());
	for (i = 0; gradflow_exchange_state(c.x, i, &a) == 0; i++)
		for (k = 0; !a.shared && k < a.size_bytes / sizeof(float); k++)
			after += fabs(((float *)a.data)[k]);
	EXPECT_NEAR(after, sum / 2, 1e-6, "%s", (const char *)r->c);
	EXPECT(gradflow_exchange_drop(c.x) == 0, "%s", gradflow_error());
	for (i = 0; gradflow_exchange_state(c.x, i, &a) == 0; i++)
		for (k = 0; !a.shared && k < a.size_bytes / sizeof(float); k++)
			EXPECT(((float *)a.data)[k] == 0, "%s", a.name);
	/* as in the beginning: what all ranks have in common may go on */
	fill(&c, r->rank, 1);
	step(&c);
	memcpy(second[r->rank], c.memory, bytes);
	if (r->c == gathered)
		EXPECT(!memcmp(first[r->rank], second[r->rank], bytes), "%s: another step",
		       (const char *)r->c);
	caller_close(&c);
}

/* Without what is held, a step has nothing of those before. */
static void begun_again(struct caller_rank *r)
{
	static const char densities[] = "\"warmup_densities\": [";
	float first[CALLER_ELEMS];
	GF_FREED char *plan = gf_xstrdup(r->c);
	char *at = strstr(plan, densities);
	struct caller c;

	if (at) /* of one density from the first step on */
		memset(at + strlen(densities), ' ', strcspn(at + strlen(densities), "]"));
	if (!opened(&c, r->comm[0], plan))
		return;
	for (size_t i = 1; i <= 4; i++) {
		fill(&c, r->rank, i);
		step(&c);
		if (i == 1)
			memcpy(first, c.memory, sizeof(first));
	}
	EXPECT(gradflow_exchange_drop(c.x) == 0, "%s", gradflow_error());
	fill(&c, r->rank, 1);
	step(&c);
	for (size_t i = 0; i < CALLER_ELEMS; i++)
		EXPECT_NEAR(((float *)c.memory)[i], first[i], 1e-4, "%.300s", plan);
	caller_close(&c);
}

/* A copy of the state, as a caller's checkpoint has it. */
static void copy_state(struct gradflow_exchange *x, char *to, bool back)
{
	struct gradflow_array a;
	size_t i;

	for (i = 0; gradflow_exchange_state(x, i, &a) == 0; i++) {
		memcpy(back ? a.data : to, back ? to : a.data, a.size_bytes);
		to += a.size_bytes;
	}
}

/* Steps go on from a copy of the state as they went on without. */
static void resumed(struct caller_rank *r)
{
	enum { STATE = 64 * CALLER_ELEMS };
	float want[CALLER_ELEMS];
	char *state = gf_xcalloc(STATE, 1);
	struct caller c;
	size_t s;
	int pass;

	if (!opened(&c, r->comm[0], r->c))
		return;
	for (pass = 0; pass < 2; pass++) {
		for (s = pass ? 4 : 1; s <= 6; s++) {
			fill(&c, r->rank, s);
			step(&c);
			if (s == 3)
				copy_state(c.x, state, false);
		}
		if (pass)
			break;
		memcpy(want, c.memory, sizeof(want));
		copy_state(c.x, state, true);
		EXPECT(gradflow_exchange_restored(c.x, 3) == 0, "%s", gradflow_error());
		EXPECT(gradflow_exchange_steps(c.x) == 3, "steps");
	}
	EXPECT(!memcmp(want, c.memory, sizeof(want)), "%s, rank %d of %d: another step 6",
	       (const char *)r->c, r->rank, r->ranks);
	caller_close(&c);
	free(state);
}

/* A gradient that is not finite: all ranks get nothing finite where it was, and the state of
 * selections is as it was before. */
static void poisoned(struct caller_rank *r)
{
	struct caller c;
	struct gradflow_array a;
	double before = 0, after = 0;
	size_t i, k;

	if (!opened(&c, r->comm[0], r->c))
		return;
	fill(&c, r->rank, 1);
	step(&c);
	for (i = 0; gradflow_exchange_state(c.x, i, &a) == 0; i++)
		for (k = 0; !a.shared && k < a.size_bytes / sizeof(float); k++)
			before += ((float *)a.data)[k];
	fill(&c, r->rank, 2);
	if (r->rank == 0)
		((float *)c.data[1])[5] = INFINITY;
	step(&c);
	EXPECT(!isfinite(((float *)c.data[1])[5]), "%s: %g", (const char *)r->c,
	       ((float *)c.data[1])[5]);
	for (i = 0; gradflow_exchange_state(c.x, i, &a) == 0; i++)
		for (k = 0; !a.shared && k < a.size_bytes / sizeof(float); k++)
			after += ((float *)a.data)[k];
	EXPECT(before == after, "%s: %g is now %g", (const char *)r->c, before, after);
	fill(&c, r->rank, 3);
	step(&c);
	EXPECT(isfinite(((float *)c.data[1])[5]), "%s: %g", (const char *)r->c,
	       ((float *)c.data[1])[5]);
	caller_close(&c);
}

/* --- options -------------------------------------------------------------- */

static int open_with(struct gf_comm *comm, struct gradflow_exchange_options *o,
		     struct gradflow_exchange **x)
{
	o->size = sizeof(*o);
	o->former = o->former ? o->former : -1;
	return gf_embed_exchange_open(comm, caller_tensors, CALLER_TENSORS, o, NULL, x,
				      gf_embed_error());
}

static const struct {
	struct gradflow_exchange_options o;
	int rc;
	const char *text;
} bad[] = {
	{{.plan = "a", .plan_text = "b"}, -EINVAL, "want one of plan"},
	{{.timeout_s = -1}, -EINVAL, "timeout_s: want 0 or more"},
	{{.momentum = 1}, -EINVAL, "momentum: want 0 or more, below 1"},
	{{.nmessages = 3}, -EINVAL, "want messages and nmessages"},
	{{.messages = (size_t[]){2, 2}, .nmessages = 2},
	 -EINVAL,
	 "messages: want 5 tensors in all, got 4"},
	{{.messages = (size_t[]){2, 4}, .nmessages = 2},
	 -EINVAL,
	 "message 1: want 1 to 3 tensors, got 4"},
	{{.messages = (size_t[]){0, 5}, .nmessages = 2},
	 -EINVAL,
	 "message 0: want 1 to 5 tensors, got 0"},
	{{.dtypes = (enum gradflow_dtype[]){0, 0, 9, 0, 0}},
	 -EINVAL,
	 "dtypes: tensor 2: want GRADFLOW_F32"},
	{{.plan_text = "{}"}, -EINVAL, "plan_text"},
	{{.plan = ""}, -EINVAL, "plan: want a file's name, or NULL for none, got \"\""},
	{{.plan_text = ""}, -EINVAL, "plan_text: want a gf-plan document, or NULL"},
	{{.ways = ""}, -EINVAL, "ways: want what gradflow_exchange_ways gave"},
	{{.former = -2}, -EINVAL, "former: want a rank, or -1 for a new one, got -2"},
	{{.plan_text = RULE("1", "1", "ring", "f32",
			    "\"selection\": {\"method\": \"dense\"}, \"pipeline\": {\"staleness\": "
			    "2, \"warmup_steps\": 0}")},
	 -ENOTSUP,
	 "staleness 2: an exchange gives back the means of the step itself"},
};

static void options(struct caller_rank *r)
{
	const size_t i = *(const size_t *)r->c;
	struct gradflow_exchange_options o = bad[i].o;
	struct gradflow_exchange *x;

	refused(open_with(r->comm[0], &o, &x), bad[i].rc, bad[i].text);
	EXPECT(!x, "case %zu", i);
}

/* Flat tensors have no shapes. */
static void shapeless(struct caller_rank *r)
{
	struct gradflow_exchange_options o = {.flat = 1, .plan_text = r->c};
	struct gradflow_exchange *x;

	refused(open_with(r->comm[0], &o, &x), -ENOTSUP, ": it works on the shapes of tensors");
	EXPECT(!x, "flat");
}

/* Both ranks differ in one thing. */
static void apart(struct caller_rank *r)
{
	struct gradflow_exchange_options o = {.size = 0};
	static const enum gradflow_dtype half[CALLER_TENSORS] = {GRADFLOW_F16};
	static const size_t cuts[2][2] = {{1, 4}, {4, 1}};
	struct gradflow_exchange *x;
	const char *what = r->c;

	if (r->rank == 1 && !strcmp(what, "momentum"))
		o.momentum = 0.5;
	if (r->rank == 1 && !strcmp(what, "dtypes"))
		o.dtypes = half;
	if (r->rank == 1 && !strcmp(what, "plan_text"))
		o.plan_text = gathered;
	if (!strcmp(what, "messages: rank 0 has 1 4, rank 1 has 4 1")) {
		o.messages = cuts[r->rank];
		o.nmessages = 2;
	}
	refused(open_with(r->comm[0], &o, &x), -EINVAL, what);
}

/* Rank 1 never opens: rank 0 waits for it as long as it was asked to. */
static void deserted(struct caller_rank *r)
{
	struct gradflow_exchange_options o = {.join_s = 0.3};
	struct gf_error err = {""};
	struct gradflow_exchange *x;

	if (r->rank == 0) {
		EXPECT(open_with(r->comm[0], &o, &x) == -ETIMEDOUT && !x, "%s", gradflow_error());
		EXPECT(strstr(gradflow_error(), "for all ranks"), "%s", gradflow_error());
	}
	/* what it would open with stays until then */
	EXPECT(!gf_comm_barrier(r->comm[1], &err), "%s", err.text);
	if (r->rank == 1)
		gf_comm_close(r->comm[0]);
}

/* A message per tensor and the caller's own cut. */
static void cut(struct caller_rank *r)
{
	const size_t lengths[] = {1, 3, 1};
	struct gradflow_exchange_options o = {.messages = lengths, .nmessages = 3};
	struct caller c = {.x = NULL};
	size_t i;

	EXPECT(open_with(r->comm[0], &o, &c.x) == 0, "%s", gradflow_error());
	if (!c.x)
		return;
	for (i = 0; i < CALLER_TENSORS; i++) {
		c.dtypes[i] = GF_F32;
		EXPECT(gradflow_exchange_message(c.x, i) == (i == 0  ? 0
							     : i < 4 ? 1
								     : 2),
		       "tensor %zu", i);
	}
	EXPECT(gradflow_exchange_messages(c.x) == 3, "messages");
	EXPECT(gradflow_exchange_message(c.x, 9) == SIZE_MAX, "no tensor");
	EXPECT_TEXT(gradflow_exchange_ways(c.x), "ring;ring;ring");
	caller_lay_out(&c, REVERSED);
	fill(&c, r->rank, 1);
	step(&c);
	EXPECT(gradflow_exchange_sent_bytes(c.x) > 0, "bytes");
	EXPECT(gradflow_exchange_rank(c.x) == r->rank && gradflow_exchange_ranks(c.x) == r->ranks &&
		       gradflow_exchange_local_rank(c.x) >= 0,
	       "ranks");
	caller_close(&c);
}

/* An exchange answers calls also after a load that failed half way: other ranks are lost, and the
 * exchange cannot be started again. */
static void stopped(struct caller_rank *r)
{
	struct gf_error why = {"rank 1: lost"};
	struct caller c;

	if (!opened(&c, r->comm[0], r->c))
		return;
	gf_embed_stop(c.x);
	(void)gf_embed_keep(c.x, -ECONNRESET, &why);
	refused(gradflow_exchange_test(c.x, 0), -ECONNRESET, "lost");
	refused(gradflow_exchange_test(c.x, GRADFLOW_ALL), -ECONNRESET, "lost");
	refused(caller_post(&c, 0), -ECONNRESET, "lost");
	refused(gradflow_exchange_missing(c.x, NULL, 0), -ENODATA, "not known");
	EXPECT(gradflow_exchange_message(c.x, 0) == SIZE_MAX, "a message");
	EXPECT(gradflow_exchange_sent_bytes(c.x) == 0, "bytes");
	caller_close(&c);
}

int main(void)
{
	static const char *const parts[] = {"momentum", "dtypes", "plan_text",
					    "messages: rank 0 has 1 4, rank 1 has 4 1"};
	size_t i;

	watchdog(60);
	gathered = plan_with(test_object("gathered: small"));
	test_each_selection(add_plan, NULL);
	for (i = 0; i < nplans; i++) {
		on_callers(3, order, plans[i]);
		on_callers(1, order, plans[i]);
		on_callers(2, busy, plans[i]);
		on_callers(2, resumed, plans[i]);
		on_callers(2, poisoned, plans[i]);
	}
	for (i = 0; i < nplans; i++)
		if (holds[i])
			on_callers(2, held, plans[i]);
		else if (bare[i])
			on_callers(2, begun_again, plans[i]);
	on_callers(2, held, gathered);
	on_callers(2, forked, gathered);
	on_callers(2, stopped, plan_with(test_object("plain")));
	on_callers(2, shapeless, plan_with(test_object("shapes: caller")));
	for (i = 0; i < GF_ARRAY_LENGTH(bad); i++)
		on_callers(2, options, &i);
	for (i = 0; i < GF_ARRAY_LENGTH(parts); i++)
		on_callers(2, apart, parts[i]);
	on_callers(2, cut, NULL);
	on_callers(2, deserted, NULL);
	return TEST_END();
}
