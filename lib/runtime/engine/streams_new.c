/* SPDX-License-Identifier: BSD-3-Clause */
/* Preparing streams: lanes, the plan's programs, and the agreement of all ranks that they are about
 * to run the same thing, each on a GPU of its own. */
#include <string.h>

#include "base/heap.h"
#include "runtime/engine/streams_parts.h"

/* NCCL's kernels of all lanes shall fit on a GPU at once and leave room to compute. Messages are
 * measured with as many blocks as training has, so that predictions are of its kernels. */
#define BLOCKS 32

static struct gf_nccl_blocks blocks_of_lane(const struct gf_streams *e,
					    const struct gf_nccl_tuning *told)
{
	const int n = (int)e->nlanes;

	if (told)
		return (struct gf_nccl_blocks){told->channels, told->channels};
	return (struct gf_nccl_blocks){0, BLOCKS / n ? BLOCKS / n : 1};
}

static int check(const struct gf_streams *e, struct gf_error *err)
{
	const struct gf_plan *plan = e->base.plan;

	if (!plan)
		return 0;
	if (!plan->nmessages)
		return gf_error_set(err, -EINVAL, "want a plan with messages");
	if (plan->servers)
		return gf_error_set(err, -ENOTSUP, "servers: on GPUs this build has none, got %d",
				    plan->servers);
	for (size_t i = 0; i < plan->nmessages; i++)
		if (plan->messages[i].half != GF_HALF_ALL && !e->base.pool->shards)
			return gf_error_set(
				err, -ENOTSUP,
				"message %zu: on GPUs this build runs half \"all\", got \"%s\"", i,
				gf_half_names[plan->messages[i].half]);
	return 0;
}

/* The lane that the prediction thinks free first, or that has least to do. */
static size_t choose_lane(const struct gf_plan *plan, size_t message, double *busy_until,
			  size_t nlanes)
{
	const struct gf_prediction *p = plan->predicted;
	size_t lane, best = 0;

	for (lane = 1; lane < nlanes; lane++)
		if (busy_until[lane] < busy_until[best])
			best = lane;
	if (p && p->messages)
		busy_until[best] = p->messages[message].end_s;
	else
		busy_until[best] += (double)gf_plan_message_bytes(plan, message);
	return best;
}

/* The plan's messages: where they go, and how, unless a selection sends others in their place. */
static int make_paths(struct gf_streams *e, struct gf_error *err)
{
	const struct gf_plan *plan = e->base.plan;
	GF_FREED double *busy_until = gf_xcalloc(e->nlanes, sizeof(*busy_until));
	struct gf_streams_path *path;
	bool made;
	int rc = 0;

	for (size_t i = 0; plan && i < plan->nmessages; i++)
		e->lane_of[i] = choose_lane(plan, i, busy_until, e->nlanes);
	for (size_t i = 0; i < e->base.nplan_work && !rc && !gf_engine_sends_sets(plan); i++) {
		const struct gf_work *w = &e->base.plan_work[i];

		rc = gf_streams_path(e, w, &path, &made, err);
		if (rc)
			gf_error_prefix(err, "message %zu", (size_t)(w->how - plan->messages));
	}
	return rc;
}

/* --- steps ---------------------------------------------------------------- */

static int reserve(struct gf_streams *e, struct gf_streams_step *s, size_t nwork,
		   struct gf_error *err)
{
	const struct gf_gpu_ops *ops = e->gpu->ops;
	int rc = 0;

	if (nwork > s->capacity) {
		s->work = gf_xreallocarray(s->work, nwork, sizeof(*s->work));
		s->messages = gf_xreallocarray(s->messages, nwork, sizeof(*s->messages));
		s->times = gf_xreallocarray(s->times, nwork, sizeof(*s->times));
	}
	for (; s->capacity < nwork && !rc; s->capacity++) {
		struct gf_streams_message *m = &s->messages[s->capacity];

		*m = (struct gf_streams_message){0};
		rc = ops->event_new(e->gpu, true, &m->ready, err);
		rc = rc ?: ops->event_new(e->gpu, true, &m->start, err);
		rc = rc ?: ops->event_new(e->gpu, true, &m->end, err);
	}
	return rc;
}

static int make_steps(struct gf_streams *e, struct gf_error *err)
{
	const struct gf_gpu_ops *ops = e->gpu->ops;
	int rc = 0;

	for (size_t i = 0; i < e->nslots && !rc; i++) {
		struct gf_streams_step *s = &e->steps[i];

		rc = ops->event_new(e->gpu, true, &s->begun, err);
		rc = rc ?: ops->event_new(e->gpu, false, &s->ended, err);
		rc = rc ?: reserve(e, s, e->base.nplan_work, err);
	}
	if (rc || !e->base.hooks.prepare)
		return rc;
	rc = ops->stream_new(e->gpu, false, &e->preparing, err);
	return rc ?: ops->event_new(e->gpu, false, &e->prepared, err);
}

static void mark_last(struct gf_streams_step *s)
{
	size_t i, k;

	for (i = 0; i < s->nmessages; i++) {
		for (k = i + 1; k < s->nmessages; k++)
			if (s->messages[k].lane == s->messages[i].lane)
				break;
		s->messages[i].closes_lane = k == s->nmessages;
	}
}

int gf_streams_list(struct gf_streams *e, struct gf_streams_step *s, const struct gf_work *work,
		    size_t nwork, struct gf_error *err)
{
	bool grew = false;
	int rc = reserve(e, s, nwork, err);

	for (size_t i = 0; i < nwork && !rc; i++) {
		const struct gf_work *w = &work[i];
		struct gf_streams_message *m = &s->messages[i];
		bool made;

		s->work[i] = *w;
		m->lane = gf_streams_lane(e, w);
		rc = gf_streams_path(e, w, &m->path, &made, err);
		if (rc || (!made && !(w->sets && w->sets->size_bytes > m->path->set_bytes)))
			continue;
		/* prepared for the message as it is now */
		grew = true;
		rc = gf_streams_path_prepare(e, m->path, err);
	}
	for (size_t i = 0; i < e->nlanes && grew && !rc; i++)
		rc = gf_lane_reserve(&e->lanes[i], err);
	if (rc)
		return rc;
	s->nmessages = nwork;
	mark_last(s);
	return 0;
}

/* --- lanes ---------------------------------------------------------------- */

static int on_wait(void *ctx, struct gf_error *err)
{
	struct gf_comm *c = ctx;

	return c->on_wait ? c->on_wait(c->on_wait_ctx, err) : 0;
}

/* The paths were found last first. */
static int prepare_paths(struct gf_streams *e, struct gf_streams_path *path, size_t lane,
			 struct gf_error *err)
{
	int rc = path ? prepare_paths(e, path->next, lane, err) : 0;

	if (rc || !path || path->lane != lane)
		return rc;
	return gf_streams_path_prepare(e, path, err);
}

static int open_lane(struct gf_streams *e, size_t lane, const struct gf_engine_config *config,
		     struct gf_error *err)
{
	struct gf_lane *l = &e->lanes[lane];
	struct gf_comm *c = e->base.comm;
	unsigned char id[GF_NCCL_ID_BYTES] = {0};
	int rc = 0;

	if (c->rank == 0)
		rc = e->nccl->unique_id(id, err);
	rc = gf_comm_agree(c, rc, err);
	rc = rc ?: gf_comm_bcast(c, 0, id, sizeof(id), err);
	if (rc)
		return rc;
	*l = (struct gf_lane){.gpu = e->gpu,
			      .nccl = e->nccl,
			      .timeout_s = config->timeout_s,
			      .on_wait = on_wait,
			      .on_wait_ctx = c,
			      .captures = config->place.graphs};
	rc = gf_lane_open(l, id, c->ranks, c->rank, blocks_of_lane(e, config->place.told), err);
	if (rc)
		gf_error_prefix(err, "lane %zu", lane);
	rc = gf_comm_agree(c, rc, err);
	if (rc)
		return rc;
	rc = gf_lane_meet(l, err);
	rc = rc ?: prepare_paths(e, e->paths, lane, err);
	rc = rc ?: gf_lane_reserve(l, err);
	if (rc)
		gf_error_prefix(err, "lane %zu", lane);
	return gf_comm_agree(c, rc, err);
}

int gf_streams_start(struct gf_engine *engine, struct gf_error *err)
{
	struct gf_streams *e = gf_streams_of(engine);

	e->opened = true;
	if (engine->lent)
		return 0;
	/* soon the communicator is the other thread's */
	for (size_t i = 0; i < e->nlanes; i++)
		e->lanes[i].on_wait = NULL;
	return gf_comm_thread_start(&e->base.thread, gf_streams_watch, e, err);
}

/* --- opening and closing -------------------------------------------------- */

static void init(struct gf_streams *e, const struct gf_engine_config *config)
{
	const struct gf_plan *plan = config->plan;

	e->gpu = config->place.gpu;
	e->compute = config->place.stream;
	e->nccl = config->place.nccl;
	e->nlanes = (size_t)e->base.lanes;
	e->nslots = e->base.depth + 1;
	e->steps = gf_xcalloc(e->nslots, sizeof(*e->steps));
	e->lanes = gf_xcalloc(e->nlanes, sizeof(*e->lanes));
	e->last_on_lane = gf_xcalloc(e->nlanes, sizeof(struct gf_gpu_event *));
	e->lane_of = gf_xcalloc(plan ? plan->nmessages + 1 : 1, sizeof(*e->lane_of));
	e->tensor_ready = gf_xcalloc(e->base.nready + 1, sizeof(*e->tensor_ready));
}

int gf_streams_make(struct gf_engine *engine, const struct gf_engine_config *config,
		    struct gf_error *err)
{
	struct gf_streams *e = gf_streams_of(engine);
	int rc;

	init(e, config);
	rc = check(e, err);
	rc = rc ?: make_paths(e, err);
	return rc ?: make_steps(e, err);
}

/* NCCL would refuse in words of its own, and later. */
int gf_engine_own_gpus(struct gf_comm *comm, const struct gf_gpu *gpu, struct gf_error *err)
{
	struct place {
		int host;
		char pci[sizeof(gpu->pci)];
	} own = {.host = comm->host};
	GF_FREED struct place *all = gf_xcalloc((size_t)comm->ranks, sizeof(*all));
	int a, b, rc;

	memcpy(own.pci, gpu->pci, sizeof(own.pci));
	rc = gf_comm_allgather(comm, &own, sizeof(own), all, err);
	for (a = 0; a < comm->ranks && !rc; a++)
		for (b = a + 1; b < comm->ranks && !rc; b++)
			if (all[a].host == all[b].host && !strcmp(all[a].pci, all[b].pci))
				rc = gf_error_set(err, -EINVAL,
						  "ranks %d and %d both use GPU %s: NCCL wants a "
						  "GPU for each rank, want at most as many ranks "
						  "on a host as it has GPUs",
						  a, b, all[a].pci);
	return rc;
}

int gf_streams_meet(struct gf_engine *engine, const struct gf_engine_config *config,
		    struct gf_error *err)
{
	struct gf_streams *e = gf_streams_of(engine);
	struct gf_nccl_tuning *told = config->place.told;
	char *version = gf_xasprintf("%d", e->nccl->version);
	int rc = gf_comm_same_text(e->base.comm, "NCCL's version", version, err);

	free(version);
	rc = rc ?: gf_engine_own_gpus(e->base.comm, e->gpu, err);
	if (!rc && told)
		rc = gf_comm_agree(e->base.comm, e->nccl->tell(told, err), err);
	for (size_t lane = 0; lane < e->nlanes && !rc; lane++)
		rc = open_lane(e, lane, config, err);
	if (told)
		e->nccl->untell(told);
	return rc;
}

static void free_step(struct gf_streams *e, struct gf_streams_step *s)
{
	const struct gf_gpu_ops *ops = e->gpu->ops;

	for (size_t i = 0; i < s->capacity; i++) {
		ops->event_free(e->gpu, s->messages[i].ready);
		ops->event_free(e->gpu, s->messages[i].start);
		ops->event_free(e->gpu, s->messages[i].end);
	}
	ops->event_free(e->gpu, s->begun);
	ops->event_free(e->gpu, s->ended);
	free(s->work);
	free(s->messages);
	free(s->times);
}

/* Was every message issued that was begun? */
static bool is_whole(const struct gf_streams *e)
{
	const struct gf_streams_step *s;

	if (!e->opened || !e->base.nbegun)
		return e->opened;
	s = gf_streams_step(e, e->base.nbegun - 1);
	return s->nmessages && s->issued == s->nmessages;
}

static void free_paths(struct gf_streams *e)
{
	struct gf_streams_path *p, *next;

	for (p = e->paths; p; p = next) {
		next = p->next;
		gf_lane_program_release(&p->program);
		free(p);
	}
	e->paths = NULL;
}

void gf_streams_close(struct gf_engine *engine)
{
	struct gf_streams *e = gf_streams_of(engine);
	struct gf_error ignored;
	bool whole;

	if (!e->gpu)
		return;
	/* A communicator wants to be left in peace, or aborted: where some message was not issued,
	 * or a lane is half open. */
	whole = is_whole(e) && !(e->base.lent && e->base.comm->broken);
	if ((e->base.thread.alive || e->base.lent) && whole)
		whole = !gf_streams_sync(e, &ignored) || !e->base.lent;
	gf_comm_thread_stop(&e->base.thread);
	if (!whole)
		gf_lanes_abort(e->lanes, e->nlanes);
	/* what is enqueued after it uses memory that its owners free next */
	for (size_t i = 0; i < e->nlanes && !whole; i++)
		if (e->lanes[i].stream)
			(void)e->gpu->ops->stream_sync(e->gpu, e->lanes[i].stream, &ignored);
	if (e->preparing)
		(void)e->gpu->ops->stream_sync(e->gpu, e->preparing, &ignored);
	for (size_t i = 0; i < e->nlanes; i++)
		gf_lane_close(&e->lanes[i]);
	for (size_t i = 0; i < e->nslots; i++)
		free_step(e, &e->steps[i]);
	free_paths(e);
	e->gpu->ops->event_free(e->gpu, e->prepared);
	e->gpu->ops->stream_free(e->gpu, e->preparing);
	free(e->steps);
	free(e->lanes);
	free(e->last_on_lane);
	free(e->lane_of);
	free(e->tensor_ready);
}
