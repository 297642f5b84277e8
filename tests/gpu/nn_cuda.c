/* SPDX-License-Identifier: BSD-3-Clause */
#include "nn_device.h"

const bool nn_device_is_host = false;

static struct gf_gpu *opened;
static struct gf_gpu_stream *its_stream;
static struct gf_error err;

const char *nn_device_open(struct gf_gpu **gpu, struct gf_gpu_stream **stream)
{
	if (!opened) {
		if (gf_gpu_open(0, &opened, &err))
			return err.text;
		if (opened->ops->stream_new(opened, false, &its_stream, &err))
			return err.text;
		printf("%s, sm_%d%d\n", opened->name, opened->major, opened->minor);
	}
	*gpu = opened;
	*stream = its_stream;
	return NULL;
}
