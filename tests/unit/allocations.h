/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef GF_TESTS_ALLOCATIONS_H
#define GF_TESTS_ALLOCATIONS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>

/*
 * Counts the calls of malloc and its kin in this process, where the C library lets us (COUNTED):
 * for tests that nothing is allocated in a step.
 */
#if defined(__GLIBC__) && !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
#define COUNTED 1
#else
#define COUNTED 0
#endif

/* By all threads together, while counting is on. */
static atomic_int allocations;
static atomic_bool counting;

#if COUNTED
void *__libc_malloc(size_t size);
void *__libc_calloc(size_t count, size_t size);
void *__libc_realloc(void *old, size_t size);
void *__libc_memalign(size_t alignment, size_t size);

static void count(void)
{
	if (atomic_load(&counting))
		atomic_fetch_add(&allocations, 1);
}

void *malloc(size_t size)
{
	count();
	return __libc_malloc(size);
}

void *calloc(size_t number, size_t size)
{
	count();
	return __libc_calloc(number, size);
}

void *realloc(void *old, size_t size)
{
	count();
	return __libc_realloc(old, size);
}

void *aligned_alloc(size_t alignment, size_t size)
{
	count();
	return __libc_memalign(alignment, size);
}
#endif

static inline void count_allocations(bool on)
{
	if (on)
		atomic_store(&allocations, 0);
	atomic_store(&counting, on);
}

#endif
