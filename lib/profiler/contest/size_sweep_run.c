/* SPDX-License-Identifier: BSD-3-Clause */
#include <math.h>
#include <string.h>

#include "base/heap.h"
#include "profiler/contest/size_sweep.h"

/* Those between the two, the middle first, level by level. */
void gf_search_order(size_t n, size_t *order)
{
	size_t filled = 0, step, i;
	GF_FREED bool *taken = gf_xcalloc(n + 1, sizeof(*taken));

	for (step = n > 1 ? n - 1 : 1;; step = (step + 1) / 2) {
		for (i = 0; i < n; i += step)
			if (!taken[i]) {
				order[filled++] = i;
				taken[i] = true;
			}
		if (n && !taken[n - 1]) {
			order[filled++] = n - 1;
			taken[n - 1] = true;
		}
		if (filled >= n || step == 1)
			break;
	}
}

/* NAN: it was not measured on both sides. */
static double expected_s(const struct gf_search_way *w, const size_t *sizes, size_t nsizes,
			 size_t at)
{
	size_t below = at, above = at;
	double share;

	while (below > 0 && isnan(w->time_s[below]))
		below--;
	while (above < nsizes - 1 && isnan(w->time_s[above]))
		above++;
	if (isnan(w->time_s[below]) || isnan(w->time_s[above]))
		return NAN;
	if (below == above)
		return w->time_s[at];
	share = (double)(sizes[at] - sizes[below]) / (double)(sizes[above] - sizes[below]);
	return w->time_s[below] + share * (w->time_s[above] - w->time_s[below]);
}

size_t gf_search_try(const struct gf_search_way *ways, size_t nways, const size_t *sizes,
		     size_t nsizes, size_t at, bool *tried)
{
	double least_s = INFINITY;
	size_t i, n = 0;

	for (i = 0; i < nways; i++)
		if (ways[i].searched)
			least_s = fmin(least_s, expected_s(&ways[i], sizes, nsizes, at));
	for (i = 0; i < nways; i++) {
		/* what is not known is tried */
		tried[i] = !ways[i].searched ||
			   !(expected_s(&ways[i], sizes, nsizes, at) >= GF_SEARCH_FAR * least_s);
		n += tried[i];
	}
	return n;
}

/* A sweep's rows on their way: those of size i from i * ways->count on. */
struct sweep {
	struct gf_contest_allreduce *bench;
	const struct gf_contest_ways *ways;
	const size_t *counts;
	size_t ncounts;
	struct gf_search_way *search; /* per way */
	struct gf_contest_row *rows;
	size_t *nrows; /* per size */
};

static int run_count(struct sweep *s, size_t at, size_t *left_out, struct gf_error *err)
{
	const size_t n = s->ways->count;
	struct gf_contest_row *rows = s->rows + at * n;
	GF_FREED struct gf_way *list = gf_xcalloc(n, sizeof(*list));
	GF_FREED bool *tried = gf_xcalloc(n, sizeof(*tried));
	size_t i, k;
	int rc;

	gf_search_try(s->search, n, s->counts, s->ncounts, at, tried);
	for (i = 0; i < n; i++)
		if (tried[i])
			list[s->nrows[at]++] = s->ways->list[i];
	*left_out += n - s->nrows[at];
	rc = gf_contest_allreduce_size(s->bench, list, s->nrows[at], s->counts[at], rows, err);
	for (i = 0, k = 0; i < n && rc == 0; i++)
		if (tried[i])
			s->search[i].time_s[at] = rows[k++].reading[GF_IN_PLACE].median_s;
	return rc;
}

/* A trace is of what comes last, the largest size. */
static void order_counts(const struct sweep *s, bool traced, size_t *order)
{
	bool searched = false;

	for (size_t i = 0; i < s->ways->count; i++)
		searched |= s->search[i].searched;
	if (searched && !traced)
		gf_search_order(s->ncounts, order);
	else
		for (size_t i = 0; i < s->ncounts; i++)
			order[i] = i;
}

static void begin_search(struct sweep *s)
{
	s->search = gf_xcalloc(s->ways->count, sizeof(*s->search));
	for (size_t i = 0; i < s->ways->count; i++) {
		/* what others are set beside is always there */
		s->search[i].searched = s->ways->list[i].tuning.algorithm != NULL;
		s->search[i].time_s = gf_xcalloc(s->ncounts, sizeof(*s->search->time_s));
		for (size_t k = 0; k < s->ncounts; k++)
			s->search[i].time_s[k] = NAN;
	}
}

static int run_counts(struct sweep *s, bool traced, const struct gf_contest_progress *progress,
		      struct gf_contest_rows *rows, struct gf_error *err)
{
	const size_t n = s->ways->count;
	size_t *order = gf_xcalloc(s->ncounts, sizeof(*order)), i, k;
	int rc = 0;

	begin_search(s);
	order_counts(s, traced, order);
	s->nrows = gf_xcalloc(s->ncounts, sizeof(*s->nrows));
	s->rows = gf_xcalloc(s->ncounts * n, sizeof(*s->rows));
	for (i = 0; i < s->ncounts && rc == 0; i++) {
		if (progress)
			progress->tell(progress->ctx, (double)i / (double)s->ncounts,
				       s->counts[order[i]]);
		rc = run_count(s, order[i], &rows->left_out, err);
	}
	for (i = 0; i < s->ncounts; i++)
		for (k = 0; k < s->nrows[i] && rc == 0; k++)
			s->rows[rows->count++] = s->rows[i * n + k];
	rows->list = s->rows;
	for (i = 0; i < n; i++)
		free(s->search[i].time_s);
	free(s->search);
	free(s->nrows);
	free(order);
	return rc;
}

/* Of a library's variants, those stay that it has here. */
static int try_variants(const struct gf_contest_sweep *s, struct gf_contest_allreduce *bench,
			const struct gf_comm *comm, struct gf_contest_ways *ways,
			struct gf_text *remarks, struct gf_error *err)
{
	char text[GF_TUNING_TEXT];
	struct gf_error why;
	size_t i, kept = 0, told = 0;
	int rc, last = 0;

	for (i = 0; i < ways->count; i++) {
		const struct gf_way way = ways->list[i];

		rc = way.tuning.dialect ? gf_contest_allreduce_try(bench, &way, &why) : 0;
		if (rc == 0) {
			ways->list[kept++] = way;
			told += way.tuning.algorithm != NULL;
			continue;
		}
		last = rc;
		gf_error_prefix(&why, "%s:%s", way.algorithm->name,
				gf_tuning_text(&way.tuning, text));
		if (rc == -ETIMEDOUT || comm->broken || gf_contest_told_named(s->algorithms, &way))
			return gf_error_set(err, rc, "%s", why.text);
		gf_text_addf(remarks, "left out: %s\n", why.text);
	}
	ways->count = kept;
	/* all that were to be told something */
	return last && !told ? gf_error_set(err, last, "%s", why.text) : 0;
}

/* A rule says what auto is, and nothing else. Its selection needs the tensors of a model. */
static int check_rule(const struct gf_contest_sweep *s,
		      const struct gf_contest_allreduce_config *config, struct gf_error *err)
{
	const struct gf_plan *rule = config->rule;

	if (!rule)
		return 0;
	if (!gf_selection_has(&rule->selection, GF_SELECT_LOSSLESS))
		return gf_error_set(err, -EINVAL,
				    "--plan: want a plan for a model (gf-plan --model), because "
				    "the rule has selection %s, got a rule alone",
				    gf_selection_name(&rule->selection));
	for (size_t i = 0; s->algorithms[i]; i++)
		if (strcmp(s->algorithms[i], "auto") == 0)
			return 0;
	return gf_error_set(
		err, -EINVAL,
		"--algorithms: want auto among them with a rule, which says what it is, got none");
}

int gf_contest_sweep_run(const struct gf_contest_sweep *s,
			 const struct gf_contest_allreduce_config *config,
			 const struct gf_contest_progress *progress, struct gf_contest_rows *rows,
			 struct gf_text *remarks, struct gf_error *err)
{
	const int ranks = config->comm->ranks;
	size_t ncounts;
	GF_FREED size_t *counts = gf_contest_sweep_counts(s, config->element.size_bytes,
							  config->collective ? ranks : 0, &ncounts);
	struct gf_contest_allreduce *bench = NULL;
	struct gf_contest_ways ways = {0};
	int rc = check_rule(s, config, err);

	if (rc == 0 && !ncounts)
		rc = gf_error_set(err, -EINVAL,
				  "--max-bytes: want at least %d, %d for each of %d ranks, got %zu",
				  ranks * GF_SWEEP_PART_BYTES, GF_SWEEP_PART_BYTES, ranks,
				  s->max_bytes);
	rc = rc ?: gf_contest_sweep_ways(s, config, counts[ncounts - 1], &ways, remarks, err);
	rc = rc ?: gf_contest_allreduce_open(config, counts[ncounts - 1], &bench, err);
	rc = rc ?: try_variants(s, bench, config->comm, &ways, remarks, err);
	if (rc == 0)
		rc = run_counts(&(struct sweep){.bench = bench,
						.ways = &ways,
						.counts = counts,
						.ncounts = ncounts},
				config->timeline, progress, rows, err);
	gf_contest_allreduce_close(bench);
	free(ways.list);
	return rc;
}
