/* SPDX-License-Identifier: BSD-3-Clause */
#include "cuda/lanes/lane.h"

#include <assert.h>
#include <string.h>

#include "base/array.h"
#include "base/clock.h"
#include "base/heap.h"
#include "transport/backoff.h"

/* A program on its data. */
struct gf_lane_graph {
	const struct gf_lane_program *program;
	void *data;
	struct gf_gpu_graph *graph; /* NULL: not captured, or not any more */
};

/* Until the communicator can be used again; nearly always at once. */
static int settle(struct gf_lane *l, struct gf_nccl_comm *c, struct gf_error *err)
{
	struct gf_backoff backoff = {0};
	const double since_s = gf_clock_s();
	int rc;

	while (!(rc = l->nccl->state(c, err))) {
		if (l->on_wait && (rc = l->on_wait(l->on_wait_ctx, err)))
			return rc;
		if (l->timeout_s > 0 && gf_clock_s() - since_s >= l->timeout_s)
			return gf_error_set(err, -ETIMEDOUT,
					    "NCCL's communicator is not ready after %g s",
					    l->timeout_s);
		gf_backoff_wait(&backoff);
	}
	return rc < 0 ? rc : 0;
}

int gf_lane_open(struct gf_lane *l, const unsigned char id[GF_NCCL_ID_BYTES], int ranks, int rank,
		 struct gf_nccl_blocks blocks, struct gf_error *err)
{
	int rc = l->gpu->ops->stream_new(l->gpu, true, &l->stream, err);

	l->rank = rank;
	return rc ?: l->nccl->comm_new(id, ranks, rank, blocks, &l->all, err);
}

int gf_lane_meet(struct gf_lane *l, struct gf_error *err)
{
	return settle(l, l->all, err);
}

static struct gf_nccl_comm *team_comm(const struct gf_lane *l, const struct gf_group *team)
{
	for (size_t i = 0; i < l->nteams; i++)
		if (l->teams[i].stride == team->stride && l->teams[i].size == team->size)
			return l->teams[i].comm;
	return NULL;
}

/* Stride and size say how all ranks are parted; the first rank of a team is its color. */
static int split(struct gf_lane *l, const struct gf_group *team, struct gf_error *err)
{
	struct gf_lane_team *t = gf_array_push(&l->teams, &l->nteams, &l->teams_capacity);
	int rc;

	*t = (struct gf_lane_team){team->stride, team->size, NULL};
	rc = l->nccl->comm_split(l->all, team->first, team->me, &t->comm, err);
	/* the parent is ready when the child is made */
	rc = rc ?: settle(l, l->all, err);
	return rc ?: settle(l, t->comm, err);
}

int gf_lane_prepare(struct gf_lane *l, const struct gf_lane_program *p, struct gf_error *err)
{
	const size_t scratch_bytes = gf_lane_program_bytes(p, p->scratch_elems);
	int rc = 0;

	gf_lane_forget(l, p); /* another one may have lain there */
	for (size_t i = 0; i < p->nteams && !rc; i++)
		if (!team_comm(l, &p->teams[i]))
			rc = split(l, &p->teams[i], err);
	if (scratch_bytes > l->scratch_bytes)
		l->scratch_bytes = scratch_bytes;
	if (p->wire_bytes > l->wire_bytes)
		l->wire_bytes = p->wire_bytes;
	return rc;
}

/* Room for at least so many bytes at *p; what was in it is lost. */
static int grow(struct gf_gpu *g, void **p, size_t *room, size_t wanted, struct gf_error *err)
{
	void *more = NULL;
	int rc;

	if (wanted <= *room)
		return 0;
	rc = g->ops->alloc(g, wanted, &more, err);
	if (rc)
		return rc;
	g->ops->free(g, *p);
	*p = more;
	*room = wanted;
	return 0;
}

/* Frees all graphs of a lane; they are captured anew when they are wanted. */
static void drop_graphs(struct gf_lane *l)
{
	for (size_t i = 0; i < l->ngraphs; i++) {
		l->gpu->ops->graph_free(l->gpu, l->graphs[i].graph);
		l->graphs[i].graph = NULL;
	}
}

int gf_lane_reserve(struct gf_lane *l, struct gf_error *err)
{
	void *scratch = l->scratch, *wire = l->wire;
	int rc;

	/* not only where memory grows, which it does not on all ranks */
	drop_graphs(l);
	rc = grow(l->gpu, &scratch, &l->scratch_room, l->scratch_bytes, err);
	rc = rc ?: grow(l->gpu, &wire, &l->wire_room, l->wire_bytes, err);
	l->scratch = scratch;
	l->wire = wire;
	if (rc)
		gf_error_prefix(err, "what messages land in (%zu bytes)",
				l->scratch_bytes + l->wire_bytes);
	return rc;
}

/* --- what a program does -------------------------------------------------- */

static void *at(const struct gf_lane *l, const struct gf_lane_program *p, void *data,
		struct gf_range range)
{
	char *base = range.buffer == GF_BUFFER_DATA ? data : l->scratch;

	return base + gf_lane_program_bytes(p, range.first);
}

/* values += from */
static int add_up(const struct gf_lane *l, const struct gf_lane_program *p, void *values,
		  const void *from, size_t n, struct gf_error *err)
{
	if (p->sets) {
		assert(n == 1);
		return p->sets->merge(p->sets->ctx, l->stream, values, from, err);
	}
	l->gpu->kernels->add_f32(l->stream, values, from, n);
	return 0;
}

static int code(const struct gf_lane *l, const struct gf_lane_program *p,
		const struct gf_lane_step *step, void *values, struct gf_error *err)
{
	const struct gf_gpu_codec *codec;
	void *wire = l->wire + step->wire_at;
	const size_t n = step->range.count;

	if (!p->codec)
		return add_up(l, p, values, wire, n, err);
	codec = &l->gpu->kernels->codecs[gf_codec_number(p->codec)];
	if (!codec->encode)
		return gf_error_set(err, -ENOTSUP, "no codec %s on GPUs", p->codec->name);
	if (step->op == GF_LANE_ENCODE)
		codec->encode(l->stream, wire, values, n, p->codec->block_elems);
	else
		(step->op == GF_LANE_DECODE ? codec->decode : codec->decode_add)(
			l->stream, values, wire, n, p->codec->block_elems);
	return 0;
}

static int transfer(const struct gf_lane *l, const struct gf_lane_program *p,
		    const struct gf_lane_step *step, void *values, struct gf_error *err)
{
	void *memory = step->on_wire ? l->wire + step->wire_at : values;
	size_t bytes = gf_lane_program_wire_bytes(p, step->range.count);

	const bool sends = step->op == GF_LANE_SEND;
	int rc = sends ? l->nccl->send(l->all, l->stream, memory, bytes, step->peer, err)
		       : l->nccl->recv(l->all, l->stream, memory, bytes, step->peer, err);

	if (rc)
		gf_error_prefix(err, "%s rank %d", sends ? "to" : "from", step->peer);
	return rc;
}

static int in_team(struct gf_lane *l, const struct gf_lane_program *p,
		   const struct gf_lane_step *step, void *values, struct gf_error *err)
{
	const struct gf_group *team = &p->teams[step->team];
	struct gf_nccl_comm *c = team_comm(l, team);
	size_t part = step->range.count / (size_t)team->size;
	int rc = (step->op == GF_LANE_REDUCE_SCATTER
			  ? l->nccl->reduce_scatter
			  : l->nccl->all_gather)(c, l->stream, values, part, team->me, err);

	rc = rc ?: settle(l, c, err);
	if (rc)
		gf_error_prefix(err, "among %d ranks from %d by %d", team->size, team->first,
				team->stride);
	return rc;
}

static int run_step(struct gf_lane *l, const struct gf_lane_program *p,
		    const struct gf_lane_step *step, void *data, struct gf_error *err)
{
	void *values = at(l, p, data, step->range);
	int rc;

	switch (step->op) {
	case GF_LANE_ENCODE:
	case GF_LANE_DECODE:
	case GF_LANE_REDUCE_WIRE:
		return code(l, p, step, values, err);
	case GF_LANE_COPY:
		return l->gpu->ops->copy(l->gpu, l->stream, values, at(l, p, data, step->from),
					 gf_lane_program_bytes(p, step->range.count), GF_GPU_WITHIN,
					 err);
	case GF_LANE_REDUCE:
		return add_up(l, p, values, at(l, p, data, step->from), step->range.count, err);
	case GF_LANE_GROUP:
		return l->nccl->group_begin(err);
	case GF_LANE_GROUP_END:
		return l->nccl->group_end(err) ?: settle(l, l->all, err);
	case GF_LANE_SEND:
	case GF_LANE_RECV:
		return transfer(l, p, step, values, err);
	case GF_LANE_ALL_REDUCE:
		rc = l->nccl->all_reduce(l->all, l->stream, values, step->range.count, err);
		rc = rc ?: settle(l, l->all, err);
		if (rc)
			gf_error_prefix(err, "among all ranks");
		return rc;
	case GF_LANE_REDUCE_SCATTER:
	case GF_LANE_ALL_GATHER:
		return in_team(l, p, step, values, err);
	}
	return gf_error_set(err, -EINVAL, "step %d of a program", (int)step->op);
}

/* Operation by operation. */
static int enqueue(struct gf_lane *l, const struct gf_lane_program *p, void *data,
		   struct gf_error *err)
{
	struct gf_error ignored;
	bool grouped = false;
	int rc = 0;

	for (size_t i = 0; i < p->nsteps && !rc; i++) {
		rc = run_step(l, p, &p->steps[i], data, err);
		if (p->steps[i].op == GF_LANE_GROUP)
			grouped = !rc;
		else if (p->steps[i].op == GF_LANE_GROUP_END)
			grouped = false;
	}
	/* An open group would hold back the abort that comes next. */
	if (grouped)
		(void)l->nccl->group_end(&ignored);
	return rc ?: l->gpu->ops->check(l->gpu, err);
}

/*
 * Programs as graphs. A group of NCCL's costs the host about 100 us on a communicator that does not
 * block, as NCCL starts a thread for it; a graph of a whole program costs one launch.
 *
 * NCCL wants an operation captured by all of its ranks or by none, and launched by all from that
 * capture. So nothing here depends on the rank: a program is enqueued plainly the first time, which
 * also connects the ranks, and captured on each place that its data has afterwards. Graphs are
 * freed before their communicators, which wait for them; one that is under way is freed when it has
 * ended.
 */

/* Places of one program's data: pools come round, but a caller may bring new memory for ever. */
#define PLACES_MOST 8

/* Messages come in the same order in every step: the next one is likely to be the one wanted.
 * *places: that the program has, if it is not found. */
static struct gf_lane_graph *find(struct gf_lane *l, const struct gf_lane_program *p,
				  const void *data, size_t *places)
{
	size_t i, k;

	*places = 0;
	for (i = 0; i < l->ngraphs; i++) {
		k = (l->next_graph + i) % l->ngraphs;
		if (l->graphs[k].program != p)
			continue;
		if (l->graphs[k].data == data) {
			l->next_graph = k + 1;
			return &l->graphs[k];
		}
		++*places;
	}
	return NULL;
}

static int capture(struct gf_lane *l, struct gf_lane_graph *g, struct gf_error *err)
{
	const struct gf_gpu_ops *ops = l->gpu->ops;
	struct gf_gpu_graph *graph = NULL;
	struct gf_error ignored;
	int rc = ops->capture_begin(l->gpu, l->stream, err), ended;

	if (rc)
		return rc;
	rc = enqueue(l, g->program, g->data, err);
	ended = ops->capture_end(l->gpu, l->stream, &graph, rc ? &ignored : err);
	rc = rc ?: ended;
	if (rc) {
		ops->graph_free(l->gpu, graph);
		return rc;
	}
	g->graph = graph;
	return 0;
}

int gf_lane_run(struct gf_lane *l, const struct gf_lane_program *p, void *data,
		struct gf_error *err)
{
	struct gf_lane_graph *g;
	size_t places;
	int rc = 0;

	/* the size of sets varies */
	if (!l->captures || !l->gpu->ops->capture_begin || p->sets || !p->nsteps)
		return enqueue(l, p, data, err);
	g = find(l, p, data, &places);
	if (!g && places == PLACES_MOST)
		return enqueue(l, p, data, err);
	if (!g) {
		g = gf_array_push(&l->graphs, &l->ngraphs, &l->graphs_capacity);
		*g = (struct gf_lane_graph){p, data, NULL};
		if (!places)
			return enqueue(l, p, data, err);
	}
	if (!g->graph)
		rc = capture(l, g, err);
	rc = rc ?: l->gpu->ops->graph_launch(l->gpu, l->stream, g->graph, err);
	if (rc)
		gf_error_prefix(err, "as a graph");
	return rc;
}

void gf_lane_forget(struct gf_lane *l, const struct gf_lane_program *p)
{
	size_t i, kept = 0;

	for (i = 0; i < l->ngraphs; i++) {
		if (l->graphs[i].program == p)
			l->gpu->ops->graph_free(l->gpu, l->graphs[i].graph);
		else
			l->graphs[kept++] = l->graphs[i];
	}
	l->ngraphs = kept;
}

int gf_lane_check(struct gf_lane *l, struct gf_error *err)
{
	int rc = l->all ? l->nccl->state(l->all, err) : 0;

	for (size_t i = 0; i < l->nteams && rc >= 0; i++)
		if (l->teams[i].comm)
			rc = l->nccl->state(l->teams[i].comm, err);
	return rc < 0 ? rc : 0;
}

/* Takes the communicators that there are off the lanes. */
static size_t take_comms(struct gf_lane *lanes, size_t n, struct gf_nccl_comm **comms)
{
	size_t i, k, count = 0;

	for (i = 0; i < n; i++) {
		for (k = 0; k < lanes[i].nteams; k++)
			if (lanes[i].teams[k].comm) {
				comms[count++] = lanes[i].teams[k].comm;
				lanes[i].teams[k].comm = NULL;
			}
		if (lanes[i].all)
			comms[count++] = lanes[i].all;
		lanes[i].all = NULL;
	}
	return count;
}

void gf_lanes_abort(struct gf_lane *lanes, size_t n)
{
	GF_FREED struct gf_nccl_comm **comms = NULL;
	size_t i, count, most = n;

	for (i = 0; i < n; i++) {
		drop_graphs(&lanes[i]); /* NCCL would wait for them */
		most += lanes[i].nteams;
	}
	comms = gf_xcalloc(most + 1, sizeof(struct gf_nccl_comm *));
	/* one that was being split off comes out of the first round */
	while ((count = take_comms(lanes, n, comms)))
		lanes->nccl->abort(comms, count);
	for (i = 0; i < n; i++)
		lanes[i].nteams = 0;
}

void gf_lane_close(struct gf_lane *l)
{
	if (!l->gpu)
		return;
	drop_graphs(l);
	free(l->graphs);
	for (size_t i = 0; i < l->nteams; i++)
		l->nccl->destroy(l->teams[i].comm);
	l->nccl->destroy(l->all);
	free(l->teams);
	l->gpu->ops->free(l->gpu, l->scratch);
	l->gpu->ops->free(l->gpu, l->wire);
	l->gpu->ops->stream_free(l->gpu, l->stream);
	memset(l, 0, sizeof(*l));
}
