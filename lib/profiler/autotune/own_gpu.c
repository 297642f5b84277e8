/* SPDX-License-Identifier: BSD-3-Clause */
#include "profiler/autotune/own_gpu.h"

#include <stdio.h>
#include <string.h>

#include "base/units.h"
#include "runtime/engine/engine.h"

#define GPU  "cuda"
#define MOST 1023 /* the highest number that a name may have */

const struct gf_gpu_source gf_gpus_here = {
	.count = gf_gpu_count,
	.open = gf_gpu_open,
	.nccl = gf_nccl_load,
};

int gf_own_gpu_read(const char *device, size_t *index, struct gf_error *err)
{
	long long n;
	int rc;

	if (strncmp(device, GPU, strlen(GPU)) != 0)
		return -ENOENT;
	device += strlen(GPU);
	if (*device && *device != ':')
		return -ENOENT;
	*index = GF_ANY_GPU;
	if (!*device)
		return 0;
	rc = gf_units_int(device + 1, 0, MOST, &n, err);
	if (!rc)
		*index = (size_t)n;
	return rc;
}

int gf_own_gpu_open(const struct gf_gpu_source *from, const struct gf_comm *comm, size_t index,
		    struct gf_gpu **gpu, struct gf_error *err)
{
	struct gf_error why = {""};
	int n = from->count(&why), rc;

	if (!n)
		return gf_error_set(err, -ENODEV, "%s", why.text);
	if (index != GF_ANY_GPU && index >= (size_t)n)
		return gf_error_set(err, -ENODEV, "--device cuda:%zu: this host has %d GPU%s",
				    index, n, n == 1 ? "" : "s");
	n = index == GF_ANY_GPU ? comm->local_rank % n : (int)index;
	rc = from->open(n, gpu, err);
	return rc == -ENOTSUP ? -ENODEV : rc;
}

int gf_own_gpu_nccl(const struct gf_gpu_source *from, struct gf_comm *comm,
		    const struct gf_gpu *gpu, const struct gf_nccl_ops **nccl, struct gf_error *err)
{
	const struct gf_nccl_ops *found = NULL;
	char version[16] = "";
	int rc = from->nccl(&found, err);

	rc = gf_comm_agree(comm, rc == -ENOTSUP ? -ENODEV : rc, err);
	if (rc)
		return rc;
	snprintf(version, sizeof(version), "%d", found->version);
	rc = gf_comm_same_text(comm, "NCCL's version", version, err);
	rc = rc ?: gf_engine_own_gpus(comm, gpu, err);
	if (!rc)
		*nccl = found;
	return rc;
}
