/* SPDX-License-Identifier: BSD-3-Clause */
/* The executor: preparing a run, with all its memory, and abandoning it. */
#include <assert.h>

#include "base/clock.h"
#include "base/heap.h"
#include "runtime/exec/exec_parts.h"

#define STAGING_BYTES  ((size_t)4 << 20)
#define SLOT_ALIGNMENT 64

/*
 * A little less than Open MPI sends over TCP without a rendezvous, which is 64 KiB with its header.
 * Longer messages wait for the other side. With 4 ranks on links of 1 Gb/s, 1 MiB took 14.7 ms in
 * segments of four or eight times 32 KiB, and 13.0 ms in segments of this size; blueconnect on 4 x
 * 2 ranks took 19.2 and 14.3 ms. Shorter segments cost more processor time: 64 MiB on 8 hosts.
 */
#define SEGMENT_BYTES ((size_t)56 << 10)
/* In shared memory every segment costs an announcement and a flag. */
#define SHARED_SEGMENT_BYTES ((size_t)256 << 10)
#define SEGMENTS_MOST        1024 /* in a rank's part of a message */
/* Segments are multiples of so many elements. So segments of numbers are whole cache lines, and a
 * part that is one element longer than others has no segment more. */
#define SEGMENT_BLOCK_ELEMS 64

struct gf_exec *gf_exec_new(struct gf_comm *comm)
{
	struct gf_exec *x = gf_xcalloc(1, sizeof(*x));

	x->comm = comm;
	x->staging_bytes = STAGING_BYTES;
	return x;
}

void gf_exec_free(struct gf_exec *x)
{
	assert(!x || !x->running);
	free(x);
}

void gf_exec_staging_bytes(struct gf_exec *x, size_t staging_bytes)
{
	x->staging_bytes = staging_bytes;
}

double gf_exec_coding_s(const struct gf_exec *x)
{
	return x->coding_s;
}

double gf_exec_coding_begin(const struct gf_exec_run *run)
{
	const struct gf_element *e = &run->element;

	return e->codec || !e->number ? gf_clock_s() : 0;
}

void gf_exec_coding_end(struct gf_exec_run *run, double began_s)
{
	if (began_s > 0)
		run->exec->coding_s += gf_clock_s() - began_s;
}

static void merge_received(void *run, void *to, const void *from, size_t count)
{
	struct gf_exec_run *r = run;
	double began_s = gf_exec_coding_begin(r);

	gf_element_reduce(&r->element, to, from, count);
	gf_exec_coding_end(r, began_s);
}

static size_t divide_up(size_t a, size_t b)
{
	return a / b + (a % b != 0);
}

size_t gf_exec_segment_elems(const struct gf_comm *c, const struct gf_element *element,
			     size_t count_elems)
{
	bool one_host = c->ops->reduces_from && c->local_ranks == c->ranks;
	size_t most = one_host ? SHARED_SEGMENT_BYTES : SEGMENT_BYTES;
	size_t part = divide_up(count_elems, (size_t)c->ranks), elems;
	size_t part_bytes = gf_element_wire_bytes(element, part);
	size_t block = SEGMENT_BLOCK_ELEMS;
	size_t segments = SEGMENTS_MOST, told_apart = SEGMENTS_MOST;

	/* as much on the wire, whatever the codec makes of it */
	if (element->codec && element->codec->block_elems)
		block = element->codec->block_elems;
	if (c->matches) /* a ring sends all of its segments to one rank */
		told_apart = c->matches / (2 * (size_t)c->ranks);
	if (told_apart < segments)
		segments = told_apart ? told_apart : 1;
	if (most < part_bytes / segments)
		most = divide_up(part_bytes, segments);
	/* a part in segments of one length: a short one costs as much */
	if (part_bytes > most)
		elems = divide_up(part, divide_up(part_bytes, most));
	else
		elems = most / gf_element_wire_bytes(element, block) * block;
	return divide_up(elems ? elems : 1, block) * block;
}

/* Turns the schedule's "depends on" round into "is depended on by". */
static void list_users(struct gf_exec_run *run)
{
	const struct gf_schedule *s = run->schedule;
	uint32_t *fill, *first;

	first = gf_xcalloc(s->nsteps + 2, sizeof(*first));
	run->users = gf_xcalloc(s->ndeps + 1, sizeof(*run->users));
	for (size_t i = 0; i < s->ndeps; i++)
		first[s->deps[i] + 2]++;
	for (size_t i = 2; i < s->nsteps + 2; i++)
		first[i] += first[i - 1];
	/* fill[i] moves from where i's users begin to where they end */
	fill = first + 1;
	for (size_t i = 0; i < s->nsteps; i++)
		for (size_t k = 0; k < s->steps[i].ndeps; k++)
			run->users[fill[s->deps[s->steps[i].first_dep + k]]++] = (uint32_t)i;
	run->first_user = first;
}

/* A receive that the transport reduces by itself. */
static bool is_direct(const struct gf_exec_run *run, const struct gf_step *step)
{
	const struct gf_schedule *s = run->schedule;
	struct gf_comm *c = run->exec->comm;

	/* Partners that exchange and both keep the sum would wait for each other: each send ends
	 * when the other side has added it. */
	for (uint32_t k = 0; k < step->ndeps; k++)
		if (s->steps[s->deps[step->first_dep + k]].op == GF_STEP_SEND)
			return false;
	return !run->element.codec && c->ops->reduces_from && c->ops->reduces_from(c, step->peer);
}

static enum gf_exec_way way_of(const struct gf_exec_run *run, const struct gf_step *step)
{
	bool coded = run->element.codec != NULL;

	switch (step->op) {
	case GF_STEP_SEND:
		return coded ? GF_EXEC_CODED : GF_EXEC_PLAIN;
	case GF_STEP_RECV:
		return coded ? GF_EXEC_LAND : GF_EXEC_PLAIN;
	case GF_STEP_RECV_REDUCE:
		return is_direct(run, step) ? GF_EXEC_PLAIN : GF_EXEC_LAND;
	case GF_STEP_REDUCE_SCATTER:
	case GF_STEP_ALL_GATHER:
		return GF_EXEC_CALL;
	default:
		return GF_EXEC_NOW;
	}
}

static int prepare_teams(struct gf_exec_run *r, struct gf_error *err)
{
	const struct gf_schedule *s = r->schedule;
	struct gf_comm *c = r->exec->comm;
	int rc = 0;

	if (!s->nteams)
		return 0;
	if (!c->ops->team)
		return gf_error_set(err, -ENOTSUP,
				    "transport %s has no collectives of its own between these %d "
				    "ranks",
				    c->ops->name, c->ranks);
	if (r->element.codec)
		return gf_error_set(err, -ENOTSUP,
				    "the transport's own collectives move values as they are, "
				    "without %s",
				    r->element.codec->name);
	r->teams = gf_xcalloc(s->nteams, sizeof(*r->teams));
	for (size_t i = 0; i < s->nteams && !rc; i++)
		rc = c->ops->team(c, r->channel, s->teams[i].first, s->teams[i].stride,
				  s->teams[i].size, &r->teams[i], err);
	return rc;
}

/* Slots for all steps of that way, as far as the staging memory goes. */
static int make_slots(struct gf_exec_run *run, struct gf_exec_slots *slots, enum gf_exec_way way,
		      struct gf_error *err)
{
	const struct gf_schedule *s = run->schedule;
	struct gf_comm *c = run->exec->comm;
	size_t most = 0, want, i;
	void *memory;
	int rc;

	slots->steps = gf_xcalloc(s->nsteps + 1, sizeof(*slots->steps));
	for (i = 0; i < s->nsteps; i++) {
		if (run->ways[i] != way)
			continue;
		slots->steps[slots->nsteps++] = (uint32_t)i;
		if (s->steps[i].range.count > most)
			most = s->steps[i].range.count;
	}
	if (!slots->nsteps)
		return 0;
	slots->slot_bytes = gf_element_wire_bytes(&run->element, most);
	slots->slot_bytes += -slots->slot_bytes % SLOT_ALIGNMENT;
	want = run->exec->staging_bytes / slots->slot_bytes;
	if (want < 2)
		want = run->exec->staging_bytes ? 2 : 1;
	slots->count = want < slots->nsteps ? (uint32_t)want : slots->nsteps;
	slots->free = gf_xcalloc(slots->count, sizeof(*slots->free));
	rc = c->ops->buffer_alloc(c, slots->count * slots->slot_bytes, &memory, err);
	if (!rc)
		slots->memory = memory;
	return rc;
}

/* Prepares the pace, with which this rank may sleep while others send to it over a network. The
 * same holds if another rank of this host passes on data that comes over a network. Of calls
 * nothing is known. */
static void prepare_pace(struct gf_exec_run *r)
{
	struct gf_comm *c = r->exec->comm;
	size_t n = r->schedule->count_elems;
	double elem_bytes = n ? (double)gf_element_wire_bytes(&r->element, n) / (double)n : 0;
	bool far = false;

	r->counts = gf_xcalloc((size_t)c->ranks, sizeof(*r->counts));
	for (int peer = 0; peer < c->ranks; peer++)
		r->counts[peer] = !c->ops->reduces_from || !c->ops->reduces_from(c, peer);
	if (r->schedule->nteams)
		return;
	gf_pace_init(&r->pace, r->schedule, r->counts, elem_bytes, c->local_ranks > 1);
	for (int peer = 0; peer < c->ranks; peer++)
		far |= peer != c->rank && r->counts[peer];
	if (r->pace.arrivals || !far)
		return;
	for (int peer = 0; peer < c->ranks; peer++)
		r->counts[peer] = true;
	gf_pace_init(&r->pace, r->schedule, r->counts, elem_bytes, c->local_ranks > 1);
}

/* --- sums that go back to the rank that sent a part of them ---------------
 * comm.h, isend_lent.
 *
 * A rank lends a range to a peer if it sends the range to the peer and then receives the same range
 * from the peer, before any other step of its own touches it. The peer puts the sum back if it
 * reduces into a range and then, before the range changes, sends it to the rank that the data came
 * from. Each rank decides by its own schedule, and is right about itself. The transport saves a
 * copy only if both decide so.
 */

/* Has all that `later` waits for come to its end once `earlier` has? */
static bool follows(const struct gf_schedule *s, uint32_t later, uint32_t earlier)
{
	const struct gf_step *step = &s->steps[later];
	const struct gf_step *before = &s->steps[earlier];
	const uint32_t *deps = s->deps;
	uint32_t i, k;

	for (i = 0; i < step->ndeps; i++) {
		uint32_t d = deps[step->first_dep + i];

		for (k = 0; k < before->ndeps; k++)
			if (deps[before->first_dep + k] == d)
				break;
		if (d != earlier && k == before->ndeps)
			return false;
	}
	return true;
}

/* The step with that operation on the range of `i`, with its peer, that comes right after it; 0:
 * there is none, for none comes after nothing. */
static uint32_t next_on_range(const struct gf_exec_run *run, uint32_t i, enum gf_step_op op)
{
	const struct gf_step *steps = run->schedule->steps;
	uint32_t k, user;

	for (k = run->first_user[i]; k < run->first_user[i + 1]; k++) {
		user = run->users[k];
		if (steps[user].op == op && steps[user].peer == steps[i].peer &&
		    gf_range_same(steps[user].range, steps[i].range) &&
		    follows(run->schedule, user, i))
			return user;
	}
	return 0;
}

/* After the ways and the users of the steps are known. */
static void find_loans(struct gf_exec_run *run)
{
	const struct gf_schedule *s = run->schedule;
	struct gf_comm *c = run->exec->comm;
	uint32_t i, back;

	run->loans = gf_xcalloc(s->nsteps + 1, sizeof(*run->loans));
	for (i = 0; c->ops->isend_lent && i < s->nsteps; i++) {
		if (run->ways[i] != GF_EXEC_PLAIN || run->loans[i] ||
		    !c->ops->reduces_from(c, s->steps[i].peer))
			continue;
		if (s->steps[i].op == GF_STEP_SEND && next_on_range(run, i, GF_STEP_RECV)) {
			run->loans[i] = GF_EXEC_LENT;
		} else if (s->steps[i].op == GF_STEP_RECV_REDUCE &&
			   (back = next_on_range(run, i, GF_STEP_SEND))) {
			run->loans[i] = GF_EXEC_BACK;
			run->loans[back] = GF_EXEC_BACK;
		}
	}
}

/* --- preparing ------------------------------------------------------------ */

static int prepare_steps(struct gf_exec_run *r, struct gf_error *err)
{
	const struct gf_schedule *s = r->schedule;
	struct gf_comm *c = r->exec->comm;
	void *scratch = NULL;
	int rc = 0;

	r->states = gf_xcalloc(s->nsteps + 1, sizeof(*r->states));
	r->ready = gf_xcalloc(s->nsteps + 1, sizeof(*r->ready));
	r->active = gf_xcalloc(s->nsteps + 1, sizeof(*r->active));
	r->fronts = gf_xcalloc((size_t)s->ranks * 2, sizeof(*r->fronts));
	r->ways = gf_xcalloc(s->nsteps + 1, 1);
	for (size_t i = 0; i < s->nsteps; i++)
		r->ways[i] = (unsigned char)way_of(r, &s->steps[i]);
	list_users(r);
	find_loans(r);
	prepare_pace(r);
	if (s->scratch_elems)
		rc = c->ops->buffer_alloc(c, s->scratch_elems * r->element.size_bytes, &scratch,
					  err);
	r->scratch = scratch;
	rc = rc ?: prepare_teams(r, err);
	rc = rc ?: make_slots(r, &r->landing, GF_EXEC_LAND, err);
	return rc ?: make_slots(r, &r->outgoing, GF_EXEC_CODED, err);
}

/* A run without steps, the transport's own all-reduce. With a codec whose values are numbers of a
 * type that the library knows (f16 and bf16), the whole message is encoded once, reduced in that
 * type, and decoded. */
static int prepare_library(struct gf_exec_run *run, struct gf_error *err)
{
	struct gf_comm *c = run->exec->comm;
	const struct gf_codec *codec = run->element.codec;
	void *memory;
	int rc;

	if (!c->ops->iallreduce)
		return gf_error_set(
			err, -ENOTSUP,
			"transport %s has no all-reduce of its own between these %d ranks",
			c->ops->name, c->ranks);
	if (!run->element.number)
		return gf_error_set(err, -ENOTSUP,
				    "library: the transport reduces numbers, not sparse sets");
	run->wire = run->element;
	if (!codec)
		return 0;
	if (!codec->adds)
		return gf_error_set(err, -ENOTSUP,
				    "library: the transport reduces numbers, and what %s puts on "
				    "the wire are none",
				    codec->name);
	/* the element that the codec's encoded values are, as numbers */
	run->wire = gf_element_number(codec->dtype, run->element.op);
	rc = c->ops->buffer_alloc(c, gf_codec_wire_bytes(codec, run->count_elems), &memory, err);
	if (!rc)
		run->outgoing.memory = memory;
	return rc;
}

static int check(const struct gf_exec *x, const struct gf_exec_config *config, struct gf_error *err)
{
	const struct gf_schedule *s = config->schedule;
	const struct gf_comm *c = x->comm;

	if (s && (s->rank != c->rank || s->ranks != c->ranks))
		return gf_error_set(err, -EINVAL, "schedule of rank %d of %d on rank %d of %d",
				    s->rank, s->ranks, c->rank, c->ranks);
	if (s && gf_element_lossy(&config->element) && !s->lossy)
		return gf_error_set(err, -EINVAL, "codec %s: want a schedule made for lossy codecs",
				    config->element.codec->name);
	if (config->channel > GF_CHANNEL_LAST)
		return gf_error_set(err, -EINVAL, "want a channel <= %u, got %u", GF_CHANNEL_LAST,
				    config->channel);
	return 0;
}

int gf_exec_run_new(struct gf_exec *x, const struct gf_exec_config *config,
		    struct gf_exec_run **run, struct gf_error *err)
{
	struct gf_exec_run *r;
	int rc = check(x, config, err);

	if (rc)
		return rc;
	r = gf_xcalloc(1, sizeof(*r));
	r->exec = x;
	r->schedule = config->schedule;
	r->count_elems = r->schedule ? r->schedule->count_elems : config->count_elems;
	r->element =
		config->element.size_bytes ? config->element : gf_element_number(GF_F32, GF_OP_SUM);
	r->received = r->element;
	if (!r->element.number) {
		r->received.reduce = merge_received;
		r->received.ctx = r;
	}
	r->half = config->half;
	r->channel = config->channel;
	rc = r->schedule ? prepare_steps(r, err) : prepare_library(r, err);
	if (rc)
		gf_exec_run_free(r);
	else
		*run = r;
	return rc;
}

void gf_exec_stop(struct gf_exec_run *run)
{
	struct gf_comm *c = run->exec->comm;

	if (!run->started || run->done)
		return;
	for (uint32_t i = 0; i < run->nactive; i++)
		c->ops->cancel(c, run->states[run->active[i]].request);
	run->nactive = 0;
	if (run->library)
		c->ops->cancel(c, run->library);
	run->library = NULL;
	run->started = false;
	*run->link = run->next;
	if (run->next)
		run->next->link = run->link;
}

static void release_slots(struct gf_comm *c, struct gf_exec_slots *slots)
{
	c->ops->buffer_free(c, slots->memory);
	free(slots->steps);
	free(slots->free);
}

void gf_exec_run_free(struct gf_exec_run *run)
{
	struct gf_comm *c;

	if (!run)
		return;
	c = run->exec->comm;
	gf_exec_stop(run);
	c->ops->buffer_free(c, run->scratch);
	release_slots(c, &run->landing);
	release_slots(c, &run->outgoing);
	gf_pace_release(&run->pace);
	free(run->counts);
	free(run->ways);
	free(run->loans);
	free(run->teams);
	free(run->states);
	free(run->users);
	free(run->first_user);
	free(run->ready);
	free(run->active);
	free(run->fronts);
	free(run);
}
