/* SPDX-License-Identifier: BSD-3-Clause */
#include "profiler/pairs.h"

#include <math.h>
#include <string.h>
#include <sys/utsname.h>

#include "base/heap.h"
#include "cli/human.h"
#include "cli/table.h"
#include "cost/stat.h"
#include "json/json.h"
#include "profiler/network_parts.h"

enum { RATE_PASSES = 3, SMALL_BYTES = 4, LOOK_BYTES = 64 << 10, PIECE_BYTES = 1 << 20 };
static const double most_bytes = (double)((size_t)64 << 20);
/* Longer transfers tell no more. */
static const double long_enough_s = 0.25;

/* The circle method: the last member stays, the others turn. */
size_t gf_measure_pair_rounds(size_t count)
{
	return count + count % 2 - 1;
}

int gf_measure_pair_of(size_t count, size_t round, size_t member)
{
	size_t turning = gf_measure_pair_rounds(count), other;

	if (member == turning)
		other = round;
	else if (member == round)
		other = turning;
	else
		other = (2 * round + turning - member) % turning;
	return other < count ? (int)other : -1;
}

struct tournament {
	const struct gf_measure_pairs_config *config;
	struct gf_measure_pairs *pairs;
	struct gf_measure_link link;
	int me;              /* member; -1: this rank only looks on */
	double *row;         /* count: what this member measured of its sends */
	size_t bytes;        /* of a transfer, until rates are known */
	const double *known; /* the rates, of a first look; or NULL */
	double seconds;      /* of a transfer, by that rate */
	int passes, pass;    /* for the progress */
};

static size_t bytes_of(const struct tournament *t, size_t from, size_t to)
{
	double rate;

	if (!t->known)
		return t->bytes;
	rate = t->known[from * t->pairs->count + to];
	return (size_t)fmin(most_bytes, fmax(LOOK_BYTES, rate * t->seconds)) / 4 * 4;
}

/* One direction of a round: from the lower member of each pair to the upper, or back. */
static int go(struct tournament *t, size_t round, bool up, struct gf_error *err)
{
	int other = t->me < 0 ? -1 : gf_measure_pair_of(t->pairs->count, round, (size_t)t->me);
	bool sends = other >= 0 && (t->me < other) == up;
	struct gf_measure_hop hop = {-1, -1, SMALL_BYTES, 1, 1, false};
	double elapsed_s;
	size_t bytes;
	int rc;

	if (other >= 0) {
		bytes = sends ? bytes_of(t, (size_t)t->me, (size_t)other)
			      : bytes_of(t, (size_t)other, (size_t)t->me);
		hop.bytes = bytes < PIECE_BYTES ? bytes : PIECE_BYTES;
		hop.rounds = (int)(bytes / hop.bytes);
		if (sends)
			hop.to = t->pairs->ranks[other];
		else
			hop.from = t->pairs->ranks[other];
	}
	rc = gf_measure_link_mover(&t->link).run(&t->link, &hop, &elapsed_s, 1, err);
	if (rc == 0 && sends)
		t->row[other] = elapsed_s / ((double)hop.bytes * hop.rounds);
	return rc;
}

/* All pairs, both ways; out gets the seconds per byte of every member's sends. */
static int pass(struct tournament *t, double *out, struct gf_error *err)
{
	const struct gf_measure_pairs_config *c = t->config;
	size_t n = t->pairs->count, rounds = gf_measure_pair_rounds(n), r, i;
	GF_FREED double *all = gf_xcalloc((size_t)c->comm->ranks * n, sizeof(*all));
	int rc = 0;

	for (r = 0; r < 2 * rounds && rc == 0; r++) {
		if (c->progress)
			c->progress(c->progress_ctx,
				    (t->pass + (double)r / (double)rounds / 2) / t->passes,
				    "pairs");
		rc = go(t, r / 2, r % 2 == 0, err);
	}
	t->pass++;
	rc = rc ?: gf_comm_allgather(c->comm, t->row, n * sizeof(*t->row), all, err);
	for (i = 0; i < n && rc == 0; i++)
		memcpy(out + i * n, all + (size_t)t->pairs->ranks[i] * n, n * sizeof(*out));
	return rc;
}

static void keep_best(double *best, const double *per_byte, size_t n)
{
	for (size_t i = 0; i < n * n; i++)
		if (per_byte[i] > 0)
			best[i] = fmax(best[i], 1 / per_byte[i]);
}

/* Latency, then a first look at every rate, then each for as long as it needs, so that a slow pair
 * does not hold up a round. The best of several passes counts: what disturbed one transfer is not
 * the link. */
static int play(struct tournament *t, struct gf_error *err)
{
	struct gf_measure_pairs *p = t->pairs;
	size_t n = p->count, i;
	double transfers = 2. * (double)gf_measure_pair_rounds(n) * RATE_PASSES;
	GF_FREED double *seconds = gf_xcalloc(n * n, sizeof(*seconds)); /* per byte */
	GF_FREED double *known = gf_xcalloc(n * n, sizeof(*known));
	int k, rc;

	/* the first time opens connections */
	t->passes = 3 + RATE_PASSES;
	t->bytes = SMALL_BYTES;
	rc = pass(t, seconds, err);
	rc = rc ?: pass(t, seconds, err);
	for (i = 0; i < n * n; i++)
		p->latency_s[i] = seconds[i] * (SMALL_BYTES / 2.);
	t->bytes = LOOK_BYTES;
	rc = rc ?: pass(t, seconds, err);
	keep_best(known, seconds, n);
	t->known = known;
	t->seconds = fmin(long_enough_s, t->config->budget_s / 2 / transfers);
	for (k = 0; k < RATE_PASSES && rc == 0; k++) {
		rc = pass(t, seconds, err);
		if (rc == 0)
			keep_best(p->rate_bytes_per_s, seconds, n);
	}
	return rc;
}

/* One rank per host, or all on one. */
static int find_members(struct gf_comm *c, struct gf_measure_pairs *p, struct gf_error *err)
{
	size_t ranks = (size_t)c->ranks, width, r;
	struct utsname names = {0};
	int rc;
	GF_FREED int *host = gf_xcalloc(ranks, sizeof(*host));
	GF_FREED char *all = NULL;
	bool spread = false;

	width = sizeof(names.nodename);
	all = gf_xcalloc(ranks, width);
	uname(&names);
	rc = gf_comm_allgather(c, &c->host, sizeof(c->host), host, err);
	rc = rc ?: gf_comm_allgather(c, names.nodename, width, all, err);
	for (r = 0; r < ranks; r++)
		spread |= host[r] != host[0];
	p->hosts = spread;
	p->names = gf_xcalloc(ranks, sizeof(*p->names));
	p->ranks = gf_xcalloc(ranks, sizeof(*p->ranks));
	for (r = 0; r < ranks && rc == 0; r++) {
		if (spread && host[r] != (int)r)
			continue;
		p->ranks[p->count] = (int)r;
		p->names[p->count++] =
			spread ? gf_xasprintf("%.*s", (int)width - 1, all + r * width)
			       : gf_xasprintf("rank %zu", r);
	}
	return rc;
}

int gf_measure_pairs(const struct gf_measure_pairs_config *c, struct gf_measure_pairs *out,
		     struct gf_error *err)
{
	struct gf_measure_pairs pairs = {0};
	struct tournament t = {.config = c, .pairs = &pairs, .me = -1};
	int rc;

	if (c->comm->ranks < 2)
		return gf_error_set(err, -EINVAL,
				    "want two ranks or more to test the links between them (mpirun "
				    "-np N), got one");
	gf_measure_link_open(&t.link, c->comm, c->timeout_s);
	rc = find_members(c->comm, &pairs, err);
	pairs.rate_bytes_per_s = gf_xcalloc(pairs.count * pairs.count + 1, sizeof(double));
	pairs.latency_s = gf_xcalloc(pairs.count * pairs.count + 1, sizeof(double));
	t.row = gf_xcalloc(pairs.count + 1, sizeof(*t.row));
	for (size_t i = 0; i < pairs.count; i++)
		if (pairs.ranks[i] == c->comm->rank)
			t.me = (int)i;
	rc = rc ?: play(&t, err);
	gf_measure_link_close(&t.link);
	free(t.row);
	if (rc < 0)
		gf_measure_pairs_release(&pairs);
	else
		*out = pairs;
	return rc;
}

void gf_measure_pairs_release(struct gf_measure_pairs *p)
{
	for (size_t i = 0; i < p->count; i++)
		free(p->names[i]);
	free(p->names);
	free(p->ranks);
	free(p->rate_bytes_per_s);
	free(p->latency_s);
	memset(p, 0, sizeof(*p));
}

/* --- the report -------------------------------------------------------------
 */

/* A line holds no more columns than this, one for each member. */
enum { MOST_COLUMNS = 16 };

static double median_of(const double *values, size_t count)
{
	GF_FREED double *copy = gf_xmemdup(values, count * sizeof(*values));

	return gf_stat_median(copy, count);
}

void gf_measure_pairs_judge(const struct gf_measure_pairs *p, struct gf_measure_pairs_verdict *v)
{
	const double *rate = p->rate_bytes_per_s;
	size_t n = p->count, i, k;

	*v = (struct gf_measure_pairs_verdict){
		.best_send = gf_xcalloc(n, sizeof(double)),
		.best_receive = gf_xcalloc(n, sizeof(double)),
		.slow_send = gf_xcalloc(n, sizeof(bool)),
		.slow_receive = gf_xcalloc(n, sizeof(bool)),
		.slow_path = gf_xcalloc(n * n, sizeof(bool)),
	};
	for (i = 0; i < n; i++)
		for (k = 0; k < n; k++) {
			v->best_send[i] = fmax(v->best_send[i], rate[i * n + k]);
			v->best_receive[k] = fmax(v->best_receive[k], rate[i * n + k]);
		}
	v->median_send = median_of(v->best_send, n);
	v->median_receive = median_of(v->best_receive, n);
	for (i = 0; i < n && n > 2 && p->hosts; i++) {
		v->slow_send[i] = v->best_send[i] < GF_MEASURE_SLOW * v->median_send;
		v->slow_receive[i] = v->best_receive[i] < GF_MEASURE_SLOW * v->median_receive;
		v->any |= v->slow_send[i] || v->slow_receive[i];
	}
	for (i = 0; i < n * n && p->hosts; i++) {
		double ends = fmin(v->best_send[i / n], v->best_receive[i % n]);

		v->slow_path[i] = i / n != i % n && rate[i] < GF_MEASURE_SLOW * ends;
		v->any |= v->slow_path[i];
	}
}

void gf_measure_pairs_verdict_release(struct gf_measure_pairs_verdict *v)
{
	free(v->best_send);
	free(v->best_receive);
	free(v->slow_send);
	free(v->slow_receive);
	free(v->slow_path);
	memset(v, 0, sizeof(*v));
}

static void square(const struct gf_measure_pairs *p, struct gf_table *table)
{
	size_t n = p->count, i, k;

	gf_table_begin(table, n + 1);
	gf_table_cell(table, "from");
	for (k = 0; k < n; k++)
		gf_table_cell(table, "%s", p->names[k]);
	for (i = 0; i < n; i++) {
		gf_table_cell(table, "%s", p->names[i]);
		for (k = 0; k < n; k++)
			if (i == k)
				gf_table_cell(table, "-");
			else
				gf_table_cell(table, "%s",
					      gf_human_link(p->rate_bytes_per_s[i * n + k]).text);
	}
}

static void summary(const struct gf_measure_pairs *p, const struct gf_measure_pairs_verdict *v,
		    struct gf_table *table)
{
	const double *rate = p->rate_bytes_per_s;
	size_t n = p->count, i, k, least;

	gf_table_cells(table, "\tsends\treceives\tslowest path\tto");
	for (i = 0; i < n; i++) {
		least = i == 0;
		for (k = 0; k < n; k++)
			if (k != i && rate[i * n + k] < rate[i * n + least])
				least = k;
		gf_table_cells(table, "%s\t%s\t%s\t%s\t%s", p->names[i],
			       gf_human_link(v->best_send[i]).text,
			       gf_human_link(v->best_receive[i]).text,
			       gf_human_link(rate[i * n + least]).text, p->names[least]);
	}
}

static void say_slow(const struct gf_measure_pairs *p, const struct gf_measure_pairs_verdict *v,
		     struct gf_text *out)
{
	size_t n = p->count, i;

	for (i = 0; i < n; i++) {
		if (v->slow_send[i])
			gf_text_addf(out, "slow: %s sends at %s at best, the median is %s\n",
				     p->names[i], gf_human_link(v->best_send[i]).text,
				     gf_human_link(v->median_send).text);
		if (v->slow_receive[i])
			gf_text_addf(out, "slow: %s receives at %s at best, the median is %s\n",
				     p->names[i], gf_human_link(v->best_receive[i]).text,
				     gf_human_link(v->median_receive).text);
	}
	for (i = 0; i < n * n; i++)
		if (v->slow_path[i])
			gf_text_addf(out,
				     "slow: the path from %s to %s, at %s; both have faster ones\n",
				     p->names[i / n], p->names[i % n],
				     gf_human_link(p->rate_bytes_per_s[i]).text);
	if (!p->hosts)
		gf_text_addf(out, "ranks of one host: not judged\n");
	else if (!v->any)
		gf_text_addf(out, "nothing is slow%s\n",
			     n == 2 ? " (of two hosts nobody knows)" : "");
}

void gf_measure_pairs_table(const struct gf_measure_pairs *p,
			    const struct gf_measure_pairs_verdict *v, size_t window,
			    struct gf_text *out)
{
	GF_RELEASED(gf_table_release) struct gf_table table = {0};
	GF_FREED double *latency = gf_xcalloc(p->count * p->count, sizeof(*latency));
	size_t links = 0, i;

	if (p->count <= MOST_COLUMNS)
		square(p, &table);
	else
		summary(p, v, &table);
	gf_table_print_in(&table, window, out);
	for (i = 0; i < p->count * p->count; i++)
		if (i / p->count != i % p->count)
			latency[links++] = p->latency_s[i];
	gf_text_addf(out, "latency: median %s", gf_human_time(gf_stat_median(latency, links)).text);
	gf_text_addf(out, ", at most %s\n",
		     gf_human_time(gf_stat_quantile(latency, links, 1)).text);
	say_slow(p, v, out);
}

/* JSON Lines, one per link. */
static void write_rows(const struct gf_measure_pairs *p, const struct gf_measure_pairs_verdict *v,
		       struct gf_text *out)
{
	size_t n = p->count, i;

	for (i = 0; i < n * n; i++) {
		size_t from = i / n, to = i % n;
		struct gf_json_writer w = {0};

		if (from == to)
			continue;
		gf_json_open_line(&w, NULL);
		gf_json_put_string(&w, "from", p->names[from]);
		gf_json_put_string(&w, "to", p->names[to]);
		gf_json_put_int(&w, "from_rank", p->ranks[from]);
		gf_json_put_int(&w, "to_rank", p->ranks[to]);
		gf_json_put_real(&w, "rate_bytes_per_s", p->rate_bytes_per_s[i]);
		gf_json_put_real(&w, "latency_s", p->latency_s[i]);
		gf_json_put_bool(&w, "slow",
				 v->slow_path[i] || v->slow_send[from] || v->slow_receive[to]);
		gf_json_close_line(&w, out);
	}
}

int gf_measure_pairs_report(const struct gf_measure_pairs_config *config, bool json, size_t window,
			    struct gf_text *out, struct gf_error *err)
{
	GF_RELEASED(gf_measure_pairs_release) struct gf_measure_pairs pairs = {0};
	GF_RELEASED(gf_measure_pairs_verdict_release)
	struct gf_measure_pairs_verdict verdict = {0};
	int rc = gf_measure_pairs(config, &pairs, err);

	if (rc < 0)
		return rc;
	gf_measure_pairs_judge(&pairs, &verdict);
	if (json)
		write_rows(&pairs, &verdict, out);
	else
		gf_measure_pairs_table(&pairs, &verdict, window, out);
	return 0;
}
