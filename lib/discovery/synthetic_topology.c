/* SPDX-License-Identifier: BSD-3-Clause */
#include "discovery/find_levels.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/heap.h"
#include "base/units.h"

/* Cuts the text at the first `separator`; NULL if there is none. */
static char *cut(char *text, char separator)
{
	char *at = strchr(text, separator);

	if (!at)
		return NULL;
	*at = '\0';
	return at + 1;
}

static int is_word(const char *text)
{
	if (!*text)
		return 0;
	for (; *text; text++)
		if (!isalnum((unsigned char)*text) && !strchr("-_.", *text))
			return 0;
	return 1;
}

/* text is "NAME:SIZE@RATE,LATENCY[,LINK]" and is cut up. */
static int parse_level(char *text, struct gf_level *level, struct gf_error *err)
{
	char *size = cut(text, ':');
	char *rate = size ? cut(size, '@') : NULL;
	char *latency = rate ? cut(rate, ',') : NULL;
	char *link = latency ? cut(latency, ',') : NULL;
	long long count;
	int rc;

	if (!latency || !is_word(text) || (link && !is_word(link)))
		return gf_error_set(err, -EINVAL, "want NAME:SIZE@RATE,LATENCY[,LINK]");
	rc = gf_units_int(size, 1, GF_RANKS_MAX, &count, err);
	if (rc == 0)
		rc = gf_units_rate(rate, &level->bandwidth_bytes_per_s, err);
	if (rc == 0)
		rc = gf_units_time(latency, &level->latency_s, err);
	if (rc < 0)
		return rc;
	level->size = (size_t)count;
	level->nics = strchr(rate, 'x') ? strtoul(rate, NULL, 10) : 0;
	level->name = gf_xstrdup(text);
	level->link = gf_xstrdup(link ? link : text);
	return 0;
}

static int name_taken(const struct gf_topology *t)
{
	const struct gf_level *last = &t->levels[t->nlevels - 1];
	size_t i;

	for (i = 0; i + 1 < t->nlevels; i++)
		if (strcmp(t->levels[i].name, last->name) == 0)
			return 1;
	return 0;
}

static int parse_levels(char *spec, struct gf_topology *t, struct gf_error *err)
{
	char *saved = NULL, *word;

	for (word = strtok_r(spec, " \t\n", &saved); word; word = strtok_r(NULL, " \t\n", &saved)) {
		struct gf_level level = {0};
		char *whole = gf_xstrdup(word);
		int rc = parse_level(word, &level, err);

		if (rc == 0) {
			t->levels = gf_xreallocarray(t->levels, t->nlevels + 1, sizeof(*t->levels));
			t->levels[t->nlevels++] = level;
			if (name_taken(t))
				rc = gf_error_set(err, -EINVAL,
						  "want a name of its own, %s is taken",
						  level.name);
		}
		if (rc < 0)
			gf_error_prefix(err, "level \"%s\"", whole);
		free(whole);
		if (rc < 0)
			return rc;
	}
	if (t->nlevels == 0)
		return gf_error_set(err, -EINVAL,
				    "want NAME:SIZE@RATE,LATENCY[,LINK], got nothing");
	t->ranks = gf_levels_ranks(t->levels, t->nlevels);
	if (t->ranks == 0)
		return gf_error_set(err, -EINVAL, "want at most %d ranks in all levels together",
				    GF_RANKS_MAX);
	return 0;
}

int gf_levels_synthetic(const char *spec, struct gf_topology *t, struct gf_error *err)
{
	struct gf_topology made = {0};
	char *copy = gf_xstrdup(spec);
	int rc = parse_levels(copy, &made, err);

	free(copy);
	if (rc < 0) {
		gf_levels_free(made.levels, made.nlevels);
		return rc;
	}
	t->levels = made.levels;
	t->nlevels = made.nlevels;
	t->ranks = made.ranks;
	return 0;
}
