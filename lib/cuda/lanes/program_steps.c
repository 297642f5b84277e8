/* SPDX-License-Identifier: BSD-3-Clause */
/* A schedule as a device program, step by step: steps gather in rounds. Each round is a group of
 * NCCL's, with kernels before and after it. */
#include <string.h>

#include "base/heap.h"
#include "cuda/lanes/program.h"
#include "base/array.h"

/*
 * The use of the wire memory while a program is made: places for the data that a round's transfers
 * send and receive. A place is given back after the last step that uses it. A place that holds the
 * code of a range serves all sends of that range until the range is written.
 */
struct place {
	size_t at, end;
	struct gf_range range; /* its code lies there; count 0: none */
	uint32_t until;        /* the last step of the schedule to use it */
};

struct wire {
	struct place *places; /* by `at`, apart */
	size_t nplaces, capacity;
	size_t most_bytes; /* that were ever in use */
};

/* Kernels want their vectors aligned. */
#define ALIGN 256

/* Finds room for it; `at` and `end` are filled in, the rest is given. Returns `at`. The first gap
 * that is large enough. */
static size_t take_place(struct wire *w, struct place place, size_t size_bytes)
{
	size_t i;

	size_bytes += ALIGN - 1;
	size_bytes -= size_bytes % ALIGN;
	place.at = 0;
	for (i = 0; i < w->nplaces; i++) {
		if (w->places[i].at - place.at >= size_bytes)
			break;
		place.at = w->places[i].end;
	}
	place.end = place.at + size_bytes;
	gf_array_push(&w->places, &w->nplaces, &w->capacity);
	memmove(&w->places[i + 1], &w->places[i], (w->nplaces - 1 - i) * sizeof(place));
	w->places[i] = place;
	if (place.end > w->most_bytes)
		w->most_bytes = place.end;
	return place.at;
}

/* The place whose code serves that step's range, or NULL. */
static const struct place *find_place(const struct wire *w, struct gf_range range, uint32_t step)
{
	for (size_t i = 0; i < w->nplaces; i++) {
		const struct place *p = &w->places[i];

		if (p->range.count && gf_range_same(p->range, range) && p->until >= step)
			return p;
	}
	return NULL;
}

/* All steps before this one are done: gives back their places. */
static void pass_step(struct wire *w, uint32_t step)
{
	size_t i, kept = 0;

	for (i = 0; i < w->nplaces; i++)
		if (w->places[i].until >= step)
			w->places[kept++] = w->places[i];
	w->nplaces = kept;
}

struct walk {
	const struct gf_schedule *s;
	struct gf_lane_program *p;
	struct wire wire;
	/* The round that gathers: steps of the schedule, in program order. */
	uint32_t *members;
	size_t nmembers;
	bool *inside; /* per step: is a member */
};

/* Sends go out coded; data to be reduced or decoded lands beside the message. */
static bool on_wire(const struct walk *w, const struct gf_step *step)
{
	return w->p->codec || step->op == GF_STEP_RECV_REDUCE;
}

/* Does the step's data land in wire memory, to be taken up after the group? */
static bool lands(const struct walk *w, const struct gf_step *step)
{
	return step->op == GF_STEP_RECV_REDUCE || (step->op == GF_STEP_RECV && w->p->codec);
}

static bool overlap(struct gf_range a, struct gf_range b)
{
	return a.buffer == b.buffer && a.first < b.first + b.count && b.first < a.first + a.count;
}

/* The last send of the data that step i leaves in its range. With a codec, any other send of a part
 * of the range is a writer (collectives/schedule.h, CODECS). */
static uint32_t sent_until(const struct gf_schedule *s, uint32_t i)
{
	const struct gf_range range = s->steps[i].range;
	uint32_t until = i, k;

	for (k = i + 1; k < s->nsteps; k++) {
		const struct gf_step *step = &s->steps[k];

		if (step->op == GF_STEP_SEND && gf_range_same(step->range, range))
			until = k;
		else if (overlap(step->range, range))
			break;
	}
	return until;
}

/* Elements of the range before its first whole grain: those of a message that is skewed, or of its
 * copy in scratch, where the range begins with it. */
static size_t head_of(const struct walk *w, struct gf_range range)
{
	const size_t skew = w->p->skew_elems, head = gf_lane_program_head(skew);
	const bool begins = range.buffer == GF_BUFFER_DATA
				    ? !range.first
				    : range.first % GF_LANE_GRAIN_ELEMS == skew;

	if (w->p->codec || !begins)
		return 0;
	return head < range.count ? head : range.count;
}

static size_t take(struct walk *w, uint32_t i, bool keeps_code)
{
	struct place place = {.until = i};
	const struct gf_range range = w->s->steps[i].range;
	const size_t skew_bytes = head_of(w, range) ? w->p->skew_elems * sizeof(float) : 0;

	if (keeps_code) {
		place.range = range;
		place.until = sent_until(w->s, i);
	}
	return skew_bytes + take_place(&w->wire, place,
				       skew_bytes + gf_lane_program_wire_bytes(w->p, range.count));
}

static void code(struct walk *w, enum gf_lane_op op, struct gf_range range, size_t wire_at)
{
	gf_lane_program_add(w->p, op, range)->wire_at = wire_at;
}

/* Encodes a range and keeps what its receiver decodes. */
static size_t encode(struct walk *w, uint32_t i)
{
	const struct gf_range range = w->s->steps[i].range;
	const size_t at = take(w, i, true);

	code(w, GF_LANE_ENCODE, range, at);
	code(w, GF_LANE_DECODE, range, at);
	return at;
}

/* The place of the data that a member sends or receives. Data that came in code, or went out
 * before, goes on as it is. */
static size_t place_of(struct walk *w, uint32_t i)
{
	const struct gf_step *step = &w->s->steps[i];
	const struct place *there;

	if (!on_wire(w, step))
		return 0;
	if (step->op != GF_STEP_SEND)
		return take(w, i, step->op == GF_STEP_RECV);
	there = find_place(&w->wire, step->range, i);
	return there ? there->at : encode(w, i);
}

static void transfer_range(struct walk *w, const struct gf_step *step, struct gf_range range,
			   size_t wire_at)
{
	struct gf_lane_step *t;

	if (!range.count)
		return;
	t = gf_lane_program_add(w->p, step->op == GF_STEP_SEND ? GF_LANE_SEND : GF_LANE_RECV,
				range);
	t->peer = step->peer;
	t->on_wire = on_wire(w, step);
	t->wire_at = wire_at;
}

/* The few elements before the first whole grain go beside the others. */
static void transfer(struct walk *w, uint32_t i, size_t wire_at)
{
	const struct gf_step *step = &w->s->steps[i];
	struct gf_range range = step->range;
	const size_t head = head_of(w, range);

	transfer_range(w, step, (struct gf_range){range.buffer, range.first, head}, wire_at);
	range.first += head;
	range.count -= head;
	transfer_range(w, step, range, wire_at + (on_wire(w, step) ? head * sizeof(float) : 0));
}

/* Encodes the data to send, exchanges, takes up the data received, all before step `next`. */
static void end_round(struct walk *w, uint32_t next)
{
	GF_FREED size_t *wire_at = gf_xcalloc(w->nmembers + 1, sizeof(*wire_at));

	for (size_t k = 0; k < w->nmembers; k++)
		wire_at[k] = place_of(w, w->members[k]);
	if (w->nmembers) {
		gf_lane_program_add(w->p, GF_LANE_GROUP, gf_data(0, 0));
		for (size_t k = 0; k < w->nmembers; k++)
			transfer(w, w->members[k], wire_at[k]);
		gf_lane_program_add(w->p, GF_LANE_GROUP_END, gf_data(0, 0));
	}
	for (size_t k = 0; k < w->nmembers; k++) {
		const struct gf_step *step = &w->s->steps[w->members[k]];

		w->inside[w->members[k]] = false;
		if (lands(w, step))
			code(w, step->op == GF_STEP_RECV ? GF_LANE_DECODE : GF_LANE_REDUCE_WIRE,
			     step->range, wire_at[k]);
	}
	w->nmembers = 0;
	pass_step(&w->wire, next);
}

/* Must the round end before this step begins? Data that lands is taken up in program order, after
 * the group's sends have ended. So partners that exchange and keep the sum go together, and so do
 * ranks whose shares a server adds up. Nor do sends of one range wait for each other: the range is
 * encoded once. */
static bool waits_for(const struct walk *w, const struct gf_step *step, uint32_t dep)
{
	const struct gf_step *before = &w->s->steps[dep];

	if (!w->inside[dep])
		return false;
	if (step->after == dep + 1)
		return true;
	if (lands(w, step))
		return !(before->op == GF_STEP_SEND || lands(w, before));
	return !(step->op == GF_STEP_SEND && before->op == GF_STEP_SEND &&
		 gf_range_same(step->range, before->range));
}

static bool waits_for_round(const struct walk *w, const struct gf_step *step)
{
	for (uint32_t k = 0; k < step->ndeps; k++)
		if (waits_for(w, step, w->s->deps[step->first_dep + k]))
			return true;
	return false;
}

static void local_step(struct walk *w, uint32_t i)
{
	const struct gf_step *step = &w->s->steps[i];

	if (step->op == GF_STEP_ROUND) {
		if (w->p->codec)
			(void)encode(w, i);
		return;
	}
	if (gf_step_calls(step)) {
		gf_lane_program_add(w->p,
				    step->op == GF_STEP_ALL_GATHER ? GF_LANE_ALL_GATHER
								   : GF_LANE_REDUCE_SCATTER,
				    step->range)
			->team = step->match;
		return;
	}
	gf_lane_program_add(w->p, step->op == GF_STEP_COPY ? GF_LANE_COPY : GF_LANE_REDUCE,
			    step->range)
		->from = step->from;
}

static void begin(const struct gf_schedule *s, struct gf_lane_program *p)
{
	*p = (struct gf_lane_program){
		.rank = s->rank,
		.ranks = s->ranks,
		.contributors = s->contributors,
		.count_elems = s->count_elems,
		.owned = s->nowned ? s->owned[0] : gf_data(0, 0),
		.scratch_elems = s->scratch_elems,
		.teams = s->nteams ? gf_xmemdup(s->teams, s->nteams * sizeof(*s->teams)) : NULL,
		.nteams = s->nteams,
	};
}

static void walk(const struct gf_schedule *s, struct gf_lane_program *p)
{
	struct walk w = {.s = s, .p = p};

	w.members = gf_xcalloc(s->nsteps + 1, sizeof(*w.members));
	w.inside = gf_xcalloc(s->nsteps + 1, sizeof(*w.inside));
	for (uint32_t i = 0; i < s->nsteps; i++) {
		const struct gf_step *step = &s->steps[i];

		if (waits_for_round(&w, step))
			end_round(&w, i);
		switch (step->op) {
		case GF_STEP_SEND:
		case GF_STEP_RECV:
		case GF_STEP_RECV_REDUCE:
			w.inside[i] = true;
			w.members[w.nmembers++] = i;
			break;
		default:
			local_step(&w, i);
		}
	}
	end_round(&w, (uint32_t)s->nsteps);
	p->wire_bytes = w.wire.most_bytes;
	free(w.wire.places);
	free(w.members);
	free(w.inside);
}

void gf_lane_program_skewed(const struct gf_schedule *s, const struct gf_codec *codec,
			    size_t skew_elems, struct gf_lane_program *p)
{
	begin(s, p);
	p->codec = codec;
	p->skew_elems = skew_elems;
	walk(s, p);
}

void gf_lane_program_of(const struct gf_schedule *s, const struct gf_codec *codec,
			struct gf_lane_program *p)
{
	gf_lane_program_skewed(s, codec, 0, p);
}

void gf_lane_program_of_sets(const struct gf_schedule *s, const struct gf_lane_sets *sets,
			     struct gf_lane_program *p)
{
	begin(s, p);
	p->sets = sets;
	walk(s, p);
}
