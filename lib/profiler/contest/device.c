/* SPDX-License-Identifier: BSD-3-Clause */
#include "profiler/contest/device.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "base/heap.h"
#include "collectives/algorithm.h"
#include "documents/library_tuning.h"
#include "profiler/autotune/own_gpu.h"
#include "profiler/contest/row_report.h"
#include "transport/transport.h"

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

static void add(struct gf_text *out, const char *kind, const char *name, const char *description)
{
	gf_text_addf(out, "%-9s  %-12s  %s\n", kind, name, description);
}

static void add_variants(struct gf_text *out, const struct gf_dialect *d)
{
	GF_RELEASED(gf_text_release) struct gf_text words = {0};

	gf_text_addf(&words, "%s's all-reduce, told its algorithm%s: default", d->name,
		     d->protocols ? ", protocol and perhaps channels" : "");
	for (size_t i = 0; d->algorithms[i].name; i++)
		gf_text_addf(&words, ", %s%s", d->algorithms[i].name,
			     d->algorithms[i].segments ? ".SIZE" : "");
	for (size_t i = 0; d->protocols && d->protocols[i].name; i++)
		gf_text_addf(&words, "%s%s", i ? ", " : "; ", d->protocols[i].name);
	add(out, "variant", "library:...", words.data);
}

static void add_gpu(struct gf_text *out, int index)
{
	struct gf_error why = {""};
	struct gf_gpu *gpu = NULL;
	char name[32], text[256];

	snprintf(name, sizeof(name), "cuda:%d", index);
	if (gf_gpu_open(index, &gpu, &why))
		snprintf(text, sizeof(text), "%.200s", why.text);
	else
		snprintf(text, sizeof(text), "%s, %s, sm_%d%d, %zu MiB", gpu->name, gpu->pci,
			 gpu->major, gpu->minor, gpu->memory_bytes >> 20);
	add(out, "device", name, text);
	gf_gpu_close(gpu);
}

/* The GPUs that this process sees and NCCL's version, or why there are none. */
static void add_devices(struct gf_text *out)
{
	struct gf_contest_device d = {0};
	struct gf_error why = {""};
	char version[GF_CONTEST_LIBRARY_TEXT];
	int count = gf_gpu_count(&why), i;

	add(out, "device", "cpu", "the host's processors");
	if (!count)
		add(out, "device", "no cuda", why.text);
	for (i = 0; i < count; i++)
		add_gpu(out, i);
	if (gf_nccl_load(&d.nccl, &why))
		add(out, "between", "no nccl", why.text);
	else
		add(out, "between", "nccl", gf_contest_device_library(&d, NULL, version));
}

char *gf_contest_list(void)
{
	struct gf_text out = {0};

	for (size_t i = 0; gf_algorithms[i]; i++)
		add(&out, "algorithm", gf_algorithms[i]->name, gf_algorithms[i]->description);
	add(&out, "variant", "library:blocking", "MPI_Allreduce; library alone is MPI_Iallreduce");
	add_variants(&out, gf_dialect_of("Open MPI"));
	add_variants(&out, gf_dialect_of("NCCL"));
	for (size_t i = 0; gf_sparse_algorithms[i]; i++)
		add(&out, "sparse", gf_sparse_algorithms[i]->name,
		    gf_sparse_algorithms[i]->description);
	for (size_t i = 0; gf_codecs[i].name; i++)
		add(&out, "codec", gf_codecs[i].name, gf_codecs[i].description);
	for (size_t i = 0; gf_transports[i]; i++)
		add(&out, "transport", gf_transports[i]->name, gf_transports[i]->description);
	add_devices(&out);
	return gf_text_take(&out);
}
