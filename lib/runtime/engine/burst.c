/* SPDX-License-Identifier: BSD-3-Clause */
#include "runtime/engine/burst.h"

#include "base/heap.h"
#include "collectives/prove.h"
#include "cuda/lanes/program.h"
#include "runtime/engine/engine.h"
#include "runtime/traces/rank_traces.h"

struct gf_burst {
	struct gf_comm *comm;
	struct gf_engine *engine;
	bool borrowed;         /* it is */
	struct gf_pool layout; /* a tensor for each message; of no memory */
	struct gf_way *ways;   /* per message, as all that follows */
	struct gf_work *list;
	size_t *offset_bytes;
	struct gf_exec_times **times; /* of its steps, once recorded */
	size_t n;
};

/* Messages that go alone share the first lane; all of a borrowed engine wait for its one tensor. */
static void make_list(struct gf_burst *b, const struct gf_burst_message *messages, int lanes)
{
	size_t i, offset = 0;

	for (i = 0; i < b->n; i++) {
		const struct gf_burst_message *m = &messages[i];

		b->ways[i] = m->way;
		b->list[i] = (struct gf_work){
			.first = b->borrowed ? 0 : i,
			.last = b->borrowed ? 0 : i,
			.simultaneous = m->simultaneous,
			.lane = m->simultaneous ? i % (size_t)lanes : 0,
			.way = &b->ways[i],
			.half = m->half,
			.owners = m->owners,
			.element = m->element,
			.sets = m->sets,
			.schedule = m->schedule,
			.data = m->data,
			.count_elems = m->count_elems,
		};
		b->offset_bytes[i] = offset;
		if (!m->sets)
			b->list[i].skew_elems = offset / sizeof(float) % GF_LANE_GRAIN_ELEMS;
		offset += m->count_elems * m->element.size_bytes;
	}
}

int gf_burst_new(const struct gf_burst_config *config, struct gf_burst **burst,
		 struct gf_error *err)
{
	struct gf_burst *b = gf_xcalloc(1, sizeof(*b));
	const size_t n = config->nmessages;
	int rc = 0;

	b->comm = config->comm;
	b->n = b->layout.ntensors = n;
	b->ways = gf_xcalloc(n + 1, sizeof(*b->ways));
	b->list = gf_xcalloc(n + 1, sizeof(*b->list));
	b->offset_bytes = gf_xcalloc(n + 1, sizeof(*b->offset_bytes));
	b->times = gf_xcalloc(n + 1, sizeof(struct gf_exec_times *));
	b->engine = config->engine;
	b->borrowed = b->engine != NULL;
	make_list(b, config->messages, config->lanes);
	if (!b->borrowed)
		rc = gf_engine_new(
			&(struct gf_engine_config){
				.comm = config->comm,
				.pool = &b->layout,
				.segment_bytes = config->segment_bytes,
				.lanes = config->lanes,
				.watch = config->watch,
			},
			&b->engine, err);
	rc = rc ?: gf_comm_agree(b->comm, gf_engine_expect(b->engine, b->list, n, err), err);
	if (rc)
		gf_burst_free(b);
	else
		*burst = b;
	return rc;
}

void gf_burst_free(struct gf_burst *b)
{
	/* Messages under way on a broken communicator may still touch the burst's memory, here and
	 * on other ranks, until the job ends; between GPUs they were given up. */
	if (!b || (b->comm->broken && !b->borrowed))
		return;
	if (b->borrowed)
		gf_engine_forget(b->engine, b->list, b->n);
	else
		gf_engine_free(b->engine);
	for (size_t i = 0; i < b->n; i++)
		free(b->times[i]);
	free(b->ways);
	free(b->list);
	free(b->offset_bytes);
	free(b->times);
	free(b);
}

int gf_burst_send(struct gf_burst *b, void *data, struct gf_error *err)
{
	for (size_t i = 0; i < b->n; i++)
		if (!b->list[i].sets)
			b->list[i].data = (char *)data + b->offset_bytes[i];
	gf_engine_begin_work(b->engine, b->list, b->n);
	gf_engine_backward_end(b->engine);
	return gf_engine_wait(b->engine, err);
}

static const char *type_of(const struct gf_element *e)
{
	return e->codec    ? e->codec->name
	       : e->number ? gf_dtype_names[e->dtype]
			   : gf_dtype_names[GF_F32];
}

struct subject {
	const struct gf_engine *e;
	const struct gf_work *w;
};

static int build(void *ctx, int rank, struct gf_schedule *s, struct gf_error *err)
{
	const struct subject *subject = ctx;

	return subject->e->ops->schedule(subject->e, subject->w, rank, s, err);
}

/* Proves the schedule of a message like that (collectives/prove.h), on rank 0. Ranks that would run
 * other schedules than rank 0 has proved find out. */
static int prove(struct gf_engine *e, const struct gf_work *w, struct gf_text *out,
		 struct gf_error *err)
{
	struct subject subject = {e, w};
	struct gf_recipe r;
	GF_FREED char *words = NULL;
	int rc = gf_comm_agree(e->comm, e->ops->recipe(e, w, &r, err), err);

	if (rc)
		return rc;
	words = gf_prove_words(&r.way, &r.args, type_of(&r.element));
	rc = gf_comm_same_text(e->comm, "schedule", words, err);
	if (!rc && e->comm->rank == 0)
		rc = gf_prove_line(&r.way, &r.args, type_of(&r.element),
				   e->ops->schedule ? build : NULL, &subject, out, err);
	return gf_comm_agree(e->comm, rc, err);
}

int gf_burst_prove(struct gf_burst *b, struct gf_text *out, struct gf_error *err)
{
	int rc = 0;

	for (size_t i = 0; i < b->n && !rc; i++)
		rc = prove(b->engine, &b->list[i], out, err);
	return rc;
}

uint64_t gf_burst_wire_bytes(const struct gf_burst *b)
{
	const struct gf_schedule *schedule;
	const struct gf_exec_run *run;
	uint64_t bytes = 0;

	for (size_t i = 0; i < b->n; i++) {
		run = gf_engine_run_of(b->engine, i, &schedule);
		bytes += run ? gf_exec_wire_bytes(run) : 0;
	}
	return bytes;
}

void gf_burst_record(struct gf_burst *b, bool on)
{
	const struct gf_schedule *schedule;
	struct gf_exec_run *run;

	for (size_t i = 0; i < b->n; i++) {
		run = gf_engine_run_of(b->engine, i, &schedule);
		if (!run || !schedule->nsteps)
			continue;
		if (on && !b->times[i])
			b->times[i] = gf_xcalloc(schedule->nsteps, sizeof(**b->times));
		gf_exec_record(run, on ? b->times[i] : NULL);
	}
}

void gf_burst_draw(const struct gf_burst *b, double shift_s, struct gf_trace *trace)
{
	GF_FREED struct gf_trace_run *runs = gf_xcalloc(b->n + 1, sizeof(*runs));
	const struct gf_schedule *schedule;
	size_t i, n = 0;

	for (i = 0; i < b->n; i++)
		if (b->times[i]) {
			(void)gf_engine_run_of(b->engine, i, &schedule);
			runs[n++] = (struct gf_trace_run){schedule, b->times[i],
							  &b->list[i].element, i};
		}
	gf_trace_steps(trace, runs, n, shift_s);
}
