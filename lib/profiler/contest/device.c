/* SPDX-License-Identifier: BSD-3-Clause */
#include "profiler/contest/device.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "profiler/autotune/own_gpu.h"

int gf_contest_device_check(const struct gf_contest_device *d, struct gf_error *err)
{
	const char *name = d->name ? d->name : "cpu";
	size_t index;
	int rc;

	if (strcmp(name, "cpu") == 0 || strcmp(name, "auto") == 0)
		return 0;
	rc = gf_own_gpu_read(name, &index, err);
	if (rc != -ENOENT)
		return rc;
	return gf_error_set(err, -EINVAL, "want cpu, cuda, cuda:N or auto, got \"%.40s\"", name);
}

/* Collective. Remembers the reason if NCCL cannot be used. */
static int choose_nccl(struct gf_comm *c, struct gf_contest_device *d, struct gf_error *err)
{
	struct gf_error why = {""};
	int rc = gf_own_gpu_nccl(&gf_gpus_here, c, d->gpu, &d->nccl, &why);

	if (rc && c->broken)
		return gf_error_set(err, rc, "%s", why.text);
	if (rc)
		snprintf(d->why, sizeof(d->why), "%.199s", why.text);
	return 0;
}

int gf_contest_device_open(struct gf_comm *c, struct gf_contest_device *d, struct gf_error *err)
{
	const char *name = d->name ? d->name : "cpu";
	const bool may_be_host = strcmp(name, "auto") == 0;
	struct gf_error why = {""};
	size_t index = GF_ANY_GPU;
	int rc;

	if (strcmp(name, "cpu") == 0)
		return 0;
	(void)gf_own_gpu_read(name, &index, NULL);
	rc = gf_own_gpu_open(&gf_gpus_here, c, index, &d->gpu, &why);
	rc = gf_comm_agree(c, rc, &why);
	if (!rc)
		return choose_nccl(c, d, err);
	gf_contest_device_close(d);
	if (may_be_host && !c->broken)
		return 0;
	return gf_error_set(err, rc, "%s", why.text);
}

void gf_contest_device_suit(struct gf_contest_device *d, const struct gf_element *e)
{
	if (!d->nccl || (e->dtype == GF_F32 && e->op == GF_OP_SUM))
		return;
	d->nccl = NULL;
	snprintf(d->why, sizeof(d->why), "between GPUs this build adds f32, got %s of %s",
		 gf_op_names[e->op], gf_dtype_names[e->dtype]);
}

void gf_contest_device_close(struct gf_contest_device *d)
{
	gf_gpu_close(d->gpu);
	d->gpu = NULL;
	d->nccl = NULL;
}

const char *gf_contest_device_kind(const struct gf_contest_device *d)
{
	return d->gpu ? d->gpu->ops->name : "cpu";
}

const char *gf_contest_device_transport(const struct gf_contest_device *d,
					const struct gf_comm *comm)
{
	return d->nccl ? d->nccl->name : comm->ops->name;
}

const char *gf_contest_device_library(const struct gf_contest_device *d, const struct gf_comm *comm,
				      char text[GF_CONTEST_LIBRARY_TEXT])
{
	const struct gf_nccl_ops *nccl = d->nccl;

	if (nccl)
		snprintf(text, GF_CONTEST_LIBRARY_TEXT, "NCCL %d.%d.%d", nccl->version / 10000,
			 nccl->version / 100 % 100, nccl->version % 100);
	else
		snprintf(text, GF_CONTEST_LIBRARY_TEXT, "%s", comm->library);
	return text;
}
