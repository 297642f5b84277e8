/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef GF_TESTS_ANALYZE_H
#define GF_TESTS_ANALYZE_H

/* Analyzers see one file at a time. So they are told before each what functions elsewhere do:
 * memory is there, and a failure is the number that was given. */
#include "base/array.h"
#include "base/error.h"
#include "base/heap.h"

#define NEVER_NULL __attribute__((returns_nonnull))
void *gf_xmalloc(size_t size) NEVER_NULL;
void *gf_xcalloc(size_t count, size_t size) NEVER_NULL;
void *gf_xreallocarray(void *old, size_t count, size_t size) NEVER_NULL;
char *gf_xstrdup(const char *text) NEVER_NULL;
void *gf_xmemdup(const void *data, size_t size) NEVER_NULL;
char *gf_xasprintf(const char *fmt, ...) NEVER_NULL;

#define gf_error_set(err, rc, ...)   (gf_error_set(err, rc, __VA_ARGS__), rc)
#define gf_error_errno(err, rc, ...) (gf_error_errno(err, rc, __VA_ARGS__), rc)

/* cppcheck knows no types of expressions, and reads no system header. */
#ifdef __CPPCHECK__
#undef gf_array_push
#define gf_array_push(items, count, capacity)                                                      \
	gf_array_push_raw((items), (count), (capacity), sizeof(**(items)))
#define json_array_foreach(a, i, v) for (i = 0; (v = json_array_get(a, i)); i++)
#define json_object_foreach(o, k, v)                                                               \
	for (k = next_key(o); (v = json_object_get(o, k)); k = next_key(o))
#endif

#endif
