/* SPDX-License-Identifier: BSD-3-Clause */
#include "host_gpu.h"
#include "nn_device.h"

const bool nn_device_is_host = true;

const char *nn_device_open(struct gf_gpu **gpu, struct gf_gpu_stream **stream)
{
	*gpu = host_gpu();
	*stream = host_gpu_stream();
	return NULL;
}
