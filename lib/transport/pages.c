/* SPDX-License-Identifier: BSD-3-Clause */
#include "transport/pages.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define PAGE_BYTES      4096
#define HUGE_PAGE_BYTES ((size_t)2 << 20)

int gf_pages_alloc(size_t size_bytes, void **data, struct gf_error *err)
{
	size_t align = size_bytes >= HUGE_PAGE_BYTES ? HUGE_PAGE_BYTES : PAGE_BYTES;
	size_t rounded = (size_bytes / align + 1) * align;
	void *p;

	if (size_bytes > PTRDIFF_MAX - 2 * HUGE_PAGE_BYTES || posix_memalign(&p, align, rounded))
		return gf_error_set(err, -ENOMEM, "no memory for a buffer of %zu bytes",
				    size_bytes);
	if (align == HUGE_PAGE_BYTES)
		(void)madvise(p, rounded, MADV_HUGEPAGE);
	memset(p, 0, size_bytes);
	*data = p;
	return 0;
}

void gf_pages_free(void *data)
{
	free(data);
}

/* The whole pages of a range: how many bytes, and the first. */
static size_t whole_pages(void *data, size_t size_bytes, void **first)
{
	const uintptr_t mask = PAGE_BYTES - 1;
	const uintptr_t begin = ((uintptr_t)data + mask) & ~mask;
	const uintptr_t end = ((uintptr_t)data + size_bytes) & ~mask;

	*first = (void *)begin;
	return end > begin ? end - begin : 0;
}

void gf_pages_give_back(void *data, size_t size_bytes)
{
	void *first;
	const size_t bytes = whole_pages(data, size_bytes, &first);

	/* shared memory has a file, other memory none */
	if (bytes && madvise(first, bytes, MADV_REMOVE))
		(void)madvise(first, bytes, MADV_DONTNEED);
}

void gf_pages_split(void *data, size_t size_bytes)
{
	void *first;
	const size_t bytes = whole_pages(data, size_bytes, &first);

	if (bytes)
		(void)madvise(first, bytes, MADV_NOHUGEPAGE);
}

int gf_pages_buffer_alloc(struct gf_comm *c, size_t size_bytes, void **data, struct gf_error *err)
{
	(void)c;
	return gf_pages_alloc(size_bytes, data, err);
}

void gf_pages_buffer_free(struct gf_comm *c, void *data)
{
	(void)c;
	gf_pages_free(data);
}
