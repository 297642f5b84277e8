/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef GF_BASE_HEAP_H
#define GF_BASE_HEAP_H

#include <stddef.h>

/*
 * Small host allocations. They never return NULL: on exhaustion, or when
 * count * size overflows, the process prints one line and aborts. Pools and
 * device memory do not come from here; their allocators return errors.
 * Free with free().
 */
void *gf_xmalloc(size_t size);
void *gf_xcalloc(size_t count, size_t size);
void *gf_xreallocarray(void *old, size_t count, size_t size);
char *gf_xstrdup(const char *text);
/* NULL gives NULL. */
char *gf_xstrdup_or_null(const char *text);
void *gf_xmemdup(const void *data, size_t size);
char *gf_xasprintf(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

#endif
