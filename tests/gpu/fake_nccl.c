/* SPDX-License-Identifier: BSD-3-Clause */
#include "fake_parts.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/heap.h"

#define LINE_BYTES 128

/* The rank that this thread plays, and its group. */
static _Thread_local struct fake_world *here;
static _Thread_local int here_rank;
static _Thread_local const struct gf_nccl_tuning *here_told;
static _Thread_local struct fake_operation *group;
static _Thread_local struct gf_gpu_stream *group_stream;
static _Thread_local bool group_failed; /* then none of it is launched */

/* --- NCCL's operations ---------------------------------------------------- */

/* The other side's item, if its operation has begun. */
static struct fake_item *find(struct fake_world *w, const struct gf_nccl_comm *comm,
			      bool (*fits)(const struct fake_item *theirs,
					   const struct fake_item *mine),
			      const struct fake_item *mine)
{
	for (size_t i = 0; i < w->nstreams; i++) {
		struct fake_operation *op = w->streams[i].first;

		if (!op || op->kind != NCCL || !op->begun)
			continue;
		for (size_t k = 0; k < op->nitems; k++)
			if (op->items[k].comm == comm && fits(&op->items[k], mine))
				return &op->items[k];
	}
	return NULL;
}

static bool is_same_call(const struct fake_item *theirs, const struct fake_item *mine)
{
	return theirs->what < SEND && theirs->index == mine->index;
}

static bool is_its_receive(const struct fake_item *theirs, const struct fake_item *mine)
{
	return theirs->what == RECV && theirs->peer == mine->comm->me &&
	       theirs->index == mine->index;
}

/* NCCL wants an operation captured on all of its ranks or on none. */
static void check_alike(struct fake_world *w, const struct fake_item *a, const struct fake_item *b)
{
	if (a->captured != b->captured)
		fake_complain(w, "an operation that one rank has captured");
}

static void copy_message(struct fake_world *w, struct fake_item *send)
{
	struct fake_item *recv = find(w, send->comm->peers[send->peer], is_its_receive, send);

	if (!recv)
		return;
	check_alike(w, send, recv);
	if (recv->count != send->count)
		fake_complain(w, "a message of another size");
	else
		memcpy(recv->data, send->data, send->count);
	send->ended = recv->ended = true;
}

/* Sums in the order of ranks; all end at once. */
static void meet(struct fake_world *w, struct fake_item *item)
{
	const int p = item->comm->ranks;
	const size_t n = item->count;
	struct fake_item *all[RANKS_MAX];
	float *sums;

	for (int r = 0; r < p; r++) {
		all[r] = find(w, item->comm->peers[r], is_same_call, item);
		if (!all[r])
			return;
		check_alike(w, item, all[r]);
		if (all[r]->what != item->what || all[r]->count != n)
			fake_complain(w, "a collective of another kind or size");
	}
	sums = gf_xcalloc(n * (size_t)p + 1, sizeof(*sums));
	for (int r = 0; r < p; r++) {
		const float *theirs = all[r]->data;
		const size_t part = (size_t)r * n;

		if (item->what == ALL_GATHER)
			memcpy(sums + part, theirs + part, n * sizeof(float));
		else
			for (size_t i = 0; i < (item->what == ALL_REDUCE ? n : n * (size_t)p); i++)
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
			       (item->what == ALL_REDUCE ? n : n * (size_t)p) * sizeof(float));
		}
		all[r]->ended = true;
	}
	free(sums);
}

bool fake_play_nccl(struct gf_gpu_stream *s, struct fake_operation *op)
{
	struct fake_world *w = s->world;
	struct fake_device *d = &w->devices[s->rank];
	bool ended = true, aborted = false;

	for (size_t i = 0; i < op->nitems; i++)
		aborted |= op->items[i].comm->aborted;
	if (!op->begun && !aborted) {
		if (d->begun == w->slots ||
		    (w->faults.hangs == s->rank + 1 && d->calls > w->faults.after))
			return false;
		op->begun = true;
		d->begun++;
		return true;
	}
	for (size_t i = 0; i < op->nitems && !aborted; i++) {
		struct fake_item *item = &op->items[i];

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
	fake_pop(s);
	return true;
}

/* --- NCCL's table --------------------------------------------------------- */

static int nccl_unique_id(unsigned char id[GF_NCCL_ID_BYTES], struct gf_error *err)
{
	(void)err;
	pthread_mutex_lock(&here->lock);
	here->ids++;
	memcpy(id, &here->ids, sizeof(here->ids));
	pthread_mutex_unlock(&here->lock);
	return 0;
}

static int nccl_tell(struct gf_nccl_tuning *told, struct gf_error *err)
{
	(void)err;
	if (here_told)
		fake_complain(here, "communicators are told twice");
	here_told = told;
	return 0;
}

static void nccl_untell(struct gf_nccl_tuning *told)
{
	if (here_told != told)
		fake_complain(here, "what was never told is taken back");
	here_told = NULL;
}

/* What it is told may go when the communicator is ready. */
static void listen_to(struct gf_nccl_comm *c, struct gf_nccl_blocks blocks)
{
	const char *const words[] = {here_told ? here_told->algorithm : NULL,
				     here_told ? here_told->protocol : NULL};
	const char *kept[2] = {NULL, NULL};

	for (int i = 0; i < 2; i++)
		if (words[i]) {
			snprintf(c->words[i], sizeof(c->words[i]), "%s", words[i]);
			kept[i] = c->words[i];
		}
	c->told =
		(struct gf_nccl_tuning){.algorithm = kept[0],
					.protocol = kept[1],
					.channels = blocks.least == blocks.most ? blocks.most : 0};
}

static double told_s(const struct gf_nccl_comm *c, size_t bytes)
{
	const struct fake_costs *costs = c->world->costs;

	return costs && costs->told_s ? costs->told_s(&c->told, bytes) : 0;
}

/* Under lock. */
static struct gf_nccl_comm *join(struct fake_world *w, uint64_t id, int ranks, int place, int color,
				 int key)
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
	*c = (struct gf_nccl_comm){
		.world = w, .meeting = m, .rank = here_rank, .place = place, .exists = true};
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
			if (m->color[r] == m->color[c->place] && m->key[r] == key) {
				if (r == c->place)
					c->me = c->ranks;
				c->peers[c->ranks++] = m->member[r];
			}
	c->ready = true;
}

static int nccl_comm_new(const unsigned char id[GF_NCCL_ID_BYTES], int ranks, int rank,
			 struct gf_nccl_blocks blocks, struct gf_nccl_comm **c,
			 struct gf_error *err)
{
	uint64_t number;

	if (here->faults.absent == here_rank + 1)
		return gf_error_set(err, -EIO, "ncclCommInitRankConfig: unhandled system error");
	memcpy(&number, id, sizeof(number));
	pthread_mutex_lock(&here->lock);
	if (!fake_uses(&here->devices[here_rank]))
		fake_complain(here, "a communicator on another device");
	*c = join(here, number, ranks, rank, 0, rank);
	listen_to(*c, blocks);
	if (told_s(*c, 0) <= FAKE_NO_COMM)
		(*c)->failure = "no such communicator";
	pthread_mutex_unlock(&here->lock);
	return 0;
}

/* Under lock: some call is not through with it yet. */
static void keep_busy(struct gf_nccl_comm *c)
{
	c->busy = gf_rng_below(&c->world->rng, 3);
}

static int nccl_comm_split(struct gf_nccl_comm *parent, int color, int key, struct gf_nccl_comm **c,
			   struct gf_error *err)
{
	struct fake_world *w = parent->world;

	(void)err;
	pthread_mutex_lock(&w->lock);
	if (parent->child)
		fake_complain(w, "a split within a split");
	*c = NULL;
	parent->child = join(w, parent->meeting->id << 16 | ++parent->splits, parent->ranks,
			     parent->me, color, key);
	parent->child_at = c;
	keep_busy(parent);
	parent->busy++;
	pthread_mutex_unlock(&w->lock);
	return 0;
}

/* Under lock: the split is through, however it went. */
static void hand_out_child(struct gf_nccl_comm *parent)
{
	if (parent->child)
		*parent->child_at = parent->child;
	parent->child = NULL;
}

static int nccl_state(struct gf_nccl_comm *c, struct gf_error *err)
{
	struct fake_world *w = c->world;
	int rc;

	pthread_mutex_lock(&w->lock);
	settle_comm(c);
	rc = c->ready && !c->busy;
	c->busy -= c->busy > 0;
	if (rc)
		hand_out_child(c);
	if (w->faults.breaks == c->rank + 1 && w->devices[c->rank].calls > w->faults.after)
		rc = gf_error_set(err, -EIO, "NCCL: remote process exited");
	if (c->failure)
		rc = gf_error_set(err, -EIO, "NCCL: %s", c->failure);
	pthread_mutex_unlock(&w->lock);
	return rc;
}

static void leave(struct gf_nccl_comm *c, bool aborted)
{
	if (!c)
		return;
	pthread_mutex_lock(&c->world->lock);
	if (!c->exists)
		fake_complain(c->world, "a communicator is given up twice");
	if (c->graphs)
		fake_complain(c->world, "NCCL waits for a graph");
	c->exists = false;
	c->aborted |= aborted;
	hand_out_child(c);
	pthread_mutex_unlock(&c->world->lock);
}

/* Does a communicator of this rank have work that stands still? An abort of another one would wait
 * for it. Under lock. */
static bool stands_still(const struct fake_world *w, int rank)
{
	for (size_t i = 0; i < w->nstreams; i++) {
		const struct fake_operation *op = w->streams[i].first;

		for (size_t k = 0; op && op->kind == NCCL && k < op->nitems; k++)
			if (op->begun && op->items[k].comm->rank == rank &&
			    !op->items[k].comm->aborted)
				return true;
	}
	return false;
}

static void nccl_abort(struct gf_nccl_comm *const *comms, size_t n)
{
	struct fake_world *w = NULL;
	int rank = 0;

	if (group)
		fake_complain(here, "an abort within a group of operations");
	for (size_t i = 0; i < n; i++) {
		if (!comms[i])
			continue;
		leave(comms[i], true);
		w = comms[i]->world;
		rank = comms[i]->rank;
	}
	if (!w)
		return;
	pthread_mutex_lock(&w->lock);
	if (stands_still(w, rank))
		fake_complain(w, "an abort that waits for another lane");
	pthread_mutex_unlock(&w->lock);
}

static void nccl_destroy(struct gf_nccl_comm *c)
{
	leave(c, false);
}

static int nccl_group_begin(struct gf_error *err)
{
	(void)err;
	if (group)
		fake_complain(here, "a group within a group");
	group = gf_xcalloc(1, sizeof(*group));
	group->kind = NCCL;
	group_stream = NULL;
	group_failed = false;
	return 0;
}

static int nccl_group_end(struct gf_error *err)
{
	if (!group)
		fake_complain(here, "the end of no group");
	if (group_failed) {
		free(group);
		group = NULL;
		return gf_error_set(err, -EIO, "ncclGroupEnd: a call failed");
	}
	if (!group_stream) {
		fake_complain(here, "an empty group");
		free(group);
	} else {
		pthread_mutex_lock(&here->lock);
		for (size_t i = 0; i < group->nitems; i++)
			keep_busy(group->items[i].comm);
		fake_host_enqueues(group_stream);
		fake_push(group_stream, group);
		pthread_mutex_unlock(&here->lock);
	}
	group = NULL;
	return 0;
}

/* A group goes together: as long as its longest. */
static void take_time(struct fake_operation *op, const struct fake_item *item,
		      const struct fake_costs *costs)
{
	size_t width = item->what == SEND || item->what == RECV ? 1 : 4;
	const size_t bytes = item->count * width;
	double takes_s;

	if (!costs)
		return;
	takes_s = item->what == ALL_REDUCE && costs->told_s
			  ? told_s(item->comm, bytes)
			  : costs->nccl.start_s + costs->nccl.per_byte_s * (double)bytes;
	if (takes_s > op->takes_s)
		op->takes_s = takes_s;
}

/* How many items of this kind, to or from this peer, there were so far. */
static uint64_t *count_of(const struct fake_item *item)
{
	return item->what == SEND   ? &item->comm->sent[item->peer]
	       : item->what == RECV ? &item->comm->received[item->peer]
				    : &item->comm->calls;
}

void fake_number(struct fake_operation *op)
{
	for (size_t i = 0; i < op->nitems; i++) {
		struct fake_item *item = &op->items[i];

		item->index = (*count_of(item))++;
		item->comm->world->devices[item->comm->rank].calls++;
	}
}

static int nccl_call(struct gf_nccl_comm *c, struct gf_gpu_stream *s, struct fake_item item,
		     struct gf_error *err)
{
	struct fake_world *w = c->world;
	struct fake_operation *op = group;
	bool fails;

	pthread_mutex_lock(&w->lock);
	fails = w->faults.fails == c->rank + 1 && w->devices[c->rank].calls > w->faults.after;
	w->devices[c->rank].calls++;
	if (!fails && item.what == ALL_REDUCE && told_s(c, item.count * 4) < 0) {
		c->failure = "invalid usage: no algorithm/protocol available";
		pthread_mutex_unlock(&w->lock);
		return 0;
	}
	if (fails) {
		group_failed = true;
		pthread_mutex_unlock(&w->lock);
		return gf_error_set(err, -EIO, "ncclSend: unhandled error");
	}
	if (!c->ready || !c->exists || c->busy)
		fake_complain(w, "a call on a communicator that is not ready");
	if (op && group_stream && group_stream != s)
		fake_complain(w, "a group on two streams");
	if (!op)
		op = fake_op(s, NCCL);
	if (op->nitems == ITEMS_MAX)
		abort();
	item.comm = c;
	item.captured = s->capture != NULL;
	if (!item.captured)
		item.index = (*count_of(&item))++;
	else if (!*count_of(&item))
		fake_complain(w, "a capture before ranks are connected");
	op->items[op->nitems++] = item;
	if (!group)
		keep_busy(c);
	take_time(op, &item, w->costs);
	w->counts.misaligned += (item.what == SEND || item.what == RECV) &&
				item.count >= LINE_BYTES && (uintptr_t)item.data % LINE_BYTES;
	group_stream = s;
	pthread_mutex_unlock(&w->lock);
	return 0;
}

static int nccl_all_reduce(struct gf_nccl_comm *c, struct gf_gpu_stream *s, float *data,
			   size_t count_elems, struct gf_error *err)
{
	return nccl_call(c, s, (struct fake_item){ALL_REDUCE, .data = data, .count = count_elems},
			 err);
}

static int nccl_reduce_scatter(struct gf_nccl_comm *c, struct gf_gpu_stream *s, float *data,
			       size_t part_elems, int rank, struct gf_error *err)
{
	if (rank != c->me)
		fake_complain(c->world, "another rank's part");
	return nccl_call(
		c, s, (struct fake_item){REDUCE_SCATTER, .data = data, .count = part_elems}, err);
}

static int nccl_all_gather(struct gf_nccl_comm *c, struct gf_gpu_stream *s, float *data,
			   size_t part_elems, int rank, struct gf_error *err)
{
	if (rank != c->me)
		fake_complain(c->world, "another rank's part");
	return nccl_call(c, s, (struct fake_item){ALL_GATHER, .data = data, .count = part_elems},
			 err);
}

static int nccl_send(struct gf_nccl_comm *c, struct gf_gpu_stream *s, const void *data,
		     size_t size_bytes, int peer, struct gf_error *err)
{
	return nccl_call(c, s,
			 (struct fake_item){SEND, .data = (void *)(size_t)data, .count = size_bytes,
					    .peer = peer},
			 err);
}

static int nccl_recv(struct gf_nccl_comm *c, struct gf_gpu_stream *s, void *data, size_t size_bytes,
		     int peer, struct gf_error *err)
{
	return nccl_call(c, s,
			 (struct fake_item){RECV, .data = data, .count = size_bytes, .peer = peer},
			 err);
}

static const struct gf_nccl_ops nccl_ops = {
	.name = "fake",
	.version = 22809,
	.unique_id = nccl_unique_id,
	.tell = nccl_tell,
	.untell = nccl_untell,
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
