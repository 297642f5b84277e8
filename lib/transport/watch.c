/* SPDX-License-Identifier: BSD-3-Clause */
#include "transport/watch.h"

#include <inttypes.h>
#include <stdio.h>

#include "base/array.h"
#include "base/clock.h"
#include "base/heap.h"
#include "base/text.h"
#include "base/timeout.h"

#define LOOK_EVERY_S 1e-3
/* At most this share of the timeout passes between two looks of a process that runs. */
#define GAP_SHARE 0.125
/* More ranks than that are counted, not listed. */
#define LISTED 8

/* Notes between the ranks. */
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

static void abandon(struct gf_liveness *l, struct letter *letter)
{
	struct letter *next;

	for (; letter; letter = next) {
		next = letter->next;
		l->comm->ops->cancel(l->comm, letter->request);
		gf_comm_leave(l->comm, &letter->left);
	}
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
		rc = rc ?: one;
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

/* Answers the questions that have come and takes in the answers. An error is the transport's. */
static int poll_notes(struct gf_liveness *l, const struct gf_standing *self, struct gf_error *err)
{
	struct gf_comm *c = l->comm;
	int rc, peer;

	if (!c->ops->probe)
		return 0;
	while ((rc = c->ops->probe(c, note_tag(), &peer, err)) > 0)
		if ((rc = receive(l, peer, err)))
			break;
	rc = rc ?: sweep(l, &l->incoming, self, err);
	return rc ?: sweep(l, &l->outgoing, self, err);
}

bool gf_liveness_pending(const struct gf_liveness *l)
{
	return l->outgoing != NULL;
}

/* The standing that a rank has sent since it was last asked; NULL: none. */
static const struct gf_standing *heard(const struct gf_liveness *l, int rank)
{
	const struct rank_state *r = &l->ranks[rank];

	return r->heard || r->failed ? &r->standing : NULL;
}

static int on_wait(void *ctx, struct gf_error *err)
{
	struct gf_watch *w = ctx;
	double passed_s;
	int rc;

	if (w->waits != w->comm->waits) {
		w->waits = w->comm->waits;
		w->wait_s = 0;
	}
	rc = gf_watch_look(w, &passed_s, err);
	if (rc || passed_s == 0)
		return rc;
	w->wait_s += passed_s;
	rc = gf_watch_stuck(w, w->wait_s, 0, err);
	if (rc)
		gf_error_prefix(err, "waited %g s for all ranks", w->wait_s);
	return rc;
}

void gf_watch_init(struct gf_watch *w, struct gf_comm *comm, double timeout_s)
{
	*w = (struct gf_watch){
		.comm = comm,
		.before = comm->on_wait,
		.before_ctx = comm->on_wait_ctx,
		.liveness = gf_xcalloc(1, sizeof(*w->liveness)),
		.timeout_s = timeout_s,
		.looked_s = gf_clock_s(),
	};
	w->liveness->comm = comm;
	w->liveness->ranks = gf_xcalloc((size_t)comm->ranks, sizeof(*w->liveness->ranks));
	comm->on_wait = on_wait;
	comm->on_wait_ctx = w;
}

void gf_watch_release(struct gf_watch *w)
{
	if (!w->comm)
		return;
	w->comm->on_wait = w->before;
	w->comm->on_wait_ctx = w->before_ctx;
	abandon(w->liveness, w->liveness->outgoing);
	abandon(w->liveness, w->liveness->incoming);
	free(w->liveness->ranks);
	free(w->liveness);
	*w = (struct gf_watch){0};
}

int gf_watch_look(struct gf_watch *w, double *passed_s, struct gf_error *err)
{
	const struct gf_standing *other;
	double now_s = gf_clock_s(), passed = now_s - w->looked_s;
	int rc, rank;

	*passed_s = 0;
	if (passed < LOOK_EVERY_S)
		return 0;
	w->looked_s = now_s;
	rc = poll_notes(w->liveness, &w->self, err);
	if (rc)
		return rc;
	/* the lowest rank that said it has given up */
	for (rank = 0; rank < w->comm->ranks && !w->liveness->ranks[rank].failed;)
		rank++;
	if (rank < w->comm->ranks && w->self.phase != GF_PHASE_FAILED) {
		other = heard(w->liveness, rank);
		return gf_error_set(err, other->rc, "rank %d: %s", rank, other->text);
	}
	if (w->timeout_s > 0 && passed > w->timeout_s * GAP_SHARE)
		passed = w->timeout_s * GAP_SHARE;
	*passed_s = passed;
	return 0;
}

/* "rank 2 does not answer (...)" for those that are silent; 0: none is. */
static int blame_silent(const struct gf_watch *w, struct gf_text *t)
{
	int rank, silent = 0, ranks = w->comm->ranks;

	for (rank = 0; rank < ranks; rank++)
		silent += rank != w->comm->rank && !heard(w->liveness, rank);
	if (!silent)
		return 0;
	gf_text_addf(t, silent > 1 ? "ranks" : "rank");
	for (rank = 0, ranks = 0; ranks < silent && ranks < LISTED; rank++)
		if (rank != w->comm->rank && !heard(w->liveness, rank))
			gf_text_addf(t, "%s %d", ranks++ ? "," : "", rank);
	if (silent > LISTED)
		gf_text_addf(t, " and %d more", silent - LISTED);
	gf_text_addf(t, "%s (stopped, dead or cut off)",
		     silent > 1 ? " do not answer" : " does not answer");
	return silent;
}

static int compare_standing(const struct gf_standing *a, const struct gf_standing *b)
{
	return GF_BY(a->calls, b->calls)
		       ?: GF_BY(a->step, b->step) ?: GF_BY(a->started, b->started);
}

/* The rank that lags furthest after this one; -1: none does. Among equals, a rank that waits for
 * itself comes before one that waits for the network. */
static int last_of_all(const struct gf_watch *w, uint64_t message)
{
	struct gf_standing least = w->self;
	const struct gf_standing *other;
	int rank, found = -1, order;

	least.started = message + 1;
	for (rank = 0; rank < w->comm->ranks; rank++) {
		other = heard(w->liveness, rank);
		if (rank == w->comm->rank || !other)
			continue;
		order = compare_standing(other, &least);
		if (order > 0 || (order == 0 && found < 0))
			continue;
		if (order == 0 && least.phase != GF_PHASE_NETWORK)
			continue;
		least = *other;
		found = rank;
	}
	return found;
}

static void blame_late(const struct gf_watch *w, uint64_t message, struct gf_text *t)
{
	int rank = last_of_all(w, message);
	const struct gf_standing *other;

	if (rank < 0) {
		gf_text_addf(t, "all ranks answer and have come as far: the network stands still, "
				"or needs longer");
		return;
	}
	other = heard(w->liveness, rank);
	if (w->self.phase == GF_PHASE_CALL && other->calls < w->self.calls)
		gf_text_addf(t, "rank %d has not come to it, it is in step %" PRIu64, rank,
			     other->step);
	else if (other->step < w->self.step)
		gf_text_addf(t, "rank %d is still in step %" PRIu64, rank, other->step);
	else if (other->phase == GF_PHASE_NETWORK)
		gf_text_addf(t,
			     "rank %d is still at earlier messages, message %" PRIu64
			     " has not begun there",
			     rank, other->started);
	else
		gf_text_addf(t, "rank %d has not made its gradients of message %" PRIu64 " yet",
			     rank, other->started);
}

/* Asks every other rank; older answers no longer count. */
static int ask(struct gf_watch *w, struct gf_error *err)
{
	struct gf_liveness *l = w->liveness;

	w->asked = true;
	w->asked_s = gf_clock_s();
	if (!w->comm->ops->probe)
		return 0;
	l->round++;
	for (int rank = 0; rank < w->comm->ranks; rank++)
		l->ranks[rank].heard = false;
	return send_all(l, KIND_QUESTION, &w->self, err);
}

int gf_watch_stuck(struct gf_watch *w, double stuck_s, uint64_t message, struct gf_error *err)
{
	GF_RELEASED(gf_text_release) struct gf_text t = {0};
	int rc;

	if (w->timeout_s <= 0 || stuck_s < w->timeout_s / 2) {
		w->asked = false;
		return 0;
	}
	if (!w->asked) {
		rc = ask(w, err);
		if (rc)
			return rc;
	}
	if (stuck_s < w->timeout_s)
		return 0;
	if (!blame_silent(w, &t))
		blame_late(w, message, &t);
	gf_error_set(err, 0, "%s", t.data);
	return -ETIMEDOUT;
}

void gf_watch_give_up(struct gf_watch *w, int rc, const struct gf_error *why)
{
	w->self.phase = GF_PHASE_FAILED;
	w->self.rc = rc;
	snprintf(w->self.text, sizeof(w->self.text), "%.*s", (int)sizeof(w->self.text) - 1,
		 why->text);
	w->comm->broken = true;
	/* A rank that cannot be told will find out by itself. */
	if (w->comm->ops->probe)
		(void)send_all(w->liveness, KIND_NEWS, &w->self, NULL);
}

void gf_watch_ask(struct gf_watch *w)
{
	if (!w->asked)
		(void)ask(w, NULL);
}

bool gf_watch_missing(const struct gf_watch *w, bool *missing)
{
	struct gf_comm *c = w->comm;
	const double limit_s = w->timeout_s > 0 && w->timeout_s / 2 < GF_TIMEOUT_WATCH_S
				       ? w->timeout_s / 2
				       : GF_TIMEOUT_WATCH_S;
	bool open = false;

	for (int rank = 0; rank < c->ranks; rank++) {
		missing[rank] = rank != c->rank && !heard(w->liveness, rank);
		open |= missing[rank] && !(c->ops->is_gone && c->ops->is_gone(c, rank));
	}
	return !open || gf_clock_s() - w->asked_s >= limit_s;
}

void gf_watch_leave(struct gf_watch *w, int rc, const struct gf_error *why)
{
	double until_s = gf_clock_s() + GF_TIMEOUT_LEAVE_S, passed_s;

	gf_watch_give_up(w, rc, why);
	while (gf_clock_s() < until_s && gf_liveness_pending(w->liveness)) {
		gf_clock_sleep(LOOK_EVERY_S);
		if (gf_watch_look(w, &passed_s, NULL))
			break;
	}
}
