/* SPDX-License-Identifier: BSD-3-Clause */
#include "coll/schedule.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/heap.h"

const char *gf_buffer_name(enum gf_buffer buffer)
{
	return buffer == GF_BUFFER_DATA ? "data" : "scratch";
}

void gf_schedule_init(struct gf_schedule *s, int rank, int ranks,
		      size_t count_elems)
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

static struct gf_step *append(struct gf_schedule *s, enum gf_step_op op,
			      struct gf_range range)
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

static void append_local(struct gf_schedule *s, enum gf_step_op op,
			 struct gf_range to, struct gf_range from)
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

void gf_schedule_recv_reduce(struct gf_schedule *s, int peer,
			     struct gf_range range)
{
	append_message(s, GF_STEP_RECV_REDUCE, peer, range);
}

void gf_schedule_copy(struct gf_schedule *s, struct gf_range to,
		      struct gf_range from)
{
	append_local(s, GF_STEP_COPY, to, from);
}

void gf_schedule_reduce(struct gf_schedule *s, struct gf_range to,
			struct gf_range from)
{
	append_local(s, GF_STEP_REDUCE, to, from);
}

void gf_schedule_round(struct gf_schedule *s, struct gf_range range)
{
	if (range.count)
		append(s, GF_STEP_ROUND, range);
}

void gf_schedule_after(struct gf_schedule *s, size_t step)
{
	assert(s->nsteps && step < s->nsteps - 1);
	s->steps[s->nsteps - 1].after = (uint32_t)step + 1;
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
