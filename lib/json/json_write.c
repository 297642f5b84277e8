/* SPDX-License-Identifier: BSD-3-Clause */
#include "json/json.h"

#include <assert.h>
#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

bool gf_json_is_text(const char *value)
{
	size_t length = 1;
	uint32_t code;

	for (; *value && length; value += length)
		length = gf_text_decode(value, &code);
	return length > 0;
}

void gf_json_quote(struct gf_text *t, const char *value)
{
	static const char short_form[] = "\"\"\\\\\bb\ff\nn\rr\tt";
	size_t length, i;
	uint32_t code;

	gf_text_add(t, "\"", 1);
	for (; *value; value += length ? length : 1) {
		const char *escape = NULL;

		length = gf_text_decode(value, &code);
		for (i = 0; i < sizeof(short_form) - 1; i += 2)
			if (short_form[i] == *value)
				escape = &short_form[i + 1];
		if (escape)
			gf_text_addf(t, "\\%c", *escape);
		else if (!length)
			gf_text_add(t, "\xef\xbf\xbd", 3);
		else if (gf_text_hidden(value)) /* none beyond 16 bits is */
			gf_text_addf(t, "\\u%04x", (unsigned)code);
		else
			gf_text_add(t, value, length);
	}
	gf_text_add(t, "\"", 1);
}

/* The significant digits of a finite value > 0, as few as read back the same, and the power of ten
 * of the first. */
static size_t shortest_digits(double value, char digits[20], int *exponent)
{
	/* 15 digits that read back are the only such 15: nothing shorter is missed by starting
	 * there, but for denormals. */
	int precision = value < DBL_MIN ? 1 : DBL_DIG;
	char text[40];
	size_t n = 0, i;

	for (;; precision++) {
		snprintf(text, sizeof(text), "%.*e", precision - 1, value);
		if (precision == 17 || strtod(text, NULL) == value)
			break;
	}
	for (i = 0; text[i] != 'e'; i++)
		if (text[i] != '.')
			digits[n++] = text[i];
	*exponent = atoi(text + i + 1);
	while (n > 1 && digits[n - 1] == '0')
		n--;
	digits[n] = '\0';
	return n;
}

void gf_json_real_text(double value, char out[GF_JSON_REAL_TEXT])
{
	const char *sign = value < 0 ? "-" : "";
	int exponent, count, fixed, scientific;
	char digits[20], power[8];

	if (!isfinite(value)) {
		strcpy(out, "null");
		return;
	}
	if (value == 0) {
		strcpy(out, "0.0"); /* for -0.0 too: one form per number */
		return;
	}
	count = (int)shortest_digits(fabs(value), digits, &exponent);
	snprintf(power, sizeof(power), "e%d", exponent);
	scientific = count + (count > 1) + (int)strlen(power);
	if (exponent < 0)
		fixed = 1 - exponent + count;
	else
		fixed = count <= exponent + 1 ? exponent + 1 : count + 1;
	/* people read 0.0001 and 1500.0 more easily than 1e-4 and 1.5e3 */
	if (exponent < -4 || fixed >= scientific + 3)
		snprintf(out, GF_JSON_REAL_TEXT, "%s%c%s%s%s", sign, digits[0],
			 count > 1 ? "." : "", digits + 1, power);
	else if (exponent < 0)
		snprintf(out, GF_JSON_REAL_TEXT, "%s0.%.*s%s", sign, -exponent - 1, "0000", digits);
	else if (count <= exponent + 1)
		snprintf(out, GF_JSON_REAL_TEXT, "%s%s%.*s.0", sign, digits, exponent + 1 - count,
			 "00000000");
	else
		snprintf(out, GF_JSON_REAL_TEXT, "%s%.*s.%s", sign, exponent + 1, digits,
			 digits + exponent + 1);
}

static void new_line(struct gf_json_writer *w)
{
	gf_text_addf(&w->text, "\n%*s", 2 * w->depth, "");
}

/* Everything in front of a value: comma, line break, key. */
static void begin_value(struct gf_json_writer *w, const char *key)
{
	if (w->filled)
		gf_text_add(&w->text, ",", 1);
	if (w->inline_from) {
		if (w->filled)
			gf_text_add(&w->text, " ", 1);
	} else if (w->depth) {
		new_line(w);
	}
	if (key) {
		gf_json_quote(&w->text, key);
		gf_text_add(&w->text, ": ", 2);
	}
	w->filled = true;
}

static void open_container(struct gf_json_writer *w, const char *key, const char *bracket,
			   bool one_line)
{
	begin_value(w, key);
	gf_text_add(&w->text, bracket, 1);
	w->depth++;
	w->filled = false;
	if (one_line && !w->inline_from)
		w->inline_from = w->depth;
}

static void close_container(struct gf_json_writer *w, const char *bracket)
{
	bool one_line = w->inline_from != 0;

	assert(w->depth > 0);
	if (w->inline_from == w->depth)
		w->inline_from = 0;
	w->depth--;
	if (w->filled && !one_line)
		new_line(w);
	gf_text_add(&w->text, bracket, 1);
	w->filled = true;
	if (!w->depth) {
		gf_text_add(&w->text, "\n", 1);
		w->filled = false;
	}
}

void gf_json_open_object(struct gf_json_writer *w, const char *key)
{
	open_container(w, key, "{", false);
}

void gf_json_open_line(struct gf_json_writer *w, const char *key)
{
	open_container(w, key, "{", true);
}

void gf_json_close_object(struct gf_json_writer *w)
{
	close_container(w, "}");
}

void gf_json_close_line(struct gf_json_writer *w, struct gf_text *out)
{
	gf_json_close_object(w);
	gf_text_add(out, w->text.data, w->text.length);
	gf_text_release(&w->text);
}

void gf_json_open_array(struct gf_json_writer *w, const char *key)
{
	open_container(w, key, "[", false);
}

void gf_json_open_row(struct gf_json_writer *w, const char *key)
{
	open_container(w, key, "[", true);
}

void gf_json_close_array(struct gf_json_writer *w)
{
	close_container(w, "]");
}

void gf_json_put_token(struct gf_json_writer *w, const char *key, const char *token)
{
	begin_value(w, key);
	gf_text_add(&w->text, token, strlen(token));
}

void gf_json_put_string(struct gf_json_writer *w, const char *key, const char *value)
{
	begin_value(w, key);
	gf_json_quote(&w->text, value);
}

void gf_json_put_size(struct gf_json_writer *w, const char *key, size_t value)
{
	begin_value(w, key);
	gf_text_addf(&w->text, "%zu", value);
}

void gf_json_put_int(struct gf_json_writer *w, const char *key, int value)
{
	begin_value(w, key);
	gf_text_addf(&w->text, "%d", value);
}

void gf_json_put_real(struct gf_json_writer *w, const char *key, double value)
{
	char text[GF_JSON_REAL_TEXT];

	gf_json_real_text(value, text);
	gf_json_put_token(w, key, text);
}

void gf_json_put_bool(struct gf_json_writer *w, const char *key, bool value)
{
	gf_json_put_token(w, key, value ? "true" : "false");
}
