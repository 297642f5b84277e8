/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Messages of a device engine that are packed chunks. What goes differs from
 * step to step, but how many chunks do is known: so are the sizes that packed
 * messages can have, and a program is made for each before the first step.
 */
#include <assert.h>
#include <stdlib.h>

#include "base/array.h"
#include "base/heap.h"
#include "rt/device_parts.h"

/* The norms go as on the host (select/csc.c), whatever the plan. */
#define NORMS_ALGORITHM "rhd"

static bool is_norms(const struct gf_device_engine *e, size_t message)
{
	return message == e->k.plan->nmessages;
}

/* --- programs ------------------------------------------------------------- */

/* Do both go alike, on the same lane? */
static bool alike(const struct gf_device_engine *e, size_t a, size_t b)
{
	const struct gf_message *messages = e->k.plan->messages;

	return e->messages[a].lane == e->messages[b].lane &&
	       gf_message_goes_as(&messages[a], &messages[b]);
}

static struct gf_device_pack *find_pack(const struct gf_device_engine *e,
					size_t like, size_t count_elems)
{
	size_t i;

	for (i = 0; i < e->npacks; i++)
		if (e->packs[i].like == like &&
		    e->packs[i].count_elems == count_elems)
			return &e->packs[i];
	return NULL;
}

static int add_pack(struct gf_device_engine *e, size_t like, size_t count_elems,
		    struct gf_error *err)
{
	const char *codec = e->k.plan->messages[like].codec;
	struct gf_device_pack *pack;

	if (!count_elems || count_elems == e->messages[like].count_elems ||
	    find_pack(e, like, count_elems))
		return 0;
	pack = gf_array_push(&e->packs, &e->npacks, &e->packs_capacity);
	*pack = (struct gf_device_pack){.like = like,
					.count_elems = count_elems};
	return gf_device_program_of_count(e, like, count_elems,
					  gf_codec_find(codec), &pack->program,
					  err);
}

/* Of so many chunks, and where the pool's short one is the last of them. */
static int add_packs(struct gf_device_engine *e, size_t like, size_t nchunks,
		     struct gf_error *err)
{
	const struct gf_selection *s = &e->k.plan->selection;
	const struct gf_device_message *last =
		&e->messages[e->k.plan->nmessages - 1];
	const size_t short_by =
		s->chunk_elems - 1 -
		(last->first_elem + last->count_elems - 1) % s->chunk_elems;
	int rc;

	if (!nchunks)
		return 0;
	rc = add_pack(e, like, nchunks * s->chunk_elems, err);
	return rc ? rc
		  : add_pack(e, like, nchunks * s->chunk_elems - short_by, err);
}

/* A message closes when more than the threshold waits (gf_csc_begin): all but
 * the last of a step have as many chunks. */
static int add_count(struct gf_device_engine *e, size_t like, size_t nchunks,
		     struct gf_error *err)
{
	const struct gf_plan *plan = e->k.plan;
	const size_t most =
		plan->threshold_bytes /
			(plan->selection.chunk_elems * sizeof(float)) +
		1;
	int rc = nchunks >= most ? add_packs(e, like, most, err) : 0;

	return rc ? rc : add_packs(e, like, nchunks % most, err);
}

/* Of every step of the ramp; one of more steps than chunks passes every count,
 * and may have any number of steps. */
static int add_counts(struct gf_device_engine *e, size_t like,
		      struct gf_error *err)
{
	const struct gf_selection *s = &e->k.plan->selection;
	const size_t n = gf_csc_nccl_csc(e->k.csc)->nchunks;
	const bool every = s->warmup_steps >= n;
	const size_t steps = every ? n - gf_csc_kept(s, n, s->warmup_steps + 1)
				   : s->warmup_steps + 1;
	size_t step, kept, before = n;
	int rc = 0;

	for (step = 1; step <= steps && !rc; step++) {
		kept = every ? n - step : gf_csc_kept(s, n, step);
		if (kept != before)
			rc = add_count(e, like, kept, err);
		before = kept;
	}
	return rc;
}

int gf_device_make_csc(struct gf_device_engine *e, struct gf_error *err)
{
	const struct gf_plan *plan = e->k.plan;
	struct gf_device_message *norms = &e->messages[plan->nmessages];
	const struct gf_coll_args args = {
		.ranks = e->k.comm->ranks,
		.count_elems = gf_csc_shared_elems(gf_csc_nccl_csc(e->k.csc)),
		.elem_bytes = sizeof(float),
	};
	size_t i, like;
	int rc = e->k.gpu->ops->event_new(e->k.gpu, false, &e->taken, err);

	for (i = 0; i < plan->nmessages && !rc; i++) {
		for (like = 0; !alike(e, like, i);)
			like++;
		e->messages[i].like = like;
		if (like == i)
			rc = add_counts(e, i, err);
	}
	norms->count_elems = args.count_elems;
	norms->at_end = true;
	norms->program = &norms->own;
	return rc ? rc
		  : gf_device_program_new(gf_algorithm_find(NORMS_ALGORITHM),
					  &args, e->k.comm->rank, NULL,
					  &norms->own, err);
}

int gf_device_prepare_csc(struct gf_device_engine *e, size_t lane,
			  struct gf_error *err)
{
	size_t i;
	int rc = 0;

	for (i = 0; i < e->npacks && !rc; i++)
		if (e->messages[e->packs[i].like].lane == lane)
			rc = gf_device_lane_prepare(&e->lanes[lane],
						    &e->packs[i].program, err);
	return rc;
}

int gf_device_engine_expect(struct gf_engine *engine, size_t nchunks,
			    struct gf_error *err)
{
	struct gf_device_engine *e = (struct gf_device_engine *)engine;
	size_t i;
	int rc = 0;

	if (nchunks == gf_csc_nccl_csc(e->k.csc)->nchunks)
		return 0;
	pthread_mutex_lock(&e->base.thread.lock);
	for (i = 0; i < e->k.plan->nmessages && !rc; i++)
		if (e->messages[i].like == i)
			rc = add_count(e, i, nchunks, err);
	for (i = 0; i < e->nlanes && !rc; i++) {
		rc = gf_device_prepare_csc(e, i, err);
		rc = rc ? rc : gf_device_lane_reserve(&e->lanes[i], err);
	}
	pthread_mutex_unlock(&e->base.thread.lock);
	return rc;
}

void gf_device_release_csc(struct gf_device_engine *e)
{
	size_t i;

	for (i = 0; i < e->npacks; i++)
		gf_device_program_release(&e->packs[i].program);
	free(e->packs);
	e->k.gpu->ops->event_free(e->k.gpu, e->taken);
}

/* --- a step --------------------------------------------------------------- */

int gf_device_take_csc(struct gf_device_engine *e, size_t message,
		       struct gf_error *err)
{
	const struct gf_plan *plan = e->k.plan;

	return gf_csc_nccl_take(e->k.csc,
				is_norms(e, message)
					? plan->model->ntensors
					: plan->messages[message].last + 1,
				err);
}

static int run_norms(struct gf_device_engine *e, struct gf_device_message *m,
		     struct gf_device_lane *lane, struct gf_error *err)
{
	int rc = gf_csc_nccl_share(e->k.csc, lane->stream, err);

	e->sent_bytes += gf_device_program_weight(e, m->program);
	return rc ? rc
		  : gf_device_lane_run(lane, m->program,
				       gf_csc_nccl_shared(e->k.csc), err);
}

static const struct gf_device_program *
program_at(const struct gf_device_engine *e, const struct gf_device_message *m,
	   size_t count_elems)
{
	const struct gf_device_pack *pack;

	if (count_elems == m->count_elems)
		return m->program;
	if (count_elems == e->messages[m->like].count_elems)
		return e->messages[m->like].program;
	pack = find_pack(e, m->like, count_elems);
	assert(pack);
	return &pack->program;
}

int gf_device_run_csc(struct gf_device_engine *e, struct gf_device_message *m,
		      struct gf_error *err)
{
	struct gf_device_lane *lane = &e->lanes[m->lane];
	const size_t message = (size_t)(m - e->messages);
	const struct gf_message *how = &e->k.plan->messages[message];
	struct gf_csc_pack pack;
	size_t at = 0;
	int rc = 0;

	if (is_norms(e, message))
		return run_norms(e, m, lane, err);
	while (!rc &&
	       gf_csc_nccl_next(e->k.csc, how->first, how->last, &pack, &at)) {
		const struct gf_device_program *p =
			program_at(e, m, pack.count_elems);

		gf_csc_nccl_before(e->k.csc, &pack, lane->stream);
		rc = gf_device_lane_run(lane, p, pack.data, err);
		gf_csc_nccl_after(e->k.csc, &pack, lane->stream);
		e->sent_bytes += gf_device_program_weight(e, p);
	}
	return rc;
}
