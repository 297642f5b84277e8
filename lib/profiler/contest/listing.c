/* SPDX-License-Identifier: BSD-3-Clause */
#include "profiler/contest/row_report.h"

#include <stdio.h>

#include "profiler/contest/device.h"
#include "collectives/codecs/codec.h"
#include "collectives/algorithm.h"
#include "transport/transport.h"
#include "documents/library_tuning.h"

static void add(struct gf_text *out, const char *kind, const char *name, const char *description)
{
	gf_text_addf(out, "%-9s  %-12s  %s\n", kind, name, description);
}

static void add_variants(struct gf_text *out, const struct gf_dialect *d)
{
	struct gf_text words = {0};
	size_t i;

	gf_text_addf(&words, "%s's all-reduce, told its algorithm%s: default", d->name,
		     d->protocols ? ", protocol and perhaps channels" : "");
	for (i = 0; d->algorithms[i].name; i++)
		gf_text_addf(&words, ", %s%s", d->algorithms[i].name,
			     d->algorithms[i].segments ? ".SIZE" : "");
	for (i = 0; d->protocols && d->protocols[i].name; i++)
		gf_text_addf(&words, "%s%s", i ? ", " : "; ", d->protocols[i].name);
	add(out, "variant", "library:...", words.data);
	gf_text_release(&words);
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
	size_t i;

	for (i = 0; gf_algorithms[i]; i++)
		add(&out, "algorithm", gf_algorithms[i]->name, gf_algorithms[i]->description);
	add(&out, "variant", "library:blocking", "MPI_Allreduce; library alone is MPI_Iallreduce");
	add_variants(&out, gf_dialect_of("Open MPI"));
	add_variants(&out, gf_dialect_of("NCCL"));
	for (i = 0; gf_sparse_algorithms[i]; i++)
		add(&out, "sparse", gf_sparse_algorithms[i]->name,
		    gf_sparse_algorithms[i]->description);
	for (i = 0; gf_codecs[i].name; i++)
		add(&out, "codec", gf_codecs[i].name, gf_codecs[i].description);
	for (i = 0; gf_transports[i]; i++)
		add(&out, "transport", gf_transports[i]->name, gf_transports[i]->description);
	add_devices(&out);
	return gf_text_take(&out);
}
