/* SPDX-License-Identifier: BSD-3-Clause */
#include "engine/agree.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/digest.h"
#include "base/heap.h"
#include "coll/runnable.h"

int gf_agree_takes(const struct gf_comm *comm, const struct gf_plan *plan,
		   struct gf_error *err)
{
	int rc = gf_plan_runnable(plan, err);

	rc = rc ? rc : gf_plan_check(plan, err);
	return rc ? rc : gf_plan_check_ranks(plan, comm->ranks, err);
}

int gf_agree_same(struct gf_comm *comm, const struct gf_plan *plan,
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

/* NCCL would refuse in words of its own, and later. */
int gf_agree_own_gpus(struct gf_comm *comm, const struct gf_gpu *gpu,
		      struct gf_error *err)
{
	struct place {
		int host;
		char pci[sizeof(gpu->pci)];
	} own = {.host = comm->host}, *all;
	int a, b, rc;

	memcpy(own.pci, gpu->pci, sizeof(own.pci));
	all = gf_xcalloc((size_t)comm->ranks, sizeof(*all));
	rc = gf_comm_allgather(comm, &own, sizeof(own), all, err);
	for (a = 0; a < comm->ranks && !rc; a++)
		for (b = a + 1; b < comm->ranks && !rc; b++)
			if (all[a].host == all[b].host &&
			    !strcmp(all[a].pci, all[b].pci))
				rc = gf_error_set(
					err, -EINVAL,
					"ranks %d and %d both use GPU %s: NCCL "
					"wants a GPU for each rank, want at "
					"most as many ranks on a host as it "
					"has GPUs",
					a, b, all[a].pci);
	free(all);
	return rc;
}
