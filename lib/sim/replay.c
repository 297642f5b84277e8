/* SPDX-License-Identifier: BSD-3-Clause */
#include "sim/replay.h"

#include <errno.h>
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>

#include "base/array.h"
#include "base/heap.h"
#include "coll/verify_parts.h"
#include "sim/events.h"
#include "sim/fluid.h"

enum { STARTED = 1, MOVING = 2, ARRIVED = 4, DONE = 8 };

/* BEGIN: a rank takes up a message. FLOW: latency has passed. FLOWN: all bytes
 * are there. REDUCED: a rank's reduction has ended. */
enum event { BEGIN, FLOW, FLOWN, REDUCED };

struct node { /* a step of one rank of one message */
	const struct gf_step *step;
	int rank;
	uint32_t message;
	uint32_t waiting;  /* dependencies not done */
	uint32_t unposted; /* those that keep a receive from being posted */
	uint8_t flags;
	size_t partner;    /* of a send or receive */
	size_t stream;     /* of a send */
	size_t next;       /* the send that waits behind it in its stream */
	size_t first_user;
	uint32_t nusers;
	struct gf_replay_times *times;
};

/* Messages of one schedule between two ranks move one after the other. */
struct stream {
	size_t moving, last; /* sends, or NOBODY */
};

#define NOBODY SIZE_MAX

struct replay {
	const struct gf_replay_input *in;
	struct gf_replay_result *out;
	size_t *first; /* [message * ranks + rank]: its first node */
	struct node *nodes;
	size_t nnodes, ndone;
	size_t *users; /* nodes that depend on a node */
	double *free_s; /* per rank: when its processor is free */
	struct stream *streams;
	size_t nstreams, streams_capacity;
	double now_s;
	struct gf_fluid fluid;
	struct gf_events events;
	size_t *todo; /* nodes to look at, now, in this order */
	size_t looked, ntodo, todo_capacity;
};

static void look_at(struct replay *r, size_t node)
{
	*gf_array_push(&r->todo, &r->ntodo, &r->todo_capacity) = node;
}

static void add_event(struct replay *r, enum event kind, double at_s, size_t id)
{
	gf_events_add(&r->events,
		      (struct gf_event){.at_s = at_s, .kind = kind, .id = id});
}

static double bytes_of(const struct replay *r, const struct node *n)
{
	return (double)n->step->range.count *
	       (double)r->in->messages[n->message].elem_bytes;
}

/* Takes one off what its users wait for: at the end, and at a send's start
 * where a receive-and-reduce waits for it to be posted. */
static void tell_users(struct replay *r, size_t id, uint8_t event)
{
	struct node *n = &r->nodes[id];
	uint32_t k;

	for (k = 0; k < n->nusers; k++) {
		size_t user = r->users[n->first_user + k];
		struct node *u = &r->nodes[user];
		bool early = n->step->op == GF_STEP_SEND &&
			     u->step->op == GF_STEP_RECV_REDUCE;

		if (event == DONE)
			u->waiting--;
		if (event == (early ? STARTED : DONE))
			u->unposted--;
		if (!u->waiting || !u->unposted)
			look_at(r, user);
	}
}

static void begin(struct replay *r, size_t id)
{
	struct node *n = &r->nodes[id];

	if (n->flags & STARTED)
		return;
	n->flags |= STARTED;
	n->times->start_s = r->now_s;
	tell_users(r, id, STARTED);
}

static void finish(struct replay *r, size_t id)
{
	struct node *n = &r->nodes[id];
	double *end_s = &r->out->message_end_s[n->message];

	n->flags |= DONE;
	n->times->end_s = r->now_s;
	if (r->now_s > *end_s)
		*end_s = r->now_s;
	r->ndone++;
	tell_users(r, id, DONE);
}

/* The rank's processor adds what has come, one reduction after the other. */
static void reduce(struct replay *r, size_t id)
{
	const struct node *n = &r->nodes[id];
	const struct gf_replay_input *in = r->in;
	double *free_s = &r->free_s[n->rank];
	double takes_s = in->reduce_s_per_byte * bytes_of(r, n) *
			 (in->slowdown ? in->slowdown[n->rank] : 1);

	*free_s = fmax(*free_s, r->now_s) + takes_s;
	if (*free_s > r->now_s)
		add_event(r, REDUCED, *free_s, id);
	else
		finish(r, id);
}

static void look_at_local(struct replay *r, size_t id)
{
	struct node *n = &r->nodes[id];

	if (n->waiting || n->flags & STARTED)
		return;
	begin(r, id);
	if (n->step->op == GF_STEP_REDUCE)
		reduce(r, id);
	else
		finish(r, id);
}

/* Whatever node `id` is ready for. */
static void advance(struct replay *r, size_t id)
{
	struct node *n = &r->nodes[id], *other;
	size_t send;

	if (n->flags & DONE)
		return;
	if (n->step->peer < 0) {
		look_at_local(r, id);
		return;
	}
	if (n->flags & ARRIVED) {
		if (!n->waiting) {
			n->flags &= (uint8_t)~ARRIVED;
			reduce(r, id);
		}
		return;
	}
	if (n->unposted || n->flags & MOVING)
		return;
	begin(r, id);
	other = &r->nodes[n->partner];
	if (!(other->flags & STARTED))
		return;
	n->flags |= MOVING;
	other->flags |= MOVING;
	send = n->step->op == GF_STEP_SEND ? id : n->partner;
	add_event(r, FLOW,
		  r->now_s + gf_fluid_latency_s(&r->fluid, r->nodes[send].rank,
						n->rank == r->nodes[send].rank
							? other->rank
							: n->rank),
		  send);
}

static void arrive(struct replay *r, size_t send)
{
	size_t receive = r->nodes[send].partner;
	struct node *n = &r->nodes[receive];

	if (n->step->op == GF_STEP_RECV_REDUCE) {
		n->flags |= ARRIVED;
		look_at(r, receive);
	} else {
		finish(r, receive);
	}
	finish(r, send);
}

static void move(struct replay *r, size_t send)
{
	const struct node *n = &r->nodes[send];

	gf_fluid_start(&r->fluid, n->rank, n->step->peer, bytes_of(r, n), send,
		       r->now_s);
}

static void queue(struct replay *r, size_t send)
{
	struct stream *stream = &r->streams[r->nodes[send].stream];

	if (stream->moving == NOBODY) {
		stream->moving = send;
		move(r, send);
	} else {
		r->nodes[stream->last].next = send;
	}
	stream->last = send;
}

static void flown(struct replay *r, size_t send)
{
	struct stream *stream = &r->streams[r->nodes[send].stream];

	stream->moving = r->nodes[send].next;
	if (stream->moving != NOBODY)
		move(r, stream->moving);
	arrive(r, send);
}

static void begin_message(struct replay *r, size_t which)
{
	size_t id;

	for (id = r->first[which]; id < r->first[which + 1]; id++) {
		struct node *n = &r->nodes[id];

		if (n->step->ndeps)
			continue;
		n->waiting = n->unposted = 0;
		look_at(r, id);
	}
}

static void handle(struct replay *r, const struct gf_event *event)
{
	size_t send;

	switch ((enum event)event->kind) {
	case BEGIN:
		begin_message(r, event->id);
		break;
	case FLOW:
		queue(r, event->id);
		break;
	case FLOWN:
		send = gf_fluid_finish(&r->fluid, event);
		if (send != SIZE_MAX)
			flown(r, send);
		break;
	case REDUCED:
		finish(r, event->id);
		break;
	}
}

/* All events of one instant, and what follows at once from them, come before
 * rates are shared out anew. */
static void run(struct replay *r)
{
	const struct gf_event *next;
	struct gf_event event;

	while ((next = gf_events_first(&r->events))) {
		r->now_s = next->at_s;
		do {
			gf_events_take(&r->events, &event);
			handle(r, &event);
			while (r->looked < r->ntodo)
				advance(r, r->todo[r->looked++]);
			r->looked = r->ntodo = 0;
			next = gf_events_first(&r->events);
		} while (next && next->at_s == r->now_s);
		gf_fluid_settle(&r->fluid, r->now_s, &r->events);
	}
}

/* --- setting up ------------------------------------------------------------ */

static void init_users(struct replay *r, size_t first,
		       const struct gf_schedule *s, size_t *total)
{
	size_t i, k;

	for (i = 0; i < s->ndeps; i++)
		r->nodes[first + s->deps[i]].nusers++;
	for (i = 0; i < s->nsteps; i++) {
		struct node *n = &r->nodes[first + i];

		n->first_user = *total;
		*total += n->nusers;
		n->nusers = 0;
		/* steps without dependencies wait for BEGIN */
		n->waiting = n->unposted = n->step->ndeps ? n->step->ndeps : 1;
	}
	for (i = 0; i < s->nsteps; i++)
		for (k = 0; k < s->steps[i].ndeps; k++) {
			struct node *n =
				&r->nodes[first +
					  s->deps[s->steps[i].first_dep + k]];

			r->users[n->first_user + n->nusers++] = first + i;
		}
}

/* A stream per peer that a rank sends to; its sends know theirs. */
static void init_streams(struct replay *r, size_t first,
			 const struct gf_schedule *s)
{
	size_t *to = gf_xcalloc((size_t)s->ranks, sizeof(*to)), i;

	for (i = 0; i < s->nsteps; i++) {
		int peer = s->steps[i].peer;

		r->nodes[first + i].next = NOBODY;
		if (s->steps[i].op != GF_STEP_SEND)
			continue;
		if (!to[peer]) {
			*gf_array_push(&r->streams, &r->nstreams,
				       &r->streams_capacity) =
				(struct stream){NOBODY, NOBODY};
			to[peer] = r->nstreams;
		}
		r->nodes[first + i].stream = to[peer] - 1;
	}
	free(to);
}

static int init_message(struct replay *r, size_t m, struct gf_error *err)
{
	const struct gf_replay_message *message = &r->in->messages[m];
	size_t base = m * (size_t)r->in->ranks, i;
	uint32_t **partners;
	int rank, rc;

	rc = gf_verify_shape(message->ranks, r->in->ranks, &partners, err);
	if (rc)
		return rc;
	for (rank = 0; rank < r->in->ranks; rank++) {
		const struct gf_schedule *s = &message->ranks[rank];
		size_t first = r->first[base + (size_t)rank];
		double late_s = r->in->late_s ? r->in->late_s[rank] : 0;

		for (i = 0; i < s->nsteps; i++) {
			const struct gf_step *step = &s->steps[i];
			struct node *n = &r->nodes[first + i];

			n->step = step;
			n->rank = rank;
			n->message = (uint32_t)m;
			n->times = &r->out->steps[m][rank][i];
			if (step->peer >= 0)
				n->partner =
					r->first[base + (size_t)step->peer] +
					partners[rank][i];
		}
		free(partners[rank]);
		init_streams(r, first, s);
		add_event(r, BEGIN, fmax(message->start_s, late_s),
			  base + (size_t)rank);
	}
	free(partners);
	return 0;
}

/* Counts nodes and dependencies, makes room for the results. */
static size_t init_counts(struct replay *r)
{
	const struct gf_replay_input *in = r->in;
	size_t ndeps = 0, m, p = (size_t)in->ranks;
	int rank;

	r->first = gf_xcalloc(in->nmessages * p + 1, sizeof(*r->first));
	r->free_s = gf_xcalloc(p, sizeof(*r->free_s));
	r->out->message_end_s =
		gf_xcalloc(in->nmessages, sizeof(*r->out->message_end_s));
	r->out->steps = gf_xcalloc(in->nmessages, sizeof(*r->out->steps));
	r->out->nmessages = in->nmessages;
	r->out->ranks = in->ranks;
	for (m = 0; m < in->nmessages; m++) {
		r->out->message_end_s[m] = in->messages[m].start_s;
		r->out->steps[m] = gf_xcalloc(p, sizeof(**r->out->steps));
		for (rank = 0; rank < in->ranks; rank++) {
			const struct gf_schedule *s =
				&in->messages[m].ranks[rank];

			r->out->steps[m][rank] =
				gf_xcalloc(s->nsteps, sizeof(***r->out->steps));
			r->first[m * p + (size_t)rank] = r->nnodes;
			r->nnodes += s->nsteps;
			ndeps += s->ndeps;
		}
	}
	r->first[in->nmessages * p] = r->nnodes;
	return ndeps;
}

static int init(struct replay *r, struct gf_error *err)
{
	const struct gf_replay_input *in = r->in;
	size_t total = 0, m, ndeps = init_counts(r);
	int rank, rc;

	gf_fluid_init(&r->fluid, in->ranks, in->levels, in->nlevels,
		      in->slowdown, FLOWN);
	r->nodes = gf_xcalloc(r->nnodes, sizeof(*r->nodes));
	r->users = gf_xcalloc(ndeps, sizeof(*r->users));
	for (m = 0; m < in->nmessages; m++) {
		rc = init_message(r, m, err);
		if (rc)
			return rc;
		for (rank = 0; rank < in->ranks; rank++)
			init_users(r,
				   r->first[m * (size_t)in->ranks +
					    (size_t)rank],
				   &in->messages[m].ranks[rank], &total);
	}
	return 0;
}

static int check_done(const struct replay *r, struct gf_error *err)
{
	size_t id;

	for (id = 0; id < r->nnodes && r->ndone < r->nnodes; id++) {
		const struct node *n = &r->nodes[id];

		if (!(n->flags & DONE))
			return gf_error_set(err, -EINVAL,
					    "message %u: a step of rank %d "
					    "waits for ever", n->message,
					    n->rank);
	}
	return 0;
}

int gf_replay(const struct gf_replay_input *in, struct gf_replay_result *out,
	      struct gf_error *err)
{
	struct gf_replay_result result = {0};
	struct replay r = {.in = in, .out = &result};
	size_t m;
	int rc = init(&r, err);

	if (!rc) {
		run(&r);
		rc = check_done(&r, err);
	}
	for (m = 0; m < in->nmessages; m++)
		result.end_s = fmax(result.end_s, result.message_end_s[m]);
	gf_fluid_release(&r.fluid);
	gf_events_release(&r.events);
	free(r.first);
	free(r.nodes);
	free(r.users);
	free(r.free_s);
	free(r.streams);
	free(r.todo);
	if (rc)
		gf_replay_result_release(&result);
	else
		*out = result;
	return rc;
}

void gf_replay_result_release(struct gf_replay_result *r)
{
	size_t m;
	int rank;

	if (!r)
		return;
	for (m = 0; m < r->nmessages; m++) {
		for (rank = 0; rank < r->ranks; rank++)
			free(r->steps[m][rank]);
		free(r->steps[m]);
	}
	free(r->steps);
	free(r->message_end_s);
	*r = (struct gf_replay_result){0};
}
