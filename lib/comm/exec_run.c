/* SPDX-License-Identifier: BSD-3-Clause */
/* The executor: preparing a run, with all its memory, and abandoning it. */
#include <assert.h>
#include <errno.h>
#include <stdlib.h>

#include "base/heap.h"
#include "comm/exec_parts.h"

#define STAGING_BYTES ((size_t)4 << 20)

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

/* Turns the schedule's "depends on" round into "is depended on by". */
static void list_users(struct gf_exec_run *run)
{
	const struct gf_schedule *s = run->schedule;
	uint32_t *fill, *first;
	size_t i, k;

	first = gf_xcalloc(s->nsteps + 2, sizeof(*first));
	run->users = gf_xcalloc(s->ndeps + 1, sizeof(*run->users));
	for (i = 0; i < s->ndeps; i++)
		first[s->deps[i] + 2]++;
	for (i = 2; i < s->nsteps + 2; i++)
		first[i] += first[i - 1];
	/* fill[i] moves from where i's users begin to where they end */
	fill = first + 1;
	for (i = 0; i < s->nsteps; i++)
		for (k = 0; k < s->steps[i].ndeps; k++)
			run->users[fill[s->deps[s->steps[i].first_dep + k]]++] =
				(uint32_t)i;
	run->first_user = first;
}

bool gf_exec_is_direct(const struct gf_exec_run *run,
		       const struct gf_step *step)
{
	const struct gf_schedule *s = run->schedule;
	struct gf_comm *c = run->exec->comm;
	uint32_t k;

	/* Partners that exchange and both keep the sum would wait for each
	 * other: each send ends when the other side has added it. */
	for (k = 0; k < step->ndeps; k++)
		if (s->steps[s->deps[step->first_dep + k]].op == GF_STEP_SEND)
			return false;
	return step->op == GF_STEP_RECV_REDUCE && c->ops->reduces_from &&
	       c->ops->reduces_from(c, step->peer);
}

static void size_slots(struct gf_exec_run *run)
{
	const struct gf_schedule *s = run->schedule;
	size_t want, i;

	run->reduces = gf_xcalloc(s->nsteps + 1, sizeof(*run->reduces));
	for (i = 0; i < s->nsteps; i++) {
		if (s->steps[i].op != GF_STEP_RECV_REDUCE ||
		    gf_exec_is_direct(run, &s->steps[i]))
			continue;
		run->reduces[run->nreduces++] = (uint32_t)i;
		if (s->steps[i].range.count > run->slot_elems)
			run->slot_elems = s->steps[i].range.count;
	}
	if (!run->nreduces)
		return;
	want = run->exec->staging_bytes / (run->slot_elems * sizeof(float));
	if (want < 2)
		want = run->exec->staging_bytes ? 2 : 1;
	run->nslots = want < run->nreduces ? (uint32_t)want : run->nreduces;
	run->slots = gf_xcalloc(run->nslots, sizeof(*run->slots));
}

int gf_exec_run_new(struct gf_exec *x, const struct gf_schedule *s,
		    uint32_t channel, struct gf_exec_run **run,
		    struct gf_error *err)
{
	struct gf_comm *c = x->comm;
	struct gf_exec_run *r;
	void *scratch = NULL, *staging = NULL;
	int rc = 0;

	if (s->rank != c->rank || s->ranks != c->ranks)
		return gf_error_set(err, -EINVAL,
				    "schedule of rank %d of %d on rank %d of "
				    "%d",
				    s->rank, s->ranks, c->rank, c->ranks);
	if (channel > GF_CHANNEL_LAST)
		return gf_error_set(err, -EINVAL,
				    "want a channel <= %u, got "
				    "%u",
				    GF_CHANNEL_LAST, channel);
	r = gf_xcalloc(1, sizeof(*r));
	r->exec = x;
	r->schedule = s;
	r->channel = channel;
	r->states = gf_xcalloc(s->nsteps + 1, sizeof(*r->states));
	r->ready = gf_xcalloc(s->nsteps + 1, sizeof(*r->ready));
	r->active = gf_xcalloc(s->nsteps + 1, sizeof(*r->active));
	list_users(r);
	size_slots(r);
	if (s->scratch_elems)
		rc = c->ops->buffer_alloc(c, s->scratch_elems * sizeof(float),
					  &scratch, err);
	if (!rc && r->nslots)
		rc = c->ops->buffer_alloc(
			c, r->nslots * r->slot_elems * sizeof(float), &staging,
			err);
	r->scratch = scratch;
	r->staging = staging;
	if (rc)
		gf_exec_run_free(r);
	else
		*run = r;
	return rc;
}

void gf_exec_stop(struct gf_exec_run *run)
{
	struct gf_comm *c = run->exec->comm;
	uint32_t i;

	if (!run->started || run->done)
		return;
	for (i = 0; i < run->nactive; i++)
		c->ops->cancel(c, run->states[run->active[i]].request);
	run->nactive = 0;
	run->started = false;
	*run->link = run->next;
	if (run->next)
		run->next->link = run->link;
}

void gf_exec_run_free(struct gf_exec_run *run)
{
	struct gf_comm *c;

	if (!run)
		return;
	c = run->exec->comm;
	gf_exec_stop(run);
	c->ops->buffer_free(c, run->scratch);
	c->ops->buffer_free(c, run->staging);
	free(run->states);
	free(run->users);
	free(run->first_user);
	free(run->ready);
	free(run->active);
	free(run->reduces);
	free(run->slots);
	free(run);
}
