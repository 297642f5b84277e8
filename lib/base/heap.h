/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef GF_BASE_HEAP_H
#define GF_BASE_HEAP_H

#include <setjmp.h>
#include <stdlib.h> /* free(): whoever has this header does without that one */

/*
 * Small host allocations. They never return NULL. On exhaustion, or when count * size overflows,
 * the thread goes on at its guard; without one the process prints a line and exits with status 3.
 * Pools and device memory do not come from here; their allocators return errors. Free with free().
 */
void *gf_xmalloc(size_t size);
void *gf_xcalloc(size_t count, size_t size);
void *gf_xreallocarray(void *old, size_t count, size_t size);
char *gf_xstrdup(const char *text);
/* NULL gives NULL. */
char *gf_xstrdup_or_null(const char *text);
void *gf_xmemdup(const void *data, size_t size);
char *gf_xasprintf(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

/*
 * A local variable whose memory goes where its block ends, whichever way that is left:
 *
 *	GF_FREED char *path = NULL;
 *	GF_RELEASED(gf_text_release) struct gf_text out = {0};
 */
#define GF_RELEASED(by) __attribute__((cleanup(by)))
#define GF_FREED        GF_RELEASED(gf_heap_free_at)
/* Frees the pointer at that place. */
void gf_heap_free_at(void *place);

/* What a foreign function returns, which is NULL with errno ENOMEM on exhaustion: then it does not
 * come back. */
void *gf_heap_need(void *p);

/*
 * Where a thread goes on then: the innermost guard that it has entered.
 *
 *	struct gf_heap_guard guard GF_HEAP_GUARD;
 *
 *	if (GF_HEAP_FAILS(guard)) (guard.line says what was wanted)
 *		return -ENOMEM;
 *
 * Nothing is unwound: locks stay taken, memory and files are lost. So what was worked on is left
 * alone from then on.
 */
struct gf_heap_guard {
	jmp_buf at;
	struct gf_heap_guard *outer;
	char line[80];
};
#define GF_HEAP_GUARD        __attribute__((cleanup(gf_heap_leave)))
#define GF_HEAP_FAILS(guard) setjmp(gf_heap_enter(&(guard))->at)
struct gf_heap_guard *gf_heap_enter(struct gf_heap_guard *guard);
void gf_heap_leave(struct gf_heap_guard *guard);

#endif
