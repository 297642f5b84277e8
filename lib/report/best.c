/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/heap.h"
#include "coll/algorithm.h"
#include "doc/plan_brief.h"
#include "planner/make.h"
#include "planner/plan_sweep.h"
#include "report/report_parts.h"
#include "sim/price.h"

/* No cluster that is planned for is larger. */
enum { SCALE_MOST = 4096, DOUBLINGS_MOST = 12 };

/* What the cheapest algorithm takes; NAN: nothing is known. */
static double expected_s(const struct gf_fabric *f, double bytes)
{
	double best_s = NAN;
	size_t i;

	for (i = 0; gf_algorithms[i]; i++) {
		const struct gf_priced m = {.algorithm = gf_algorithms[i]->name,
					    .bytes = bytes};
		struct gf_price p;

		if (gf_price_message(f, &m, &p, NULL) == 0)
			best_s = fmin(best_s, gf_line_s(&p.line, bytes));
	}
	return best_s;
}

void gf_report_expect(struct gf_report_whole *r, const struct gf_documents *d)
{
	struct gf_fabric f = {
		.network = d->profile ? d->profile->network : NULL,
		.levels = d->topology ? d->topology->levels : NULL,
		.nlevels = d->topology ? d->topology->nlevels : 0,
	};
	size_t i;

	for (i = 0; i < r->nsizes && (f.network || f.levels); i++) {
		struct gf_report_size *s = &r->sizes[i];

		f.ranks = s->ranks;
		if (s->kind == GF_COLLECTIVE_ALL_REDUCE && s->ranks > 1)
			s->expected_s = expected_s(&f, (double)s->size_bytes);
	}
}

/* --- the best plan, and other ranks --------------------------------------- */

static int add_scale(struct gf_report_whole *r, struct gf_text *notes,
		     struct gf_error *err)
{
	struct gf_plan *plans[] = {r->best};
	char *names[] = {(char *)"best"};
	int ranks[DOUBLINGS_MOST];
	struct gf_sweep s = {.plans = plans,
			     .names = names,
			     .nplans = 1,
			     .ranks = ranks,
			     .replan = true};
	struct gf_swept found = {0};
	size_t i;
	int n = r->best->ranks, rc;

	for (; n <= SCALE_MOST && s.nranks < DOUBLINGS_MOST; n *= 2)
		ranks[s.nranks++] = n;
	rc = gf_sweep_run(&s, &found, err);
	if (rc < 0)
		return rc;
	r->scale = gf_xcalloc(found.nrows + 1, sizeof(*r->scale));
	for (i = 0; i < found.nrows; i++) {
		const struct gf_row *row = &found.rows[i];

		if (row->plan == r->best) /* the plan of fewer ranks */
			continue;
		if (row->left_out) {
			gf_text_addf(notes, "%d ranks are left out: %s\n",
				     row->outcome.ranks, row->left_out);
			continue;
		}
		r->scale[r->nscale++] = (struct gf_report_scale){
			.ranks = row->outcome.ranks,
			.iteration_s = row->outcome.iteration_s,
			.low_s = row->outcome.low_s,
			.high_s = row->outcome.high_s,
			.efficiency = row->outcome.efficiency,
		};
		if (!r->knee && row->outcome.efficiency < GF_REPORT_KNEE)
			r->knee = row->outcome.ranks;
	}
	gf_swept_release(&found);
	return 0;
}

int gf_report_plan(struct gf_report_whole *r, const struct gf_documents *d,
		   const struct gf_profile *own, struct gf_text *notes,
		   struct gf_error *err)
{
	struct gf_documents known = {.topology = d->topology,
				     .plan = d->plan,
				     .profile = (struct gf_profile *)own};
	const bool whole = d->plan && !d->plan->rule;
	const char *codecs[GF_CODECS + 1];
	struct gf_request request = {0};
	struct gf_error why = {""};
	struct gf_axes axes;
	int rc = 0;

	if (!own || !own->model)
		return 0;
	gf_axes_init(&axes);
	request.axes = &axes;
	/* what the job does to gradients stays */
	if (whole) {
		gf_axes_follow(&axes, d->plan);
		request.codecs = gf_plan_codecs(d->plan, codecs);
	}
	gf_request_documents(&request, &known);
	request.rule = NULL;
	if (!request.fabric.ranks)
		request.fabric.ranks = r->of_ranks;
	if (request.fabric.ranks < 2 || request.fabric.ranks > SCALE_MOST)
		rc = gf_error_set(&why, -EINVAL, "want 2 to %d ranks, found %d",
				  SCALE_MOST, request.fabric.ranks);
	else if (!request.fabric.network && !request.fabric.levels)
		rc = gf_error_set(&why, -EINVAL,
				  "nothing says what an all-reduce costs "
				  "(--topology)");
	if (rc == 0) {
		r->best = gf_xcalloc(1, sizeof(*r->best));
		rc = gf_request_plan(&request, r->best, notes, &why);
	}
	gf_axes_release(&axes);
	if (rc < 0) {
		gf_text_addf(notes, "no plan is made: %s\n", why.text);
		free(r->best);
		r->best = NULL;
		return 0;
	}
	return add_scale(r, notes, err);
}
