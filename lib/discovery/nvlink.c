/* SPDX-License-Identifier: BSD-3-Clause */
#include "discovery/nvlink.h"

#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/heap.h"
#include "discovery/find_levels.h"

static const double latency_s = 3e-6;

static const struct {
	int sm;
	double bytes_per_s;
} rates[] = {{100, 40.1e9}, {90, 20.6e9}, {86, 12e9}, {70, 20e9}, {60, 18e9}};

double gf_nvlink_rate(double sm)
{
	size_t i;

	for (i = 0; i < GF_ARRAY_LENGTH(rates); i++)
		if (sm >= rates[i].sm)
			return rates[i].bytes_per_s;
	return 0;
}

struct gf_nvlinked *gf_nvlinked_new(size_t n)
{
	struct gf_nvlinked *g = gf_xcalloc(n + 1, sizeof(*g));
	size_t i;

	for (i = 0; i < n; i++) {
		g[i].group = i;
		g[i].link = "nvlink";
	}
	return g;
}

void gf_nvlinked_join(struct gf_nvlinked *g, size_t n, size_t a, size_t b)
{
	size_t i, from = g[a].group, to = g[b].group;

	if (from < to) {
		i = from;
		from = to;
		to = i;
	}
	for (i = 0; i < n; i++)
		if (g[i].group == from)
			g[i].group = to;
}

/* Is any connected to another? */
static bool is_any(const struct gf_nvlinked *g, size_t n)
{
	size_t i;

	for (i = 0; i < n; i++)
		if (g[i].group != i)
			return true;
	return false;
}

/* GPUs k*size .. k*size + size-1 together, for all k? Then size, else 1. */
static size_t size_of(const struct gf_nvlinked *g, size_t n)
{
	size_t size = 0, i;

	while (size < n && g[size].group == 0)
		size++;
	for (i = 0; i < n; i++)
		if (n % size != 0 || g[i].group != i - i % size)
			return 1;
	return size ? size : 1;
}

/* Link, bandwidth of the slowest of them, and latency. */
static struct gf_level level_of(const struct gf_nvlinked *g, size_t n)
{
	struct gf_level l = {
		.link = gf_xstrdup(g[0].link),
		.latency_s = latency_s,
		.bandwidth_bytes_per_s = g[0].bytes_per_s,
		.bandwidth_origin = g[0].origin,
	};
	size_t i;

	for (i = 1; i < n; i++)
		if (g[i].bytes_per_s < l.bandwidth_bytes_per_s) {
			l.bandwidth_bytes_per_s = g[i].bytes_per_s;
			l.bandwidth_origin = g[i].origin;
		}
	if (!(l.bandwidth_bytes_per_s > 0)) {
		l.bandwidth_bytes_per_s = gf_nvlink_rate(70);
		l.bandwidth_origin = GF_ORIGIN_ASSUMED;
	}
	return l;
}

static size_t index_of(const struct gf_host *h, size_t n, const char *pci)
{
	size_t i;

	for (i = 0; i < n; i++)
		if (h->devices[i].pci && strcmp(h->devices[i].pci, pci) == 0)
			return i;
	return n;
}

/* The rates of direct links to several GPUs add up. To a switch there is one set of links, however
 * many GPUs it connects. */
static void count_rate(struct gf_nvlinked *g, const struct gf_device_link *l)
{
	if (l->path != GF_PATH_NVSWITCH)
		g->bytes_per_s += l->bandwidth_bytes_per_s;
	else if (l->bandwidth_bytes_per_s > g->bytes_per_s)
		g->bytes_per_s = l->bandwidth_bytes_per_s;
	g->origin = l->bandwidth_origin;
	if (l->path == GF_PATH_XGMI)
		g->link = "xgmi";
}

/* The first n devices of a host, by its links. */
static struct gf_nvlinked *of_host(const struct gf_host *host, size_t n)
{
	struct gf_nvlinked *g = gf_nvlinked_new(n);
	size_t i;

	for (i = 0; i < host->nlinks; i++) {
		const struct gf_device_link *l = &host->links[i];
		size_t a = index_of(host, n, l->from);
		size_t b = index_of(host, n, l->to);

		if (l->path == GF_PATH_UNKNOWN || l->path > GF_PATH_NVSWITCH || a == n || b == n)
			continue;
		gf_nvlinked_join(g, n, a, b);
		count_rate(&g[a], l);
		count_rate(&g[b], l);
	}
	return g;
}

/* Takes both links. */
static struct gf_level slower(struct gf_level a, struct gf_level b)
{
	if (b.bandwidth_bytes_per_s < a.bandwidth_bytes_per_s) {
		free(a.link);
		return b;
	}
	free(b.link);
	return a;
}

static struct gf_level pcie_level(const struct gf_topology *t, size_t size)
{
	struct gf_level level = gf_levels_devices(&t->hosts[0], size);
	size_t i;

	for (i = 1; i < t->nhosts; i++)
		level = slower(level, gf_levels_devices(&t->hosts[i], size));
	return level;
}

/* The GPUs group by group, "0,2,1,3"; NULL where the groups are not alike. */
static char *order_of(const struct gf_nvlinked *g, size_t n)
{
	struct gf_text order = {0};
	size_t i, k, size, first = 0;

	for (i = 0; i < n; i++) {
		if (g[i].group != i)
			continue;
		for (k = i, size = 0; k < n; k++)
			if (g[k].group == i) {
				gf_text_addf(&order, "%s%zu", order.length ? "," : "", k);
				size++;
			}
		first = i == 0 ? size : first;
		if (size != first) {
			gf_text_release(&order);
			return NULL;
		}
	}
	return gf_text_take(&order);
}

/* g may be NULL. */
static void say_scattered(struct gf_text *remarks, const struct gf_nvlinked *g, size_t n)
{
	bool xgmi = g && strcmp(g[0].link, "xgmi") == 0;
	char *order = g ? order_of(g, n) : NULL;

	gf_text_addf(remarks,
		     "%s does not connect the GPUs in equal groups of neighbours: described as if "
		     "over PCI Express",
		     xgmi ? "xGMI" : "NVLink");
	if (order)
		gf_text_addf(remarks, "; %s_VISIBLE_DEVICES=%s makes neighbours of them",
			     xgmi ? "HIP" : "CUDA", order);
	gf_text_addf(remarks, "\n");
	free(order);
}

void gf_levels_linked(struct gf_topology *t, const struct gf_nvlinked *g, size_t n,
		      struct gf_text *remarks)
{
	size_t size = size_of(g, n), per_host = t->hosts[0].ndevices;
	size_t i;

	if (size == 1 && is_any(g, n))
		say_scattered(remarks, t->nhosts == 1 ? g : NULL, n);
	for (i = 1; i < t->nhosts; i++)
		if (t->hosts[i].ndevices != per_host)
			per_host = 0;
	if (size < n && (!per_host || (per_host % size && size % per_host))) {
		gf_text_addf(
			remarks,
			"the hosts have unequal numbers of GPUs: described as one flat level\n");
		gf_levels_append(t, gf_levels_between(t), "net", n);
		return;
	}
	if (size > 1)
		gf_levels_append(t, level_of(g, n),
				 size == n || size == per_host ? "host" : g[0].link, size);
	if (size < per_host || n == 1)
		gf_levels_append(t, pcie_level(t, per_host), "host", per_host / size);
	if (size < per_host)
		size = per_host;
	if (size < n)
		gf_levels_append(t, gf_levels_between(t), "net", n / size);
}

/* The size of the groups that all hosts have, and the slowest one's level, whose link is NULL if
 * that is 1. */
static size_t common_groups(const struct gf_topology *t, size_t size, struct gf_level *level,
			    bool *any)
{
	size_t i, common = 0;

	*level = (struct gf_level){0};
	*any = false;
	for (i = 0; i < t->nhosts; i++) {
		struct gf_nvlinked *g = of_host(&t->hosts[i], size);
		size_t group = size_of(g, size);

		*any |= is_any(g, size);
		common = common == 0 || common == group ? group : 1;
		if (common > 1 && !level->link)
			*level = level_of(g, size);
		else if (common > 1)
			*level = slower(*level, level_of(g, size));
		free(g);
	}
	if (common <= 1) {
		free(level->link);
		level->link = NULL;
	}
	return common;
}

void gf_levels_on_devices(struct gf_topology *t, size_t size, struct gf_text *remark)
{
	struct gf_level level;
	bool any;
	size_t group = common_groups(t, size, &level, &any);

	if (any && group == 1 && remark)
		say_scattered(remark, NULL, 0);
	if (group > 1)
		gf_levels_append(t, level, group == size ? "host" : level.link, group);
	if (group < size || size == 1)
		gf_levels_append(t, pcie_level(t, size), "host", size / group);
}
