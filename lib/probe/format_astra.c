/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The network description of ASTRA-sim's analytical backend: four lists, one
 * entry per dimension, innermost first.
 *
 *	topology: [ Ring, Switch ]
 *	npus_count: [ 8, 4 ]
 *	bandwidth: [ 400.0, 50.0 ]   # GB/s, of each NPU
 *	latency: [ 936.25, 500.0 ]   # ns
 *
 * There every NPU has links of its own in every dimension; here a level's
 * bandwidth is what all ranks of one group one level down share. So a dimension
 * times the NPUs below it is a level, and a level over the ranks below it is a
 * dimension. GB is 1e9 bytes.
 */
#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/heap.h"
#include "base/units.h"
#include "probe/formats.h"

enum key { TOPOLOGY, NPUS_COUNT, BANDWIDTH, LATENCY, KEYS };
static const char *const keys[KEYS] = {"topology", "npus_count", "bandwidth",
				       "latency"};

struct list {
	char **items;
	size_t count, capacity;
	size_t line; /* 0: not there */
};

static int recognise(const char *text)
{
	return strstr(text, "npus_count:") != NULL;
}

static void add_item(struct list *l, const char *text, size_t length)
{
	while (length > 0 && isspace((unsigned char)*text)) {
		text++;
		length--;
	}
	while (length > 0 && isspace((unsigned char)text[length - 1]))
		length--;
	*gf_array_push(&l->items, &l->count, &l->capacity) =
		gf_xasprintf("%.*s", (int)length, text);
}

/* "[ a, b ]" or "a" */
static int add_items(struct list *l, char *value)
{
	char *part, *close;

	if (*value != '[') {
		add_item(l, value, strlen(value));
		return 0;
	}
	close = strchr(value, ']');
	if (!close || close[1 + strspn(close + 1, " \t")])
		return -1;
	*close = '\0';
	for (part = value + 1;; part += 1) {
		size_t length = strcspn(part, ",");

		add_item(l, part, length);
		part += length;
		if (!*part)
			return 0;
	}
}

static char *trim(char *line)
{
	char *end;

	line[strcspn(line, "#")] = '\0';
	line += strspn(line, " \t");
	end = line + strlen(line);
	while (end > line && isspace((unsigned char)end[-1]))
		*--end = '\0';
	return line;
}

/* One line; *last is the list that "- item" lines continue. */
static int read_line(char *line, size_t number, struct list *lists,
		     struct list **last, struct gf_error *err)
{
	char *text = trim(line), *value;
	int k;

	if (!*text || strcmp(text, "---") == 0)
		return 0;
	if (text[0] == '-' && text[1] == ' ' && *last) {
		add_item(*last, text + 2, strlen(text + 2));
		return 0;
	}
	value = strchr(text, ':');
	if (value) {
		*value++ = '\0';
		value += strspn(value, " \t");
	}
	for (k = 0; value && k < KEYS; k++)
		if (strcmp(text, keys[k]) == 0)
			break;
	if (!value || k == KEYS)
		return gf_error_set(err, -EINVAL,
				    "want topology, npus_count, bandwidth or "
				    "latency and a list, got \"%.40s\"",
				    text);
	if (lists[k].line)
		return gf_error_set(err, -EINVAL,
				    "want %s once, it was on line %zu", keys[k],
				    lists[k].line);
	lists[k].line = number;
	*last = &lists[k];
	if (*value && add_items(&lists[k], value))
		return gf_error_set(err, -EINVAL,
				    "%s: want [ A, B, ... ], got \"%.40s\"",
				    keys[k], value);
	return 0;
}

static int read_lists(const struct gf_topology_file *in, struct list *lists,
		      struct gf_error *err)
{
	char *copy = gf_xstrdup(in->text), *line = copy, *next;
	struct list *last = NULL;
	size_t number = 0;
	int rc = 0, k;

	for (; line && rc == 0; line = next) {
		next = strchr(line, '\n');
		if (next)
			*next++ = '\0';
		rc = read_line(line, ++number, lists, &last, err);
		if (rc < 0)
			gf_error_prefix(err, "%s:%zu", in->path, number);
	}
	free(copy);
	for (k = 0; k < KEYS && rc == 0; k++) {
		if (!lists[k].line)
			rc = gf_error_set(err, -EINVAL, "%s: want %s, got none",
					  in->path, keys[k]);
		else if (lists[k].count != lists[0].count ||
			 lists[k].count == 0)
			rc = gf_error_set(err, -EINVAL,
					  "%s:%zu: want %s of as many "
					  "dimensions as topology, %zu, got "
					  "%zu",
					  in->path, lists[k].line, keys[k],
					  lists[0].count, lists[k].count);
	}
	return rc;
}

static int read_level(const struct list *lists, size_t i, double below,
		      struct gf_level *l, struct gf_error *err)
{
	const char *link = lists[TOPOLOGY].items[i];
	double gb_per_s, latency_ns;
	long long size;
	size_t k;
	int rc = gf_units_int(lists[NPUS_COUNT].items[i], 1, GF_RANKS_MAX,
			      &size, err);

	if (rc < 0) {
		gf_error_prefix(err, "npus_count, entry %zu", i);
		return rc;
	}
	rc = gf_units_real(lists[BANDWIDTH].items[i], 1e-9, 1e12, &gb_per_s,
			   err);
	if (rc < 0) {
		gf_error_prefix(err, "bandwidth, entry %zu", i);
		return rc;
	}
	rc = gf_units_real(lists[LATENCY].items[i], 0, 1e15, &latency_ns, err);
	if (rc < 0) {
		gf_error_prefix(err, "latency, entry %zu", i);
		return rc;
	}
	if (!*link)
		return gf_error_set(err, -EINVAL,
				    "topology, entry %zu: want a name, got "
				    "nothing",
				    i);
	l->name = gf_xasprintf("dim%zu", i);
	l->link = gf_xstrdup(link);
	for (k = 0; l->link[k]; k++)
		l->link[k] = (char)tolower((unsigned char)l->link[k]);
	l->size = (size_t)size;
	l->bandwidth_bytes_per_s = gb_per_s * 1e9 * below;
	l->latency_s = latency_ns / 1e9;
	l->bandwidth_origin = l->latency_origin = GF_ORIGIN_REPORTED;
	return 0;
}

static int read_astra(const struct gf_topology_file *in, struct gf_topology *t,
		      struct gf_text *remarks, struct gf_error *err)
{
	struct list lists[KEYS] = {0};
	double below = 1;
	size_t i, k;
	int rc = read_lists(in, lists, err);

	(void)remarks;
	t->levels = gf_xcalloc(lists[0].count + 1, sizeof(*t->levels));
	for (i = 0; i < lists[0].count && rc == 0; i++) {
		rc = read_level(lists, i, below, &t->levels[i], err);
		if (rc < 0)
			gf_error_prefix(err, "%s", in->path);
		else
			below *= (double)t->levels[t->nlevels++].size;
	}
	if (rc == 0) {
		t->source = gf_xstrdup("astra-sim");
		t->ranks = gf_levels_ranks(t->levels, t->nlevels);
		if (t->ranks == 0)
			rc = gf_error_set(err, -EINVAL,
					  "%s:%zu: want at most %d NPUs in "
					  "all, got %.0f",
					  in->path, lists[NPUS_COUNT].line,
					  GF_RANKS_MAX, below);
	}
	for (k = 0; k < KEYS; k++) {
		for (i = 0; i < lists[k].count; i++)
			free(lists[k].items[i]);
		free(lists[k].items);
	}
	return rc;
}

/* ASTRA-sim's word for a level's network; every other link becomes a switch. */
static const char *dimension(const struct gf_level *l)
{
	if (strcmp(l->link, "ring") == 0)
		return "Ring";
	if (strcmp(l->link, "fullyconnected") == 0)
		return "FullyConnected";
	return "Switch";
}

static void write_numbers(const struct gf_topology *t, enum key key,
			  struct gf_text *out)
{
	double below = 1;
	size_t i;

	gf_text_addf(out, "%s: [ ", keys[key]);
	for (i = 0; i < t->nlevels; i++) {
		const struct gf_level *l = &t->levels[i];

		gf_text_addf(out, "%s", i ? ", " : "");
		switch (key) {
		case TOPOLOGY:
			gf_text_addf(out, "%s", dimension(l));
			break;
		case NPUS_COUNT:
			gf_text_addf(out, "%zu", l->size);
			break;
		case BANDWIDTH:
			gf_text_addf(out, "%.12g",
				     l->bandwidth_bytes_per_s / below / 1e9);
			break;
		default:
			gf_text_addf(out, "%.12g", l->latency_s * 1e9);
		}
		below *= (double)l->size;
	}
	gf_text_addf(out, " ]\n");
}

static int write_astra(const struct gf_topology *t, struct gf_text *out,
		       struct gf_text *remarks, struct gf_error *err)
{
	int k;

	(void)remarks;
	(void)err;
	for (k = 0; k < KEYS; k++)
		write_numbers(t, (enum key)k, out);
	return 0;
}

const struct gf_topology_format gf_format_astra = {
	.name = "astra-sim",
	.description = "ASTRA-sim's analytical network (yml)",
	.recognise = recognise,
	.read = read_astra,
	.write = write_astra,
};
