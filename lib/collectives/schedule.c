/* SPDX-License-Identifier: BSD-3-Clause */
#include "collectives/schedule.h"

#include <assert.h>

#include "base/array.h"
#include "base/heap.h"

const char *gf_buffer_name(enum gf_buffer buffer)
{
	return buffer == GF_BUFFER_DATA ? "data" : "scratch";
}

void gf_schedule_init(struct gf_schedule *s, int rank, int ranks, size_t count_elems)
{
	assert(ranks >= 1 && rank >= 0 && rank < ranks);
	*s = (struct gf_schedule){
		.rank = rank,
		.ranks = ranks,
		.contributors = ranks,
		.count_elems = count_elems,
		.nsent = gf_xcalloc((size_t)ranks, sizeof(*s->nsent)),
		.nreceived = gf_xcalloc((size_t)ranks, sizeof(*s->nreceived)),
	};
}

void gf_schedule_release(struct gf_schedule *s)
{
	if (!s)
		return;
	free(s->steps);
	free(s->deps);
	free(s->teams);
	free(s->owned);
	free(s->nsent);
	free(s->nreceived);
	*s = (struct gf_schedule){0};
}

struct gf_range gf_schedule_scratch(struct gf_schedule *s, size_t count)
{
	struct gf_range range = {GF_BUFFER_SCRATCH, s->scratch_elems, count};

	s->scratch_elems += count;
	return range;
}

void gf_schedule_stage(struct gf_schedule *s, int stage)
{
	assert(stage >= 0 && stage <= UINT16_MAX);
	s->stage = (uint16_t)stage;
}

static struct gf_step *append(struct gf_schedule *s, enum gf_step_op op, struct gf_range range)
{
	struct gf_step *step;

	assert(s->nsteps < UINT32_MAX - 1);
	step = gf_array_push(&s->steps, &s->nsteps, &s->capacity);
	step->op = op;
	step->peer = -1;
	step->stage = s->stage;
	step->range = range;
	return step;
}

static void append_message(struct gf_schedule *s, enum gf_step_op op, int peer,
			   struct gf_range range)
{
	uint32_t *counts = op == GF_STEP_SEND ? s->nsent : s->nreceived;
	struct gf_step *step;

	assert(peer >= 0 && peer < s->ranks && peer != s->rank);
	if (!range.count)
		return;
	step = append(s, op, range);
	step->peer = peer;
	step->match = counts[peer]++;
}

static void append_local(struct gf_schedule *s, enum gf_step_op op, struct gf_range to,
			 struct gf_range from)
{
	assert(to.count == from.count);
	if (to.count)
		append(s, op, to)->from = from;
}

void gf_schedule_send(struct gf_schedule *s, int peer, struct gf_range range)
{
	append_message(s, GF_STEP_SEND, peer, range);
}

void gf_schedule_recv(struct gf_schedule *s, int peer, struct gf_range range)
{
	append_message(s, GF_STEP_RECV, peer, range);
}

void gf_schedule_recv_reduce(struct gf_schedule *s, int peer, struct gf_range range)
{
	append_message(s, GF_STEP_RECV_REDUCE, peer, range);
}

void gf_schedule_copy(struct gf_schedule *s, struct gf_range to, struct gf_range from)
{
	append_local(s, GF_STEP_COPY, to, from);
}

void gf_schedule_reduce(struct gf_schedule *s, struct gf_range to, struct gf_range from)
{
	append_local(s, GF_STEP_REDUCE, to, from);
}

void gf_schedule_call(struct gf_schedule *s, enum gf_step_op op, const struct gf_group *team,
		      struct gf_range range)
{
	if (team->size < 2 || !range.count)
		return;
	append(s, op, range)->match = (uint32_t)s->nteams;
	*gf_array_push(&s->teams, &s->nteams, &s->teams_capacity) = *team;
}

void gf_schedule_round(struct gf_schedule *s, struct gf_range range)
{
	if (range.count)
		append(s, GF_STEP_ROUND, range);
}

void gf_schedule_own(struct gf_schedule *s, struct gf_range range)
{
	if (range.count)
		*gf_array_push(&s->owned, &s->nowned, &s->owned_capacity) = range;
}

void gf_schedule_repeat(struct gf_schedule *s, const struct gf_step *like, struct gf_range range,
			uint32_t after)
{
	if (!range.count)
		return;
	s->stage = like->stage;
	if (like->peer >= 0)
		append_message(s, like->op, like->peer, range);
	else
		append(s, like->op, range);
	s->steps[s->nsteps - 1].after = after;
}

void gf_schedule_after(struct gf_schedule *s, size_t step)
{
	assert(s->nsteps && step < s->nsteps - 1);
	s->steps[s->nsteps - 1].after = (uint32_t)step + 1;
}

/* A local step that waits for every step that no other waits for. */
static void join(struct gf_schedule *s)
{
	GF_FREED bool *awaited = gf_xcalloc(s->nsteps + 1, sizeof(*awaited));
	size_t n = s->nsteps, capacity = s->ndeps, i;
	struct gf_step *step;

	for (i = 0; i < s->ndeps; i++)
		awaited[s->deps[i]] = true;
	step = append(s, GF_STEP_ROUND, gf_data(0, 1));
	step->first_dep = (uint32_t)s->ndeps;
	for (i = 0; i < n; i++)
		if (!awaited[i])
			*gf_array_push(&s->deps, &s->ndeps, &capacity) = (uint32_t)i;
	step->ndeps = (uint32_t)s->ndeps - step->first_dep;
}

static struct gf_range shifted(struct gf_range range, const struct gf_schedule *by)
{
	range.first += range.buffer == GF_BUFFER_DATA ? by->count_elems : by->scratch_elems;
	return range;
}

/* How many steps of s send to a peer, or receive from it. */
static uint32_t *count_messages(const struct gf_schedule *s, bool sends)
{
	uint32_t *count = gf_xcalloc((size_t)s->ranks, sizeof(*count));

	for (size_t i = 0; i < s->nsteps; i++)
		if (s->steps[i].peer >= 0 && (s->steps[i].op == GF_STEP_SEND) == sends)
			count[s->steps[i].peer]++;
	return count;
}

void gf_schedule_append(struct gf_schedule *s, const struct gf_schedule *next)
{
	const uint32_t joint = (uint32_t)s->nsteps;
	const size_t nteams = s->nteams;
	uint32_t base = joint + (joint > 0);
	GF_FREED uint32_t *sent = count_messages(s, true);
	GF_FREED uint32_t *received = count_messages(s, false);
	size_t i, k, capacity;

	assert(s->rank == next->rank && s->ranks == next->ranks);
	if (joint)
		join(s);
	for (i = 0; i < next->nteams; i++)
		*gf_array_push(&s->teams, &s->nteams, &s->teams_capacity) = next->teams[i];
	capacity = s->ndeps;
	for (i = 0; i < next->nsteps; i++) {
		const struct gf_step *from = &next->steps[i];
		struct gf_step *step = append(s, from->op, from->range);

		*step = *from;
		step->range = shifted(from->range, s);
		if (from->from.count)
			step->from = shifted(from->from, s);
		if (from->peer >= 0)
			step->match +=
				from->op == GF_STEP_SEND ? sent[from->peer] : received[from->peer];
		if (gf_step_calls(from))
			step->match += (uint32_t)nteams;
		step->after += from->after ? base : 0;
		step->first_dep = (uint32_t)s->ndeps;
		for (k = 0; k < from->ndeps; k++)
			*gf_array_push(&s->deps, &s->ndeps, &capacity) =
				next->deps[from->first_dep + k] + base;
		if (joint && !from->ndeps)
			*gf_array_push(&s->deps, &s->ndeps, &capacity) = joint;
		step->ndeps = (uint32_t)s->ndeps - step->first_dep;
	}
	s->count_elems += next->count_elems;
	s->scratch_elems += next->scratch_elems;
}

struct gf_range gf_range_part(struct gf_range range, int parts, int index)
{
	size_t n = (size_t)parts, i = (size_t)index;
	size_t length = range.count / n, longer = range.count % n;

	assert(parts > 0 && index >= 0 && index < parts);
	range.first += i * length + (i < longer ? i : longer);
	range.count = length + (i < longer);
	return range;
}
