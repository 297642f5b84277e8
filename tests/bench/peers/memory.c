/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the memory allows an all-reduce inside a host: each of n ranks sums its
 * 1/n of all messages and puts the sum into all of them, as if nobody had to
 * wait for anybody. That reads and writes every byte once, and nothing can do
 * with less. Short and long blocks, and past the caches: which is fastest
 * depends on the size, and the fastest is the limit. The messages are of its
 * own, in memory of the same kind, written by their ranks just before, as
 * everybody's are.
 */
#include <mpi.h>
#include <stdint.h>
#include <string.h>

#include "arena.h"
#include "gf_kernels.h"
#ifdef __SSE2__
#include <emmintrin.h>
#endif

enum { WINDOWS_MOST = 64, PAGE_BYTES = 4096 };
/* A sum stays in a near cache until it is written: a block is at most so long,
 * and at least what a copy needs to get under way. */
enum { BLOCK_MOST = 65536 };
static const struct {
	const char *name;
	size_t block_elems;
	bool streamed;
} variants[] = {
	{"memory", 2048, false},
	{"memory-blocks", BLOCK_MOST, false},
	{"memory-streamed", 2048, true},
};
enum { VARIANTS = sizeof(variants) / sizeof(variants[0]) };

static MPI_Comm host;
static MPI_Win window;
static float *messages[WINDOWS_MOST];

static void enter(struct arena *a)
{
	MPI_Info info;
	MPI_Aint size;
	void *base;
	int i, unit;

	if (a->o.link > 0 || a->comm->local_ranks < a->comm->ranks ||
	    a->comm->ranks > WINDOWS_MOST)
		return;
	/* each part where its rank has it near, and at a page's beginning */
	MPI_Info_create(&info);
	MPI_Info_set(info, "alloc_shared_noncontig", "true");
	MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0,
			    MPI_INFO_NULL, &host);
	must(MPI_Win_allocate_shared((MPI_Aint)a->o.high + PAGE_BYTES, 1, info,
				     host, &base, &window),
	     "MPI_Win_allocate_shared");
	MPI_Info_free(&info);
	for (i = 0; i < a->comm->ranks; i++) {
		MPI_Win_shared_query(window, i, &size, &unit, &base);
		messages[i] = (float *)(((uintptr_t)base + PAGE_BYTES - 1) /
					PAGE_BYTES * PAGE_BYTES);
	}
	for (i = 0; i < VARIANTS; i++)
		enlist(a, &memory_side, LIMIT, variants[i].name)->number = i;
}

static void stream(float *to, const float *from, size_t count)
{
#ifdef __SSE2__
	size_t i = 0;

	/* messages begin at pages; parts of them may not */
	for (; i < count && (uintptr_t)(to + i) % 16; i++)
		to[i] = from[i];
	for (; i + 4 <= count; i += 4)
		_mm_stream_ps(to + i, _mm_loadu_ps(from + i));
	for (; i < count; i++)
		to[i] = from[i];
#else
	memcpy(to, from, count * sizeof(*to));
#endif
}

static void run(struct arena *a, struct contestant *c)
{
	const struct gf_kernels *k = gf_kernels();
	size_t ranks = (size_t)a->comm->ranks, me = (size_t)a->comm->rank;
	size_t at = a->count * me / ranks, past = a->count * (me + 1) / ranks;
	static float sum[BLOCK_MOST] __attribute__((aligned(64)));
	size_t block = variants[c->number].block_elems, n, r;

	for (; at < past; at += n) {
		n = past - at < block ? past - at : block;
		memcpy(sum, messages[0] + at, n * sizeof(*sum));
		for (r = 1; r < ranks; r++)
			k->add_f32(sum, messages[r] + at, n);
		for (r = 0; r < ranks; r++)
			if (variants[c->number].streamed)
				stream(messages[r] + at, sum, n);
			else
				memcpy(messages[r] + at, sum, n * sizeof(*sum));
	}
#ifdef __SSE2__
	_mm_sfence();
#endif
}

/* Its messages, as every rank has just written them. */
static void prepare(struct arena *a, struct contestant *c)
{
	size_t i;

	(void)c;
	for (i = 0; i < a->count; i++)
		messages[a->comm->rank][i] = input_of(a);
}

static void leave(struct arena *a)
{
	(void)a;
	if (!messages[0])
		return;
	MPI_Win_free(&window);
	MPI_Comm_free(&host);
}

const struct side memory_side = {
	.enter = enter, .prepare = prepare, .run = run, .leave = leave};
