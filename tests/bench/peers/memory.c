/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The speed that memory allows an all-reduce inside a host: each of n ranks sums its 1/n of all
 * messages in its own message and puts it into the others, as if no rank had to wait. This reads
 * and writes every byte once, and no algorithm can do with less. Short and long blocks, and past
 * the caches: which is fastest depends on the size, and the fastest is the limit.
 */
#include <mpi.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>

#include "arena.h"
#include "gf_kernels.h"
#include "transport/shm_state.h"
#ifdef __SSE2__
#include <emmintrin.h>
#endif

enum { MESSAGES_MOST = 64 };
/* A sum stays in a near cache until it is put into the others. */
static const struct {
	const char *name;
	size_t block_elems;
	bool streamed;
} variants[] = {
	{"memory", 2048, false},
	{"memory-blocks", 65536, false},
	{"memory-streamed", 2048, true},
};
enum { VARIANTS = sizeof(variants) / sizeof(variants[0]) };

static struct gf_segment mapped[MESSAGES_MOST];
static float *messages[MESSAGES_MOST]; /* of all ranks */

/* The address at which a rank's message is mapped. */
struct card {
	struct gf_segment_place place;
	size_t offset;
};

static struct card find_own(struct arena *a)
{
	const struct gf_shm *s = a->comm->priv;
	struct card card = {.place = {.pid = (int)getpid(), .fd = -1}};
	size_t i;

	for (i = 0; i < s->nown; i++) {
		const struct gf_segment *own = &s->own[i].segment;

		if (!gf_segment_holds(own, a->data, a->o.high))
			continue;
		card.place.fd = own->fd;
		card.place.inode = own->inode;
		card.place.size_bytes = own->size_bytes;
		card.offset = (size_t)((char *)a->data - own->base);
	}
	return card;
}

static void enter(struct arena *a)
{
	struct card own, cards[MESSAGES_MOST];
	struct gf_error err = {""};
	int i;

	if (a->o.link > 0 || a->comm->local_ranks < a->comm->ranks ||
	    a->comm->ranks > MESSAGES_MOST || strcmp(a->comm->ops->name, "shm") != 0)
		return;
	own = find_own(a);
	MPI_Allgather(&own, sizeof(own), MPI_BYTE, cards, sizeof(own), MPI_BYTE, MPI_COMM_WORLD);
	for (i = 0; i < a->comm->ranks; i++) {
		messages[i] = a->data;
		if (i == a->comm->rank)
			continue;
		must(gf_segment_map(&mapped[i], &cards[i].place, &err), err.text);
		messages[i] = (float *)(void *)(mapped[i].base + cards[i].offset);
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
	size_t block = variants[c->number].block_elems, n, r;
	float *sum;

	for (; at < past; at += n) {
		n = past - at < block ? past - at : block;
		sum = messages[me] + at;
		for (r = 0; r < ranks; r++)
			if (r != me)
				k->add_f32(sum, messages[r] + at, n);
		for (r = 0; r < ranks; r++)
			if (r != me && variants[c->number].streamed)
				stream(messages[r] + at, sum, n);
			else if (r != me)
				memcpy(messages[r] + at, sum, n * sizeof(*sum));
	}
#ifdef __SSE2__
	_mm_sfence();
#endif
}

static void leave(struct arena *a)
{
	int i;

	(void)a;
	for (i = 0; i < MESSAGES_MOST; i++)
		gf_segment_release(&mapped[i]);
}

const struct side memory_side = {.enter = enter, .run = run, .leave = leave};
