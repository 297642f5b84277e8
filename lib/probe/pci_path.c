/* SPDX-License-Identifier: BSD-3-Clause */
#include "probe/pci_path.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/heap.h"

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

/* "pci0000:16/0000:16:00.0/0000:17:00.0", or NULL; the caller frees. */
static char *place_of(const char *sysfs, const char *pci)
{
	char *link = gf_xasprintf("%s/bus/pci/devices/%s", sysfs, pci);
	char *resolved = gf_heap_need(realpath(link, NULL));
	const char *from = resolved ? host_bridge(resolved) : NULL;
	char *place = from ? gf_xstrdup(from) : NULL;

	free(link);
	free(resolved);
	return place;
}

static int parts_of(const char *rest)
{
	int n = 0;

	for (; *rest; rest++)
		n += *rest == '/';
	return n;
}

/*
 * Up to the last part that both have. Below a host bridge alone, they meet in
 * it; below a bridge, in that one: each may have one more port of the same
 * switch above it, else there are several.
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
	return parts_of(a + common) <= 2 && parts_of(b + common) <= 2
		       ? GF_PATH_PIX
		       : GF_PATH_PXB;
}

static enum gf_path by_numa(struct gf_pci_end a, struct gf_pci_end b,
			    int numa_nodes)
{
	if (numa_nodes == 1)
		return GF_PATH_NODE;
	if (a.numa < 0 || b.numa < 0)
		return GF_PATH_UNKNOWN;
	return a.numa == b.numa ? GF_PATH_NODE : GF_PATH_SYS;
}

enum gf_path gf_pci_path(const char *sysfs, struct gf_pci_end a,
			 struct gf_pci_end b, int numa_nodes)
{
	enum gf_path path = GF_PATH_UNKNOWN;
	char *one, *other;

	if (!a.pci || !b.pci)
		return path;
	if (strcmp(a.pci, b.pci) == 0)
		return GF_PATH_PIX;
	one = sysfs ? place_of(sysfs, a.pci) : NULL;
	other = sysfs ? place_of(sysfs, b.pci) : NULL;
	if (one && other)
		path = meet(one, other);
	free(one);
	free(other);
	return path != GF_PATH_UNKNOWN ? path : by_numa(a, b, numa_nodes);
}
