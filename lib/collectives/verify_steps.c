/* SPDX-License-Identifier: BSD-3-Clause */
#include "collectives/verify.h"

#include <stdbool.h>
#include <string.h>

#include "base/array.h"
#include "base/heap.h"
#include "collectives/values.h"

/* Sorted and without gaps over [0, size); ends with a run at `size`. */
struct runs {
	struct gf_run *items;
	size_t count, capacity;
};

static void runs_init(struct runs *r, size_t size, uint32_t term)
{
	*r = (struct runs){0};
	if (size)
		*gf_array_push(&r->items, &r->count, &r->capacity) = (struct gf_run){0, 0, term};
	*gf_array_push(&r->items, &r->count, &r->capacity) =
		(struct gf_run){size, size, GF_TERM_NOTHING};
}

static void runs_release(struct runs *r)
{
	free(r->items);
	*r = (struct runs){0};
}

/* The index of the run that begins at `place`, cut there if need be. */
static size_t runs_cut(struct runs *r, size_t place)
{
	size_t low = 0, high = r->count;
	struct gf_run *run;

	while (high - low > 1) {
		size_t middle = low + (high - low) / 2;

		if (r->items[middle].first <= place)
			low = middle;
		else
			high = middle;
	}
	if (r->items[low].first == place)
		return low;
	gf_array_push(&r->items, &r->count, &r->capacity);
	run = &r->items[low];
	memmove(run + 1, run, (r->count - 1 - low) * sizeof(*run));
	run[1].origin += place - run[1].first;
	run[1].first = place;
	return low + 1;
}

struct payload { /* what a message carries, cut like its source */
	struct gf_run *runs;
	size_t count, capacity;
};

struct place {
	int rank;
	uint32_t step;
};

enum { STARTED = 1, ARRIVED = 2, DONE = 4 };

struct step_state {        /* of one step */
	uint32_t waiting;  /* dependencies not done */
	uint32_t unposted; /* those that keep a receive from being posted */
	int flags;
	struct payload payload;      /* arrived, not yet reduced */
	uint32_t first_user, nusers; /* steps that depend on it */
};

/*
 * The verifier's machine: runs all ranks' schedules together on symbolic values. Its schedules are
 * borrowed and must have passed gf_verify_shape.
 */
struct machine {
	const struct gf_schedule *ranks;
	int nranks;
	struct gf_terms terms;
	struct runs *buffers;      /* per rank: DATA, SCRATCH */
	struct step_state **steps; /* [rank][step] */
	uint32_t **users;          /* [rank] */
	uint32_t **partners;       /* [rank][step]: the other side's step */
	struct place *todo;        /* steps to look at */
	size_t ntodo, todo_capacity;
};

static struct runs *buffer_of(struct machine *m, int rank, enum gf_buffer b)
{
	return &m->buffers[2 * rank + (int)b];
}

static const struct gf_step *step_at(const struct machine *m, struct place p)
{
	return &m->ranks[p.rank].steps[p.step];
}

/* The runs of a range, renumbered from 0; refuses elements that were never written. The places at
 * which the buffer is cut do not matter: equal contents have equal runs. */
static int load(struct machine *m, struct place p, struct gf_range range, struct payload *out,
		struct gf_error *err)
{
	struct runs *runs = buffer_of(m, p.rank, range.buffer);
	/* in this order: a cut moves the runs after it */
	size_t i = runs_cut(runs, range.first);
	size_t end = runs_cut(runs, range.first + range.count);

	for (out->count = 0; i < end; i++) {
		const struct gf_run *last = out->count ? &out->runs[out->count - 1] : NULL;
		struct gf_run run = runs->items[i];

		if (run.term == GF_TERM_NOTHING)
			return gf_error_set(err, -EINVAL,
					    "rank %d step %u reads %s[%zu], never written", p.rank,
					    p.step, gf_buffer_name(range.buffer), run.first);
		run.first -= range.first;
		if (last && last->term == run.term &&
		    run.origin - last->origin == run.first - last->first)
			continue; /* it goes on */
		*gf_array_push(&out->runs, &out->count, &out->capacity) = run;
	}
	return 0;
}

/* Puts, or adds, a payload into a range. */
static int store(struct machine *m, struct place p, struct gf_range range, const struct payload *in,
		 bool add, struct gf_error *err)
{
	struct runs *runs = buffer_of(m, p.rank, range.buffer);
	size_t end = range.first + range.count, k, i;

	runs_cut(runs, end);
	for (k = 0; k < in->count; k++) {
		const struct gf_run *from = &in->runs[k];
		size_t stop = k + 1 < in->count ? range.first + in->runs[k + 1].first : end;

		runs_cut(runs, stop);
		i = runs_cut(runs, range.first + from->first);
		for (; runs->items[i].first < stop; i++) {
			struct gf_run *to = &runs->items[i];
			size_t origin = from->origin + to->first - (range.first + from->first);

			if (add && to->term == GF_TERM_NOTHING)
				return gf_error_set(
					err, -EINVAL,
					"rank %d step %u adds to %s[%zu], never written", p.rank,
					p.step, gf_buffer_name(range.buffer), to->first);
			if (add && to->origin != origin)
				return gf_error_set(
					err, -EINVAL,
					"rank %d step %u adds element %zu to element %zu", p.rank,
					p.step, origin, to->origin);
			to->term = add ? gf_terms_sum(&m->terms, to->term, from->term) : from->term;
			to->origin = origin;
		}
	}
	return 0;
}

static void look_at(struct machine *m, int rank, uint32_t step)
{
	*gf_array_push(&m->todo, &m->ntodo, &m->todo_capacity) = (struct place){rank, step};
}

/* Tells the steps that depend on p that it has started (a send) or is done. */
static void tell_users(struct machine *m, struct place p, int event)
{
	struct step_state *states = m->steps[p.rank], *state = &states[p.step];
	bool send = step_at(m, p)->op == GF_STEP_SEND;

	state->flags |= event;
	for (uint32_t k = 0; k < state->nusers; k++) {
		uint32_t user = m->users[p.rank][state->first_user + k];
		bool early = send && m->ranks[p.rank].steps[user].op == GF_STEP_RECV_REDUCE;

		if (event == DONE)
			states[user].waiting--;
		if (event == (early ? STARTED : DONE))
			states[user].unposted--;
		if (!states[user].waiting || !states[user].unposted)
			look_at(m, p.rank, user);
	}
}

static int finish_reduce(struct machine *m, struct place p, struct gf_error *err)
{
	struct step_state *state = &m->steps[p.rank][p.step];
	int rc = store(m, p, step_at(m, p)->range, &state->payload, true, err);

	free(state->payload.runs);
	state->payload = (struct payload){0};
	tell_users(m, p, DONE);
	return rc;
}

/* Moves the message of a started send to its posted receive. */
static int transfer(struct machine *m, struct place from, struct place to, struct gf_error *err)
{
	struct step_state *state = &m->steps[to.rank][to.step];
	const struct gf_step *receive = step_at(m, to);
	struct payload payload = {0};
	int rc = load(m, from, step_at(m, from)->range, &payload, err);

	if (rc)
		goto out;
	if (m->ranks[from.rank].lossy) {
		gf_terms_round(&m->terms, payload.runs, payload.count, receive->range.count);
		rc = store(m, from, step_at(m, from)->range, &payload, false, err);
	}
	if (receive->op == GF_STEP_RECV_REDUCE) {
		state->payload = payload;
		payload = (struct payload){0};
		state->flags |= ARRIVED;
		look_at(m, to.rank, to.step);
	} else {
		rc = store(m, to, receive->range, &payload, false, err);
		tell_users(m, to, DONE);
	}
	tell_users(m, from, DONE);
out:
	free(payload.runs);
	return rc;
}

static int run_local(struct machine *m, struct place p, struct gf_error *err)
{
	const struct gf_step *step = step_at(m, p);
	struct payload payload = {0};
	bool round = step->op == GF_STEP_ROUND;
	int rc = load(m, p, round ? step->range : step->from, &payload, err);

	if (!rc && round)
		gf_terms_round(&m->terms, payload.runs, payload.count, step->range.count);
	rc = rc ?: store(m, p, step->range, &payload, step->op == GF_STEP_REDUCE, err);
	free(payload.runs);
	tell_users(m, p, DONE);
	return rc;
}

/* Does whatever step p is ready for. */
static int advance(struct machine *m, struct place p, struct gf_error *err)
{
	struct step_state *state = &m->steps[p.rank][p.step], *other;
	const struct gf_step *step = step_at(m, p);
	struct place peer = {step->peer, 0};

	if (state->flags & DONE)
		return 0;
	if (step->peer < 0)
		return state->waiting ? 0 : run_local(m, p, err);
	if (state->flags & ARRIVED)
		return state->waiting ? 0 : finish_reduce(m, p, err);
	if (state->unposted)
		return 0;

	peer.step = m->partners[p.rank][p.step];
	other = &m->steps[peer.rank][peer.step];
	if (step->op == GF_STEP_SEND) {
		if (!(state->flags & STARTED))
			tell_users(m, p, STARTED);
		return other->unposted ? 0 : transfer(m, p, peer, err);
	}
	return other->flags & STARTED ? transfer(m, peer, p, err) : 0;
}

/* -EINVAL: a step reads or adds nonsense, or waits for ever. */
static int run(struct machine *m, struct gf_error *err)
{
	int rank, rc;

	for (rank = m->nranks - 1; rank >= 0; rank--)
		for (uint32_t i = (uint32_t)m->ranks[rank].nsteps; i-- > 0;)
			if (!m->steps[rank][i].unposted)
				look_at(m, rank, i);
	while (m->ntodo) {
		rc = advance(m, m->todo[--m->ntodo], err);
		if (rc)
			return rc;
	}
	for (rank = 0; rank < m->nranks; rank++)
		for (uint32_t i = 0; i < m->ranks[rank].nsteps; i++)
			if (!(m->steps[rank][i].flags & DONE)) {
				const struct gf_step *step = &m->ranks[rank].steps[i];

				return gf_error_set(
					err, -EINVAL, "rank %d step %u (%s rank %d) waits for ever",
					rank, i,
					step->op == GF_STEP_SEND ? "send to" : "receive from",
					step->peer);
			}
	return 0;
}

/* The dependencies of each step turned round, and the counters. */
static void init_rank(struct machine *m, int rank)
{
	const struct gf_schedule *s = &m->ranks[rank];
	struct step_state *states = gf_xcalloc(s->nsteps, sizeof(*states));
	uint32_t *users = gf_xcalloc(s->ndeps, sizeof(*users)), total = 0;

	for (size_t i = 0; i < s->nsteps; i++)
		for (size_t k = 0; k < s->steps[i].ndeps; k++)
			states[s->deps[s->steps[i].first_dep + k]].nusers++;
	for (size_t i = 0; i < s->nsteps; i++) {
		states[i].first_user = total;
		total += states[i].nusers;
		states[i].nusers = 0;
		states[i].waiting = states[i].unposted = s->steps[i].ndeps;
	}
	for (size_t i = 0; i < s->nsteps; i++)
		for (size_t k = 0; k < s->steps[i].ndeps; k++) {
			struct step_state *used = &states[s->deps[s->steps[i].first_dep + k]];

			users[used->first_user + used->nusers++] = (uint32_t)i;
		}
	m->steps[rank] = states;
	m->users[rank] = users;
}

static void init_data(struct machine *m, enum gf_coll_half half, int rank, uint32_t result)
{
	const struct gf_schedule *s = &m->ranks[rank];
	struct runs *data = buffer_of(m, rank, GF_BUFFER_DATA);

	runs_init(buffer_of(m, rank, GF_BUFFER_SCRATCH), s->scratch_elems, GF_TERM_NOTHING);
	if (half != GF_COLL_ALL_GATHER) {
		runs_init(data, s->count_elems,
			  rank < s->contributors ? gf_terms_rank(&m->terms, rank)
						 : GF_TERM_NOTHING);
		return;
	}
	runs_init(data, s->count_elems, GF_TERM_NOTHING);
	for (size_t k = 0; k < s->nowned; k++) {
		const size_t end = s->owned[k].first + s->owned[k].count;

		runs_cut(data, end);
		for (size_t i = runs_cut(data, s->owned[k].first); data->items[i].first < end; i++)
			data->items[i].term = result;
	}
}

/* Buffers hold what they hold before that half. */
static void init(struct machine *m, enum gf_coll_half half, const struct gf_schedule *ranks,
		 int nranks, uint32_t **partners)
{
	uint32_t result;

	*m = (struct machine){.ranks = ranks, .nranks = nranks, .partners = partners};
	gf_terms_init(&m->terms, nranks);
	result = gf_terms_result(&m->terms, ranks[0].contributors);
	m->buffers = gf_xcalloc(2 * (size_t)nranks, sizeof(*m->buffers));
	m->steps = gf_xcalloc((size_t)nranks, sizeof(*m->steps));
	m->users = gf_xcalloc((size_t)nranks, sizeof(*m->users));
	for (int rank = 0; rank < nranks; rank++) {
		init_rank(m, rank);
		init_data(m, half, rank, result);
	}
}

static void release(struct machine *m)
{
	for (int rank = 0; rank < m->nranks; rank++) {
		for (size_t i = 0; i < m->ranks[rank].nsteps; i++)
			free(m->steps[rank][i].payload.runs);
		free(m->steps[rank]);
		free(m->users[rank]);
		runs_release(&m->buffers[2 * rank]);
		runs_release(&m->buffers[2 * rank + 1]);
	}
	free(m->steps);
	free(m->users);
	free(m->buffers);
	free(m->todo);
	gf_terms_release(&m->terms);
}

static int check_run(const struct machine *m, int rank, const struct gf_run *run,
		     struct gf_error *err)
{
	int contributors = m->ranks[0].contributors, r;

	if (run->term == GF_TERM_NOTHING)
		return gf_error_set(err, -EINVAL, "rank %d data[%zu] was never written", rank,
				    run->first);
	if (run->origin != run->first)
		return gf_error_set(err, -EINVAL, "rank %d data[%zu] ends with element %zu", rank,
				    run->first, run->origin);
	r = gf_terms_twice(&m->terms, run->term);
	if (r >= 0)
		return gf_error_set(err, -EINVAL,
				    "rank %d data[%zu] counts rank %d's contribution twice", rank,
				    run->first, r);
	for (r = 0; r < contributors; r++)
		if (!gf_terms_contains(&m->terms, run->term, r))
			return gf_error_set(err, -EINVAL,
					    "rank %d data[%zu] lacks rank %d's contribution", rank,
					    run->first, r);
	return 0;
}

static int check_range(struct machine *m, int rank, struct gf_range range, struct gf_error *err)
{
	struct runs *runs = buffer_of(m, rank, GF_BUFFER_DATA);
	size_t end, i;
	int rc;

	runs_cut(runs, range.first + range.count);
	i = runs_cut(runs, range.first);
	end = range.first + range.count;
	for (; runs->items[i].first < end; i++) {
		rc = check_run(m, rank, &runs->items[i], err);
		if (rc)
			return rc;
	}
	return 0;
}

/* Every rank's tree against rank 0's. */
static int check_same(struct machine *m, int rank, struct gf_error *err)
{
	struct runs *mine = buffer_of(m, rank, GF_BUFFER_DATA);
	struct runs *first = buffer_of(m, 0, GF_BUFFER_DATA);
	size_t i = 0, k = 0;

	while (i + 1 < mine->count && k + 1 < first->count) {
		size_t a = mine->items[i].first, b = first->items[k].first;

		if (mine->items[i].term != first->items[k].term)
			return gf_error_set(err, -EINVAL, "data[%zu]: rank %d %s than rank 0",
					    a > b ? a : b, rank,
					    m->ranks[rank].lossy ? "adds or rounds otherwise"
								 : "adds in another order");
		a = mine->items[i + 1].first;
		b = first->items[k + 1].first;
		i += a <= b;
		k += b <= a;
	}
	return 0;
}

static int check_end(struct machine *m, enum gf_coll_half half, struct gf_error *err)
{
	int contributors = m->ranks[0].contributors, rank, rc = 0;
	struct gf_range all = gf_data(0, m->ranks[0].count_elems);

	for (rank = 0; rank < m->nranks; rank++) {
		const struct gf_schedule *s = &m->ranks[rank];

		for (size_t i = 0; half == GF_COLL_REDUCE_SCATTER && !rc && i < s->nowned; i++)
			rc = check_range(m, rank, s->owned[i], err);
		if (half != GF_COLL_REDUCE_SCATTER && rank < contributors)
			rc = check_range(m, rank, all, err);
		if (!rc && half != GF_COLL_REDUCE_SCATTER && rank < contributors)
			rc = check_same(m, rank, err);
		if (rc)
			return rc;
	}
	return 0;
}

int gf_verify_run(const struct gf_schedule *ranks, int nranks, enum gf_coll_half half,
		  uint32_t **partners, struct gf_error *err)
{
	struct machine m;
	int rc;

	init(&m, half, ranks, nranks, partners);
	rc = run(&m, err);
	rc = rc ?: check_end(&m, half, err);
	release(&m);
	return rc;
}
