/* SPDX-License-Identifier: BSD-3-Clause */
#include "import/columns.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/heap.h"
#include "base/log_lines.h"
#include "base/registry.h"

void gf_columns_head(struct gf_columns *t, const char *line)
{
	char *copy = gf_xstrdup(line), *words[GF_COLUMNS_MOST];
	const size_t n = gf_log_words(copy, words, GF_COLUMNS_MOST);
	size_t i;

	gf_columns_release(t);
	for (i = 0; i < n; i++) {
		if (strcmp(words[i], "timestamp") == 0) /* is two words */
			break;
		if (strcmp(words[i], "#") != 0 && strcmp(words[i], "|") != 0)
			t->names[t->ncolumns++] = gf_xstrdup(words[i]);
	}
	free(copy);
}

void gf_columns_release(struct gf_columns *t)
{
	while (t->ncolumns)
		free(t->names[--t->ncolumns]);
}

static bool is_text(const char *name)
{
	static const char *const texts[] = {"type", "redop", "algorithm", NULL};

	return gf_names_index(texts, name) >= 0;
}

/* "N/A", "1.5", "7*" beyond what is allowed, "32KiB", "0.48GBps" */
static bool suits(const char *name, const char *word)
{
	char *end;

	if (is_text(name))
		return isalpha((unsigned char)*word);
	if (strcmp(word, "N/A") == 0)
		return true;
	strtod(word, &end);
	if (end == word)
		return false;
	while (isalpha((unsigned char)*end) || *end == '*')
		end++;
	return !*end;
}

/* How many columns the words suit, from the first on. */
static size_t suited(const struct gf_columns *t, char **words, size_t nwords)
{
	size_t i;

	for (i = 0; i < t->ncolumns && i < nwords; i++)
		if (!suits(t->names[i], words[i]))
			break;
	return i;
}

/* What stands before the times begins a row. */
static size_t keys(const struct gf_columns *t)
{
	size_t i = 1;

	while (i < t->ncolumns && i < 4 && !strstr(t->names[i], "time") &&
	       !strstr(t->names[i], "t_min") && strcmp(t->names[i], "Avg") != 0)
		i++;
	return i;
}

int gf_columns_row(const struct gf_columns *t, char **words, size_t nwords,
		   char ***cells)
{
	bool texts = false;
	size_t i;

	for (i = 0; i < t->ncolumns; i++)
		texts |= is_text(t->names[i]);
	/* numbers alone are a row where a line begins */
	for (i = 0; t->ncolumns && i + t->ncolumns <= nwords && (texts || !i);
	     i++)
		if (suited(t, words + i, nwords - i) == t->ncolumns) {
			*cells = words + i;
			return 1;
		}
	return t->ncolumns && suited(t, words, nwords) >= keys(t) ? -EINVAL : 0;
}

const char *gf_columns_cell(const struct gf_columns *t, char **cells,
			    const char *name)
{
	size_t i;

	for (i = t->ncolumns; i-- > 0;)
		if (strcmp(t->names[i], name) == 0)
			return cells[i];
	return NULL;
}
