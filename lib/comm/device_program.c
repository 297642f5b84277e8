/* SPDX-License-Identifier: BSD-3-Clause */
#include "comm/device_program.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/heap.h"

#define WIRE_ALIGN 256

size_t gf_device_wire_bytes(const struct gf_codec *codec, size_t count_elems)
{
	return codec ? gf_codec_wire_bytes(codec, count_elems)
		     : count_elems * sizeof(float);
}

static struct gf_device_step *add(struct gf_device_program *p,
				  enum gf_device_op op, struct gf_range range)
{
	struct gf_device_step *step =
		gf_array_push(&p->steps, &p->nsteps, &p->capacity);

	memset(step, 0, sizeof(*step));
	step->op = op;
	step->range = range;
	return step;
}

static void begin(struct gf_device_program *p, int rank, int ranks,
		  size_t count_elems, const struct gf_codec *codec)
{
	memset(p, 0, sizeof(*p));
	p->rank = rank;
	p->ranks = ranks;
	p->count_elems = count_elems;
	p->codec = codec;
}

/* --- by step -------------------------------------------------------------- */

/* The group that is gathering: steps of the schedule, in program order. */
struct round {
	const struct gf_schedule *s;
	struct gf_device_program *p;
	uint32_t *members;
	size_t nmembers;
	bool *inside; /* per step: is a member */
};

/* Sends go out coded; what is reduced or decoded lands beside the message. */
static bool on_wire(const struct round *r, const struct gf_step *step)
{
	return r->p->codec || step->op == GF_STEP_RECV_REDUCE;
}

static size_t take_wire(struct gf_device_program *p, size_t *used,
			size_t count_elems)
{
	size_t at = *used;

	*used += gf_device_wire_bytes(p->codec, count_elems) + WIRE_ALIGN - 1;
	*used -= *used % WIRE_ALIGN;
	if (*used > p->wire_bytes)
		p->wire_bytes = *used;
	return at;
}

static void transfer(struct round *r, uint32_t i, size_t wire_at)
{
	const struct gf_step *step = &r->s->steps[i];
	struct gf_device_step *t =
		add(r->p,
		    step->op == GF_STEP_SEND ? GF_DEVICE_SEND : GF_DEVICE_RECV,
		    step->range);

	t->peer = step->peer;
	t->on_wire = on_wire(r, step);
	t->wire_at = wire_at;
}

/* Encodes what goes, exchanges, takes up what has come. */
static void end_round(struct round *r)
{
	size_t *wire_at = gf_xcalloc(r->nmembers + 1, sizeof(*wire_at));
	size_t used = 0, k;

	for (k = 0; k < r->nmembers; k++) {
		const struct gf_step *step = &r->s->steps[r->members[k]];

		if (on_wire(r, step))
			wire_at[k] = take_wire(r->p, &used, step->range.count);
		if (step->op != GF_STEP_SEND || !r->p->codec)
			continue;
		/* coll/schedule.h, CODECS: the sender keeps what it sent */
		add(r->p, GF_DEVICE_ENCODE, step->range)->wire_at = wire_at[k];
		add(r->p, GF_DEVICE_DECODE, step->range)->wire_at = wire_at[k];
	}
	if (r->nmembers) {
		add(r->p, GF_DEVICE_GROUP, gf_data(0, 0));
		for (k = 0; k < r->nmembers; k++)
			transfer(r, r->members[k], wire_at[k]);
		add(r->p, GF_DEVICE_GROUP_END, gf_data(0, 0));
	}
	for (k = 0; k < r->nmembers; k++) {
		const struct gf_step *step = &r->s->steps[r->members[k]];

		r->inside[r->members[k]] = false;
		if (step->op == GF_STEP_SEND || !on_wire(r, step))
			continue;
		add(r->p,
		    step->op == GF_STEP_RECV ? GF_DEVICE_DECODE
					     : GF_DEVICE_REDUCE_WIRE,
		    step->range)
			->wire_at = wire_at[k];
	}
	r->nmembers = 0;
	free(wire_at);
}

/* It is taken up after the group, beside which it lands. */
static bool lands(const struct round *r, const struct gf_step *step)
{
	return step->op == GF_STEP_RECV_REDUCE ||
	       (step->op == GF_STEP_RECV && r->p->codec);
}

/* Must the round end before this step begins? What lands is taken up in
 * program order, when the group's sends have ended: partners that exchange and
 * keep the sum go together, and so do those whose shares a server adds up. */
static bool waits_for_round(const struct round *r, const struct gf_step *step)
{
	uint32_t k, dep;

	for (k = 0; k < step->ndeps; k++) {
		const struct gf_step *before;

		dep = r->s->deps[step->first_dep + k];
		before = &r->s->steps[dep];
		if (!r->inside[dep])
			continue;
		if (!lands(r, step) || step->after == dep + 1 ||
		    !(before->op == GF_STEP_SEND || lands(r, before)))
			return true;
	}
	return false;
}

static void local_step(struct round *r, const struct gf_step *step)
{
	struct gf_device_step *local;

	if (step->op == GF_STEP_ROUND) {
		size_t used = 0;

		if (!r->p->codec)
			return;
		/* on the wire memory of groups that have ended */
		take_wire(r->p, &used, step->range.count);
		add(r->p, GF_DEVICE_ENCODE, step->range);
		add(r->p, GF_DEVICE_DECODE, step->range);
		return;
	}
	local = add(r->p,
		    step->op == GF_STEP_COPY ? GF_DEVICE_COPY
					     : GF_DEVICE_REDUCE,
		    step->range);
	local->from = step->from;
}

void gf_device_program_of(const struct gf_schedule *s,
			  const struct gf_codec *codec,
			  struct gf_device_program *p)
{
	struct round r = {.s = s, .p = p};
	uint32_t i;

	begin(p, s->rank, s->ranks, s->count_elems, codec);
	p->scratch_elems = s->scratch_elems;
	r.members = gf_xcalloc(s->nsteps + 1, sizeof(*r.members));
	r.inside = gf_xcalloc(s->nsteps + 1, sizeof(*r.inside));
	for (i = 0; i < s->nsteps; i++) {
		const struct gf_step *step = &s->steps[i];

		if (waits_for_round(&r, step))
			end_round(&r);
		switch (step->op) {
		case GF_STEP_SEND:
		case GF_STEP_RECV:
		case GF_STEP_RECV_REDUCE:
			r.inside[i] = true;
			r.members[r.nmembers++] = i;
			break;
		default:
			local_step(&r, step);
		}
	}
	end_round(&r);
	free(r.members);
	free(r.inside);
}

/* --- by stage ------------------------------------------------------------- */

static void add_stages(struct gf_device_program *p,
		       const struct gf_coll_args *args, size_t even)
{
	struct gf_range held = gf_data(0, even);
	int stride = 1;
	size_t i;

	for (i = 0; i < args->nfactors; i++) {
		const int size = args->factors[i];
		const int me = p->rank / stride % size;
		struct gf_group *team;

		if (size > 1) {
			add(p, GF_DEVICE_REDUCE_SCATTER, held)->team =
				p->nteams;
			team = gf_array_push(&p->teams, &p->nteams,
					     &p->teams_capacity);
			*team = (struct gf_group){p->rank - me * stride, stride,
						  size, me};
			held = gf_range_part(held, size, me);
		}
		stride *= size;
	}
}

static void by_stage(const struct gf_coll_args *args, int rank,
		     struct gf_device_program *p)
{
	const size_t rest = args->count_elems % (size_t)args->ranks;
	const size_t even = args->count_elems - rest;
	size_t i, end;

	begin(p, rank, args->ranks, args->count_elems, NULL);
	if (even)
		add_stages(p, args, even);
	end = p->nsteps;
	for (i = end; i-- > 0;) {
		const struct gf_device_step out = p->steps[i];

		add(p, GF_DEVICE_ALL_GATHER, out.range)->team = out.team;
	}
	if (rest)
		add(p, GF_DEVICE_ALL_REDUCE, gf_data(even, rest));
}

static bool goes_by_stage(const struct gf_algorithm *a,
			  const struct gf_coll_args *args,
			  const struct gf_codec *codec)
{
	return !codec && args->nfactors && args->half == GF_COLL_WHOLE &&
	       !strcmp(a->name, "blueconnect");
}

static int by_step(const struct gf_algorithm *a,
		   const struct gf_coll_args *args, int rank,
		   const struct gf_codec *codec, struct gf_device_program *p,
		   struct gf_error *err)
{
	struct gf_coll_args whole = *args;
	struct gf_schedule s;
	int rc;

	/* NCCL cuts transfers up by itself. */
	whole.segment_elems = 0;
	whole.lossy = codec != NULL;
	rc = gf_algorithm_schedule(a, &whole, rank, &s, err);
	if (rc)
		return rc;
	gf_device_program_of(&s, codec, p);
	gf_schedule_release(&s);
	return 0;
}

int gf_device_program_new(const struct gf_algorithm *a,
			  const struct gf_coll_args *args, int rank,
			  const struct gf_codec *codec,
			  struct gf_device_program *p, struct gf_error *err)
{
	if (codec && !strcmp(codec->name, "f32"))
		codec = NULL;
	if (!a->build) {
		if (codec)
			return gf_error_set(err, -ENOTSUP,
					    "%s sends f32 as it is, not %s",
					    a->name, codec->name);
		begin(p, rank, args->ranks, args->count_elems, NULL);
		if (args->count_elems && args->ranks > 1)
			add(p, GF_DEVICE_ALL_REDUCE,
			    gf_data(0, args->count_elems));
		return 0;
	}
	if (goes_by_stage(a, args, codec)) {
		by_stage(args, rank, p);
		return 0;
	}
	return by_step(a, args, rank, codec, p, err);
}

void gf_device_program_release(struct gf_device_program *p)
{
	if (!p)
		return;
	free(p->steps);
	free(p->teams);
	memset(p, 0, sizeof(*p));
}

size_t gf_device_program_sent(const struct gf_device_program *p)
{
	size_t bytes = 0, i;

	for (i = 0; i < p->nsteps; i++) {
		const struct gf_device_step *s = &p->steps[i];

		if (s->op == GF_DEVICE_SEND) {
			bytes += gf_device_wire_bytes(p->codec, s->range.count);
		} else if (s->op == GF_DEVICE_REDUCE_SCATTER ||
			   s->op == GF_DEVICE_ALL_GATHER) {
			size_t size = (size_t)p->teams[s->team].size;

			bytes += s->range.count / size * (size - 1) *
				 sizeof(float);
		}
	}
	return bytes;
}
