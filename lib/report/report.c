/* SPDX-License-Identifier: BSD-3-Clause */
#include "report/report_parts.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/heap.h"

int gf_report_see(struct gf_report_whole *r, const struct gf_import_job *job,
		  struct gf_error *err)
{
	size_t i, found = 0;

	r->job = job;
	r->kind = job->imported.kind;
	r->nranks = job->nranks;
	r->ranks = gf_xcalloc(job->nranks + 1, sizeof(*r->ranks));
	for (i = 0; i < job->nranks; i++)
		found += job->ranks[i].nsteps + job->ranks[i].nmessages;
	if (found == 0)
		return gf_error_set(err, -EINVAL,
				    "want steps or messages, found none");
	gf_report_steps(r);
	gf_report_arrivals(r);
	return 0;
}

int gf_report_find(struct gf_report_whole *r, const struct gf_import_job *job,
		   const struct gf_documents *d, const struct gf_profile *own,
		   struct gf_text *notes, struct gf_error *err)
{
	struct gf_error why = {""};
	int rc = gf_report_see(r, job, err);

	if (rc < 0)
		return rc;
	gf_report_expect(r, d);
	if (!job->timed)
		gf_text_addf(&r->why_not,
			     "such files do not say when steps begin");
	else if ((size_t)r->of_ranks > r->nranks)
		gf_text_addf(&r->why_not,
			     "want the traces of all %d ranks, found %zu",
			     r->of_ranks, r->nranks);
	else if (gf_stragglers_find(job, d->plan, &r->stragglers, &why) < 0)
		gf_text_addf(&r->why_not, "%s", why.text);
	return gf_report_plan(r, d, own, notes, err);
}

void gf_report_whole_release(struct gf_report_whole *r)
{
	if (r->best)
		gf_plan_release(r->best);
	free(r->best);
	free(r->scale);
	free(r->sizes);
	free(r->ranks);
	gf_stragglers_release(&r->stragglers);
	gf_text_release(&r->why_not);
	memset(r, 0, sizeof(*r));
}
