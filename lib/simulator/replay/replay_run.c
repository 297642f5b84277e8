/* SPDX-License-Identifier: BSD-3-Clause */
#include "simulator/replay/replay_run.h"

#include <math.h>

#include "base/array.h"
#include "base/heap.h"
#include "collectives/verify.h"
#include "documents/start_rule.h"
#include "simulator/step_state.h"

/* --- the gate -------------------------------------------------------------- */

/*
 * Decides when each message may start in a replay with compute beside it, by the step model's rules
 * (simulator/step.h). A message is active from its first rank's start until all ranks' steps have
 * ended.
 *
 * A rank takes up a message when its own backward has made the gradients. Backward loses time while
 * the rank has messages under way. So whenever a rank gets its first message or ends its last, the
 * times at which it will take up the others are computed anew, and its events of an older version
 * are ignored.
 */

static double factor_of(const struct gf_replay_run *r, int rank)
{
	const double *factor = r->in->compute->factor;

	return factor ? factor[rank] : 1;
}

static double backward_start_s(const struct gf_replay_run *r, int rank)
{
	return r->in->compute->forward_end_s[rank];
}

/* When this rank's backward makes the message ready, as things stand. */
static double ready_s(const struct gf_replay_run *r, size_t message, int rank)
{
	double start = backward_start_s(r, rank);
	double at =
		start + factor_of(r, rank) * r->in->messages[message].work_s + r->gate.lag_s[rank];
	double from = fmax(r->now_s, start);

	if (at <= from)
		return fmax(at, r->now_s);
	return from + (at - from) * r->gate.slowdown[rank];
}

/* Does compute stand still before it has made the message ready? Those that it waits for come
 * earlier. */
static bool is_held(const struct gf_replay_run *r, size_t message)
{
	for (size_t m = r->gate.first; m < message; m++)
		if (r->in->messages[m].needed_s > 0 && !r->gate.over[m] &&
		    r->in->messages[m].needed_s < r->in->messages[message].work_s)
			return true;
	return false;
}

static void foretell(struct gf_replay_run *r, size_t message, int rank)
{
	size_t id = message * (size_t)r->in->ranks + (size_t)rank;

	if (!r->gate.begun[id] && !is_held(r, message))
		gf_events_add(&r->events, (struct gf_event){.at_s = ready_s(r, message, rank),
							    .kind = GF_REPLAY_READY,
							    .version = r->gate.version[rank],
							    .id = id});
}

/* May the next message start once its gradients are made, which each rank's event will say? */
static bool open(const struct gf_replay_run *r)
{
	size_t next = r->gate.next;

	return next < r->in->nmessages &&
	       gf_may_start(&(struct gf_held){
		       .simultaneous = r->in->messages[next].mode == GF_MODE_SIMULTANEOUS,
		       .active = r->gate.active,
		       .lanes = r->in->compute->lanes,
	       });
}

/* Looks at the next message when another has started or ended. */
static void look(struct gf_replay_run *r)
{
	if (r->gate.foretold || !open(r))
		return;
	r->gate.foretold = true;
	for (int rank = 0; rank < r->in->ranks; rank++)
		foretell(r, r->gate.next, rank);
}

/* The end of the rank's backward, as slowed until now. */
static double rank_backward_end_s(const struct gf_replay_run *r, int rank)
{
	return backward_start_s(r, rank) + factor_of(r, rank) * r->in->compute->backward_s +
	       r->gate.lag_s[rank];
}

static double backward_left_s(const struct gf_replay_run *r, int rank)
{
	double at = fmax(r->now_s, backward_start_s(r, rank));
	double end = rank_backward_end_s(r, rank);
	/* lag_s knows what was lost until then */
	double since = fmax(r->gate.since_s[rank], backward_start_s(r, rank));

	return since + fmax(end - since, 0) * r->gate.slowdown[rank] - at;
}

double gf_replay_gate_beside_s(const struct gf_replay_run *r, size_t message, int rank, int peer)
{
	const struct gf_replay_message *m = &r->in->messages[message];
	double left_s;

	if (!r->in->compute || !m->mutual)
		return 0;
	left_s = backward_left_s(r, rank);
	if (peer >= 0)
		left_s = fmax(left_s, backward_left_s(r, peer));
	return fmax(left_s, 0);
}

/* By how much the messages that the rank has under way slow its backward. */
static double slowdown(const struct gf_replay_run *r, int rank)
{
	const struct gf_replay_gate *g = &r->gate;
	double most = 1;

	for (size_t m = g->first; m < g->next; m++)
		if (g->begun[m * (size_t)r->in->ranks + (size_t)rank] && !g->over[m])
			most = fmax(most, gf_sim_slowdown(r->in->messages[m].mutual,
							  r->in->compute->slowdown, g->busy[rank]));
	return most;
}

/* A rank has one message more (or less, -1) under way. */
static void change_busy(struct gf_replay_run *r, int rank, int by)
{
	struct gf_replay_gate *g = &r->gate;
	double from = fmax(g->since_s[rank], backward_start_s(r, rank));
	double end = rank_backward_end_s(r, rank);
	double was = g->slowdown[rank], now;

	g->busy[rank] += by;
	now = slowdown(r, rank);
	if (now == was)
		return;
	if (end > from)
		g->lag_s[rank] +=
			fmin(fmax(r->now_s - from, 0), (end - from) * was) * (1 - 1 / was);
	g->slowdown[rank] = now;
	g->since_s[rank] = r->now_s;
	g->version[rank]++;
	for (size_t m = 0; m < g->next; m++)
		if (g->waiting[m])
			foretell(r, m, rank);
	if (g->foretold)
		foretell(r, g->next, rank);
}

/* A rank's compute that has stood still for the message goes on. */
static void resume(struct gf_replay_run *r, size_t message, int rank)
{
	struct gf_replay_gate *g = &r->gate;
	const double stood_at_s =
		backward_start_s(r, rank) + factor_of(r, rank) * r->in->messages[message].needed_s;

	if (r->now_s - stood_at_s > g->lag_s[rank]) {
		g->lag_s[rank] = r->now_s - stood_at_s;
		g->since_s[rank] = r->now_s;
	}
	g->version[rank]++;
	for (size_t m = 0; m < g->next; m++)
		if (g->waiting[m])
			foretell(r, m, rank);
	if (g->foretold)
		foretell(r, g->next, rank);
}

static void ended(struct gf_replay_run *r, size_t message)
{
	struct gf_replay_gate *g = &r->gate;

	r->out->message_end_s[message] = r->now_s;
	g->active--;
	g->over[message] = true;
	while (g->first < g->next && g->over[g->first])
		g->first++;
	for (int rank = 0; rank < r->in->ranks; rank++)
		change_busy(r, rank, -1);
	for (int rank = 0; r->in->messages[message].needed_s > 0 && rank < r->in->ranks; rank++)
		resume(r, message, rank);
	look(r);
}

static void admit(struct gf_replay_run *r, size_t message)
{
	struct gf_replay_gate *g = &r->gate;

	r->out->message_start_s[message] = r->now_s;
	g->waiting[message] = (size_t)r->in->ranks;
	g->next++;
	g->foretold = false;
	g->active++;
}

bool gf_replay_gate_ready(struct gf_replay_run *r, const struct gf_event *event)
{
	struct gf_replay_gate *g = &r->gate;
	size_t message = event->id / (size_t)r->in->ranks;
	int rank = (int)(event->id % (size_t)r->in->ranks);

	if (event->version != g->version[rank] || g->begun[event->id])
		return false;
	g->begun[event->id] = true;
	if (message == g->next)
		admit(r, message);
	g->waiting[message]--;
	change_busy(r, rank, 1);
	look(r);
	/* its steps, if any, were all done by the others */
	if (!g->left[message] && !g->waiting[message])
		ended(r, message);
	return true;
}

void gf_replay_gate_done(struct gf_replay_run *r, size_t message)
{
	if (--r->gate.left[message] == 0 && !r->gate.waiting[message])
		ended(r, message);
}

static void gate_init(struct gf_replay_run *r)
{
	struct gf_replay_gate *g = &r->gate;
	size_t p = (size_t)r->in->ranks, m;

	g->begun = gf_xcalloc(r->in->nmessages * p + 1, sizeof(*g->begun));
	g->left = gf_xcalloc(r->in->nmessages + 1, sizeof(*g->left));
	g->waiting = gf_xcalloc(r->in->nmessages + 1, sizeof(*g->waiting));
	g->over = gf_xcalloc(r->in->nmessages + 1, sizeof(*g->over));
	g->lag_s = gf_xcalloc(p, sizeof(*g->lag_s));
	g->slowdown = gf_xcalloc(p, sizeof(*g->slowdown));
	g->since_s = gf_xcalloc(p, sizeof(*g->since_s));
	g->busy = gf_xcalloc(p, sizeof(*g->busy));
	g->version = gf_xcalloc(p, sizeof(*g->version));
	for (m = 0; m < p; m++)
		g->slowdown[m] = 1;
	for (m = 0; m < r->in->nmessages; m++)
		g->left[m] = r->first[(m + 1) * p] - r->first[m * p];
	look(r);
}

static void gate_release(struct gf_replay_gate *g)
{
	free(g->begun);
	free(g->left);
	free(g->waiting);
	free(g->over);
	free(g->lag_s);
	free(g->slowdown);
	free(g->since_s);
	free(g->busy);
	free(g->version);
	*g = (struct gf_replay_gate){0};
}

/* --- beginning and end ----------------------------------------------------- */

static void init_users(struct gf_replay_run *r, size_t first, const struct gf_schedule *s,
		       size_t *total)
{
	for (size_t i = 0; i < s->ndeps; i++)
		r->nodes[first + s->deps[i]].nusers++;
	for (size_t i = 0; i < s->nsteps; i++) {
		struct gf_replay_node *n = &r->nodes[first + i];

		n->first_user = *total;
		*total += n->nusers;
		n->nusers = 0;
		/* steps without dependencies wait for GF_REPLAY_BEGIN */
		n->waiting = n->unposted = n->step->ndeps ? n->step->ndeps : 1;
	}
	for (size_t i = 0; i < s->nsteps; i++)
		for (size_t k = 0; k < s->steps[i].ndeps; k++) {
			struct gf_replay_node *n =
				&r->nodes[first + s->deps[s->steps[i].first_dep + k]];

			r->users[n->first_user + n->nusers++] = first + i;
		}
}

/* A stream per peer that a rank sends to; its sends know theirs. */
static void init_streams(struct gf_replay_run *r, size_t first, const struct gf_schedule *s)
{
	size_t *to = gf_xcalloc((size_t)s->ranks, sizeof(*to)), i;

	for (i = 0; i < s->nsteps; i++) {
		int peer = s->steps[i].peer;

		r->nodes[first + i].next = GF_REPLAY_NOBODY;
		if (s->steps[i].op != GF_STEP_SEND)
			continue;
		if (!to[peer]) {
			*gf_array_push(&r->streams, &r->nstreams, &r->streams_capacity) =
				(struct gf_replay_stream){GF_REPLAY_NOBODY, GF_REPLAY_NOBODY};
			to[peer] = r->nstreams;
		}
		r->nodes[first + i].stream = to[peer] - 1;
	}
	free(to);
}

static int init_message(struct gf_replay_run *r, size_t m, struct gf_error *err)
{
	const struct gf_replay_message *message = &r->in->messages[m];
	size_t base = m * (size_t)r->in->ranks, i;
	uint32_t **partners = message->partners;
	int rank, rc;

	rc = partners ? 0 : gf_verify_shape(message->ranks, r->in->ranks, &partners, err);
	if (rc)
		return rc;
	for (rank = 0; rank < r->in->ranks; rank++) {
		const struct gf_schedule *s = &message->ranks[rank];
		size_t first = r->first[base + (size_t)rank];
		double late_s = r->in->late_s ? r->in->late_s[rank] : 0;

		for (i = 0; i < s->nsteps; i++) {
			const struct gf_step *step = &s->steps[i];
			struct gf_replay_node *n = &r->nodes[first + i];

			n->step = step;
			n->rank = rank;
			n->message = (uint32_t)m;
			n->times = &r->out->steps[m][rank][i];
			if (step->peer >= 0)
				n->partner =
					r->first[base + (size_t)step->peer] + partners[rank][i];
		}
		init_streams(r, first, s);
		if (r->in->compute)
			continue;
		gf_events_add(&r->events, (struct gf_event){
						  .at_s = fmax(message->start_s, late_s),
						  .kind = GF_REPLAY_BEGIN,
						  .id = base + (size_t)rank,
					  });
	}
	if (!message->partners)
		gf_partners_free(partners, r->in->ranks);
	return 0;
}

/* Counts nodes and dependencies, makes room for the results. */
static size_t init_counts(struct gf_replay_run *r)
{
	const struct gf_replay_input *in = r->in;
	size_t ndeps = 0, m, p = (size_t)in->ranks;

	r->first = gf_xcalloc(in->nmessages * p + 1, sizeof(*r->first));
	r->free_s = gf_xcalloc(p, sizeof(*r->free_s));
	r->out->message_end_s = gf_xcalloc(in->nmessages, sizeof(*r->out->message_end_s));
	r->out->message_start_s = gf_xcalloc(in->nmessages, sizeof(*r->out->message_start_s));
	r->out->steps = gf_xcalloc(in->nmessages, sizeof(*r->out->steps));
	r->out->nmessages = in->nmessages;
	r->out->ranks = in->ranks;
	for (m = 0; m < in->nmessages; m++) {
		r->out->message_start_s[m] = in->messages[m].start_s;
		r->out->message_end_s[m] = in->messages[m].start_s;
		r->out->steps[m] = gf_xcalloc(p, sizeof(**r->out->steps));
		for (int rank = 0; rank < in->ranks; rank++) {
			const struct gf_schedule *s = &in->messages[m].ranks[rank];

			r->out->steps[m][rank] = gf_xcalloc(s->nsteps, sizeof(***r->out->steps));
			r->first[m * p + (size_t)rank] = r->nnodes;
			r->nnodes += s->nsteps;
			ndeps += s->ndeps;
		}
	}
	r->first[in->nmessages * p] = r->nnodes;
	return ndeps;
}

int gf_replay_run_init(struct gf_replay_run *r, const struct gf_replay_input *in,
		       struct gf_replay_result *out, struct gf_error *err)
{
	size_t total = 0, m, ndeps;
	int rank, rc;

	*r = (struct gf_replay_run){.in = in, .out = out};
	ndeps = init_counts(r);
	gf_fluid_init(&r->fluid, in->ranks, in->net, in->slowdown, in->slow_links, in->nslow_links,
		      GF_REPLAY_FLOWN);
	for (m = 0; m < in->net->nlevels; m++)
		r->reduce_s_per_byte =
			fmax(r->reduce_s_per_byte, in->net->links[m].gamma_s_per_byte);
	r->nodes = gf_xcalloc(r->nnodes, sizeof(*r->nodes));
	r->users = gf_xcalloc(ndeps, sizeof(*r->users));
	for (m = 0; m < in->nmessages; m++) {
		rc = init_message(r, m, err);
		if (rc)
			return rc;
		for (rank = 0; rank < in->ranks; rank++)
			init_users(r, r->first[m * (size_t)in->ranks + (size_t)rank],
				   &in->messages[m].ranks[rank], &total);
	}
	if (in->compute)
		gate_init(r);
	return 0;
}

void gf_replay_run_release(struct gf_replay_run *r)
{
	for (int rank = 0; r->gate.lag_s && rank < r->in->ranks; rank++)
		r->out->backward_end_s = fmax(r->out->backward_end_s, rank_backward_end_s(r, rank));
	gf_fluid_release(&r->fluid);
	gate_release(&r->gate);
	gf_events_release(&r->events);
	free(r->first);
	free(r->nodes);
	free(r->users);
	free(r->free_s);
	free(r->streams);
	free(r->todo);
	*r = (struct gf_replay_run){0};
}

void gf_replay_result_release(struct gf_replay_result *r)
{
	if (!r)
		return;
	for (size_t m = 0; m < r->nmessages; m++) {
		for (int rank = 0; rank < r->ranks; rank++)
			free(r->steps[m][rank]);
		free(r->steps[m]);
	}
	free(r->steps);
	free(r->message_start_s);
	free(r->message_end_s);
	*r = (struct gf_replay_result){0};
}
