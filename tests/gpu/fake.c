/* SPDX-License-Identifier: BSD-3-Clause */
#include "fake.h"

#include <errno.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/array.h"
#include "base/clock.h"
#include "base/heap.h"
#include "base/rng.h"
#include "gf_kernels.h"

#define RANKS_MAX   16
#define STREAMS_MAX 128
#define COMMS_MAX   256
#define ITEMS_MAX   64

/* --- what there is -------------------------------------------------------- */

enum kind { CALL, RECORD, WAIT, NCCL };
enum what { ALL_REDUCE, REDUCE_SCATTER, ALL_GATHER, SEND, RECV };

struct item {
	enum what what;
	struct gf_nccl_comm *comm;
	void *data;
	size_t count; /* elements, of a part where there are parts; or bytes */
	int peer;
	uint64_t index; /* among those of the communicator, or to the peer */
	bool ended;
};

struct op {
	enum kind kind;
	void (*call)(struct op *op);
	void (*run)(void *ctx);
	void *a;
	const void *b;
	size_t n, m;
	struct gf_gpu_event *event;
	uint64_t count;
	struct item items[ITEMS_MAX];
	size_t nitems;
	bool begun;
	struct op *next;
};

struct gf_gpu_stream {
	struct fake_world *world;
	int rank;
	bool used;
	struct op *first, **last;
};

struct gf_gpu_event {
	struct fake_world *world;
	uint64_t recorded, happened;
	double at_s;
};

/* All that call comm_new with one id, or comm_split for the n-th time on one
 * parent. */
struct meeting {
	uint64_t id;
	int ranks, come;
	int color[RANKS_MAX], key[RANKS_MAX];
	struct gf_nccl_comm *member[RANKS_MAX];
};

struct gf_nccl_comm {
	struct fake_world *world;
	struct meeting *meeting;
	int rank, place, color, ranks; /* of the world; of the meeting */
	int me;                        /* rank in the communicator */
	struct gf_nccl_comm *peers[RANKS_MAX];
	uint64_t splits, calls, sent[RANKS_MAX], received[RANKS_MAX];
	bool ready, aborted, exists;
};

struct fake_device {
	struct gf_gpu gpu;
	struct fake_world *world;
	struct gf_gpu_kernels kernels;
	int begun;
	size_t calls;
};

struct fake_world {
	pthread_mutex_t lock;
	pthread_t thread;
	bool quit;
	int ranks, slots;
	struct gf_rng rng;
	struct fake_faults faults;
	struct fake_device devices[RANKS_MAX];
	struct gf_gpu_stream streams[STREAMS_MAX];
	struct meeting *meetings[COMMS_MAX];
	struct gf_nccl_comm *comms[COMMS_MAX];
	size_t nstreams, nmeetings, ncomms;
	void **memory; /* given out; a queue may still name it when it is freed
			*/
	size_t nmemory, memory_capacity;
	uint64_t ids;
	char complaint[256];
};

/* The rank that this thread plays, and its group. */
static _Thread_local struct fake_world *here;
static _Thread_local int here_rank;
static _Thread_local struct op *group;
static _Thread_local struct gf_gpu_stream *group_stream;

static void complain(struct fake_world *w, const char *what)
{
	if (!w->complaint[0])
		snprintf(w->complaint, sizeof(w->complaint), "%s", what);
}

/* Zeroed; lives as long as the world. Under lock. */
static void *remember(struct fake_world *w, size_t size_bytes)
{
	void *p = gf_xcalloc(1, size_bytes + 1);

	*(void **)gf_array_push(&w->memory, &w->nmemory, &w->memory_capacity) =
		p;
	return p;
}

static struct fake_device *device_of(struct gf_gpu *g)
{
	return (struct fake_device *)(void *)g;
}

/* --- streams -------------------------------------------------------------- */

static void push(struct gf_gpu_stream *s, struct op *op)
{
	*s->last = op;
	s->last = &op->next;
}

static struct op *enqueue(struct gf_gpu_stream *s, enum kind kind)
{
	struct op *op = gf_xcalloc(1, sizeof(*op));

	op->kind = kind;
	push(s, op);
	return op;
}

static void enqueue_call(struct gf_gpu_stream *s, void (*call)(struct op *op),
			 void *a, const void *b, size_t n, size_t m)
{
	struct op *op;

	pthread_mutex_lock(&s->world->lock);
	op = enqueue(s, CALL);
	op->call = call;
	op->a = a;
	op->b = b;
	op->n = n;
	op->m = m;
	pthread_mutex_unlock(&s->world->lock);
}

static void call_run(struct op *op)
{
	op->run(op->a);
}

void fake_enqueue(struct gf_gpu_stream *s, void (*run)(void *ctx), void *ctx)
{
	struct op *op;

	pthread_mutex_lock(&s->world->lock);
	op = enqueue(s, CALL);
	op->call = call_run;
	op->run = run;
	op->a = ctx;
	pthread_mutex_unlock(&s->world->lock);
}

static void pop(struct gf_gpu_stream *s)
{
	struct op *op = s->first;

	s->first = op->next;
	if (!s->first)
		s->last = &s->first;
	free(op);
}

/* --- NCCL's operations ---------------------------------------------------- */

/* The other side's item, if its operation has begun. */
static struct item *find(struct fake_world *w, const struct gf_nccl_comm *comm,
			 bool (*fits)(const struct item *theirs,
				      const struct item *mine),
			 const struct item *mine)
{
	for (size_t i = 0; i < w->nstreams; i++) {
		struct op *op = w->streams[i].first;

		if (!op || op->kind != NCCL || !op->begun)
			continue;
		for (size_t k = 0; k < op->nitems; k++)
			if (op->items[k].comm == comm &&
			    fits(&op->items[k], mine))
				return &op->items[k];
	}
	return NULL;
}

static bool is_same_call(const struct item *theirs, const struct item *mine)
{
	return theirs->what < SEND && theirs->index == mine->index;
}

static bool is_its_receive(const struct item *theirs, const struct item *mine)
{
	return theirs->what == RECV && theirs->peer == mine->comm->me &&
	       theirs->index == mine->index;
}

static void copy_message(struct fake_world *w, struct item *send)
{
	struct item *recv =
		find(w, send->comm->peers[send->peer], is_its_receive, send);

	if (!recv)
		return;
	if (recv->count != send->count)
		complain(w, "a message of another size");
	else
		memcpy(recv->data, send->data, send->count);
	send->ended = recv->ended = true;
}

/* Sums in the order of ranks; all end at once. */
static void meet(struct fake_world *w, struct item *item)
{
	const int p = item->comm->ranks;
	const size_t n = item->count;
	struct item *all[RANKS_MAX];
	float *sums;

	for (int r = 0; r < p; r++) {
		all[r] = find(w, item->comm->peers[r], is_same_call, item);
		if (!all[r])
			return;
		if (all[r]->what != item->what || all[r]->count != n)
			complain(w, "a collective of another kind or size");
	}
	sums = gf_xcalloc(n * (size_t)p + 1, sizeof(*sums));
	for (int r = 0; r < p; r++) {
		const float *theirs = all[r]->data;
		const size_t part = (size_t)r * n;

		if (item->what == ALL_GATHER)
			memcpy(sums + part, theirs + part, n * sizeof(float));
		else
			for (size_t i = 0;
			     i < (item->what == ALL_REDUCE ? n : n * (size_t)p);
			     i++)
				sums[i] += theirs[i];
	}
	for (int r = 0; r < p; r++) {
		float *theirs = all[r]->data;
		const size_t part = (size_t)r * n;

		/* the other parts are nobody's business afterwards */
		if (item->what == REDUCE_SCATTER) {
			memset(theirs, 0xff, n * (size_t)p * sizeof(float));
			memcpy(theirs + part, sums + part, n * sizeof(float));
		} else {
			memcpy(theirs, sums,
			       (item->what == ALL_REDUCE ? n : n * (size_t)p) *
				       sizeof(float));
		}
		all[r]->ended = true;
	}
	free(sums);
}

/* True: it has moved. */
static bool play_nccl(struct gf_gpu_stream *s, struct op *op)
{
	struct fake_world *w = s->world;
	struct fake_device *d = &w->devices[s->rank];
	bool ended = true, aborted = false;

	for (size_t i = 0; i < op->nitems; i++)
		aborted |= op->items[i].comm->aborted;
	if (!op->begun && !aborted) {
		if (d->begun == w->slots || (w->faults.hangs == s->rank + 1 &&
					     d->calls > w->faults.after))
			return false;
		op->begun = true;
		d->begun++;
		return true;
	}
	for (size_t i = 0; i < op->nitems && !aborted; i++) {
		struct item *item = &op->items[i];

		if (!item->ended && item->what == SEND)
			copy_message(w, item);
		else if (!item->ended && item->what != RECV)
			meet(w, item);
	}
	for (size_t i = 0; i < op->nitems; i++)
		ended &= op->items[i].ended;
	if (!ended && !aborted)
		return false;
	d->begun -= op->begun;
	pop(s);
	return true;
}

static bool play(struct gf_gpu_stream *s)
{
	struct op *op = s->first;

	switch (op->kind) {
	case NCCL:
		return play_nccl(s, op);
	case WAIT:
		if (op->event->happened < op->count)
			return false;
		break;
	case RECORD:
		op->event->happened = op->count;
		op->event->at_s = gf_clock_s();
		break;
	case CALL:
		op->call(op);
		break;
	}
	pop(s);
	return true;
}

static void *device_thread(void *world)
{
	struct fake_world *w = world;
	size_t idle = 0;

	pthread_mutex_lock(&w->lock);
	while (!w->quit) {
		struct gf_gpu_stream *s =
			w->nstreams ? &w->streams[gf_rng_below(&w->rng,
							       w->nstreams)]
				    : NULL;

		idle = s && s->first && play(s) ? 0 : idle + 1;
		if (idle > 4 * STREAMS_MAX || gf_rng_below(&w->rng, 64) == 0) {
			pthread_mutex_unlock(&w->lock);
			usleep(idle ? 50 : 1);
			pthread_mutex_lock(&w->lock);
		}
	}
	pthread_mutex_unlock(&w->lock);
	return NULL;
}

/* --- the device's table --------------------------------------------------- */

static int fake_alloc(struct gf_gpu *g, size_t size_bytes, void **p,
		      struct gf_error *err)
{
	struct fake_world *w = device_of(g)->world;

	(void)err;
	pthread_mutex_lock(&w->lock);
	*p = remember(w, size_bytes);
	memset(*p, 0xff, size_bytes);
	pthread_mutex_unlock(&w->lock);
	return 0;
}

static void fake_free(struct gf_gpu *g, void *p)
{
	(void)g;
	(void)p;
}

static int fake_free_bytes(struct gf_gpu *g, size_t *bytes,
			   struct gf_error *err)
{
	(void)g;
	(void)err;
	*bytes = (size_t)1 << 30;
	return 0;
}

static int fake_stream_new(struct gf_gpu *g, bool urgent,
			   struct gf_gpu_stream **s, struct gf_error *err)
{
	struct fake_world *w = device_of(g)->world;
	struct gf_gpu_stream *n;

	(void)urgent;
	(void)err;
	pthread_mutex_lock(&w->lock);
	if (w->nstreams == STREAMS_MAX)
		abort();
	n = &w->streams[w->nstreams++];
	*n = (struct gf_gpu_stream){.world = w,
				    .rank = (int)(device_of(g) - w->devices),
				    .used = true};
	n->last = &n->first;
	pthread_mutex_unlock(&w->lock);
	*s = n;
	return 0;
}

static void fake_stream_free(struct gf_gpu *g, struct gf_gpu_stream *s)
{
	(void)g;
	if (s)
		s->used = false; /* what is enqueued still runs */
}

static int fake_stream_sync(struct gf_gpu *g, struct gf_gpu_stream *s,
			    struct gf_error *err)
{
	bool empty;

	(void)g;
	(void)err;
	do {
		pthread_mutex_lock(&s->world->lock);
		empty = !s->first;
		pthread_mutex_unlock(&s->world->lock);
		if (!empty)
			usleep(100);
	} while (!empty);
	return 0;
}

static int fake_event_new(struct gf_gpu *g, bool timed, struct gf_gpu_event **e,
			  struct gf_error *err)
{
	struct fake_world *w = device_of(g)->world;

	(void)timed;
	(void)err;
	pthread_mutex_lock(&w->lock);
	*e = remember(w, sizeof(**e));
	(*e)->world = w;
	pthread_mutex_unlock(&w->lock);
	return 0;
}

static void fake_event_free(struct gf_gpu *g, struct gf_gpu_event *e)
{
	(void)g;
	(void)e;
}

static int fake_record(struct gf_gpu *g, struct gf_gpu_event *e,
		       struct gf_gpu_stream *s, struct gf_error *err)
{
	struct op *op;

	(void)g;
	(void)err;
	pthread_mutex_lock(&s->world->lock);
	op = enqueue(s, RECORD);
	op->event = e;
	op->count = ++e->recorded;
	pthread_mutex_unlock(&s->world->lock);
	return 0;
}

static int fake_wait(struct gf_gpu *g, struct gf_gpu_stream *s,
		     struct gf_gpu_event *e, struct gf_error *err)
{
	struct op *op;

	(void)g;
	(void)err;
	pthread_mutex_lock(&s->world->lock);
	op = enqueue(s, WAIT);
	op->event = e;
	op->count = e->recorded;
	pthread_mutex_unlock(&s->world->lock);
	return 0;
}

static int fake_query(struct gf_gpu *g, struct gf_gpu_event *e,
		      struct gf_error *err)
{
	bool happened;

	(void)g;
	(void)err;
	pthread_mutex_lock(&e->world->lock);
	happened = e->happened == e->recorded;
	pthread_mutex_unlock(&e->world->lock);
	return happened;
}

static int fake_event_s(struct gf_gpu *g, struct gf_gpu_event *from,
			struct gf_gpu_event *to, double *seconds,
			struct gf_error *err)
{
	(void)g;
	(void)err;
	pthread_mutex_lock(&from->world->lock);
	*seconds = to->at_s - from->at_s;
	pthread_mutex_unlock(&from->world->lock);
	return 0;
}

static void call_copy(struct op *op)
{
	memmove(op->a, op->b, op->n);
}

static int fake_copy(struct gf_gpu *g, struct gf_gpu_stream *s, void *to,
		     const void *from, size_t size_bytes, enum gf_gpu_copy kind,
		     struct gf_error *err)
{
	(void)g;
	(void)kind;
	(void)err;
	enqueue_call(s, call_copy, to, from, size_bytes, 0);
	return 0;
}

static int fake_check(struct gf_gpu *g, struct gf_error *err)
{
	(void)g;
	(void)err;
	return 0;
}

static const struct gf_gpu_ops gpu_ops = {
	.name = "fake",
	.alloc = fake_alloc,
	.free = fake_free,
	.host_alloc = fake_alloc,
	.host_free = fake_free,
	.free_bytes = fake_free_bytes,
	.stream_new = fake_stream_new,
	.stream_free = fake_stream_free,
	.stream_sync = fake_stream_sync,
	.event_new = fake_event_new,
	.event_free = fake_event_free,
	.record = fake_record,
	.wait = fake_wait,
	.query = fake_query,
	.event_s = fake_event_s,
	.copy = fake_copy,
	.check = fake_check,
};

/* --- kernels: ref's, when their turn comes -------------------------------- */

#define KERNEL(name, to_type, from_type)                                       \
	static void call_##name(struct op *op)                                 \
	{                                                                      \
		gf_kernels_named("ref")->name(op->a, op->b, op->n);            \
	}                                                                      \
	static void fake_##name(struct gf_gpu_stream *s, to_type *to,          \
				from_type *from, size_t n)                     \
	{                                                                      \
		enqueue_call(s, call_##name, to, from, n, 0);                  \
	}
KERNEL(add_f32, float, const float)
KERNEL(f16_encode, uint16_t, const float)
KERNEL(f16_decode, float, const uint16_t)
KERNEL(f16_decode_add, float, const uint16_t)
KERNEL(bf16_encode, uint16_t, const float)
KERNEL(bf16_decode, float, const uint16_t)
KERNEL(bf16_decode_add, float, const uint16_t)
KERNEL(trunc16_encode, uint16_t, const float)

#define Q8_KERNEL(name, to_type, from_type, to_step, from_step)                \
	static void call_##name(struct op *op)                                 \
	{                                                                      \
		to_type *to = op->a;                                           \
		from_type *from = op->b;                                       \
		for (size_t at = 0, b = 0; at < op->n; at += op->m, b++)       \
			gf_kernels_named("ref")->name(                         \
				to + b * (to_step), from + b * (from_step),    \
				op->n - at < op->m ? op->n - at : op->m);      \
	}                                                                      \
	static void fake_##name(struct gf_gpu_stream *s, to_type *to,          \
				from_type *from, size_t n, size_t block)       \
	{                                                                      \
		enqueue_call(s, call_##name, to, from, n, block);              \
	}
Q8_KERNEL(q8_encode, uint8_t, const float, op->m + 4, op->m)
Q8_KERNEL(q8_decode, float, const uint8_t, op->m, op->m + 4)
Q8_KERNEL(q8_decode_add, float, const uint8_t, op->m, op->m + 4)

static const struct gf_gpu_kernels kernels = {
	.name = "fake",
	.add_f32 = fake_add_f32,
	.f16_encode = fake_f16_encode,
	.f16_decode = fake_f16_decode,
	.f16_decode_add = fake_f16_decode_add,
	.bf16_encode = fake_bf16_encode,
	.bf16_decode = fake_bf16_decode,
	.bf16_decode_add = fake_bf16_decode_add,
	.trunc16_encode = fake_trunc16_encode,
	.q8_encode = fake_q8_encode,
	.q8_decode = fake_q8_decode,
	.q8_decode_add = fake_q8_decode_add,
};

/* --- NCCL's table --------------------------------------------------------- */

static int nccl_unique_id(unsigned char id[GF_NCCL_ID_BYTES],
			  struct gf_error *err)
{
	(void)err;
	pthread_mutex_lock(&here->lock);
	here->ids++;
	memcpy(id, &here->ids, sizeof(here->ids));
	pthread_mutex_unlock(&here->lock);
	return 0;
}

/* Under lock. */
static struct gf_nccl_comm *join(struct fake_world *w, uint64_t id, int ranks,
				 int place, int color, int key)
{
	struct gf_nccl_comm *c = gf_xcalloc(1, sizeof(*c));
	struct meeting *m = NULL;

	for (size_t i = 0; i < w->nmeetings; i++)
		if (w->meetings[i]->id == id)
			m = w->meetings[i];
	if (!m) {
		m = gf_xcalloc(1, sizeof(*m));
		m->id = id;
		m->ranks = ranks;
		w->meetings[w->nmeetings++] = m;
	}
	if (w->ncomms == COMMS_MAX || m->member[place])
		abort();
	m->come++;
	m->color[place] = color;
	m->key[place] = key;
	m->member[place] = c;
	*c = (struct gf_nccl_comm){.world = w,
				   .meeting = m,
				   .rank = here_rank,
				   .place = place,
				   .exists = true};
	w->comms[w->ncomms++] = c;
	return c;
}

/* Finds its peers when all have come: those of its color, by key. */
static void settle_comm(struct gf_nccl_comm *c)
{
	const struct meeting *m = c->meeting;

	if (c->ready || m->come < m->ranks)
		return;
	for (int key = 0; key < RANKS_MAX; key++)
		for (int r = 0; r < m->ranks; r++)
			if (m->color[r] == m->color[c->place] &&
			    m->key[r] == key) {
				if (r == c->place)
					c->me = c->ranks;
				c->peers[c->ranks++] = m->member[r];
			}
	c->ready = true;
}

static int nccl_comm_new(const unsigned char id[GF_NCCL_ID_BYTES], int ranks,
			 int rank, int max_blocks, struct gf_nccl_comm **c,
			 struct gf_error *err)
{
	uint64_t number;

	(void)max_blocks;
	(void)err;
	memcpy(&number, id, sizeof(number));
	pthread_mutex_lock(&here->lock);
	*c = join(here, number, ranks, rank, 0, rank);
	pthread_mutex_unlock(&here->lock);
	return 0;
}

static int nccl_comm_split(struct gf_nccl_comm *parent, int color, int key,
			   struct gf_nccl_comm **c, struct gf_error *err)
{
	struct fake_world *w = parent->world;

	(void)err;
	pthread_mutex_lock(&w->lock);
	*c = join(w, parent->meeting->id << 16 | ++parent->splits,
		  parent->ranks, parent->me, color, key);
	pthread_mutex_unlock(&w->lock);
	return 0;
}

static int nccl_state(struct gf_nccl_comm *c, struct gf_error *err)
{
	struct fake_world *w = c->world;
	int rc;

	pthread_mutex_lock(&w->lock);
	settle_comm(c);
	rc = c->ready;
	if (w->faults.breaks == c->rank + 1 &&
	    w->devices[c->rank].calls > w->faults.after)
		rc = gf_error_set(err, -EIO, "NCCL: remote process exited");
	pthread_mutex_unlock(&w->lock);
	return rc;
}

static void leave(struct gf_nccl_comm *c, bool aborted)
{
	if (!c)
		return;
	pthread_mutex_lock(&c->world->lock);
	if (!c->exists)
		complain(c->world, "a communicator is given up twice");
	c->exists = false;
	c->aborted |= aborted;
	pthread_mutex_unlock(&c->world->lock);
}

static void nccl_abort(struct gf_nccl_comm *c)
{
	leave(c, true);
}

static void nccl_destroy(struct gf_nccl_comm *c)
{
	leave(c, false);
}

static int nccl_group_begin(struct gf_error *err)
{
	(void)err;
	if (group)
		complain(here, "a group within a group");
	group = gf_xcalloc(1, sizeof(*group));
	group->kind = NCCL;
	group_stream = NULL;
	return 0;
}

static int nccl_group_end(struct gf_error *err)
{
	(void)err;
	if (!group_stream) {
		complain(here, "an empty group");
		free(group);
	} else {
		pthread_mutex_lock(&here->lock);
		push(group_stream, group);
		pthread_mutex_unlock(&here->lock);
	}
	group = NULL;
	return 0;
}

static int nccl_call(struct gf_nccl_comm *c, struct gf_gpu_stream *s,
		     struct item item, struct gf_error *err)
{
	struct fake_world *w = c->world;
	struct op *op = group;
	int rc = 0;

	pthread_mutex_lock(&w->lock);
	if (w->faults.fails == c->rank + 1 &&
	    w->devices[c->rank].calls > w->faults.after)
		rc = gf_error_set(err, -EIO, "ncclSend: unhandled error");
	w->devices[c->rank].calls++;
	if (!c->ready || !c->exists)
		complain(w, "a call on a communicator that is not ready");
	if (op && group_stream && group_stream != s)
		complain(w, "a group on two streams");
	if (!op)
		op = enqueue(s, NCCL);
	if (op->nitems == ITEMS_MAX)
		abort();
	item.comm = c;
	item.index = item.what == SEND   ? c->sent[item.peer]++
		     : item.what == RECV ? c->received[item.peer]++
					 : c->calls++;
	op->items[op->nitems++] = item;
	group_stream = s;
	pthread_mutex_unlock(&w->lock);
	return rc;
}

static int nccl_all_reduce(struct gf_nccl_comm *c, struct gf_gpu_stream *s,
			   float *data, size_t count_elems,
			   struct gf_error *err)
{
	return nccl_call(
		c, s,
		(struct item){ALL_REDUCE, .data = data, .count = count_elems},
		err);
}

static int nccl_reduce_scatter(struct gf_nccl_comm *c, struct gf_gpu_stream *s,
			       float *data, size_t part_elems, int rank,
			       struct gf_error *err)
{
	if (rank != c->me)
		complain(c->world, "another rank's part");
	return nccl_call(c, s,
			 (struct item){REDUCE_SCATTER, .data = data,
				       .count = part_elems},
			 err);
}

static int nccl_all_gather(struct gf_nccl_comm *c, struct gf_gpu_stream *s,
			   float *data, size_t part_elems, int rank,
			   struct gf_error *err)
{
	if (rank != c->me)
		complain(c->world, "another rank's part");
	return nccl_call(
		c, s,
		(struct item){ALL_GATHER, .data = data, .count = part_elems},
		err);
}

static int nccl_send(struct gf_nccl_comm *c, struct gf_gpu_stream *s,
		     const void *data, size_t size_bytes, int peer,
		     struct gf_error *err)
{
	return nccl_call(c, s,
			 (struct item){SEND, .data = (void *)(size_t)data,
				       .count = size_bytes, .peer = peer},
			 err);
}

static int nccl_recv(struct gf_nccl_comm *c, struct gf_gpu_stream *s,
		     void *data, size_t size_bytes, int peer,
		     struct gf_error *err)
{
	return nccl_call(c, s,
			 (struct item){RECV, .data = data, .count = size_bytes,
				       .peer = peer},
			 err);
}

static const struct gf_nccl_ops nccl_ops = {
	.name = "fake",
	.version = 22809,
	.unique_id = nccl_unique_id,
	.comm_new = nccl_comm_new,
	.comm_split = nccl_comm_split,
	.state = nccl_state,
	.abort = nccl_abort,
	.destroy = nccl_destroy,
	.group_begin = nccl_group_begin,
	.group_end = nccl_group_end,
	.all_reduce = nccl_all_reduce,
	.reduce_scatter = nccl_reduce_scatter,
	.all_gather = nccl_all_gather,
	.send = nccl_send,
	.recv = nccl_recv,
};

const struct gf_nccl_ops *fake_nccl(void)
{
	return &nccl_ops;
}

void fake_be(struct fake_world *w, int rank)
{
	here = w;
	here_rank = rank;
}

/* --- the world ------------------------------------------------------------ */

struct fake_world *fake_world_new(int ranks, int slots, unsigned seed,
				  const struct fake_faults *faults)
{
	struct fake_world *w = gf_xcalloc(1, sizeof(*w));

	w->ranks = ranks;
	w->slots = slots;
	w->faults = *faults;
	gf_rng_init(&w->rng, seed, 0);
	pthread_mutex_init(&w->lock, NULL);
	for (int r = 0; r < ranks; r++) {
		struct fake_device *d = &w->devices[r];

		d->world = w;
		d->gpu.ops = &gpu_ops;
		d->gpu.kernels = &kernels;
		snprintf(d->gpu.pci, sizeof(d->gpu.pci), "0000:%02x:00.0",
			 faults->one_gpu ? 0x17u : 0x17u + (unsigned)r);
	}
	if (pthread_create(&w->thread, NULL, device_thread, w))
		abort();
	return w;
}

struct gf_gpu *fake_gpu(struct fake_world *w, int rank)
{
	return &w->devices[rank].gpu;
}

const char *fake_world_complaint(struct fake_world *w)
{
	return w->complaint[0] ? w->complaint : NULL;
}

size_t fake_world_comms(struct fake_world *w)
{
	size_t n = 0;

	pthread_mutex_lock(&w->lock);
	for (size_t i = 0; i < w->ncomms; i++)
		n += w->comms[i]->exists;
	pthread_mutex_unlock(&w->lock);
	return n;
}

size_t fake_world_waiting(struct fake_world *w)
{
	size_t n = 0;

	pthread_mutex_lock(&w->lock);
	for (size_t i = 0; i < w->nstreams; i++)
		for (const struct op *op = w->streams[i].first; op;
		     op = op->next)
			n++;
	pthread_mutex_unlock(&w->lock);
	return n;
}

void fake_world_free(struct fake_world *w)
{
	pthread_mutex_lock(&w->lock);
	w->quit = true;
	pthread_mutex_unlock(&w->lock);
	pthread_join(w->thread, NULL);
	for (size_t i = 0; i < w->nstreams; i++)
		while (w->streams[i].first)
			pop(&w->streams[i]);
	for (size_t i = 0; i < w->nmeetings; i++)
		free(w->meetings[i]);
	for (size_t i = 0; i < w->ncomms; i++)
		free(w->comms[i]);
	for (size_t i = 0; i < w->nmemory; i++)
		free(w->memory[i]);
	free(w->memory);
	pthread_mutex_destroy(&w->lock);
	free(w);
}
