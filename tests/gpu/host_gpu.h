/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef GF_TESTS_GPU_HOST_GPU_H
#define GF_TESTS_GPU_HOST_GPU_H

#ifdef __cplusplus
extern "C" {
#endif
#include "cuda/gpu.h"
#ifdef __cplusplus
}
#include <functional>

/* Runs call when its turn comes in the stream. */
void host_gpu_enqueue(struct gf_gpu_stream *s, std::function<void()> call);

extern "C" {
#endif

/*
 * A GPU that is this processor, for tests of code that only enqueues. Streams keep their work until
 * a caller waits for them: emulated kernels, copies, cuDNN and cuBLAS (fake_math). Memory is filled
 * with NaN and has guards. Calls that a GPU would refuse or get wrong end the test with a line.
 */
struct gf_gpu *host_gpu(void);
struct gf_gpu_stream *host_gpu_stream(void);

/* Since the program began. */
struct host_gpu_counts {
	size_t allocations; /* and frees */
	size_t waits;       /* of the host */
	size_t enqueued;    /* on any stream */
	size_t elsewhere;   /* on another stream than host_gpu_stream() */
};
struct host_gpu_counts host_gpu_counts(void);

/* Free memory that it has; allocations beyond it fail. */
void host_gpu_set_free(size_t bytes);
/* Does [p, p + bytes) lie in one allocation on the device? */
bool host_gpu_has(const void *p, size_t bytes);
/* Ends the test. */
void host_gpu_refuse(const char *what) __attribute__((noreturn));

/* cuDNN and cuBLAS that compute naively what they are asked, and look closely at how. The call so
 * named (NULL: none) fails from now on. */
void fake_math_fail(const char *call);
/* Handles and descriptors that nobody has destroyed. */
size_t fake_math_left(void);
/* Without the libraries: 1 cuDNN, 2 cuBLAS, 0 both are there. Before they are first used. */
void fake_math_lack(int which);

#ifdef __cplusplus
}
#endif
#endif
