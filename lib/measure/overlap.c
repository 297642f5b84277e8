/* SPDX-License-Identifier: BSD-3-Clause */
#include "measure/overlap_parts.h"

#include <math.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/heap.h"
#include "cost/stat.h"

enum { MOST_MESSAGES = 64 };
static const size_t largest_message = (size_t)4 << 20;
/* Messages for this share of backward: all of them end within it. */
static const double load_share = 0.5;

double gf_bench_slowdown(double lost_s, double busy_s)
{
	static const double most = 100;

	if (!(lost_s > 0) || !(busy_s > 0))
		return 1;
	if (lost_s >= busy_s * (1 - 1 / most))
		return most;
	return 1 / (1 - lost_s / busy_s);
}

double gf_bench_share_done(const struct gf_message_times *times, size_t count,
			   double at_s)
{
	double done = 0;
	size_t i;

	for (i = 0; i < count; i++) {
		double span = times[i].end_s - times[i].start_s;

		if (times[i].end_s <= at_s)
			done += 1;
		else if (times[i].start_s < at_s && span > 0)
			done += (at_s - times[i].start_s) / span;
	}
	return done / (double)count;
}

/* --- passes --------------------------------------------------------------- */

static int open_pass(struct gf_bench_pass *p, struct gf_bench_step *step,
		     struct gf_error *err)
{
	struct gf_gpu *g = step->gpu;
	int rc = 0;

	*p = (struct gf_bench_pass){
		.step = step,
		.grads = gf_xcalloc(step->offsets[step->ntensors],
				    sizeof(*p->grads)),
	};
	if (g)
		rc = g->ops->event_new(g, true, &p->begun, err);
	if (g && rc == 0)
		rc = g->ops->event_new(g, true, &p->ended, err);
	return rc;
}

static void close_pass(struct gf_bench_pass *p)
{
	struct gf_gpu *g = p->step->gpu;

	if (g) {
		g->ops->event_free(g, p->begun);
		g->ops->event_free(g, p->ended);
	}
	free(p->grads);
}

void gf_bench_pass_forward(struct gf_bench_pass *p)
{
	if (!p->rc)
		p->rc = gf_bench_step_forward(p->step, &p->reason);
}

void gf_bench_pass_settle(struct gf_bench_pass *p)
{
	struct gf_gpu *g = p->step->gpu;

	if (g && !p->rc)
		p->rc = g->ops->stream_sync(g, p->step->stream, &p->reason);
}

void gf_bench_pass_begin(struct gf_bench_pass *p)
{
	struct gf_gpu *g = p->step->gpu;

	p->start_s = gf_clock_s();
	if (g && !p->rc)
		p->rc = g->ops->record(g, p->begun, p->step->stream,
				       &p->reason);
}

double gf_bench_pass_backward(struct gf_bench_pass *p)
{
	struct gf_gpu *g = p->step->gpu;
	struct gf_error *err = &p->reason;
	double elapsed_s;

	if (!p->rc)
		p->rc = gf_bench_step_backward(p->step, p->grads, NULL, NULL,
					       err);
	elapsed_s = gf_clock_s() - p->start_s;
	if (g && !p->rc)
		p->rc = g->ops->record(g, p->ended, p->step->stream, err);
	gf_bench_pass_settle(p);
	if (g && !p->rc)
		p->rc = g->ops->event_s(g, p->begun, p->ended, &elapsed_s, err);
	return p->rc ? 0 : elapsed_s;
}

/* --- measuring ------------------------------------------------------------ */

/* The median over repeats and ranks. */
static int repeat(const struct gf_bench_overlap *c,
		  const struct gf_bench_load *ops, void *load,
		  struct gf_bench_pass *pass, double *slowdown,
		  struct gf_error *err)
{
	const struct gf_bench_budget budget = {0.2, 5, 50};
	size_t n = (size_t)c->repeats, all_n = n * (size_t)c->comm->ranks, i;
	double *mine = gf_xcalloc(n, sizeof(*mine)), alone_s;
	double *all = gf_xcalloc(all_n, sizeof(*all));
	struct gf_bench_samples alone = {0};
	int rc = ops->alone(load, &budget, &alone, err);

	alone_s = rc ? 0 : gf_stat_median(alone.values, alone.count);
	for (i = 0; i < n && rc == 0; i++)
		rc = ops->once(load, pass, alone_s, &mine[i], err);
	if (rc == 0)
		rc = ops->gather(load, mine, n * sizeof(*mine), all, err);
	if (rc == 0)
		*slowdown = gf_stat_median(all, all_n);
	gf_bench_samples_release(&alone);
	free(all);
	free(mine);
	return rc;
}

static int message_count(const struct gf_bench_overlap *c, size_t bytes)
{
	struct gf_cost_lines lines = gf_allreduce_lines(c->cost);
	double one = gf_cost_lines_s(&lines, (double)bytes);

	if (!(one > 0))
		return MOST_MESSAGES;
	return (int)fmin(MOST_MESSAGES,
			 fmax(1, load_share * c->backward_s / one));
}

static int measure(const struct gf_bench_overlap *c, struct gf_bench_pass *pass,
		   size_t bytes, double *slowdown, struct gf_error *err)
{
	const struct gf_bench_load *ops = c->device && c->device->nccl
						  ? &gf_bench_load_device
						  : &gf_bench_load_host;
	const struct gf_bench_sitting messages = {
		.bytes = bytes,
		.messages = message_count(c, bytes),
		.lanes = 1,
	};
	void *load = NULL;
	int rc = ops->open(c, &messages, &load, err);

	if (rc)
		return rc;
	rc = repeat(c, ops, load, pass, slowdown, err);
	ops->close(load);
	if (rc)
		return rc;
	return gf_comm_agree(c->comm, pass->rc, pass->rc ? &pass->reason : err);
}

int gf_bench_overlap(const struct gf_bench_overlap *c,
		     struct gf_bench_step *step, double *slowdown,
		     struct gf_error *err)
{
	size_t bytes = step->offsets[step->ntensors] * sizeof(float);
	struct gf_bench_pass pass;
	int rc = gf_comm_agree(c->comm, open_pass(&pass, step, err), err);

	if (bytes > largest_message)
		bytes = largest_message;
	if (rc == 0)
		rc = measure(c, &pass, bytes, slowdown, err);
	if (pass.rc)
		*err = pass.reason;
	close_pass(&pass);
	return rc;
}
