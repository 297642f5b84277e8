/* SPDX-License-Identifier: BSD-3-Clause */
#include "bench/device.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/heap.h"
#include "base/units.h"
#include "rt/device_engine.h"

/* -1: by the rank's number on its host; the name passed the check. */
static int index_of(const char *name)
{
	const char *colon = strchr(name, ':');

	return colon ? atoi(colon + 1) : -1;
}

int gf_bench_device_check(const struct gf_bench_device *d, struct gf_error *err)
{
	const char *name = d->name ? d->name : "cpu";
	long long index;

	if (strcmp(name, "cpu") == 0 || strcmp(name, "cuda") == 0 ||
	    strcmp(name, "auto") == 0)
		return 0;
	if (strncmp(name, "cuda:", 5) == 0)
		return gf_units_int(name + 5, 0, 1 << 20, &index, err);
	return gf_error_set(err, -EINVAL,
			    "want cpu, cuda, cuda:N or auto, got %.40s", name);
}

/* Collective: is it so everywhere? */
static int everywhere(struct gf_comm *c, int mine, int *all,
		      struct gf_error *err)
{
	int *each = gf_xcalloc((size_t)c->ranks, sizeof(*each)), r;
	int rc = gf_comm_allgather(c, &mine, sizeof(mine), each, err);

	*all = mine;
	for (r = 0; r < c->ranks && rc == 0; r++)
		if (each[r] != *all)
			*all = 0;
	free(each);
	return rc;
}

static void remember(struct gf_bench_device *d, const char *why)
{
	snprintf(d->why, sizeof(d->why), "%.199s", why);
}

/* Collective. */
static int choose_nccl(struct gf_comm *c, struct gf_bench_device *d,
		       struct gf_error *err)
{
	const struct gf_nccl_ops *nccl = NULL;
	struct gf_error why = {""};
	int version = 0, rc;

	if (gf_nccl_load(&nccl, &why) == 0)
		version = nccl->version;
	rc = everywhere(c, version, &version, err);
	if (rc)
		return rc;
	if (!version) {
		remember(d, nccl ? "not the same NCCL on all ranks" : why.text);
		return 0;
	}
	rc = gf_device_own_gpu_each(c, d->gpu, &why);
	if (rc == -EINVAL)
		remember(d, why.text);
	else if (rc)
		return gf_error_set(err, rc, "%s", why.text);
	else
		d->nccl = nccl;
	return 0;
}

int gf_bench_device_open(struct gf_comm *c, struct gf_bench_device *d,
			 struct gf_error *err)
{
	const char *name = d->name ? d->name : "cpu";
	struct gf_error why = {""};
	int count, all, index, rc;

	if (strcmp(name, "cpu") == 0)
		return 0;
	count = gf_gpu_count(&why);
	if (strcmp(name, "auto") == 0) {
		rc = everywhere(c, count > 0, &all, err);
		if (rc || !all)
			return rc;
	}
	rc = count ? 0 : gf_error_set(err, -ENOTSUP, "%s", why.text);
	index = index_of(name);
	if (index < 0 && count)
		index = c->local_rank % count;
	if (rc == 0)
		rc = gf_gpu_open(index, &d->gpu, err);
	rc = gf_comm_agree(c, rc, err);
	return rc ? rc : choose_nccl(c, d, err);
}

void gf_bench_device_close(struct gf_bench_device *d)
{
	gf_gpu_close(d->gpu);
	d->gpu = NULL;
	d->nccl = NULL;
}

const char *gf_bench_device_kind(const struct gf_bench_device *d)
{
	return d->gpu ? d->gpu->ops->name : "cpu";
}

const char *gf_bench_device_transport(const struct gf_bench_device *d,
				      const struct gf_comm *comm)
{
	return d->nccl ? d->nccl->name : comm->ops->name;
}

static void list_gpu(int index,
		     void (*add)(void *ctx, const char *kind, const char *name,
				 const char *description),
		     void *ctx)
{
	struct gf_error why = {""};
	struct gf_gpu *gpu = NULL;
	char name[32], text[256];

	snprintf(name, sizeof(name), "cuda:%d", index);
	if (gf_gpu_open(index, &gpu, &why))
		snprintf(text, sizeof(text), "%.200s", why.text);
	else
		snprintf(text, sizeof(text), "%s, %s, sm_%d%d, %zu MiB",
			 gpu->name, gpu->pci, gpu->major, gpu->minor,
			 gpu->memory_bytes >> 20);
	add(ctx, "device", name, text);
	gf_gpu_close(gpu);
}

void gf_bench_device_list(void (*add)(void *ctx, const char *kind,
				      const char *name,
				      const char *description),
			  void *ctx)
{
	const struct gf_nccl_ops *nccl;
	struct gf_error why = {""};
	char version[32];
	int count = gf_gpu_count(&why), i;

	add(ctx, "device", "cpu", "the host's processors");
	if (!count)
		add(ctx, "device", "no cuda", why.text);
	for (i = 0; i < count; i++)
		list_gpu(i, add, ctx);
	if (gf_nccl_load(&nccl, &why)) {
		add(ctx, "between", "no nccl", why.text);
		return;
	}
	snprintf(version, sizeof(version), "version %d.%d.%d",
		 nccl->version / 10000, nccl->version / 100 % 100,
		 nccl->version % 100);
	add(ctx, "between", "nccl", version);
}
