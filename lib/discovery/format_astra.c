/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The network description of ASTRA-sim's analytical backend: four lists, one entry per dimension,
 * innermost first.
 *
 *	topology: [ Ring, Switch ]
 *	npus_count: [ 8, 4 ]
 *	bandwidth: [ 400.0, 50.0 ]   # GB/s, of each NPU
 *	latency: [ 936.25, 500.0 ]   # ns
 *
 * There every NPU has links of its own in every dimension; here a level's bandwidth is what all
 * ranks of one group one level down share. So a dimension times the NPUs below it is a level. GB is
 * 1e9 bytes.
 */
#include <ctype.h>
#include <string.h>

#include "base/array.h"
#include "base/heap.h"
#include "base/units.h"
#include "discovery/markup.h"
#include "discovery/format.h"

enum key { TOPOLOGY, NPUS_COUNT, BANDWIDTH, LATENCY, KEYS };
static const char *const keys[KEYS] = {"topology", "npus_count", "bandwidth", "latency"};

struct list {
	const char **items; /* of the elements */
	size_t count, capacity;
	size_t line; /* 0: not there */
};

static int recognise(const char *text)
{
	return strstr(text, "npus_count:") != NULL;
}

static int key_of(const char *name)
{
	int k;

	for (k = 0; k < KEYS && strcmp(name, keys[k]) != 0;)
		k++;
	return k;
}

static int refuse(const struct gf_topology_file *in, size_t line, const char *name,
		  struct gf_error *err)
{
	return gf_error_set(
		err, -EINVAL,
		"%s:%zu: want topology, npus_count, bandwidth or latency and a list, got \"%.40s\"",
		in->path, line, name);
}

/* "key: [ a, b ]", a list of lines, or "key: a". */
static int read_lists(const struct gf_topology_file *in, const struct gf_markup *root,
		      struct list *lists, struct gf_error *err)
{
	int k;

	for (size_t i = 0; i < root->nattributes; i += 2) {
		k = key_of(root->attributes[i]);
		if (k == KEYS)
			return refuse(in, root->line, root->attributes[i], err);
		*gf_array_push(&lists[k].items, &lists[k].count, &lists[k].capacity) =
			root->attributes[i + 1];
		lists[k].line = root->line;
	}
	for (size_t i = 0; i < root->nchildren; i++) {
		const struct gf_markup *c = root->children[i];
		const char *item = gf_markup_get(c, "");

		k = key_of(c->name);
		if (k == KEYS || !item)
			return refuse(in, c->line, c->name, err);
		*gf_array_push(&lists[k].items, &lists[k].count, &lists[k].capacity) = item;
		lists[k].line = lists[k].line ? lists[k].line : c->line;
	}
	for (k = 0; k < KEYS; k++) {
		if (!lists[k].line)
			return gf_error_set(err, -EINVAL, "%s: want %s, got none", in->path,
					    keys[k]);
		if (lists[k].count != lists[0].count)
			return gf_error_set(
				err, -EINVAL,
				"%s:%zu: want %s of as many dimensions as topology, %zu, got %zu",
				in->path, lists[k].line, keys[k], lists[0].count, lists[k].count);
	}
	return 0;
}

static int read_level(const struct list *lists, size_t i, double below, struct gf_level *l,
		      struct gf_error *err)
{
	const char *link = lists[TOPOLOGY].items[i];
	double gb_per_s, latency_ns;
	enum key of = NPUS_COUNT;
	long long size;
	int rc = gf_units_int(lists[of].items[i], 1, GF_RANKS_MAX, &size, err);

	rc = rc ?: gf_units_real(lists[of = BANDWIDTH].items[i], 1e-9, 1e12, &gb_per_s, err);
	rc = rc ?: gf_units_real(lists[of = LATENCY].items[i], 0, 1e15, &latency_ns, err);
	if (rc < 0) {
		gf_error_prefix(err, "%s, entry %zu", keys[of], i);
		return rc;
	}
	if (!*link)
		return gf_error_set(err, -EINVAL, "topology, entry %zu: want a name, got nothing",
				    i);
	l->name = gf_xasprintf("dim%zu", i);
	l->link = gf_xstrdup(link);
	for (size_t k = 0; l->link[k]; k++)
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
	struct gf_markup *root = NULL;
	int rc = gf_yaml_parse(in->text, in->path, &root, err);

	(void)remarks;
	rc = rc ?: read_lists(in, root, lists, err);
	t->levels = gf_xcalloc(lists[0].count + 1, sizeof(*t->levels));
	for (size_t i = 0; i < lists[0].count && rc == 0; i++) {
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
					  "%s:%zu: want at most %d NPUs in all, got %.0f", in->path,
					  lists[NPUS_COUNT].line, GF_RANKS_MAX, below);
	}
	for (size_t k = 0; k < KEYS; k++)
		free(lists[k].items);
	gf_markup_free(root);
	return rc;
}

/* MANUAL
 * the yml of ASTRA-sim's analytical network (ASTRA-sim 2.0):
 * .Va topology , npus_count , bandwidth
 * (GB/s, of 1e9 bytes, of each NPU) and
 * .Va latency
 * (ns), innermost dimension first.
 * The ranks below a level share its bandwidth, so it is the dimension's bandwidth times the
 * number of NPUs below. */
const struct gf_topology_format gf_format_astra = {
	.name = "astra-sim",
	.description = "ASTRA-sim's analytical network (yml)",
	.place = 40,
	.recognise = recognise,
	.read = read_astra,
};
