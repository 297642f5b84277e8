/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/text.h"

#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
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

static bool is_control(char c)
{
	return (unsigned char)c < 0x20 || c == 0x7f;
}

/* Inside a character of UTF-8? */
static bool is_continuation(char c)
{
	return ((unsigned char)c & 0xc0) == 0x80;
}

void gf_text_add_printable(struct gf_text *t, const char *text, size_t limit)
{
	size_t length = strnlen(text, limit), i;

	if (text[length]) /* cut between characters, not inside one */
		while (length > 0 && is_continuation(text[length]))
			length--;
	for (i = 0; i < length; i++) {
		if (is_control(text[i]))
			gf_text_addf(t, "\\x%02X", (unsigned char)text[i]);
		else
			gf_text_add(t, &text[i], 1);
	}
	if (text[length])
		gf_text_add(t, "...", 3);
}

void gf_text_one_line(char *to, size_t size, const char *text)
{
	static const char gap[] = "...";
	struct gf_text t = {0};
	size_t head, tail;

	gf_text_add_printable(&t, text, SIZE_MAX);
	if (t.length < size) {
		memcpy(to, t.data ? t.data : "", t.length + 1);
	} else {
		head = (size - sizeof(gap)) / 2;
		tail = t.length - (size - sizeof(gap) - head);
		while (head > 0 && is_continuation(t.data[head]))
			head--;
		while (is_continuation(t.data[tail]))
			tail++;
		snprintf(to, size, "%.*s%s%s", (int)head, t.data, gap,
			 t.data + tail);
	}
	gf_text_release(&t);
}

void gf_text_addv(struct gf_text *t, const char *fmt, va_list ap)
{
	char small[256];
	va_list again;
	int length;

	va_copy(again, ap);
	length = vsnprintf(small, sizeof(small), fmt, ap);
	if (length >= 0 && (size_t)length < sizeof(small)) {
		gf_text_add(t, small, (size_t)length);
	} else if (length >= 0) {
		char *big = gf_xmalloc((size_t)length + 1);

		vsnprintf(big, (size_t)length + 1, fmt, again);
		gf_text_add(t, big, (size_t)length);
		free(big);
	}
	va_end(again);
}

void gf_text_addf(struct gf_text *t, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	gf_text_addv(t, fmt, ap);
	va_end(ap);
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
