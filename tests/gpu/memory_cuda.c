/* SPDX-License-Identifier: BSD-3-Clause */
#include "memory.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cuda/gpu.h"

#define GUARD_BYTES 256
#define MOST        64

static struct gf_gpu *gpu;
static struct gf_gpu_stream *stream;
static struct {
	char *at;
	size_t size_bytes;
} blocks[MOST];
static size_t nblocks;
static struct gf_error err;

static void must(int rc)
{
	if (!rc)
		return;
	printf("%s\n", err.text);
	exit(1);
}

const char *device_open(void)
{
	if (gf_gpu_open(0, &gpu, &err))
		return err.text;
	must(gpu->ops->stream_new(gpu, false, &stream, &err));
	printf("%s, sm_%d%d\n", gpu->name, gpu->major, gpu->minor);
	return NULL;
}

struct gf_gpu_stream *device_stream(void)
{
	return stream;
}

void *device_alloc(size_t size_bytes)
{
	void *p;

	if (nblocks == MOST)
		abort();
	must(gpu->ops->alloc(gpu, size_bytes + GUARD_BYTES, &p, &err));
	must(gpu->ops->zero(gpu, stream, p, size_bytes + GUARD_BYTES, &err));
	blocks[nblocks].at = p;
	blocks[nblocks++].size_bytes = size_bytes;
	return p;
}

void device_write(void *to, const void *from, size_t size_bytes)
{
	must(gpu->ops->copy(gpu, stream, to, from, size_bytes, GF_GPU_TO_DEVICE, &err));
	must(gpu->ops->stream_sync(gpu, stream, &err));
}

void device_read(void *to, const void *from, size_t size_bytes)
{
	must(gpu->ops->check(gpu, &err));
	must(gpu->ops->copy(gpu, stream, to, from, size_bytes, GF_GPU_TO_HOST, &err));
	must(gpu->ops->stream_sync(gpu, stream, &err));
}

const char *device_check(void)
{
	unsigned char guard[GUARD_BYTES];

	for (size_t b = 0; b < nblocks; b++) {
		device_read(guard, blocks[b].at + blocks[b].size_bytes, sizeof(guard));
		for (size_t i = 0; i < sizeof(guard); i++)
			if (guard[i])
				return "written behind its end";
	}
	return NULL;
}

void device_reset(void)
{
	must(gpu->ops->stream_sync(gpu, stream, &err));
	while (nblocks > 0)
		gpu->ops->free(gpu, blocks[--nblocks].at);
}
