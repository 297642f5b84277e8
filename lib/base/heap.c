/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/heap.h"

#include <errno.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static _Thread_local struct gf_heap_guard *innermost;

struct gf_heap_guard *gf_heap_enter(struct gf_heap_guard *guard)
{
	guard->outer = innermost;
	innermost = guard;
	return guard;
}

void gf_heap_leave(struct gf_heap_guard *guard)
{
	if (innermost == guard)
		innermost = guard->outer;
}

void gf_heap_free_at(void *place)
{
	void *p;

	memcpy(&p, place, sizeof(p));
	free(p);
}

static _Noreturn void exhausted(size_t count, size_t size)
{
	struct gf_heap_guard *guard = innermost;
	char line[sizeof(guard->line)];
	size_t all;

	if (__builtin_mul_overflow(count, size, &all))
		all = SIZE_MAX;
	snprintf(line, sizeof(line), all ? "out of memory: want %zu bytes" : "out of memory", all);
	if (guard) {
		memcpy(guard->line, line, sizeof(line));
		innermost = guard->outer;
		longjmp(guard->at, 1);
	}
	dprintf(STDERR_FILENO, "%s: %s\n", program_invocation_short_name, line);
	_exit(3); /* as for all that the environment lacks */
}

static void *must(void *p, size_t count, size_t size)
{
	if (!p && count && size)
		exhausted(count, size);
	return p;
}

void *gf_heap_need(void *p)
{
	if (!p && errno == ENOMEM)
		exhausted(0, 0);
	return p;
}

void *gf_xmalloc(size_t size)
{
	return must(malloc(size), 1, size);
}

void *gf_xcalloc(size_t count, size_t size)
{
	return must(calloc(count, size), count, size);
}

void *gf_xreallocarray(void *old, size_t count, size_t size)
{
	return must(reallocarray(old, count, size), count, size);
}

char *gf_xstrdup(const char *text)
{
	return gf_xmemdup(text, strlen(text) + 1);
}

char *gf_xstrdup_or_null(const char *text)
{
	return text ? gf_xstrdup(text) : NULL;
}

void *gf_xmemdup(const void *data, size_t size)
{
	void *copy = gf_xmalloc(size ? size : 1);

	if (size)
		memcpy(copy, data, size);
	return copy;
}

char *gf_xasprintf(const char *fmt, ...)
{
	va_list ap;
	char *text = NULL;
	int length;

	va_start(ap, fmt);
	length = vasprintf(&text, fmt, ap);
	va_end(ap);
	return length < 0 ? must(NULL, 1, strlen(fmt) + 1) : text;
}
