/* SPDX-License-Identifier: BSD-3-Clause */
#include "discovery/hostlist.h"

#include <string.h>

#include "base/array.h"
#include "base/heap.h"

/* A name in the DNS has at most 253 characters; this many digits are enough for any counter. */
enum { NAME_MAX_CHARS = 255, DIGITS_MAX = 18, BRACKETS_MAX = 4 };

static int expand(struct gf_hostlist *l, const char *prefix, const char *rest, int brackets,
		  struct gf_error *err);

static int add_name(struct gf_hostlist *l, const char *name, struct gf_error *err)
{
	if (!*name)
		return gf_error_set(err, -EINVAL, "want a name, got nothing");
	if (strlen(name) > NAME_MAX_CHARS)
		return gf_error_set(err, -EINVAL,
				    "want names of at most %d characters, got \"%.20s...\"",
				    NAME_MAX_CHARS, name);
	if (l->count >= GF_HOSTLIST_MAX)
		return gf_error_set(err, -EINVAL, "want at most %zu names", GF_HOSTLIST_MAX);
	*gf_array_push(&l->names, &l->count, &l->capacity) = gf_xstrdup(name);
	return 0;
}

/* Reads "07-12" at *text and moves *text past it; *width: digits of the low end. */
static int read_range(const char **text, unsigned long long *low, unsigned long long *high,
		      int *width, struct gf_error *err)
{
	size_t n = strspn(*text, "0123456789");
	char *end;

	if (n == 0 || n > DIGITS_MAX)
		return gf_error_set(err, -EINVAL, "want a number in the brackets, got \"%.20s\"",
				    *text);
	*low = *high = strtoull(*text, &end, 10);
	*width = (int)n;
	*text = end;
	if (**text != '-')
		return 0;
	n = strspn(++*text, "0123456789");
	if (n == 0 || n > DIGITS_MAX)
		return gf_error_set(err, -EINVAL, "want a number after -, got \"%.20s\"", *text);
	*high = strtoull(*text, &end, 10);
	*text = end;
	if (*high < *low || *high - *low >= GF_HOSTLIST_MAX)
		return gf_error_set(err, -EINVAL, "want a range of 1 to %zu numbers, got %llu-%llu",
				    GF_HOSTLIST_MAX, *low, *high);
	return 0;
}

/* prefix, then each number of the brackets at text, then what follows them. */
static int expand_brackets(struct gf_hostlist *l, const char *prefix, const char *text,
			   int brackets, struct gf_error *err)
{
	const char *close = strchr(text, ']');
	unsigned long long low = 0, high = 0, i;
	int width = 0, rc = 0;

	if (!close)
		return gf_error_set(err, -EINVAL, "want ] after [, got none");
	while (rc == 0) {
		rc = read_range(&text, &low, &high, &width, err);
		for (i = low; rc == 0 && i <= high; i++) {
			GF_FREED char *more = gf_xasprintf("%s%0*llu", prefix, width, i);

			rc = expand(l, more, close + 1, brackets + 1, err);
		}
		if (rc == 0 && text == close)
			break;
		if (rc == 0 && *text++ != ',')
			rc = gf_error_set(err, -EINVAL,
					  "want , or ] in the brackets, got \"%.20s\"", text - 1);
	}
	return rc;
}

/* One name: prefix is done, rest may hold brackets. */
static int expand(struct gf_hostlist *l, const char *prefix, const char *rest, int brackets,
		  struct gf_error *err)
{
	size_t n = strcspn(rest, "[]");
	GF_FREED char *more = NULL;

	if (rest[n] == ']' || (rest[n] == '[' && brackets >= BRACKETS_MAX))
		return gf_error_set(err, -EINVAL,
				    "want at most %d pairs of brackets in a name, none inside "
				    "another, got \"%.20s\"",
				    BRACKETS_MAX, rest);
	more = gf_xasprintf("%s%.*s", prefix, (int)n, rest);
	return rest[n] ? expand_brackets(l, more, rest + n + 1, brackets, err)
		       : add_name(l, more, err);
}

int gf_hostlist_add(struct gf_hostlist *l, const char *text, struct gf_error *err)
{
	int rc = 0;

	while (rc == 0) {
		size_t n = 0;
		GF_FREED char *name = NULL;
		int inside = 0;

		for (; text[n] && (inside || text[n] != ','); n++)
			inside = text[n] == '[' ? 1 : text[n] == ']' ? 0 : inside;
		name = gf_xasprintf("%.*s", (int)n, text);
		rc = expand(l, "", name, 0, err);
		if (!text[n])
			break;
		text += n + 1;
	}
	return rc;
}

void gf_hostlist_release(struct gf_hostlist *l)
{
	for (size_t i = 0; i < l->count; i++)
		free(l->names[i]);
	free(l->names);
	memset(l, 0, sizeof(*l));
}
