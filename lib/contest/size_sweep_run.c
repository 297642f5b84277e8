/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/heap.h"
#include "contest/plan_exchange.h"
#include "contest/size_sweep.h"
#include "coll/runnable.h"

static int run_counts(struct gf_contest_allreduce *bench,
		      const struct gf_contest_ways *ways, const size_t *counts,
		      size_t ncounts,
		      const struct gf_contest_progress *progress,
		      struct gf_contest_rows *rows, struct gf_error *err)
{
	size_t i;
	int rc = 0;

	rows->list = gf_xcalloc(ncounts * ways->count, sizeof(*rows->list));
	rows->count = 0;
	for (i = 0; i < ncounts && rc == 0; i++) {
		if (progress)
			progress->tell(progress->ctx,
				       (double)i / (double)ncounts, counts[i]);
		rc = gf_contest_allreduce_size(bench, ways->list, ways->count,
					       counts[i],
					       rows->list + rows->count, err);
		rows->count += ways->count;
	}
	return rc;
}

/* A rule says what auto is, and nothing else. */
static int check_rule(const struct gf_contest_sweep *s,
		      const struct gf_contest_allreduce_config *config,
		      struct gf_error *err)
{
	size_t i;

	for (i = 0; config->rule && s->algorithms[i]; i++)
		if (strcmp(s->algorithms[i], "auto") == 0)
			return 0;
	if (!config->rule)
		return 0;
	return gf_error_set(err, -EINVAL,
			    "--algorithms: want auto among them with a rule, "
			    "which says what it is, got none");
}

int gf_contest_sweep_run(const struct gf_contest_sweep *s,
			 const struct gf_contest_allreduce_config *config,
			 const struct gf_contest_progress *progress,
			 struct gf_contest_rows *rows, struct gf_text *remarks,
			 struct gf_error *err)
{
	size_t ncounts;
	size_t *counts = gf_contest_sweep_counts(s, config->element.size_bytes,
						 &ncounts);
	struct gf_contest_allreduce *bench = NULL;
	struct gf_contest_ways ways = {0};
	int rc = check_rule(s, config, err);

	if (rc == 0)
		rc = gf_contest_sweep_ways(s, config, counts[ncounts - 1],
					   &ways, remarks, err);
	if (rc == 0)
		rc = gf_contest_allreduce_open(config, counts[ncounts - 1],
					       &bench, err);
	if (rc == 0)
		rc = run_counts(bench, &ways, counts, ncounts, progress, rows,
				err);
	gf_contest_allreduce_close(bench);
	free(ways.list);
	free(counts);
	return rc;
}

int gf_contest_plan_run(const struct gf_plan *plan,
			const struct gf_contest_allreduce_config *config,
			struct gf_contest_rows *rows, struct gf_error *err)
{
	struct gf_contest_allreduce *bench = NULL;
	size_t elems = 0, i;
	int rc = gf_plan_runnable(plan, err);

	if (rc == 0 && plan->ranks != config->comm->ranks)
		rc = gf_error_set(err, -EINVAL,
				  "the plan is for %d ranks, this job has %d",
				  plan->ranks, config->comm->ranks);
	if (rc == 0) {
		rc = gf_contest_gradients(&config->element, err);
		if (rc)
			gf_error_prefix(err, "a plan's messages");
	}
	if (rc == 0 &&
	    !gf_selection_has(&plan->selection, GF_SELECT_LOSSLESS)) {
		rc = gf_contest_exchange_check(plan, config, err);
		rows->count = 1;
		rows->list = gf_xcalloc(1, sizeof(*rows->list));
		return rc ? rc
			  : gf_contest_exchange_run(plan, config, rows->list,
						    err);
	}
	for (i = 0; i < plan->nmessages; i++)
		elems += gf_plan_message_elems(plan, i);
	if (rc == 0)
		rc = gf_contest_allreduce_open(config, elems, &bench, err);
	if (rc)
		return rc;
	rows->count = plan->nmessages + 1;
	rows->list = gf_xcalloc(rows->count, sizeof(*rows->list));
	rc = gf_contest_allreduce_plan(bench, plan, rows->list, err);
	gf_contest_allreduce_close(bench);
	return rc;
}
