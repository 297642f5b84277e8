/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * methods_report TITLE FILE: the parts of a step by each method as a picture.
 * Standard input has a line per method: its name, a tab, and in ms what a step
 * computes, updates, waits for selection and codecs, and for the network.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/file.h"
#include "base/heap.h"
#include "plot/plot.h"

enum { PARTS = 4 };

static const char *const parts[PARTS] = {"compute", "update",
					 "selection and codecs", "network"};

struct table {
	char **methods;
	size_t nmethods, capacity;
	double *seconds[PARTS];
	size_t counts[PARTS], capacities[PARTS];
};

static int read_row(struct table *t, char *line)
{
	char *tab = strchr(line, '\t'), *end;
	size_t i;
	double ms;

	if (!tab)
		return -EINVAL;
	*tab = '\0';
	for (i = 0, line = tab + 1; i < PARTS; i++, line = end) {
		ms = strtod(line, &end);
		if (end == line)
			return -EINVAL;
		*(double *)gf_array_push(&t->seconds[i], &t->counts[i],
					 &t->capacities[i]) = ms / 1e3;
	}
	return 0;
}

static int read_rows(struct table *t, struct gf_error *err)
{
	char *line = NULL, *name;
	size_t size = 0;
	int rc = 0;

	while (!rc && getline(&line, &size, stdin) > 0) {
		name = gf_xstrdup(line);
		rc = read_row(t, name);
		*(char **)gf_array_push(&t->methods, &t->nmethods,
					&t->capacity) = name;
		if (rc)
			gf_error_set(err, rc,
				     "line %zu: want a name, a tab and %d "
				     "numbers",
				     t->nmethods, PARTS);
	}
	free(line);
	return rc;
}

static int draw(const struct table *t, const char *title, const char *path,
		struct gf_error *err)
{
	struct gf_bar_series series[PARTS] = {{0}};
	const struct gf_bars bars = {
		.title = title,
		.subtitle = "what a step is made of, means over the run",
		.y = {"time of a step", GF_QUANTITY_SECONDS, GF_SCALE_LINEAR,
		      true},
		.groups = (const char *const *)t->methods,
		.ngroups = t->nmethods,
		.series = series,
		.nseries = PARTS,
	};
	char *svg = NULL;
	size_t i;
	int rc;

	for (i = 0; i < PARTS; i++)
		series[i] = (struct gf_bar_series){.name = parts[i],
						   .values = t->seconds[i]};
	rc = gf_bars_svg(&bars, &svg, err);
	if (!rc)
		rc = gf_file_write(path, svg, strlen(svg), err);
	free(svg);
	return rc;
}

int main(int argc, char **argv)
{
	struct table t = {0};
	struct gf_error err = {""};
	size_t i;
	int rc;

	if (argc != 3) {
		fprintf(stderr, "usage: methods_report TITLE FILE\n");
		return 2;
	}
	rc = read_rows(&t, &err);
	rc = rc ? rc : draw(&t, argv[1], argv[2], &err);
	if (rc)
		fprintf(stderr, "methods_report: %s\n", err.text);
	for (i = 0; i < t.nmethods; i++)
		free(t.methods[i]);
	for (i = 0; i < PARTS; i++)
		free(t.seconds[i]);
	free(t.methods);
	return rc ? 2 : 0;
}
