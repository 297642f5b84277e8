/* SPDX-License-Identifier: BSD-3-Clause */
/* Chrome traces of runs, as gf-plan --refine and gf-report read them, beside a plan that they may
 * be of. */
#include "documents/stream.h"
#include "harness.h"
#include "imports/report/report.h"
#include "planner/refine.h"

static const struct gf_plan *plan_of(void)
{
	static struct gf_documents d;
	struct gf_error err = {""};
	const char *source = getenv("GF_SOURCE");
	char *path;

	if (d.plan)
		return d.plan;
	path = gf_xasprintf("%s/tests/data/valid/plan-six.json", source ? source : ".");
	if (gf_documents_take(&d, path, &err)) {
		printf("%s\n", err.text);
		exit(1);
	}
	free(path);
	return d.plan;
}

static bool try_trace(const char *data, size_t size, struct gf_rng *rng)
{
	const struct gf_plan *p = plan_of();
	struct gf_measured m;
	struct gf_stragglers s = {0};
	struct gf_import_job job = {0};
	const char *path;
	struct gf_error err = {""};
	int rc = gf_measured_read(data, size, "f", p, &m, &err);
	int found;

	(void)rng;
	if (rc)
		harness_expect_line(&err, "f");
	else
		gf_measured_release(&m);
	path = harness_put("trace", data, size);
	found = gf_import_job_read(&job, &path, 1, p, &err);
	if (found == 0)
		found = gf_stragglers_find(&job, p, &s, &err);
	gf_import_job_release(&job);
	if (found)
		harness_expect_line(&err, NULL);
	else
		gf_stragglers_release(&s);
	return !rc || !found;
}

const struct harness harness = {.try = try_trace};
