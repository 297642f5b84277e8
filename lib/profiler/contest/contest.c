/* SPDX-License-Identifier: BSD-3-Clause */
#include "profiler/contest/contest.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/heap.h"
#include "profiler/contest/exact.h"
#include "cost/stat.h"
#include "profiler/contest/allreduce.h"
#include "base/file.h"

int gf_contest_timeline_write(const struct gf_contest_timeline *t, struct gf_comm *comm,
			      const char *path, struct gf_error *err)
{
	GF_FREED char *text = NULL;
	int rc = gf_trace_gather(&t->trace, comm, &t->offset, "gf-allreduce", &text, err);

	if (rc)
		return rc;
	if (text)
		rc = gf_file_write(path, text, strlen(text), err);
	return gf_comm_agree(comm, rc, err);
}

/* The whole collective of a contestant, and its steps if it has any. */
static void draw(const struct gf_contest *c, size_t i, const struct gf_contest_row *row)
{
	struct gf_contest_timeline *t = c->b->config.timeline;
	double shift_s = gf_trace_shift_s(&t->offset);
	const struct gf_contest_span *span = &c->of[i].span;
	const enum gf_coll_half half = c->b->config.collective;
	char args[128];

	snprintf(args, sizeof(args), "{\"bytes\": %zu, \"messages\": %zu%s%s%s}", row->size_bytes,
		 row->messages, half ? ", \"collective\": \"" : "",
		 half ? gf_coll_half_names[half] : "", half ? "\"" : "");
	gf_trace_slice(&t->trace, c->b->config.comm->rank, GF_TRACE_MESSAGES, "message",
		       row->way.algorithm->name, span->start_s - shift_s, span->time_s, args);
	if (c->of[i].burst)
		gf_burst_draw(c->of[i].burst, shift_s, &t->trace);
}

/* --- repeats --------------------------------------------------------------
 */

/* Moves the contestants' data where it lies on a GPU. */
static int move(const struct gf_contest *c, enum gf_contest_move what, void *host,
		struct gf_error *err)
{
	struct gf_contest_allreduce *b = c->b;

	return b->device ? gf_contest_gpu_move(b->device, what, host,
					       gf_contest_bytes(b, c->count_elems), err)
			 : 0;
}

/* The k-th range of the data: all of it, or (parts) the rank's part of message k; false: there are
 * no more. */
static bool range_at(const struct gf_contest *c, bool parts, int rank, size_t k,
		     struct gf_range *range)
{
	const size_t n = c->first_elems;

	*range = parts ? gf_range_part(gf_data(k * n, n), c->b->config.comm->ranks, rank)
		       : gf_data(0, c->count_elems);
	return parts ? k * n < c->count_elems : k == 0;
}

static void *at(const struct gf_contest *c, void *data, struct gf_range range)
{
	return (char *)data + gf_contest_bytes(c->b, range.first);
}

/* The inputs are put in place: what this rank brings. */
static int refill(const struct gf_contest *c, struct gf_error *err)
{
	struct gf_contest_allreduce *b = c->b;
	const bool gathers = b->config.collective == GF_COLL_ALL_GATHER;
	struct gf_range r;

	for (size_t k = 0; !b->device && range_at(c, gathers, b->config.comm->rank, k, &r); k++)
		memcpy(at(c, b->work, r), at(c, b->source, r), gf_contest_bytes(b, r.count));
	return move(c, GF_MOVE_IN_PLACE, NULL, err);
}

/* One message, in `work`. */
static int send_told(const struct gf_contest *c, struct gf_comm_told *told, struct gf_error *err)
{
	struct gf_contest_allreduce *b = c->b;
	const enum gf_coll_half half = b->config.collective;
	const struct gf_comm *comm = b->config.comm;
	const struct gf_element *e = &b->config.element;
	struct gf_range sum;
	int rc = told->run(told, half != GF_COLL_ALL_GATHER, half != GF_COLL_REDUCE_SCATTER,
			   b->work, c->count_elems, e, err);

	if (rc == 0 && half != GF_COLL_ALL_GATHER &&
	    range_at(c, half == GF_COLL_REDUCE_SCATTER, comm->rank, 0, &sum))
		gf_element_finish(e, at(c, b->work, sum), sum.count, comm->ranks);
	return rc;
}

/* Contestant i's collective of what is in `work`. By the host, what is on a GPU is copied down
 * before, and up after it. */
static int reduce(const struct gf_contest *c, size_t i, struct gf_error *err)
{
	struct gf_contest_allreduce *b = c->b;
	int rc = move(c, GF_MOVE_DOWN, b->work, err);

	if (rc == 0)
		rc = c->of[i].sparse ? gf_contest_sparse_send(c->of[i].sparse, b->work, err)
		     : c->of[i].told ? send_told(c, c->of[i].told, err)
				     : gf_burst_send(c->of[i].burst, b->work, err);
	return rc ?: move(c, GF_MOVE_UP, b->work, err);
}

static int run(const struct gf_contest *c, size_t i, bool fill_first, double *time_s,
	       struct gf_error *err)
{
	double start_s = gf_clock_s();
	int rc = 0;

	if (c->of[i].send)
		return gf_contest_send_go(c->of[i].send, time_s, err);
	if (fill_first)
		rc = refill(c, err);
	rc = rc ?: reduce(c, i, err);
	*time_s = gf_clock_s() - start_s;
	return rc;
}

/* The deadline of such a call begins, or ends. */
static void hold(const struct gf_contest_allreduce_config *config, bool begins)
{
	if (config->hold)
		config->hold(config->hold_ctx, begins);
}

static int once(struct gf_contest *c, size_t i, enum gf_contest_placement placement, double *time_s,
		struct gf_error *err)
{
	struct gf_contest_allreduce *b = c->b;
	const bool fill_first = placement == GF_OUT_OF_PLACE;
	int rc = fill_first ? 0 : refill(c, err);

	if (rc == 0 && c->of[i].send)
		rc = gf_contest_send_load(c->of[i].send, fill_first, err);
	if (rc)
		return rc;
	if (c->of[i].told)
		hold(&b->config, true);
	b->watch.self.phase = GF_PHASE_CALL;
	b->watch.self.calls++;
	rc = gf_comm_barrier(b->config.comm, err);
	if (rc) {
		gf_error_prefix(err, "step %" PRIu64 ", message 0 (%zu bytes), not begun",
				b->watch.self.step + 1, gf_contest_bytes(b, c->first_elems));
		return rc;
	}
	c->latest.start_s = gf_clock_s();
	rc = run(c, i, fill_first, time_s, err);
	c->latest.time_s = gf_clock_s() - c->latest.start_s;
	if (c->of[i].told)
		hold(&b->config, false);
	return rc;
}

/* Contestant and placement in turn. */
static int repeat(struct gf_contest *c, size_t k, bool last, double *time_s, struct gf_error *err)
{
	struct gf_contestant *of = &c->of[k / 2];
	bool record = last && k % 2 == GF_IN_PLACE;
	int rc;

	if (record && of->burst)
		gf_burst_record(of->burst, true);
	rc = once(c, k / 2, (enum gf_contest_placement)(k % 2), time_s, err);
	if (record)
		of->span = c->latest;
	if (record && of->burst)
		gf_burst_record(of->burst, false);
	return rc;
}

static int repeat_all(struct gf_contest *c, struct gf_error *err)
{
	const struct gf_contest_allreduce_config *config = &c->b->config;
	double time_s = 0;
	int i, rc = 0;

	for (i = -config->warmup; i < config->repeats; i++) {
		bool last = config->timeline && i == config->repeats - 1;

		for (size_t k = 0; k < 2 * c->n && rc == 0; k++) {
			rc = repeat(c, k, last, &time_s, err);
			if (i >= 0)
				c->of[k / 2].times[k % 2][i] = time_s;
		}
	}
	return rc;
}

/* --- results --------------------------------------------------------------
 */

static double combine(const double *all, int ranks, size_t stride, enum gf_contest_across across)
{
	double total = 0, most = 0, least = INFINITY;

	for (int r = 0; r < ranks; r++) {
		double v = all[(size_t)r * stride];

		total += v;
		most = fmax(most, v);
		least = fmin(least, v);
	}
	return across == GF_ACROSS_MAX    ? most
	       : across == GF_ACROSS_MIN  ? least
	       : across == GF_ACROSS_MEAN ? total / ranks
					  : all[0];
}

int gf_contest_summarise(const struct gf_contest_allreduce_config *config, struct gf_comm *c,
			 double *times, struct gf_contest_reading *r, struct gf_error *err)
{
	size_t n = (size_t)config->repeats, i;
	GF_FREED double *all = gf_xcalloc((size_t)c->ranks * n, sizeof(*all));
	int rc = gf_comm_allgather(c, times, n * sizeof(*times), all, err);

	for (i = 0; i < n && rc == 0; i++)
		times[i] = combine(all + i, c->ranks, n, config->across);
	if (rc)
		return rc;
	r->min_s = gf_stat_quantile(times, n, 0);
	r->median_s = gf_stat_quantile(times, n, 0.5);
	r->p25_s = gf_stat_quantile(times, n, 0.25);
	r->p75_s = gf_stat_quantile(times, n, 0.75);
	r->p90_s = gf_stat_quantile(times, n, 0.9);
	r->p99_s = gf_stat_quantile(times, n, 0.99);
	r->max_s = gf_stat_quantile(times, n, 1);
	return 0;
}

int gf_contest_over_ranks(struct gf_comm *c, size_t mine, bool add, size_t *out,
			  struct gf_error *err)
{
	GF_FREED size_t *all = gf_xcalloc((size_t)c->ranks, sizeof(*all));
	int r, rc = gf_comm_allgather(c, &mine, sizeof(mine), all, err);

	for (r = 0; r < c->ranks && rc == 0; r++)
		*out = add ? *out + all[r] : all[r] > *out ? all[r] : *out;
	return rc;
}

/* Changes what a check must find: by little, but under a codec, whose results may be off, past
 * every bound. */
static void spoil(const struct gf_contest *c, const struct gf_codec *codec)
{
	struct gf_contest_allreduce *b = c->b;
	const struct gf_element *e = &b->config.element;
	struct gf_range sum;
	size_t i, n = b->config.spoil;

	range_at(c, b->config.collective == GF_COLL_REDUCE_SCATTER, 0, 0, &sum);
	n = n < sum.count ? n : sum.count;
	for (i = 0; i < n && b->config.comm->rank == 0; i++) {
		size_t place = sum.count / n * i;
		double was = gf_exact_load(e->dtype, b->work, place);

		gf_exact_store(e->dtype, b->work, place, codec ? NAN : was + 2);
	}
}

/* A reduce-scatter leaves this rank its own parts, an all-gather every rank's. */
static size_t count_wrong(const struct gf_contest *c, size_t which, const struct gf_exact *exact)
{
	const enum gf_coll_half half = c->b->config.collective;
	const bool gathers = half == GF_COLL_ALL_GATHER;
	const struct gf_comm *comm = c->b->config.comm;
	const void *work = c->b->work;
	struct gf_range r;
	size_t k, wrong = 0;

	if (c->of[which].sparse)
		return gf_contest_sparse_wrong(c->of[which].sparse, exact, work);
	for (int rank = gathers ? 0 : comm->rank; rank < (gathers ? comm->ranks : comm->rank + 1);
	     rank++)
		for (k = 0; range_at(c, half != GF_COLL_WHOLE, rank, k, &r); k++)
			wrong += gf_exact_wrong(exact, gathers ? rank : -1, work, r.first, r.count);
	return wrong;
}

static int fill(const struct gf_contest *c, const struct gf_exact *exact, struct gf_error *err)
{
	gf_exact_fill(exact, c->b->config.comm->rank, c->b->source, c->count_elems);
	return move(c, GF_MOVE_INPUTS, c->b->source, err);
}

static int check(struct gf_contest *c, size_t which, enum gf_contest_placement placement,
		 struct gf_contest_row *row, struct gf_error *err)
{
	struct gf_contest_allreduce *b = c->b;
	size_t *wrong = &row->reading[placement].wrong;
	struct gf_exact exact = {
		.dtype = b->config.element.dtype,
		.op = b->config.element.op,
		/* sets are checked by values that are exact without one */
		.codec = c->of[which].sparse ? NULL : row->codec,
		.ranks = b->config.comm->ranks,
	};
	double ignored;
	int i, rc = 0;

	*wrong = 0;
	for (i = 0; i < b->config.checks && rc == 0; i++) {
		exact.seed = (uint64_t)i;
		rc = fill(c, &exact, err);
		/* what is not gathered is no number */
		if (b->config.collective == GF_COLL_ALL_GATHER)
			memset(b->work, 0xff, gf_contest_bytes(b, c->count_elems));
		rc = rc ?: once(c, which, placement, &ignored, err);
		rc = rc ?: move(c, GF_MOVE_DOWN, b->work, err);
		if (rc)
			break;
		spoil(c, row->codec);
		b->watch.self.calls++;
		rc = gf_contest_over_ranks(b->config.comm, count_wrong(c, which, &exact), true,
					   wrong, err);
	}
	return rc;
}

static int take_error(struct gf_contest *c, size_t which, struct gf_sum_error *error,
		      struct gf_error *err)
{
	struct gf_contest_allreduce *b = c->b;
	struct gf_comm *comm = b->config.comm;
	const struct gf_element *e = &b->config.element;
	double ignored;
	int rc;

	gf_sum_error_fill(e->dtype, comm->rank, b->source, c->count_elems);
	rc = move(c, GF_MOVE_INPUTS, b->source, err);
	rc = rc ?: once(c, which, GF_IN_PLACE, &ignored, err);
	rc = rc ?: move(c, GF_MOVE_DOWN, b->work, err);
	b->watch.self.calls++;
	return rc ? rc
		  : gf_sum_error_measure(comm, e->dtype, e->op, b->work, c->count_elems,
					 b->config.collective ? c->first_elems : 0, error, err);
}

/* Of contestant i, whatever it is. */
static struct gf_burst *burst_of(const struct gf_contest *c, size_t i)
{
	return c->of[i].send     ? gf_contest_send_burst(c->of[i].send)
	       : c->of[i].sparse ? gf_contest_sparse_burst(c->of[i].sparse)
				 : c->of[i].burst;
}

static size_t wire_bytes(const struct gf_contest *c, size_t i, const struct gf_algorithm *a)
{
	return !a->build       ? 0
	       : c->of[i].send ? gf_contest_send_wire_bytes(c->of[i].send)
			       : gf_burst_wire_bytes(burst_of(c, i));
}

int gf_contest_prove(struct gf_contest *c, struct gf_error *err)
{
	int rc = 0;

	for (size_t i = 0; i < c->n && rc == 0; i++) {
		c->b->watch.self.calls++;
		rc = gf_burst_prove(burst_of(c, i), c->b->config.proofs, err);
	}
	return rc;
}

int gf_contest_measure(struct gf_contest *c, struct gf_contest_row *rows, struct gf_error *err)
{
	const struct gf_contest_allreduce_config *config = &c->b->config;
	struct gf_comm *comm = config->comm;
	struct gf_contest_timeline *timeline = config->timeline;
	/* real numbers, not zeros: a codec takes as long as it does in earnest */
	const struct gf_exact exact = {
		.dtype = config->element.dtype, .op = config->element.op, .ranks = comm->ranks};
	int rc = fill(c, &exact, err);

	rc = rc ?: repeat_all(c, err);
	for (size_t k = 0; k < 2 * c->n && rc == 0; k++) {
		struct gf_contest_reading *r = &rows[k / 2].reading[k % 2];

		c->b->watch.self.calls++;
		rc = gf_contest_summarise(&c->b->config, c->b->config.comm,
					  c->of[k / 2].times[k % 2], r, err);
		rc = rc ?: check(c, k / 2, (enum gf_contest_placement)(k % 2), &rows[k / 2], err);
	}
	for (size_t i = 0; i < c->n && config->errors && rc == 0; i++)
		rc = take_error(c, i, &rows[i].error, err);
	for (size_t i = 0; i < c->n && rc == 0; i++) {
		c->b->watch.self.calls++;
		rc = gf_contest_over_ranks(comm, wire_bytes(c, i, rows[i].way.algorithm), false,
					   &rows[i].wire_bytes, err);
	}
	if (rc || !timeline)
		return rc;
	gf_trace_release(&timeline->trace);
	gf_trace_name_rows(&timeline->trace, comm->rank, comm->ranks);
	for (size_t i = 0; i < c->n; i++)
		draw(c, i, &rows[i]);
	return 0;
}
