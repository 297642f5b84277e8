/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>

#include "base/clock.h"
#include "base/heap.h"
#include "transport/backoff.h"
#include "transport/watch.h"
#include "transport/transport.h"
#include "ranks.h"
#include "transport.h"

static void all_checks(struct gf_comm *c, void *ctx)
{
	(void)ctx;
	check_transport(c);
	check_mismatch(c, 100000, 50000);
	check_mismatch(c, 50000, 100000);
}

static int give_up(void *ctx, struct gf_error *err)
{
	int *calls = ctx;

	return ++*calls < 3 ? 0 : gf_error_set(err, -ETIMEDOUT, "enough");
}

/* Rank 0 never comes: the others' hooks, not the clock, end the barrier. */
static void desert(struct gf_comm *c, void *ctx)
{
	struct gf_comm_request *receive;
	struct gf_error err = {""};
	int calls = 0, rc, unused;

	(void)ctx;
	if (c->rank == 0)
		return;
	c->on_wait = give_up;
	c->on_wait_ctx = &calls;
	EXPECT(!c->ops->irecv(c, 0, 1, &unused, sizeof(unused), &receive, &err), "%s", err.text);
	EXPECT(gf_comm_wait(c, receive, &err) == -ETIMEDOUT, "%s", err.text);
	rc = gf_comm_barrier(c, &err);
	EXPECT(rc == -ETIMEDOUT && c->broken, "%d, %s", rc, err.text);
	EXPECT_TEXT(err.text, "enough");
}

static void test_backoff(void)
{
	struct gf_backoff kinds[] = {
		{0},
		{.crowded = true},
		{.beside_compute = true},
		{.beside_compute = true, .crowded = true},
	};
	int awake[4] = {0};
	double last, next;
	size_t k;
	int i;

	for (k = 0; k < 4; k++) {
		for (i = 0, last = next = 0; i < 1000; i++) {
			next = gf_backoff_next(&kinds[k]);
			awake[k] += next == 0;
			EXPECT(next >= last, "call %d: %g after %g", i, next, last);
			last = next;
		}
		EXPECT(next == 1e-4, "the cap: %g", next);
		gf_backoff_reset(&kinds[k]);
		EXPECT(gf_backoff_next(&kinds[k]) == 0, "spins or yields first");
	}
	EXPECT(awake[0] > awake[1] && awake[1] > 0 && awake[0] > awake[2] && awake[2] > 0 &&
		       awake[3] > 0,
	       "%d, %d, %d, %d", awake[0], awake[1], awake[2], awake[3]);
	/* in a crowd beside compute it spins for a time, however long a round
	 */
	gf_backoff_reset(&kinds[3]);
	next = gf_backoff_next(&kinds[3]);
	gf_clock_sleep(1e-5);
	EXPECT(next == 0 && gf_backoff_next(&kinds[3]) == 5e-5, "%g", next);
}

/* Every entry connects something, in one way. */
static void test_registry(void)
{
	size_t i, k;

	for (i = 0; gf_transports[i]; i++) {
		const struct gf_transport *t = gf_transports[i];
		int ways = !!t->launched + !!t->join + !!t->over;

		EXPECT(t->description && ways == 1, "%s", t->name);
		for (k = 0; k < i; k++)
			EXPECT(strcmp(t->name, gf_transports[k]->name) != 0, "two %s", t->name);
	}
}

/* A transport that never gets rid of what it is to send. */
static struct {
	const void *data;
	char bytes[512];
	size_t size_bytes;
	int cancelled, closed;
} slow;

static int slow_isend(struct gf_comm *c, int peer, uint64_t tag, const void *data,
		      size_t size_bytes, struct gf_comm_request **request, struct gf_error *err)
{
	(void)c, (void)peer, (void)tag, (void)request, (void)err;
	slow.data = data;
	slow.size_bytes = size_bytes;
	memcpy(slow.bytes, data, size_bytes);
	return 0;
}

static bool slow_is_intact(void)
{
	return memcmp(slow.data, slow.bytes, slow.size_bytes) == 0;
}

static void slow_cancel(struct gf_comm *c, struct gf_comm_request *r)
{
	(void)c, (void)r;
	slow.cancelled++;
}

static int slow_probe(struct gf_comm *c, uint64_t tag, int *peer, struct gf_error *err)
{
	(void)c, (void)tag, (void)peer, (void)err;
	return 0;
}

static int slow_test(struct gf_comm *c, struct gf_comm_request *r, struct gf_error *err)
{
	(void)c, (void)r;
	return gf_error_set(err, -ECONNRESET, "rank 1 is gone");
}

static void slow_close(struct gf_comm *c)
{
	(void)c;
	slow.closed++;
	EXPECT(slow_is_intact(), "a note that may yet be sent");
}

/* Notes under way outlive their sender: as long as the communicator is used, and for good where it
 * is broken. */
static void test_notes(void)
{
	static const struct gf_comm_ops ops = {.isend = slow_isend,
					       .test = slow_test,
					       .cancel = slow_cancel,
					       .probe = slow_probe,
					       .close = slow_close};
	const struct gf_error why = {"why"};
	struct gf_error err = {""};
	struct gf_watch w;
	double passed_s;
	int broken;

	for (broken = 0; broken < 2; broken++) {
		struct gf_comm c = {.ops = &ops, .ranks = 2};

		gf_watch_init(&w, &c, 0);
		gf_watch_give_up(&w, -EIO, &why);
		w.looked_s = 0;
		EXPECT(gf_watch_look(&w, &passed_s, &err) == -ECONNRESET && slow_is_intact(),
		       "a note that may yet be sent");
		gf_watch_give_up(&w, -EIO, &why);
		c.broken = broken;
		gf_watch_release(&w);
		EXPECT(slow.cancelled == broken + 1 && slow_is_intact(),
		       "a note that may yet be sent");
		gf_comm_close(&c);
		EXPECT(slow.closed == broken + 1, "closed");
	}
	EXPECT(slow_is_intact(), "a broken transport still runs");
}

/* A transport that announces this rank's note as one of rank 1's, and brings it later. */
static struct {
	char bytes[512];
	size_t size_bytes;
	void *to;
	bool announced, there;
} echo;

static int echo_isend(struct gf_comm *c, int peer, uint64_t tag, const void *data,
		      size_t size_bytes, struct gf_comm_request **request, struct gf_error *err)
{
	(void)c, (void)peer, (void)tag, (void)err;
	*request = NULL;
	memcpy(echo.bytes, data, size_bytes);
	echo.size_bytes = size_bytes;
	echo.announced = true;
	return 0;
}

static int echo_probe(struct gf_comm *c, uint64_t tag, int *peer, struct gf_error *err)
{
	(void)c, (void)tag, (void)err;
	*peer = 1;
	return echo.announced;
}

static int echo_irecv(struct gf_comm *c, int peer, uint64_t tag, void *data, size_t size_bytes,
		      struct gf_comm_request **request, struct gf_error *err)
{
	(void)c, (void)peer, (void)tag, (void)size_bytes, (void)err;
	*request = (struct gf_comm_request *)&echo;
	echo.to = data;
	echo.announced = false;
	return 0;
}

static int echo_test(struct gf_comm *c, struct gf_comm_request *request, struct gf_error *err)
{
	(void)c, (void)err;
	if (!request)
		return 1;
	if (echo.there)
		memcpy(echo.to, echo.bytes, echo.size_bytes);
	return echo.there;
}

static void echo_cancel(struct gf_comm *c, struct gf_comm_request *request)
{
	(void)c;
	EXPECT(request, "a note that was sent");
}

static void echo_close(struct gf_comm *c)
{
	(void)c;
	memset(echo.to, 1, echo.size_bytes);
}

/* A note that is announced may come later, or after its receiver has gone. */
static void test_late_note(void)
{
	static const struct gf_comm_ops ops = {.isend = echo_isend,
					       .irecv = echo_irecv,
					       .test = echo_test,
					       .cancel = echo_cancel,
					       .probe = echo_probe,
					       .close = echo_close};
	const struct gf_error why = {"why"};
	struct gf_comm c = {.ops = &ops, .ranks = 2};
	struct gf_error err = {""};
	struct gf_watch w;
	double passed_s;

	gf_watch_init(&w, &c, 0);
	gf_watch_give_up(&w, -EIO, &why);
	w.self.phase = GF_PHASE_IDLE;
	w.looked_s = 0;
	EXPECT(!gf_watch_look(&w, &passed_s, &err) && !gf_liveness_pending(w.liveness),
	       "announced: %s", err.text);
	echo.there = true;
	w.looked_s = 0;
	EXPECT(gf_watch_look(&w, &passed_s, &err) == -EIO && !strcmp(err.text, "rank 1: why"),
	       "there: %s", err.text);
	echo.there = false;
	gf_watch_give_up(&w, -EIO, &why);
	w.looked_s = 0;
	EXPECT(!gf_watch_look(&w, &passed_s, &err), "%s", err.text);
	gf_watch_release(&w);
	gf_comm_close(&c);
}

/* A transport on which a message comes too late, but for a size. */
static struct {
	char *data;
	size_t size_bytes;
} late;

static int late_irecv(struct gf_comm *c, int rank, uint64_t tag, void *data, size_t size_bytes,
		      struct gf_comm_request **request, struct gf_error *err)
{
	(void)c, (void)rank, (void)tag, (void)err;
	late.data = data;
	late.size_bytes = size_bytes;
	*request = NULL;
	return 0;
}

static int late_isend(struct gf_comm *c, int rank, uint64_t tag, const void *data,
		      size_t size_bytes, struct gf_comm_request **request, struct gf_error *err)
{
	(void)c, (void)rank, (void)tag, (void)data, (void)size_bytes, (void)err;
	*request = NULL;
	return 0;
}

static int late_test(struct gf_comm *c, struct gf_comm_request *request, struct gf_error *err)
{
	const uint64_t size = 64;

	(void)c, (void)request, (void)err;
	if (late.size_bytes != sizeof(size))
		return 0;
	memcpy(late.data, &size, sizeof(size));
	return 1;
}

static void late_cancel(struct gf_comm *c, struct gf_comm_request *request)
{
	(void)c, (void)request;
}

static void late_close(struct gf_comm *c)
{
	(void)c;
	memset(late.data, 1, late.size_bytes);
}

static const struct gf_comm_ops late_ops = {.isend = late_isend,
					    .irecv = late_irecv,
					    .test = late_test,
					    .cancel = late_cancel,
					    .close = late_close};

/* The caller's memory may be gone when a call has failed: nothing is written there any more. */
static void test_late(void)
{
	static const char zeros[64];
	struct gf_error err = {""};
	char all[64] = {0};
	int gathers;

	for (gathers = 0; gathers < 2; gathers++) {
		int calls = 0;
		struct gf_comm c = {.ops = &late_ops,
				    .rank = 1,
				    .ranks = 2,
				    .on_wait = give_up,
				    .on_wait_ctx = &calls};

		EXPECT((gathers ? gf_comm_allgather(&c, zeros, 32, all, &err)
				: gf_comm_bcast(&c, 0, all, 64, &err)) == -ETIMEDOUT,
		       "%s", err.text);
		gf_comm_close(&c);
		EXPECT(late.size_bytes == (gathers ? 32 : 64) && !memcmp(all, zeros, 64),
		       "%zu bytes were written", late.size_bytes);
	}
}

/* A message whose sender has begun cannot be taken back, and comes later: into memory that nobody
 * has got since. */
static void test_late_text(void)
{
	static const char zeros[129], own[64];
	int calls = 0;
	struct gf_comm c = {
		.ops = &late_ops, .rank = 1, .ranks = 2, .on_wait = give_up, .on_wait_ctx = &calls};
	struct gf_error err = {""};
	size_t lengths[2];
	char *all, *next;

	EXPECT(gf_comm_gather_text(&c, 1, own, sizeof(own), &all, lengths, &err) == -ETIMEDOUT,
	       "%s", err.text);
	EXPECT(c.broken, "who gives up has lost a rank");
	/* of the size that both texts have together */
	next = gf_xmalloc(sizeof(zeros));
	memset(next, 0, sizeof(zeros));
	gf_comm_close(&c);
	EXPECT(late.size_bytes == 64 && !memcmp(next, zeros, sizeof(zeros)),
	       "%zu bytes were written", late.size_bytes);
	free(next);
}

/* A broken communicator asks nobody, but says what is known. */
static void test_agree_broken(void)
{
	static const struct gf_comm_ops ops = {.name = "none"};
	struct gf_comm c = {.ops = &ops, .ranks = 2, .broken = true};
	struct gf_error err = {"own"};

	EXPECT(gf_comm_agree(&c, -EIO, &err) == -EIO, "%s", err.text);
	EXPECT_TEXT(err.text, "own");
}

/* The one rank of a process by itself meets nobody, and its sum is its own. */
static void test_alone(void)
{
	struct gf_element element = gf_element_number(GF_F32, GF_OP_SUM);
	struct gf_comm *c = gf_comm_alone_new();
	struct gf_comm_request *request;
	float value = 3, all = 0;
	struct gf_error err = {""};

	EXPECT(c->rank == 0 && c->ranks == 1 && c->local_ranks == 1, "one rank");
	EXPECT(!gf_comm_barrier(c, &err) && !gf_comm_agree(c, 0, &err), "%s", err.text);
	EXPECT(!gf_comm_bcast(c, 0, &value, sizeof(value), &err), "%s", err.text);
	EXPECT(!gf_comm_allgather(c, &value, sizeof(value), &all, &err) && all == 3, "%g", all);
	EXPECT(!c->ops->iallreduce(c, &value, 1, &element, &request, &err), "%s", err.text);
	EXPECT(!gf_comm_wait(c, request, &err) && value == 3, "%g", value);
	EXPECT(c->ops->isend(c, 1, 7, &value, sizeof(value), &request, &err) == -EINVAL, "peer");
	EXPECT_TEXT(err.text, "want no other rank, got 1");
	gf_comm_close(c);
}

int main(void)
{
	static const int ranks[] = {1, 2, 3, 4, 7, 16};
	struct gf_comm *comm;
	struct gf_error err;
	size_t i;

	watchdog(100);
	for (i = 0; i < GF_ARRAY_LENGTH(ranks); i++)
		on_ranks(ranks[i], all_checks, NULL);
	on_ranks(3, desert, NULL);
	EXPECT(gf_comm_local_new(0, &comm, &err) == -EINVAL, "no ranks");
	test_alone();
	test_backoff();
	test_registry();
	test_notes();
	test_late_note();
	test_late();
	test_late_text();
	test_agree_broken();
	return TEST_END();
}
