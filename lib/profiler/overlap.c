/* SPDX-License-Identifier: BSD-3-Clause */
#include "profiler/overlap.h"

#include <math.h>

#include "base/clock.h"
#include "base/heap.h"
#include "cost/stat.h"
#include "profiler/chain.h"

enum { MOST_MESSAGES = 64 };
static const size_t largest_message = (size_t)4 << 20;
/* Small messages, whose bytes cost nothing. */
static const size_t issued_bytes = 256;
/* The part of the messages that is left when backward begins. A rank that waits for the first one
 * may pass on the others, too; if less is left, the pass tells nothing. */
static const double least_left = 0.25;

double gf_measure_slowdown(double lost_s, double busy_s)
{
	static const double most = 100;

	if (!(lost_s > 0) || !(busy_s > 0))
		return 1;
	return lost_s >= busy_s * (1 - 1 / most) ? most : 1 / (1 - lost_s / busy_s);
}

double gf_measure_share_done(const struct gf_message_times *times, size_t count, double at_s)
{
	double done = 0;

	for (size_t i = 0; i < count; i++) {
		double span = times[i].end_s - times[i].start_s;

		if (times[i].end_s <= at_s)
			done += 1;
		else if (times[i].start_s < at_s && span > 0)
			done += (at_s - times[i].start_s) / span;
	}
	return done / (double)count;
}

struct gf_measure_mutual gf_measure_weigh(const struct gf_message_times *times, size_t count,
					  double begin_s, double without_s, double with_s,
					  double alone_s)
{
	const double end_s = begin_s + with_s, done = gf_measure_share_done(times, count, begin_s);
	double last_s = begin_s, flown_s, carried_s;

	if (done > 1 - least_left)
		return (struct gf_measure_mutual){NAN, NAN, NAN};
	for (size_t i = 0; i < count; i++)
		last_s = fmax(last_s, times[i].end_s);
	flown_s = fmin(end_s, last_s) - begin_s;
	carried_s = alone_s * (gf_measure_share_done(times, count, end_s) - done);
	return (struct gf_measure_mutual){
		.overlap_slowdown = gf_measure_slowdown(with_s - without_s, carried_s),
		.compute = gf_measure_slowdown(with_s - without_s, flown_s),
		.message = gf_measure_slowdown(flown_s - carried_s, flown_s),
	};
}

/* --- passes --------------------------------------------------------------- */

int gf_measure_pass_open(struct gf_measure_pass *p, struct gf_measure_step *step,
			 struct gf_error *err)
{
	struct gf_gpu *g = step->gpu;
	int rc = 0;

	*p = (struct gf_measure_pass){
		.step = step,
		.grads = gf_xcalloc(step->offsets[step->ntensors], sizeof(*p->grads)),
	};
	if (g)
		rc = g->ops->event_new(g, true, &p->begun, err);
	if (g && rc == 0)
		rc = g->ops->event_new(g, true, &p->ended, err);
	return rc;
}

void gf_measure_pass_hold(struct gf_measure_pass *p)
{
	struct gf_gpu *g = p->step->gpu;

	if (g && !p->rc)
		p->rc = g->ops->hold(g, p->step->stream, &p->hold, &p->reason);
}

void gf_measure_pass_forward(struct gf_measure_pass *p)
{
	if (!p->rc)
		p->rc = gf_measure_step_forward(p->step, &p->reason);
}

/* The device has done it, so that its clock and the host's start together. */
static void settle(struct gf_measure_pass *p)
{
	struct gf_gpu *g = p->step->gpu;

	if (g && !p->rc)
		p->rc = g->ops->stream_sync(g, p->step->stream, &p->reason);
}

void gf_measure_pass_begin(struct gf_measure_pass *p)
{
	struct gf_gpu *g = p->step->gpu;

	p->start_s = gf_clock_s();
	if (g && !p->rc)
		p->rc = g->ops->record(g, p->begun, p->step->stream, &p->reason);
}

double gf_measure_pass_backward(struct gf_measure_pass *p)
{
	struct gf_gpu *g = p->step->gpu;
	struct gf_error *err = &p->reason;
	double elapsed_s;

	if (g)
		g->ops->release(g, p->hold);
	p->hold = NULL;
	if (!p->rc)
		p->rc = gf_measure_step_backward(p->step, p->grads, p->on_grad, p->on_grad_ctx,
						 err);
	elapsed_s = gf_clock_s() - p->start_s;
	if (g && !p->rc)
		p->rc = g->ops->record(g, p->ended, p->step->stream, err);
	settle(p);
	if (g && !p->rc)
		p->rc = g->ops->event_s(g, p->begun, p->ended, &elapsed_s, err);
	return p->rc ? 0 : elapsed_s;
}

int gf_measure_pass_conclude(struct gf_measure_pass *p, struct gf_comm *comm, int rc,
			     struct gf_error *err)
{
	struct gf_gpu *g = p->step->gpu;

	rc = rc ?: gf_comm_agree(comm, p->rc, p->rc ? &p->reason : err);
	if (p->rc)
		*err = p->reason;
	if (g) {
		g->ops->event_free(g, p->begun);
		g->ops->event_free(g, p->ended);
	}
	free(p->grads);
	return rc;
}

/* --- messages between hosts ----------------------------------------------- */

/* Through training's engine and its thread. */
static int open_load(const struct gf_measure_overlap *c, const struct gf_measure_sitting *s,
		     void **load, struct gf_error *err)
{
	const struct gf_measure_exchange_config config = {
		.comm = c->comm,
		.by = c->cost,
		.compute_threads = c->threads,
		.callers_memory = c->callers_memory,
		.count_elems = s->bytes / sizeof(float),
		.messages = s->messages,
		.lanes = s->lanes,
		.timeout_s = c->timeout_s,
	};
	struct gf_measure_exchange *x = gf_xcalloc(1, sizeof(*x));
	int rc = gf_measure_exchange_open(x, &config, err);

	if (rc)
		free(x);
	else
		*load = x;
	return rc;
}

static void close_load(void *load)
{
	gf_measure_exchange_close(load);
	free(load);
}

static int alone(void *load, const struct gf_measure_budget *budget,
		 struct gf_measure_samples *samples, struct gf_error *err)
{
	return gf_measure_exchange_measure(load, budget, samples, err);
}

/* Backward with nothing beside it, all ranks at once. */
static int without_messages(struct gf_measure_exchange *x, struct gf_measure_pass *pass,
			    double *took_s, struct gf_error *err)
{
	int rc = gf_engine_barrier(x->engine, err);

	if (rc)
		return rc;
	gf_measure_pass_forward(pass);
	settle(pass);
	gf_measure_pass_begin(pass);
	*took_s = gf_measure_pass_backward(pass);
	rc = gf_engine_barrier(x->engine, err);
	gf_measure_pass_forward(pass);
	settle(pass);
	gf_measure_exchange_begin(x);
	return rc;
}

static int once(void *load, struct gf_measure_pass *pass, double alone_s,
		struct gf_measure_mutual *mutual, struct gf_error *err)
{
	struct gf_measure_exchange *x = load;
	double without_s = 0, with_s, begin_s;
	int rc = without_messages(x, pass, &without_s, err);

	for (size_t i = 0; i < x->plan.nmessages; i++)
		gf_measure_exchange_ready(x, i);
	/* now a link has spent what it had saved in the pause */
	rc = rc ?: gf_engine_wait_message(x->engine, 0, err);
	gf_measure_pass_begin(pass);
	begin_s = gf_clock_s();
	with_s = gf_measure_pass_backward(pass);
	gf_engine_backward_end(x->engine);
	rc = rc ?: gf_measure_exchange_wait(x, err);
	if (rc == 0)
		*mutual = gf_measure_weigh(gf_engine_times(x->engine), x->plan.nmessages, begin_s,
					   without_s, with_s, alone_s);
	return rc;
}

static void issue(void *ctx, size_t tensor)
{
	struct gf_measure_exchange *x = ctx;

	if (tensor < x->plan.nmessages)
		gf_measure_exchange_ready(x, tensor);
}

/* Backward without messages and with one for each gradient, as far as there are messages: what it
 * loses, and what each message takes (of `messages`), NAN if it ends after backward. For a load
 * between hosts. */
static int issue_each(void *load, struct gf_measure_pass *pass, double *lost_s, double *takes_s,
		      struct gf_error *err)
{
	struct gf_measure_exchange *x = load;
	const struct gf_message_times *times;
	double without_s = 0, with_s, end_s;
	int rc = without_messages(x, pass, &without_s, err);

	pass->on_grad = issue;
	pass->on_grad_ctx = x;
	gf_measure_pass_begin(pass);
	with_s = gf_measure_pass_backward(pass);
	end_s = gf_clock_s();
	pass->on_grad = NULL;
	gf_engine_backward_end(x->engine);
	rc = rc ?: gf_measure_exchange_wait(x, err);
	if (rc)
		return rc;
	*lost_s = with_s - without_s;
	times = gf_engine_times(x->engine);
	for (size_t i = 0; i < x->plan.nmessages; i++)
		takes_s[i] = times[i].end_s > end_s ? NAN : times[i].end_s - times[i].start_s;
	return 0;
}

struct everywhere {
	const void *mine;
	size_t bytes;
	void *all;
};

static int gather_there(struct gf_comm *comm, void *ctx, struct gf_error *err)
{
	const struct everywhere *e = ctx;

	return gf_comm_allgather(comm, e->mine, e->bytes, e->all, err);
}

static int gather(void *load, const void *mine, size_t bytes, void *all, struct gf_error *err)
{
	struct gf_measure_exchange *x = load;
	struct everywhere e = {mine, bytes, all};

	return gf_engine_call(x->engine, gather_there, &e, err);
}

static const struct gf_measure_traffic by_host = {
	.backwards = 1.5, /* some are in flight until it ends */
	.open = open_load,
	.alone = alone,
	.once = once,
	.gather = gather,
	.close = close_load,
};

/* --- measuring ------------------------------------------------------------ */

enum { COLUMNS = sizeof(struct gf_measure_mutual) / sizeof(double) };

/* Per column the median over all ranks' rows, of those that are numbers; 0: there are none. */
static int medians(const struct gf_measure_overlap *c, const struct gf_measure_traffic *ops,
		   void *load, const double *mine, size_t columns, double *out,
		   struct gf_error *err)
{
	size_t n = (size_t)c->repeats, all_n = n * (size_t)c->comm->ranks, i, k, known;
	GF_FREED double *all = gf_xcalloc(all_n * columns, sizeof(*all));
	GF_FREED double *column = gf_xcalloc(all_n, sizeof(*column));
	int rc = ops->gather(load, mine, n * columns * sizeof(*mine), all, err);

	for (k = 0; k < columns && rc == 0; k++) {
		for (i = known = 0; i < all_n; i++)
			if (!isnan(all[i * columns + k]))
				column[known++] = all[i * columns + k];
		out[k] = known ? gf_stat_median(column, known) : 0;
	}
	return rc;
}

static int repeat(const struct gf_measure_overlap *c, const struct gf_measure_traffic *ops,
		  void *load, struct gf_measure_pass *pass, struct gf_measure_mutual *mutual,
		  struct gf_error *err)
{
	const struct gf_measure_budget budget = {c->repeats < 10 ? 0.05 : 0.2, 5, 50};
	size_t n = (size_t)c->repeats, i;
	GF_FREED struct gf_measure_mutual *mine = gf_xcalloc(n, sizeof(*mine));
	GF_RELEASED(gf_measure_samples_release) struct gf_measure_samples alone = {0};
	double alone_s, found[COLUMNS];
	int rc = ops->alone(load, &budget, &alone, err);

	alone_s = rc ? 0 : gf_stat_median(alone.values, alone.count);
	for (i = 0; i < n && rc == 0; i++)
		rc = ops->once(load, pass, alone_s, &mine[i], err);
	rc = rc ?: medians(c, ops, load, &mine->overlap_slowdown, COLUMNS, found, err);
	if (rc == 0)
		*mutual = (struct gf_measure_mutual){fmax(1, found[0]), found[1], found[2]};
	return rc;
}

static int message_count(const struct gf_measure_overlap *c, const struct gf_measure_traffic *ops,
			 size_t bytes)
{
	struct gf_cost_lines lines = gf_allreduce_lines(c->cost);
	double one = gf_cost_lines_s(&lines, (double)bytes);
	double count = ceil(ops->backwards * c->backward_s / one);

	if (!(one > 0))
		return MOST_MESSAGES;
	return (int)fmin(MOST_MESSAGES, fmax(fmax(2, c->lanes), count));
}

static const struct gf_measure_traffic *load_kind(const struct gf_measure_overlap *c)
{
	return c->device && c->device->nccl ? &gf_measure_traffic_device : &by_host;
}

static int on_load(const struct gf_measure_overlap *c, struct gf_measure_pass *pass,
		   const struct gf_measure_sitting *messages, struct gf_measure_mutual *mutual,
		   struct gf_error *err)
{
	const struct gf_measure_traffic *ops = load_kind(c);
	void *load = NULL;
	int rc = ops->open(c, messages, &load, err);

	if (rc)
		return rc;
	rc = repeat(c, ops, load, pass, mutual, err);
	ops->close(load);
	return rc;
}

/* A message has begun when all ranks have: of the messages that all saw end beside backward, the
 * median of what the rank took that began last. */
static int shortest(const struct gf_measure_overlap *c, void *load, const double *mine, size_t n,
		    double *out_s, struct gf_error *err)
{
	GF_FREED double *all = gf_xcalloc(n * (size_t)c->comm->ranks, sizeof(*all));
	GF_FREED double *least = gf_xcalloc(n, sizeof(*least));
	size_t i, r, known = 0;
	int rc = by_host.gather(load, mine, n * sizeof(*mine), all, err);

	for (i = 0; i < n && rc == 0; i++) {
		double s = INFINITY;

		for (r = 0; r < (size_t)c->comm->ranks && !isnan(s); r++)
			s = isnan(all[r * n + i]) ? NAN : fmin(s, all[r * n + i]);
		least[known] = s;
		known += !isnan(s);
	}
	*out_s = known ? gf_stat_median(least, known) : 0;
	return rc;
}

/* lost_s: by all messages; takes_s: one. */
static int on_issue(const struct gf_measure_overlap *c, struct gf_measure_pass *pass,
		    const struct gf_measure_sitting *messages, double *lost_s, double *takes_s,
		    struct gf_error *err)
{
	size_t n = (size_t)c->repeats, m = (size_t)messages->messages, i;
	GF_FREED double *lost = gf_xcalloc(n, sizeof(*lost));
	GF_FREED double *takes = gf_xcalloc(n * m, sizeof(*takes));
	void *load = NULL;
	int rc = by_host.open(c, messages, &load, err);

	for (i = 0; i < n && rc == 0; i++)
		rc = issue_each(load, pass, &lost[i], takes + i * m, err);
	rc = rc ?: medians(c, &by_host, load, lost, 1, lost_s, err);
	rc = rc ?: shortest(c, load, takes, n * m, takes_s, err);
	if (load)
		by_host.close(load);
	return rc;
}

int gf_measure_overlap(const struct gf_measure_overlap *c, struct gf_measure_step *step,
		       struct gf_measure_mutual *mutual, struct gf_error *err)
{
	struct gf_measure_sitting messages = {
		.bytes = c->bytes ? c->bytes : step->offsets[step->ntensors] * sizeof(float),
		.lanes = c->lanes > 1 ? c->lanes : 1,
	};
	struct gf_measure_pass pass;
	int rc = gf_comm_agree(c->comm, gf_measure_pass_open(&pass, step, err), err);

	if (messages.bytes > largest_message)
		messages.bytes = largest_message;
	messages.messages = message_count(c, load_kind(c), messages.bytes);
	rc = rc ?: on_load(c, &pass, &messages, mutual, err);
	return gf_measure_pass_conclude(&pass, c->comm, rc, err);
}

int gf_measure_issue(const struct gf_measure_overlap *c, struct gf_measure_step *step,
		     struct gf_measure_issued *issued, struct gf_error *err)
{
	const struct gf_measure_sitting messages = {
		.bytes = issued_bytes,
		.messages = step->ntensors < MOST_MESSAGES ? (int)step->ntensors : MOST_MESSAGES,
		.lanes = 1,
	};
	struct gf_cost_lines lines = gf_allreduce_lines(c->cost);
	const struct gf_beside_backward *b = &c->cost->beside;
	double alone_s = gf_cost_lines_s(&lines, issued_bytes);
	double lost_s = 0, takes_s = 0, slow = b->ncompute_slowdown ? b->compute_slowdown[0] : 1;
	struct gf_measure_pass pass;
	int rc = gf_comm_agree(c->comm, gf_measure_pass_open(&pass, step, err), err);

	rc = rc ?: on_issue(c, &pass, &messages, &lost_s, &takes_s, err);
	rc = gf_measure_pass_conclude(&pass, c->comm, rc, err);
	if (rc)
		return rc;
	takes_s = fmax(takes_s, alone_s);
	issued->extra_s = takes_s - alone_s;
	/* backward also slows while they are in flight */
	issued->issue_s = fmax(0, lost_s / messages.messages - takes_s * (1 - 1 / slow));
	return 0;
}
