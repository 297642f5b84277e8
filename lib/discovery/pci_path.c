/* SPDX-License-Identifier: BSD-3-Clause */

#include <stdio.h>
#include <string.h>

#include "base/array.h"
#include "base/heap.h"
#include "discovery/discovery.h"
#include "discovery/find_levels.h"

/* No host has as many devices times interfaces. */
enum { PAIRS_MAX = 1 << 20 };

static void find_nearest(struct gf_host *host, struct gf_device *d, const enum gf_path *paths,
			 const char *link, int *users)
{
	size_t i, best = host->nnics;

	for (i = 0; i < host->nnics; i++) {
		const struct gf_nic *n = &host->nics[i];

		if (paths[i] == GF_PATH_UNKNOWN || strcmp(n->link, link) != 0 ||
		    strcmp(n->state, "down") == 0)
			continue;
		if (best == host->nnics || paths[i] < paths[best] ||
		    (paths[i] == paths[best] && users[i] < users[best]))
			best = i;
	}
	if (best == host->nnics)
		return;
	users[best]++;
	d->nic = gf_xstrdup(host->nics[best].name);
	d->nic_path = paths[best];
}

void gf_near_by_paths(struct gf_host *host, const enum gf_path *paths)
{
	GF_FREED int *users = gf_xcalloc(host->nnics + 1, sizeof(*users));
	struct gf_level way_out;

	gf_levels_network_of(host, &way_out);
	for (size_t i = 0; i < host->ndevices; i++)
		find_nearest(host, &host->devices[i], paths + i * host->nnics, way_out.link, users);
	free(way_out.link);
}

void gf_near_by_places(struct gf_host *host, const struct gf_pci_tree *tree)
{
	const size_t pairs = host->ndevices * host->nnics;
	GF_FREED enum gf_path *paths = NULL;

	if (pairs > PAIRS_MAX)
		return;
	paths = gf_xcalloc(pairs + 1, sizeof(*paths));
	for (size_t i = 0; i < host->ndevices; i++)
		for (size_t k = 0; k < host->nnics; k++) {
			const struct gf_device *d = &host->devices[i];
			const struct gf_nic *n = &host->nics[k];

			paths[i * host->nnics + k] =
				gf_pci_path(tree, (struct gf_pci_end){d->pci, d->numa},
					    (struct gf_pci_end){n->pci, n->numa}, host->numa_nodes);
		}
	gf_near_by_paths(host, paths);
}

int gf_discover_near(const struct gf_discover_config *config, struct gf_host *host,
		     struct gf_error *err)
{
	(void)err;
	for (size_t i = 0; i < host->ndevices; i++)
		gf_pci_tree_look(config->tree, config->sysfs, host->devices[i].pci);
	for (size_t i = 0; i < host->nnics; i++)
		gf_pci_tree_look(config->tree, config->sysfs, host->nics[i].pci);
	gf_near_by_places(host, config->tree);
	return 0;
}

/* No host has more; looking for one costs time. */
enum { PLACES_MAX = 4096 };

static struct gf_pci_place *find(const struct gf_pci_tree *tree, const char *pci)
{
	for (size_t i = 0; i < tree->nplaces; i++)
		if (strcmp(tree->places[i].pci, pci) == 0)
			return &tree->places[i];
	return NULL;
}

void gf_pci_tree_put(struct gf_pci_tree *tree, const char *pci, char *place)
{
	struct gf_pci_place *p = find(tree, pci);

	if (!p && tree->nplaces == PLACES_MAX) {
		free(place);
		return;
	}
	if (!p) {
		p = gf_array_push(&tree->places, &tree->nplaces, &tree->capacity);
		p->pci = gf_xstrdup(pci);
	}
	free(p->place);
	p->place = place;
}

/* "pci0000:16": a host bridge, the first part of a device's place */
static const char *host_bridge(const char *path)
{
	const char *at = path;
	unsigned int domain, bus;

	while ((at = strstr(at, "/pci"))) {
		at++;
		if (sscanf(at, "pci%x:%2x/", &domain, &bus) == 2)
			return at;
	}
	return NULL;
}

void gf_pci_tree_look(struct gf_pci_tree *tree, const char *sysfs, const char *pci)
{
	GF_FREED char *link =
		sysfs && pci ? gf_xasprintf("%s/bus/pci/devices/%s", sysfs, pci) : NULL;
	GF_FREED char *resolved = link ? gf_heap_need(realpath(link, NULL)) : NULL;
	const char *from = resolved ? host_bridge(resolved) : NULL;

	if (from)
		gf_pci_tree_put(tree, pci, gf_xstrdup(from));
}

void gf_pci_tree_release(struct gf_pci_tree *tree)
{
	for (size_t i = 0; i < tree->nplaces; i++) {
		free(tree->places[i].pci);
		free(tree->places[i].place);
	}
	free(tree->places);
	memset(tree, 0, sizeof(*tree));
}

static int parts_of(const char *rest)
{
	int n = 0;

	for (; *rest; rest++)
		n += *rest == '/';
	return n;
}

/*
 * Up to the last part that both have. Below a host bridge alone, they meet in it; below a bridge,
 * in that one: each may have one more port of the same switch above it, else there are several.
 */
static enum gf_path meet(const char *a, const char *b)
{
	size_t i, common = 0;
	int shared = 0;

	for (i = 0; a[i] && a[i] == b[i]; i++)
		if (a[i] == '/') {
			common = i;
			shared++;
		}
	if (shared == 0)
		return GF_PATH_UNKNOWN; /* another host bridge */
	if (shared == 1)
		return GF_PATH_PHB;
	return parts_of(a + common) <= 2 && parts_of(b + common) <= 2 ? GF_PATH_PIX : GF_PATH_PXB;
}

static enum gf_path by_numa(int a, int b, int numa_nodes)
{
	if (numa_nodes <= 1)
		return GF_PATH_NODE;
	if (a < 0 || b < 0)
		return GF_PATH_UNKNOWN;
	return a == b ? GF_PATH_NODE : GF_PATH_SYS;
}

enum gf_path gf_pci_path(const struct gf_pci_tree *tree, struct gf_pci_end a, struct gf_pci_end b,
			 int numa_nodes)
{
	enum gf_path path = GF_PATH_UNKNOWN;
	const struct gf_pci_place *one, *other;

	if (!a.pci || !b.pci)
		return path;
	if (strcmp(a.pci, b.pci) == 0)
		return GF_PATH_PIX;
	one = find(tree, a.pci);
	other = find(tree, b.pci);
	if (one && other)
		path = meet(one->place, other->place);
	return path != GF_PATH_UNKNOWN ? path : by_numa(a.numa, b.numa, numa_nodes);
}
