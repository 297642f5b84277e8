/* SPDX-License-Identifier: BSD-3-Clause */
#include "simulator/replay/replay.h"

#include <math.h>
#include <stdbool.h>

#include "base/array.h"
#include "simulator/replay/replay_run.h"
#include "simulator/step_state.h"

/* The states of a step. */
enum {
	STARTED = 1,
	MOVING = 2,
	ARRIVED = 4,
	DONE = 8,
	ENCODING = 16,
	ENCODED = 32,
};

static void look_at(struct gf_replay_run *r, size_t node)
{
	*gf_array_push(&r->todo, &r->ntodo, &r->todo_capacity) = node;
}

double gf_replay_bytes(const struct gf_replay_element *e, size_t count)
{
	return e->codec ? (double)gf_codec_wire_bytes(e->codec, count) : (double)count * e->bytes;
}

static void add_event(struct gf_replay_run *r, enum gf_replay_event kind, double at_s, size_t id)
{
	gf_events_add(&r->events, (struct gf_event){.at_s = at_s, .kind = kind, .id = id});
}

static double bytes_of(const struct gf_replay_run *r, const struct gf_replay_node *n)
{
	return gf_replay_bytes(&r->in->messages[n->message].element, n->step->range.count);
}

/* Takes one off what its users wait for: at the end, and at a send's start where a
 * receive-and-reduce waits for it to be posted. */
static void tell_users(struct gf_replay_run *r, size_t id, uint8_t event)
{
	struct gf_replay_node *n = &r->nodes[id];

	for (uint32_t k = 0; k < n->nusers; k++) {
		size_t user = r->users[n->first_user + k];
		struct gf_replay_node *u = &r->nodes[user];
		bool early = n->step->op == GF_STEP_SEND && u->step->op == GF_STEP_RECV_REDUCE;

		if (event == DONE)
			u->waiting--;
		if (event == (early ? STARTED : DONE))
			u->unposted--;
		if (!u->waiting || !u->unposted)
			look_at(r, user);
	}
}

static void begin(struct gf_replay_run *r, size_t id)
{
	struct gf_replay_node *n = &r->nodes[id];

	if (n->flags & STARTED)
		return;
	n->flags |= STARTED;
	n->times->start_s = n->times->moves_s = r->now_s;
	tell_users(r, id, STARTED);
}

static void finish(struct gf_replay_run *r, size_t id)
{
	struct gf_replay_node *n = &r->nodes[id];
	double *end_s = &r->out->message_end_s[n->message];

	n->flags |= DONE;
	n->times->end_s = r->now_s;
	if (r->now_s > *end_s)
		*end_s = r->now_s;
	r->ndone++;
	tell_users(r, id, DONE);
	if (r->in->compute)
		gf_replay_gate_done(r, n->message);
}

/* The cost of reducing data of another rank, as measured on the level between. */
static double reduce_s_per_byte(const struct gf_replay_run *r, const struct gf_replay_node *n)
{
	size_t level;

	if (n->step->peer < 0)
		return r->reduce_s_per_byte;
	level = gf_fluid_hop(&r->fluid, n->rank, n->step->peer, 0).level;
	return r->in->net->links[level].gamma_s_per_byte;
}

/* The rank's processor is busy for that long, after what it does; until when.
 */
static double occupy(struct gf_replay_run *r, int rank, double takes_s)
{
	const struct gf_replay_input *in = r->in;
	double *free_s = &r->free_s[rank];

	*free_s = fmax(*free_s, r->now_s) + takes_s * (in->slowdown ? in->slowdown[rank] : 1);
	return *free_s;
}

/* What the processor does for a step: it encodes before a send, decodes what came, adds it. */
static double work_s(const struct gf_replay_run *r, const struct gf_replay_node *n)
{
	const struct gf_replay_message *m = &r->in->messages[n->message];
	double elems = (double)n->step->range.count;
	enum gf_step_op op = n->step->op;
	double takes_s = 0;

	if (op == GF_STEP_SEND || op == GF_STEP_ROUND)
		takes_s += m->encode_s * elems;
	if (op == GF_STEP_RECV || op == GF_STEP_RECV_REDUCE || op == GF_STEP_ROUND)
		takes_s += m->decode_s * elems;
	if (op == GF_STEP_RECV_REDUCE || op == GF_STEP_REDUCE)
		takes_s += reduce_s_per_byte(r, n) * bytes_of(r, n);
	return takes_s;
}

/* What takes that long alone, for that rank or for both of a transfer. */
static double hindered_s(const struct gf_replay_run *r, const struct gf_replay_node *n, int peer,
			 double alone_s)
{
	return gf_sim_hindered_s(gf_sim_drag(r->in->messages[n->message].mutual), alone_s,
				 gf_replay_gate_beside_s(r, n->message, n->rank, peer));
}

/* A step ends when the processor has done its work. */
static void work(struct gf_replay_run *r, size_t id)
{
	const struct gf_replay_node *n = &r->nodes[id];
	double until_s = occupy(r, n->rank, hindered_s(r, n, -1, work_s(r, n)));

	if (until_s > r->now_s)
		add_event(r, GF_REPLAY_REDUCED, until_s, id);
	else
		finish(r, id);
}

/* Has the step been encoded, if it is a send? If not, it will be. */
static bool encoded(struct gf_replay_run *r, size_t id)
{
	struct gf_replay_node *n = &r->nodes[id];
	double takes_s;

	if (n->step->op != GF_STEP_SEND || n->flags & ENCODED)
		return true;
	takes_s = hindered_s(r, n, -1, work_s(r, n));
	if (!(takes_s > 0))
		return true;
	if (!(n->flags & ENCODING)) {
		n->flags |= ENCODING;
		add_event(r, GF_REPLAY_ENCODED, occupy(r, n->rank, takes_s), id);
	}
	return false;
}

static void look_at_local(struct gf_replay_run *r, size_t id)
{
	struct gf_replay_node *n = &r->nodes[id];

	if (n->waiting || n->flags & STARTED)
		return;
	begin(r, id);
	if (n->step->op == GF_STEP_COPY)
		finish(r, id);
	else
		work(r, id);
}

/* Whatever node `id` is ready for. */
static void advance(struct gf_replay_run *r, size_t id)
{
	struct gf_replay_node *n = &r->nodes[id], *other;
	double latency_s;
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
			work(r, id);
		}
		return;
	}
	if (n->unposted || n->flags & MOVING || !encoded(r, id))
		return;
	begin(r, id);
	other = &r->nodes[n->partner];
	if (!(other->flags & STARTED))
		return;
	n->flags |= MOVING;
	other->flags |= MOVING;
	n->times->moves_s = other->times->moves_s = r->now_s;
	send = n->step->op == GF_STEP_SEND ? id : n->partner;
	latency_s = gf_fluid_hop(&r->fluid, n->rank, other->rank, bytes_of(r, n)).latency_s;
	add_event(r, GF_REPLAY_FLOW, r->now_s + hindered_s(r, n, other->rank, latency_s), send);
}

static void arrive(struct gf_replay_run *r, size_t send)
{
	size_t receive = r->nodes[send].partner;
	struct gf_replay_node *n = &r->nodes[receive];

	if (n->step->op == GF_STEP_RECV_REDUCE) {
		n->flags |= ARRIVED;
		look_at(r, receive);
	} else {
		work(r, receive);
	}
	finish(r, send);
}

/* Bytes that backward slows are so many more, by what they take alone. */
static void move(struct gf_replay_run *r, size_t send)
{
	const struct gf_replay_node *n = &r->nodes[send];
	double bytes = bytes_of(r, n);
	double alone_s = gf_fluid_hop(&r->fluid, n->rank, n->step->peer, bytes).alone_s;

	if (alone_s > 0)
		bytes *= hindered_s(r, n, n->step->peer, alone_s) / alone_s;
	gf_fluid_start(&r->fluid, n->rank, n->step->peer, bytes, send, r->now_s);
}

static void queue(struct gf_replay_run *r, size_t send)
{
	struct gf_replay_stream *stream = &r->streams[r->nodes[send].stream];

	if (stream->moving == GF_REPLAY_NOBODY) {
		stream->moving = send;
		move(r, send);
	} else {
		r->nodes[stream->last].next = send;
	}
	stream->last = send;
}

static void flown(struct gf_replay_run *r, size_t send)
{
	struct gf_replay_stream *stream = &r->streams[r->nodes[send].stream];
	const size_t next = r->nodes[send].next;
	size_t partner;

	stream->moving = next;
	if (next != GF_REPLAY_NOBODY) {
		partner = r->nodes[next].partner;
		r->nodes[next].times->moves_s = r->nodes[partner].times->moves_s = r->now_s;
		move(r, next);
	}
	arrive(r, send);
}

static void begin_message(struct gf_replay_run *r, size_t which)
{
	for (size_t id = r->first[which]; id < r->first[which + 1]; id++) {
		struct gf_replay_node *n = &r->nodes[id];

		if (n->step->ndeps)
			continue;
		n->waiting = n->unposted = 0;
		look_at(r, id);
	}
}

/* How much longer than its latencies the startup takes if backward runs for left_s of it: the model
 * has startup_extra_s pass evenly with the startup. */
static double startup_extra_s(const struct gf_replay_message *m, double left_s)
{
	double all_s = gf_sim_startup_beside_s(m->mutual, m->startup_s);

	if (left_s <= 0 || !(all_s > 0))
		return 0;
	return m->mutual->startup_extra_s * fmin(left_s / all_s, 1);
}

/* A rank's part in a message, after what precedes it. */
static void take_up(struct gf_replay_run *r, size_t which)
{
	size_t message = which / (size_t)r->in->ranks;
	const struct gf_replay_message *m = &r->in->messages[message];
	int rank = (int)(which % (size_t)r->in->ranks);
	double left_s = gf_replay_gate_beside_s(r, message, rank, -1);
	double at_s = r->now_s + startup_extra_s(m, left_s), before_s;

	if (m->before_s > 0) {
		before_s = gf_sim_hindered_s(gf_sim_drag(m->mutual), m->before_s, left_s);
		at_s = fmax(at_s, occupy(r, rank, before_s));
	}
	if (at_s > r->now_s)
		add_event(r, GF_REPLAY_BEGIN, at_s, which);
	else
		begin_message(r, which);
}

static void handle(struct gf_replay_run *r, const struct gf_event *event)
{
	size_t send;

	switch ((enum gf_replay_event)event->kind) {
	case GF_REPLAY_BEGIN:
		begin_message(r, event->id);
		break;
	case GF_REPLAY_FLOW:
		queue(r, event->id);
		break;
	case GF_REPLAY_FLOWN:
		send = gf_fluid_finish(&r->fluid, event);
		if (send != SIZE_MAX)
			flown(r, send);
		break;
	case GF_REPLAY_ENCODED:
		r->nodes[event->id].flags |= ENCODED;
		look_at(r, event->id);
		break;
	case GF_REPLAY_REDUCED:
		finish(r, event->id);
		break;
	case GF_REPLAY_READY:
		if (gf_replay_gate_ready(r, event))
			take_up(r, event->id);
		break;
	}
}

/* All events of one instant, and what follows at once from them, come before rates are shared out
 * anew. */
static void run(struct gf_replay_run *r)
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

static int check_done(const struct gf_replay_run *r, struct gf_error *err)
{
	for (size_t id = 0; id < r->nnodes && r->ndone < r->nnodes; id++) {
		const struct gf_replay_node *n = &r->nodes[id];

		if (!(n->flags & DONE))
			return gf_error_set(err, -EINVAL,
					    "message %u: a step of rank %d waits for ever",
					    n->message, n->rank);
	}
	return 0;
}

int gf_replay(const struct gf_replay_input *in, struct gf_replay_result *out, struct gf_error *err)
{
	struct gf_replay_result result = {0};
	struct gf_replay_run r;
	int rc = gf_replay_run_init(&r, in, &result, err);

	if (!rc) {
		run(&r);
		rc = check_done(&r, err);
	}
	for (size_t m = 0; m < in->nmessages; m++)
		result.end_s = fmax(result.end_s, result.message_end_s[m]);
	gf_replay_run_release(&r);
	if (rc)
		gf_replay_result_release(&result);
	else
		*out = result;
	return rc;
}
