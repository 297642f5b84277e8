/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Messages of more than 2^31 elements, over a transport that moves nothing and writes down what it
 * is asked to move: address space is reserved, and never touched.
 */
#include <errno.h>
#include <stdint.h>
#include <sys/mman.h>

#include "base/heap.h"
#include "collectives/algorithm.h"
#include "runtime/exec/exec.h"
#include "test.h"

#define COUNT   (((size_t)1 << 31) + 12345)
#define SEGMENT ((size_t)1 << 22)

static char *base;

/* What went and came, in bytes; and the furthest byte of the message. */
static struct {
	uint64_t sent, received, furthest;
	size_t most;
	uint64_t reduced;
} seen;

static void look(const void *data, size_t size_bytes)
{
	uintptr_t at = (uintptr_t)data, from = (uintptr_t)base;

	if (size_bytes > seen.most)
		seen.most = size_bytes;
	if (at >= from && at - from < COUNT * 4 && at - from + size_bytes > seen.furthest)
		seen.furthest = at - from + size_bytes;
}

static int fake_isend(struct gf_comm *c, int peer, uint64_t tag, const void *data,
		      size_t size_bytes, struct gf_comm_request **request, struct gf_error *err)
{
	(void)c, (void)peer, (void)tag, (void)err;
	look(data, size_bytes);
	seen.sent += size_bytes;
	*request = NULL;
	return 0;
}

static int fake_irecv(struct gf_comm *c, int peer, uint64_t tag, void *data, size_t size_bytes,
		      struct gf_comm_request **request, struct gf_error *err)
{
	(void)c, (void)peer, (void)tag, (void)err;
	look(data, size_bytes);
	seen.received += size_bytes;
	*request = NULL;
	return 0;
}

static int fake_test(struct gf_comm *c, struct gf_comm_request *request, struct gf_error *err)
{
	(void)c, (void)request, (void)err;
	return 1;
}

static int fake_alloc(struct gf_comm *c, size_t size_bytes, void **data, struct gf_error *err)
{
	(void)c, (void)err;
	*data = gf_xcalloc(size_bytes, 1);
	return 0;
}

static void fake_free(struct gf_comm *c, void *data)
{
	(void)c;
	free(data);
}

static const struct gf_comm_ops fake = {
	.name = "fake",
	.isend = fake_isend,
	.irecv = fake_irecv,
	.test = fake_test,
	.buffer_alloc = fake_alloc,
	.buffer_free = fake_free,
};

static void note(void *ctx, void *to, const void *from, size_t count)
{
	(void)ctx, (void)from;
	look(to, count * 4);
	seen.reduced += count;
}

static void check(const char *algorithm, int rank, int ranks, uint64_t want_elems)
{
	struct gf_comm c = {.ops = &fake, .rank = rank, .ranks = ranks};
	struct gf_coll_args args = {
		.ranks = ranks, .count_elems = COUNT, .elem_bytes = 4, .segment_elems = SEGMENT};
	struct gf_exec_config config = {.element = gf_element_set(4, note, NULL)};
	struct gf_exec *x = gf_exec_new(&c);
	struct gf_exec_run *run = NULL;
	struct gf_schedule s;
	struct gf_error err = {""};

	memset(&seen, 0, sizeof(seen));
	if (gf_algorithm_schedule(gf_algorithm_find(algorithm), &args, rank, &s, &err)) {
		EXPECT(0, "%s: %s", algorithm, err.text);
		gf_exec_free(x);
		return;
	}
	config.schedule = &s;
	EXPECT(!gf_exec_run_new(x, &config, &run, &err) && !gf_exec_start(run, base, &err) &&
		       !gf_exec_wait(x, run, 0, &err),
	       "%s: %s", algorithm, err.text);
	EXPECT(seen.sent == want_elems * 4 && seen.received == want_elems * 4 &&
		       gf_exec_wire_bytes(run) == want_elems * 4,
	       "%s: %llu sent, %llu received, want %llu", algorithm, (unsigned long long)seen.sent,
	       (unsigned long long)seen.received, (unsigned long long)want_elems * 4);
	EXPECT(seen.furthest == COUNT * 4, "%s: up to %llu of %llu", algorithm,
	       (unsigned long long)seen.furthest, (unsigned long long)COUNT * 4);
	EXPECT(seen.most == SEGMENT * 4, "%s: pieces of %zu", algorithm, seen.most);
	EXPECT(seen.reduced > 0, "%s reduces", algorithm);
	gf_exec_run_free(run);
	gf_schedule_release(&s);
	gf_exec_free(x);
}

int main(void)
{
	void *space = mmap(NULL, COUNT * 4, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE,
			   -1, 0);

	if (space == MAP_FAILED) {
		puts("no address space of 8 GiB here");
		return 77;
	}
	base = space;
	/* halves of an odd number: the first is one longer */
	check("ring", 0, 2, COUNT);
	check("ring", 1, 2, COUNT);
	check("rhd", 0, 2, COUNT);
	check("butterfly", 0, 2, COUNT);
	check("butterfly", 1, 2, COUNT);
	munmap(space, COUNT * 4);
	return TEST_END();
}
