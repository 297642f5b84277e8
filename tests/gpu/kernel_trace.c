/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Writes what a GPU has done for a program, whatever the program is:
 *	CUDA_INJECTION64_PATH=kernel_trace.so GF_KERNEL_TRACE=FILE PROGRAM
 * CUDA's driver loads this library when the program first uses a GPU. CUPTI's activity records need
 * no right to the GPU's counters, which ncu asks for. FILE (kernels.tsv) has a line for each
 * kernel, copy and fill: begin and end in ns, stream, bytes (0 for a kernel), name.
 * kernel_table.awk makes tables.
 */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

#include <cupti.h>

#define BUFFER_BYTES ((size_t)8 << 20)

#define CALLS(CALL)                                                                                \
	CALL(cuptiActivityRegisterCallbacks)                                                       \
	CALL(cuptiActivityEnable)                                                                  \
	CALL(cuptiActivityFlushAll)                                                                \
	CALL(cuptiActivityGetNextRecord)

#define POINTER(name) __typeof__(name) *name;
static struct {
	CALLS(POINTER)
} cupti;

static char *(*demangle)(const char *name, char *to, size_t *n, int *status);
static FILE *out;

static void CUPTIAPI lend(uint8_t **buffer, size_t *size, size_t *most_records)
{
	*size = BUFFER_BYTES;
	*buffer = aligned_alloc(8, *size);
	*most_records = 0;
}

static void row(uint64_t begin, uint64_t end, uint32_t stream, uint64_t bytes, const char *name)
{
	int status = -1;
	char *plain = demangle && name ? demangle(name, NULL, NULL, &status) : NULL;

	fprintf(out, "%llu\t%llu\t%u\t%llu\t%s\n", (unsigned long long)begin,
		(unsigned long long)end, stream, (unsigned long long)bytes,
		plain  ? plain
		: name ? name
		       : "?");
	free(plain);
}

static const char *copy_name(uint8_t kind)
{
	return kind == CUPTI_ACTIVITY_MEMCPY_KIND_HTOD   ? "[copy up]"
	       : kind == CUPTI_ACTIVITY_MEMCPY_KIND_DTOH ? "[copy down]"
							 : "[copy within]";
}

static void write_record(const CUpti_Activity *record)
{
	switch (record->kind) {
	case CUPTI_ACTIVITY_KIND_KERNEL:
	case CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL: {
		const CUpti_ActivityKernel9 *k = (const void *)record;

		row(k->start, k->end, k->streamId, 0, k->name);
		break;
	}
	case CUPTI_ACTIVITY_KIND_MEMCPY: {
		const CUpti_ActivityMemcpy5 *m = (const void *)record;

		row(m->start, m->end, m->streamId, m->bytes, copy_name(m->copyKind));
		break;
	}
	case CUPTI_ACTIVITY_KIND_MEMSET: {
		const CUpti_ActivityMemset4 *m = (const void *)record;

		row(m->start, m->end, m->streamId, m->bytes, "[fill]");
		break;
	}
	default:
		break;
	}
}

static void CUPTIAPI take(CUcontext context, uint32_t stream, uint8_t *buffer, size_t size,
			  size_t valid)
{
	CUpti_Activity *record = NULL;

	(void)context;
	(void)stream;
	(void)size;
	while (cupti.cuptiActivityGetNextRecord(buffer, valid, &record) == CUPTI_SUCCESS)
		write_record(record);
	free(buffer);
}

static void finish(void)
{
	(void)cupti.cuptiActivityFlushAll(1);
	if (fclose(out))
		perror("kernel_trace");
}

#define LOAD(name)                                                                                 \
	if (!(cupti.name = (__typeof__(name) *)dlsym(library, #name)))                             \
		return 0;

/* CUPTI of CUDA's folder or of PyTorch's packages, by LD_LIBRARY_PATH. */
static int load(void)
{
	char name[32];
	void *library, *cxx;

	/* 130001 is that of CUDA 13.0 */
	snprintf(name, sizeof(name), "libcupti.so.%d", CUPTI_API_VERSION / 10000);
	library = dlopen(name, RTLD_NOW | RTLD_LOCAL);
	if (!library) {
		fprintf(stderr, "kernel_trace: %s\n", dlerror());
		return 0;
	}
	CALLS(LOAD)
	cxx = dlopen("libstdc++.so.6", RTLD_NOW | RTLD_LOCAL);
	if (cxx)
		demangle = (__typeof__(demangle))dlsym(cxx, "__cxa_demangle");
	return 1;
}

/* The driver calls it. 1: done. */
int InitializeInjection(void);
int InitializeInjection(void)
{
	static const CUpti_ActivityKind kinds[] = {
		CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL,
		CUPTI_ACTIVITY_KIND_MEMCPY,
		CUPTI_ACTIVITY_KIND_MEMSET,
	};
	const char *path = getenv("GF_KERNEL_TRACE");
	size_t i;

	if (!load())
		return 0;
	out = fopen(path ? path : "kernels.tsv", "w");
	if (!out) {
		perror("kernel_trace");
		return 0;
	}
	(void)cupti.cuptiActivityRegisterCallbacks(lend, take);
	for (i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
		if (cupti.cuptiActivityEnable(kinds[i]) != CUPTI_SUCCESS)
			fprintf(stderr,
				"kernel_trace: kind %d is not to be "
				"had\n",
				(int)kinds[i]);
	(void)atexit(finish);
	return 1;
}
