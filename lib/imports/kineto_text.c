/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/array.h"
#include "imports/kineto.h"
#include "json/json_text.h"

/* Bytes at `text` that JSON does not allow, and what to read instead; or 0 and the bytes that are
 * well. */
static size_t fault(const char *text, bool in_string, const char **instead, size_t *well)
{
	static const char *const numbers[] = {"-inf",      "inf", "nan",     "-nan",
					      "-Infinity", "NaN", "Infinity"};
	uint32_t code;
	size_t i;

	*well = 1;
	if (!in_string) {
		*instead = "null";
		for (i = 0; i < GF_ARRAY_LENGTH(numbers); i++)
			if (strncmp(text, numbers[i], strlen(numbers[i])) == 0)
				return strlen(numbers[i]);
		return 0;
	}
	if (*text == '\\') {
		*instead = "\\\\";
		*well = 2;
		if (text[1] == 'u')
			return strspn(text + 2, "0123456789abcdefABCDEF") < 4;
		return !text[1] || !strchr("\"\\/bfnrt", text[1]);
	}
	*instead = "?";
	*well = gf_text_decode(text, &code);
	return !*well || code < 0x20;
}

/* The text with all of it mended; the number of places and the first. */
static size_t mend(const char *text, size_t size, struct gf_text *out, size_t *first)
{
	size_t i, step, bad, kept = 0, mended = 0;
	bool in_string = false;

	for (i = 0; i < size; i += step) {
		const char *instead;

		bad = fault(text + i, in_string, &instead, &step);
		if (bad) {
			*first = mended++ ? *first : i;
			gf_text_add(out, text + kept, i - kept);
			gf_text_add(out, instead, strlen(instead));
			step = bad;
			kept = i + bad;
		} else if (text[i] == '"') {
			in_string = !in_string;
		}
	}
	gf_text_add(out, text + kept, size - kept);
	return mended;
}

/* Where the exporter is at fault, the user should know. */
static int refuse(const char *found, struct gf_error *err)
{
	const char *remedy = ": what exported the trace wrote no JSON there (a quote inside a "
			     "string?): mend the place, or export it by a newer PyTorch";

	if (strstr(found, ": want "))
		remedy = "";
	else if (strstr(found, "end of file") || strstr(found, "premature end"))
		remedy = ": the trace is cut off: export it anew";
	return gf_error_set(err, -EINVAL, "%s%s", found, remedy);
}

int gf_kineto_parse(const char *text, size_t size, const char *file, struct gf_json **root,
		    size_t *mended, char place[32], struct gf_error *err)
{
	struct gf_error strict = {""};
	struct gf_text whole = {0};
	size_t first = 0;
	int rc = gf_json_parse_loose(text, size, file, root, &strict);
	int line, column;

	*mended = 0;
	if (rc == 0)
		return 0;
	*mended = mend(text, size, &whole, &first);
	if (*mended)
		rc = gf_json_parse_loose(whole.data, whole.length, file, root, &strict);
	gf_text_release(&whole);
	gf_json_place(text, first, &line, &column);
	snprintf(place, 32, "%d:%d", line, column);
	return rc < 0 ? refuse(strict.text, err) : 0;
}
