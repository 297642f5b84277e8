/* SPDX-License-Identifier: BSD-3-Clause */
#include "nn_device.h"

const bool nn_device_is_host = false;

static struct gf_error err;

const char *nn_device_open(struct gf_gpu **gpu, struct gf_gpu_stream **stream)
{
	if (gf_gpu_open(0, gpu, &err) ||
	    (*gpu)->ops->stream_new(*gpu, false, stream, &err))
		return err.text;
	printf("%s, sm_%d%d\n", (*gpu)->name, (*gpu)->major, (*gpu)->minor);
	return NULL;
}
