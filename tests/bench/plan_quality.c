/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * How good the planner's plans are, and how long they take: for every profile named, on 1 to 4
 * lanes, what `optimal` finds beside a search that takes a hundred times as long, and beside the
 * lower bound.
 *
 *	plan_quality PROFILE...		(of a model and a network)
 *
 * The long search is the beam at its full width with fine cuts, and then ten times as many random
 * changes. On one lane `optimal` is exact, or, where messages and backward slow each other, nearly
 * so.
 */
#include <math.h>
#include <stdio.h>
#include <time.h>

#include "base/heap.h"
#include "documents/stream.h"
#include "planner/make.h"
#include "planner/policies/policy.h"
#include "planner/search/search.h"

#define LANES       4
#define BEAM_BUDGET 6e6
#define GROWTH      0.05
#define BUDGET      2e7
#define KICKS       3000
#define LARGE       2000 /* tensors: beyond these no long search is made */

static double cpu_s(void)
{
	struct timespec t;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* What the long search finds from this draft on; or the draft's time. */
static double long_search_s(const struct gf_workbench *w, const struct gf_draft *d, int lanes)
{
	struct gf_draft found = {.lanes = lanes}, own = *d;
	double best_s = d->iteration_s;

	gf_search_beam(w, d->iteration_s * 1.01, BEAM_BUDGET, GROWTH, &found);
	if (found.nsends) {
		gf_workbench_predict(w, &found);
		gf_search_polish(w, BUDGET, KICKS, &found);
		gf_workbench_predict(w, &found);
		best_s = fmin(best_s, found.iteration_s);
	}
	gf_draft_release(&found);
	own.sends = gf_xmemdup(d->sends, d->nsends * sizeof(*d->sends));
	own.capacity = d->nsends;
	own.lanes = lanes;
	gf_workbench_predict(w, &own);
	gf_search_polish(w, BUDGET, KICKS, &own);
	gf_workbench_predict(w, &own);
	best_s = fmin(best_s, own.iteration_s);
	gf_draft_release(&own);
	return best_s;
}

static void print_row(const struct gf_workbench *w, const char *name, int lanes)
{
	struct gf_draft d;
	double begun_s = cpu_s(), took_s, bound_s;

	gf_draft_make(&d, w, &gf_policy_optimal, lanes);
	took_s = cpu_s() - begun_s;
	bound_s = gf_workbench_bound_s(w, lanes);
	printf("%-16s %7zu  %5d  %7.2f  %8zu  %9.4g  %5.1f", name, w->ntensors, lanes, took_s,
	       d.nsends, d.iteration_s, 100 * (d.iteration_s / bound_s - 1));
	if (lanes > 1 && w->ntensors <= LARGE)
		printf("  %8.3f", 100 * (d.iteration_s / long_search_s(w, &d, lanes) - 1));
	printf("\n");
	fflush(stdout);
	gf_draft_release(&d);
}

static int measure(const char *file, struct gf_error *err)
{
	struct gf_documents documents = {0};
	struct gf_request r = {0};
	int rc = gf_documents_take(&documents, file, err), lanes;

	if (rc == 0)
		gf_request_documents(&r, &documents);
	for (lanes = 1; rc == 0 && lanes <= LANES; lanes++) {
		struct gf_problem in = {.model = r.model,
					.fabric.network = r.fabric.network,
					.fabric.ranks = r.fabric.ranks,
					.lanes = lanes};
		struct gf_workbench w;

		rc = gf_workbench_init(&w, &in, err);
		if (rc < 0)
			break;
		print_row(&w, r.model->name, lanes);
		gf_workbench_release(&w);
	}
	gf_documents_release(&documents);
	return rc;
}

int main(int argc, char **argv)
{
	struct gf_error err = {""};
	int i;

	printf("%-16s %7s  %5s  %7s  %8s  %9s  %5s  %8s\n", "model", "tensors", "lanes", "seconds",
	       "messages", "iteration", "bound", "searched");
	for (i = 1; i < argc; i++)
		if (measure(argv[i], &err) < 0) {
			fprintf(stderr, "plan_quality: %s\n", err.text);
			return 1;
		}
	return 0;
}
