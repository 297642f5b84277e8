/* SPDX-License-Identifier: BSD-3-Clause */
#include "report/own_profile.h"

#include <math.h>
#include <string.h>

#include "base/heap.h"
#include "import/import.h"
#include "planner/refine.h"

/* Of a run of a plan, the model and network as the run showed them. */
static int refined(const char *path, const struct gf_plan *p,
		   struct gf_profile *out, struct gf_text *notes,
		   struct gf_error *err)
{
	struct gf_refined r = {0};
	int rc = gf_refine_trace(p, path, &r, notes, err);

	if (rc < 0)
		return rc;
	out->producer = gf_xstrdup("gf-report " GF_VERSION);
	out->model = gf_model_profile_copy(r.model);
	if (r.network)
		out->network = gf_network_copy(r.network);
	gf_processing_add(&out->processing, &r.processing);
	gf_refined_release(&r);
	return 0;
}

int gf_report_profile(const char *path, const struct gf_plan *p,
		      struct gf_profile *out, struct gf_text *notes,
		      struct gf_error *err)
{
	struct gf_import in = {
		.file = path, .forward_s = NAN, .backward_s = NAN};

	if (p)
		return refined(path, p, out, notes, err);
	return gf_import_file(&in, NULL, NULL, out, notes, err);
}
