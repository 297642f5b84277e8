/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/heap.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void *must(void *p, size_t count, size_t size)
{
	if (p || !count || !size)
		return p;
	fprintf(stderr, "gradflow: out of memory: want %zu x %zu bytes\n",
		count, size);
	abort();
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
	return must(length < 0 ? NULL : text, 1, 1);
}
