/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * convergence_report DIR LOG...: what gf-train logged, as a table on standard output and, for
 * pictures, as DIR/MODEL-RANKS.csv. A log's name is MODEL.RANKS.METHOD.SEED.jsonl; the runs of one
 * method that differ in the seed alone are one row, and one curve: the mean over the seeds, with
 * the lowest and the highest. Methods stand in the order in which they are first named, and the
 * first one of a model is what the others are compared with.
 */
#include <errno.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/file.h"
#include "base/heap.h"
#include "cli/plot.h"
#include "json/json.h"

#define MAX_SEEDS 8

/* After an epoch, on the test part. */
struct point {
	double step, loss, accuracy, sent_bytes;
};

struct run {
	struct point *points;
	size_t count, capacity;
	double sent_bytes; /* so far */
};

/* One method on one model and number of ranks. */
struct method {
	char *model, *ranks, *name;
	struct run runs[MAX_SEEDS];
	size_t nruns;
};

struct report {
	struct method *methods;
	size_t nmethods, capacity;
};

/* --- reading -------------------------------------------------------------- */

/* The bytes that all ranks sent in the epochs before a test add up. */
static int read_point(const struct gf_json *root, const char *path, struct run *run,
		      struct gf_error *err)
{
	struct gf_json_at at;
	char *part = NULL;
	struct point p = {0};
	size_t step = 0, sent = 0;
	int rc = gf_json_root(root, path, &at, err);

	if (rc)
		return rc;
	rc = gf_json_string(&at, "part", &part, err);
	if (!rc && strcmp(part, "train") == 0)
		rc = gf_json_size(&at, "sent_bytes", 0, SIZE_MAX / 2, &sent, err);
	if (!rc)
		run->sent_bytes += (double)sent;
	if (!rc && strcmp(part, "test") == 0) {
		rc = gf_json_size(&at, "step", 1, SIZE_MAX / 2, &step, err);
		if (!rc)
			rc = gf_json_real(&at, "loss", 0, 1e300, &p.loss, err);
		if (!rc)
			rc = gf_json_real(&at, "accuracy", 0, 1, &p.accuracy, err);
		p.step = (double)step;
		p.sent_bytes = run->sent_bytes;
		if (!rc)
			*gf_array_push(&run->points, &run->count, &run->capacity) = p;
	}
	gf_json_leave(&at);
	free(part);
	return rc;
}

static int read_log(const char *path, struct run *run, struct gf_error *err)
{
	char *text = NULL;
	size_t size, used = 0;
	int rc = gf_file_read(path, &text, &size, err);

	while (!rc) {
		struct gf_json *root;

		rc = gf_json_parse_next(text, size, path, &used, &root, err);
		if (rc || !root)
			break;
		rc = read_point(root, path, run, err);
		gf_json_free(root);
	}
	free(text);
	return rc;
}

static struct method *find(struct report *r, const char *model, const char *ranks, const char *name)
{
	struct method *m;
	size_t i;

	for (i = 0; i < r->nmethods; i++) {
		m = &r->methods[i];
		if (strcmp(m->model, model) == 0 && strcmp(m->ranks, ranks) == 0 &&
		    strcmp(m->name, name) == 0)
			return m;
	}
	m = gf_array_push(&r->methods, &r->nmethods, &r->capacity);
	m->model = gf_xstrdup(model);
	m->ranks = gf_xstrdup(ranks);
	m->name = gf_xstrdup(name);
	return m;
}

static int add_log(struct report *r, const char *path, struct gf_error *err)
{
	const char *slash = strrchr(path, '/');
	char *name = gf_xstrdup(slash ? slash + 1 : path), *rest = name;
	const char *model = strsep(&rest, "."), *ranks = strsep(&rest, ".");
	const char *method = strsep(&rest, ".");
	struct method *m;
	int rc;

	if (!method || !rest)
		rc = gf_error_set(err, -EINVAL,
				  "%s: want a log named MODEL.RANKS.METHOD.SEED.jsonl", path);
	else {
		m = find(r, model, ranks, method);
		rc = m->nruns == MAX_SEEDS
			     ? gf_error_set(err, -EINVAL, "%s: want at most %d seeds, got more",
					    path, MAX_SEEDS)
			     : read_log(path, &m->runs[m->nruns], err);
		if (!rc && m->runs[m->nruns].count)
			m->nruns++;
	}
	free(name);
	return rc;
}

/* --- the table ------------------------------------------------------------ */

static double accuracy_of(const struct point *p)
{
	return p->accuracy;
}

static double loss_of(const struct point *p)
{
	return p->loss;
}

static double sent_of(const struct point *p)
{
	return p->sent_bytes;
}

static double step_of(const struct point *p)
{
	return p->step;
}

struct spread {
	double mean, low, high;
};

/* Of point i over the seeds that came so far. */
static struct spread over_seeds(const struct method *m, size_t i,
				double (*of)(const struct point *p))
{
	struct spread s = {0, INFINITY, -INFINITY};
	size_t k, n = 0;

	for (k = 0; k < m->nruns; k++) {
		double v;

		if (i >= m->runs[k].count)
			continue;
		v = of(&m->runs[k].points[i]);
		s.mean += v;
		s.low = fmin(s.low, v);
		s.high = fmax(s.high, v);
		n++;
	}
	s.mean /= (double)n;
	return s;
}

static size_t last_point(const struct method *m)
{
	return m->runs[0].count - 1;
}

/* The first method of the same model and ranks. */
static const struct method *peer_of(const struct report *r, const struct method *m)
{
	const struct method *p = r->methods;

	while (strcmp(p->model, m->model) != 0 || strcmp(p->ranks, m->ranks) != 0)
		p++;
	return p;
}

static void print_table(const struct report *r)
{
	size_t i;

	printf("%-12s %5s  %-16s %5s  %8s %15s %8s  %7s %10s\n", "model", "ranks", "method",
	       "seeds", "accuracy", "lowest..highest", "to dense", "loss", "MiB sent");
	for (i = 0; i < r->nmethods; i++) {
		const struct method *m = &r->methods[i];
		const struct method *peer = peer_of(r, m);
		struct spread accuracy;

		if (!m->nruns) {
			printf("%-12s %5s  %-16s  no result\n", m->model, m->ranks, m->name);
			continue;
		}
		accuracy = over_seeds(m, last_point(m), accuracy_of);
		printf("%-12s %5s  %-16s %5zu  %6.2f %%  %6.2f..%6.2f", m->model, m->ranks, m->name,
		       m->nruns, 100 * accuracy.mean, 100 * accuracy.low, 100 * accuracy.high);
		if (peer->nruns)
			printf(" %+8.2f",
			       100 * (accuracy.mean -
				      over_seeds(peer, last_point(peer), accuracy_of).mean));
		printf("  %7.4f %10.2f\n", over_seeds(m, last_point(m), loss_of).mean,
		       over_seeds(m, last_point(m), sent_of).mean / 0x1p20);
	}
}

/* --- the curves ----------------------------------------------------------- */

static void add_spread(struct gf_text *csv, struct spread s)
{
	gf_plot_cell(csv, s.mean);
	gf_plot_cell(csv, s.low);
	gf_plot_cell(csv, s.high);
}

/* The methods of one model and number of ranks. */
static int write_curves(const struct report *r, const struct method *first, const char *folder,
			struct gf_error *err)
{
	char *path = gf_xasprintf("%s/%s-%s.csv", folder, first->model, first->ranks);
	struct gf_text csv = {0};
	const struct method *m;
	size_t k;
	int rc;

	gf_text_addf(&csv, "method,step,sent_bytes,accuracy,accuracy_low,accuracy_high,loss,loss_"
			   "low,loss_high\n");
	for (m = r->methods; m < r->methods + r->nmethods; m++)
		for (k = 0; m->nruns && peer_of(r, m) == first && k < m->runs[0].count; k++) {
			gf_plot_label(&csv, m->name);
			gf_plot_cell(&csv, over_seeds(m, k, step_of).mean);
			gf_plot_cell(&csv, over_seeds(m, k, sent_of).mean);
			add_spread(&csv, over_seeds(m, k, accuracy_of));
			add_spread(&csv, over_seeds(m, k, loss_of));
			gf_text_addf(&csv, "\n");
		}
	rc = gf_file_write(path, csv.data, csv.length, err);
	gf_text_release(&csv);
	free(path);
	return rc;
}

static int write_all(const struct report *r, const char *folder, struct gf_error *err)
{
	size_t i;
	int rc = 0;

	for (i = 0; i < r->nmethods && !rc; i++)
		if (peer_of(r, &r->methods[i]) == &r->methods[i])
			rc = write_curves(r, &r->methods[i], folder, err);
	return rc;
}

static void release(struct report *r)
{
	struct method *m;
	size_t i;

	for (m = r->methods; m < r->methods + r->nmethods; m++) {
		for (i = 0; i < MAX_SEEDS; i++)
			free(m->runs[i].points);
		free(m->model);
		free(m->ranks);
		free(m->name);
	}
	free(r->methods);
}

int main(int argc, char **argv)
{
	struct report r = {0};
	struct gf_error err = {""};
	int i, rc = 0;

	if (argc < 3) {
		fprintf(stderr, "usage: convergence_report DIR LOG...\n");
		return 2;
	}
	for (i = 2; i < argc && !rc; i++)
		rc = add_log(&r, argv[i], &err);
	if (!rc) {
		print_table(&r);
		rc = write_all(&r, argv[1], &err);
	}
	if (rc)
		fprintf(stderr, "convergence_report: %s\n", err.text);
	release(&r);
	return rc ? 2 : 0;
}
