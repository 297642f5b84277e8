/* SPDX-License-Identifier: BSD-3-Clause */
#include "engine/agree.h"

#include <stdlib.h>
#include <string.h>

#include "base/digest.h"
#include "engine/runnable.h"

int gf_job_takes(const struct gf_comm *comm, const struct gf_plan *plan,
		 struct gf_error *err)
{
	int rc = gf_plan_runnable(plan, err);

	rc = rc ? rc : gf_plan_check(plan, err);
	return rc ? rc : gf_plan_check_ranks(plan, comm->ranks, err);
}

int gf_job_agrees(struct gf_comm *comm, const struct gf_plan *plan,
		  const char *what, const char *text, struct gf_error *err)
{
	char digest[GF_DIGEST_TEXT], *written;
	int rc;

	rc = gf_comm_same_text(comm, "version", GF_VERSION, err);
	rc = rc ? rc : gf_comm_same_text(comm, what, text, err);
	if (rc)
		return rc;
	written = gf_plan_write(plan);
	gf_digest_text(written, strlen(written), digest);
	free(written);
	return gf_comm_same_text(comm, "plan", digest, err);
}
