/* SPDX-License-Identifier: BSD-3-Clause */
#include "contest/contest.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/heap.h"
#include "contest/exact.h"
#include "contest/told.h"
#include "cost/stat.h"
#include "contest/drawing.h"

size_t gf_contest_bytes(const struct gf_contest_allreduce *b,
			size_t count_elems)
{
	return count_elems * b->config.element.size_bytes;
}

/* --- repeats --------------------------------------------------------------
 */

static int meet(struct gf_contest_allreduce *b, struct gf_error *err)
{
	b->watch.self.phase = GF_PHASE_CALL;
	b->watch.self.calls++;
	return gf_comm_barrier(b->config.comm, err);
}

/* The inputs are put in place. */
static int refill(const struct gf_contest *c, struct gf_error *err)
{
	struct gf_contest_allreduce *b = c->b;
	size_t bytes = gf_contest_bytes(b, c->count_elems);

	if (b->device)
		return gf_contest_gpu_restore(b->device, bytes, err);
	memcpy(b->work, b->source, bytes);
	return 0;
}

/* Contestant i's all-reduce of what is in `work`. By the host, what is on a GPU
 * is copied down before, and up after it. */
static int reduce(const struct gf_contest *c, size_t i, struct gf_error *err)
{
	struct gf_contest_allreduce *b = c->b;
	size_t bytes = gf_contest_bytes(b, c->count_elems);
	int rc = b->device ? gf_contest_gpu_down(b->device, b->work, bytes, err)
			   : 0;

	if (rc == 0)
		rc = c->of[i].sparse ? gf_contest_sparse_send(c->of[i].sparse,
							      b->work, err)
		     : c->of[i].told
			     ? gf_contest_told_send(b, c->of[i].told,
						    c->count_elems, err)
			     : gf_burst_send(c->of[i].burst, b->work, err);
	if (rc == 0 && b->device)
		rc = gf_contest_gpu_up(b->device, b->work, bytes, err);
	return rc;
}

static int run(const struct gf_contest *c, size_t i, bool fill_first,
	       double *time_s, struct gf_error *err)
{
	double start_s = gf_clock_s();
	int rc = 0;

	if (c->of[i].send)
		return gf_contest_send_go(c->of[i].send, time_s, err);
	if (fill_first)
		rc = refill(c, err);
	if (rc == 0)
		rc = reduce(c, i, err);
	*time_s = gf_clock_s() - start_s;
	return rc;
}

static int once(struct gf_contest *c, size_t i,
		enum gf_contest_placement placement, double *time_s,
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
		gf_contest_hold(&b->config, true);
	rc = meet(b, err);
	if (rc) {
		gf_error_prefix(err,
				"step %" PRIu64 ", message 0 (%zu bytes), not "
				"begun",
				b->watch.self.step + 1,
				gf_contest_bytes(b, c->first_elems));
		return rc;
	}
	c->latest.start_s = gf_clock_s();
	rc = run(c, i, fill_first, time_s, err);
	c->latest.time_s = gf_clock_s() - c->latest.start_s;
	if (c->of[i].told)
		gf_contest_hold(&b->config, false);
	return rc;
}

/* Contestant and placement in turn. */
static int repeat(struct gf_contest *c, size_t k, bool last, double *time_s,
		  struct gf_error *err)
{
	bool record = last && k % 2 == GF_IN_PLACE;
	int rc;

	if (record)
		gf_contest_record(c, k / 2);
	rc = once(c, k / 2, (enum gf_contest_placement)(k % 2), time_s, err);
	if (record)
		gf_contest_recorded(c, k / 2);
	return rc;
}

static int repeat_all(struct gf_contest *c, struct gf_error *err)
{
	const struct gf_contest_allreduce_config *config = &c->b->config;
	double time_s = 0;
	size_t k;
	int i, rc = 0;

	for (i = -config->warmup; i < config->repeats; i++) {
		bool last = config->timeline && i == config->repeats - 1;

		for (k = 0; k < 2 * c->n && rc == 0; k++) {
			rc = repeat(c, k, last, &time_s, err);
			if (i >= 0)
				c->of[k / 2].times[k % 2][i] = time_s;
		}
	}
	return rc;
}

/* --- results --------------------------------------------------------------
 */

static double combine(const double *all, int ranks, size_t stride,
		      enum gf_contest_across across)
{
	double total = 0, most = 0, least = INFINITY;
	int r;

	for (r = 0; r < ranks; r++) {
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

int gf_contest_summarise(const struct gf_contest_allreduce_config *config,
			 struct gf_comm *c, double *times,
			 struct gf_contest_reading *r, struct gf_error *err)
{
	size_t n = (size_t)config->repeats, i;
	double *all = gf_xcalloc((size_t)c->ranks * n, sizeof(*all));
	int rc = gf_comm_allgather(c, times, n * sizeof(*times), all, err);

	for (i = 0; i < n && rc == 0; i++)
		times[i] = combine(all + i, c->ranks, n, config->across);
	free(all);
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
	size_t *all = gf_xcalloc((size_t)c->ranks, sizeof(*all));
	int r, rc = gf_comm_allgather(c, &mine, sizeof(mine), all, err);

	for (r = 0; r < c->ranks && rc == 0; r++)
		*out = add ? *out + all[r] : all[r] > *out ? all[r] : *out;
	free(all);
	return rc;
}

/* Changes what a check must find: by little, but under a codec, whose results
 * may be off, past every bound. */
static void spoil(struct gf_contest_allreduce *b, const struct gf_codec *codec,
		  size_t count_elems)
{
	size_t i, n = b->config.spoil < count_elems ? b->config.spoil
						    : count_elems;
	const struct gf_element *e = &b->config.element;

	for (i = 0; i < n && b->config.comm->rank == 0; i++) {
		size_t at = count_elems / n * i;
		double was = gf_exact_load(e->dtype, b->work, at);

		gf_exact_store(e->dtype, b->work, at, codec ? NAN : was + 2);
	}
}

static size_t count_wrong(const struct gf_contest *c, size_t which,
			  const struct gf_exact *exact)
{
	const void *work = c->b->work;

	return c->of[which].sparse
		       ? gf_contest_sparse_wrong(c->of[which].sparse, exact,
						 work)
		       : gf_exact_wrong(exact, work, c->count_elems);
}

/* Inputs go where they are wanted, and results where they are looked at. */
static int load(const struct gf_contest *c, struct gf_error *err)
{
	struct gf_contest_allreduce *b = c->b;

	return b->device ? gf_contest_gpu_load(
				   b->device, b->source,
				   gf_contest_bytes(b, c->count_elems), err)
			 : 0;
}

static int fetch(const struct gf_contest *c, struct gf_error *err)
{
	struct gf_contest_allreduce *b = c->b;

	return b->device ? gf_contest_gpu_down(
				   b->device, b->work,
				   gf_contest_bytes(b, c->count_elems), err)
			 : 0;
}

static int fill(const struct gf_contest *c, const struct gf_exact *exact,
		struct gf_error *err)
{
	gf_exact_fill(exact, c->b->config.comm->rank, c->b->source,
		      c->count_elems);
	return load(c, err);
}

static int check(struct gf_contest *c, size_t which,
		 enum gf_contest_placement placement,
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
		if (rc == 0)
			rc = once(c, which, placement, &ignored, err);
		if (rc == 0)
			rc = fetch(c, err);
		if (rc)
			break;
		spoil(b, row->codec, c->count_elems);
		b->watch.self.calls++;
		rc = gf_contest_over_ranks(b->config.comm,
					   count_wrong(c, which, &exact), true,
					   wrong, err);
	}
	return rc;
}

static int take_error(struct gf_contest *c, size_t which,
		      struct gf_sum_error *error, struct gf_error *err)
{
	struct gf_contest_allreduce *b = c->b;
	struct gf_comm *comm = b->config.comm;
	const struct gf_element *e = &b->config.element;
	double ignored;
	int rc;

	gf_sum_error_fill(e->dtype, comm->rank, b->source, c->count_elems);
	rc = load(c, err);
	if (rc == 0)
		rc = once(c, which, GF_IN_PLACE, &ignored, err);
	if (rc == 0)
		rc = fetch(c, err);
	b->watch.self.calls++;
	return rc ? rc
		  : gf_sum_error_measure(comm, e->dtype, e->op, b->work,
					 c->count_elems, error, err);
}

/* Real numbers, not zeros: a codec takes as long as it does in earnest. */
static int fill_source(struct gf_contest *c, struct gf_error *err)
{
	struct gf_contest_allreduce *b = c->b;
	struct gf_exact exact = {
		.dtype = b->config.element.dtype,
		.op = b->config.element.op,
		.ranks = b->config.comm->ranks,
	};

	return fill(c, &exact, err);
}

/* Of contestant i, whatever it is. */
static struct gf_burst *burst_of(const struct gf_contest *c, size_t i)
{
	return c->of[i].send     ? gf_contest_send_burst(c->of[i].send)
	       : c->of[i].sparse ? gf_contest_sparse_burst(c->of[i].sparse)
				 : c->of[i].burst;
}

static size_t wire_bytes(const struct gf_contest *c, size_t i)
{
	return c->of[i].send   ? gf_contest_send_wire_bytes(c->of[i].send)
	       : c->of[i].told ? 0
			       : gf_burst_wire_bytes(burst_of(c, i));
}

int gf_contest_prove(struct gf_contest *c, struct gf_error *err)
{
	size_t i;
	int rc = 0;

	for (i = 0; i < c->n && rc == 0; i++) {
		c->b->watch.self.calls++;
		rc = gf_burst_prove(burst_of(c, i), c->b->config.proofs, err);
	}
	return rc;
}

int gf_contest_measure(struct gf_contest *c, struct gf_contest_row *rows,
		       struct gf_error *err)
{
	size_t k, i;
	int rc;

	rc = fill_source(c, err);
	if (rc == 0)
		rc = repeat_all(c, err);
	for (k = 0; k < 2 * c->n && rc == 0; k++) {
		struct gf_contest_reading *r = &rows[k / 2].reading[k % 2];

		c->b->watch.self.calls++;
		rc = gf_contest_summarise(&c->b->config, c->b->config.comm,
					  c->of[k / 2].times[k % 2], r, err);
		if (rc == 0)
			rc = check(c, k / 2, (enum gf_contest_placement)(k % 2),
				   &rows[k / 2], err);
	}
	for (i = 0; i < c->n && c->b->config.errors && rc == 0; i++)
		rc = take_error(c, i, &rows[i].error, err);
	for (i = 0; i < c->n && rc == 0; i++) {
		c->b->watch.self.calls++;
		rc = gf_contest_over_ranks(c->b->config.comm, wire_bytes(c, i),
					   false, &rows[i].wire_bytes, err);
	}
	if (rc == 0 && c->b->config.timeline)
		gf_contest_draw(c, rows);
	return rc;
}

void gf_contest_init(struct gf_contest *c, struct gf_contest_allreduce *b,
		     size_t n, size_t count_elems)
{
	size_t k;

	*c = (struct gf_contest){.b = b, .n = n, .count_elems = count_elems};
	c->of = gf_xcalloc(n, sizeof(*c->of));
	for (k = 0; k < 2 * n; k++)
		c->of[k / 2].times[k % 2] =
			gf_xcalloc((size_t)b->config.repeats, sizeof(double));
}

void gf_contest_release(struct gf_contest *c)
{
	size_t k;

	for (k = 0; k < 2 * c->n; k++)
		free(c->of[k / 2].times[k % 2]);
	for (k = 0; k < c->n; k++) {
		gf_burst_free(c->of[k].burst);
		if (c->of[k].told)
			c->of[k].told->free(c->of[k].told);
		gf_contest_sparse_free(c->of[k].sparse);
		gf_contest_send_free(c->of[k].send);
	}
	free(c->of);
}
