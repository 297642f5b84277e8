/* SPDX-License-Identifier: BSD-3-Clause */
#include "simulator/replay/replay_run.h"

#include <math.h>
#include <stdlib.h>

#include "base/array.h"
#include "base/heap.h"
#include "collectives/verify.h"

static void init_users(struct gf_replay_run *r, size_t first, const struct gf_schedule *s,
		       size_t *total)
{
	size_t i, k;

	for (i = 0; i < s->ndeps; i++)
		r->nodes[first + s->deps[i]].nusers++;
	for (i = 0; i < s->nsteps; i++) {
		struct gf_replay_node *n = &r->nodes[first + i];

		n->first_user = *total;
		*total += n->nusers;
		n->nusers = 0;
		/* steps without dependencies wait for GF_REPLAY_BEGIN */
		n->waiting = n->unposted = n->step->ndeps ? n->step->ndeps : 1;
	}
	for (i = 0; i < s->nsteps; i++)
		for (k = 0; k < s->steps[i].ndeps; k++) {
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
			struct gf_replay_node *n = &r->nodes[first + i];

			n->step = step;
			n->rank = rank;
			n->message = (uint32_t)m;
			n->times = &r->out->steps[m][rank][i];
			if (step->peer >= 0)
				n->partner =
					r->first[base + (size_t)step->peer] + partners[rank][i];
		}
		free(partners[rank]);
		init_streams(r, first, s);
		if (r->in->compute)
			continue;
		gf_events_add(&r->events, (struct gf_event){
						  .at_s = fmax(message->start_s, late_s),
						  .kind = GF_REPLAY_BEGIN,
						  .id = base + (size_t)rank,
					  });
	}
	free(partners);
	return 0;
}

/* Counts nodes and dependencies, makes room for the results. */
static size_t init_counts(struct gf_replay_run *r)
{
	const struct gf_replay_input *in = r->in;
	size_t ndeps = 0, m, p = (size_t)in->ranks;
	int rank;

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
		for (rank = 0; rank < in->ranks; rank++) {
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
	gf_fluid_init(&r->fluid, in->ranks, in->net, in->slowdown, GF_REPLAY_FLOWN);
	for (m = 0; m < in->net->nlevels; m++)
		r->reduce_s_per_byte =
			fmax(r->reduce_s_per_byte, in->net->links[m].gamma_s_per_byte);
	for (m = 0; m < in->nslow_links; m++)
		gf_fluid_slow(&r->fluid, &in->slow_links[m]);
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
		gf_replay_gate_init(r);
	return 0;
}

void gf_replay_run_release(struct gf_replay_run *r)
{
	gf_fluid_release(&r->fluid);
	gf_replay_gate_release(&r->gate);
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
	free(r->message_start_s);
	free(r->message_end_s);
	*r = (struct gf_replay_result){0};
}
