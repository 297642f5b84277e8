/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/registry.h"

#include <ctype.h>
#include <string.h>

#include "base/heap.h"
#include "base/text.h"

const struct gf_named *gf_registry_at(const struct gf_registry *r, size_t i)
{
	const struct gf_named *e;

	if (!r->entry_bytes)
		return ((const struct gf_named *const *)r->entries)[i];
	e = (const void *)((const char *)r->entries + i * r->entry_bytes);
	return e->name ? e : NULL;
}

const void *gf_named_find(const void *entries, size_t entry_bytes, const char *name)
{
	const struct gf_registry r = {entries, entry_bytes, NULL};
	const struct gf_named *e;

	for (size_t i = 0; (e = gf_registry_at(&r, i)); i++)
		if (strcmp(e->name, name) == 0)
			break;
	return e;
}

enum { LONGEST = 63 };

/* Letters and digits in lower case, LONGEST of them at most. */
static size_t squeeze(const char *name, char out[LONGEST + 1])
{
	size_t n = 0;

	for (; *name && n < LONGEST; name++)
		if (*name != '-' && *name != '_')
			out[n++] = (char)tolower((unsigned char)*name);
	out[n] = '\0';
	return n;
}

static size_t least(size_t a, size_t b)
{
	return a < b ? a : b;
}

/* Levenshtein's distance, a row of its table at a time. */
static size_t distance(const char *a, const char *b)
{
	char x[LONGEST + 1], y[LONGEST + 1];
	size_t nx = squeeze(a, x), ny = squeeze(b, y), row[LONGEST + 1], i, k;

	for (k = 0; k <= ny; k++)
		row[k] = k;
	for (i = 1; i <= nx; i++) {
		size_t diagonal = row[0];

		row[0] = i;
		for (k = 1; k <= ny; k++) {
			size_t above = row[k];

			row[k] = least(least(above, row[k - 1]) + 1,
				       diagonal + (x[i - 1] != y[k - 1]));
			diagonal = above;
		}
	}
	return row[ny];
}

/* The letters that both begin with, if that is all of one of them, and more than two. */
static size_t common(const char *a, const char *b)
{
	char x[LONGEST + 1], y[LONGEST + 1];
	size_t n = least(squeeze(a, x), squeeze(b, y));

	return n > 2 && strncmp(x, y, n) == 0 ? n : 0;
}

const char *gf_names_near(const char *const *names, const char *got)
{
	const char *near = NULL;
	size_t best = LONGEST, longest = 0, i;

	for (i = 0; names[i]; i++) {
		size_t away = distance(names[i], got);

		if (away < best && 3 * away <= strlen(names[i])) {
			best = away;
			near = names[i];
		}
	}
	for (i = 0; names[i] && best == LONGEST; i++)
		if (common(names[i], got) > longest) {
			longest = common(names[i], got);
			near = names[i];
		}
	return near;
}

void gf_names_nearest(const char *const *names, const char *got, size_t most, struct gf_text *out)
{
	size_t shown, away, i, upto[LONGEST + 1] = {0}, limit = 0, n = 0;

	for (i = 0; names[i]; i++)
		upto[distance(names[i], got)]++;
	/* all up to that distance, and of those at it the first */
	for (shown = 0; limit < LONGEST && shown + upto[limit] <= most; limit++)
		shown += upto[limit];
	for (i = 0; names[i]; i++) {
		away = distance(names[i], got);
		if (away > limit || (away == limit && shown == most))
			continue;
		shown += away == limit;
		gf_text_addf(out, "%s%s", n++ ? ", " : "", names[i]);
	}
}

int gf_names_refuse(const char *const *names, const char *got, struct gf_error *err)
{
	const char *near = gf_names_near(names, got);
	GF_RELEASED(gf_text_release) struct gf_text list = {0};
	char brief[LONGEST + 1];

	gf_text_one_line(brief, sizeof(brief), got);
	for (size_t i = 0; names[i]; i++)
		gf_text_addf(&list, "%s%s", !i ? "" : names[i + 1] ? ", " : " or ", names[i]);
	gf_error_set(err, -EINVAL, "want %s, got \"%s\"%s%s%s", list.data ? list.data : "nothing",
		     brief, near ? "; did you mean \"" : "", near ? near : "", near ? "\"?" : "");
	return -EINVAL;
}

int gf_names_index(const char *const *names, const char *name)
{
	for (int i = 0; names[i]; i++)
		if (strcmp(names[i], name) == 0)
			return i;
	return -1;
}

int gf_names_find(const char *const *names, const char *got, int *index, struct gf_error *err)
{
	int i = gf_names_index(names, got);

	if (i < 0)
		return gf_names_refuse(names, got, err);
	*index = i;
	return 0;
}

int gf_registry_refuse(const struct gf_registry *r, const char *option, const char *first,
		       const char *got, struct gf_error *err)
{
	const struct gf_named *e;
	GF_FREED const char **names = NULL;
	size_t n = 0, i;
	int rc;

	while (gf_registry_at(r, n))
		n++;
	names = gf_xcalloc(n + 2, sizeof(*names));
	n = 0;
	if (first)
		names[n++] = first;
	for (i = 0; (e = gf_registry_at(r, i)); i++)
		if (!r->offers || r->offers(e))
			names[n++] = e->name;
	rc = gf_names_refuse(names, got, err);
	if (option)
		gf_error_prefix(err, "%s", option);
	return rc;
}
