/* SPDX-License-Identifier: BSD-3-Clause */
#include "transport/watch.h"

#include <stdlib.h>

#include "base/heap.h"

enum kind { KIND_QUESTION, KIND_ANSWER, KIND_NEWS };

struct note {
	uint32_t kind;
	uint32_t round; /* of the question */
	struct gf_standing standing;
};

/* A note on its way, to that rank or from it. */
struct letter {
	struct gf_left left;
	struct note note;
	int peer;
	struct gf_comm_request *request;
	struct letter *next;
};

struct rank_state {
	struct gf_standing standing;
	bool heard, failed;
};

struct gf_liveness {
	struct gf_comm *comm;
	struct letter *outgoing, *incoming;
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

static void abandon(struct gf_liveness *l, struct letter *letter)
{
	struct letter *next;

	for (; letter; letter = next) {
		next = letter->next;
		l->comm->ops->cancel(l->comm, letter->request);
		gf_comm_leave(l->comm, &letter->left);
	}
}

void gf_liveness_free(struct gf_liveness *l)
{
	if (!l)
		return;
	abandon(l, l->outgoing);
	abandon(l, l->incoming);
	free(l->ranks);
	free(l);
}

static int send(struct gf_liveness *l, int peer, enum kind kind, uint32_t round,
		const struct gf_standing *self, struct gf_error *err)
{
	struct letter *letter = gf_xcalloc(1, sizeof(*letter));
	int rc;

	letter->note.kind = kind;
	letter->note.round = round;
	letter->note.standing = *self;
	rc = l->comm->ops->isend(l->comm, peer, note_tag(), &letter->note, sizeof(letter->note),
				 &letter->request, err);
	if (rc) {
		free(letter);
		return rc;
	}
	letter->next = l->outgoing;
	l->outgoing = letter;
	return 0;
}

/* A rank that cannot be reached keeps nothing from the others. */
static int send_all(struct gf_liveness *l, enum kind kind, const struct gf_standing *self,
		    struct gf_error *err)
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

/* Of a note that is announced; its bytes may be late, or never come. */
static int receive(struct gf_liveness *l, int peer, struct gf_error *err)
{
	struct letter *letter = gf_xcalloc(1, sizeof(*letter)), **end;
	int rc;

	letter->peer = peer;
	rc = l->comm->ops->irecv(l->comm, peer, note_tag(), &letter->note, sizeof(letter->note),
				 &letter->request, err);
	if (rc) {
		free(letter);
		return rc;
	}
	for (end = &l->incoming; *end; end = &(*end)->next)
		;
	*end = letter;
	return 0;
}

static int take_in(struct gf_liveness *l, const struct letter *letter,
		   const struct gf_standing *self, struct gf_error *err)
{
	const struct note *note = &letter->note;
	struct rank_state *r = &l->ranks[letter->peer];

	if (note->kind == KIND_QUESTION)
		return send(l, letter->peer, KIND_ANSWER, note->round, self, err);
	if (note->kind == KIND_NEWS || note->round == l->round) {
		r->standing = note->standing;
		r->standing.text[sizeof(r->standing.text) - 1] = '\0';
		r->heard = true;
		r->failed |= note->standing.phase == GF_PHASE_FAILED;
	}
	return 0;
}

/* Frees the letters of a list that have arrived; takes in those that came. */
static int sweep(struct gf_liveness *l, struct letter **at, const struct gf_standing *self,
		 struct gf_error *err)
{
	bool came = at == &l->incoming;
	struct letter *letter;
	int rc;

	while ((letter = *at)) {
		rc = l->comm->ops->test(l->comm, letter->request, err);
		if (!rc) {
			at = &letter->next;
			continue;
		}
		*at = letter->next;
		if (rc < 0) {
			gf_comm_leave(l->comm, &letter->left);
			return rc;
		}
		rc = came ? take_in(l, letter, self, err) : 0;
		free(letter);
		if (rc)
			return rc;
	}
	return 0;
}

int gf_liveness_poll(struct gf_liveness *l, const struct gf_standing *self, struct gf_error *err)
{
	struct gf_comm *c = l->comm;
	int rc, peer;

	if (!c->ops->probe)
		return 0;
	while ((rc = c->ops->probe(c, note_tag(), &peer, err)) > 0)
		if ((rc = receive(l, peer, err)))
			break;
	rc = rc ? rc : sweep(l, &l->incoming, self, err);
	return rc ? rc : sweep(l, &l->outgoing, self, err);
}

int gf_liveness_ask(struct gf_liveness *l, const struct gf_standing *self, struct gf_error *err)
{
	int rank;

	if (!l->comm->ops->probe)
		return 0;
	l->round++;
	for (rank = 0; rank < l->comm->ranks; rank++)
		l->ranks[rank].heard = false;
	return send_all(l, KIND_QUESTION, self, err);
}

int gf_liveness_tell(struct gf_liveness *l, const struct gf_standing *self, struct gf_error *err)
{
	return l->comm->ops->probe ? send_all(l, KIND_NEWS, self, err) : 0;
}

bool gf_liveness_pending(const struct gf_liveness *l)
{
	return l->outgoing != NULL;
}

const struct gf_standing *gf_liveness_heard(const struct gf_liveness *l, int rank)
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
