/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/text.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/heap.h"

void gf_text_add(struct gf_text *t, const char *data, size_t length)
{
	if (t->length + length + 1 > t->capacity) {
		t->capacity = (t->length + length + 1) * 2;
		t->data = gf_xreallocarray(t->data, t->capacity, 1);
	}
	if (length)
		memcpy(t->data + t->length, data, length);
	t->length += length;
	t->data[t->length] = '\0';
}

void gf_text_addf(struct gf_text *t, const char *fmt, ...)
{
	char small[256];
	va_list ap;
	int length;

	va_start(ap, fmt);
	length = vsnprintf(small, sizeof(small), fmt, ap);
	va_end(ap);
	if (length < 0)
		return;
	if ((size_t)length < sizeof(small)) {
		gf_text_add(t, small, (size_t)length);
	} else {
		char *big = gf_xmalloc((size_t)length + 1);

		va_start(ap, fmt);
		vsnprintf(big, (size_t)length + 1, fmt, ap);
		va_end(ap);
		gf_text_add(t, big, (size_t)length);
		free(big);
	}
}

char *gf_text_take(struct gf_text *t)
{
	char *data;

	gf_text_add(t, "", 0);
	data = t->data;
	memset(t, 0, sizeof(*t));
	return data;
}

void gf_text_release(struct gf_text *t)
{
	free(t->data);
	memset(t, 0, sizeof(*t));
}
