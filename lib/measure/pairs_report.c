/* SPDX-License-Identifier: BSD-3-Clause */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/heap.h"
#include "measure/pairs.h"
#include "cost/stat.h"
#include "cli/human.h"
#include "cli/table.h"
#include "json/json.h"

/* A line holds no more columns than this, one for each member. */
enum { MOST_COLUMNS = 16 };

static double median_of(const double *values, size_t count)
{
	double *copy = gf_xmemdup(values, count * sizeof(*values)), median;

	median = gf_stat_median(copy, count);
	free(copy);
	return median;
}

void gf_measure_pairs_judge(const struct gf_measure_pairs *p,
			    struct gf_measure_pairs_verdict *v)
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
			v->best_send[i] =
				fmax(v->best_send[i], rate[i * n + k]);
			v->best_receive[k] =
				fmax(v->best_receive[k], rate[i * n + k]);
		}
	v->median_send = median_of(v->best_send, n);
	v->median_receive = median_of(v->best_receive, n);
	for (i = 0; i < n && n > 2 && p->hosts; i++) {
		v->slow_send[i] =
			v->best_send[i] < GF_MEASURE_SLOW * v->median_send;
		v->slow_receive[i] = v->best_receive[i] <
				     GF_MEASURE_SLOW * v->median_receive;
		v->any |= v->slow_send[i] || v->slow_receive[i];
	}
	for (i = 0; i < n * n && p->hosts; i++) {
		double ends = fmin(v->best_send[i / n], v->best_receive[i % n]);

		v->slow_path[i] =
			i / n != i % n && rate[i] < GF_MEASURE_SLOW * ends;
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
	struct gf_human h;

	gf_table_begin(table, n + 1);
	gf_table_cell(table, "from");
	for (k = 0; k < n; k++)
		gf_table_cell(table, "%s", p->names[k]);
	for (i = 0; i < n; i++) {
		gf_table_begin(table, n + 1);
		gf_table_cell(table, "%s", p->names[i]);
		for (k = 0; k < n; k++)
			if (i == k)
				gf_table_cell(table, "-");
			else
				gf_table_cell(
					table, "%s",
					gf_human_rate(
						p->rate_bytes_per_s[i * n + k],
						&h));
	}
}

static void summary(const struct gf_measure_pairs *p,
		    const struct gf_measure_pairs_verdict *v,
		    struct gf_table *table)
{
	static const char *const heading[] = {"", "sends", "receives",
					      "slowest path", "to"};
	const double *rate = p->rate_bytes_per_s;
	size_t n = p->count, i, k, least;
	struct gf_human h;

	gf_table_row(table, 5, heading);
	for (i = 0; i < n; i++) {
		least = i == 0;
		for (k = 0; k < n; k++)
			if (k != i && rate[i * n + k] < rate[i * n + least])
				least = k;
		gf_table_begin(table, 5);
		gf_table_cell(table, "%s", p->names[i]);
		gf_table_cell(table, "%s", gf_human_rate(v->best_send[i], &h));
		gf_table_cell(table, "%s",
			      gf_human_rate(v->best_receive[i], &h));
		gf_table_cell(table, "%s",
			      gf_human_rate(rate[i * n + least], &h));
		gf_table_cell(table, "%s", p->names[least]);
	}
}

static void say_slow(const struct gf_measure_pairs *p,
		     const struct gf_measure_pairs_verdict *v,
		     struct gf_text *out)
{
	struct gf_human best, median;
	size_t n = p->count, i;

	for (i = 0; i < n; i++) {
		if (v->slow_send[i])
			gf_text_addf(out,
				     "slow: %s sends at %s at best, the median "
				     "is %s\n",
				     p->names[i],
				     gf_human_rate(v->best_send[i], &best),
				     gf_human_rate(v->median_send, &median));
		if (v->slow_receive[i])
			gf_text_addf(
				out,
				"slow: %s receives at %s at best, the median "
				"is %s\n",
				p->names[i],
				gf_human_rate(v->best_receive[i], &best),
				gf_human_rate(v->median_receive, &median));
	}
	for (i = 0; i < n * n; i++)
		if (v->slow_path[i])
			gf_text_addf(
				out,
				"slow: the path from %s to %s, at %s; "
				"both have faster ones\n",
				p->names[i / n], p->names[i % n],
				gf_human_rate(p->rate_bytes_per_s[i], &best));
	if (!p->hosts)
		gf_text_addf(out, "ranks of one host: not judged\n");
	else if (!v->any)
		gf_text_addf(out, "nothing is slow%s\n",
			     n == 2 ? " (of two hosts nobody knows)" : "");
}

void gf_measure_pairs_table(const struct gf_measure_pairs *p,
			    const struct gf_measure_pairs_verdict *v,
			    struct gf_text *out)
{
	struct gf_table table = {0};
	struct gf_human text;
	double *latency = gf_xcalloc(p->count * p->count, sizeof(*latency));
	size_t links = 0, i;

	if (p->count <= MOST_COLUMNS)
		square(p, &table);
	else
		summary(p, v, &table);
	gf_table_print(&table, out);
	gf_table_release(&table);
	for (i = 0; i < p->count * p->count; i++)
		if (i / p->count != i % p->count)
			latency[links++] = p->latency_s[i];
	gf_text_addf(out, "latency: median %s",
		     gf_human_time(gf_stat_median(latency, links), &text));
	gf_text_addf(out, ", at most %s\n",
		     gf_human_time(gf_stat_quantile(latency, links, 1), &text));
	say_slow(p, v, out);
	free(latency);
}

/* JSON Lines, one per link. */
static void write_rows(const struct gf_measure_pairs *p,
		       const struct gf_measure_pairs_verdict *v,
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
		gf_json_put_real(&w, "rate_bytes_per_s",
				 p->rate_bytes_per_s[i]);
		gf_json_put_real(&w, "latency_s", p->latency_s[i]);
		gf_json_put_bool(&w, "slow",
				 v->slow_path[i] || v->slow_send[from] ||
					 v->slow_receive[to]);
		gf_json_close_object(&w);
		gf_text_add(out, w.text.data, w.text.length);
		gf_text_release(&w.text);
	}
}

int gf_measure_pairs_report(const struct gf_measure_pairs_config *config,
			    bool json, struct gf_text *out,
			    struct gf_error *err)
{
	struct gf_measure_pairs_verdict verdict;
	struct gf_measure_pairs pairs;
	int rc = gf_measure_pairs(config, &pairs, err);

	if (rc < 0)
		return rc;
	gf_measure_pairs_judge(&pairs, &verdict);
	if (json)
		write_rows(&pairs, &verdict, out);
	else
		gf_measure_pairs_table(&pairs, &verdict, out);
	rc = verdict.any;
	gf_measure_pairs_verdict_release(&verdict);
	gf_measure_pairs_release(&pairs);
	return rc;
}
