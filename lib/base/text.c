/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/text.h"

#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
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

size_t gf_text_decode(const char *text, uint32_t *code)
{
	const unsigned char *s = (const unsigned char *)text;
	static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
	size_t n = s[0] < 0x80   ? 1
		   : s[0] < 0xc0 ? 0
		   : s[0] < 0xe0 ? 2
		   : s[0] < 0xf0 ? 3
		   : s[0] < 0xf8 ? 4
				 : 0;

	*code = n > 1 ? s[0] & (0x7fu >> n) : s[0];
	for (size_t i = 1; i < n; i++) {
		if ((s[i] & 0xc0) != 0x80)
			return 0;
		*code = *code << 6 | (s[i] & 0x3f);
	}
	if (!n || *code < least[n] || *code > 0x10ffff || (*code >= 0xd800 && *code < 0xe000))
		return 0;
	return n;
}

/* Controls, those above ASCII too; marks and overrides of direction; ends of lines and
 * paragraphs. */
static bool is_hidden(uint32_t c)
{
	return c < 0x20 || (c >= 0x7f && c < 0xa0) || c == 0x61c || c == 0x200e || c == 0x200f ||
	       (c >= 0x2028 && c <= 0x202e) || (c >= 0x2066 && c <= 0x2069);
}

size_t gf_text_hidden(const char *text)
{
	uint32_t code;
	size_t n = gf_text_decode(text, &code);

	return !n ? 1 : is_hidden(code) ? n : 0;
}

/* Inside a character of UTF-8? */
static bool is_continuation(char c)
{
	return ((unsigned char)c & 0xc0) == 0x80;
}

void gf_text_add_printable(struct gf_text *t, const char *text, size_t limit)
{
	size_t length = strnlen(text, limit), i, n;
	uint32_t code;

	if (text[length]) /* cut between characters, not inside one */
		while (length > 0 && is_continuation(text[length]))
			length--;
	for (i = 0; i < length; i += n) {
		size_t hidden = gf_text_hidden(text + i), k;

		n = hidden ? hidden : gf_text_decode(text + i, &code);
		for (k = 0; k < hidden; k++)
			gf_text_addf(t, "\\x%02X", (unsigned char)text[i + k]);
		if (!hidden)
			gf_text_add(t, text + i, n);
	}
	if (text[length])
		gf_text_add(t, "...", 3);
}

void gf_text_one_line(char *to, size_t size, const char *text)
{
	static const char gap[] = "...";
	GF_RELEASED(gf_text_release) struct gf_text t = {0};
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
		snprintf(to, size, "%.*s%s%s", (int)head, t.data, gap, t.data + tail);
	}
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
		GF_FREED char *big = gf_xmalloc((size_t)length + 1);

		vsnprintf(big, (size_t)length + 1, fmt, again);
		gf_text_add(t, big, (size_t)length);
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

void gf_text_add_cell(struct gf_text *t, const char *text, char separator)
{
	const char special[] = {separator, '"', '\n', '\r', '\0'};

	if (!text[strcspn(text, special)]) {
		gf_text_addf(t, "%s", text);
		return;
	}
	gf_text_add(t, "\"", 1);
	for (; *text; text++)
		gf_text_add(t, *text == '"' ? "\"\"" : text, *text == '"' ? 2 : 1);
	gf_text_add(t, "\"", 1);
}
