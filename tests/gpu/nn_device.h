/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef GF_TESTS_GPU_NN_DEVICE_H
#define GF_TESTS_GPU_NN_DEVICE_H

#include <stdio.h>

#include "base/heap.h"
#include "cuda/gpu.h"
#include "nn/net.h"

/*
 * The backend on a device, with arrays of the host: what the tests of lib/nn know to use. A test is
 * linked with nn_host.c, whose device is emulated, or with nn_cuda.c. Arrays on the device lie one
 * element off an alignment, as a caller's may.
 */
/* NULL, or why there is no device; then the test is skipped. */
const char *nn_device_open(struct gf_gpu **gpu, struct gf_gpu_stream **stream);
extern const bool nn_device_is_host;

/* f32 against ref, for nn_run.h: on a GPU convolutions may go by transforms (Winograd, FFT), which
 * round more. */
#define TOLERANCE_BACKEND (nn_device_is_host ? 1e-4 : 1e-3)

extern const struct gf_backend *const nn_device_backends[]; /* NULL-ended */

/* A copy on the device; with NULL only room. */
float *nn_device_put(const void *from, size_t count);
void nn_device_get(void *to, const float *from, size_t count);
void nn_device_drop(float *p);

#endif
