/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef GF_TESTS_GPU_MEMORY_H
#define GF_TESTS_GPU_MEMORY_H

#include "gf_gpu_kernels.h"

/*
 * Where the kernel tests run: on a GPU (memory_cuda.c), or emulated on this processor
 * (memory_host.c), chosen by the linker. Failures end the test.
 */
/* NULL, or why there is none; then the test is skipped. */
const char *device_open(void);
struct gf_gpu_stream *device_stream(void);
/* Of that many bytes, 256-aligned, with a guard at the end that device_check looks at; freed by
 * device_reset. */
void *device_alloc(size_t size_bytes);
void device_write(void *to, const void *from, size_t size_bytes);
/* After everything enqueued has run. */
void device_read(void *to, const void *from, size_t size_bytes);
/* The name of an allocation whose guard was written over, or NULL. */
const char *device_check(void);
void device_reset(void);

#endif
