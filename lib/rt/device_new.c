/* SPDX-License-Identifier: BSD-3-Clause */
/* Preparing a device engine: lanes, programs, and the agreement of all ranks
 * that they are about to run the same thing, each on a GPU of its own. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/heap.h"
#include "coll/way.h"
#include "engine/agree.h"
#include "rt/device_parts.h"

/* NCCL's kernels of all lanes shall fit on a GPU at once and leave room to
 * compute: so many blocks for all. */
#define BLOCKS 32

static int check(const struct gf_device_engine_config *k, struct gf_error *err)
{
	const struct gf_plan *plan = k->plan;
	size_t i;
	int rc = gf_job_takes(k->comm, plan, err);

	if (rc)
		return rc;
	if (!plan->nmessages)
		return gf_error_set(err, -EINVAL, "want a plan with messages");
	if (plan->servers)
		return gf_error_set(err, -ENOTSUP,
				    "servers: on GPUs this build has none, got "
				    "%d",
				    plan->servers);
	if ((plan->selection.method == GF_SELECT_CSC) != !!k->csc ||
	    (plan->selection.method != GF_SELECT_DENSE && !k->csc &&
	     !k->residual))
		return gf_error_set(err, -EINVAL,
				    "selection: want what \"%s\" leaves behind",
				    gf_select_names[plan->selection.method]);
	for (i = 0; i < plan->nmessages; i++)
		if (plan->messages[i].half != GF_HALF_ALL)
			return gf_error_set(
				err, -ENOTSUP,
				"message %zu: on GPUs this build runs half "
				"\"all\", got \"%s\"",
				i, gf_half_names[plan->messages[i].half]);
	return 0;
}

/* NCCL would refuse in words of its own, and later. */
int gf_device_own_gpu_each(struct gf_comm *comm, const struct gf_gpu *gpu,
			   struct gf_error *err)
{
	struct place {
		int host;
		char pci[sizeof(gpu->pci)];
	} own = {.host = comm->host}, *all;
	int a, b, rc;

	memcpy(own.pci, gpu->pci, sizeof(own.pci));
	all = gf_xcalloc((size_t)comm->ranks, sizeof(*all));
	rc = gf_comm_allgather(comm, &own, sizeof(own), all, err);
	for (a = 0; a < comm->ranks && !rc; a++)
		for (b = a + 1; b < comm->ranks && !rc; b++)
			if (all[a].host == all[b].host &&
			    !strcmp(all[a].pci, all[b].pci))
				rc = gf_error_set(
					err, -EINVAL,
					"ranks %d and %d both use GPU %s: NCCL "
					"wants a GPU for each rank, want at "
					"most as many ranks on a host as it "
					"has GPUs",
					a, b, all[a].pci);
	free(all);
	return rc;
}

static int same_everywhere(const struct gf_device_engine_config *k,
			   struct gf_error *err)
{
	char *nccl = gf_xasprintf("%d", k->nccl->version);
	int rc = gf_job_agrees(k->comm, k->plan, "NCCL's version", nccl, err);

	free(nccl);
	return rc;
}

/* The lane that the prediction thinks free first, or that has least to do. */
static size_t choose_lane(const struct gf_plan *plan, size_t message,
			  double *busy_until, size_t nlanes)
{
	const struct gf_prediction *p = plan->predicted;
	size_t lane, best = 0;

	for (lane = 1; lane < nlanes; lane++)
		if (busy_until[lane] < busy_until[best])
			best = lane;
	if (p && p->messages)
		busy_until[best] = p->messages[message].end_s;
	else
		busy_until[best] +=
			(double)gf_plan_message_bytes(plan, message);
	return best;
}

int gf_device_program_for(const struct gf_device_engine *e, size_t i,
			  const struct gf_codec *codec,
			  struct gf_device_program *p, struct gf_error *err)
{
	return gf_device_program_of_count(e, i, e->messages[i].count_elems,
					  codec, p, err);
}

int gf_device_program_of_count(const struct gf_device_engine *e, size_t i,
			       size_t count_elems, const struct gf_codec *codec,
			       struct gf_device_program *p,
			       struct gf_error *err)
{
	struct gf_coll_args args;
	struct gf_way way;
	int rc = gf_way_of_message(&e->k.plan->messages[i], &way, err);

	if (!rc) {
		args = gf_way_args(&way, e->k.comm->ranks);
		args.count_elems = count_elems;
		args.elem_bytes = sizeof(float);
		rc = gf_device_program_new(way.algorithm, &args,
					   e->k.comm->rank, codec, p, err);
	}
	if (rc && err)
		gf_error_prefix(err, "message %zu", i);
	return rc;
}

static int make_program(struct gf_device_engine *e, size_t i,
			struct gf_error *err)
{
	struct gf_device_message *m = &e->messages[i];

	m->program = &m->own;
	return gf_device_program_for(
		e, i, gf_codec_find(e->k.plan->messages[i].codec), &m->own,
		err);
}

static int make_events(struct gf_device_engine *e, size_t i,
		       struct gf_error *err)
{
	const struct gf_gpu_ops *ops = e->k.gpu->ops;
	size_t d;
	int rc = 0;

	e->messages[i].events =
		gf_xcalloc(e->depth, sizeof(struct gf_device_events));
	for (d = 0; d < e->depth && !rc; d++) {
		struct gf_device_events *at = &e->messages[i].events[d];

		rc = ops->event_new(e->k.gpu, true, &at->ready, err);
		rc = rc ? rc : ops->event_new(e->k.gpu, true, &at->start, err);
		rc = rc ? rc : ops->event_new(e->k.gpu, true, &at->end, err);
	}
	return rc;
}

static int make_slots(struct gf_device_engine *e, struct gf_error *err)
{
	const struct gf_gpu_ops *ops = e->k.gpu->ops;
	size_t d;
	int rc = 0;

	for (d = 0; d < e->depth && !rc; d++) {
		rc = ops->event_new(e->k.gpu, true, &e->begun[d], err);
		rc = rc ? rc
			: ops->event_new(e->k.gpu, false, &e->ended[d], err);
	}
	return rc;
}

static int make_messages(struct gf_device_engine *e, struct gf_error *err)
{
	const struct gf_plan *plan = e->k.plan;
	double *busy_until = gf_xcalloc(e->nlanes, sizeof(*busy_until));
	size_t at = 0, i, t;
	int rc = make_slots(e, err);

	for (i = 0; i < plan->nmessages && !rc; i++) {
		const struct gf_message *how = &plan->messages[i];
		struct gf_device_message *m = &e->messages[i];

		m->first_elem = at;
		m->count_elems = gf_plan_message_elems(plan, i);
		m->ntensors = how->last - how->first + 1;
		m->lane = choose_lane(plan, i, busy_until, e->nlanes);
		m->simultaneous = how->mode == GF_MODE_SIMULTANEOUS;
		m->at_end = how->release == GF_RELEASE_BACKWARD_END;
		at += m->count_elems;
		for (t = how->first; t <= how->last; t++)
			e->message_of[t] = i;
		rc = e->k.residual ? gf_device_make_sparse(e, i, err)
				   : make_program(e, i, err);
		if (!rc)
			gf_device_weigh(e, i);
	}
	if (!rc && e->k.csc)
		rc = gf_device_make_csc(e, err);
	for (i = 0; i < e->nmessages && !rc; i++)
		rc = make_events(e, i, err);
	for (i = 0; i < e->nmessages; i++) {
		for (t = i + 1; t < e->nmessages; t++)
			if (e->messages[t].lane == e->messages[i].lane)
				break;
		e->messages[i].closes_lane = t == e->nmessages;
	}
	free(busy_until);
	return rc;
}

static int on_wait(void *ctx, struct gf_error *err)
{
	struct gf_comm *c = ctx;

	return c->on_wait ? c->on_wait(c->on_wait_ctx, err) : 0;
}

/* From the first pool's begin to the last one's end. */
static size_t messages_bytes(const struct gf_device_engine *e)
{
	const struct gf_device_message *last =
		&e->messages[e->k.plan->nmessages - 1];

	return ((e->npools - 1) * e->k.stride_elems + last->first_elem +
		last->count_elems) *
	       sizeof(float);
}

static int open_lane(struct gf_device_engine *e, size_t lane,
		     struct gf_error *err)
{
	struct gf_device_lane *l = &e->lanes[lane];
	struct gf_comm *c = e->k.comm;
	unsigned char id[GF_NCCL_ID_BYTES] = {0};
	int rc = 0;
	size_t i;

	if (c->rank == 0)
		rc = e->k.nccl->unique_id(id, err);
	rc = gf_comm_agree(c, rc, err);
	rc = rc ? rc : gf_comm_bcast(c, 0, id, sizeof(id), err);
	if (rc)
		return rc;
	*l = (struct gf_device_lane){.gpu = e->k.gpu,
				     .nccl = e->k.nccl,
				     .timeout_s = e->k.timeout_s,
				     .on_wait = on_wait,
				     .on_wait_ctx = c};
	rc = gf_device_lane_open(
		l, id, c->ranks, c->rank,
		BLOCKS / (int)e->nlanes ? BLOCKS / (int)e->nlanes : 1, err);
	if (rc)
		gf_error_prefix(err, "lane %zu", lane);
	rc = gf_comm_agree(c, rc, err);
	if (rc)
		return rc;
	rc = gf_device_lane_meet(l, err);
	for (i = 0; i < e->nmessages && !rc; i++)
		if (e->messages[i].lane == lane)
			rc = gf_device_lane_prepare(l, e->messages[i].program,
						    err);
	rc = rc ? rc : gf_device_prepare_csc(e, lane, err);
	rc = rc ? rc : gf_device_lane_reserve(l, err);
	if (!rc)
		gf_device_lane_keep(l, e->k.data, messages_bytes(e));
	if (rc)
		gf_error_prefix(err, "lane %zu", lane);
	return gf_comm_agree(c, rc, err);
}

static int start_thread(struct gf_device_engine *e, struct gf_error *err)
{
	size_t i;

	/* soon the communicator is the other thread's */
	for (i = 0; i < e->nlanes; i++)
		e->lanes[i].on_wait = NULL;
	return gf_comm_thread_start(&e->base.thread, gf_device_watch, e, err);
}

static void init(struct gf_device_engine *e,
		 const struct gf_device_engine_config *config)
{
	const struct gf_plan *plan = config->plan;
	const size_t ntensors = plan->model ? plan->model->ntensors : 0;

	gf_engine_init(&e->base, &gf_engine_streams,
		       &(struct gf_engine_config){
			       .comm = config->comm,
			       .plan = plan,
			       .depth = (size_t)plan->staleness,
			       .timeout_s = config->timeout_s,
		       });
	e->k = *config;
	e->nmessages = plan->nmessages + !!config->csc;
	e->nlanes = plan->lanes > 0 ? (size_t)plan->lanes : 1;
	e->density = plan->selection.density;
	e->npools = plan->staleness > 1 ? (size_t)plan->staleness : 1;
	e->depth = e->npools + 1;
	e->begun = gf_xcalloc(e->depth, sizeof(struct gf_gpu_event *));
	e->ended = gf_xcalloc(e->depth, sizeof(struct gf_gpu_event *));
	e->begun_s = gf_xcalloc(e->depth, sizeof(*e->begun_s));
	e->step_bytes = gf_xcalloc(e->depth, sizeof(*e->step_bytes));
	e->lanes = gf_xcalloc(e->nlanes, sizeof(*e->lanes));
	e->last_on_lane = gf_xcalloc(e->nlanes, sizeof(*e->last_on_lane));
	e->messages = gf_xcalloc(e->nmessages + 1, sizeof(*e->messages));
	e->times = gf_xcalloc(e->nmessages + 1, sizeof(*e->times));
	e->message_of = gf_xcalloc(ntensors + 1, sizeof(*e->message_of));
	e->tensor_ready = gf_xcalloc(ntensors + 1, sizeof(*e->tensor_ready));
}

int gf_device_engine_new(const struct gf_device_engine_config *config,
			 struct gf_engine **engine, struct gf_error *err)
{
	struct gf_device_engine *e = gf_xcalloc(1, sizeof(*e));
	size_t lane;
	int rc;

	init(e, config);
	rc = check(config, err);
	rc = rc ? rc : make_messages(e, err);
	rc = gf_comm_agree(e->k.comm, rc, err);
	rc = rc ? rc : same_everywhere(config, err);
	rc = rc ? rc : gf_device_own_gpu_each(config->comm, config->gpu, err);
	for (lane = 0; lane < e->nlanes && !rc; lane++)
		rc = open_lane(e, lane, err);
	if (!rc)
		rc = gf_comm_agree(e->k.comm, start_thread(e, err), err);
	if (rc) {
		gf_engine_free(&e->base);
		return rc;
	}
	e->opened = true;
	gf_comm_thread_go(&e->base.thread);
	*engine = &e->base;
	return 0;
}

static void free_message(struct gf_device_engine *e,
			 struct gf_device_message *m)
{
	const struct gf_gpu_ops *ops = e->k.gpu->ops;
	size_t d;

	gf_device_program_release(&m->own);
	gf_sparse_nccl_free(m->sparse);
	for (d = 0; m->events && d < e->depth; d++) {
		ops->event_free(e->k.gpu, m->events[d].ready);
		ops->event_free(e->k.gpu, m->events[d].start);
		ops->event_free(e->k.gpu, m->events[d].end);
	}
	free(m->events);
}

void gf_device_close(struct gf_engine *engine)
{
	struct gf_device_engine *e = (struct gf_device_engine *)engine;
	struct gf_error ignored;
	bool whole;
	size_t i;

	/* A communicator wants to be left in peace, or aborted: where some
	 * message was not issued, or a lane is half open. */
	whole = e->opened && e->issued == e->base.nbegun * e->nmessages;
	if (e->base.thread.alive && whole && e->base.nbegun)
		(void)gf_device_engine_sync(engine, &ignored);
	gf_comm_thread_stop(&e->base.thread);
	for (i = 0; i < e->nlanes && !whole; i++)
		gf_device_lane_abort(&e->lanes[i]);
	/* what is enqueued behind it uses memory that its owners free next */
	for (i = 0; i < e->nlanes && !whole; i++)
		if (e->lanes[i].stream)
			(void)e->k.gpu->ops->stream_sync(
				e->k.gpu, e->lanes[i].stream, &ignored);
	for (i = 0; i < e->nlanes; i++)
		gf_device_lane_close(&e->lanes[i]);
	for (i = 0; i < e->nmessages; i++)
		free_message(e, &e->messages[i]);
	for (i = 0; i < e->depth; i++) {
		e->k.gpu->ops->event_free(e->k.gpu, e->begun[i]);
		e->k.gpu->ops->event_free(e->k.gpu, e->ended[i]);
	}
	gf_device_release_csc(e);
	free(e->begun);
	free(e->ended);
	free(e->begun_s);
	free(e->step_bytes);
	free(e->lanes);
	free(e->last_on_lane);
	free(e->messages);
	free(e->times);
	free(e->message_of);
	free(e->tensor_ready);
}
