/* SPDX-License-Identifier: BSD-3-Clause */
#include "bench/allreduce.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/heap.h"
#include "bench/exact.h"
#include "bench/memory.h"
#include "bench/sparse.h"
#include "bench/stat.h"

const char *const gf_bench_across_names[] = {"max", "mean", "min", "rank0",
					     NULL};

struct gf_bench_allreduce {
	struct gf_bench_allreduce_config config;
	struct gf_watch watch;
	struct gf_chooser *chooser;
	void *source, *work;
	size_t room_elems; /* in each */
};

/* Several bursts over the same messages' worth of memory. */
struct contest {
	struct gf_bench_allreduce *b;
	struct gf_burst **bursts;
	struct gf_bench_sparse **sparse; /* in place of a burst, or NULL */
	double **times;                  /* [burst * 2 + placement][repeat] */
	size_t n;
	size_t count_elems;           /* of all messages of a burst */
	size_t first_elems;           /* of the first of them */
	const struct gf_codec *codec; /* the one with the largest error */
};

double gf_bench_algbw(double size_bytes, double time_s)
{
	return time_s > 0 ? size_bytes / time_s : 0;
}

double gf_bench_busbw(double size_bytes, double time_s, int ranks)
{
	return gf_bench_algbw(size_bytes, time_s) * 2 * (ranks - 1) / ranks;
}

static size_t bytes_of(const struct gf_bench_allreduce *b, size_t count_elems)
{
	return count_elems * b->config.element.size_bytes;
}

/* --- opening --------------------------------------------------------------
 */

static int allocate(struct gf_bench_allreduce *b, struct gf_error *err)
{
	struct gf_comm *c = b->config.comm;
	size_t bytes = bytes_of(b, b->room_elems);
	int rc = gf_bench_memory_check(2.0 * (double)bytes * c->local_ranks,
				       err);

	if (rc == 0)
		rc = c->ops->buffer_alloc(c, bytes, &b->work, err);
	if (rc == 0 && !(b->source = malloc(bytes)))
		rc = gf_error_set(err, -ENOMEM, "no memory for %zu bytes",
				  bytes);
	return gf_comm_agree(c, rc, err);
}

int gf_bench_allreduce_open(const struct gf_bench_allreduce_config *config,
			    size_t largest_elems,
			    struct gf_bench_allreduce **bench,
			    struct gf_error *err)
{
	struct gf_bench_allreduce *b = gf_xcalloc(1, sizeof(*b));
	int rc;

	b->config = *config;
	gf_watch_init(&b->watch, config->comm, config->timeout_s);
	b->watch.self.phase = GF_PHASE_CALL;
	if (largest_elems > SIZE_MAX / 64 / (size_t)config->lanes)
		rc = gf_error_set(err, -ENOMEM,
				  "no memory for %d messages of %zu elements",
				  config->lanes, largest_elems);
	else {
		b->room_elems = largest_elems * (size_t)config->lanes;
		rc = allocate(b, err);
	}
	if (rc == 0)
		rc = gf_chooser_new(
			&(struct gf_chooser_config){
				.comm = config->comm,
				.watch = &b->watch,
				.rule = config->rule,
				.element = config->element,
				.lanes = config->lanes,
				.segment_bytes = config->segment_bytes,
			},
			&b->chooser, err);
	if (rc)
		gf_bench_allreduce_close(b);
	else
		*bench = b;
	return rc;
}

void gf_bench_allreduce_close(struct gf_bench_allreduce *b)
{
	struct gf_comm *c;

	if (!b)
		return;
	c = b->config.comm;
	gf_chooser_free(b->chooser);
	gf_watch_release(&b->watch);
	/* other ranks may still read and write there until the job ends */
	if (!c->broken)
		c->ops->buffer_free(c, b->work);
	free(b->source);
	free(b);
}

/* --- repeats --------------------------------------------------------------
 */

static int meet(struct gf_bench_allreduce *b, struct gf_error *err)
{
	b->watch.self.phase = GF_PHASE_CALL;
	b->watch.self.calls++;
	return gf_comm_barrier(b->config.comm, err);
}

/* Contestant i's all-reduce of what is in `work`. */
static int reduce(const struct contest *c, size_t i, struct gf_error *err)
{
	void *work = c->b->work;

	return c->sparse[i] ? gf_bench_sparse_send(c->sparse[i], work, err)
			    : gf_burst_send(c->bursts[i], work, err);
}

static int once(const struct contest *c, size_t i,
		enum gf_bench_placement placement, double *time_s,
		struct gf_error *err)
{
	struct gf_bench_allreduce *b = c->b;
	size_t bytes = bytes_of(b, c->count_elems);
	double start_s;
	int rc;

	if (placement == GF_IN_PLACE)
		memcpy(b->work, b->source, bytes);
	rc = meet(b, err);
	if (rc) {
		gf_error_prefix(err,
				"step %" PRIu64 ", message 0 (%zu bytes), not "
				"begun",
				b->watch.self.step + 1,
				bytes_of(b, c->first_elems));
		return rc;
	}
	start_s = gf_clock_s();
	if (placement == GF_OUT_OF_PLACE)
		memcpy(b->work, b->source, bytes);
	rc = reduce(c, i, err);
	*time_s = gf_clock_s() - start_s;
	return rc;
}

static int repeat_all(struct contest *c, struct gf_error *err)
{
	const struct gf_bench_allreduce_config *config = &c->b->config;
	double ignored;
	size_t k;
	int i, rc = 0;

	for (i = -config->warmup; i < config->repeats; i++)
		for (k = 0; k < 2 * c->n && rc == 0; k++)
			rc = once(c, k / 2, (enum gf_bench_placement)(k % 2),
				  i < 0 ? &ignored : &c->times[k][i], err);
	return rc;
}

/* --- results --------------------------------------------------------------
 */

static double combine(const double *all, int ranks, size_t stride,
		      enum gf_bench_across across)
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

/* Times over the ranks, then over the repeats. */
static int summarise(struct gf_bench_allreduce *b, double *times,
		     struct gf_bench_reading *r, struct gf_error *err)
{
	struct gf_comm *c = b->config.comm;
	size_t n = (size_t)b->config.repeats, i;
	double *all = gf_xcalloc((size_t)c->ranks * n, sizeof(*all));
	int rc;

	b->watch.self.calls++;
	rc = gf_comm_allgather(c, times, n * sizeof(*times), all, err);
	for (i = 0; i < n && rc == 0; i++)
		times[i] = combine(all + i, c->ranks, n, b->config.across);
	free(all);
	if (rc)
		return rc;
	r->min_s = gf_stat_quantile(times, n, 0);
	r->median_s = gf_stat_quantile(times, n, 0.5);
	r->p90_s = gf_stat_quantile(times, n, 0.9);
	r->p99_s = gf_stat_quantile(times, n, 0.99);
	r->max_s = gf_stat_quantile(times, n, 1);
	return 0;
}

static int over_ranks(struct gf_bench_allreduce *b, size_t mine, bool add,
		      size_t *out, struct gf_error *err)
{
	struct gf_comm *c = b->config.comm;
	size_t *all = gf_xcalloc((size_t)c->ranks, sizeof(*all));
	int r, rc;

	b->watch.self.calls++;
	rc = gf_comm_allgather(c, &mine, sizeof(mine), all, err);
	for (r = 0; r < c->ranks && rc == 0; r++)
		*out = add ? *out + all[r] : all[r] > *out ? all[r] : *out;
	free(all);
	return rc;
}

/* Changes what a check must find: by little, but under a codec, whose results
 * may be off, past every bound. */
static void spoil(struct gf_bench_allreduce *b, size_t count_elems)
{
	size_t i, n = b->config.spoil < count_elems ? b->config.spoil
						    : count_elems;
	const struct gf_element *e = &b->config.element;

	for (i = 0; i < n && b->config.comm->rank == 0; i++) {
		size_t at = count_elems / n * i;
		double was = gf_exact_load(e->dtype, b->work, at);

		gf_exact_store(e->dtype, b->work, at, e->codec ? NAN : was + 2);
	}
}

static size_t count_wrong(const struct contest *c, size_t who,
			  const struct gf_exact *exact)
{
	const void *work = c->b->work;

	return c->sparse[who]
		       ? gf_bench_sparse_wrong(c->sparse[who], exact, work)
		       : gf_exact_wrong(exact, work, c->count_elems);
}

static int check(struct contest *c, size_t who,
		 enum gf_bench_placement placement, size_t *wrong,
		 struct gf_error *err)
{
	struct gf_bench_allreduce *b = c->b;
	struct gf_exact exact = {
		.dtype = b->config.element.dtype,
		.op = b->config.element.op,
		.codec = c->codec,
		.ranks = b->config.comm->ranks,
	};
	double ignored;
	int i, rc = 0;

	*wrong = 0;
	for (i = 0; i < b->config.checks && rc == 0; i++) {
		exact.seed = (uint64_t)i;
		gf_exact_fill(&exact, b->config.comm->rank, b->source,
			      c->count_elems);
		rc = once(c, who, placement, &ignored, err);
		if (rc)
			break;
		spoil(b, c->count_elems);
		rc = over_ranks(b, count_wrong(c, who, &exact), true, wrong,
				err);
	}
	return rc;
}

/* Real numbers, not zeros: a codec takes as long as it does in earnest. */
static void fill_source(struct contest *c)
{
	struct gf_bench_allreduce *b = c->b;
	struct gf_exact exact = {
		.dtype = b->config.element.dtype,
		.op = b->config.element.op,
		.ranks = b->config.comm->ranks,
	};

	gf_exact_fill(&exact, b->config.comm->rank, b->source, c->count_elems);
}

static size_t wire_bytes_of(const struct contest *c, size_t i)
{
	return c->sparse[i] ? gf_bench_sparse_wire_bytes(c->sparse[i])
			    : gf_burst_wire_bytes(c->bursts[i]);
}

static int measure(struct contest *c, struct gf_bench_row *rows,
		   struct gf_error *err)
{
	size_t k, i;
	int rc;

	fill_source(c);
	rc = repeat_all(c, err);
	for (k = 0; k < 2 * c->n && rc == 0; k++) {
		struct gf_bench_reading *r = &rows[k / 2].reading[k % 2];

		rc = summarise(c->b, c->times[k], r, err);
		if (rc == 0)
			rc = check(c, k / 2, (enum gf_bench_placement)(k % 2),
				   &r->wrong, err);
	}
	for (i = 0; i < c->n && rc == 0; i++)
		rc = over_ranks(c->b, wire_bytes_of(c, i), false,
				&rows[i].wire_bytes, err);
	return rc;
}

static void contest_init(struct contest *c, struct gf_bench_allreduce *b,
			 size_t n, size_t count_elems)
{
	size_t k;

	*c = (struct contest){.b = b,
			      .n = n,
			      .count_elems = count_elems,
			      .codec = b->config.element.codec};
	c->bursts = gf_xcalloc(n, sizeof(*c->bursts));
	c->sparse = gf_xcalloc(n, sizeof(*c->sparse));
	c->times = gf_xcalloc(2 * n, sizeof(*c->times));
	for (k = 0; k < 2 * n; k++)
		c->times[k] = gf_xcalloc((size_t)b->config.repeats,
					 sizeof(**c->times));
}

static void contest_release(struct contest *c)
{
	size_t k;

	for (k = 0; k < 2 * c->n; k++)
		free(c->times[k]);
	for (k = 0; k < c->n; k++) {
		gf_burst_free(c->bursts[k]);
		gf_bench_sparse_free(c->sparse[k]);
	}
	free(c->sparse);
	free(c->times);
	free(c->bursts);
}

/* After a failure that some rank may not come back from, the others hear of
 * it. What all ranks agreed on leaves everything in order. */
static int conclude(struct gf_bench_allreduce *b, int rc, bool agreed,
		    struct gf_error *err)
{
	if (rc && !agreed)
		gf_watch_leave(&b->watch, rc, err);
	return rc;
}

/* Opening a burst ends alike on all ranks, unless a calibration got stuck. */
static bool all_know(int rc)
{
	return rc == -EINVAL || rc == -ENOTSUP || rc == -ENOMEM;
}

static int open_burst(struct gf_bench_allreduce *b,
		      const struct gf_burst_message *messages, size_t n,
		      int lanes, struct gf_burst **burst, struct gf_error *err)
{
	return gf_burst_new(
		&(struct gf_burst_config){
			.comm = b->config.comm,
			.watch = &b->watch,
			.messages = messages,
			.nmessages = n,
			.lanes = lanes,
			.segment_bytes = b->config.segment_bytes,
		},
		burst, err);
}

static int enter_sparse(struct contest *c, size_t i, size_t count_elems,
			const struct gf_way *way, struct gf_error *err)
{
	struct gf_bench_sparse_config config = {
		.comm = c->b->config.comm,
		.watch = &c->b->watch,
		.way = *way,
		.count_elems = count_elems,
	};

	return gf_bench_sparse_new(&config, &c->sparse[i], err);
}

static int enter(struct contest *c, size_t i, size_t count_elems,
		 struct gf_bench_row *row, struct gf_error *err)
{
	struct gf_bench_allreduce *b = c->b;
	size_t lanes = (size_t)b->config.lanes, k;
	struct gf_burst_message *messages =
		gf_xcalloc(lanes, sizeof(*messages));
	int rc = 0;

	if (row->chosen)
		rc = gf_chooser_pick(b->chooser, count_elems, b->work,
				     &row->way, err);
	for (k = 0; k < lanes; k++)
		messages[k] = (struct gf_burst_message){
			.way = row->way,
			.count_elems = count_elems,
			.element = b->config.element,
			.simultaneous = lanes > 1,
		};
	if (rc == 0)
		rc = open_burst(b, messages, lanes, b->config.lanes,
				&c->bursts[i], err);
	free(messages);
	return rc;
}

int gf_bench_allreduce_size(struct gf_bench_allreduce *b,
			    const struct gf_way *ways, size_t nways,
			    size_t count_elems, struct gf_bench_row *rows,
			    struct gf_error *err)
{
	struct contest c;
	bool opened;
	size_t i;
	int rc = 0;

	contest_init(&c, b, nways, count_elems * (size_t)b->config.lanes);
	c.first_elems = count_elems;
	for (i = 0; i < nways && rc == 0; i++) {
		rows[i] = (struct gf_bench_row){
			.way = ways[i],
			.chosen = !ways[i].algorithm,
			.codec = b->config.element.codec,
			.messages = (size_t)b->config.lanes,
			.size_bytes = bytes_of(b, count_elems),
			.count_elems = count_elems,
		};
		rc = ways[i].density > 0
			     ? enter_sparse(&c, i, count_elems, &ways[i], err)
			     : enter(&c, i, count_elems, &rows[i], err);
	}
	opened = rc == 0;
	if (opened)
		rc = measure(&c, rows, err);
	rc = conclude(b, rc, !opened && all_know(rc), err);
	contest_release(&c);
	return rc;
}

/* Messages as one burst and one row. */
static int measure_messages(struct gf_bench_allreduce *b,
			    const struct gf_burst_message *messages, size_t n,
			    int lanes, struct gf_bench_row *row,
			    struct gf_error *err)
{
	struct contest c;
	bool opened;
	size_t i, total = 0;
	int rc;

	*row = (struct gf_bench_row){.way = messages[0].way, .messages = n};
	for (i = 0; i < n; i++) {
		const struct gf_codec *codec = messages[i].element.codec;

		if (codec && (!row->codec || codec->error > row->codec->error))
			row->codec = codec;
		total += messages[i].count_elems;
	}
	row->count_elems = total;
	row->size_bytes = bytes_of(b, total);
	contest_init(&c, b, 1, total);
	c.codec = row->codec;
	c.first_elems = messages[0].count_elems;
	rc = open_burst(b, messages, n, lanes, &c.bursts[0], err);
	opened = rc == 0;
	if (opened)
		rc = measure(&c, row, err);
	rc = conclude(b, rc, !opened && all_know(rc), err);
	contest_release(&c);
	return rc;
}

int gf_bench_allreduce_plan(struct gf_bench_allreduce *b,
			    const struct gf_plan *plan,
			    struct gf_bench_row *rows, struct gf_error *err)
{
	size_t n = plan->nmessages, i;
	struct gf_burst_message *messages = gf_xcalloc(n, sizeof(*messages));
	int rc = 0;

	for (i = 0; i < n && rc == 0; i++) {
		const struct gf_message *m = &plan->messages[i];

		rc = gf_way_of_message(m, &messages[i].way, err);
		if (rc == 0)
			rc = gf_element_coded(m->codec, b->config.element.op,
					      &messages[i].element, err);
		messages[i].count_elems = gf_plan_message_elems(plan, i);
		messages[i].simultaneous = m->mode == GF_MODE_SIMULTANEOUS;
	}
	for (i = 0; i < n && rc == 0; i++)
		rc = measure_messages(b, &messages[i], 1, 1, &rows[i], err);
	if (rc == 0)
		rc = measure_messages(b, messages, n, plan->lanes, &rows[n],
				      err);
	free(messages);
	return rc;
}
