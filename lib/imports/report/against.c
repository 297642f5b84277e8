/* SPDX-License-Identifier: BSD-3-Clause */
#include "imports/report/report.h"

#include <math.h>
#include <string.h>

#include "base/array.h"
#include "base/heap.h"
#include "cli/human.h"
#include "cli/table.h"
#include "imports/import.h"
#include "json/json.h"
#include "simulator/uncertainty.h"

enum { MESSAGE = GF_REPORT_PARTS }; /* behind the parts of a step */

struct compared {
	char *what; /* "step", "ring of 65536 bytes" */
	struct gf_report_times before, after;
	size_t ranks, slower, faster; /* so many; 1: of no rank */
	int verdict;                  /* 1: slower; -1: faster; 0: neither */
};

struct comparison {
	struct compared *rows;
	size_t nrows, capacity;
	size_t slower, faster, alone; /* alone: rows that one run has */
};

/* A run's times by what they are of; of what is there twice, in the order of the file. */
struct rows {
	struct row {
		size_t part, size_bytes, number;
		char *what;
		struct gf_report_times times;
		struct of_rank {
			int rank;
			struct gf_report_times times;
		} * ranks;
		size_t nranks;
	} * all;
	size_t count, capacity;
};

/* part: of a step, of so many ranks; MESSAGE: of none, as if of one rank. */
static struct row *add(struct rows *r, size_t part, size_t size_bytes, char *what,
		       const struct gf_report_times *t, size_t nranks)
{
	struct row *to = gf_array_push(&r->all, &r->count, &r->capacity);

	*to = (struct row){part,  size_bytes, r->count,
			   what,  *t,         gf_xcalloc(nranks, sizeof(*to->ranks)),
			   nranks};
	to->ranks->times = *t;
	return to;
}

static int by_what(const struct row *x, const struct row *y)
{
	return GF_BY(x->part, y->part) ?: GF_BY(x->size_bytes, y->size_bytes)
						?: strcmp(x->what, y->what);
}

GF_ORDER(by_what_then_number, struct row, by_what(x, y) ?: GF_BY(x->number, y->number))

static void release(struct rows *r)
{
	for (size_t i = 0; i < r->count; i++) {
		free(r->all[i].what);
		free(r->all[i].ranks);
	}
	free(r->all);
}

static void add_steps(struct rows *r, const struct gf_report_whole *of)
{
	for (size_t i = 0; i < GF_REPORT_PARTS && of->nsteps; i++) {
		char *what = gf_xasprintf("%s%s", gf_report_parts[i],
					  i == GF_REPORT_EXPOSED ? " communication" : "");
		struct row *to = add(r, i, 0, what, &of->parts[i], of->nranks);

		for (size_t k = 0; k < of->nranks; k++)
			to->ranks[k] = (struct of_rank){of->ranks[k].rank, of->ranks[k].parts[i]};
	}
}

static int add_job(struct rows *r, const char *const *paths, size_t npaths, const struct gf_plan *p,
		   struct gf_error *err)
{
	GF_RELEASED(gf_report_whole_release) struct gf_report_whole report = {0};
	GF_RELEASED(gf_import_job_release) struct gf_import_job job = {0};
	int rc = gf_import_job_read(&job, paths, npaths, p, err);

	rc = rc ?: gf_report_see(&report, &job, err);
	if (rc == 0)
		add_steps(r, &report);
	for (size_t i = 0; i < report.nsizes; i++) {
		const struct gf_report_size *s = &report.sizes[i];

		add(r, MESSAGE, s->size_bytes,
		    gf_xasprintf("%s of %zu bytes, %d ranks", gf_collective_name(s->kind),
				 s->size_bytes, s->ranks),
		    &s->times, 1);
	}
	return rc;
}

static int add_table(struct rows *r, const char *path, struct gf_text *notes, struct gf_error *err)
{
	struct gf_import in = {.file = path, .forward_s = NAN, .backward_s = NAN};
	GF_RELEASED(gf_profile_release) struct gf_profile p = {0};
	int rc = gf_import_file(&in, NULL, NULL, &p, notes, err);

	if (rc == 0 && !p.network)
		rc = gf_error_set(
			err, -EINVAL,
			"%s: want times of all-reduces or of a job's steps, found a model's", path);
	for (size_t i = 0; rc == 0 && i < p.network->nallreduce; i++) {
		const struct gf_allreduce_cost *c = &p.network->allreduce[i];
		GF_FREED char *name = gf_allreduce_text(c);

		for (size_t k = 0; k < c->fit.npoints; k++) {
			const double t = c->fit.time_s[k];

			add(r, MESSAGE, c->fit.size_bytes[k],
			    gf_xasprintf("%s%s%s of %zu bytes", name, c->codec ? " " : "",
					 c->codec ? c->codec : "", c->fit.size_bytes[k]),
			    &(struct gf_report_times){t, t, t, t, t, t}, 1);
		}
	}
	return rc;
}

static int add_run(struct rows *r, const char *const *paths, size_t npaths, const struct gf_plan *p,
		   struct gf_text *notes, struct gf_error *err)
{
	int is = gf_import_is_job(paths[0], err);

	if (is < 0)
		return is;
	if (is)
		return add_job(r, paths, npaths, p, err);
	return npaths > 1
		       ? gf_error_set(err, -EINVAL, "%s: want one table, got more files", paths[0])
		       : add_table(r, paths[0], notes, err);
}

/* Is the one longer by more than both doubts together? */
static bool longer(const struct gf_report_times *one, const struct gf_report_times *than)
{
	return one->median_s - (1 + GF_UNCERTAINTY_TIMES) * than->median_s >
	       hypot(one->median_s - one->least_s, than->most_s - than->median_s);
}

/* Ranks are set beside themselves. Both lists are by rank. */
static void judge_ranks(const struct row *then, const struct row *now, struct compared *to)
{
	size_t i = 0, k = 0;

	while (i < then->nranks && k < now->nranks) {
		const struct of_rank *a = &then->ranks[i], *b = &now->ranks[k];
		const bool same = a->rank == b->rank;

		to->ranks += same;
		to->slower += same && longer(&b->times, &a->times);
		to->faster += same && longer(&a->times, &b->times);
		i += a->rank <= b->rank;
		k += a->rank >= b->rank;
	}
	to->verdict = to->slower ? 1 : to->faster ? -1 : 0;
}

/* What takes no time before has no ratio. */
static void compare(struct comparison *a, struct rows *before, struct rows *after)
{
	const struct row *then = before->all, *now = after->all;
	const struct row *thens = then + before->count;
	const struct row *nows = now + after->count;

	qsort(before->all, before->count, sizeof(*then), by_what_then_number);
	qsort(after->all, after->count, sizeof(*now), by_what_then_number);
	while (then < thens || now < nows) {
		const int which = then == thens ? 1 : now == nows ? -1 : by_what(then, now);
		struct compared *to;

		a->alone += which != 0;
		if (which == 0 && then->times.median_s > 0) {
			to = gf_array_push(&a->rows, &a->nrows, &a->capacity);
			to->what = gf_xstrdup(now->what);
			to->before = then->times;
			to->after = now->times;
			judge_ranks(then, now, to);
			a->slower += to->verdict > 0;
			a->faster += to->verdict < 0;
		}
		then += which <= 0;
		now += which >= 0;
	}
}

/* Half of the interval about the ratio, by those of both medians. */
static double ratio_doubt(const struct compared *r)
{
	const struct gf_report_times *a = &r->before, *b = &r->after;

	return r->after.median_s / r->before.median_s *
	       hypot((a->most_s - a->least_s) / 2 / a->median_s,
		     (b->most_s - b->least_s) / 2 / b->median_s);
}

/* "1.36 +- 0.03 x"; one time has no doubt. */
static void add_ratio(const struct compared *r, struct gf_table *t)
{
	const double ratio = r->after.median_s / r->before.median_s, doubt = ratio_doubt(r);
	const int digits = doubt > 0 && doubt < 0.01 ? 3 : 2;

	if (doubt > 0)
		gf_table_cell(t, "%.*f +- %.*f x", digits, ratio, digits, doubt);
	else
		gf_table_cell(t, "%.2f x", ratio);
}

static const char *word(int verdict)
{
	return verdict > 0 ? "slower" : verdict < 0 ? "faster" : "same";
}

static void print_table(const struct comparison *a, size_t window, struct gf_text *out)
{
	GF_RELEASED(gf_table_release) struct gf_table t = {0};

	gf_text_addf(out, "%zu of %zu times are slower, %zu are faster\n\n", a->slower, a->nrows,
		     a->faster);
	gf_table_cells(&t, "\tbefore\tafter\tratio\t");
	for (size_t i = 0; i < a->nrows; i++) {
		const struct compared *r = &a->rows[i];

		gf_table_cells(&t, "%s\t%s\t%s", r->what, gf_human_time(r->before.median_s).text,
			       gf_human_time(r->after.median_s).text);
		add_ratio(r, &t);
		if (r->ranks > 1 && r->verdict)
			gf_table_cell(&t, "%s on %zu of %zu ranks", word(r->verdict),
				      r->slower ? r->slower : r->faster, r->ranks);
		else
			gf_table_cell(&t, "%s", word(r->verdict));
	}
	gf_table_print_in(&t, window, out);
}

static void print_json(const struct comparison *a, struct gf_text *out)
{
	for (size_t i = 0; i < a->nrows; i++) {
		const struct compared *r = &a->rows[i];
		struct gf_json_writer w = {0};

		gf_json_open_line(&w, NULL);
		gf_json_put_string(&w, "part", "against");
		gf_json_put_string(&w, "what", r->what);
		gf_json_put_real(&w, "before_s", r->before.median_s);
		gf_json_put_real(&w, "after_s", r->after.median_s);
		gf_json_put_real(&w, "ratio_doubt", ratio_doubt(r));
		gf_json_put_string(&w, "verdict", word(r->verdict));
		gf_json_put_size(&w, "slower_ranks", r->slower);
		gf_json_put_size(&w, "faster_ranks", r->faster);
		gf_json_close_line(&w, out);
	}
}

int gf_against(const struct gf_against *a, struct gf_text *out, struct gf_text *notes,
	       struct gf_error *err)
{
	struct rows then = {0}, now = {0};
	struct comparison found = {0};
	int rc = add_run(&then, &a->before, 1, a->plan, notes, err);

	rc = rc ?: add_run(&now, a->after, a->nafter, a->plan, notes, err);
	if (rc == 0 && then.count && now.count)
		compare(&found, &then, &now);
	if (rc == 0 && found.nrows == 0)
		rc = gf_error_set(err, -EINVAL,
				  "--against: want two runs of one kind, found nothing that %s and "
				  "%s both have",
				  a->before, a->after[0]);
	if (rc == 0 && found.alone)
		gf_text_addf(notes, "%zu rows are in one of the runs alone\n", found.alone);
	if (rc == 0 && a->table)
		print_table(&found, a->width, out);
	else if (rc == 0)
		print_json(&found, out);
	if (rc == 0 && found.slower)
		rc = gf_error_set(err, 1, "%zu of %zu times are slower than in %s", found.slower,
				  found.nrows, a->before);
	for (size_t i = 0; i < found.nrows; i++)
		free(found.rows[i].what);
	free(found.rows);
	release(&then);
	release(&now);
	return rc;
}
