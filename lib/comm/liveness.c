/* SPDX-License-Identifier: BSD-3-Clause */
#include "comm/liveness.h"

#include <stdlib.h>

#include "base/heap.h"

enum kind { KIND_QUESTION, KIND_ANSWER, KIND_NEWS };

struct note {
	uint32_t kind;
	uint32_t round; /* of the question */
	struct gf_standing standing;
};

/* On its way; owns what it sends. */
struct outgoing {
	struct gf_left left;
	struct note note;
	struct gf_request *request;
	struct outgoing *next;
};

struct rank_state {
	struct gf_standing standing;
	bool heard, failed;
};

struct gf_liveness {
	struct gf_comm *comm;
	struct outgoing *outgoing;
	struct rank_state *ranks;
	uint32_t round;
};

static uint64_t note_tag(void)
{
	return gf_tag(GF_CHANNEL_LIVENESS, 0);
}

struct gf_liveness *gf_liveness_new(struct gf_comm *comm)
{
	struct gf_liveness *l = gf_xcalloc(1, sizeof(*l));

	l->comm = comm;
	l->ranks = gf_xcalloc((size_t)comm->ranks, sizeof(*l->ranks));
	return l;
}

void gf_liveness_free(struct gf_liveness *l)
{
	struct outgoing *o;

	if (!l)
		return;
	while ((o = l->outgoing)) {
		l->outgoing = o->next;
		l->comm->ops->cancel(l->comm, o->request);
		gf_comm_leave(l->comm, &o->left);
	}
	free(l->ranks);
	free(l);
}

static int send(struct gf_liveness *l, int peer, enum kind kind, uint32_t round,
		const struct gf_standing *self, struct gf_error *err)
{
	struct outgoing *o = gf_xcalloc(1, sizeof(*o));
	int rc;

	o->note.kind = kind;
	o->note.round = round;
	o->note.standing = *self;
	rc = l->comm->ops->isend(l->comm, peer, note_tag(), &o->note,
				 sizeof(o->note), &o->request, err);
	if (rc) {
		free(o);
		return rc;
	}
	o->next = l->outgoing;
	l->outgoing = o;
	return 0;
}

/* A rank that cannot be reached keeps nothing from the others. */
static int send_all(struct gf_liveness *l, enum kind kind,
		    const struct gf_standing *self, struct gf_error *err)
{
	struct gf_error ignored;
	int rank, one, rc = 0;

	for (rank = 0; rank < l->comm->ranks; rank++) {
		if (rank == l->comm->rank)
			continue;
		one = send(l, rank, kind, l->round, self, rc ? &ignored : err);
		rc = rc ? rc : one;
	}
	return rc;
}

/* Frees what has been taken. */
static int sweep(struct gf_liveness *l, struct gf_error *err)
{
	struct outgoing **at = &l->outgoing, *o;
	int rc;

	while ((o = *at)) {
		rc = l->comm->ops->test(l->comm, o->request, err);
		if (!rc) {
			at = &o->next;
			continue;
		}
		*at = o->next;
		if (rc < 0) {
			gf_comm_leave(l->comm, &o->left);
			return rc;
		}
		free(o);
	}
	return 0;
}

static int take_in(struct gf_liveness *l, int peer, const struct note *note,
		   const struct gf_standing *self, struct gf_error *err)
{
	struct rank_state *r = &l->ranks[peer];

	if (note->kind == KIND_QUESTION)
		return send(l, peer, KIND_ANSWER, note->round, self, err);
	if (note->kind == KIND_NEWS || note->round == l->round) {
		r->standing = note->standing;
		r->standing.text[sizeof(r->standing.text) - 1] = '\0';
		r->heard = true;
		r->failed |= note->standing.phase == GF_PHASE_FAILED;
	}
	return 0;
}

int gf_liveness_poll(struct gf_liveness *l, const struct gf_standing *self,
		     struct gf_error *err)
{
	struct gf_comm *c = l->comm;
	struct gf_request *request;
	struct note note;
	int rc = 0, peer;

	if (!c->ops->probe)
		return 0;
	while ((rc = c->ops->probe(c, note_tag(), &peer, err)) > 0) {
		rc = c->ops->irecv(c, peer, note_tag(), &note, sizeof(note),
				   &request, err);
		/* It is there: this does not block. */
		while (!rc && !(rc = c->ops->test(c, request, err)))
			;
		if (rc > 0)
			rc = take_in(l, peer, &note, self, err);
		if (rc < 0)
			return rc;
	}
	return rc ? rc : sweep(l, err);
}

int gf_liveness_ask(struct gf_liveness *l, const struct gf_standing *self,
		    struct gf_error *err)
{
	int rank;

	if (!l->comm->ops->probe)
		return 0;
	l->round++;
	for (rank = 0; rank < l->comm->ranks; rank++)
		l->ranks[rank].heard = false;
	return send_all(l, KIND_QUESTION, self, err);
}

int gf_liveness_tell(struct gf_liveness *l, const struct gf_standing *self,
		     struct gf_error *err)
{
	return l->comm->ops->probe ? send_all(l, KIND_NEWS, self, err) : 0;
}

bool gf_liveness_pending(const struct gf_liveness *l)
{
	return l->outgoing != NULL;
}

const struct gf_standing *gf_liveness_heard(const struct gf_liveness *l,
					    int rank)
{
	const struct rank_state *r = &l->ranks[rank];

	return r->heard || r->failed ? &r->standing : NULL;
}

int gf_liveness_failed(const struct gf_liveness *l)
{
	int rank;

	for (rank = 0; rank < l->comm->ranks; rank++)
		if (l->ranks[rank].failed)
			return rank;
	return -1;
}
