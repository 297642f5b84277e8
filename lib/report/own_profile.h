/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef GF_REPORT_OWN_PROFILE_H
#define GF_REPORT_OWN_PROFILE_H

#include "base/text.h"
#include "doc/plan.h"
#include "doc/profile.h"

/* The profile that a job's traces hold: by its plan, as gf-plan --refine finds
 * it, or (NULL) as gf-profile --import reads them. Fills a zeroed profile;
 * notes: lines for the user. -EINVAL: they hold none, with what is missing. */
int gf_report_profile(const char *path, const struct gf_plan *p,
		      struct gf_profile *out, struct gf_text *notes,
		      struct gf_error *err);

#endif
